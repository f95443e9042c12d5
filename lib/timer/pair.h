/* SPDX-License-Identifier: MIT */
/*
 * What a timer is: a pair of two words, its deadline and its state, which one compare-and-swap of
 * 16 bytes changes together. This file has the bits of the state and of the handle, and the
 * arithmetic of periods and slack. It is pure computation; what may happen to a pair is decided in
 * timer.h and timer.c.
 *
 *   deadline   exact nanoseconds on the hub's clock; UINT64_MAX: never
 *   state      63        26 25  7   6       5        4          3     2   0
 *              | generation |  0  | kept | slack | periodic | claimed | phase |
 *   handle     63        26 25                                           0
 *              | generation |                    slot                      |
 *
 * The slot is the index of the timer in the hub's arrays. It is used again after the timer has
 * ended. The generation is a number that changes with each timer of a slot, so that an old handle
 * does not name the slot's next timer. It has all the bits that a handle has left.
 *
 * The flag "claimed" tells that the owner, the thread that keeps the schedule of all timers, must
 * still read this pair. Whoever changes a timer in such a way that the schedule may be too late for
 * its new deadline sets the flag in the same compare-and-swap, and then pushes the slot into the
 * owner's inbox. The owner clears the flag when it reads the pair. While the flag is set, everybody
 * who arms or re-arms the timer pushes the slot too, because the thread that set it may have been
 * stopped before its push.
 *
 * When a timer ends, its entry can stay in the schedule. While "claimed" is clear, the deadline of
 * the free slot tells of it: if the deadline is a time, there is an entry for that time or earlier,
 * which the slot's next timer can use. If it is "never", there is none to rely on.
 *
 * Within a slack there is only one time with the most trailing zero bits, because between two
 * numbers with equally many lies one with more. If two timers have the same slack, the one with the
 * later deadline never expires first.
 *
 * timer_slacken_ns() finds the highest bit in which the latest allowed time differs from the
 * deadline minus 1. It keeps this bit, because otherwise the result would be before the deadline,
 * and clears all lower bits.
 */
#ifndef TIMERHUB_PAIR_H
#define TIMERHUB_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/invariant.h"
#include "schedule/entry.h"

/*
 * The latest deadline that a timer can have, 292 years after the clock's zero. It is a little less
 * than INT64_MAX, because C++ programs use that as "no limit" (std::chrono's maximum), and such a
 * value must not become a deadline.
 */
#define TIMER_DEADLINE_MAX_NS (((uint64_t)1 << 63) - 128)
#define TIMER_NEVER_NS UINT64_MAX

#define TIMER_SLOT_BITS 26
#define TIMER_SLOT_MASK (((uint64_t)1 << TIMER_SLOT_BITS) - 1)
#define TIMER_SLOTS_MAX                                                                            \
	((uint32_t)TIMER_SLOT_MASK - 1) /* so that slot + 1 fits into the bits too */
_Static_assert(TIMER_SLOTS_MAX == SCHEDULE_SLOTS_MAX, "each timer can be scheduled");
#define TIMER_GENERATION_BITS (64 - TIMER_SLOT_BITS)
#define TIMER_GENERATION_MASK (((uint64_t)1 << TIMER_GENERATION_BITS) - 1)

#define STATE_PHASE_MASK ((uint64_t)7)
#define STATE_CLAIMED ((uint64_t)1 << 3)  /* the owner has yet to read this timer */
#define STATE_PERIODIC ((uint64_t)1 << 4) /* the timer has an interval */
#define STATE_SLACK ((uint64_t)1 << 5)    /* the timer has a slack */
#define STATE_KEPT ((uint64_t)1 << 6)     /* the timer outlives its delivery (TIMERHUB_KEEP) */
#define STATE_GENERATION_SHIFT TIMER_SLOT_BITS
_Static_assert(STATE_KEPT < (uint64_t)1 << STATE_GENERATION_SHIFT, "the flags end there");

/* The phases of a timer's life. lib/README.md has a state diagram. */
enum timer_phase {
	/*
	 * No timer uses the slot. The schedule may still have an entry of the last timer: see the
	 * head of this file.
	 */
	TIMER_FREE = 0,
	/* The timer waits for its deadline. */
	TIMER_ARMED = 1,
	/*
	 * The timer has expired, but nobody has taken its event yet. If it is periodic, the owner's
	 * schedule has an entry for its next period.
	 */
	TIMER_PENDING = 2,
	/*
	 * The timer has expired, nobody has taken its event, and its next period is due as well. It
	 * needs no schedule entry, because further periods only raise the event's count.
	 */
	TIMER_OVERDUE = 3,
	/*
	 * The event of a timer with TIMERHUB_KEEP has been taken. The timer keeps its slot and
	 * stays idle until somebody re-arms or cancels it; its deadline is "never", and it is not
	 * scheduled.
	 */
	TIMER_IDLE = 4,
};
_Static_assert(TIMER_FREE == 0, "zeroed memory has no timers, and a cancel only clears the phase");

