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
 * to this timer. Two readers do without such a proof. One is timer_true_ns(), and the head of
 * timer.c says why. The other is hub_submit(): it may read the slack of the slot's next timer if
 * this one has ended.
 *
 * timer_snapshot() returns a deadline and a state of the same timer. If the owner calls it, the two
 * were even there at the same moment. Only the owner expires timers and clears STATE_CLAIMED, so no
 * other thread can change the state and then restore it.
 *
 * timer_move() makes its compare-and-swap even if the deadline stays the same, because the swap
 * also publishes what the thread has stored before.
 *
 * Nothing here knows a hub, an inbox or a clock. The frequent decisions are inline.
 */
#ifndef TIMERHUB_TIMER_H
#define TIMERHUB_TIMER_H

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/test_point.h"
#include "timer/pair.h"

/*
 * The deadline and the state of a timer. Any thread changes both of them by one compare-and-swap.
 * The struct has no padding, so that four of them share a cache line: timers are accessed at
 * random, and the less memory they take, the more of them are in the cache.
 */
struct timer {
	_Alignas(16) atomic_u64 deadline_ns;
	atomic_u64 state;
};
_Static_assert(sizeof(struct timer) == 16, "pair_cas_acq_rel() changes the whole of it");

/*
 * What a timer was armed with. It has an array of its own, apart from deadline and state, because
 * mainly arming and delivery need it. The head of this file says why relaxed accesses are enough.
 */
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

/*
 * Prefetches what the timer in `slot` was armed with. A record has 24 bytes, so some straddle two
 * cache lines, and both ends are fetched.
 */
CPU_FETCHES void timer_fetch_record(const struct timers *timers, uint32_t slot)
{
	__builtin_prefetch(&timers->cold[slot].data, 1);
	__builtin_prefetch(&timers->cold[slot].queue_slack, 1);
}

/* What a thread that has changed a timer still has to do. */
enum timer_left {
	TIMER_NOTHING,
	/*
	 * The caller must push the timer's slot into the inbox of the owner, the thread that
	 * expires timers. If the owner would read the inbox only after the timer's deadline, the
	 * caller must also wake the owner.
	 */
	TIMER_PUSH,
	/* The same as TIMER_PUSH, but the slot need not be pushed if it is in the inbox already. */
	TIMER_PUSH_AGAIN,
};

/*
 * What a function that changes a timer returns: its result, and what the caller must do next. Both
 * fit into one register. The timer's new deadline and state are returned through a pointer.
 */
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

/*
 * Loads the deadline and the state of a timer one after the other, so they may not belong together.
 * The state is loaded first, so that what the caller reads of the timer afterwards is at least as
 * new as the state.
 */
static inline struct pair timer_guess(const struct timer *timer)
{
	struct pair pair;

	pair.state = u64_load_acquire(&timer->state); /* [armed] carries the timer's record */
	test_point(TEST_POINT_PAIR_HALF_READ);
	pair.deadline_ns = u64_load_relaxed(&timer->deadline_ns);
	return pair;
}

/*
 * Loads a deadline and a state that belong to the same timer: the state was the same before and
 * after the deadline was loaded.
 */
static inline struct pair timer_snapshot(const struct timer *timer)
{
	uint64_t state = u64_load_acquire(&timer->state); /* [armed] carries the timer's record */
	struct pair pair;

	do {
		pair.state = state;
		/*
		 * Acquire: after the deadline that timer_change() has stored, the next load finds
		 * the state that was stored with it, or a newer one.
		 */
		pair.deadline_ns = u64_load_acquire(&timer->deadline_ns); /* [armed] */
		state = u64_load_acquire(&timer->state);                  /* [armed] */
	} while (state != pair.state);
	return pair;
}

#ifdef TIMERHUB_TEST_POINTS
/*
 * Aborts if no rule allows a timer to change from `before` to `after`. It is defined in
 * tests/harness/check_pair_change.c.
 */
void timer_check_change(struct pair before, struct pair after);
#else
static inline void timer_check_change(struct pair before, struct pair after)
{
	(void)before;
	(void)after;
}
#endif

/*
 * Changes a timer's deadline and state by a compare-and-swap from *pair to `after`. Returns false
 * if they are no longer what *pair says, and loads them again into *pair.
 */
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

