/* SPDX-License-Identifier: MIT */
/*
 * The owner's pass, see owner.h; control flow only.
 *
 * A pass: number it; read the clock, then look at the inbox (in the other order, a timer armed
 * between the two could come out after one with a later deadline); expire up to that reading,
 * telling queues as it goes; rest; promise. What is filed in the schedule is a hint like everything
 * else: timer.c decides, by the pair, and its head says how late a timer may be filed.
 *
 * Labels: [queue] hub_add_queue → owner_deliver, hub_look: carries the queue.
 *         [pass] owner_begin_pass → owner_wait_pass: carries that the pass before is over;
 *         owner_wait_pass → owner_begin_pass: carries that a queue is gone.
 */
#include "owner/owner.h"

#include "base/cpu.h"
#include "base/futex.h"
#include "base/probe.h"
#include "base/test_point.h"

/* Slots taken from the inbox at once, so that their memory can be fetched side by side. */
#define OWNER_BATCH 32
/* How many expiries ahead their memory is fetched. */
#define OWNER_AHEAD 12
/* Slots looked at before the inbox is looked at again: a dozen microseconds or two. */
#ifndef OWNER_REST
#define OWNER_REST 256
#endif
/* So many expiries in a millisecond are a crowd: the next pass begins OWNER_GATHER_NS later. */
#ifndef OWNER_CROWD
#define OWNER_CROWD 128
#endif
#define OWNER_CROWD_NS 1000000
#define OWNER_GATHER_NS 250000

int owner_open(struct owner *owner, const struct owner_world *world)
{
	owner->world = *world;
	owner->counts = world->counts;
	teller_init(&owner->teller, world->clock, world->counts);
	return schedule_open(&owner->schedule, world->arena->filings, world->arena->capacity);
}

void owner_close(struct owner *owner)
{
	schedule_close(&owner->schedule);
}

/* ---- looking at the inbox ---- */

/* Model: tests/models/inbox.pml. */
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

/* Is the handle still that of an undelivered expiry, and this its latest place? */
static bool owner_keep(void *context, uint64_t handle, uint64_t old_place, uint64_t new_place)
{
	struct owner *owner = context;
	struct timer_filing *filing = &owner->world.arena->filings[handle_slot(handle)];

	owner->swept++;
	if (!timer_waits(&owner->world.arena->timers, handle) ||
	    filing->place != (uint32_t)old_place)
		return false;
	filing->place = (uint32_t)new_place;
	return true;
}

/* Make room in the queue's outbox. */
static void owner_compact(struct owner *owner, struct timerhub_queue *queue)
{
	teller_tell(&owner->teller);
	owner->swept = 0;
	teller_put_back(&owner->teller, queue, outbox_compact(&queue->outbox, owner_keep, owner));
	u64_count(&queue->counts->put, -owner->swept);
}

/* Models: tests/models/notifier.pml, tests/models/close.pml. */
static void owner_put(struct owner *owner, struct timerhub_queue *queue, uint64_t handle,
                      uint64_t deadline_ns)
{
	if (!outbox_has_room(&queue->outbox))
		owner_compact(owner, queue);
	owner->world.arena->filings[handle_slot(handle)].place =
		(uint32_t)outbox_put(&queue->outbox, handle);
	teller_put(&owner->teller, queue, deadline_ns);
}

/* The timer, which is filed nowhere, was armed on a queue that was being closed: end its life. */
static void owner_drop(struct owner *owner, uint32_t slot)
{
	if (timer_drop(&owner->world.arena->timers, slot))
		arena_put(owner->world.arena, 0, slot);
}

/*
 * The timer has just become pending: hand it to its queue, and file its next period if it has any.
 * If its life has ended since, the next life is in the inbox, or is due no earlier than what is
 * filed here.
 */
static void owner_deliver(struct owner *owner, uint32_t slot, const struct timer_expiry *expiry)
{
	uint64_t handle = handle_of(expiry->pair.state, slot);
	struct timerhub_queue *queue = ptr_load_acquire(
		&owner->world.queues[queue_slack_queue(expiry->queue_slack)]); /* [queue] */

	if (!queue || queue == QUEUE_GONE) {
		owner_drop(owner, slot);
		return;
	}
	if (expiry->interval_ns > 0)
		schedule_insert(&owner->schedule, slot,
		                timer_next_period_ns(expiry, owner->now_ns));
	probe3(expire, handle, expiry->pair.deadline_ns, owner->now_ns - expiry->pair.deadline_ns);
	owner_put(owner, queue, handle, expiry->pair.deadline_ns);
}

