/* SPDX-License-Identifier: MIT */
/*
 * Implements the thread of a shard (shard_thread.h), which is tested in tests/relay by
 * test_calls.c, wire_test.py and kill_test.py.
 */
#define _GNU_SOURCE
#include "relay/shard_thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

#define STEP_NS UINT64_C(1000000000) /* timeout of each reply at close */

enum { COMMANDS, TAKERS, BELLS, WATCH, LINKS };

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static struct wire *wire_of(const struct shard *shard, unsigned link)
{
	struct wire *const wires[LINKS] = { shard->pipeline.link.wire, shard->takers.link.wire,
		                            shard->scheduler.bells.wire, shard->watch.link.wire };

	return wires[link];
}

/* ---- open ---- */

void shard_init(struct shard *shard, struct shared *shared, const struct address *address,
                uint64_t seed)
{
	shard->shared = shard->client.shared = shard->mailbox.shared = shared;
	shard->told = SHARD_UNTRIED;
	pipeline_init(&shard->pipeline, &shard->client, &shard->mailbox, address, seed);
	takers_init(&shard->takers, &shard->client, seed + 1);
	scheduler_init(&shard->scheduler, &shard->pipeline, &shard->client, seed + 2);
	sentinel_watch_init(&shard->watch, &shard->pipeline.address, shared->timeout_ns, seed + 3);
}

void shard_fini(struct shard *shard)
{
	for (unsigned i = 0; i < LINKS; i++)
		wire_close(wire_of(shard, i));
	sleeper_close(shard->sleeper);
}

void shard_leave(struct shard *shard)
{
	for (unsigned i = 0; i < LINKS; i++)
		wire_leave(wire_of(shard, i));
	sleeper_close(shard->sleeper);
}

/* ---- lost connections ---- */

/*
 * Closes the command connection, and with it the bells' connection, which is of no use then. The
 * takers' connection may still bring tasks.
 */
static void lose_commands(struct shard *shard, int why, uint64_t now_ns)
{
	pipeline_lose(&shard->pipeline, why, now_ns);
	scheduler_lost(&shard->scheduler, why, now_ns);
}

static void lose_takers(struct shard *shard, int why, uint64_t now_ns)
{
	shard->pipeline.must_recover |= takers_lose(&shard->takers, why, now_ns);
}

/*
 * Closes the takers' connection if the command connection is to another server now. On the same
 * server it stays, because a task may be on its way there, and would be lost until its lease ends.
 */
static void follow_server(struct shard *shard, uint64_t now_ns)
{
	const struct address *server = &shard->pipeline.server, *old = &shard->takers.server;

	if (shard->takers.link.wire &&
	    (strcmp(server->host, old->host) != 0 || strcmp(server->port, old->port) != 0))
		lose_takers(shard, -EROFS, now_ns);
}

/*
 * Ends reads for takes that would wait too long: after a stop those of a server that does not
 * answer, and of several servers those of one without a connection, because the others may have
 * tasks.
 */
static void end_reads(struct shard *shard, uint64_t now_ns)
{
	struct shared *shared = shard->shared;
	uint64_t by_ns;

	lock_take(&shared->lock);
	shard->client.reads.away = pipeline_why(&shard->pipeline);
	shard->serves = shared->serves;
	by_ns = shared->reads_end_ns;
	if (shared->shard_count > 1 && pipeline_why(&shard->pipeline) < 0)
		by_ns = now_ns;
	requests_end_reads(&shard->mailbox.queued, by_ns);
	lock_give(&shared->lock);
	requests_end_reads(&shard->pipeline.sent, by_ns);
	requests_end_reads(&shard->pipeline.resend, by_ns);
}

/*
 * Finishes calls whose timeout has ended, and closes a connection whose reply is overdue. Returns
 * the next deadline of either.
 */
static uint64_t expire(struct shard *shard, uint64_t now_ns)
{
	uint64_t next_ns;
	int result;

	end_reads(shard, now_ns);
	result = pipeline_expire(&shard->pipeline, now_ns, &next_ns);
	if (result < 0)
		lose_commands(shard, result, now_ns);
	if (shard->takers.link.wire && shard->takers.link.answer_by_ns <= now_ns)
		lose_takers(shard, -EHOSTUNREACH, now_ns);
	if (shard->scheduler.bells.wire && shard->scheduler.bells.answer_by_ns <= now_ns)
		scheduler_lose_bells(&shard->scheduler, -EHOSTUNREACH, now_ns);
	next_ns = sooner(next_ns,
	                 mailbox_begin(&shard->mailbox, pipeline_why(&shard->pipeline), now_ns));
	return next_ns > now_ns ? next_ns : now_ns;
}

