/* SPDX-License-Identifier: MIT */
/*
 * Decides what happens to a timer when it is armed, moved, cancelled, expired or delivered
 * (timer.h). Each decision is one compare-and-swap (CAS) of the timer's deadline and state, which
 * also compares the generation. So a decision about one timer can never change a later timer of the
 * slot, and no decision has to be undone.
 *
 * A cancel is final because delivering an event and cancelling its timer change the same two words:
 * whichever comes second fails, loads them again, and decides anew. Invariants 1 and 2 of
 * lib/README.md say why no timer is lost although few calls wake the owner.
 *
 * timer_rearm() need not tell the owner if it makes the deadline of an armed timer later. The owner
 * reads the timer at the old deadline and finds the new one.
 *
 * If an armed timer has no slack, timer_cancel() compares and changes only its state. So
 * timer_move() may make the deadline later at the same time. That is harmless, because the schedule
 * entry of a free slot may be earlier than the slot's deadline, but not later. With a slack the
 * entry may be later than the deadline, so timer_cancel_any() stores timer_instant_ns() as well.
 *
 * timer_true_ns() does not find out whether the slack that it reads belongs to the deadline. If
 * another thread arms a new timer in the slot meanwhile, the old deadline gets the new slack. The
 * result is still early enough for the new timer, unless that has an earlier deadline than the old
 * one. Then the thread pushes the slot into the inbox, as for every earlier deadline.
 *
 * timer_look() makes its CAS even if the pair stays the same. A thread that then changes the pair
 * and pushes the slot relies on that: see the head of owner/spill_map.c.
 *
 * timer_look() returns false if STATE_CLAIMED was clear, because the slot is scheduled early enough
 * then. It also returns false if the timer has expired or is idle, because then the timer needs no
 * new entry.
 *
 * timer_unschedule() stores nothing if the deadline is "never" already. It also stores nothing if
 * STATE_CLAIMED is set, because timer_look() will store "never" if the slot is still free then.
 *
 * timer_expire() compares with two times. A timer that is due by `by_ns`, up to which the owner has
 * gone through its schedule, becomes PENDING. If its next period is due by `now_ns`, the time on
 * the clock, it becomes OVERDUE instead. The owner still schedules a further period, but that entry
 * is not needed: the thread that delivers the event pushes the slot into the inbox.
 *
 * Every change has acquire and release order, although some would need less.
 *
 * Labels: [armed] timer_change, timer_move → timer_guess, timer_snapshot, a change: the timer's
 *         record, the end of the slot's previous timer, and which thread delivered that.
 */
#include "timer/timer.h"

#include <errno.h>

#include "base/probe.h"

/* ---- transitions of a pair; each keeps what it does not name ---- */

/* Frees a slot that needs no entry in the owner's schedule. A deadline of "never" says so. */
static struct pair pair_unscheduled(struct pair pair)
{
	pair.deadline_ns = TIMER_NEVER_NS;
	return pair_with_phase(pair, TIMER_FREE);
}

static struct pair pair_rearmed(struct pair pair, uint64_t deadline_ns)
{
	pair.deadline_ns = deadline_ns;
	return pair_with_phase(pair, TIMER_ARMED);
}

/*
 * Returns `pair` with the flag STATE_CLAIMED, which says that the owner thread must read this timer
 * again. Whoever stores the flag must then push the timer's slot into the owner's inbox.
 */
static struct pair pair_claimed(struct pair pair)
{
	pair.state |= STATE_CLAIMED;
	return pair;
}

/* ---- a caller's decisions ---- */

static uint64_t arming_flags(const struct timer_arming *arming)
{
	return (arming->interval_ns > 0 ? STATE_PERIODIC : 0) |
	       (arming->slack_ns > 0 ? STATE_SLACK : 0) | (arming->kept ? STATE_KEPT : 0);
}

/*
 * Tells whether a timer with this deadline can be armed in the free slot without telling the owner.
 * That is so if the schedule still has an early enough entry for the slot's last timer.
 */
static bool pair_covers(struct pair free, uint64_t deadline_ns)
{
	return !state_claimed(free.state) && free.deadline_ns <= deadline_ns;
}

/*
 * Returns what to store in a free slot to arm a timer there. Sets STATE_CLAIMED if the owner must
 * be told of the timer.
 */
