/* SPDX-License-Identifier: MIT */
/*
 * Every decision about a timer: may it be armed, moved, cancelled, expired, delivered, and what
 * becomes of its pair (pair.h)? Each is one compare-and-swap of the pair, so it is made by exactly
 * one thread, takes no lock, and can be made in a signal handler. Its result says what is left to
 * do for the caller, such as to push the slot into the inbox.
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
 * The pair of a slot's timer, which any thread changes by a compare-and-swap. It has no padding, so
 * that four share a cache line: random accesses are the faster, the less memory they go over.
 */
struct timer {
	_Alignas(16) atomic_u64 deadline_ns;
	atomic_u64 state;
};
_Static_assert(sizeof(struct timer) == 16, "pair_cas_acq_rel() changes the whole of it");

/*
 * The record of a slot's timer: what it was armed with, and what only arming and delivery need.
 *
 * It is written before the pair is published, and read between the load of a pair and the
 * compare-and-swap with it. As in a seqlock the accesses are relaxed: if the swap succeeds, the
 * record was that of this timer. Two readers have no such proof: timer_true_ns(), which says why it
 * needs none, and the slack in hub_submit(), which can be that of the slot's next timer if this one
 * has ended.
 */
struct timer_cold {
	atomic_u64 data;        /* the timer's data; in a free slot the link of the free stack */
	atomic_u64 fn;          /* the timer's callback as a number */
	atomic_u64 queue_slack; /* index of its queue in the low 16 bits, its slack in ns above */
};

/* The arrays of all slots, by index. */
struct timers {
	struct timer *pairs;
	struct timer_cold *cold;
	atomic_u64 *intervals_ns;  /* apart from the record, because one-shots never touch it */
	uint64_t first_generation; /* what a slot that never had a timer counts from */
};

/* Fetches a slot's record. It has 24 bytes, so some straddle two cache lines: fetch both ends. */
CPU_FETCHES void timer_fetch_record(const struct timers *timers, uint32_t slot)
{
	__builtin_prefetch(&timers->cold[slot].data, 1);
	__builtin_prefetch(&timers->cold[slot].queue_slack, 1);
}

/* What a decision has left to do for the thread that made it. */
enum timer_left {
	TIMER_NOTHING,
	/*
	 * Push the slot, and wake the owner if it has promised to look only after the new instant.
	 */
	TIMER_PUSH,
	/*
	 * As TIMER_PUSH. The slot was claimed before, so another thread may have pushed it already.
	 */
	TIMER_PUSH_AGAIN,
};

/*
 * What a decision returns. Both members fit into one register. If there is work left, the pair that
 * was stored is returned too, in *ret_pair or view->after.
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
 * Loads a pair. It is a guess, because its words are loaded one after the other. The state comes
 * first, so that a record that is read afterwards is at least as new as the state.
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
 * Loads a pair whose state and deadline belong to the same timer, because the state is the same
 * before and after. For the owner it is even a pair that the slot really had at one moment: the
 * state could only change and change back by way of the owner itself.
 */
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

/*
 * Changes a timer's pair from *pair to `after` by a compare-and-swap. Returns false if the pair was
 * another one, and stores a new guess in *pair.
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

/* What to arm: the arguments of timerhub_arm(), checked, and with the deadline computed. */
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
 * Arms a timer in a slot that the caller has taken. The handle is stored before the timer can
 * expire. The result is 0.
 */
struct timer_outcome timer_arm(const struct timers *timers, uint32_t slot,
                               const struct timer_arming *arming, uint64_t *ret_handle,
                               struct pair *ret_pair);

/*
 * Gives a live timer a new deadline, whatever its phase. The result is 0, or 1 if it was idle, or
 * -ENOENT if it has ended.
 */
struct timer_outcome timer_rearm(const struct timers *timers, uint64_t handle, uint64_t deadline_ns,
                                 struct pair *ret_pair);

/*
 * Ends a live timer, if it is on this queue. Returns 0 if the caller must now give the slot back to
 * the arena, or -ENOENT.
 */
#define TIMER_ANY_QUEUE UINT32_MAX
int timer_cancel(const struct timers *timers, uint64_t handle, uint32_t queue);

/*
 * Moves an armed timer that is not claimed to the same or a later deadline, which needs no push.
 * Returns false, and does nothing, if the timer is in another state or the deadline is earlier.
 *
 * It returns so little because timerhub_rearm_many() overlaps the cache misses of several timers,
 * and needs the registers for that.
 */
static inline bool timer_move(struct timer *timer, uint64_t handle, uint64_t deadline_ns)
{
	/* Relaxed: a guess, which the CAS confirms, and acquires. */
	uint64_t state = u64_load_relaxed(&timer->state);
	uint64_t before_ns = u64_load_relaxed(&timer->deadline_ns);

	/*
	 * An equal deadline is stored too, so that a consumer sees what the caller stored before.
	 */
	return state_is_armed(state, handle, STATE_CLAIMED) && deadline_ns >= before_ns &&
	       pair_cas_acq_rel(timer, before_ns, state, deadline_ns, state); /* [armed] */
}

/* ---- reading ---- */

/* What a thread has read of a timer that it may change next. */
struct timer_view {
	struct pair pair;  /* a guess until timer_change() succeeds */
	struct pair after; /* what timer_deliver() has stored, if it left work to do */
	uint64_t handle;
	uint64_t interval_ns; /* 0: not periodic */
	uint64_t data;
	uint64_t fn;
};

/* Returns the interval of the timer with this state, or 0 if it is not periodic. */
static inline uint64_t timer_interval_ns(const struct timers *timers, uint32_t slot, uint64_t state)
{
	return state_periodic(state) ? u64_load_relaxed(&timers->intervals_ns[slot]) : 0;
}