/* ---- the thread ---- */

/*
 * Offers again the deliveries that no taker could confirm, if there is a connection on which to ask
 * now.
 */
static uint64_t bring_back(struct shard *shard, uint64_t now_ns)
{
	uint64_t next_ns;

	lock_take(&shard->shared->lock);
	next_ns = deliveries_bring_back(&shard->shared->deliveries, shard->client.shard, now_ns);
	shared_show_prefetched(shard->shared);
	lock_give(&shard->shared->lock);
	return next_ns;
}

/* Lets the open know whether the server is connected, or why not. */
static void tell_open(struct shard *shard)
{
	struct shared *shared = shard->shared;
	int now = shard->pipeline.link.wire ? 0 : shard->pipeline.why;

	if (now == shard->told)
		return;
	lock_take(&shared->lock);
	shard->told = now;
	eventcount_advance(&shared->tries, UINT32_MAX);
	lock_give(&shared->lock);
}

/* Does all of the thread's work that is due now. Returns when to call it again. */
static uint64_t pass(struct shard *shard)
{
	struct pipeline *pipeline = &shard->pipeline;
	uint64_t now_ns = sleeper_now_ns();
	uint64_t next_ns = expire(shard, now_ns), used_ns;
	bool open = pipeline_open(pipeline, now_ns);

	tell_open(shard);
	if (!open) {
		/*
		 * The keys have a later layout, so a task that is taken now could not be ended:
		 * take no more.
		 */
		if (pipeline->why == -EOPNOTSUPP && shard->takers.link.wire)
			lose_takers(shard, pipeline->why, now_ns);
		return sooner(next_ns, pipeline->link.retry_ns);
	}
	now_ns = sleeper_now_ns(); /* a handshake may have taken long */
	used_ns = pipeline_owed(pipeline) > 0 || pipeline->unconfirmed.first ? now_ns
	                                                                     : pipeline->heard_ns;
	next_ns = sooner(next_ns, sentinel_watch_pass(&shard->watch, used_ns, now_ns));
	next_ns = sooner(next_ns, bring_back(shard, now_ns));
	follow_server(shard, now_ns);
	/*
	 * A recovery lists what a blocked read may bring too, so one entry could come twice: end
	 * that read first.
	 */
	if (pipeline->must_recover && shard->takers.reading)
		lose_takers(shard, -EHOSTUNREACH, now_ns);
	next_ns = sooner(next_ns, pipeline_send(pipeline, now_ns));
	if (!pipeline_recover(pipeline))
		next_ns = sooner(next_ns, takers_pass(&shard->takers, &pipeline->server, now_ns));
	if (shard->serves)
		next_ns = sooner(next_ns, scheduler_pass(&shard->scheduler, sleeper_now_ns()));
	/* what was sent just now may become overdue before that */
	return requests_deadline_ns(&pipeline->sent, next_ns);
}

static void lose(struct shard *shard, unsigned link, int why, uint64_t now_ns)
{
	if (link == COMMANDS)
		lose_commands(shard, why, now_ns);
	else if (link == TAKERS)
		lose_takers(shard, why, now_ns);
	else if (link == WATCH)
		sentinel_watch_lose(&shard->watch, why, now_ns);
	else
		scheduler_lose_bells(&shard->scheduler, why, now_ns);
}

/* Sends the buffered commands of all connections. Returns false if one was lost. */
static bool flush(struct shard *shard)
{
	bool good = true;

	for (unsigned i = 0; i < LINKS; i++) {
		struct wire *wire = wire_of(shard, i);
		int result = wire ? wire_flush(wire) : 0;

		if (result < 0)
			lose(shard, i, result, sleeper_now_ns());
		good &= result == 0;
	}
	return good;
}

/*
 * Reads what the Sentinel has answered. If it names another master, the thread leaves this one,
 * which acknowledges what will be lost.
 */
static void read_watch(struct shard *shard, uint64_t now_ns)
{
	int result = sentinel_watch_read(&shard->watch, &shard->pipeline.server, now_ns);

	if (result != -EROFS || !shard->pipeline.link.wire)
		return;
	lose_commands(shard, result, now_ns);
	lose_takers(shard, result, now_ns);
}

static void read_link(struct shard *shard, unsigned link, uint64_t now_ns)
{
	int result;

	if (link == WATCH) {
		read_watch(shard, now_ns);
		return;
	}
	if (link == COMMANDS)
		result = pipeline_read(&shard->pipeline, now_ns);
	else if (link == TAKERS)
		result = takers_read(&shard->takers, now_ns);
	else
		result = scheduler_read(&shard->scheduler, now_ns);
	if (result < 0)
		lose(shard, link, result, now_ns);
	/* the group was deleted, or the server is a replica now: close all, and connect again */
	if (link == TAKERS && result == -EROFS && shard->pipeline.link.wire)
		lose_commands(shard, result, now_ns);
}