/*
 * What a timer is to be armed with: the arguments of timerhub_arm(), which have been checked, and
 * the deadline as a time on the hub's clock.
 */
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
 * Arms a timer in a slot that the caller has taken from the arena. If ret_handle is not NULL, it is
 * set before the timer can expire. In the outcome, `result` is 0.
 */
struct timer_outcome timer_arm(const struct timers *timers, uint32_t slot,
                               const struct timer_arming *arming, uint64_t *ret_handle,
                               struct pair *ret_pair);

/*
 * Gives a timer a new deadline, whether it is armed, has expired or is idle. In the outcome,
 * `result` is 1 if the timer was idle, -ENOENT if it has ended, and otherwise 0.
 */
struct timer_outcome timer_rearm(const struct timers *timers, uint64_t handle, uint64_t deadline_ns,
                                 struct pair *ret_pair);

/*
 * Ends a timer. Unless `queue` is TIMER_ANY_QUEUE, it must be on the queue with that index. Returns
 * 0 if the caller must now give the slot back to the arena, or -ENOENT if there is no such timer.
 */
#define TIMER_ANY_QUEUE UINT32_MAX
int timer_cancel(const struct timers *timers, uint64_t handle, uint32_t queue);

/*
 * Moves an armed timer to the same or a later deadline. The owner need not know, because its
 * schedule entry for the timer is early enough. Returns false, and changes nothing, if the deadline
 * would be earlier, or the timer is not armed, or the owner still has to read it.
 *
 * The result is only a bool, because timerhub_rearm_many() moves several timers at once to overlap
 * their cache misses, and needs the registers.
 */
static inline bool timer_move(struct timer *timer, uint64_t handle, uint64_t deadline_ns)
{
	/*
	 * Relaxed is enough, because the CAS below acquires, and fails if one of these values is
	 * out of date.
	 */
	uint64_t state = u64_load_relaxed(&timer->state);
	uint64_t before_ns = u64_load_relaxed(&timer->deadline_ns);

	return state_is_armed(state, handle, STATE_CLAIMED) && deadline_ns >= before_ns &&
	       pair_cas_acq_rel(timer, before_ns, state, deadline_ns, state); /* [armed] */
}

/* ---- reading ---- */

/* What a thread has read of a timer that it is about to change or to show to the program. */
struct timer_view {
	struct pair pair;  /* a guess until timer_change() succeeds */
	struct pair after; /* what timer_deliver() has stored, if it left work to do */
	uint64_t handle;
	uint64_t interval_ns; /* 0: not periodic */
	uint64_t data;
	uint64_t fn;
};

/*
 * Returns the interval of the timer in `slot`, whose state is `state`, or 0 if it is not periodic.
 */
static inline uint64_t timer_interval_ns(const struct timers *timers, uint32_t slot, uint64_t state)
{
	return state_periodic(state) ? u64_load_relaxed(&timers->intervals_ns[slot]) : 0;
}

/*
 * Reads the interval, the data and the callback of a timer into `view`. The timer's deadline and
 * state must be in view->pair already.
 */
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
 * Reads what the timer in `slot` was armed with. Returns false if view->pair says that the slot is
 * free. Only a successful timer_change() proves that what was read is this timer's.
 */
bool timer_read(const struct timers *timers, uint32_t slot, struct timer_view *view,
                uint32_t *ret_queue);

/*
 * Returns the handle of the latest timer that was armed in `slot`. It acquires, so that the caller
 * also sees everything that was done to the slot's earlier timers.
 */
uint64_t timer_last(const struct timers *timers, uint32_t slot);

/*
 * Stores the deadline of a timer in *ret_deadline_ns, UINT64_MAX for "never". Returns false if the
 * timer has ended.
 */
bool timer_deadline(const struct timers *timers, uint64_t handle, uint64_t *ret_deadline_ns);

/* Returns when a timer should expire: at its deadline, or later by at most its slack. */
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
 * Reads a timer for the owner, which has found its slot in the inbox, and clears STATE_CLAIMED.
 * Returns true if the owner must now schedule the slot for *ret_at_ns, or take it out of the
 * schedule if that is UINT64_MAX. Returns false if the schedule is right as it is.
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
 * Expires the timer of a slot that the owner has just removed from its schedule, if the timer is
 * due by `by_ns`. `now_ns` is the time on the clock. The result says what the owner must do next.
 */
