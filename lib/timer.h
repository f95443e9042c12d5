/* SPDX-License-Identifier: MIT */
/*
 * A timer: its state word and the word's transitions, its handle, and the three records that a slot
 * has, split by who touches them. Pure; nothing here reads a clock or takes part in a protocol.
 *
 * The state word is the truth about a timer; every container only says "look at slot i". So every
 * decision about a timer is one compare-and-swap on this word. tests/unit/test_timer.c walks every
 * transition.
 *
 *   state word   63                     7 6   4   3      2    1     0
 *               | deadline, 64 ns units  | tag |pushed|inbox|  phase   |
 *   aux word     63        26 25 22   21     20    19               7    6    5     0
 *               | generation |moves|slack|periodic| low deadline bits|ahead| residue |
 *   handle       63          26 25                           0
 *               | generation   | slot                          |
 *
 * The lowest bit of a generation says whether its timer is kept. So the handle and the aux word
 * both say it, and comparing generations compares it too.
 */
#ifndef TIMERHUB_TIMER_H
#define TIMERHUB_TIMER_H

#include "atomic.h"
#include "bits.h"

/* A deadline in units of 64 ns, 57 bits: 292 years from the clock's zero. */
#define TIMER_UNIT_SHIFT 6
#define TIMER_UNIT_NS ((uint64_t)1 << TIMER_UNIT_SHIFT)
#define TIMER_UNITS_NEVER (((uint64_t)1 << 57) - 1)
#define TIMER_DEADLINE_MAX_NS ((TIMER_UNITS_NEVER - 1) << TIMER_UNIT_SHIFT)

#define TIMER_SLOT_BITS 26
#define TIMER_SLOT_MASK (((uint64_t)1 << TIMER_SLOT_BITS) - 1)
#define TIMER_SLOTS_MAX ((uint32_t)TIMER_SLOT_MASK - 1)
#define TIMER_GENERATION_MASK (((uint64_t)1 << 38) - 1)
#define SLOT_NONE UINT32_MAX

#define WORD_PHASE_MASK ((uint64_t)3)
#define WORD_INBOX ((uint64_t)1 << 2)
#define WORD_PUSHED ((uint64_t)1 << 3)
#define WORD_INBOX_FLAGS (WORD_INBOX | WORD_PUSHED)
#define WORD_TAG_SHIFT 4
#define WORD_TAG_MASK ((uint64_t)7)
#define WORD_DEADLINE_SHIFT 7

/* Low bits of the deadline, as many as there is room for, lie where they lie in the state word. */
#ifndef AUX_LOW_BITS
#define AUX_LOW_BITS 13
#endif
#define AUX_RESIDUE_MASK (TIMER_UNIT_NS - 1)
#define AUX_LOW_MASK ((((uint64_t)1 << AUX_LOW_BITS) - 1) << WORD_DEADLINE_SHIFT)
#define AUX_AHEAD ((uint64_t)1 << 6)
#define AUX_PERIODIC ((uint64_t)1 << 20)
_Static_assert(AUX_LOW_MASK < AUX_PERIODIC, "the low bits run into the flags");
#define AUX_SLACK ((uint64_t)1 << 21)
#define AUX_FLAGS (AUX_PERIODIC | AUX_SLACK)
#define AUX_MOVES_SHIFT 22
#define AUX_MOVES_MASK ((uint64_t)15 << AUX_MOVES_SHIFT)
#define AUX_GENERATION_SHIFT 26

enum timer_phase {
	TIMER_FREE = 0,    /* nobody's; may still be filed with the owner, or lie in the inbox */
	TIMER_ARMED = 1,   /* waits for its deadline */
	TIMER_PENDING = 2, /* expired, not delivered; a periodic one is filed for its next period */
	/*
	 * Filed nowhere. Periodic: expired, and its next period fell due too. Kept: delivered, and
	 * idle, with a deadline of never; see word_idles().
	 */
	TIMER_PARKED = 3,
};

/*
 * All that a re-arm reads or writes: packed, four to a cache line, because at a million timers a
 * random access costs by the density of what it touches.
 */
struct timer_hot {
	atomic_u64 word; /* the truth: deadline, tag, inbox flag, phase; anyone, by CAS */
	atomic_u64 aux;  /* generation, residue, flags; the armer, and a periodic's deliverer */
};

/*
 * What the caller gave. Written by the armer while the slot is its own, read by the owner and by
 * consumers between loading the word and changing it: when their CAS succeeds, what they read
 * belonged to that life. Relaxed atomics for that reason.
 */
