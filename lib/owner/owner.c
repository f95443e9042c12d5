/* SPDX-License-Identifier: MIT */
/*
 * The owner's pass. The owner gives the pass a number, reads the clock, empties the inbox, expires
 * what is due at the time that it has read, and publishes the events. Then it rests: callers may
 * have moved the timers of the schedule's earliest entries to a later time without telling it, so
 * it corrects these entries. At last it stores its promise, the time by which it will look into the
 * inbox again.
 *
 * The clock is read before the inbox is emptied, because otherwise a timer that is armed in between
 * could expire after one with a later deadline.
 *
 * Only the control flow is here. What becomes of a timer is decided by its deadline and state
 * (timer/timer.h), and an entry of the schedule is only a hint.
 *
 * owner_put_expiry() schedules the next period of a timer even if its queue is closed. A consumer
 * may have taken the handle before the close, and may deliver the event now. That arms the timer,
 * and the owner is not told, because the entry exists (timer/timer.c). If the timer was cancelled
 * since it expired, the entry is not needed. Whoever arms the next timer in the slot pushes the
 * slot into the inbox, and the owner then replaces the entry.
 *
 * If a timer was moved to a later time, owner_expire_slot() schedules it again, even if it is due
 * by now. If it expired at once, it could overtake an earlier timer that is still in the schedule.
 *
 * owner_compact() gives new positions to the handles that stay in the outbox, so it publishes them
 * again. It does not count again how late they are.
 *
 * owner_begin_pass() loads the number of waiters relaxed. If it misses a new waiter, the waiter's
 * write to the eventfd makes the owner begin another pass, which wakes the waiter.
 *
 * While many timers expire, most of the cost is wake-ups, so owner_gather() lets the passes begin
 * OWNER_GATHER_NS apart. Network drivers gather interrupts in the same way (Mogul and Ramakrishnan,
 * "Eliminating receive livelock in an interrupt-driven kernel", 1997).
 *
 * Labels: [queue] hub_add_queue → owner_put_expiry, owner_fetch_next: carries the queue.
 *         [pass] owner_begin_pass → owner_wait_pass: carries that the previous pass has ended;
 *         owner_wait_pass → owner_begin_pass: carries that a queue is gone.
 */
#include "owner/owner.h"

#include "base/cpu.h"
#include "base/futex.h"
#include "base/invariant.h"
#include "base/probe.h"
#include "base/test_point.h"

/*
 * How many slots the owner takes from the inbox at once. Their timers are prefetched together, so
 * that the cache misses overlap.
 */
#define OWNER_BATCH 32
/* A timer is prefetched when so many others are still to expire before it. */
#define OWNER_AHEAD 12
/*
 * How many schedule entries a pass checks at most before the owner sleeps, which takes 12 to 24 us.
 * If more must be checked, the owner makes another pass first, so that nothing waits in the inbox
 * for long.
 */
#ifndef OWNER_REST
#define OWNER_REST 256
#endif
/*
 * If so many timers have expired in the last 1 to 2 ms, the owner coalesces: its next pass begins
 * OWNER_GATHER_NS after the last one, or when a caller wakes it.
 */
#ifndef OWNER_CROWD
#define OWNER_CROWD 128
#endif
#define OWNER_CROWD_NS 1000000
#define OWNER_GATHER_NS 250000

int owner_open(struct owner *owner, const struct owner_world *world)
{
	owner->world = *world;
	owner->counts = world->counts;
	owner->true_ns = UINT64_MAX;
	publisher_init(&owner->publisher, world->clock, world->counts);
	return schedule_open(&owner->schedule, world->arena->filings, world->arena->capacity);
}

void owner_close(struct owner *owner)
{
	schedule_close(&owner->schedule);
}

/* ---- draining the inbox ---- */

/*
 * Handles a slot that callers have put into the inbox: reads the deadline and state of its timer,
 * and schedules the slot if these say so.
 */
static void owner_look_at(struct owner *owner, uint32_t slot)
{
	uint64_t at_ns;

	if (timer_look(&owner->world.arena->timers, slot, &at_ns))
		schedule_insert(&owner->schedule, slot, at_ns);
}