/* The slot's instant has come, and it is filed nowhere. */
static void owner_expire_slot(struct owner *owner, uint32_t slot)
{
	struct timer_expiry expiry;

	switch (timer_expire(&owner->world.arena->timers, slot, owner->schedule.taken_ns,
	                     &expiry)) {
	case TIMER_IS_PENDING:
		test_point(TEST_POINT_OWNER_BEFORE_PUBLISH);
		owner_deliver(owner, slot, &expiry);
		break;
	case TIMER_IS_LATER:
		/* Filed again even if that is due by now, to come in order. */
		schedule_insert(&owner->schedule, slot, expiry.at_ns);
		u64_count(&owner->counts->refiled, 1);
		break;
	case TIMER_IS_NEITHER:
		break;
	}
}

/* Fetch what will be needed of the slot that comes up `ahead` takes from now. */
CPU_FETCHES void owner_fetch(const struct owner *owner, uint32_t ahead)
{
	uint32_t slot = schedule_peek(&owner->schedule, ahead);

	if (slot == SLOT_NONE)
		return;
	__builtin_prefetch(&owner->world.arena->timers.pairs[slot], 1);
	__builtin_prefetch(&owner->world.arena->timers.cold[slot]);
}

static uint32_t owner_take(struct owner *owner)
{
	uint32_t slot =
		schedule_take(&owner->schedule, owner->now_ns, teller_has_untold(&owner->teller));

	if (slot != SLOT_DEAR)
		return slot;
	teller_tell(&owner->teller);
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
		teller_took_slot(&owner->teller);
	}
	teller_tell(&owner->teller);
}

/* ---- resting ---- */

static void owner_refile(struct owner *owner, uint32_t slot)
{
	uint64_t filed_ns = schedule_at_ns(&owner->schedule, slot);
	uint64_t true_ns = timer_true_ns(&owner->world.arena->timers, slot, filed_ns);

	test_point(TEST_POINT_OWNER_BEFORE_REFILE);
	schedule_insert(&owner->schedule, slot, true_ns);
	owner->true_ns = u64_min(owner->true_ns, true_ns);
	if (true_ns != filed_ns && true_ns != UINT64_MAX)
		u64_count(&owner->counts->refiled, 1);
}

/*
 * Look at the pair of the slot that is filed first, and file the slot under what the pair says;
 * until the first was looked at since the owner last slept. So each slot is looked at once at most
 * between two sleeps, however quickly callers move timers.
 * False if there is more to look at: first another pass is due, so that no caller waits for this.
 */
static bool owner_rest(struct owner *owner)
{
	uint32_t slots[OWNER_BATCH];
	unsigned looked = 0, count;

	while (looked < OWNER_REST) {
		count = schedule_doubt(&owner->schedule, owner->true_ns, slots,
		                       (unsigned)u64_min(OWNER_BATCH, OWNER_REST - looked));
		if (count == 0)
			return true;
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
	(void)u32_fetch_add_acq_rel(&owner->passes_begun, 1); /* [pass] */
	/* Relaxed: the bell that a waiter rings carries it to the next pass, if not to this. */
	if (u32_load_relaxed(&owner->pass_waiters) > 0)
		futex_wake(&owner->passes_begun, UINT32_MAX);
}

/*
 * When a stream of timers falls due, one after the other within microseconds, a wake for each costs
 * more than all else, the owner's and the consumer's. So they are gathered, as network drivers do
 * with packets (J. Mogul and K. Ramakrishnan, "Eliminating receive livelock in an interrupt-driven
 * kernel", 1997): late by a quarter of a millisecond at most. Not after one burst, however large;
 * not if the owner is to spin, for then lateness is all that counts.
 */
static uint64_t owner_gather(struct owner *owner, uint64_t next_ns)
{
	uint64_t elapsed_ns = owner->now_ns - owner->crowd_ns;

	if (elapsed_ns >= OWNER_CROWD_NS) {
		owner->crowded = owner->teller.told - owner->crowd_told >= OWNER_CROWD &&
		                 elapsed_ns < 2 * OWNER_CROWD_NS && owner->gathers;
		owner->crowd_ns = owner->now_ns;
		owner->crowd_told = owner->teller.told;
	}
	if (!owner->crowded || next_ns == UINT64_MAX)
		return next_ns;
	return next_ns < owner->now_ns + OWNER_GATHER_NS ? owner->now_ns + OWNER_GATHER_NS
	                                                 : next_ns;
}

/*
 * True if there must be another: there is more to look at before a promise can be made, or the
 * promise was raised over something in the inbox.
 * Model: tests/models/promise.pml.
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
	return !inbox_empty(owner->world.inbox);
}

uint64_t owner_run_passes(struct owner *owner)
{
	uint64_t promise_ns = 0;

	owner->true_ns = UINT64_MAX;
	while (owner_pass(owner, &promise_ns)) {
	}
	return promise_ns;
}