static struct pair pair_armed(struct pair free, uint64_t deadline_ns, uint64_t generation,
                              uint64_t flags)
{
	return (struct pair){
		.deadline_ns = deadline_ns,
		.state = generation << STATE_GENERATION_SHIFT | flags |
		         (pair_covers(free, deadline_ns) ? 0 : STATE_CLAIMED) | TIMER_ARMED,
	};
}

struct timer_outcome timer_arm(const struct timers *timers, uint32_t slot,
                               const struct timer_arming *arming, uint64_t *ret_handle,
                               struct pair *ret_pair)
{
	struct timer *timer = &timers->pairs[slot];
	struct timer_cold *cold = &timers->cold[slot];
	uint64_t flags = arming_flags(arming), generation;
	struct pair free, armed;

	/*
	 * Relaxed is enough: arena_take() lets this thread see what the slot's last user has
	 * stored.
	 */
	free.state = u64_load_relaxed(&timer->state);
	free.deadline_ns = u64_load_relaxed(&timer->deadline_ns);
	invariant(state_phase(free.state) == TIMER_FREE); /* a slot has one user */
	generation = state_generation(free.state);
	generation = generation_next(generation == 0 ? timers->first_generation : generation);
	u64_store_relaxed(&cold->data, arming->data);
	u64_store_relaxed(&cold->fn, arming->fn);
	if (arming->interval_ns > 0)
		u64_store_relaxed(&timers->intervals_ns[slot], arming->interval_ns);
	u64_store_relaxed(&cold->queue_slack, queue_slack_make(arming->queue, arming->slack_ns));
	if (ret_handle)
		*ret_handle = handle_make(generation, slot);
	probe3(arm, handle_make(generation, slot), arming->deadline_ns, arming->interval_ns);
	/*
	 * The CAS can fail, because the owner thread may change the pair of a free slot at this
	 * moment: when it removes the slot's schedule entry, it sets the deadline to "never".
	 */
	do {
		armed = pair_armed(free, arming->deadline_ns, generation, flags);
	} while (!timer_change(timer, &free, armed));
	if (!state_claimed(armed.state))
		return timer_done(0);
	*ret_pair = armed;
	return timer_submit(0, state_claimed(free.state));
}

struct timer_outcome timer_rearm(const struct timers *timers, uint64_t handle, uint64_t deadline_ns,
                                 struct pair *ret_pair)
{
	struct timer *timer = &timers->pairs[handle_slot(handle)];
	struct pair pair = timer_guess(timer), rearmed;
	int result;
	bool submit;

	do {
		if (!state_is_of(pair.state, handle))
			return timer_done(-ENOENT);
		rearmed = pair_rearmed(pair, deadline_ns);
		submit = state_phase(pair.state) != TIMER_ARMED || deadline_ns < pair.deadline_ns ||
		         state_claimed(pair.state);
		if (submit)
			rearmed = pair_claimed(rearmed);
	} while (!timer_change(timer, &pair, rearmed));
	probe2(rearm, handle, deadline_ns);
	result = state_phase(pair.state) == TIMER_IDLE ? 1 : 0;
	*ret_pair = rearmed;
	return submit ? timer_submit(result, state_claimed(pair.state)) : timer_done(result);
}

/*
 * Returns the deadline and state that a slot gets when its timer is cancelled. If the deadline is a
 * time, the schedule has an entry for that time or earlier. If it is "never", there is no entry to
 * rely on.
 */
static struct pair pair_cancelled(const struct timers *timers, uint32_t slot, struct pair pair)
{
	if (state_phase(pair.state) != TIMER_ARMED)
		return pair_unscheduled(pair);
	pair.deadline_ns = timer_instant_ns(timers, slot, pair);
	return pair_with_phase(pair, TIMER_FREE);
}

/* Cancels a timer in whatever phase it is, by a CAS of deadline and state together. */
static __attribute__((noinline)) int timer_cancel_any(const struct timers *timers, uint64_t handle,
                                                      uint32_t queue)
{
	uint32_t slot = handle_slot(handle);
	struct timer *timer = &timers->pairs[slot];
	struct pair pair = timer_guess(timer), dead;

	do {
		if (!state_is_of(pair.state, handle) ||
		    (queue != TIMER_ANY_QUEUE &&
		     queue_slack_queue(u64_load_relaxed(&timers->cold[slot].queue_slack)) != queue))
			return -ENOENT;
		dead = pair_cancelled(timers, slot, pair);
	} while (!timer_change(timer, &pair, dead));
	probe1(cancel, handle);
	return 0;
}