static void owner_empty_inbox(struct owner *owner)
{
	struct inbox *inbox = owner->world.inbox;
	uint32_t slots[OWNER_BATCH];
	uint64_t total = 0;
	unsigned count;

	inbox_begin(inbox);
	while ((count = inbox_take(inbox, slots, OWNER_BATCH)) > 0) {
		for (unsigned i = 0; i < count; i++) {
			invariant(slots[i] < owner->world.arena->capacity);
			__builtin_prefetch(&owner->world.arena->timers.pairs[slots[i]], 1);
			__builtin_prefetch(&owner->world.arena->filings[slots[i]], 1);
		}
		for (unsigned i = 0; i < count; i++)
			schedule_fetch(&owner->schedule, slots[i]);
		for (unsigned i = 0; i < count; i++)
			owner_look_at(owner, slots[i]);
		total += count;
	}
	if (total > u64_load_relaxed(&owner->counts->inbox_max))
		u64_store_relaxed(&owner->counts->inbox_max, total);
}

/* ---- expiring ---- */

/*
 * Decides for outbox_compact() whether a handle stays in the outbox: it does if its event has not
 * been taken, cancelled or re-armed. Records the position to which the handle moves.
 */
static bool owner_keep(void *context, uint64_t handle, uint64_t new_place)
{
	struct owner *owner = context;

	owner->swept++;
	if (!timer_waits(&owner->world.arena->timers, handle))
		return false;
	owner->world.arena->filings[handle_slot(handle)].place = (uint32_t)new_place;
	return true;
}

/*
 * Makes room in a queue's full outbox by removing the handles whose events were cancelled or
 * re-armed.
 */
static void owner_compact(struct owner *owner, struct timerhub_queue *queue)
{
	unsigned kept;

	/*
	 * Publish the events that were put since the last publish, before the handles in the outbox
	 * move.
	 */
	publisher_tell(&owner->publisher);
	owner->swept = 0;
	kept = outbox_compact(&queue->outbox, owner_keep, owner);
	u64_count(&queue->counts->put, -owner->swept);
	if (kept > 0)
		publisher_publish(&owner->publisher, queue, kept);
}

static void owner_put(struct owner *owner, struct timerhub_queue *queue, uint64_t handle,
                      uint64_t deadline_ns)
{
	struct timer_filing *filing = &owner->world.arena->filings[handle_slot(handle)];

	invariant(deadline_ns <= owner->now_ns); /* never early */
	if (!outbox_has_room(&queue->outbox))
		owner_compact(owner, queue);
	/*
	 * Remove the handle of the timer's previous event, if it is still in the outbox, because
	 * consumers must not find the handle twice.
	 */
	outbox_blank(&queue->outbox, handle, filing->place);
	filing->place = (uint32_t)outbox_put(&queue->outbox, handle);
	publisher_put(&owner->publisher, queue, deadline_ns);
}

/* Ends an expired timer whose queue has been closed, and gives its slot back to the arena. */
static void owner_drop(struct owner *owner, uint32_t slot)
{
	if (timer_drop(&owner->world.arena->timers, slot))
		arena_put(owner->world.arena, 0, slot);
}

/*
 * Puts the event of an expired timer into its queue. If the timer is periodic, its next period is
 * scheduled.
 */
static void owner_put_expiry(struct owner *owner, uint32_t slot, const struct timer_expiry *expiry)
{
	uint64_t handle = handle_of(expiry->pair.state, slot);
	/* Acquire: if there is a queue, the owner sees all its fields. [queue] */
	struct timerhub_queue *queue =
		ptr_load_acquire(&owner->world.queues[queue_slack_queue(expiry->queue_slack)]);

	/*
	 * Schedule the next period even if the queue is closed, because a consumer that has taken
	 * the handle before may still deliver the event, and then relies on this entry.
	 */
	if (expiry->interval_ns > 0)
		schedule_insert(&owner->schedule, slot,
		                timer_next_period_ns(expiry, owner->now_ns));
	if (!queue || queue == QUEUE_GONE) {
		owner_drop(owner, slot);
		return;
	}
	probe3(expire, handle, expiry->pair.deadline_ns, owner->now_ns - expiry->pair.deadline_ns);
	owner_put(owner, queue, handle, expiry->pair.deadline_ns);
}

/*
 * Expires the timer of a slot that was just taken out of the schedule. A timer that was moved to a
 * later time is scheduled again.
 */
