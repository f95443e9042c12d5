/* SPDX-License-Identifier: MIT */
/*
 * Implements timerhub_relay_take(), timerhub_relay_stop() and timerhub_relay_fd(), which any thread
 * may call. The library reads one task in advance for each thread that waits for one, or one task
 * if the program waits on the descriptor.
 *
 * touch_briefly(): The wait is short, because the caller is an event loop that must go on. The
 * reply may come after the wait has ended. It does no harm then: confirm_lease() has set the task
 * aside, and asks again before it hands the task out.
 */
#include <errno.h>
#include <string.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/invariant.h"
#include "relay/relay.h"

/* How long to wait before a delivery that could not be confirmed is offered again. */
#define ASIDE_NS UINT64_C(10000000)
/*
 * A take of an event loop waits for a server for two round trips and this time, so that a server
 * that hangs does not stop the loop.
 */
#define ANSWER_NS UINT64_C(100000000)
/*
 * How often to ask whether a lease still holds, if the answer takes half of a lease to come. After
 * that the task is handed out all the same.
 */
#define CONFIRM_MAX 4u

/*
 * Begins a delivery's lease again, and waits for the reply until the call's timeout. The relay's
 * lock is released meanwhile.
 */
static int touch(struct timerhub_relay *relay, const struct delivery *one)
{
	struct request request = { .kind = REQUEST_TOUCH, .id = one->id, .delivery = one->entry };
	int result;

	lock_give(&relay->shared.lock);
	result = mailbox_ask(&relay->shards[one->shard].mailbox, &request);
	lock_take(&relay->shared.lock);
	return result;
}

/*
 * Renews a delivery's lease, and waits only briefly for the reply. Returns -ETIMEDOUT if none has
 * come, or -EBUSY if an earlier reply is still missing. Releases the relay's lock meanwhile.
 */
static int touch_briefly(struct timerhub_relay *relay, const struct delivery *one)
{
	struct shard *shard = &relay->shards[one->shard];
	struct brief_touch *brief = &shard->brief_touch;
	struct request *request = &brief->request;
	uint64_t now_ns = sleeper_now_ns();
	uint64_t by_ns = now_ns + ANSWER_NS + 2 * shard->client.reads.round_ns;
	int result = -ETIMEDOUT;

	if (brief->is_awaited || eventcount_number(&request->finished) == 0)
		return -EBUSY;
	memcpy(brief->id, one->id, sizeof(brief->id));
	memcpy(brief->entry, one->entry, sizeof(brief->entry));
	*request = (struct request){ .kind = REQUEST_TOUCH,
		                     .id = brief->id,
		                     .delivery = brief->entry };
	brief->is_awaited = true;
	mailbox_post(&shard->mailbox, request);
	lock_give(&relay->shared.lock);
	for (; eventcount_number(&request->finished) == 0 && now_ns < by_ns;
	     now_ns = sleeper_now_ns())
		eventcount_wait(&request->finished, 0, by_ns - now_ns);
	lock_take(&relay->shared.lock);
	if (eventcount_number(&request->finished) == 1)
		result = request->result;
	brief->is_awaited = false;
	return result;
}

/*
 * Asks Redis to renew the lease of a delivery, if the lease may have ended. `briefly` keeps the
 * wait short. Returns 0, -ESTALE if this process has lost the task (the delivery is freed then), or
 * another error. Releases the relay's lock while it waits.
 */
static int confirm_lease(struct timerhub_relay *relay, struct delivery *one, bool briefly)
{
	invariant(one->shard < relay->shared.shard_count);
	for (unsigned i = 0; i < CONFIRM_MAX && sleeper_now_ns() >= one->ask_ns; i++) {
		uint64_t begin_ns = sleeper_now_ns();
		int result;

		one->confirming = true;
		result = briefly ? touch_briefly(relay, one) : touch(relay, one);
		one->confirming = false;
		if (result == -ESTALE)
			(void)deliveries_drop(&relay->shared.deliveries, one->entry, one->id);
		else if (result < 0) {
			/*
			 * Redis did not say whether this process still has the task, so set the
			 * delivery aside for a moment, and ask again then.
			 */
			deliveries_set_aside(&relay->shared.deliveries, one,
			                     sleeper_now_ns() + ASIDE_NS);
			mailbox_wake(&relay->shards[one->shard].mailbox);
		}
		if (result < 0)
			return result;
		one->ask_ns = begin_ns + relay->shards[one->shard].client.lease_ns / 2;
	}
	return 0;
}

/*
 * Hands out a task that was read in advance. Returns 1 if there was one, else 0 or an error of
 * confirm_lease(). Releases the relay's lock while it asks Redis about the lease.
 */
