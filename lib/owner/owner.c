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
 * While many timers expire, passes begin OWNER_GATHER_NS apart, because most of the cost is
 * wake-ups. Network drivers gather interrupts in the same way (Mogul and Ramakrishnan, "Eliminating
 * receive livelock in an interrupt-driven kernel", 1997).
 *
 * Labels: [queue] hub_add_queue → owner_put_expiry, owner_fetch_next: carries the queue.
 *         [pass] owner_begin_pass → owner_wait_pass: carries that the previous pass has ended, so
 *         what only earlier passes have used may be freed;
 *         owner_wait_pass → owner_begin_pass: carries that a queue is gone.
 */
#include "owner/owner.h"

#include "base/cpu.h"
#include "base/futex.h"
#include "base/invariant.h"
#include "base/probe.h"
#include "base/test_point.h"

/* How many slots are taken from the inbox at once, so that their cache misses overlap. */
#define OWNER_BATCH 32
/* A timer is prefetched when so many others are still to expire before it. */
#define OWNER_AHEAD 12
/*
 * How many entries a pass checks at most, in 12 to 24 us. The next pass checks the rest, after it
 * has emptied the inbox.
 */
#ifndef OWNER_REST
#define OWNER_REST 256
#endif
/*
 * So many expiries in the last 1 to 2 ms put passes OWNER_GATHER_NS apart, unless a caller wakes
 * the owner.
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

/* Reads the timer of a slot from the inbox, and schedules the slot if need be. */
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
 * Tells outbox_compact() whether a handle's event still waits, and records the handle's new
 * position.
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

/* Makes room in a full outbox by removing the handles of cancelled and re-armed events. */
static void owner_compact(struct owner *owner, struct timerhub_queue *queue)
{
	unsigned kept;

	/* Publish now, because the lateness of an event must be counted only once. */
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
	/* Remove an older handle of this timer, so that nobody finds two handles for one event. */
	outbox_blank(&queue->outbox, handle, filing->place);
	filing->place = (uint32_t)outbox_put(&queue->outbox, handle);
	publisher_put(&owner->publisher, queue, deadline_ns);
}

/* Frees the slot of an expired timer whose queue has been closed. */
static void owner_drop(struct owner *owner, uint32_t slot)
{
	if (timer_drop(&owner->world.arena->timers, slot))
		arena_put(owner->world.arena, 0, slot);
}

/* Puts an expired timer's event into its queue, and schedules its next period if it has one. */
static void owner_put_expiry(struct owner *owner, uint32_t slot, const struct timer_expiry *expiry)
{
	uint64_t handle = handle_of(expiry->pair.state, slot);
	/* [queue] pairs with hub_add_queue(): a queue that is found here is completely set up. */
	struct timerhub_queue *queue =
		ptr_load_acquire(&owner->world.queues[queue_slack_queue(expiry->queue_slack)]);

	/*
	 * Schedule it even for a closed queue, because a consumer may still be delivering the
	 * event.
	 */
	if (expiry->interval_ns > 0)
		/*
		 * A timer that was cancelled meanwhile gets an entry too, which the owner corrects
		 * later.
		 */
		schedule_insert(&owner->schedule, slot,
		                timer_next_period_ns(expiry, owner->now_ns));
	if (!queue || queue == QUEUE_GONE) {
		owner_drop(owner, slot);
		return;
	}
	probe3(expire, handle, expiry->pair.deadline_ns, owner->now_ns - expiry->pair.deadline_ns);
	owner_put(owner, queue, handle, expiry->pair.deadline_ns);
}

/* Expires the timer of a slot just taken from the schedule, unless it was moved later. */
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
		/*
		 * Schedule a due timer too, because an earlier one in the schedule must expire
		 * first.
		 */
		schedule_insert(&owner->schedule, slot, expiry.at_ns);
		u64_count(&owner->counts->refiled, 1);
		break;
	case TIMER_IS_NEITHER:
		break;
	}
}

/* Prefetches the timer that will expire when `ahead` others have expired before it. */
CPU_FETCHES void owner_fetch(const struct owner *owner, uint32_t ahead)
{
	uint32_t slot = schedule_peek(&owner->schedule, ahead);

	if (slot == SLOT_NONE)
		return;
	__builtin_prefetch(&owner->world.arena->timers.pairs[slot], 1);
	__builtin_prefetch(&owner->world.arena->timers.cold[slot].queue_slack);
}

/* Prefetches the next timer and its queue, which cannot be freed before the owner's next pass. */
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
	/* Relaxed is enough: an older timer's queue only wastes the prefetch. */
	queue_slack = u64_load_relaxed(&arena->timers.cold[slot].queue_slack);
	/* [queue] pairs with hub_add_queue(): a queue that is found here is completely set up. */
	queue = ptr_load_acquire(&owner->world.queues[queue_slack_queue(queue_slack)]);
	if (!queue || queue == QUEUE_GONE)
		return;
	outbox_fetch(&queue->outbox);
	notifier_fetch(&queue->notifier);
}

/* Removes the earliest timer if it is due, and returns its slot, or SLOT_NONE. */
static uint32_t owner_take(struct owner *owner)
{
	uint32_t slot = schedule_take(&owner->schedule, owner->now_ns,
	                              publisher_has_untold(&owner->publisher));

	if (slot != SLOT_DEAR)
		return slot;
	/* A long sort comes next, so publish the events that are ready. */
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

/* Schedules a slot for its timer's true time, which may be later than its entry says. */
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

/* Corrects the earliest entries whose timers were moved later. Returns false if some are left. */
static bool owner_rest(struct owner *owner)
{
	uint32_t slots[OWNER_BATCH];
	unsigned looked = 0, count;

	while (looked < OWNER_REST) {
		count = schedule_doubt(&owner->schedule, owner->true_ns, slots,
		                       (unsigned)u64_min(OWNER_BATCH, OWNER_REST - looked));
		if (count == 0) {
			/*
			 * The next call must search anew, because this timer may have expired by
			 * then.
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
	/* [pass] pairs with owner_wait_pass(), in both directions (see the head of this file). */
	(void)u32_fetch_add_acq_rel(&owner->passes_begun, 1);
	/* Relaxed is enough: a waiter that is missed here has woken the owner for another pass. */
	if (u32_load_relaxed(&owner->pass_waiters) > 0)
		futex_wake(&owner->passes_begun, UINT32_MAX);
}

/*
 * Returns the time of the next pass: `next_ns`, or later, so that several timers expire together.
 */
static uint64_t owner_gather(struct owner *owner, uint64_t next_ns)
{
	uint64_t elapsed_ns = owner->now_ns - owner->crowd_ns;

	/* While many timers expire, passes begin OWNER_GATHER_NS apart. */
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

/* Makes one pass, and stores its promise. Returns true if another pass must follow at once. */
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
	 * Check the inbox, because a caller that has read the earlier promise does not wake the
	 * owner.
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
