/* SPDX-License-Identifier: MIT */
/*
 * Every decision about a timer is made here and in timer.c: may it be armed, moved, cancelled,
 * expired, delivered, and what becomes of its deadline and state (pair.h)? Each decision is one
 * compare-and-swap of these two words. So exactly one thread makes it, without a lock, and a signal
 * handler can make it too. What is left to do afterwards, such as to push the timer's slot into the
 * inbox, is returned to the caller.
 *
 * What a timer was armed with, its record (struct timer_cold), is written before the pair is
 * published, and read between the load of the pair and the compare-and-swap that expects what was
 * loaded. As in a seqlock, the accesses are relaxed: if the swap succeeds, what was read belonged
 * to this timer. Two readers do without such a proof. One is timer_true_ns(): if the slot has a new
 * timer meanwhile, it adds the slack of this timer to the old deadline. That is early enough,
 * because whoever arms a timer that is due earlier tells the owner. The other is hub_submit(): it
 * may read the slack of the slot's next timer if this one has ended.
 *
 * Nothing here knows a hub, an inbox or a clock. The frequent decisions are inline.
 *
 * What timer_snapshot() returns to the owner was in the slot at one moment: the state was the same
 * before and after the deadline was loaded, and it cannot have changed back in between, because
 * only the owner expires timers and clears STATE_CLAIMED.
 *
 * timer_move() need not tell the owner, because the schedule entry of an armed timer is early
 * enough for a later deadline. It returns only a bool, because timerhub_rearm_many() moves several
 * timers at once to overlap their cache misses, and needs the registers.
 */
#ifndef TIMERHUB_TIMER_H
#define TIMERHUB_TIMER_H

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/test_point.h"
#include "timer/pair.h"

/* A timer's deadline and state. Any thread changes both by one compare-and-swap. */
struct timer {
	_Alignas(16) atomic_u64 deadline_ns;
	atomic_u64 state;
};
_Static_assert(sizeof(struct timer) == 16, "pair_cas_acq_rel() changes the whole of it");

/* What a timer was armed with. It is apart, because only arming and delivery need it. */
struct timer_cold {
	atomic_u64 data;        /* the timer's data; in a free slot the link of the free stack */
	atomic_u64 fn;          /* the timer's callback as a number */
	atomic_u64 queue_slack; /* index of its queue in the low 16 bits, its slack in ns above */
};

/* The arrays in which a hub keeps its timers. All are indexed by the slot. */
struct timers {
	struct timer *pairs;
	struct timer_cold *cold;
	atomic_u64 *intervals_ns;  /* apart from the record, because one-shots never touch it */
	uint64_t first_generation; /* what a slot that never had a timer counts from */
};

/* Prefetches a timer's record at both ends, because its 24 bytes can straddle two cache lines. */
CPU_FETCHES void timer_fetch_record(const struct timers *timers, uint32_t slot)
{
	__builtin_prefetch(&timers->cold[slot].data, 1);
	__builtin_prefetch(&timers->cold[slot].queue_slack, 1);
}

/* Tells a thread that has changed a timer what it still has to do. */
enum timer_left {
	TIMER_NOTHING,
	/* Push the slot into the inbox, and wake the owner if it would look there too late. */
	TIMER_PUSH,
	/* Do the same as for TIMER_PUSH, unless the slot is in the inbox already. */
	TIMER_PUSH_AGAIN,
};

/* What a change has done, and what its caller must do next. It fits into one register. */
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

/* Loads a timer's deadline and state one after the other, so they may not belong together. */
static inline struct pair timer_guess(const struct timer *timer)
{
	struct pair pair;

	/* Load the state first, so that nothing that is read afterwards is older. */
	pair.state = u64_load_acquire(&timer->state); /* [armed] carries the timer's record */
	test_point(TEST_POINT_PAIR_HALF_READ);
	pair.deadline_ns = u64_load_relaxed(&timer->deadline_ns);
	return pair;
}

/* Loads a deadline and a state that belong to the same timer. */
static inline struct pair timer_snapshot(const struct timer *timer)
{
	uint64_t state = u64_load_acquire(&timer->state); /* [armed] carries the timer's record */
	struct pair pair;

	do {
		pair.state = state;
		/*
		 * The acquire makes the next load return the state stored with this deadline, or a
		 * newer one.
		 */
		pair.deadline_ns = u64_load_acquire(&timer->deadline_ns); /* [armed] */
		/*
		 * The owner sees a state and a deadline that belong together (see the head of this
		 * file).
		 */
		state = u64_load_acquire(&timer->state); /* [armed] carries the timer's record */
	} while (state != pair.state);
	return pair;
}