enum timer_expired timer_expire(const struct timers *timers, uint32_t slot, uint64_t by_ns,
                                uint64_t now_ns, struct timer_expiry *ret_expiry);

/*
 * Returns when a periodic timer that has just expired should expire next. That is its first
 * deadline after `now_ns`, or a time within its slack after that.
 */
static inline uint64_t timer_next_period_ns(const struct timer_expiry *expiry, uint64_t now_ns)
{
	uint64_t next_ns = period_next_ns(expiry->pair.deadline_ns, expiry->interval_ns, now_ns);

	return timer_slacken_ns(next_ns, queue_slack_slack_ns(expiry->queue_slack));
}

/*
 * The slot is scheduled for `filed_ns`, but its timer may have got a later deadline since. Returns
 * the time for which the owner should schedule the slot now, never earlier than `filed_ns`, or
 * UINT64_MAX if the slot is free.
 */
uint64_t timer_true_ns(const struct timers *timers, uint32_t slot, uint64_t filed_ns);

/*
 * Tells the owner whether the handle's event still waits to be taken. True may be out of date, and
 * then the owner keeps a useless handle a little longer.
 */
static inline bool timer_waits(const struct timers *timers, uint64_t handle)
{
	/*
	 * Relaxed is enough: this is the owner, which has stored the expired state itself. The load
	 * returns that state, or a newer one.
	 */
	uint64_t state = u64_load_relaxed(&timers->pairs[handle_slot(handle)].state);

	return state_is_of(state, handle) && state_undelivered(state);
}

/*
 * Ends an expired timer whose queue is closed. Returns false if the timer has ended already or was
 * re-armed. Only the owner may call it.
 */
bool timer_drop(const struct timers *timers, uint32_t slot);

/* ---- a consumer's decisions: drain_dispatch.c ---- */

/* What has become of an event that a consumer wanted to take. */
enum timer_delivery {
	TIMER_DELIVERED,  /* the caller has the event */
	TIMER_CHANGED,    /* another thread has changed the timer: decide again */
	TIMER_GIVEN_BACK, /* the wall clock was set back, so the timer is armed again */
};

/*
 * Delivers the event of a periodic timer, and arms the timer for its first period after `now_ns`.
 * The number of periods that have passed is stored in *ret_count.
 */
struct timer_outcome timer_deliver_periodic(const struct timers *timers, struct timer_view *view,
                                            uint64_t now_ns, uint64_t *ret_count);

/* Arms an expired timer again, because the wall clock was set back to before its deadline. */
struct timer_outcome timer_give_back(const struct timers *timers, struct timer_view *view);

/*
 * Reads the timer of `handle` into `view`, so that its event can be delivered. view->pair must be
 * set. Returns false if there is no event to deliver.
 */
static inline bool timer_view_expiry(const struct timers *timers, uint64_t handle,
                                     struct timer_view *view)
{
	if (!state_is_of(view->pair.state, handle) || !state_undelivered(view->pair.state))
		return false;
	timer_view_record(timers, handle, view);
	return true;
}

/*
 * Delivers the event of a one-shot timer. With TIMERHUB_KEEP the timer becomes idle. Without it the
 * timer ends, and the caller puts its slot back into the arena.
 */
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
 * Delivers the event of the timer that `view` describes. The member `result` of what is returned is
 * TIMER_DELIVERED, TIMER_CHANGED or TIMER_GIVEN_BACK. For a one-shot timer, `now_ns` is used only
 * if `clock_goes_back` is true.
 */
static inline struct timer_outcome timer_deliver(const struct timers *timers,
                                                 struct timer_view *view, uint64_t now_ns,
                                                 bool clock_goes_back, uint64_t *ret_count)
{
	/*
	 * If the wall clock was set back after the timer had expired, its deadline can be in the
	 * future again.
	 */
	if (clock_goes_back && view->pair.deadline_ns > now_ns)
		return timer_give_back(timers, view);
	if (view->interval_ns > 0)
		return timer_deliver_periodic(timers, view, now_ns, ret_count);
	return timer_deliver_one_shot(timers, view);
}

#endif