int timer_cancel(const struct timers *timers, uint64_t handle, uint32_t queue)
{
	uint32_t slot = handle_slot(handle);
	struct timer *timer = &timers->pairs[slot];
	/*
	 * Relaxed is enough: if this state is out of date, the CAS below fails, and if the CAS
	 * succeeds, it acquires.
	 */
	uint64_t state = u64_load_relaxed(&timer->state);

	timer_fetch_record(timers, slot); /* because arena_put() will write the record */
	if (!state_is_armed(state, handle, STATE_SLACK) || queue != TIMER_ANY_QUEUE)
		return timer_cancel_any(timers, handle, queue);
	/*
	 * Change only the state, because a CAS of 8 bytes is cheaper than one of 16 (head of this
	 * file).
	 */
	if (!u64_cas_acq_rel(&timer->state, &state, state & ~STATE_PHASE_MASK)) /* [armed] */
		return timer_cancel_any(timers, handle, queue);
	probe1(cancel, handle);
	return 0;
}

/* ---- reading ---- */

bool timer_read(const struct timers *timers, uint32_t slot, struct timer_view *view,
                uint32_t *ret_queue)
{
	if (state_phase(view->pair.state) == TIMER_FREE)
		return false;
	timer_view_record(timers, handle_of(view->pair.state, slot), view);
	*ret_queue = queue_slack_queue(u64_load_relaxed(&timers->cold[slot].queue_slack));
	return true;
}

uint64_t timer_last(const struct timers *timers, uint32_t slot)
{
	return handle_of(u64_load_acquire(&timers->pairs[slot].state), slot); /* [armed] */
}

bool timer_deadline(const struct timers *timers, uint64_t handle, uint64_t *ret_deadline_ns)
{
	struct pair pair = timer_snapshot(&timers->pairs[handle_slot(handle)]);

	*ret_deadline_ns = pair.deadline_ns;
	return state_is_of(pair.state, handle);
}

/* ---- the owner's decisions ---- */

/*
 * Clears the flag that has made the owner read this timer. If the slot is free by now, the owner
 * also takes it out of the schedule, and a deadline of "never" says so.
 */
static struct pair pair_looked_at(struct pair pair)
{
	if (state_claimed(pair.state) && state_phase(pair.state) == TIMER_FREE)
		pair.deadline_ns = TIMER_NEVER_NS;
	pair.state &= ~STATE_CLAIMED;
	return pair;
}

bool timer_look(const struct timers *timers, uint32_t slot, uint64_t *ret_at_ns)
{
	struct timer *timer = &timers->pairs[slot];
	struct pair pair = timer_guess(timer), looked;

	/*
	 * Store the pair even if it stays the same: a thread that changes the pair after that
	 * learns by this CAS that the owner has read it.
	 */
	do {
		looked = pair_looked_at(pair);
		*ret_at_ns = timer_instant_ns(timers, slot, looked);
	} while (!timer_change(timer, &pair, looked));
	return state_claimed(pair.state) &&
	       (state_phase(pair.state) == TIMER_FREE || state_phase(pair.state) == TIMER_ARMED);
}

/*
 * Marks a free slot as not scheduled. Returns false if another thread has changed the slot
 * meanwhile; the caller then tries again.
 */
static bool timer_unschedule(struct timer *timer, struct pair pair)
{
	return state_claimed(pair.state) || pair.deadline_ns == TIMER_NEVER_NS ||
	       timer_change(timer, &pair, pair_unscheduled(pair));
}

