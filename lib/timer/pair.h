/* SPDX-License-Identifier: MIT */
/*
 * What a timer is: its pair, 16 bytes with a deadline and a state, which one compare-and-swap
 * changes together. This file has the bits of the pair and of the handle, and the arithmetic of
 * periods and slack. It is pure computation; timer.h and timer.c have what may happen to a pair.
 *
 *   deadline   exact nanoseconds on the hub's clock; UINT64_MAX: never
 *   state      63        26 25  7   6       5        4          3     2   0
 *             | generation |  0  | kept | slack | periodic | claimed | phase |
 *   handle     63        26 25                                           0
 *             | generation |                    slot                      |
 *
 * The slot is where the timer lies in the hub's arrays, and is used again after the timer's end.
 * The generation changes with each timer of a slot, so that an old handle does not name the slot's
 * next timer. It has as many bits as a handle has room for.
 *
 * The claim: whoever makes a change that the owner must hear of, because the schedule may be too
 * late for the timer's new deadline, sets STATE_CLAIMED in the same compare-and-swap, and then
 * pushes the slot into the inbox. The owner clears it when it looks at the slot. While it is set,
 * everybody who arms or re-arms the timer pushes the slot too, because the thread that set it may
 * have been stopped before its push.
 */
#ifndef TIMERHUB_PAIR_H
#define TIMERHUB_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/invariant.h"
#include "schedule/entry.h"

/*
 * The latest deadline, 292 years after the clock's zero. It is less than INT64_MAX because that is
 * what std::chrono uses for "no limit", which must not become a deadline.
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
#define STATE_CLAIMED ((uint64_t)1 << 3) /* the owner must look, because the schedule may be late */
#define STATE_PERIODIC ((uint64_t)1 << 4) /* the timer has an interval */
#define STATE_SLACK ((uint64_t)1 << 5)    /* the timer has a slack */
#define STATE_KEPT ((uint64_t)1 << 6)     /* the timer outlives its delivery (TIMERHUB_KEEP) */
#define STATE_GENERATION_SHIFT TIMER_SLOT_BITS
_Static_assert(STATE_KEPT < (uint64_t)1 << STATE_GENERATION_SHIFT, "the flags end there");

/* Where a timer is in its life. lib/README.md draws the ways from one phase to the others. */
enum timer_phase {
	/*
	 * There is no timer. Unless the slot is claimed, its schedule entry is no later than its
	 * deadline; a deadline of "never" therefore means that it needs no entry.
	 */
	TIMER_FREE = 0,
	/*
	 * Waits for its deadline. Unless it is claimed, its schedule entry is no later than that.
	 */
	TIMER_ARMED = 1,
	/*
	 * Has expired, and nobody has taken the event. The schedule entry of a periodic timer is no
	 * later than the period after its deadline.
	 */
	TIMER_PENDING = 2,
	/*
	 * The timer has expired, nobody has taken the event, and its next period is due too. It
	 * needs no schedule entry.
	 */
	TIMER_OVERDUE = 3,
	/*
	 * A kept timer whose event was taken. Its deadline is "never", and it has no schedule
	 * entry.
	 */
	TIMER_IDLE = 4,
};
_Static_assert(TIMER_FREE == 0, "zeroed memory has no timers, and a cancel only clears the phase");

/*
 * A copy of a timer's deadline and state. The two were loaded one after the other, so another
 * thread may have changed the timer in between. The copy is known to be right only when a
 * compare-and-swap with it has succeeded.
 */
struct pair {
	uint64_t deadline_ns;
	uint64_t state;
};

#define TIMER_QUEUE_BITS 16
/* The longest slack that fits beside the queue, 78 hours; a longer one becomes this. */
#define TIMER_SLACK_MAX_NS (UINT64_MAX >> TIMER_QUEUE_BITS)

static inline enum timer_phase state_phase(uint64_t state)
{
	return (enum timer_phase)(state & STATE_PHASE_MASK);
}

/*
 * Tells whether the owner still has to look at the slot, so that whoever arms or re-arms it pushes.
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

/* Tells whether the timer outlives its delivery, because it was armed with TIMERHUB_KEEP. */
static inline bool state_kept(uint64_t state)
{
	return (state & STATE_KEPT) != 0;
}

static inline uint64_t state_generation(uint64_t state)
{
	return state >> STATE_GENERATION_SHIFT;
}

/* Tells whether the timer has expired and nobody has taken the event yet. */
static inline bool state_undelivered(uint64_t state)
{
	return state_phase(state) == TIMER_PENDING || state_phase(state) == TIMER_OVERDUE;
}

/* Returns the generation of a slot's next timer. It is never 0, so that no handle is 0. */
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

/* Tells whether a state is that of the handle's timer, and the timer is live. */
static inline bool state_is_of(uint64_t state, uint64_t handle)
{
	return state_generation(state ^ handle) == 0 && state_phase(state) != TIMER_FREE;
}

/* Tells by one comparison whether the handle's timer is armed and has none of `flags`. */
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
 * Returns how many periods have passed from the one at `deadline_ns` to `now_ns`, which must not be
 * earlier. Both ends count, so it is at least 1, and at most 2^64 - 1.
 */
static inline uint64_t period_count(uint64_t deadline_ns, uint64_t interval_ns, uint64_t now_ns)
{
	return u64_add_saturating((now_ns - deadline_ns) / interval_ns, 1);
}

/*
 * Returns when the first period begins that is not due at `now_ns`, or TIMER_NEVER_NS if it would
 * be beyond the latest deadline. The period at `deadline_ns` must be due, and the interval not 0.
 */
static inline uint64_t period_next_ns(uint64_t deadline_ns, uint64_t interval_ns, uint64_t now_ns)
{
	uint64_t last_ns, next_ns;

	invariant(interval_ns > 0 && deadline_ns <= now_ns);
	last_ns = deadline_ns + (now_ns - deadline_ns) / interval_ns * interval_ns;
	next_ns = u64_add_saturating(last_ns, interval_ns);
	return next_ns > TIMER_DEADLINE_MAX_NS ? TIMER_NEVER_NS : next_ns;
}

/* Packs the index of a timer's queue and its slack into one word. */
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
 * Returns the instant of a timer with slack: the time in [deadline, deadline + slack] that has the
 * most trailing zero bits. Timers whose windows overlap often get the same instant in this way, and
 * then cost one wake-up.
 *
 * There is only one such time, because between two numbers with equally many zeros lies one with
 * more. So of two timers with equal slack, the one with the later deadline never gets the earlier
 * instant.
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
	 * All bits of the window's end below the highest one in which it differs from deadline - 1
	 * are cleared. What is left is still greater than deadline - 1.
	 */
	differ = (deadline_ns - 1) ^ last;
	return last & ~(((uint64_t)1 << bits_highest(differ)) - 1);
}

#endif
