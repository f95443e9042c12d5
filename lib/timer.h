/* SPDX-License-Identifier: MIT */
/*
 * A timer: the words and records that its slot has, split by the threads that touch them, and every
 * decision about it. Knows no hub, no inbox and no clock.
 *
 * The state word is the truth about a timer; every container only says "look at slot i". So each
 * decision is one compare-and-swap on that word, made here or in timer.c, and tells its caller what
 * is left to do. Any thread calls, unless it says otherwise; all of it is lock-free and
 * signal-safe. tests/unit/test_timer.c walks every decision from every state.
 */
#ifndef TIMERHUB_TIMER_H
#define TIMERHUB_TIMER_H

#include "atomic.h"
#include "check.h"
#include "filing.h"
#include "word.h"

/*
 * All that a re-arm reads or writes: packed, four to a cache line, because at a million timers a
 * random access costs by the density of what it touches.
 */
struct timer_hot {
	atomic_u64 word;     /* the truth: deadline, tag, inbox flags, phase; any thread, by CAS */
	atomic_u64 identity; /* generation and flags, constant for a life; the armer */
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

/*
 * Where the periods of a periodic timer begin, to the nanosecond. Read like the cold record. The
 * owner names the life that it has moved: a late owner writes of a life that has ended, and the
 * next life's periods still begin where its armer said.
 */
struct timer_period {
	atomic_u64 first_ns;   /* the first deadline; the armer's, constant for a life */
	atomic_u64 moved_ns;   /* the deadline of the last re-arm; the owner's */
	atomic_u64 moved_life; /* the identity of the life that was re-armed; the owner's */
};

/* The words and records of all slots. */
struct timers {
	struct timer_hot *hot;
	struct timer_cold *cold;
	struct timer_period *periods; /* touched if the timer is periodic */
	uint64_t first_generation;    /* what generations start from */
};

/* Returns the base of the periods of the life with this identity. */
static inline uint64_t period_base_ns(const struct timer_period *period, uint64_t identity)
{
	/* Relaxed, like the cold record. */
	return u64_load_relaxed(&period->moved_life) == identity
	               ? u64_load_relaxed(&period->moved_ns)
	               : u64_load_relaxed(&period->first_ns);
}

/* What a decision leaves to do for the thread that made it. */
enum timer_left {
	TIMER_NOTHING,
	TIMER_WAKE, /* another thread has claimed the push: wake the owner if it looks too late */
	TIMER_PUSH, /* push the slot into the inbox, then the same */
};

struct timer_outcome {
	int result;           /* what the decision came to */
	enum timer_left left; /* what its thread has to do now */
	uint64_t word;        /* as the decision left it; if anything is left to do */
};

static inline struct timer_outcome timer_done(int result)
{
	return (struct timer_outcome){ .result = result, .left = TIMER_NOTHING };
}

/* The owner is to look at the slot: the caller pushes it, unless another thread's claim stands. */
static inline struct timer_outcome timer_submit(int result, uint64_t word, bool is_claimed)
{
	return (struct timer_outcome){
		.result = result,
		.left = is_claimed ? TIMER_WAKE : TIMER_PUSH,
		.word = word,
	};
}

/* ---- a caller's decisions: submit.c ---- */

/* A spec, checked and with its deadline worked out. */
struct timer_arming {
	uint32_t queue;       /* its index */
	uint64_t deadline_ns; /* on the hub's clock; UINT64_MAX: never */
	uint64_t interval_ns; /* 0: one-shot */
	uint64_t slack_ns;
	uint64_t data;
	uint64_t fn;
	uint64_t kept; /* 0 or 1 */
};

/*
 * FREE → ARMED: give the slot, which is the caller's alone, a new life. Writes the handle, if it is
 * asked for, before that life can be over. 0.
 */
struct timer_outcome timer_arm(const struct timers *timers, uint32_t slot,
                               const struct timer_arming *arming, uint64_t *ret_handle);

/*
 * ARMED, PENDING, PARKED → ARMED with another deadline. 0; 1 if the timer was kept and had idled;
 * -ENOENT; -ERANGE for a deadline that a periodic timer cannot have.
 */
struct timer_outcome timer_rearm(const struct timers *timers, uint64_t handle,
                                 uint64_t deadline_ns);

/* Any → FREE, of a timer of any queue or of this one; the slot is then the caller's. 0, -ENOENT. */
#define TIMER_ANY_QUEUE UINT32_MAX
struct timer_outcome timer_cancel(const struct timers *timers, uint64_t handle, uint32_t queue);

/*
 * The caller has put the slot into the inbox: say so in the slot's word, if that still equals
 * `*word`. Else load it into `*word`, and return false. Model: tests/models/inbox.pml.
 */
static inline bool timer_pushed(struct timer_hot *hot, uint64_t *word)
{
	return u64_cas_acq_rel(&hot->word, word, *word | WORD_PUSHED);
}

/*
 * To be called after a change from `before` to `after` that was meant for the handle. 0 if it was
 * the handle's life that was changed, also if that has ended since. If it was a later life:
 * -ENOENT, and the change is undone; but 0 if that life was re-armed since, so that it is too late.
 */
struct timer_outcome timer_confirm_or_undo(struct timer_hot *hot, uint64_t handle, uint64_t before,
                                           uint64_t after);

/* Is the slot's life the handle's? Model: tests/models/word.pml, with -DTAGS=1. */
static inline bool timer_same_life(const struct timer_hot *hot, uint64_t handle)
{
	return identity_generation(u64_load_relaxed(&hot->identity) ^ handle) == 0;
}

enum timer_moved {
	TIMER_MOVED,
	TIMER_MOVED_PERHAPS, /* ask timer_confirm_or_undo() */
	TIMER_NOT_MOVED,     /* the case is another, or another thread was quicker: timer_rearm() */
};

/*
 * The frequent re-arm: of an armed one-shot without slack, kept or not, to no earlier deadline.
 * Inline, with few outputs: outputs hold physical registers, and these limit how many cache misses
 * overlap.
 */
static inline enum timer_moved timer_move(struct timer_hot *hot, uint64_t handle,
                                          uint64_t deadline_ns, uint64_t *ret_before,
                                          uint64_t *ret_after)
{
	uint64_t identity = identity_make(handle_generation(handle), 0);
	/*
	 * [armed] Without it a later life's word could be read beside this life's identity: undone
	 * below, but that life would wait for us meanwhile.
	 */
	uint64_t before = u64_load_acquire(&hot->word);
	uint64_t after = word_moved(before, ticks_from_ns(deadline_ns));

	/*
	 * To the tick that it has, the same word is written: the consumer is to see what the caller
	 * did before.
	 */
	if (u64_load_relaxed(&hot->identity) != identity || word_phase(before) != TIMER_ARMED ||
	    after < before || !u64_cas_acq_rel(&hot->word, &before, after))
		return TIMER_NOT_MOVED;
	if (u64_load_relaxed(&hot->identity) == identity)
		return TIMER_MOVED;
	*ret_before = before;
	*ret_after = after;
	return TIMER_MOVED_PERHAPS;
}

/* ---- reading ---- */

/* What is known of a timer: read from its word, its identity and its record. */
struct timer_view {
	uint64_t word; /* as loaded, or as a change that failed has found it */
	uint64_t identity;
	uint64_t handle;
	uint64_t deadline_ns; /* UINT64_MAX: never */
	uint64_t interval_ns;
	uint64_t data;
	uint64_t fn;
};

/* Begin with the word; what is read after it is confirmed by a change of the word. */
static inline void timer_view_begin(const struct timers *timers, uint32_t slot,
                                    struct timer_view *view)
{
	view->word = u64_load_acquire(&timers->hot[slot].word); /* [armed] */
}

/*
 * Read whatever timer has the slot, and its queue. False if there is none. All is of one life if
 * timer_unchanged() then says so; else read again.
 */
bool timer_read(const struct timers *timers, uint32_t slot, struct timer_view *view,
                uint32_t *ret_queue);
bool timer_unchanged(struct timer_hot *hot, struct timer_view *view);

/*
 * Returns the handle of the slot's last life, whether or not that is over. The caller then sees
 * what the armer of that life knew of the end of the life before.
 */
uint64_t timer_last(const struct timers *timers, uint32_t slot);

/* Read the deadline, UINT64_MAX for never. False: there is no such timer. */
bool timer_deadline(const struct timers *timers, uint64_t handle, uint64_t *ret_deadline_ns);

/* The instant to file a timer under: its deadline, and the slack of its cold record. */
static inline uint64_t timer_instant_ns(const struct timers *timers, uint32_t slot, uint64_t word,
                                        uint64_t identity)
{
	uint64_t deadline_ns = timer_deadline_ns(word, identity);
	uint64_t queue_slack;

	if (!identity_has_slack(identity))
		return deadline_ns;
	queue_slack = u64_load_relaxed(&timers->cold[slot].queue_slack);
	return timer_slacken_ns(deadline_ns, queue_slack_slack_ns(queue_slack));
}

/*
 * When the owner must have looked at a slot with this word, which lies in the inbox; UINT64_MAX if
 * there is no hurry.
 */
static inline uint64_t timer_look_by_ns(const struct timers *timers, uint32_t slot, uint64_t word)
{
	uint64_t identity = u64_load_relaxed(&timers->hot[slot].identity);

	/* If the slot has been reused, its new armer sees to its own wake; ours is harmless. */
	return word_phase(word) == TIMER_ARMED ? timer_instant_ns(timers, slot, word, identity)
	                                       : UINT64_MAX;
}

/* ---- the owner's decisions: owner.c ---- */

/*
 * The slot has been taken out of the inbox: after this a change puts it there again. True: file it
 * under this instant, UINT64_MAX: nowhere. False: it is filed as it should be.
 */
bool timer_look(const struct timers *timers, uint32_t slot, uint64_t *ret_at_ns);

/* A timer whose instant has come, as the owner reads it. */
struct timer_expiry {
	uint64_t identity;
	uint64_t deadline_ns;
	uint64_t at_ns; /* the instant to file it under: the deadline and its slack */
	uint64_t interval_ns;
	uint64_t queue_slack;
};

enum timer_turn {
	TIMER_IS_PENDING, /* to be delivered */
	TIMER_IS_LATER,   /* to be filed again, at `at_ns` */
	TIMER_IS_NEITHER,
};

/*
 * The slot has been taken out of the schedule, where it was filed under `by_ns`. ARMED → PENDING if
 * its instant is no later; PENDING → PARKED, which only a periodic timer can be here; FREE → FREE
 * and filed nowhere.
 */
enum timer_turn timer_expire(const struct timers *timers, uint32_t slot, uint64_t by_ns,
                             struct timer_expiry *ret_expiry);

/*
 * Returns when to look at a periodic timer that has just become pending: its first period that is
 * not due. If its life has ended since, the next life is in the inbox, or was armed in its place
 * and is due no earlier.
 */
uint64_t timer_next_period_ns(const struct timers *timers, uint32_t slot,
                              const struct timer_expiry *expiry, uint64_t now_ns);

/*
 * Returns the instant that is true of a slot which is filed under `filed_ns`: never an earlier one,
 * since a timer that was moved to before that is in the inbox, or on its way there. UINT64_MAX:
 * none; the slot comes through the inbox if its timer comes at all. A stale word costs a wake-up.
 */
uint64_t timer_true_ns(const struct timers *timers, uint32_t slot, uint64_t filed_ns);

/*
 * Has this timer an undelivered expiry? For the owner, which made it pending: a stale word can only
 * still say so, and then the handle is kept once more than needed.
 */
static inline bool timer_waits(const struct timers *timers, uint64_t handle)
{
	const struct timer_hot *hot = &timers->hot[handle_slot(handle)];
	/* Relaxed: the owner made it pending. */
	uint64_t word = u64_load_relaxed(&hot->word);

	return timer_is(word, u64_load_relaxed(&hot->identity), handle) && word_undelivered(word);
}

/*
 * PENDING → FREE, of a timer that the owner has just made pending. False: it is over already, or
 * was re-armed, and is to be dropped when it expires again.
 */
bool timer_drop(const struct timers *timers, uint32_t slot);

/* ---- a consumer's decisions: consume.c ---- */

enum timer_delivery {
	TIMER_DELIVERED,
	TIMER_CHANGED,    /* the word has changed, or was a later life's: look at it again */
	TIMER_GIVEN_BACK, /* the clock was set back over it: it is armed again */
};

/* PENDING, PARKED → ARMED for its first period that is not due; counts those that are. */
struct timer_outcome timer_deliver_periodic(const struct timers *timers, struct timer_view *view,
                                            uint64_t now_ns, bool clock_goes_back,
                                            uint64_t *ret_count);

/* PENDING, PARKED → ARMED, with the deadline and the base that it has. */
struct timer_outcome timer_give_back(struct timer_hot *hot, struct timer_view *view);

/*
 * A consumer of this queue has changed a word from `before` to `after`, and it was not the
 * handle's: the word had come back while the consumer was held up. Delivers that life's expiry if
 * it may be this consumer's, and else undoes the change.
 */
struct timer_outcome timer_deliver_other(const struct timers *timers, uint32_t queue,
                                         struct timer_view *view, uint64_t before, uint64_t after);

/* Read the rest of a handle's timer. False if there is no expiry to deliver. */
static inline bool timer_view_expiry(const struct timers *timers, uint64_t handle,
                                     struct timer_view *view)
{
	const struct timer_cold *cold = &timers->cold[handle_slot(handle)];