static int hand_out(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task,
                    bool briefly)
{
	struct delivery *one;
	int result;

	do {
		one = deliveries_take(&relay->shared.deliveries);
		result = one ? confirm_lease(relay, one, briefly) : 0;
	} while (result == -ESTALE);
	/* Try no other task after an error: the caller's whole timeout may have passed. */
	if (!one || result < 0)
		return result;
	*ret_task = (struct timerhub_relay_task){
		.due_ns = one->due_us * NS_PER_US,
		.attempts = one->attempts,
		.data = one->data,
		.data_len = one->data_len,
		.interval_ns = one->interval_us * NS_PER_US,
		.periods = one->periods,
	};
	memcpy(ret_task->id, one->id, sizeof(ret_task->id));
	memcpy(ret_task->delivery, one->entry, sizeof(ret_task->delivery));
	relay->shared.stats.delivered++;
	return 1;
}

/*
 * Hands out a task that was read in advance. Returns 1 if there was a task, 0 if there was none,
 * -ESHUTDOWN if no task can come any more, or an error of hand_out().
 */
static int take_or_end(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task,
                       bool briefly)
{
	int result;

	if (relay->shared.closing || relay->ended)
		return -ESHUTDOWN;
	result = hand_out(relay, ret_task, briefly);
	if (result != 0)
		return result;
	relay->ended = relay->shared.stopped;
	return relay->ended ? -ESHUTDOWN : 0;
}

/* ---- take, and wait only briefly for each server ---- */

/*
 * Asks every connected server for a task, if it was not asked already. Returns 0 if all are
 * connected, or the error of the first that is not.
 */
static int ask_servers(struct timerhub_relay *relay)
{
	int failure = 0;

	for (uint32_t i = 0; i < relay->shared.shard_count; i++) {
		struct reads *reads = &relay->shards[i].client.reads;

		if (reads->away < 0 && failure == 0)
			failure = reads->away;
		if (reads->away < 0 || reads->blocked || reads->asked_ns > 0)
			continue;
		reads->wanted = true;
		reads->asked_ns = sleeper_now_ns();
		mailbox_wake(&relay->shards[i].mailbox);
	}
	return failure;
}

/*
 * Returns until when to wait for the servers that were asked for a task. If there is nothing to
 * wait for, the time is not after `now_ns`.
 */
static uint64_t answers_by_ns(const struct timerhub_relay *relay, uint64_t now_ns)
{
	uint64_t by_ns = 0;

	for (uint32_t i = 0; i < relay->shared.shard_count; i++) {
		const struct client *client = &relay->shards[i].client;
		uint64_t one_ns = client->reads.asked_ns + ANSWER_NS + 2 * client->reads.round_ns;

		if (client->reads.asked_ns > 0 && one_ns > now_ns && one_ns > by_ns)
			by_ns = one_ns;
	}
	return by_ns;
}

/*
 * Takes a task. If none was read in advance, asks all servers at once and waits briefly. Stores in
 * *ret_failure the error of a server that is not connected, or 0. The relay's lock is released
 * during the wait.
 */
static int take_briefly(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task,
                        int *ret_failure)
{
	int result = take_or_end(relay, ret_task, true);

	*ret_failure = result == 0 ? ask_servers(relay) : 0;
	while (result == 0) {
		uint32_t number = eventcount_number(&relay->shared.takers);
		uint64_t now_ns = sleeper_now_ns(), by_ns = answers_by_ns(relay, now_ns);

		if (by_ns <= now_ns)
			break;
		lock_give(&relay->shared.lock);
		eventcount_wait(&relay->shared.takers, number, by_ns - now_ns);
		lock_take(&relay->shared.lock);
		result = take_or_end(relay, ret_task, true);
	}
	return result;
}

/*
 * Takes a task for a program that polls timerhub_relay_fd(). The relay's lock is released
 * meanwhile.
 */
static int take_watched(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task)
{
	int failure, result = take_briefly(relay, ret_task, &failure);

	/*
	 * Redis has not answered, so the task is put aside. The descriptor becomes readable again
	 * when Redis answers.
	 */
	if (result == -EBUSY)
		result = 0;
	/*
	 * If the program gets no task now, the shards' threads may read one in advance. If it gets
	 * one, they must not, because the program is busy with it for some time.
	 */
	relay->shared.armed = result != 1;
	/*
	 * There is no task, so make the descriptor unreadable. After a task it stays readable,
	 * because a program may take one task each time it polls.
	 */
	if (result == 0 && relay->shared.deliveries.prefetched == 0)
		bell_clear(relay->shared.ready_fd);
	if (result != 1)
		relay_wake_shards(relay);
	return result != 0 ? result : failure;
}

/* ---- take, and wait for a task or for each server ---- */

/*
 * Waits until a task was read, or until `until_ns`, which is `left_ns` from now. Another thread may
 * take that task first. The relay's lock is released during the wait.
 */
