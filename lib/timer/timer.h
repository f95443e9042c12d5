/* SPDX-License-Identifier: MIT */
/*
 * A timer: the pair and the record that its slot has, and every decision about it. Knows no hub, no
 * inbox and no clock.
 *
 * The pair is the truth about a timer. Every container only says "look at slot i". Each decision is
 * one compare-and-swap of the whole pair, made here or in timer.c, and tells its caller the work
 * that is left. Any thread calls, unless a comment says otherwise; all of it is lock-free and
 * signal-safe. tests/unit/test_timer.c walks every decision from every state.
 */
#ifndef TIMERHUB_TIMER_H
#define TIMERHUB_TIMER_H

#include "base/atomic.h"
#include "base/test_point.h"
#include "timer/pair.h"

/*
 * The pair of one slot: all that a re-arm reads or writes. Four are packed into a cache line,
 * because at a million timers a random access costs by the density of the memory that it touches.
 */
struct timer {
	_Alignas(16) atomic_u64 deadline_ns; /* any thread, by timer_change() */
	atomic_u64 state;                    /* any thread, by the same step */
};

/*
 * The arguments of the arming call. The armer writes them while the slot is its own. The owner and
 * consumers read them between loading the pair and changing it: if the change succeeds, they belong
 * to the timer that was changed. Relaxed atomics for that reason.
 */
struct timer_cold {
	atomic_u64 data;        /* the caller's; in a free slot: the free list's link */
	atomic_u64 fn;          /* the caller's timerhub_fn, as a number */
	atomic_u64 queue_slack; /* queue index in the low 16 bits, slack in ns above */
};

/*
 * The pairs and records of all slots. The interval of a periodic timer lies apart: memory that only
 * one-shots have used holds none.
 */
struct timers {
	struct timer *pairs;
	struct timer_cold *cold;
	atomic_u64 *intervals_ns;  /* valid if the state says periodic; written as the record is */
	uint64_t first_generation; /* a slot's first timer has the next generation */
};

/* The work that a decision leaves to its thread. */
enum timer_left {
	TIMER_NOTHING,
	TIMER_WAKE, /* another thread has claimed the push: wake the owner if it looks too late */
	TIMER_PUSH, /* push the slot into the inbox, then the same */
};

/* Returned in one register. If work is left, the pair after the decision is an output too. */
struct timer_outcome {
	int result;
	enum timer_left left;
};

static inline struct timer_outcome timer_done(int result)
{
	return (struct timer_outcome){ .result = result, .left = TIMER_NOTHING };
}

/* The owner must look at the slot: the caller pushes it, unless another thread's claim stands. */
static inline struct timer_outcome timer_submit(int result, bool is_claimed)
{
	return (struct timer_outcome){
		.result = result,
		.left = is_claimed ? TIMER_WAKE : TIMER_PUSH,
	};
}

/* ---- the pair ---- */

/*
 * Returns a guess of the pair: each word was true at some instant, after [armed] of its state. The
 * record that is read next is at least as new as the state.
 */
static inline struct pair timer_guess(const struct timer *timer)
{
	struct pair pair;

	pair.state = u64_load_acquire(&timer->state); /* [armed] */
	test_point(TEST_POINT_PAIR_HALF_READ);
	pair.deadline_ns = u64_load_relaxed(&timer->deadline_ns);
	return pair;
}

/*
 * Returns the pair for a reader that will not change it. The state does not change around the load
 * of the deadline, so the deadline is one that the timer had with this state.
 */
static inline struct pair timer_snapshot(const struct timer *timer)
{
	uint64_t state = u64_load_acquire(&timer->state); /* [armed] */
	struct pair pair;

	do {
		pair.state = state;
		/* [armed] A newer deadline brings its state, which the next load then sees. */
		pair.deadline_ns = u64_load_acquire(&timer->deadline_ns);
		state = u64_load_acquire(&timer->state); /* [armed] */
	} while (state != pair.state);
	return pair;
}

#ifdef TIMERHUB_TEST_POINTS
void timer_check_change(struct pair before, struct pair after); /* tests/harness/check_change.c */
#else
static inline void timer_check_change(struct pair before, struct pair after)
{
	(void)before;
	(void)after;
}
#endif

/*
 * Change the pair to `after` if it equals `*pair`. Else store a new guess in `*pair`, and return
 * false. All decisions change a pair by this, but timer_move() and the frequent timer_cancel().
 */
static inline bool timer_change(struct timer *timer, struct pair *pair, struct pair after)
{
	if (!pair_cas_acq_rel(timer, pair->deadline_ns, pair->state, after.deadline_ns,
	                      after.state)) { /* [armed] */
		*pair = timer_guess(timer);
		return false;
	}
	timer_check_change(*pair, after);
	return true;
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
	bool kept;
};

/*
 * FREE → ARMED: a new timer in the slot, which is the caller's own. Writes the handle, if it is
 * asked for, before that timer can end. 0.
 */