enum timer_expired timer_expire(const struct timers *timers, uint32_t slot, uint64_t by_ns,
                                uint64_t now_ns, struct timer_expiry *ret_expiry)
{
	struct timer *timer = &timers->pairs[slot];
	const struct timer_cold *cold = &timers->cold[slot];

	for (;;) {
		struct pair pair = timer_snapshot(timer);
		enum timer_phase next = TIMER_PENDING;

		ret_expiry->pair = pair;
		ret_expiry->interval_ns = timer_interval_ns(timers, slot, pair.state);
		ret_expiry->queue_slack = u64_load_relaxed(&cold->queue_slack);
		ret_expiry->at_ns = timer_instant_ns(timers, slot, pair);
		switch (state_phase(pair.state)) {
		case TIMER_FREE:
			if (timer_unschedule(timer, pair))
				return TIMER_IS_NEITHER;
			continue;
		case TIMER_OVERDUE:
		case TIMER_IDLE:
			return TIMER_IS_NEITHER;
		case TIMER_PENDING:
			/*
			 * An OVERDUE timer needs no schedule entry. The thread that delivers its
			 * event arms it for the next period, and pushes its slot into the inbox for
			 * the owner.
			 */
			next = TIMER_OVERDUE;
			break;
		case TIMER_ARMED:
			if (ret_expiry->at_ns > by_ns)
				return TIMER_IS_LATER;
			if (ret_expiry->interval_ns > 0 &&
			    u64_add_saturating(pair.deadline_ns, ret_expiry->interval_ns) <= now_ns)
				next = TIMER_OVERDUE;
			break;
		}
		if (timer_change(timer, &pair, pair_with_phase(pair, next)))
			return state_phase(pair.state) == TIMER_ARMED ? TIMER_IS_PENDING
			                                              : TIMER_IS_NEITHER;
	}
}

uint64_t timer_true_ns(const struct timers *timers, uint32_t slot, uint64_t filed_ns)
{
	struct timer *timer = &timers->pairs[slot];
	struct pair pair;

	do {
		pair = timer_snapshot(timer);
	} while (state_phase(pair.state) == TIMER_FREE && !timer_unschedule(timer, pair));
	switch (state_phase(pair.state)) {
	case TIMER_FREE:
		return UINT64_MAX;
	case TIMER_ARMED:
		/*
		 * If another thread has armed a new timer in this slot meanwhile,
		 * timer_instant_ns() may mix the old deadline with the new slack. The head of this
		 * file says why that does no harm.
		 */
		return u64_max(filed_ns, timer_instant_ns(timers, slot, pair));
	default:
		return filed_ns; /* a periodic timer's entry is for its next period */
	}
}

bool timer_drop(const struct timers *timers, uint32_t slot)
{
	struct timer *timer = &timers->pairs[slot];
	struct pair pair = timer_guess(timer);

	while (state_undelivered(pair.state)) {
		if (timer_change(timer, &pair, pair_unscheduled(pair)))
			return true;
	}
	return false;
}

/* ---- a consumer's decisions ---- */

struct timer_outcome timer_deliver_periodic(const struct timers *timers, struct timer_view *view,
                                            uint64_t now_ns, uint64_t *ret_count)
{
	struct timer *timer = &timers->pairs[handle_slot(view->handle)];
	struct pair before = view->pair;
	/*
	 * A PENDING timer's next period is in the schedule already, so the owner need not be told.
	 * An OVERDUE timer may have no schedule entry.
	 */
	bool submit = state_phase(before.state) == TIMER_OVERDUE;

	/*
	 * If the deadline is in the future, another thread has re-armed the timer since the state
	 * was loaded.
	 */
	if (before.deadline_ns > now_ns) {
		view->pair = timer_guess(timer);
		return timer_done(TIMER_CHANGED);
	}
	view->after =
		pair_rearmed(before, period_next_ns(before.deadline_ns, view->interval_ns, now_ns));
	if (submit)
		view->after = pair_claimed(view->after);
	*ret_count = period_count(before.deadline_ns, view->interval_ns, now_ns);
	test_point(TEST_POINT_CONSUME_BEFORE_REARM);
	if (!timer_change(timer, &view->pair, view->after))
		return timer_done(TIMER_CHANGED);
	return submit ? timer_submit(TIMER_DELIVERED, state_claimed(before.state))
	              : timer_done(TIMER_DELIVERED);
}

struct timer_outcome timer_give_back(const struct timers *timers, struct timer_view *view)
{
	struct timer *timer = &timers->pairs[handle_slot(view->handle)];
	bool is_claimed = state_claimed(view->pair.state);

	view->after = pair_claimed(pair_with_phase(view->pair, TIMER_ARMED));
	if (!timer_change(timer, &view->pair, view->after))
		return timer_done(TIMER_CHANGED);
	return timer_submit(TIMER_GIVEN_BACK, is_claimed);
}
