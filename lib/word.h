/* SPDX-License-Identifier: MIT */
/*
 * The numbers that say what a timer is: its state word, its identity and its handle, and the word's
 * transitions. Pure functions of numbers; what makes the changes is in timer.c.
 * tests/unit/test_word.c walks every transition.
 *
 *   state word   63                         7 6   4   3      2    1     0
 *               | deadline in ticks of 64 ns | tag |pushed|claim|  phase   |
 *   identity     63          26 25                         2     1      0
 *               | generation   | zero                      |periodic|slack|
 *   handle       63          26 25                                      0
 *               | generation   | slot                                    |
 *
 * The armer writes the identity before it publishes the word; the identity then stays as it is for
 * the timer's life. The lowest bit of a generation says whether its timer is kept. So the handle
 * and the identity both say it, and comparing generations compares it too.
 *
 * A periodic timer's deadlines have 56 bits. The topmost bit of its word says that the deadline is
 * fresh: a caller has re-armed the timer, and the owner, on looking at it, is to store the new base
 * of its periods. The bit counts in an armed word alone (a cancel leaves it behind), and the owner
 * lets no timer expire whose word is fresh.
 */
#ifndef TIMERHUB_WORD_H
#define TIMERHUB_WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "bits.h"

/* A deadline in ticks of 64 ns, 57 bits: 292 years from the clock's zero. */
#define TIMER_TICK_SHIFT 6
#define TIMER_TICK_NS ((uint64_t)1 << TIMER_TICK_SHIFT)
#define TIMER_TICKS_NEVER (((uint64_t)1 << 57) - 1)
#define TIMER_DEADLINE_MAX_NS ((TIMER_TICKS_NEVER - 1) << TIMER_TICK_SHIFT)

/* A periodic timer's has 56 bits, 146 years, and beside them whether it is fresh. */
#define TIMER_TICKS_FRESH ((uint64_t)1 << 56)
#define TIMER_PERIODIC_MAX_NS ((TIMER_TICKS_FRESH - 2) << TIMER_TICK_SHIFT)

#define TIMER_SLOT_BITS 26
#define TIMER_SLOT_MASK (((uint64_t)1 << TIMER_SLOT_BITS) - 1)
#define TIMER_SLOTS_MAX ((uint32_t)TIMER_SLOT_MASK - 1)
#define TIMER_GENERATION_MASK (((uint64_t)1 << 38) - 1)

#define WORD_PHASE_MASK ((uint64_t)3)
#define WORD_CLAIMED ((uint64_t)1 << 2)
#define WORD_PUSHED ((uint64_t)1 << 3)
#define WORD_INBOX_FLAGS (WORD_CLAIMED | WORD_PUSHED)
#define WORD_TAG_SHIFT 4
#define WORD_TAG_MASK ((uint64_t)7)
#define WORD_DEADLINE_SHIFT 7

#define WORD_FRESH (TIMER_TICKS_FRESH << WORD_DEADLINE_SHIFT)

#define IDENTITY_SLACK ((uint64_t)1 << 0)
#define IDENTITY_PERIODIC ((uint64_t)1 << 1)
#define IDENTITY_GENERATION_SHIFT TIMER_SLOT_BITS

enum timer_phase {
	/*
	 * Of no timer. If no inbox flag is set, the slot is filed no later than the word's
	 * deadline; a deadline of never means that it is filed nowhere.
	 */
	TIMER_FREE = 0,
	TIMER_ARMED = 1,   /* waits for its deadline */
	TIMER_PENDING = 2, /* expired, not delivered; a periodic one is filed for its next period */
	/*
	 * Filed nowhere. Periodic: expired, and its next period fell due too. Kept: delivered, and
	 * idle, with a deadline of never; see word_idles().
	 */
	TIMER_PARKED = 3,
};

#define TIMER_QUEUE_BITS 16
#define TIMER_SLACK_MAX_NS (((uint64_t)1 << 48) - 1)

static inline enum timer_phase word_phase(uint64_t word)
{
	return (enum timer_phase)(word & WORD_PHASE_MASK);
}

