/* SPDX-License-Identifier: MIT */
/*
 * Runs the thread that has all connections to one server (shard_thread.h). It sends requests, hands
 * out the replies, and sleeps in between. Tested in tests/relay by test_calls.c, wire_test.py and
 * lives_test.py.
 *
 * end_reads(): When the relay was stopped or closed, takes wait for 1 s more at most. If this
 * server is not connected, and the relay has other servers, takes do not wait for this one.
 *
 * say_goodbye(): If Redis is not connected, other processes get this one's tasks when the leases
 * end, and take over its polls after their failover delays.
 */
#define _GNU_SOURCE
#include "relay/shard_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "relay/handshake.h"

#define STEP_NS NS_PER_S /* timeout of each reply at close */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- what is over ---- */

/*
 * Closes the connection that reads tasks if commands go to another server now. On the same server
 * it stays open, because it may still bring a task before the lease ends.
 */
static void follow_server(struct shard *shard, uint64_t now_ns)
{
	const struct address *server = &shard->pipeline.server, *old = &shard->takers.server;

	if (shard->takers.link.wire &&
	    (strcmp(server->host, old->host) != 0 || strcmp(server->port, old->port) != 0))
		shard_lose_takers(shard, -EROFS, now_ns);
}

/*
 * Makes reads for timerhub_relay_take() end earlier: at once if this server is not connected and
 * the relay has others, and 1 s after the relay was stopped or closed.
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
 * Finishes the calls whose timeout has ended, and closes connections whose reply is overdue.
 * Returns the time at which the next timeout ends or the next reply is overdue.
 */
static uint64_t expire(struct shard *shard, uint64_t now_ns)
{
	uint64_t next_ns;
	int result;

	end_reads(shard, now_ns);
	result = pipeline_expire(&shard->pipeline, now_ns, &next_ns);
	if (result < 0)
		shard_lose_commands(shard, result, now_ns);
	shard_lose_overdue(shard, now_ns);
	next_ns = sooner(next_ns,
	                 mailbox_begin(&shard->mailbox, pipeline_why(&shard->pipeline), now_ns));
	return next_ns > now_ns ? next_ns : now_ns;
}

/* ---- the thread ---- */

/*
 * Offers again the deliveries whose lease Redis did not confirm. Called while there is a connection
 * on which to ask once more. If a touch is still unanswered, the server hangs, and to ask would be
 * of no use.
 */
static uint64_t bring_back(struct shard *shard, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	lock_take(&shard->shared->lock);
	if (eventcount_number(&shard->brief_touch.request.finished) == 1)
		next_ns = deliveries_bring_back(&shard->shared->deliveries, shard->client.shard,
		                                now_ns);
	shared_show_prefetched(shard->shared);
	lock_give(&shard->shared->lock);
	return next_ns;
}

/* Tells timerhub_relay_open(), which waits for it, whether the server is connected, or why not. */
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

/* An attempt to connect, which may ask several Sentinels or cluster nodes. */
struct attempt {
	struct shard *shard;
	uint64_t begin_ns;
};

/*
 * Called before the thread asks another Sentinel or cluster node for the master. If the timeout of
 * timerhub_relay_open() has passed, lets timerhub_relay_open() know that this server does not
 * answer. Finishes queued requests whose timeout has passed. Returns false if the thread must end.
 */
static bool attempt_goes_on(void *arg)
{
	const struct attempt *attempt = arg;
	struct shard *shard = attempt->shard;
	uint64_t now_ns = sleeper_now_ns();

	if (shard->pipeline.why == 0 && now_ns - attempt->begin_ns >= shard->shared->timeout_ns) {
		shard->pipeline.why = -EHOSTUNREACH;
		tell_open(shard);
	}
	return mailbox_expire(&shard->mailbox, pipeline_why(&shard->pipeline), now_ns);
}

/*
 * Does all work of the shard's thread that is due now. Returns the time at which to call it again.
 */
static uint64_t pass(struct shard *shard)
{
	struct pipeline *pipeline = &shard->pipeline;
	uint64_t now_ns = sleeper_now_ns();
	struct attempt attempt = { shard, now_ns };
	const struct handshake_pause pause = { attempt_goes_on, &attempt };
	uint64_t next_ns = expire(shard, now_ns), used_ns;
	bool open = pipeline_open(pipeline, &pause, now_ns);

	tell_open(shard);
	if (!open) {
		/*
		 * A later version has changed the layout of the queue's keys, so a task that is
		 * taken now could not be ended: take no more.
		 */
		if (pipeline->why == -EOPNOTSUPP && shard->takers.link.wire)
			shard_lose_takers(shard, pipeline->why, now_ns);
		return sooner(next_ns, pipeline->link.retry_ns);
	}
	now_ns = sleeper_now_ns(); /* a handshake may have taken long */
	used_ns = pipeline_owed(pipeline) > 0 || pipeline->unconfirmed.first ? now_ns
	                                                                     : pipeline->heard_ns;
	next_ns = sooner(next_ns, sentinel_watch_pass(&shard->watch, used_ns, now_ns));
	next_ns = sooner(next_ns, bring_back(shard, now_ns));
	follow_server(shard, now_ns);
	/*
	 * After a lost connection, pipeline_send() asks Redis for all deliveries that this process
	 * has not answered. Those that a read in flight is just bringing would be among them and
	 * come twice, so first close the connection that reads.
	 */
	if (pipeline->must_recover && shard->takers.reading)
		shard_lose_takers(shard, -EHOSTUNREACH, now_ns);
	next_ns = sooner(next_ns, pipeline_send(pipeline, now_ns));
	if (!pipeline_recover(pipeline))
		next_ns = sooner(next_ns, takers_pass(&shard->takers, &pipeline->server, now_ns));
	if (shard->serves)
		next_ns = sooner(next_ns, scheduler_pass(&shard->scheduler, sleeper_now_ns()));
	/* Requests that pipeline_send() has just sent may have earlier deadlines than `next_ns`. */
	return requests_deadline_ns(&pipeline->sent, next_ns);
}

/*
 * Gives untaken tasks back to Redis. Begins with the last, because each goes to the front of the
 * stream. Returns how many commands it has sent. Called with the relay's lock held.
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
 * Gives this process's untaken tasks back to Redis, and deletes its consumer and its registration
 * as a relay. Does nothing if Redis is not connected.
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
	/*
	 * Close the connection that reads tasks before the consumer is deleted below, because its
	 * blocked read would create the consumer again and take a task.
	 */
	if (shard->takers.link.wire)
		shard_lose_takers(shard, -ESHUTDOWN, sleeper_now_ns());
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

		if (!shard_flush(shard))
			until_ns = 0;
		idle = mailbox_end(&shard->mailbox, &ending);
		if (ending)
			break;
		shard_wait_and_read(shard, idle ? until_ns : 0);
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
