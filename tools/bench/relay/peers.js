// SPDX-License-Identifier: MIT
// Runs one of the queues for Node, with a producer and workers.
// bench.py runs this program.
//
// Usage: node peers.js KIND PORT WORKERS RATE COUNT MIN_MS SPAN_MS
//
// Puts COUNT tasks at RATE a second, each due MIN_MS to MIN_MS + SPAN_MS after its put. Prints the
// lateness of each task at its worker, in microseconds, as a list of JSON, and ends. If COUNT is 0,
// the program only waits.
'use strict';

const { performance } = require('perf_hooks');
const [kind, port, workers, rate, count, minMs, spanMs] =
	[process.argv[2], ...process.argv.slice(3).map(Number)];
const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
const late = [];

function nowUs() {
	return (performance.timeOrigin + performance.now()) * 1000;
}

async function work(dueMs) {
	late.push(Math.round(nowUs() - dueMs * 1000));
	if (late.length === count) {
		// The program ends a little later, so that the calls that finish the last task
		// count too.
		setTimeout(() => {
			console.log(JSON.stringify(late));
			process.exit(0);
		}, 200);
	}
}

// Each function starts a queue and its workers, and returns a function that puts a task.
const kinds = {
	bullmq() {
		const { Queue, Worker } = require('bullmq');
		for (let i = 0; i < workers; i++) {
			new Worker('bench', (job) => work(job.data.due), { connection });
		}
		const queue = new Queue('bench', { connection });
		return (due, delay) => queue.add('task', { due }, { delay, removeOnComplete: true });
	},
	bull() {
		const Bull = require('bull');
		const redis = { host: '127.0.0.1', port };
		for (let i = 0; i < workers; i++) {
			new Bull('bench', { redis }).process((job) => work(job.data.due));
		}
		const queue = new Bull('bench', { redis });
		return (due, delay) => queue.add({ due }, { delay, removeOnComplete: true });
	},
	bee() {
		const Bee = require('bee-queue');
		const options = { redis: { host: '127.0.0.1', port }, activateDelayedJobs: true,
			removeOnSuccess: true };
		for (let i = 0; i < workers; i++) {
			new Bee('bench', options).process((job) => work(job.data.due));
		}
		const queue = new Bee('bench', { ...options, isWorker: false });
		return (due) => queue.createJob({ due }).delayUntil(due).save();
	},
};

async function main() {
	const put = kinds[kind]();
	await new Promise((done) => setTimeout(done, 1000));
	const begin = performance.now();
	for (let i = 0; i < count; i++) {
		const pause = begin + (i * 1000) / rate - performance.now();
		if (pause > 0) {
			await new Promise((done) => setTimeout(done, pause));
		}
		const delay = minMs + Math.floor(Math.random() * spanMs);
		put(Date.now() + delay, delay);
	}
	if (count === 0) {
		setInterval(() => {}, 1000);
	}
}

main();