static void owner_expire_slot(struct owner *owner, uint32_t slot)
{
	struct timer_expiry expiry;

	switch (timer_expire(&owner->world.arena->timers, slot, owner->schedule.taken_ns,
	                     owner->now_ns, &expiry)) {
	case TIMER_IS_PENDING:
		test_point(TEST_POINT_OWNER_BEFORE_PUBLISH);
		owner_put_expiry(owner, slot, &expiry);
		break;
	case TIMER_IS_LATER:
		schedule_insert(&owner->schedule, slot, expiry.at_ns);
		u64_count(&owner->counts->refiled, 1);
		break;
	case TIMER_IS_NEITHER:
		break;
	}
}

/*
 * Prefetches one of the timers that will expire soon. If `ahead` is 0, that is the next timer to
 * expire. If `ahead` is 3, three others will expire before it.
 */
CPU_FETCHES void owner_fetch(const struct owner *owner, uint32_t ahead)
{
	uint32_t slot = schedule_peek(&owner->schedule, ahead);

	if (slot == SLOT_NONE)
		return;
	__builtin_prefetch(&owner->world.arena->timers.pairs[slot], 1);
	__builtin_prefetch(&owner->world.arena->timers.cold[slot].queue_slack);
}

/*
 * Prefetches the next timer and its queue. The queue is not freed meanwhile, because a thread that
 * closes it waits until the owner has begun another pass (round of work).
 */
void owner_fetch_next(const struct owner *owner)
{
	const struct arena *arena = owner->world.arena;
	uint32_t slot = schedule_peek(&owner->schedule, 0);
	const struct timerhub_queue *queue;
	uint64_t queue_slack;

	if (slot == SLOT_NONE)
		return;
	__builtin_prefetch(&arena->timers.pairs[slot], 1);
	__builtin_prefetch(&arena->filings[slot], 1);
	/*
	 * Relaxed is enough: if the value belongs to an older timer of the slot, only a prefetch is
	 * wasted.
	 */
	queue_slack = u64_load_relaxed(&arena->timers.cold[slot].queue_slack);
	/* Acquire: if there is a queue, the owner sees all its fields. [queue] */
	queue = ptr_load_acquire(&owner->world.queues[queue_slack_queue(queue_slack)]);
	if (!queue || queue == QUEUE_GONE)
		return;
	outbox_fetch(&queue->outbox);
	notifier_fetch(&queue->notifier);
}

/*
 * Removes the earliest timer from the schedule if it is due, and returns its slot, or SLOT_NONE.
 * Before a long sort it publishes the events that are ready, because they would be late otherwise.
 */
static uint32_t owner_take(struct owner *owner)
{
	uint32_t slot = schedule_take(&owner->schedule, owner->now_ns,
	                              publisher_has_untold(&owner->publisher));

	if (slot != SLOT_DEAR)
		return slot;
	publisher_tell(&owner->publisher);
	return schedule_take(&owner->schedule, owner->now_ns, false);
}

static void owner_expire(struct owner *owner)
{
	uint32_t slot;

	while ((slot = owner_take(owner)) != SLOT_NONE) {
		if (schedule_at_front(&owner->schedule))
			for (uint32_t ahead = 0; ahead < OWNER_AHEAD; ahead++)
				owner_fetch(owner, ahead);
		owner_fetch(owner, OWNER_AHEAD);
		owner_expire_slot(owner, slot);
		publisher_took_slot(&owner->publisher);
	}
	publisher_tell(&owner->publisher);
}

/* ---- resting ---- */

/*
 * Schedules a slot for the time at which its timer is really due, which is not earlier than its
 * schedule entry says.
 */
static void owner_refile(struct owner *owner, uint32_t slot)
{
	uint64_t filed_ns = schedule_at_ns(&owner->schedule, slot);
	uint64_t true_ns = timer_true_ns(&owner->world.arena->timers, slot, filed_ns);

	invariant(filed_ns != UINT64_MAX && true_ns >= filed_ns);
	test_point(TEST_POINT_OWNER_BEFORE_REFILE);
	schedule_insert(&owner->schedule, slot, true_ns);
	owner->true_ns = u64_min(owner->true_ns, true_ns);
	if (true_ns != filed_ns && true_ns != UINT64_MAX)
		u64_count(&owner->counts->refiled, 1);
}