/* Has a thread claimed the push of this slot since the last look? It may not have pushed yet. */
static inline bool word_claimed(uint64_t word)
{
	return (word & WORD_CLAIMED) != 0;
}

/* Has that been done, for certain? A thread may have been stopped between claiming and doing it. */
static inline bool word_pushed(uint64_t word)
{
	return (word & WORD_PUSHED) != 0;
}

static inline uint64_t word_tag(uint64_t word)
{
	return (word >> WORD_TAG_SHIFT) & WORD_TAG_MASK;
}

static inline bool identity_periodic(uint64_t identity)
{
	return (identity & IDENTITY_PERIODIC) != 0;
}

static inline bool identity_has_slack(uint64_t identity)
{
	return (identity & IDENTITY_SLACK) != 0;
}

/* Returns the deadline as the word has it: in ticks, under a periodic timer's fresh bit. */
static inline uint64_t word_deadline(uint64_t word)
{
	return word >> WORD_DEADLINE_SHIFT;
}

/* Has a caller re-armed the timer, and the owner not yet looked at it? */
static inline bool word_fresh(uint64_t word, uint64_t identity)
{
	return identity_periodic(identity) && (word & WORD_FRESH) != 0 &&
	       word_deadline(word) != TIMER_TICKS_NEVER;
}

/* Returns the word without its fresh bit. */
static inline uint64_t word_without_fresh(uint64_t word, uint64_t identity)
{
	return word_fresh(word, identity) ? word & ~WORD_FRESH : word;
}

/* Returns the timer's deadline, which is whole ticks; UINT64_MAX for never. */
static inline uint64_t timer_deadline_ns(uint64_t word, uint64_t identity)
{
	uint64_t ticks = word_deadline(word_without_fresh(word, identity));

	return ticks == TIMER_TICKS_NEVER ? UINT64_MAX : ticks << TIMER_TICK_SHIFT;
}

#define WORD_IDLE (TIMER_TICKS_NEVER << WORD_DEADLINE_SHIFT | TIMER_PARKED)

/* Is this a kept timer whose last expiry has been delivered? A periodic one never expires so. */
static inline bool word_idles(uint64_t word)
{
	return (word & WORD_IDLE) == WORD_IDLE;
}

/* Has the timer an expiry that waits to be delivered? */
static inline bool word_undelivered(uint64_t word)
{
	return word_phase(word) == TIMER_PENDING ||
	       (word_phase(word) == TIMER_PARKED && !word_idles(word));
}

/* UINT64_MAX is never; everything else must be at most TIMER_DEADLINE_MAX_NS. */
static inline uint64_t ticks_from_ns(uint64_t deadline_ns)
{
	if (deadline_ns == UINT64_MAX)
		return TIMER_TICKS_NEVER;
	return (deadline_ns + TIMER_TICK_NS - 1) >> TIMER_TICK_SHIFT;
}

/*
 * Returns what the word of a periodic timer has after a re-arm, to at most TIMER_PERIODIC_MAX_NS or
 * to never, which is all ones with the fresh bit or without.
 */
static inline uint64_t ticks_fresh(uint64_t deadline_ns)
{
	return ticks_from_ns(deadline_ns) | TIMER_TICKS_FRESH;
}

/*
 * The transitions. Each keeps what it does not name. Models: tests/models/word.pml,
 * tests/models/inbox.pml.
 */

/*
 * The tag moves on with each life, with each look of the owner's and with each re-arm but the plain
 * one to a later deadline, so that a word does not come back while a thread is held up between
 * reading and changing it (the ABA problem). After eight such steps to the very same deadline it
 * does; so a thread that has changed a word then compares the generation: timer_confirm_or_undo().
 */
static inline uint64_t word_next_tag(uint64_t word)
{
	return ((word_tag(word) + 1) & WORD_TAG_MASK) << WORD_TAG_SHIFT;
}

#define WORD_NEVER (TIMER_TICKS_NEVER << WORD_DEADLINE_SHIFT)