/* A thread's copy of a timer's deadline and state. The timer may have changed since. */
struct pair {
	uint64_t deadline_ns;
	uint64_t state;
};

#define TIMER_QUEUE_BITS 16
/*
 * The longest slack that fits into a word beside the queue's index, 78 hours. A longer slack is cut
 * to this.
 */
#define TIMER_SLACK_MAX_NS (UINT64_MAX >> TIMER_QUEUE_BITS)

static inline enum timer_phase state_phase(uint64_t state)
{
	return (enum timer_phase)(state & STATE_PHASE_MASK);
}

/*
 * Tells whether STATE_CLAIMED is set: the owner, the thread that keeps the schedule, has yet to
 * read this timer.
 */
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

/*
 * Tells whether the timer was armed with TIMERHUB_KEEP, so that it lives on when its event has been
 * delivered.
 */
static inline bool state_kept(uint64_t state)
{
	return (state & STATE_KEPT) != 0;
}

static inline uint64_t state_generation(uint64_t state)
{
	return state >> STATE_GENERATION_SHIFT;
}

/* Tells whether the timer has expired and its event has not been taken yet. */
static inline bool state_undelivered(uint64_t state)
{
	return state_phase(state) == TIMER_PENDING || state_phase(state) == TIMER_OVERDUE;
}

/* Returns the generation that follows this one. It skips 0, so that no handle is ever 0. */
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

/*
 * Returns true if handle and state belong to the same timer, and it has not ended. Both contain a
 * generation number, which differs for each timer of a slot.
 */
static inline bool state_is_of(uint64_t state, uint64_t handle)
{
	return state_generation(state ^ handle) == 0 && state_phase(state) != TIMER_FREE;
}

/*
 * Returns true if the handle names the timer with this state, the timer is armed, and none of
 * `flags` is set.
 */
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

/*
 * Counts the periods of a timer that are due by `now_ns`. The first is due at `deadline_ns`, so the
 * count is at least 1. Periods after TIMER_DEADLINE_MAX_NS do not count.
 */
static inline uint64_t period_count(uint64_t deadline_ns, uint64_t interval_ns, uint64_t now_ns)
{
	return (u64_min(now_ns, TIMER_DEADLINE_MAX_NS) - deadline_ns) / interval_ns + 1;
}

/*
 * Returns a periodic timer's first deadline after `now_ns`, or TIMER_NEVER_NS if that is later than
 * any deadline can be. `deadline_ns` is one of its deadlines, not later than `now_ns`.
 */
static inline uint64_t period_next_ns(uint64_t deadline_ns, uint64_t interval_ns, uint64_t now_ns)
{
	uint64_t next_ns;

	invariant(interval_ns > 0 && deadline_ns <= now_ns);
	next_ns = deadline_ns + period_count(deadline_ns, interval_ns, now_ns) * interval_ns;
	return next_ns > TIMER_DEADLINE_MAX_NS ? TIMER_NEVER_NS : next_ns;
}

/*
 * Packs the index of a timer's queue and the timer's slack into one word, so that the timer's
 * record stays small.
 */
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
 * Returns the time at which a timer should expire, at most `slack_ns` after its deadline. It is the
 * time with the most trailing zero bits, so timers often share a wake-up.
 */
static inline uint64_t timer_slacken_ns(uint64_t deadline_ns, uint64_t slack_ns)
{
	uint64_t last = u64_add_saturating(deadline_ns, slack_ns);
	uint64_t differ;

	if (deadline_ns == TIMER_NEVER_NS || slack_ns == 0 || deadline_ns == 0)
		return deadline_ns;
	if (last > TIMER_DEADLINE_MAX_NS)
		last = u64_max(TIMER_DEADLINE_MAX_NS, deadline_ns);
	/*
	 * Clear the low bits of `last`, as many as possible without making it smaller than
	 * `deadline_ns`. In binary: if the deadline is 10001 and `last` is 10110, the result is
	 * 10100.
	 */
	differ = (deadline_ns - 1) ^ last;
	return last & ~(((uint64_t)1 << bits_highest(differ)) - 1);
}

#endif
