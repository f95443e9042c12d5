// SPDX-License-Identifier: MIT
// Puts COUNT delayed tasks into BullMQ, RATE a second and each due MIN_MS to MIN_MS + SPAN_MS later,
// and prints by how many us each was late at its worker, as a list of JSON. bullmq.py runs this.
//
// Usage: node bullmq.js PORT WORKERS RATE COUNT MIN_MS SPAN_MS
'use strict';
const { Queue, Worker } = require('bullmq');
const [port, workers, rate, count, minMs, spanMs] = process.argv.slice(2).map(Number);
const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
const late = [];

async function work(job) {
	const nowUs = (performance.timeOrigin + performance.now()) * 1000;
	late.push(Math.round(nowUs - job.data.due * 1000));
	if (late.length === count) {
		// The program ends a little later, so that the calls that finish the last task count too.
		setTimeout(() => {
			console.log(JSON.stringify(late));
			process.exit(0);
		}, 200);
	}
}

async function main() {
	for (let i = 0; i < workers; i++) {
		new Worker('bench', work, { connection });
	}
	const queue = new Queue('bench', { connection });
	await new Promise((done) => setTimeout(done, 1000));
	const begin = performance.now();
	for (let i = 0; i < count; i++) {
		const pause = begin + (i * 1000) / rate - performance.now();
		if (pause > 0) {
			await new Promise((done) => setTimeout(done, pause));
		}
		const delay = minMs + Math.floor(Math.random() * spanMs);
		queue.add('task', { due: Date.now() + delay }, { delay, removeOnComplete: true });
	}
}

main();