/*
 * May a timer with this deadline be armed without telling the owner? Yes, if the free slot is not
 * in the inbox and is filed no later than that.
 */
static inline bool word_covers(uint64_t free_word, uint64_t ticks)
{
	return (free_word & WORD_INBOX_FLAGS) == 0 && word_deadline(free_word) <= ticks;
}

/*
 * FREE → ARMED, if word_covers(): a new life in the place of the last one's filing.
 */
static inline uint64_t word_armed_there(uint64_t free_word, uint64_t ticks)
{
	return ticks << WORD_DEADLINE_SHIFT | word_next_tag(free_word) | TIMER_ARMED;
}

/*
 * FREE → ARMED: a new life. The slot is to be in the inbox. The word keeps PUSHED if the free word
 * has it; a bare claim is ignored, and the armer pushes the slot again.
 */
static inline uint64_t word_armed(uint64_t free_word, uint64_t ticks)
{
	return ticks << WORD_DEADLINE_SHIFT | word_next_tag(free_word) | (free_word & WORD_PUSHED) |
	       WORD_CLAIMED | TIMER_ARMED;
}

/* The same contents, next tag: a compare-and-swap from the old word fails. */
static inline uint64_t word_touched(uint64_t word)
{
	return (word & ~(WORD_TAG_MASK << WORD_TAG_SHIFT)) | word_next_tag(word);
}

/* Any → FREE, and filed nowhere. */
static inline uint64_t word_unfiled(uint64_t word)
{
	return (word | WORD_NEVER) & ~WORD_PHASE_MASK;
}

/* The owner has taken the slot out of the inbox, and looks at this word. It files no free slot. */
static inline uint64_t word_looked_at(uint64_t word, uint64_t identity)
{
	if (word_phase(word) == TIMER_FREE)
		word = word_unfiled(word);
	return word_touched(word_without_fresh(word, identity)) & ~WORD_INBOX_FLAGS;
}

/* ARMED, PENDING, PARKED → ARMED with another deadline. */
static inline uint64_t word_rearmed(uint64_t word, uint64_t ticks)
{
	return ticks << WORD_DEADLINE_SHIFT | (word & (WORD_TAG_MASK << WORD_TAG_SHIFT)) |
	       (word & WORD_INBOX_FLAGS) | TIMER_ARMED;
}

/* ARMED → ARMED with another deadline, and nothing else. */
static inline uint64_t word_moved(uint64_t word, uint64_t ticks)
{
	return ticks << WORD_DEADLINE_SHIFT | (word & (((uint64_t)1 << WORD_DEADLINE_SHIFT) - 1));
}

/* ARMED → PENDING, PENDING → PARKED, ARMED → FREE. */
static inline uint64_t word_with_phase(uint64_t word, enum timer_phase phase)
{
	return (word & ~WORD_PHASE_MASK) | phase;
}

/* PENDING → PARKED with a deadline of never: a kept timer has been delivered. All ones, both. */
static inline uint64_t word_idle(uint64_t word)
{
	return word | WORD_IDLE;
}

/*
 * The slot's word is to be as `before` again, whatever was made of it. An expiry is repeated: it
 * becomes ARMED, and the owner looks at it.
 */
static inline uint64_t word_restored(uint64_t word, uint64_t before)
{
	uint64_t restored =
		word_idles(before) ? word_idle(word) : word_rearmed(word, word_deadline(before));

	return restored | WORD_CLAIMED;
}

static inline uint64_t identity_make(uint64_t generation, uint64_t flags)
{
	return generation << IDENTITY_GENERATION_SHIFT | flags;
}

static inline uint64_t identity_generation(uint64_t identity)
{
	return identity >> IDENTITY_GENERATION_SHIFT;
}

/* Returns the generation of the next life, which is kept (1) or not (0). It is never 0. */
static inline uint64_t generation_next(uint64_t generation, uint64_t kept)
{
	generation = ((generation | 1) + 1 + kept) & TIMER_GENERATION_MASK;
	return generation == 0 ? 2 : generation;
}

