/* SPDX-License-Identifier: MIT */
/*
 * Every decision about a timer, of pair and record: one CAS, lock-free and signal-safe, returning
 * the work left to the caller. No hub, inbox or clock.
 */
#ifndef TIMERHUB_TIMER_H
#define TIMERHUB_TIMER_H

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/test_point.h"
#include "timer/pair.h"

/* No padding: random accesses cost less in less memory. */
struct timer {
	_Alignas(16) atomic_u64 deadline_ns; /* both: any thread, by a CAS */
	atomic_u64 state;
};

/*
 * The arm's arguments, relaxed as in a seqlock: read between the pair's load and its CAS, whose
 * success proves that they are this timer's. Without that proof: timer_true_ns(), and
 * hub_submit()'s slack, which may be a later timer's if this one has ended.
 */
struct timer_cold {
	atomic_u64 data;        /* in a free slot: the link of the free stack */
	atomic_u64 fn;          /* timerhub_fn, as a number */
	atomic_u64 queue_slack; /* queue's index in the low 16 bits, slack in ns above */
};

/* Of all slots. One-shots do not touch the intervals. */
struct timers {
	struct timer *pairs;
	struct timer_cold *cold;
	atomic_u64 *intervals_ns;  /* of periodic timers; by the armer */
	uint64_t first_generation; /* before the first timer of each slot */
};

/* Both ends: one record in four lies in two cache lines. */
CPU_FETCHES void timer_fetch_record(const struct timers *timers, uint32_t slot)
{
	__builtin_prefetch(&timers->cold[slot].data, 1);
	__builtin_prefetch(&timers->cold[slot].queue_slack, 1);
}

enum timer_left {
	TIMER_NOTHING,
	TIMER_PUSH, /* push the slot; wake the owner if its promise is later than the instant */
	TIMER_PUSH_AGAIN, /* the same, but the slot was claimed before */
};

/* In one register; with work left, `*ret_pair` or `view->after` is set too. */
struct timer_outcome {
	int result;
	enum timer_left left;
};

static inline struct timer_outcome timer_done(int result)
{
	return (struct timer_outcome){ .result = result, .left = TIMER_NOTHING };
}

static inline struct timer_outcome timer_submit(int result, bool was_claimed)
{
	return (struct timer_outcome){
		.result = result,
		.left = was_claimed ? TIMER_PUSH_AGAIN : TIMER_PUSH,
	};
}

/* ---- the pair ---- */

/* A guess; a record read afterwards is at least as new as its state. */
static inline struct pair timer_guess(const struct timer *timer)
{
	struct pair pair;

	pair.state = u64_load_acquire(&timer->state); /* [armed] carries the timer's record */
	test_point(TEST_POINT_PAIR_HALF_READ);
	pair.deadline_ns = u64_load_relaxed(&timer->deadline_ns);
	return pair;
}

/* State and deadline of one generation; for the owner, a pair that the slot has had. */
static inline struct pair timer_snapshot(const struct timer *timer)
{
	uint64_t state = u64_load_acquire(&timer->state); /* [armed] carries the timer's record */
	struct pair pair;

	do {
		pair.state = state;
		/* [armed]: the next load sees the state of this deadline, or a newer one */
		pair.deadline_ns = u64_load_acquire(&timer->deadline_ns);
		state = u64_load_acquire(&timer->state); /* [armed] carries the timer's record */
	} while (state != pair.state);
	return pair;
}

#ifdef TIMERHUB_TEST_POINTS
/* tests/harness/check_pair_change.c */
void timer_check_change(struct pair before, struct pair after);
#else
static inline void timer_check_change(struct pair before, struct pair after)
{
	(void)before;
	(void)after;
}
#endif

/* From `*pair` to `after`; else false, and a new guess in `*pair`. */
static inline bool timer_change(struct timer *timer, struct pair *pair, struct pair after)
{
	if (!pair_cas_acq_rel(timer, pair->deadline_ns, pair->state, after.deadline_ns,
	                      after.state)) { /* [armed] publishes the timer's record */
		*pair = timer_guess(timer);
		return false;
	}
	timer_check_change(*pair, after);
	return true;
}

/* ---- a caller's decisions: arm_cancel.c ---- */