static void wait_for_prefetched(struct timerhub_relay *relay, uint64_t left_ns, uint64_t until_ns)
{
	uint32_t number = eventcount_number(&relay->shared.takers);

	relay->shared.waiting++;
	if (until_ns > relay->shared.wait_until_ns)
		relay->shared.wait_until_ns = until_ns;
	relay_wake_shards(relay);
	lock_give(&relay->shared.lock);
	eventcount_wait(&relay->shared.takers, number, left_ns);
	lock_take(&relay->shared.lock);
	invariant(relay->shared.waiting > 0);
	relay->shared.waiting--;
	if (relay->shared.waiting == 0)
		relay->shared.wait_until_ns = 0;
}

/*
 * Takes a task, and waits for one until the timeout. Returns 1 if it has taken a task, 0 if the
 * timeout has passed, or -ESHUTDOWN. Called with the relay's lock held, which is released during
 * the wait.
 */
static int take_waiting(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task,
                        uint64_t timeout_ns)
{
	uint64_t begin_ns = sleeper_now_ns();
	uint64_t until_ns = timeout_ns < UINT64_MAX - begin_ns ? begin_ns + timeout_ns : UINT64_MAX;

	/*
	 * A blocking read waits for 1 ms at least. If the timeout is shorter, first ask all servers
	 * without blocking.
	 */
	if (timeout_ns < NS_PER_MS) {
		int unused, result = take_briefly(relay, ret_task, &unused);

		if (result == 1 || result == -ESHUTDOWN)
			return result;
	}
	for (;;) {
		int result = take_or_end(relay, ret_task, false);
		uint64_t now_ns = sleeper_now_ns();

		if (result == 1 || result == -ESHUTDOWN)
			return result;
		if (now_ns >= until_ns)
			return 0;
		if (result < 0)
			continue; /* this one is set aside, and others may be prefetched */
		wait_for_prefetched(relay, until_ns == UINT64_MAX ? UINT64_MAX : until_ns - now_ns,
		                    until_ns);
	}
}

/*
 * Asks one server after the other for a ready task. Returns 1 if it got one, 0 if none has one, the
 * first error of a server, or -ESHUTDOWN. Releases the relay's lock meanwhile.
 */
static int take_at_once(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task)
{
	uint32_t first = relay->turn++ % relay->shared.shard_count;
	int failure = 0, last;

	for (uint32_t i = 0; i < relay->shared.shard_count; i++) {
		struct shard *shard = &relay->shards[(first + i) % relay->shared.shard_count];
		struct request request = { .kind = REQUEST_READ };
		int result = take_or_end(relay, ret_task, false);

		if (result != 0)
			return result;
		lock_give(&relay->shared.lock);
		result = mailbox_ask(&shard->mailbox, &request);
		lock_take(&relay->shared.lock);
		if (result < 0 && failure == 0)
			failure = result;
	}
	last = take_or_end(relay, ret_task, false);
	return last != 0 ? last : failure;
}

/*
 * Called by timerhub_relay_take() and timerhub_relay_fd(). The first such call makes this process
 * serve the queue too (move due tasks into the stream), unless its config forbids that.
 */
static void begin_taking(struct timerhub_relay *relay)
{
	if (relay->shared.takes)
		return;
	relay->shared.takes = true;
	relay->shared.serves |= !relay->shared.never_serves;
	relay_wake_shards(relay);
}

int timerhub_relay_take(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task,
                        uint64_t timeout_ns)
{
	CANCELLATION_HELD;
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if (!ret_task)
		return -EINVAL;
	lock_take(&relay->shared.lock);
	begin_taking(relay);
	relay->inside++;
	if (timeout_ns > 0)
		result = take_waiting(relay, ret_task, timeout_ns);
	else
		result = relay->shared.watched ? take_watched(relay, ret_task)
		                               : take_at_once(relay, ret_task);
	invariant(relay->inside > 0);
	relay->inside--;
	lock_give(&relay->shared.lock);
	return result;
}

void timerhub_relay_stop(struct timerhub_relay *relay)
{
	CANCELLATION_HELD;
	if (relay_may_call(relay) < 0)
		return;
	lock_take(&relay->shared.lock);
	relay->shared.stopped = true;
	relay_end_reads(relay);
	bell_ring(relay->shared.ready_fd);
	shared_wake_takers(&relay->shared);
	lock_give(&relay->shared.lock);
}

int timerhub_relay_fd(struct timerhub_relay *relay)
{
	CANCELLATION_HELD;
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	lock_take(&relay->shared.lock);
	begin_taking(relay);
	/*
	 * The first call asks for one task in advance, because the descriptor must become readable
	 * when a task is due.
	 */
	relay->shared.armed |= !relay->shared.watched;
	relay->shared.watched = true;
	relay_wake_shards(relay);
	lock_give(&relay->shared.lock);
	return relay->shared.ready_fd;
}