	view->identity = u64_load_relaxed(&timers->hot[handle_slot(handle)].identity);
	if (!timer_is(view->word, view->identity, handle) || !word_undelivered(view->word))
		return false;
	view->interval_ns = u64_load_relaxed(&cold->interval_ns);
	view->data = u64_load_relaxed(&cold->data);
	view->handle = handle;
	view->deadline_ns = timer_deadline_ns(view->word, view->identity);
	view->fn = u64_load_relaxed(&cold->fn);
	return true;
}

/* PENDING → FREE, of a kept timer → idle. Once the slot is FREE it is the caller's to put back. */
static inline struct timer_outcome timer_deliver_one_shot(const struct timers *timers,
                                                          uint32_t queue, struct timer_view *view)
{
	struct timer_hot *hot = &timers->hot[handle_slot(view->handle)];
	uint64_t before = view->word;
	uint64_t after = handle_kept(view->handle) ? word_idle(before) : word_unfiled(before);

	if (!u64_cas_acq_rel(&hot->word, &view->word, after))
		return timer_done(TIMER_CHANGED);
	if (timer_same_life(hot, view->handle))
		return timer_done(TIMER_DELIVERED);
	return timer_deliver_other(timers, queue, view, before, after);
}

/*
 * Deliver the expiry, as it was read: enum timer_delivery. `now_ns` is looked at if the timer is
 * periodic or the clock goes back. Model: tests/models/word.pml.
 */
static inline struct timer_outcome timer_deliver(const struct timers *timers, uint32_t queue,
                                                 struct timer_view *view, uint64_t now_ns,
                                                 bool clock_goes_back, uint64_t *ret_count)
{
	/* Set back since the timer expired, so that its deadline is yet to come? */
	if (clock_goes_back && view->deadline_ns > now_ns)
		return timer_give_back(&timers->hot[handle_slot(view->handle)], view);
	if (view->interval_ns > 0)
		return timer_deliver_periodic(timers, view, now_ns, clock_goes_back, ret_count);
	return timer_deliver_one_shot(timers, queue, view);
}

#endif