/* Sleeps until `until_ns` or until a connection is ready, and then reads from all that are. */
static void wait_and_read(struct shard *shard, uint64_t until_ns)
{
	struct pollfd fds[LINKS + 2];
	const struct wire *polled[LINKS];
	uint64_t now_ns;

	for (unsigned i = 0; i < LINKS; i++) {
		const struct wire *wire = polled[i] = wire_of(shard, i);

		fds[i] = (struct pollfd){ .fd = wire ? wire_fd(wire) : -1, .events = POLLIN };
		if (wire && wire_has_output(wire))
			fds[i].events |= POLLOUT;
	}
	sleeper_sleep(shard->sleeper, fds, LINKS, until_ns);
	now_ns = sleeper_now_ns();
	for (unsigned i = 0; i < LINKS; i++)
		/* Skip a connection that was closed because another one was lost. */
		if ((fds[i].revents & ~POLLOUT) && wire_of(shard, i) == polled[i])
			read_link(shard, i, now_ns);
}

/*
 * Sends the prefetched deliveries back, the last one first: Redis can then make each of them the
 * next one to be delivered. Returns the number of commands. The caller holds the relay's lock.
 */
static unsigned give_prefetched_back(struct shard *shard, struct wire *wire)
{
	struct delivery *one;
	unsigned count = 0;

	while ((one = deliveries_take_last(&shard->shared->deliveries, shard->client.shard))) {
		struct request retry = {
			.kind = REQUEST_RETRY,
			.id = one->id,
			.when = "0",
			.delivery = one->entry,
			.untaken = true,
			.deadline_ns = sleeper_now_ns() + shard->shared->timeout_ns,
		};

		request_encode(&shard->client, &retry, wire_output(wire));
		free(one);
		count++;
	}
	return count;
}

/*
 * Gives up what this relay has in Redis: its prefetched deliveries, its name as a consumer, and its
 * rank. If that fails, the deliveries come again after their leases, and other relays take over
 * after their delays.
 */
static void say_goodbye(struct shard *shard)
{
	const struct request leave = { .kind = REQUEST_LEAVE, .id = shard->client.name };
	const struct request forget = { .kind = REQUEST_FORGET, .id = shard->shared->consumer };
	struct wire *wire = shard->pipeline.link.wire;
	unsigned owed = pipeline_owed(&shard->pipeline);
	bool takes;

	if (!pipeline_is_open(&shard->pipeline))
		return;
	/* A read that is still blocked would create this consumer again, and take a task for it. */
	if (shard->takers.link.wire)
		lose_takers(shard, -ESHUTDOWN, sleeper_now_ns());
	lock_take(&shard->shared->lock);
	owed += give_prefetched_back(shard, wire);
	takes = shard->shared->takes;
	lock_give(&shard->shared->lock);
	if (takes) {
		request_encode(&shard->client, &forget, wire_output(wire));
		owed++;
	}
	if (shard->serves) {
		request_encode(&shard->client, &leave, wire_output(wire));
		owed++;
	}
	while (owed-- > 0) {
		struct reply *reply = NULL;

		if (wire_call(wire, &reply, STEP_NS) < 0)
			return;
		reply_free(reply);
	}
}

static void *run(void *arg)
{
	struct shard *shard = arg;

	thread_begin();
	for (;;) {
		uint64_t until_ns = pass(shard);
		bool ending, idle;

		if (!flush(shard))
			until_ns = 0;
		idle = mailbox_end(&shard->mailbox, &ending);
		if (ending)
			break;
		wait_and_read(shard, idle ? until_ns : 0);
	}
	say_goodbye(shard);
	return NULL;
}

int shard_start(struct shard *shard)
{
	int result = sleeper_open(&shard->sleeper);

	if (result < 0)
		return result;
	shard->mailbox.sleeper = shard->sleeper;
	result = thread_create(&shard->thread, run, shard);
	shard->has_thread = result == 0;
	return result;
}

void shards_end(struct shard *shards, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (shards[i].has_thread) {
			lock_take(&shards[i].shared->lock);
			shards[i].shared->closing = shards[i].shared->ending = true;
			lock_give(&shards[i].shared->lock);
			sleeper_wake(shards[i].sleeper);
		}
	for (uint32_t i = 0; i < count; i++) {
		if (shards[i].has_thread)
			(void)pthread_join(shards[i].thread, NULL);
		shards[i].has_thread = false;
	}
}