struct timer_outcome timer_arm(const struct timers *timers, uint32_t slot,
                               const struct timer_arming *arming, uint64_t *ret_handle,
                               struct pair *ret_pair);

/*
 * ARMED, PENDING, OVERDUE, IDLE → ARMED with another deadline. 0; 1 if the timer was idle; -ENOENT.
 */
struct timer_outcome timer_rearm(const struct timers *timers, uint64_t handle, uint64_t deadline_ns,
                                 struct pair *ret_pair);

/*
 * Any → FREE, of a timer of any queue or of this one. The slot is then the caller's. 0, -ENOENT.
 */
#define TIMER_ANY_QUEUE UINT32_MAX
int timer_cancel(const struct timers *timers, uint64_t handle, uint32_t queue);

/*
 * The caller has put the slot into the inbox for a claim that it made, or found, in `*pair`. Say so
 * in the pair, unless the owner has looked since. Returns whether the owner has not; `*pair` is
 * then a pair of after the push. Model: tests/models/inbox.pml.
 */
bool timer_confirm_push(struct timer *timer, struct pair *pair);

/*
 * The frequent re-arm: of an armed timer, to no earlier deadline. False, and nothing done, in every
 * other case, or if another thread was quicker. Inline, with few outputs: outputs hold physical
 * registers, and these limit how many cache misses overlap.
 */
static inline bool timer_move(struct timer *timer, uint64_t handle, uint64_t deadline_ns)
{
	/* Relaxed: a guess, and nothing else is read; the change acquires. */
	uint64_t state = u64_load_relaxed(&timer->state);
	uint64_t before_ns = u64_load_relaxed(&timer->deadline_ns);

	/*
	 * The same deadline is written too: the consumer must see what the caller did before.
	 */
	return state_is_armed(state, handle) && deadline_ns >= before_ns &&
	       pair_cas_acq_rel(timer, before_ns, state, deadline_ns, state); /* [armed] */
}

/* ---- reading ---- */

/* A timer, read from its pair and its record. */
struct timer_view {
	struct pair pair;  /* a guess; confirmed when timer_change() succeeds */
	struct pair after; /* if a delivery has left work: the pair after it */
	uint64_t handle;
	uint64_t interval_ns; /* 0: not periodic */
	uint64_t data;
	uint64_t fn;
};

/* Returns the interval of the timer that has this state; 0 if it is not periodic. */
static inline uint64_t timer_interval_ns(const struct timers *timers, uint32_t slot, uint64_t state)
{
	return state_periodic(state) ? u64_load_relaxed(&timers->intervals_ns[slot]) : 0;
}

/* Read the record of the timer with this handle. The view's pair has been read. */
static inline void timer_view_record(const struct timers *timers, uint64_t handle,
                                     struct timer_view *view)
{
	const struct timer_cold *cold = &timers->cold[handle_slot(handle)];

	view->handle = handle;
	view->interval_ns = timer_interval_ns(timers, handle_slot(handle), view->pair.state);
	view->data = u64_load_relaxed(&cold->data);
	view->fn = u64_load_relaxed(&cold->fn);
}

/*
 * Read the timer that has the slot, whichever that is, and its queue. False if there is none. All
 * is of one timer if timer_change() then changes the view's pair to itself; else read again.
 */
bool timer_read(const struct timers *timers, uint32_t slot, struct timer_view *view,
                uint32_t *ret_queue);

/*
 * Returns the handle of the slot's last timer, whether or not that has ended. The caller then sees
 * what the armer of that timer knew of the end of the timer before.
 */
uint64_t timer_last(const struct timers *timers, uint32_t slot);

/* Read the deadline, UINT64_MAX for never. False: there is no such timer. */
bool timer_deadline(const struct timers *timers, uint64_t handle, uint64_t *ret_deadline_ns);

/* Returns the instant to schedule the timer for: its deadline, put off within its slack. */
static inline uint64_t timer_instant_ns(const struct timers *timers, uint32_t slot,
                                        struct pair pair)
{
	uint64_t queue_slack;

	if (!state_has_slack(pair.state))
		return pair.deadline_ns;
	queue_slack = u64_load_relaxed(&timers->cold[slot].queue_slack);
	return timer_slacken_ns(pair.deadline_ns, queue_slack_slack_ns(queue_slack));
}

/*
 * Returns when the owner must have looked at a slot with this pair, which lies in the inbox;
 * UINT64_MAX if there is no hurry.
 */
static inline uint64_t timer_look_by_ns(const struct timers *timers, uint32_t slot,
                                        struct pair pair)
{
	/* If the slot has been reused, its new armer sees to its own wake; this one is harmless. */
	return state_phase(pair.state) == TIMER_ARMED ? timer_instant_ns(timers, slot, pair)
	                                              : UINT64_MAX;
}

/* ---- the owner's decisions: owner.c ---- */

