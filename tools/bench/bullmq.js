// SPDX-License-Identifier: MIT
// Loads a queue of BullMQ as relay_load.c loads one of the relay. tools/run-bench runs both.
//
// Usage: node bullmq.js PORT put|put_many|take|late N COUNT ..., as relay_load's but submit
'use strict';
const { Queue, Worker } = require('bullmq');
const [port, mode, ...numbers] = process.argv.slice(2);
const [many, count, rate, minMs, spanMs] = numbers.map(Number);
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };
const queue = new Queue('bench', { connection });
const hour = 3600000;

function put(delay) {
	return queue.add('task', { due: Date.now() + delay }, { delay, removeOnComplete: true });
}

async function putAll(delay) {
	let left = count;
	await Promise.all(Array.from({ length: many }, async () => {
		while (left-- > 0) {
			await put(delay);
		}
	}));
}

async function putMany() {
	const opts = { delay: hour, removeOnComplete: true };
	for (let i = 0; i < count; i += many) {
		await queue.addBulk(Array.from({ length: Math.min(many, count - i) }, () => (
			{ name: 'task', data: { due: Date.now() + hour }, opts })));
	}
}

// Resolves when the last of all tasks has ended, to by how many us each was late.
function takeAll() {
	const late = [];
	let ended = 0;
	return new Promise((done) => {
		for (let i = 0; i < many; i++) {
			new Worker('bench', async (job) => {
				const nowUs = (performance.timeOrigin + performance.now()) * 1000;
				late.push(Math.round(nowUs - job.data.due * 1000));
			}, { connection }).on('completed', () => ++ended === count && done(late));
		}
	});
}

async function putAtRate() {
	await new Promise((done) => setTimeout(done, 1000)); // until the workers are connected
	const begin = performance.now();
	for (let i = 0; i < count; i++) {
		const pause = begin + (i * 1000) / rate - performance.now();
		if (pause > 0) {
			await new Promise((done) => setTimeout(done, pause));
		}
		put(minMs + Math.floor(Math.random() * spanMs));
	}
}

async function main() {
	if (mode === 'late') {
		putAtRate();
		console.log(JSON.stringify(await takeAll()));
		process.exit(0);
	}
	if (mode === 'take') {
		await putAll(0);
	}
	await queue.waitUntilReady();
	const begin = performance.now();
	await { put: () => putAll(hour), put_many: putMany, take: takeAll }[mode]();
	console.log(Math.round((count * 1000) / (performance.now() - begin)));
	process.exit(0);
}

main();