/*
 * Callers postpone and cancel timers without telling the owner. This function finds such timers at
 * the front of the schedule, and corrects the schedule. Returns true if it has finished. Returns
 * false if it stopped after OWNER_REST timers and must be called again.
 */
static bool owner_rest(struct owner *owner)
{
	uint32_t slots[OWNER_BATCH];
	unsigned looked = 0, count;

	while (looked < OWNER_REST) {
		count = schedule_doubt(&owner->schedule, owner->true_ns, slots,
		                       (unsigned)u64_min(OWNER_BATCH, OWNER_REST - looked));
		if (count == 0) {
			/*
			 * Forget the time true_ns, because the timer that has it may expire before
			 * the next call of owner_rest().
			 */
			owner->true_ns = UINT64_MAX;
			return true;
		}
		for (unsigned i = 0; i < count; i++) {
			__builtin_prefetch(&owner->world.arena->timers.pairs[slots[i]]);
			__builtin_prefetch(&owner->world.arena->filings[slots[i]], 1);
		}
		for (unsigned i = 0; i < count; i++)
			owner_refile(owner, slots[i]);
		looked += count;
	}
	return false;
}

/* ---- the pass ---- */

static void owner_begin_pass(struct owner *owner)
{
	promise_begin_pass(owner->world.promise);
	/*
	 * [pass] pairs with owner_wait_pass() in both directions. A thread that sees the new number
	 * may free what only earlier passes have used. If a thread that closes a queue has read the
	 * old number, this pass sees that the queue is gone.
	 */
	(void)u32_fetch_add_acq_rel(&owner->passes_begun, 1);
	/*
	 * Relaxed is enough. A thread in owner_wait_pass() that this load misses rings the bell
	 * afterwards. Then the owner makes another pass, and wakes that thread.
	 */
	if (u32_load_relaxed(&owner->pass_waiters) > 0)
		futex_wake(&owner->passes_begun, UINT32_MAX);
}

/*
 * Returns the time at which the owner should begin its next pass (round of work). Normally that is
 * `next_ns`, when the next timer is due. While many timers expire, it may be later, so that one
 * pass expires several of them.
 */
static uint64_t owner_gather(struct owner *owner, uint64_t next_ns)
{
	uint64_t elapsed_ns = owner->now_ns - owner->crowd_ns;

	/* Decide once per OWNER_CROWD_NS whether many timers expire at present. */
	if (elapsed_ns >= OWNER_CROWD_NS) {
		owner->crowded = owner->publisher.told - owner->crowd_told >= OWNER_CROWD &&
		                 elapsed_ns < 2 * OWNER_CROWD_NS && owner->gathers;
		owner->crowd_ns = owner->now_ns;
		owner->crowd_told = owner->publisher.told;
	}
	if (!owner->crowded || next_ns == UINT64_MAX)
		return next_ns;
	return next_ns < owner->now_ns + OWNER_GATHER_NS ? owner->now_ns + OWNER_GATHER_NS
	                                                 : next_ns;
}

/*
 * Makes one pass: empties the inbox, expires what is due, and stores the time until which the owner
 * may sleep. Returns true if another pass must follow at once.
 */
static bool owner_pass(struct owner *owner, uint64_t *ret_promise_ns)
{
	owner_begin_pass(owner);
	owner->now_ns = clock_now_ns(owner->world.clock);
	test_point(TEST_POINT_OWNER_BEFORE_INBOX);
	owner_empty_inbox(owner);
	owner_expire(owner);
	u64_store_relaxed(&owner->counts->cascaded, owner->schedule.cascaded);
	if (!owner_rest(owner))
		return true;
	*ret_promise_ns = owner_gather(owner, schedule_next_ns(&owner->schedule));
	test_point(TEST_POINT_OWNER_BEFORE_PROMISE);
	if (!promise_make(owner->world.promise, *ret_promise_ns))
		return false;
	test_point(TEST_POINT_OWNER_AFTER_PROMISE);
	/*
	 * The owner has promised to look into the inbox again at a later time than before. A caller
	 * that has read the earlier promise may have pushed a slot and not woken the owner, so
	 * check the inbox once more.
	 */
	return !inbox_empty(owner->world.inbox);
}

uint64_t owner_run_passes(struct owner *owner)
{
	uint64_t promise_ns = 0;

	while (owner_pass(owner, &promise_ns)) {
	}
	return promise_ns;
}
