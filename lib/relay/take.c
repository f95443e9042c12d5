/* SPDX-License-Identifier: MIT */
/*
 * Take, stop and fd, for any thread. A task is prefetched for each waiting taker, or one if a
 * caller has the fd.
 */
#include <errno.h>
#include <string.h>

#include "base/cancellation.h"
#include "relay/ready_fd.h"
#include "relay/relay.h"

#define NS_PER_US UINT64_C(1000)
/* If each answer takes half of a lease, the task is handed out after so many questions. */
#define CONFIRM_MAX 4u
#define READS_END_NS UINT64_C(1000000000)

/* Make each shard's thread do another pass. The caller holds the relay's lock. */
static void wake_shards(struct timerhub_relay *relay)
{
	for (uint32_t i = 0; i < relay->shared.shard_count; i++)
		mailbox_wake(&relay->shards[i].mailbox);
}

void relay_end_reads(struct timerhub_relay *relay)
{
	if (relay->shared.reads_end_ns == UINT64_MAX)
		relay->shared.reads_end_ns = sleeper_now_ns() + READS_END_NS;
	wake_shards(relay);
}

/*
 * A lease that may be over, because this process stood still or nobody took it, begins again,
 * unless the task was cancelled, moved or given away. An error, and freed: -ESTALE, or no answer;
 * then it comes again. Under the lock, which is free meanwhile.
 */
static int confirm_lease(struct timerhub_relay *relay, struct delivery *one)
{
	for (unsigned i = 0; i < CONFIRM_MAX && sleeper_now_ns() >= one->ask_ns; i++) {
		struct request touch = { .kind = REQUEST_TOUCH,
			                 .id = one->id,
			                 .delivery = one->entry };
		uint64_t begin_ns = sleeper_now_ns();
		int result;

		one->confirming = true;
		lock_give(&relay->shared.lock);
		result = mailbox_ask(&relay->shards[one->shard].mailbox, &touch);
		lock_take(&relay->shared.lock);
		one->confirming = false;
		if (result < 0) {
			(void)deliveries_drop(&relay->shared.deliveries, one->entry, one->id);
			return result;
		}
		one->ask_ns = begin_ns + relay->shards[one->shard].client.lease_ns / 2;
	}
	return 0;
}

/* Take one prefetched delivery, or return NULL. The caller holds the relay's lock. */
static struct delivery *take_prefetched(struct timerhub_relay *relay)
{
	struct delivery *one = deliveries_take(&relay->shared.deliveries);

	if (relay->shared.deliveries.prefetched == 0) {
		if (!relay->shared.closing && !relay->shared.stopped)
			ready_fd_lower(relay->shared.ready_fd);
		if (relay->shared.watched)
			/* The shards' threads prefetch tasks for the next takers. */
			wake_shards(relay);
	}
	return one;
}

/* 1, 0: none prefetched, or a confirmation's error, which has taken long enough. Under the lock. */
static int hand_out(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task)
{
	struct delivery *one;
	int result;

	do {
		one = take_prefetched(relay);
		result = one ? confirm_lease(relay, one) : 0;
	} while (result == -ESTALE);
	if (!one || result < 0)
		return result;
	*ret_task = (struct timerhub_relay_task){
		.due_ns = one->due_us * NS_PER_US,
		.attempts = one->attempts,
		.data = one->data,
		.data_len = one->data_len,
	};
	memcpy(ret_task->id, one->id, sizeof(ret_task->id));
	memcpy(ret_task->delivery, one->entry, sizeof(ret_task->delivery));
	relay->shared.stats.delivered++;
	return 1;
}

/* As hand_out(), or -ESHUTDOWN, for good. */
static int take_or_end(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task)
{
	int result;

	if (relay->shared.closing || relay->ended)
		return -ESHUTDOWN;
	result = hand_out(relay, ret_task);
	if (result != 0)
		return result;
	relay->ended = relay->shared.stopped;
	return relay->ended ? -ESHUTDOWN : 0;
}

/* Once. Under the lock, which is free meanwhile. */
static void wait_for_prefetched(struct timerhub_relay *relay, uint64_t left_ns, uint64_t until_ns)
{
	uint32_t number = eventcount_number(&relay->shared.takers);

	relay->shared.waiting++;
	if (until_ns > relay->shared.wait_until_ns)
		relay->shared.wait_until_ns = until_ns;
	wake_shards(relay);
	lock_give(&relay->shared.lock);
	eventcount_wait(&relay->shared.takers, number, left_ns);
	lock_take(&relay->shared.lock);
	relay->shared.waiting--;
	if (relay->shared.waiting == 0)
		relay->shared.wait_until_ns = 0;
}

/* 1, 0: timeout, or -ESHUTDOWN. Under the lock, which is free meanwhile. */
static int take_waiting(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task,
                        uint64_t timeout_ns)
{
	uint64_t begin_ns = sleeper_now_ns();
	uint64_t until_ns = timeout_ns < UINT64_MAX - begin_ns ? begin_ns + timeout_ns : UINT64_MAX;

	for (;;) {
		int result = take_or_end(relay, ret_task);
		uint64_t now_ns = sleeper_now_ns();

		if (result == 1 || result == -ESHUTDOWN)
			return result;
		if (now_ns >= until_ns)
			return 0;
		if (result < 0)
			continue; /* others may be prefetched */
		wait_for_prefetched(relay, until_ns == UINT64_MAX ? UINT64_MAX : until_ns - now_ns,
		                    until_ns);
	}
}

/*
 * From the first shard that has one; else the first error, or 0. Under the lock, which is free
 * meanwhile.
 */
static int take_at_once(struct timerhub_relay *relay, struct timerhub_relay_task *ret_task)
{
	uint32_t first = relay->turn++ % relay->shared.shard_count;
	int failure = 0, last;

	for (uint32_t i = 0; i < relay->shared.shard_count; i++) {
		struct shard *shard = &relay->shards[(first + i) % relay->shared.shard_count];
		struct request request = { .kind = REQUEST_READ };
		int result = take_or_end(relay, ret_task);

		if (result != 0)
			return result;
		lock_give(&relay->shared.lock);
		result = mailbox_ask(&shard->mailbox, &request);
		lock_take(&relay->shared.lock);
		if (result < 0 && failure == 0)
			failure = result;
	}
	last = take_or_end(relay, ret_task);
	return last != 0 ? last : failure;
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
	relay->inside++;
	result = timeout_ns == 0 ? take_at_once(relay, ret_task)
	                         : take_waiting(relay, ret_task, timeout_ns);
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
	ready_fd_raise(relay->shared.ready_fd);
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
	relay->shared.watched = true;
	wake_shards(relay);
	lock_give(&relay->shared.lock);
	return relay->shared.ready_fd;
}