/* Checked, with the deadline computed. */
struct timer_arming {
	uint32_t queue;
	uint64_t deadline_ns; /* TIMER_NEVER_NS: never */
	uint64_t interval_ns; /* 0: one-shot */
	uint64_t slack_ns;
	uint64_t data;
	uint64_t fn;
	bool kept;
};

/*
 * FREE → ARMED in the caller's own slot; the handle is stored before the timer can end. Result 0.
 */
struct timer_outcome timer_arm(const struct timers *timers, uint32_t slot,
                               const struct timer_arming *arming, uint64_t *ret_handle,
                               struct pair *ret_pair);

/* Any live phase → ARMED. Result 0, 1 (was idle) or -ENOENT. */
struct timer_outcome timer_rearm(const struct timers *timers, uint64_t handle, uint64_t deadline_ns,
                                 struct pair *ret_pair);

/* Any → FREE, if it is on this queue. Result 0: put the slot back; or -ENOENT. */
#define TIMER_ANY_QUEUE UINT32_MAX
int timer_cancel(const struct timers *timers, uint64_t handle, uint32_t queue);

/*
 * An armed, unclaimed timer to the same or a later deadline; else false. Few outputs: overlapping
 * cache misses need the registers.
 */
static inline bool timer_move(struct timer *timer, uint64_t handle, uint64_t deadline_ns)
{
	/* Relaxed: a guess, which the CAS confirms, and acquires. */
	uint64_t state = u64_load_relaxed(&timer->state);
	uint64_t before_ns = u64_load_relaxed(&timer->deadline_ns);

	/* equal deadline too, so that a consumer sees the caller's earlier stores */
	return state_is_armed(state, handle, STATE_CLAIMED) && deadline_ns >= before_ns &&
	       pair_cas_acq_rel(timer, before_ns, state, deadline_ns, state); /* [armed] */
}

/* ---- reading ---- */

struct timer_view {
	struct pair pair;  /* a guess until timer_change() succeeds */
	struct pair after; /* that timer_deliver() stored, if work is left */
	uint64_t handle;
	uint64_t interval_ns; /* 0: not periodic */
	uint64_t data;
	uint64_t fn;
};

static inline uint64_t timer_interval_ns(const struct timers *timers, uint32_t slot, uint64_t state)
{
	return state_periodic(state) ? u64_load_relaxed(&timers->intervals_ns[slot]) : 0;
}

/* After its pair was read. */
static inline void timer_view_record(const struct timers *timers, uint64_t handle,
                                     struct timer_view *view)
{
	const struct timer_cold *cold = &timers->cold[handle_slot(handle)];

	view->handle = handle;
	view->interval_ns = timer_interval_ns(timers, handle_slot(handle), view->pair.state);
	view->data = u64_load_relaxed(&cold->data);
	view->fn = u64_load_relaxed(&cold->fn);
}

/* `view->pair`'s record, with its queue; false: free. Right if timer_change() then succeeds. */
bool timer_read(const struct timers *timers, uint32_t slot, struct timer_view *view,
                uint32_t *ret_queue);

/* Handle of the slot's last timer; the end of the one before is then seen. */
uint64_t timer_last(const struct timers *timers, uint32_t slot);

/* UINT64_MAX: never. False: ended. */
bool timer_deadline(const struct timers *timers, uint64_t handle, uint64_t *ret_deadline_ns);

/* The deadline, delayed within the slack. */
static inline uint64_t timer_instant_ns(const struct timers *timers, uint32_t slot,
                                        struct pair pair)
{
	uint64_t queue_slack;

	if (!state_has_slack(pair.state))
		return pair.deadline_ns;
	queue_slack = u64_load_relaxed(&timers->cold[slot].queue_slack);
	return timer_slacken_ns(pair.deadline_ns, queue_slack_slack_ns(queue_slack));
}

/* ---- the owner's decisions: owner.c ---- */

/*
 * Of a slot from the inbox: must it be scheduled at `*ret_at_ns` (UINT64_MAX: not at all)? If not,
 * the entry is right.
 */
bool timer_look(const struct timers *timers, uint32_t slot, uint64_t *ret_at_ns);

struct timer_expiry {
	struct pair pair;
	uint64_t at_ns; /* instant */
	uint64_t interval_ns;
	uint64_t queue_slack;
};