/*
 * The slot has been taken out of the inbox: after this a change puts it there again. True: schedule
 * it for this instant, UINT64_MAX: not at all. False: its schedule entry is right.
 */
bool timer_look(const struct timers *timers, uint32_t slot, uint64_t *ret_at_ns);

/* A timer whose instant has come, as the owner reads it. */
struct timer_expiry {
	struct pair pair;
	uint64_t at_ns; /* the instant to schedule it for: the deadline and its slack */
	uint64_t interval_ns;
	uint64_t queue_slack;
};

enum timer_turn {
	TIMER_IS_PENDING, /* to be delivered */
	TIMER_IS_LATER,   /* to be scheduled again, at `at_ns` */
	TIMER_IS_NEITHER,
};

/*
 * The slot has been taken out of the schedule, where its entry was for `by_ns`. ARMED → PENDING if
 * its instant is no later; PENDING → OVERDUE, which only a periodic timer can be here; FREE → FREE,
 * not scheduled.
 */
enum timer_turn timer_expire(const struct timers *timers, uint32_t slot, uint64_t by_ns,
                             struct timer_expiry *ret_expiry);

/*
 * Returns when to look at a periodic timer that has just become pending: its first period that is
 * not due. If it has ended since, the slot's next timer comes through the inbox.
 */
static inline uint64_t timer_next_period_ns(const struct timer_expiry *expiry, uint64_t now_ns)
{
	uint64_t next_ns = period_next_ns(expiry->pair.deadline_ns, expiry->interval_ns, now_ns);

	return timer_slacken_ns(next_ns, queue_slack_slack_ns(expiry->queue_slack));
}

/*
 * Returns the instant that is true of a slot whose schedule entry is for `filed_ns`: never an
 * earlier one, since a timer that was moved to before that is in the inbox, or on its way there.
 * UINT64_MAX: none; the slot comes through the inbox if its timer comes at all.
 */
uint64_t timer_true_ns(const struct timers *timers, uint32_t slot, uint64_t filed_ns);

/*
 * Has this timer an undelivered expiry? For the owner, which made it pending: a stale state can
 * only still say so, and then the handle is kept once more than needed.
 */
static inline bool timer_waits(const struct timers *timers, uint64_t handle)
{
	/* Relaxed: the owner made it pending. */
	uint64_t state = u64_load_relaxed(&timers->pairs[handle_slot(handle)].state);

	return state_is_of(state, handle) && state_undelivered(state);
}

/*
 * PENDING → FREE, of a timer that the owner has just made pending. False: it has ended already, or
 * was re-armed, and is to be dropped when it expires again.
 */
bool timer_drop(const struct timers *timers, uint32_t slot);

/* ---- a consumer's decisions: consume.c ---- */

enum timer_delivery {
	TIMER_DELIVERED,
	TIMER_CHANGED,    /* the pair has changed: look at it again */
	TIMER_GIVEN_BACK, /* the clock was set back over it: it is armed again */
};

/* PENDING, OVERDUE → ARMED for its first period that is not due; counts those that are. */
struct timer_outcome timer_deliver_periodic(const struct timers *timers, struct timer_view *view,
                                            uint64_t now_ns, bool clock_goes_back,
                                            uint64_t *ret_count);

/* PENDING, OVERDUE → ARMED, with the deadline that it has. */
struct timer_outcome timer_give_back(const struct timers *timers, struct timer_view *view);

/* Read the rest of a handle's timer. False if there is no expiry to deliver. */
static inline bool timer_view_expiry(const struct timers *timers, uint64_t handle,
                                     struct timer_view *view)
{
	if (!state_is_of(view->pair.state, handle) || !state_undelivered(view->pair.state))
		return false;
	timer_view_record(timers, handle, view);
	return true;
}

/* PENDING → FREE, of a kept timer → IDLE. Once the slot is FREE it is the caller's to put back. */
static inline struct timer_outcome timer_deliver_one_shot(const struct timers *timers,
                                                          struct timer_view *view)
{
	struct timer *timer = &timers->pairs[handle_slot(view->handle)];
	bool done = timer_change(timer, &view->pair, pair_delivered(view->pair));

	return timer_done(done ? TIMER_DELIVERED : TIMER_CHANGED);
}

/*
 * Deliver the expiry, as it was read: enum timer_delivery. `now_ns` is looked at if the timer is
 * periodic or the clock goes back. Model: tests/models/timer.pml.
 */
static inline struct timer_outcome timer_deliver(const struct timers *timers,
                                                 struct timer_view *view, uint64_t now_ns,
                                                 bool clock_goes_back, uint64_t *ret_count)
{
	/* Set back since the timer expired, so that its deadline is yet to come? */
	if (clock_goes_back && view->pair.deadline_ns > now_ns)
		return timer_give_back(timers, view);
	if (view->interval_ns > 0)
		return timer_deliver_periodic(timers, view, now_ns, clock_goes_back, ret_count);
	return timer_deliver_one_shot(timers, view);
}

#endif