/*
 * Completes a view that has the timer's pair: reads the handle's interval, data and callback into
 * it.
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
 * Reads the record and the queue of the timer whose pair is already in the view. Returns false if
 * the slot is free. What it reads is right if timer_change() with that pair succeeds afterwards.
 */
bool timer_read(const struct timers *timers, uint32_t slot, struct timer_view *view,
                uint32_t *ret_queue);

/*
 * Returns the handle of the latest timer of a slot. The caller then also sees everything that had
 * happened to the slot's earlier timers.
 */
uint64_t timer_last(const struct timers *timers, uint32_t slot);

/* Stores the deadline of a timer, UINT64_MAX for never. Returns false if the timer has ended. */
bool timer_deadline(const struct timers *timers, uint64_t handle, uint64_t *ret_deadline_ns);

/* Returns the instant of a timer, which is its deadline, or a time within its slack after that. */
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
 * A look: what the owner does with each slot that it takes from the inbox. It ends the claim.
 * Returns true if the slot must now be scheduled at *ret_at_ns, where UINT64_MAX means not at all,
 * and false if its schedule entry is right as it is.
 */
bool timer_look(const struct timers *timers, uint32_t slot, uint64_t *ret_at_ns);

/* What timer_expire() has found in a slot. */
struct timer_expiry {
	struct pair pair;
	uint64_t at_ns; /* the timer's instant */
	uint64_t interval_ns;
	uint64_t queue_slack;
};

/* What the owner has to do with a slot after timer_expire(). */
enum timer_expired {
	TIMER_IS_PENDING, /* the timer has expired: put an event into its queue */
	TIMER_IS_LATER,   /* the timer has moved: schedule the slot again, at `at_ns` */
	TIMER_IS_NEITHER, /* there is nothing to do */
};

/*
 * Decides what becomes of a slot whose schedule entry, for `by_ns`, the owner has just taken out.
 *
 * An armed timer whose instant is not after `by_ns` becomes PENDING, or OVERDUE if its next period
 * is due at `now_ns` as well. A periodic timer that was PENDING already becomes OVERDUE. A free
 * slot stays free, with a deadline of "never", because it has no entry any more.
 */
enum timer_expired timer_expire(const struct timers *timers, uint32_t slot, uint64_t by_ns,
                                uint64_t now_ns, struct timer_expiry *ret_expiry);

/* Returns the instant of the first period that is not due, of a timer that has just expired. */
static inline uint64_t timer_next_period_ns(const struct timer_expiry *expiry, uint64_t now_ns)
{
	uint64_t next_ns = period_next_ns(expiry->pair.deadline_ns, expiry->interval_ns, now_ns);

	return timer_slacken_ns(next_ns, queue_slack_slack_ns(expiry->queue_slack));
}

/*
 * Returns when a slot must be scheduled that now has an entry for `filed_ns`; UINT64_MAX means not
 * at all. The result is never earlier than `filed_ns`, because whoever moves a timer to an earlier
 * time pushes its slot.
 */
uint64_t timer_true_ns(const struct timers *timers, uint32_t slot, uint64_t filed_ns);

/*
 * Tells the owner whether the handle's timer has expired and nobody has taken the event. An answer
 * that is out of date does no harm: a handle that nobody needs stays in the outbox a little longer.
 */
static inline bool timer_waits(const struct timers *timers, uint64_t handle)
{
	/* Relaxed: the owner itself made the timer pending. */
	uint64_t state = u64_load_relaxed(&timers->pairs[handle_slot(handle)].state);

	return state_is_of(state, handle) && state_undelivered(state);
}

/*
 * Ends a timer whose event nobody has taken, because its queue is closed. Returns false if it was
 * ended or re-armed meanwhile. No handle is needed, because only the owner, which calls this, makes
 * timers expire: an expired timer in this slot is the one that it knows.
 */
bool timer_drop(const struct timers *timers, uint32_t slot);

/* ---- a consumer's decisions: drain_dispatch.c ---- */

/* What became of an expiry that a consumer wanted to deliver. */
enum timer_delivery {
	TIMER_DELIVERED,  /* the caller has the event */
	TIMER_CHANGED,    /* another thread has changed the timer: look and decide again */
	TIMER_GIVEN_BACK, /* the wall clock was set back, so the timer is armed again */
};

/*
 * Delivers the expiry of a periodic timer, and arms it for the first period that is not due.
 * *ret_count is the number of periods that the event stands for.
 */
struct timer_outcome timer_deliver_periodic(const struct timers *timers, struct timer_view *view,
                                            uint64_t now_ns, uint64_t *ret_count);

/* Arms an expired timer again with the deadline that it has, which is in the future once more. */
struct timer_outcome timer_give_back(const struct timers *timers, struct timer_view *view);

/*
 * Completes a view that has the timer's pair with the rest of the timer. Returns false if that pair
 * says that the handle's timer has no event to deliver.
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
 * Delivers the expiry of a timer that is not periodic. A kept timer is idle afterwards; otherwise
 * the caller must give the slot back to the arena.
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
 * Delivers the expiry in `view`. The result is an enum timer_delivery. `now_ns` is used only if the
 * timer is periodic or the clock can go back.
 */
static inline struct timer_outcome timer_deliver(const struct timers *timers,
                                                 struct timer_view *view, uint64_t now_ns,
                                                 bool clock_goes_back, uint64_t *ret_count)
{
	/* If the clock was set back since the expiry, the deadline can be in the future again. */
	if (clock_goes_back && view->pair.deadline_ns > now_ns)
		return timer_give_back(timers, view);
	if (view->interval_ns > 0)
		return timer_deliver_periodic(timers, view, now_ns, ret_count);
	return timer_deliver_one_shot(timers, view);
}

#endif