struct timer_cold {
	atomic_u64 data;        /* the caller's; in a free slot: the free list's link */
	atomic_u64 fn;          /* the caller's timerhub_fn, as a number */
	atomic_u64 interval_ns; /* 0: one-shot */
	atomic_u64 queue_slack; /* queue index in the low 16 bits, slack in ns above */
};

/* Where the owner has filed the slot. The owner's alone. */
struct timer_filing {
	uint32_t where; /* 0: nowhere; else in the wheel, the run or the heap, by its top bits */
	uint32_t place; /* low bits of the outbox place last given to it */
};

/* The top bits of timer_filing.where; the rest is where in there. */
#define WHERE_WHEEL ((uint32_t)1 << 30)
#define WHERE_RUN ((uint32_t)2 << 30)
#define WHERE_HEAP ((uint32_t)3 << 30)
#define WHERE_MASK ((uint32_t)3 << 30)

/* A slot, and the instant that it is filed under. */
struct timer_due {
	uint64_t at_ns;
	uint32_t slot;
};

#define TIMER_QUEUE_BITS 16
#define TIMER_SLACK_MAX_NS (((uint64_t)1 << 48) - 1)

static inline enum timer_phase word_phase(uint64_t word)
{
	return (enum timer_phase)(word & WORD_PHASE_MASK);
}

/* Has somebody claimed to put the slot into the inbox (and the owner not yet looked at it)? */
static inline bool word_in_inbox(uint64_t word)
{
	return (word & WORD_INBOX) != 0;
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

static inline uint64_t word_units(uint64_t word)
{
	return word >> WORD_DEADLINE_SHIFT;
}

/* The deadline, rounded up to the unit; UINT64_MAX for never. */
static inline uint64_t word_deadline_ns(uint64_t word)
{
	uint64_t units = word_units(word);

	return units == TIMER_UNITS_NEVER ? UINT64_MAX : units << TIMER_UNIT_SHIFT;
}

#define WORD_IDLE (TIMER_UNITS_NEVER << WORD_DEADLINE_SHIFT | TIMER_PARKED)

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
static inline uint64_t units_from_ns(uint64_t deadline_ns)
{
	if (deadline_ns == UINT64_MAX)
		return TIMER_UNITS_NEVER;
	return (deadline_ns + TIMER_UNIT_NS - 1) >> TIMER_UNIT_SHIFT;
}

/*
 * The transitions. Each keeps what it does not name. Models: tests/models/word.pml,
 * tests/models/inbox.pml.
 */

/*
 * The tag moves on with each life, with each look of the owner's and with each re-arm but the plain
 * one to a later deadline, lest a word come back while a thread is held up between reading and
 * changing it. It may, after eight such steps to the very same deadline; so who has changed a word
 * looks at the generation once more, see hub_undo().
 */
static inline uint64_t word_next_tag(uint64_t word)
{
	return ((word_tag(word) + 1) & WORD_TAG_MASK) << WORD_TAG_SHIFT;
}

/*
 * FREE → ARMED: a new life. The slot is to be in the inbox; that it has been pushed is known from
 * the free slot's word, or not at all: a claim made in a former life is worth nothing in this one.
 */
static inline uint64_t word_armed(uint64_t free_word, uint64_t units)
{
	return units << WORD_DEADLINE_SHIFT | word_next_tag(free_word) | (free_word & WORD_PUSHED) |
	       WORD_INBOX | TIMER_ARMED;
}

/* The same, but to who compares. */
static inline uint64_t word_touched(uint64_t word)
{
	return (word & ~(WORD_TAG_MASK << WORD_TAG_SHIFT)) | word_next_tag(word);
}

/* The owner has taken the slot out of the inbox, and looks at this word. */
static inline uint64_t word_looked_at(uint64_t word)
{
	return word_touched(word) & ~WORD_INBOX_FLAGS;
}

/* ARMED, PENDING, PARKED → ARMED with another deadline. */
static inline uint64_t word_rearmed(uint64_t word, uint64_t units)
{
	return units << WORD_DEADLINE_SHIFT | (word & (WORD_TAG_MASK << WORD_TAG_SHIFT)) |
	       (word & WORD_INBOX_FLAGS) | TIMER_ARMED;
}

/* ARMED → ARMED with another deadline, and nothing else. */
static inline uint64_t word_moved(uint64_t word, uint64_t units)
{
	return units << WORD_DEADLINE_SHIFT | (word & (((uint64_t)1 << WORD_DEADLINE_SHIFT) - 1));
}

/* ARMED → PENDING, PENDING → PARKED, any → FREE. */
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
		word_idles(before) ? word_idle(word) : word_rearmed(word, word_units(before));

	return restored | WORD_INBOX;
}