enum timer_expired {
	TIMER_IS_PENDING, /* put it into its queue */
	TIMER_IS_LATER,   /* schedule it again, at `at_ns` */
	TIMER_IS_NEITHER,
};

/*
 * The entry for `by_ns` was taken out. ARMED → PENDING if the instant is not later, OVERDUE if the
 * next period is due at `now_ns` too; PENDING (periodic) → OVERDUE; FREE → FREE, never.
 */
enum timer_expired timer_expire(const struct timers *timers, uint32_t slot, uint64_t by_ns,
                                uint64_t now_ns, struct timer_expiry *ret_expiry);

/* Not due, of one that has just expired. */
static inline uint64_t timer_next_period_ns(const struct timer_expiry *expiry, uint64_t now_ns)
{
	uint64_t next_ns = period_next_ns(expiry->pair.deadline_ns, expiry->interval_ns, now_ns);

	return timer_slacken_ns(next_ns, queue_slack_slack_ns(expiry->queue_slack));
}

/*
 * When the slot must be scheduled instead of `filed_ns`; UINT64_MAX: not at all. Who has moved it
 * to before `filed_ns` pushes it.
 */
uint64_t timer_true_ns(const struct timers *timers, uint32_t slot, uint64_t filed_ns);

/* An undelivered expiry? If stale, a needless handle stays until the next compaction. */
static inline bool timer_waits(const struct timers *timers, uint64_t handle)
{
	/* Relaxed: the owner itself made the timer pending. */
	uint64_t state = u64_load_relaxed(&timers->pairs[handle_slot(handle)].state);

	return state_is_of(state, handle) && state_undelivered(state);
}

/*
 * PENDING, OVERDUE → FREE: only the owner makes these, so it is the timer that has expired. False:
 * ended, or re-armed.
 */
bool timer_drop(const struct timers *timers, uint32_t slot);

/* ---- a consumer's decisions: drain_dispatch.c ---- */

enum timer_delivery {
	TIMER_DELIVERED,
	TIMER_CHANGED,    /* by another thread: decide again */
	TIMER_GIVEN_BACK, /* armed again, because the clock was set back */
};

/* PENDING, OVERDUE → ARMED for the first period that is not due, after `*ret_count`. */
struct timer_outcome timer_deliver_periodic(const struct timers *timers, struct timer_view *view,
                                            uint64_t now_ns, uint64_t *ret_count);

/* PENDING, OVERDUE → ARMED, with an unchanged deadline. */
struct timer_outcome timer_give_back(const struct timers *timers, struct timer_view *view);

/* False: no expiry to deliver. */
static inline bool timer_view_expiry(const struct timers *timers, uint64_t handle,
                                     struct timer_view *view)
{
	if (!state_is_of(view->pair.state, handle) || !state_undelivered(view->pair.state))
		return false;
	timer_view_record(timers, handle, view);
	return true;
}

/* PENDING → FREE (the caller puts the slot back), or IDLE if kept. */
static inline struct timer_outcome timer_deliver_one_shot(const struct timers *timers,
                                                          struct timer_view *view)
{
	struct timer *timer = &timers->pairs[handle_slot(view->handle)];
	struct pair after =
		pair_with_phase(view->pair, state_kept(view->pair.state) ? TIMER_IDLE : TIMER_FREE);

	after.deadline_ns = TIMER_NEVER_NS;
	return timer_done(timer_change(timer, &view->pair, after) ? TIMER_DELIVERED
	                                                          : TIMER_CHANGED);
}

/*
 * The expiry in `view`; the result is an enum timer_delivery. `now_ns` counts only for a periodic
 * timer or a clock that goes back.
 */
static inline struct timer_outcome timer_deliver(const struct timers *timers,
                                                 struct timer_view *view, uint64_t now_ns,
                                                 bool clock_goes_back, uint64_t *ret_count)
{
	/* set back since the expiry, it may be in the future again */
	if (clock_goes_back && view->pair.deadline_ns > now_ns)
		return timer_give_back(timers, view);
	if (view->interval_ns > 0)
		return timer_deliver_periodic(timers, view, now_ns, ret_count);
	return timer_deliver_one_shot(timers, view);
}

#endif
