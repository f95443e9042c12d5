#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Delayed tasks in Redis from Node, with node-redis and without timerhub's library: the program
// calls the functions of timerhub-relay(5).
//
// Usage: orders.js
// The server is $REDIS_URL, or the socket $REDIS_SOCKET. A relay must run:
//                     timerhub-relay run orders
//
// Three orders are cancelled if they are not paid. Nobody pays the first and the third, and the task
// of the third is retried once. The second is paid in time.
'use strict';

const redis = require('redis');

const QUEUE = '{orders}';
const SECOND = 1000000;

// Calls a function of the queue. The answer begins with 0 or a negative errno.
function call(client, name, ...rest) {
	return client.sendCommand(['FCALL', `timerhub_${name}`, '1', QUEUE, ...rest.map(String)]);
}

// Puts a task. If the connection was lost, repeat the put with the same id. The answer -17 (EEXIST)
// means that the first put has arrived.
async function put(client, order, delayUs, data) {
	const answer = await call(client, 'put', order, delayUs, '', data);
	if (answer[0] !== 0 && answer[0] !== -17 && answer[0] !== -114)
		throw new Error(`put ${order}: ${answer[0]}`);
}

// Reads one task. The read blocks its connection, so it needs a connection that no other call uses.
async function read(client) {
	try {
		const reply = await client.sendCommand(['XREADGROUP', 'GROUP', 'timerhub', 'worker-1',
			'COUNT', '1', 'BLOCK', '30000', 'STREAMS', `timerhub:${QUEUE}:ready`, '>']);
		return reply ? reply[0][1] : [];
	} catch (error) {
		if (!error.message.startsWith('NOGROUP'))
			throw error;
		await call(client, 'create'); // the data of Redis was deleted
		return [];
	}
}

// Takes tasks until `count` orders are finished.
async function work(client, reader, count) {
	while (count > 0) {
		for (const [entry, [, order, , , , attempt, , data]] of await read(reader)) {
			console.log(`${order}: ${data}, attempt ${attempt}`);
			if (order === 'order:3' && attempt === '1') {
				await call(client, 'retry', order, 1000, entry);
				continue;
			}
			await call(client, 'done', order, entry);
			count--;
		}
	}
}

async function main() {
	const where = process.env.REDIS_SOCKET ? { socket: { path: process.env.REDIS_SOCKET } }
		: { url: process.env.REDIS_URL };
	const client = redis.createClient(where);
	await client.connect();
	const reader = client.duplicate();
	await reader.connect();
	await call(client, 'create');
	await put(client, 'order:1', SECOND / 20, 'cancel unless paid');
	await put(client, 'order:2', 1800 * SECOND, 'cancel unless paid');
	await put(client, 'order:3', SECOND / 10, 'cancel unless paid');
	if ((await call(client, 'cancel', 'order:2'))[0] === 0)
		console.log('order:2: paid in time');
	await work(client, reader, 2);
	await reader.quit();
	await client.quit();
}

main().catch((error) => {
	console.error(error);
	process.exit(1);
});