static inline uint64_t aux_generation(uint64_t aux)
{
	return aux >> AUX_GENERATION_SHIFT;
}

static inline bool aux_periodic(uint64_t aux)
{
	return (aux & AUX_PERIODIC) != 0;
}

static inline bool aux_has_slack(uint64_t aux)
{
	return (aux & AUX_SLACK) != 0;
}

/*
 * The residue is how far below the rounded deadline the exact one lies. It holds for a rounded
 * deadline with the low bits that stand beside it: whoever moves the deadline to such a one clears
 * both, or writes the new ones, before the state word; so that in between the deadline reads as
 * rounded up.
 */
static inline uint64_t aux_make(uint64_t generation, uint64_t deadline_ns, uint64_t flags)
{
	uint64_t units = units_from_ns(deadline_ns);
	uint64_t residue = (units << TIMER_UNIT_SHIFT) - deadline_ns;

	if (units == TIMER_UNITS_NEVER || residue == 0)
		return generation << AUX_GENERATION_SHIFT | flags;
	return generation << AUX_GENERATION_SHIFT | (units << WORD_DEADLINE_SHIFT & AUX_LOW_MASK) |
	       residue | flags;
}

/* Is a residue in it that of this word's deadline, as far as their low bits tell? */
static inline bool aux_speaks_of(uint64_t aux, uint64_t word)
{
	return ((aux ^ word) & AUX_LOW_MASK) == 0;
}

/* Is it not yet, if the word is of one that has expired? */
static inline bool aux_is_ahead(uint64_t aux)
{
	return (aux & AUX_AHEAD) != 0;
}

/* The same life and flags, and no residue. */
static inline uint64_t aux_rounded(uint64_t aux)
{
	return aux & ~(AUX_LOW_MASK | AUX_AHEAD | AUX_RESIDUE_MASK);
}

/* Another than before, to who compares. */
static inline uint64_t aux_touched(uint64_t aux)
{
	return (aux & ~AUX_MOVES_MASK) |
	       ((aux + ((uint64_t)1 << AUX_MOVES_SHIFT)) & AUX_MOVES_MASK);
}

/*
 * What a re-arm makes of it: no residue. That of a periodic timer is another than before in any
 * case, so that whoever is about to write a residue for an earlier deadline is stopped; one that
 * is delivered once gets none, and stays as bare as timerhub_rearm() likes it.
 */
static inline uint64_t aux_forgotten(uint64_t aux)
{
	return aux_periodic(aux) ? aux_touched(aux_rounded(aux)) : aux_rounded(aux);
}

/*
 * What the delivery of a periodic timer makes of it: another than before, lest two deliveries take
 * the one's for the other's. Only where there is no residue, nor will be, it stays the same.
 */
static inline uint64_t aux_next(uint64_t aux, uint64_t deadline_ns, uint64_t interval_ns)
{
	uint64_t flags = aux & (AUX_MOVES_MASK | AUX_FLAGS);
	uint64_t next = aux_make(aux_generation(aux), deadline_ns, flags);

	if (aux == aux_rounded(aux) && interval_ns % TIMER_UNIT_NS == 0)
		return aux;
	return aux_touched(next);
}

/* The deadline, to the nanosecond where that is known; UINT64_MAX for never. */
static inline uint64_t timer_deadline_ns(uint64_t word, uint64_t aux)
{
	uint64_t deadline_ns = word_deadline_ns(word);

	if (deadline_ns == UINT64_MAX || !aux_speaks_of(aux, word) ||
	    (aux_is_ahead(aux) && word_phase(word) != TIMER_ARMED))
		return deadline_ns;
	return deadline_ns - (aux & AUX_RESIDUE_MASK);
}

/*
 * What a delivery writes before it moves the word, if the residue would be taken for that of the
 * deadline that the word still has, and that one be early: until it is armed again it has none.
 */
static inline uint64_t aux_ahead(uint64_t aux)
{
	return aux | AUX_AHEAD;
}

/* And what is to be made of that before the timer expires again. */
static inline uint64_t aux_arrived(uint64_t aux)
{
	return aux_touched(aux & ~AUX_AHEAD);
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
 * Does `handle` name the life that `word` and `aux` (loaded in this order) belong to? Who has a
 * handle cannot read a word of an earlier life, and beside a later life's word the aux word is
 * later too.
 */
static inline bool timer_is(uint64_t word, uint64_t aux, uint64_t handle)
{
	return word_phase(word) != TIMER_FREE && aux_generation(aux) == handle_generation(handle);
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