static inline uint64_t handle_make(uint64_t generation, uint32_t slot)
{
	return generation << TIMER_SLOT_BITS | slot;
}

static inline uint32_t handle_slot(uint64_t handle)
{
	return (uint32_t)(handle & TIMER_SLOT_MASK);
}

static inline uint64_t handle_generation(uint64_t handle)
{
	return handle >> TIMER_SLOT_BITS;
}

/* Does the timer outlive its expiry? */
static inline bool handle_kept(uint64_t handle)
{
	return (handle >> TIMER_SLOT_BITS & 1) != 0;
}

/*
 * Does `handle` name the life that `word` and `identity` (loaded in this order) belong to? A caller
 * that has a handle cannot read a word of an earlier life, and beside a later life's word the
 * identity is later too.
 */
static inline bool timer_is(uint64_t word, uint64_t identity, uint64_t handle)
{
	return word_phase(word) != TIMER_FREE &&
	       identity_generation(identity) == handle_generation(handle);
}

/*
 * Periods. Period k of a periodic timer is due at base + k x interval, rounded up to a tick. The
 * timer's word has the tick of the first period that has not been delivered; all else follows from
 * that tick and the base. If the interval is shorter than a tick, several periods share one.
 */

/* May a periodic timer have this deadline? It has a bit less than others. */
static inline bool period_suits(uint64_t deadline_ns)
{
	return deadline_ns <= TIMER_PERIODIC_MAX_NS || deadline_ns == UINT64_MAX;
}

/* Returns how many periods are due by an instant, which is whole ticks. */
static inline uint64_t period_due_by(uint64_t base_ns, uint64_t interval_ns, uint64_t tick_ns)
{
	return tick_ns < base_ns ? 0 : (tick_ns - base_ns) / interval_ns + 1;
}

/* Returns how many periods are due from the one at `deadline_ns`, the word's, up to now. */
static inline uint64_t period_count(uint64_t base_ns, uint64_t interval_ns, uint64_t deadline_ns,
                                    uint64_t now_ns)
{
	uint64_t over = deadline_ns == 0
	                        ? 0
	                        : period_due_by(base_ns, interval_ns, deadline_ns - TIMER_TICK_NS);

	return period_due_by(base_ns, interval_ns, now_ns & ~(TIMER_TICK_NS - 1)) - over;
}

/*
 * Returns the deadline, in whole ticks, of the first period that is not due now, when an earlier
 * one is; UINT64_MAX if it lies beyond what a word can hold.
 */
static inline uint64_t period_next_ns(uint64_t base_ns, uint64_t interval_ns, uint64_t now_ns)
{
	uint64_t due = period_due_by(base_ns, interval_ns, now_ns & ~(TIMER_TICK_NS - 1));
	uint64_t next_ns = u64_add_saturating(base_ns + (due - 1) * interval_ns, interval_ns);

	if (next_ns > TIMER_PERIODIC_MAX_NS)
		return UINT64_MAX;
	return ticks_from_ns(next_ns) << TIMER_TICK_SHIFT;
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
 * The instant in [deadline, deadline + slack] with most trailing zero bits: timers whose windows
 * overlap meet there without knowing of each other. It never moves back when the deadline moves on,
 * because a window holds one such instant only (between two there is one with more zeros).
 */
static inline uint64_t timer_slacken_ns(uint64_t deadline_ns, uint64_t slack_ns)
{
	uint64_t last = u64_add_saturating(deadline_ns, slack_ns);
	uint64_t differ;

	if (deadline_ns == UINT64_MAX || slack_ns == 0 || deadline_ns == 0)
		return deadline_ns;
	if (last > TIMER_DEADLINE_MAX_NS)
		last = TIMER_DEADLINE_MAX_NS > deadline_ns ? TIMER_DEADLINE_MAX_NS : deadline_ns;
	/* Below the highest bit in which first - 1 and last differ, last can be all zeros. */
	differ = (deadline_ns - 1) ^ last;
	return last & ~(((uint64_t)1 << bits_highest(differ)) - 1);
}

#endif