#ifdef TIMERHUB_TEST_POINTS
/* Aborts if no rule allows this change. It is defined in tests/harness/check_pair_change.c. */
void timer_check_change(struct pair before, struct pair after);
#else
static inline void timer_check_change(struct pair before, struct pair after)
{
	(void)before;
	(void)after;
}
#endif

/* Changes a timer from *pair to `after`. If that fails, loads *pair again and returns false. */
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

/* What a timer is to be armed with: the checked arguments of timerhub_arm(). */
struct timer_arming {
	uint32_t queue;       /* index of the queue */
	uint64_t deadline_ns; /* on the hub's clock; TIMER_NEVER_NS: never */
	uint64_t interval_ns; /* 0: a one-shot */
	uint64_t slack_ns;
	uint64_t data;
	uint64_t fn;
	bool kept;
};

/*
 * Arms a timer in a slot from the arena. Sets *ret_handle, unless NULL, before the timer can
 * expire.
 */
struct timer_outcome timer_arm(const struct timers *timers, uint32_t slot,
                               const struct timer_arming *arming, uint64_t *ret_handle,
                               struct pair *ret_pair);

/* Re-arms a timer. The result is 0, 1 if it was idle, or -ENOENT if it has ended. */
struct timer_outcome timer_rearm(const struct timers *timers, uint64_t handle, uint64_t deadline_ns,
                                 struct pair *ret_pair);

/* Ends a timer of this queue, or returns -ENOENT. After 0 the caller must put its slot back. */
#define TIMER_ANY_QUEUE UINT32_MAX
int timer_cancel(const struct timers *timers, uint64_t handle, uint32_t queue);

/* Moves an armed timer to the same or a later deadline, or changes nothing and returns false. */
static inline bool timer_move(struct timer *timer, uint64_t handle, uint64_t deadline_ns)
{
	/*
	 * Relaxed is enough for both, because the CAS below acquires, or fails if they are stale.
	 */
	uint64_t state = u64_load_relaxed(&timer->state);
	uint64_t before_ns = u64_load_relaxed(&timer->deadline_ns);

	/*
	 * Make the CAS even for the same deadline, because it releases what the caller stored
	 * before.
	 */
	return state_is_armed(state, handle, STATE_CLAIMED) && deadline_ns >= before_ns &&
	       pair_cas_acq_rel(timer, before_ns, state, deadline_ns, state); /* [armed] */
}

/* ---- reading ---- */

/* What a thread has read of a timer before it changes the timer or shows it. */
struct timer_view {
	struct pair pair;  /* a guess until timer_change() succeeds */
	struct pair after; /* what timer_deliver() has stored, if it left work to do */
	uint64_t handle;
	uint64_t interval_ns; /* 0: not periodic */
	uint64_t data;
	uint64_t fn;
};

/* Returns the interval of the timer in `slot`, or 0 if it is not periodic. */
static inline uint64_t timer_interval_ns(const struct timers *timers, uint32_t slot, uint64_t state)
{
	return state_periodic(state) ? u64_load_relaxed(&timers->intervals_ns[slot]) : 0;
}

/* Reads a timer's record into `view`. Its deadline and state must be in view->pair already. */
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
 * Reads a timer's record, a guess until timer_change() succeeds. Returns false if the slot is free.
 */
bool timer_read(const struct timers *timers, uint32_t slot, struct timer_view *view,
                uint32_t *ret_queue);

/* Returns the handle of the slot's latest timer, and acquires what was done to earlier ones. */
uint64_t timer_last(const struct timers *timers, uint32_t slot);

/*
 * Stores the deadline of a timer in *ret_deadline_ns, UINT64_MAX for "never". Returns false if the
 * timer has ended.
 */
bool timer_deadline(const struct timers *timers, uint64_t handle, uint64_t *ret_deadline_ns);

/* Returns when a timer is to expire: at its deadline, or at a time within its slack. */
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
 * Reads a timer and clears STATE_CLAIMED. Returns true if the owner must schedule it for
 * *ret_at_ns.
 */
