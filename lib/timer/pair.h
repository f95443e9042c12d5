/* SPDX-License-Identifier: MIT */
/*
 * The bits of pair and handle, periods and slack; pure. timer.[ch] have the pair's transitions.
 *
 *   deadline   exact nanoseconds on the hub's clock; UINT64_MAX: never
 *   state      63        26 25  7   6       5        4          3     2   0
 *             | generation |  0  | kept | slack | periodic | claimed | phase |
 *   handle     63        26 25                                           0
 *             | generation |                    slot                      |
 *
 * The generation is as wide as a handle has room for.
 */
#ifndef TIMERHUB_PAIR_H
#define TIMERHUB_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "schedule/entry.h"

/* 292 years after the clock's zero; not INT64_MAX, std::chrono's "no limit" */
#define TIMER_DEADLINE_MAX_NS (((uint64_t)1 << 63) - 128)
#define TIMER_NEVER_NS UINT64_MAX

#define TIMER_SLOT_BITS 26
#define TIMER_SLOT_MASK (((uint64_t)1 << TIMER_SLOT_BITS) - 1)
#define TIMER_SLOTS_MAX ((uint32_t)TIMER_SLOT_MASK - 1) /* slot + 1 has TIMER_SLOT_BITS too */
#define TIMER_GENERATION_MASK (((uint64_t)1 << 38) - 1)

#define STATE_PHASE_MASK ((uint64_t)7)
#define STATE_CLAIMED ((uint64_t)1 << 3) /* the owner must look: the schedule may be late */
#define STATE_PERIODIC ((uint64_t)1 << 4)
#define STATE_SLACK ((uint64_t)1 << 5)
#define STATE_KEPT ((uint64_t)1 << 6)
#define STATE_GENERATION_SHIFT TIMER_SLOT_BITS

enum timer_phase {
	/* no timer; unless CLAIMED, scheduled no later than the deadline, which may be never */
	TIMER_FREE = 0,
	TIMER_ARMED = 1, /* waits for its deadline; unless CLAIMED, scheduled no later */
	/* expired, undelivered; if periodic, scheduled for the next period or earlier */
	TIMER_PENDING = 2,
	/* next period is due too; no entry needed */
	TIMER_OVERDUE = 3,
	/* kept, and delivered: deadline TIMER_NEVER_NS, no entry */
	TIMER_IDLE = 4,
};

/* Perhaps a guess (atomic.h). */
struct pair {
	uint64_t deadline_ns;
	uint64_t state;
};

#define TIMER_QUEUE_BITS 16
#define TIMER_SLACK_MAX_NS (((uint64_t)1 << 48) - 1) /* 78 hours; a longer slack is cut */

static inline enum timer_phase state_phase(uint64_t state)
{
	return (enum timer_phase)(state & STATE_PHASE_MASK);
}

/* Nobody knows whether another has pushed the slot, so who arms or re-arms pushes too. */
static inline bool state_claimed(uint64_t state)
{
	return (state & STATE_CLAIMED) != 0;
}

static inline bool state_periodic(uint64_t state)
{
	return (state & STATE_PERIODIC) != 0;
}

static inline bool state_has_slack(uint64_t state)
{
	return (state & STATE_SLACK) != 0;
}

/* Survives its delivery. */
static inline bool state_kept(uint64_t state)
{
	return (state & STATE_KEPT) != 0;
}

static inline uint64_t state_generation(uint64_t state)
{
	return state >> STATE_GENERATION_SHIFT;
}

static inline bool state_undelivered(uint64_t state)
{
	return state_phase(state) == TIMER_PENDING || state_phase(state) == TIMER_OVERDUE;
}

/* Never 0. */
static inline uint64_t generation_next(uint64_t generation)
{
	generation = (generation + 1) & TIMER_GENERATION_MASK;
	return generation == 0 ? 1 : generation;
}

static inline uint64_t handle_make(uint64_t generation, uint32_t slot)
{
	return generation << TIMER_SLOT_BITS | slot;
}

static inline uint64_t handle_of(uint64_t state, uint32_t slot)
{
	return handle_make(state_generation(state), slot);
}

static inline uint32_t handle_slot(uint64_t handle)
{
	return (uint32_t)(handle & TIMER_SLOT_MASK);
}

/* And live. */
static inline bool state_is_of(uint64_t state, uint64_t handle)
{
	return state_generation(state ^ handle) == 0 && state_phase(state) != TIMER_FREE;
}

/* Armed, with none of `flags`. One comparison. */
static inline bool state_is_armed(uint64_t state, uint64_t handle, uint64_t flags)
{
	uint64_t differ = state ^ ((handle & ~TIMER_SLOT_MASK) | TIMER_ARMED);

	return (differ & (~TIMER_SLOT_MASK | STATE_PHASE_MASK | flags)) == 0;
}

static inline struct pair pair_with_phase(struct pair pair, enum timer_phase phase)
{
	pair.state = (pair.state & ~STATE_PHASE_MASK) | phase;
	return pair;
}

/* From `deadline_ns` to `now_ns`, which is not earlier: 1 to 2^64 - 1. */
static inline uint64_t period_count(uint64_t deadline_ns, uint64_t interval_ns, uint64_t now_ns)
{
	return u64_add_saturating((now_ns - deadline_ns) / interval_ns, 1);
}

/* Not due at `now_ns`, or never. The one at `deadline_ns` is due, and the interval not 0. */
static inline uint64_t period_next_ns(uint64_t deadline_ns, uint64_t interval_ns, uint64_t now_ns)
{
	uint64_t last_ns = deadline_ns + (now_ns - deadline_ns) / interval_ns * interval_ns;
	uint64_t next_ns = u64_add_saturating(last_ns, interval_ns);

	return next_ns > TIMER_DEADLINE_MAX_NS ? TIMER_NEVER_NS : next_ns;
}

static inline uint64_t queue_slack_make(uint32_t queue, uint64_t slack_ns)
{
	return u64_min(slack_ns, TIMER_SLACK_MAX_NS) << TIMER_QUEUE_BITS | queue;
}

static inline uint32_t queue_slack_queue(uint64_t queue_slack)
{
	return (uint32_t)(queue_slack & ((1u << TIMER_QUEUE_BITS) - 1));
}

static inline uint64_t queue_slack_slack_ns(uint64_t queue_slack)
{
	return queue_slack >> TIMER_QUEUE_BITS;
}

/*
 * The time in [deadline, deadline + slack] with the most trailing zero bits, so that overlapping
 * windows often meet. There is one: between two with equally many lies one with more. So with equal
 * slacks a later deadline never gives an earlier instant.
 */
static inline uint64_t timer_slacken_ns(uint64_t deadline_ns, uint64_t slack_ns)
{
	uint64_t last = u64_add_saturating(deadline_ns, slack_ns);
	uint64_t differ;

	if (deadline_ns == TIMER_NEVER_NS || slack_ns == 0 || deadline_ns == 0)
		return deadline_ns;
	if (last > TIMER_DEADLINE_MAX_NS)
		last = u64_max(TIMER_DEADLINE_MAX_NS, deadline_ns);
	/* down to the highest bit in which it differs from deadline - 1, so that it stays later */
	differ = (deadline_ns - 1) ^ last;
	return last & ~(((uint64_t)1 << bits_highest(differ)) - 1);
}

#endif