bool timer_look(const struct timers *timers, uint32_t slot, uint64_t *ret_at_ns);

/* What timer_expire() has found out about the timer in a slot. */
struct timer_expiry {
	struct pair pair;
	uint64_t at_ns; /* when the timer is to expire */
	uint64_t interval_ns;
	uint64_t queue_slack;
};

/* The result of timer_expire(): what its caller has to do next for the timer's slot. */
enum timer_expired {
	TIMER_IS_PENDING, /* the timer has expired: put an event into its queue */
	TIMER_IS_LATER,   /* the timer has moved: schedule the slot again, at `at_ns` */
	TIMER_IS_NEITHER, /* there is nothing to do */
};

/*
 * Expires a timer that is due at `by_ns`. `now_ns` decides whether a periodic one becomes OVERDUE.
 */
enum timer_expired timer_expire(const struct timers *timers, uint32_t slot, uint64_t by_ns,
                                uint64_t now_ns, struct timer_expiry *ret_expiry);

/*
 * Returns a periodic timer's next expiry: its first deadline after `now_ns`, or later within its
 * slack.
 */
static inline uint64_t timer_next_period_ns(const struct timer_expiry *expiry, uint64_t now_ns)
{
	uint64_t next_ns = period_next_ns(expiry->pair.deadline_ns, expiry->interval_ns, now_ns);

	return timer_slacken_ns(next_ns, queue_slack_slack_ns(expiry->queue_slack));
}

/*
 * Returns when the owner must look again at a slot scheduled for `filed_ns`, or UINT64_MAX for
 * never.
 */
uint64_t timer_true_ns(const struct timers *timers, uint32_t slot, uint64_t filed_ns);

/* Tells whether the event of an expired timer still waits to be taken. */
static inline bool timer_waits(const struct timers *timers, uint64_t handle)
{
	/*
	 * Relaxed is enough, because the owner reads the state that it stored itself, or a newer
	 * one.
	 */
	uint64_t state = u64_load_relaxed(&timers->pairs[handle_slot(handle)].state);

	return state_is_of(state, handle) && state_undelivered(state);
}

/* Ends an expired timer of a closed queue. Returns false if no event waits. Only for the owner. */
bool timer_drop(const struct timers *timers, uint32_t slot);

/* ---- a consumer's decisions: drain_dispatch.c ---- */

/* What has become of an event that a consumer wanted to take. */
enum timer_delivery {
	TIMER_DELIVERED,  /* the caller has the event */
	TIMER_CHANGED,    /* another thread has changed the timer: decide again */
	TIMER_GIVEN_BACK, /* the wall clock was set back, so the timer is armed again */
};

/* Delivers a periodic timer's event with its count, and arms the first period after `now_ns`. */
struct timer_outcome timer_deliver_periodic(const struct timers *timers, struct timer_view *view,
                                            uint64_t now_ns, uint64_t *ret_count);

/* Arms an expired timer again, because the wall clock was set back to before its deadline. */
struct timer_outcome timer_give_back(const struct timers *timers, struct timer_view *view);

/* Completes `view` for a consumer that has loaded view->pair. Returns false if no event waits. */
static inline bool timer_view_expiry(const struct timers *timers, uint64_t handle,
                                     struct timer_view *view)
{
	if (!state_is_of(view->pair.state, handle) || !state_undelivered(view->pair.state))
		return false;
	timer_view_record(timers, handle, view);
	return true;
}

/* Delivers a one-shot's event. Unless the timer is kept, the caller then puts its slot back. */
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
 * Delivers an event. `result` is an enum timer_delivery. `now_ns` matters if the timer is periodic
 * or the clock goes back.
 */
static inline struct timer_outcome timer_deliver(const struct timers *timers,
                                                 struct timer_view *view, uint64_t now_ns,
                                                 bool clock_goes_back, uint64_t *ret_count)
{
	/* The deadline is in the future again if the wall clock was set back. */
	if (clock_goes_back && view->pair.deadline_ns > now_ns)
		return timer_give_back(timers, view);
	if (view->interval_ns > 0)
		return timer_deliver_periodic(timers, view, now_ns, ret_count);
	return timer_deliver_one_shot(timers, view);
}

#endif
