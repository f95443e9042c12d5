/* SPDX-License-Identifier: MIT */
/*
 * See timer.h. Every function here is one decision about a timer: load the word, look at the phase
 * and the life, change the word by one compare-and-swap, tell what is left to do.
 *
 * Why a cancel is final: the delivery of an expiry and its cancel are compare-and-swaps from the
 * same undelivered word, so one of them fails, and its thread loads the word again. If that is the
 * consumer, it finds the slot free or in a later life, and returns no event. If it is the
 * canceller, it cancels what it finds, or returns -ENOENT if that life is over. From an armed word
 * the cancel races the owner's expiry in the same way: if the cancel wins, the owner puts no handle
 * into the outbox. A handle that is left there names a life that is over, and is passed over. A
 * periodic or kept timer lives on after a delivery; so a cancel may come just after one, and both
 * succeed: the call that delivers may then still be returning its event.
 *
 * Why no timer is lost although hardly a call tells the owner: if an armed slot is not claimed, it
 * is filed no later than its timer may expire, slack included. If a free slot is not, it is filed
 * no later than its word says, and nowhere if that is never. The owner reads the word at the filed
 * instant, or before it sleeps until then. If a change needs the owner to look earlier, the same
 * compare-and-swap claims the push of the slot (WORD_CLAIMED). The claimant pushes the slot into
 * the inbox, and then says so (WORD_PUSHED). A new life ignores a claim without WORD_PUSHED, since
 * the claimant may never run again, and pushes the slot itself.
 *
 * Why callers and consumers read records before the change: when the compare-and-swap succeeds,
 * what was read belongs to the life that was changed. That fails if a word comes back, after eight
 * changes of the tag; so they compare the life after the change, and undo what they did to a later
 * one.
 *
 * Every change is acq_rel, though not each needs both halves. Three are relaxed, and say why: they
 * pass on what the changes before them carry, as any read-modify-write does.
 *
 * Labels: [armed] timer_arm and every other change of a word → a load of the word: carries the cold
 *         record and the identity of that life, and the base that the owner has stored.
 *         [life] timer_arm → timer_last: carries that the life before is over, and which thread
 *         delivered it; → timer_expire, timer_read, timer_last: carries the cold record to a reader
 *         that was not told the handle.
 *
 * Models: tests/models/word.pml, tests/models/inbox.pml; for a queue that closes,
 * tests/models/close.pml.
 */
#include "timer.h"

#include <errno.h>

#include "probe.h"

/* ---- undoing ---- */

/*
 * Is the word what a change left as `after`, apart from what the owner does by itself? It may have
 * expired the timer, and looked at it if it lay in the inbox. A re-arm by timer_rearm() moves the
 * tag as that look does, but leaves the inbox flags. A timer_move() to the same tick changes
 * nothing, so it is not seen here, and what is undone is undone under it.
 */
static bool word_is_as_left(uint64_t word, uint64_t after, uint64_t identity)
{
	/*
	 * A slot that we made free is ours alone. But the owner may have looked at it, or found it
	 * where it was filed, and a claimant of an earlier life may have said that it has pushed.
	 */
	if (word_phase(after) == TIMER_FREE)
		return word_phase(word) == TIMER_FREE &&
		       (word_deadline(word) == word_deadline(after) ||
		        word_deadline(word) == TIMER_TICKS_NEVER);
	if (word_phase(after) == TIMER_ARMED && word_phase(word) == TIMER_PENDING)
		word = word_with_phase(word, TIMER_ARMED);
	return ((word ^ after) & ~WORD_INBOX_FLAGS) == 0 ||
	       (word_claimed(after) && word == word_looked_at(after, identity));
}

/*
 * Make a later life's word, which was changed from `before` to `after`, what it was, also if the
 * owner has looked at it or expired it since. An expiry is repeated. -ENOENT; or 0 if the word is
 * no longer as we left it: then it was our own timer's, which has ended since, or the later life's
 * that was re-armed since, and keeps that deadline. The two cannot be told apart.
 */
static struct timer_outcome timer_undo(struct timer_hot *hot, uint64_t before, uint64_t after)
{
	uint64_t identity = u64_load_relaxed(&hot->identity); /* for the fresh bit */
	uint64_t word = after;
	uint64_t undone;

	test_point(TEST_POINT_UNDO);
	do {
		if (!word_is_as_left(word, after, identity))
			return timer_done(0);
		undone = word_restored(word, before);
		/* The owner has stored our deadline for the base, and is to store one again. */
		if (word_fresh(after, identity) && !word_fresh(word, identity))
			undone |= WORD_FRESH;
	} while (!u64_cas_acq_rel(&hot->word, &word, undone));
	return timer_submit(-ENOENT, undone, word_pushed(word));
}

struct timer_outcome timer_confirm_or_undo(struct timer_hot *hot, uint64_t handle, uint64_t before,
                                           uint64_t after)
{
	return timer_same_life(hot, handle) ? timer_done(0) : timer_undo(hot, before, after);
}

/* ---- a caller's decisions ---- */

struct timer_outcome timer_arm(const struct timers *timers, uint32_t slot,
                               const struct timer_arming *arming, uint64_t *ret_handle)
{
	struct timer_hot *hot = &timers->hot[slot];
	struct timer_cold *cold = &timers->cold[slot];
	uint64_t before = u64_load_relaxed(&hot->identity); /* ours, like the stores below */
	uint64_t generation = generation_next(
		before == 0 ? timers->first_generation : identity_generation(before), arming->kept);
	uint64_t flags = (arming->interval_ns > 0 ? IDENTITY_PERIODIC : 0) |
	                 (arming->slack_ns > 0 ? IDENTITY_SLACK : 0);
	uint64_t ticks = ticks_from_ns(arming->deadline_ns);
	uint64_t word, armed;
	bool there;

	u64_store_relaxed(&cold->data, arming->data);
	u64_store_relaxed(&cold->fn, arming->fn);
	u64_store_relaxed(&cold->interval_ns, arming->interval_ns);
	u64_store_relaxed(&cold->queue_slack, queue_slack_make(arming->queue, arming->slack_ns));
	if (arming->interval_ns > 0)
		u64_store_relaxed(&timers->periods[slot].first_ns, arming->deadline_ns);
	u64_store_release(&hot->identity, identity_make(generation, flags)); /* [life] */
	if (ret_handle)
		*ret_handle = handle_make(generation, slot);
	/* Here, where the handle is in a register; if the caller wants none, one `or` makes it. */
	probe3(arm, handle_make(generation, slot), arming->deadline_ns, arming->interval_ns);
	test_point(TEST_POINT_ARM_BEFORE_PUBLISH);
	/*
	 * Others may still change the free word: the owner looks, or finds it where it was filed; a
	 * claimant of an earlier life says that it has pushed.
	 */
	word = u64_load_relaxed(&hot->word);
	do {
		there = word_covers(word, ticks);
		armed = there ? word_armed_there(word, ticks) : word_armed(word, ticks);
	} while (!u64_cas_acq_rel(&hot->word, &word, armed)); /* [armed] */
	return there ? timer_done(0) : timer_submit(0, armed, word_pushed(word));
}

struct timer_outcome timer_rearm(const struct timers *timers, uint64_t handle, uint64_t deadline_ns)
{
	struct timer_hot *hot = &timers->hot[handle_slot(handle)];
	uint64_t word = u64_load_acquire(&hot->word); /* [armed] */
	struct timer_outcome outcome;
	uint64_t rearmed;
	bool submit;

	do {
		uint64_t identity = u64_load_relaxed(&hot->identity);
		bool periodic = identity_periodic(identity);

		if (!timer_is(word, identity, handle))
			return timer_done(-ENOENT);
		if (periodic && !period_suits(deadline_ns))
			return timer_done(-ERANGE);
		/*
		 * Touched: a consumer that has read the word, and the base of the periods, must not
		 * find the word unchanged when it comes back to the same deadline.
		 */
		rearmed = word_rearmed(word_touched(word), periodic ? ticks_fresh(deadline_ns)
		                                                    : ticks_from_ns(deadline_ns));
		/*
		 * The owner has an armed timer filed no later than this, and need not be told; but
		 * it is to store the new base of a periodic one.
		 */
		submit = word_phase(word) != TIMER_ARMED || periodic ||
		         word_deadline(rearmed) < word_deadline(word);
		if (submit)
			rearmed |= WORD_CLAIMED;
		test_point(TEST_POINT_REARM_BEFORE_CAS);
	} while (!u64_cas_acq_rel(&hot->word, &word, rearmed));
	outcome = timer_confirm_or_undo(hot, handle, word, rearmed);
	if (outcome.result < 0)
		return outcome;
	probe2(rearm, handle, deadline_ns);
	if (submit)
		outcome = timer_submit(0, rearmed, word_claimed(word));
	outcome.result = word_idles(word) && handle_kept(handle) ? 1 : 0;
	return outcome;
}

/*
 * The word of a timer that is cancelled. The owner reads the word when the instant comes under
 * which the slot is filed: if that is free, it files the slot no more; if armed, under its instant.
 * The canceller tells the owner in two cases only, where the word does not say when that is: slack
 * may put the filing off, and an expired periodic timer is filed for its next period.
 */
static uint64_t word_cancelled(uint64_t word, uint64_t identity)
{
	if (word_phase(word) == TIMER_ARMED)
		return word_with_phase(word, TIMER_FREE) |
		       (identity_has_slack(identity) ? WORD_CLAIMED : 0);
	return word_unfiled(word) |
	       (word_phase(word) == TIMER_PENDING && identity_periodic(identity) ? WORD_CLAIMED
	                                                                         : 0);
}

struct timer_outcome timer_cancel(const struct timers *timers, uint64_t handle, uint32_t queue)
{
	uint32_t slot = handle_slot(handle);
	struct timer_hot *hot = &timers->hot[slot];
	struct timer_outcome outcome;
	uint64_t word, dead;

	__builtin_prefetch(&timers->cold[slot], 1); /* to be written when the slot is put back */
	word = u64_load_acquire(&hot->word);        /* [armed] */
	do {
		uint64_t identity = u64_load_relaxed(&hot->identity);
		uint64_t queue_slack = queue != TIMER_ANY_QUEUE
		                               ? u64_load_relaxed(&timers->cold[slot].queue_slack)
		                               : 0;

		if (!timer_is(word, identity, handle) ||
		    (queue != TIMER_ANY_QUEUE && queue_slack_queue(queue_slack) != queue))
			return timer_done(-ENOENT);
		dead = word_cancelled(word, identity);
		test_point(TEST_POINT_CANCEL_BEFORE_CAS);
	} while (!u64_cas_acq_rel(&hot->word, &word, dead));
	outcome = timer_confirm_or_undo(hot, handle, word, dead);
	if (outcome.result < 0)
		return outcome;
	probe1(cancel, handle);
	/* If the slot is in the inbox already: a dead timer is nothing to be in time for. */
	return word_claimed(dead) && !word_claimed(word) ? timer_submit(0, dead, false)
	                                                 : timer_done(0);
}

/* ---- reading ---- */

bool timer_read(const struct timers *timers, uint32_t slot, struct timer_view *view,
                uint32_t *ret_queue)
{
	const struct timer_hot *hot = &timers->hot[slot];
	const struct timer_cold *cold = &timers->cold[slot];

	/* Acquire: its life may be a later one than the word's, with the same word. */
	view->identity = u64_load_acquire(&hot->identity); /* [life] */
	if (word_phase(view->word) == TIMER_FREE)
		return false;
	view->data = u64_load_relaxed(&cold->data);
	view->handle = handle_make(identity_generation(view->identity), slot);
	view->deadline_ns = timer_deadline_ns(view->word, view->identity);
	view->fn = u64_load_relaxed(&cold->fn);
	view->interval_ns = u64_load_relaxed(&cold->interval_ns);
	*ret_queue = queue_slack_queue(u64_load_relaxed(&cold->queue_slack));
	return true;
}

bool timer_unchanged(struct timer_hot *hot, struct timer_view *view)
{
	/* Not a load: what timer_read() read is to come before it. */
	return u64_cas_acq_rel(&hot->word, &view->word, view->word) &&
	       timer_same_life(hot, view->handle);
}

uint64_t timer_last(const struct timers *timers, uint32_t slot)
{
	uint64_t identity = u64_load_acquire(&timers->hot[slot].identity); /* [life] */

	return handle_make(identity_generation(identity), slot);
}

bool timer_deadline(const struct timers *timers, uint64_t handle, uint64_t *ret_deadline_ns)
{
	const struct timer_hot *hot = &timers->hot[handle_slot(handle)];
	uint64_t word = u64_load_acquire(&hot->word); /* [armed] */
	uint64_t identity = u64_load_relaxed(&hot->identity);

	*ret_deadline_ns = timer_deadline_ns(word, identity);
	return timer_is(word, identity, handle);
}

/* ---- the owner's decisions ---- */

/*
 * A re-armed timer's periods begin at its new deadline. A consumer may read the base while the
 * owner stores it, if it loaded an older pending word; its compare-and-swap then fails.
 */
static void timer_move_base(struct timer_period *period, uint64_t word, uint64_t identity)
{
	/* Relaxed: the change that makes the timer pending carries both. [armed] */
	u64_store_relaxed(&period->moved_ns, timer_deadline_ns(word, identity));
	u64_store_relaxed(&period->moved_life, identity);
}

bool timer_look(const struct timers *timers, uint32_t slot, uint64_t *ret_at_ns)
{
	struct timer_hot *hot = &timers->hot[slot];
	uint64_t word = u64_load_acquire(&hot->word); /* [armed] */
	uint64_t identity;

	/*
	 * The change confirms that the identity belongs to the word's life. The slack is read after
	 * it, and may be a later life's: then that life has claimed a push, and is looked at again.
	 */
	do {
		identity = u64_load_relaxed(&hot->identity);
	} while (!u64_cas_acq_rel(&hot->word, &word, word_looked_at(word, identity)));
	switch (word_phase(word)) {
	case TIMER_FREE:
		*ret_at_ns = UINT64_MAX;
		return true;
	case TIMER_ARMED:
		if (word_fresh(word, identity))
			timer_move_base(&timers->periods[slot], word, identity);
		*ret_at_ns = timer_instant_ns(timers, slot, word, identity);
		return true;
	case TIMER_PENDING:
	case TIMER_PARKED:
		break; /* expired since it was put into the inbox */
	}
	return false;
}

/*
 * The owner has found a free slot where it is filed, and files it no more: the word is to say so.
 * False if the word has changed. If the slot is in the inbox, the look will do it. Relaxed: an
 * armer that finds the slot unfiled reads nothing of the owner's, and pushes it.
 */
static bool timer_unfile(struct timer_hot *hot, uint64_t word)
{
	return word_claimed(word) || word_deadline(word) == TIMER_TICKS_NEVER ||
	       u64_cas_relaxed(&hot->word, &word, word_unfiled(word));
}

enum timer_turn timer_expire(const struct timers *timers, uint32_t slot, uint64_t by_ns,
                             struct timer_expiry *ret_expiry)
{
	struct timer_hot *hot = &timers->hot[slot];
	const struct timer_cold *cold = &timers->cold[slot];

	for (;;) {
		uint64_t word = u64_load_acquire(&hot->word); /* [armed] */
		uint64_t pending = word_with_phase(word, TIMER_PENDING);
		uint64_t identity = u64_load_acquire(&hot->identity); /* [life] */

		ret_expiry->queue_slack = u64_load_relaxed(&cold->queue_slack);
		ret_expiry->interval_ns = u64_load_relaxed(&cold->interval_ns);
		ret_expiry->identity = identity;
		ret_expiry->deadline_ns = timer_deadline_ns(word, identity);
		ret_expiry->at_ns = timer_slacken_ns(ret_expiry->deadline_ns,
		                                     queue_slack_slack_ns(ret_expiry->queue_slack));
		if (word_phase(word) == TIMER_PARKED)
			return TIMER_IS_NEITHER;
		if (word_phase(word) == TIMER_FREE) {
			if (timer_unfile(hot, word))
				return TIMER_IS_NEITHER;
			continue;
		}
		if (word_phase(word) == TIMER_PENDING) {
			/* Not delivered in a whole period: the delivery will have it filed. */
			if (u64_cas_acq_rel(&hot->word, &word, word_with_phase(word, TIMER_PARKED)))
				return TIMER_IS_NEITHER;
			continue;
		}
		/* Re-armed: the slot is in the inbox, or on its way there. */
		if (word_fresh(word, identity))
			return TIMER_IS_NEITHER;
		if (ret_expiry->at_ns > by_ns)
			return TIMER_IS_LATER;
		test_point(TEST_POINT_OWNER_BEFORE_CAS);
		if (!u64_cas_acq_rel(&hot->word, &word, pending))
			continue;
		if (u64_load_relaxed(&hot->identity) == identity)
			return TIMER_IS_PENDING;
		/*
		 * Not the life that we read of: leave it as it was, with what its claimant may
		 * have added since, and read again. Relaxed: only the word counts here, and what
		 * it carried before it still carries, as of any read-modify-write.
		 */
		while (word_phase(pending) == TIMER_PENDING &&
		       !u64_cas_relaxed(&hot->word, &pending,
		                        word_with_phase(pending, TIMER_ARMED))) {
		}
	}
}

uint64_t timer_true_ns(const struct timers *timers, uint32_t slot, uint64_t filed_ns)
{
	struct timer_hot *hot = &timers->hot[slot];
	uint64_t word, identity;

	do {
		word = u64_load_acquire(&hot->word); /* [armed] */
	} while (word_phase(word) == TIMER_FREE && !timer_unfile(hot, word));
	if (word_phase(word) == TIMER_FREE)
		return UINT64_MAX;
	/*
	 * Relaxed: the word may be of an earlier life than this. If the next life was armed in its
	 * place, that is due no earlier, so what is filed by the old word is early; else the slot
	 * is in the inbox.
	 */
	identity = u64_load_relaxed(&hot->identity);
	if (word_phase(word) != TIMER_ARMED)
		return filed_ns; /* of a periodic timer: the next period */
	if (word_fresh(word, identity))
		return UINT64_MAX;
	return u64_max(filed_ns, timer_instant_ns(timers, slot, word, identity));
}

uint64_t timer_next_period_ns(const struct timers *timers, uint32_t slot,
                              const struct timer_expiry *expiry, uint64_t now_ns)
{
	uint64_t base_ns = period_base_ns(&timers->periods[slot], expiry->identity);
	uint64_t next_ns = period_next_ns(base_ns, expiry->interval_ns, now_ns);

	return timer_slacken_ns(next_ns, queue_slack_slack_ns(expiry->queue_slack));
}

bool timer_drop(const struct timers *timers, uint32_t slot)
{
	struct timer_hot *hot = &timers->hot[slot];
	/*
	 * Relaxed, both: the owner made it pending, and no other thread can; no record is read. The
	 * next armer has the end of this life by [free].
	 */
	uint64_t word = u64_load_relaxed(&hot->word);

	while (word_phase(word) == TIMER_PENDING) {
		test_point(TEST_POINT_OWNER_BEFORE_CAS);
		if (u64_cas_relaxed(&hot->word, &word, word_unfiled(word)))
			return true;
	}
	return false;
}

/* ---- a consumer's decisions ---- */

struct timer_outcome timer_deliver_periodic(const struct timers *timers, struct timer_view *view,
                                            uint64_t now_ns, bool clock_goes_back,
                                            uint64_t *ret_count)
{
	uint32_t slot = handle_slot(view->handle);
	struct timer_hot *hot = &timers->hot[slot];
	uint64_t base_ns = period_base_ns(&timers->periods[slot], view->identity);
	uint64_t next_ns = period_next_ns(base_ns, view->interval_ns, now_ns);
	uint64_t before = view->word;
	uint64_t rearmed = word_rearmed(before, ticks_from_ns(next_ns));
	/* Else the owner has it filed for a period that is no later. */
	bool submit = clock_goes_back || word_phase(before) == TIMER_PARKED;
	struct timer_outcome outcome = timer_done(TIMER_DELIVERED);

	if (submit)
		rearmed |= WORD_CLAIMED;
	*ret_count = period_count(base_ns, view->interval_ns, view->deadline_ns, now_ns);
	test_point(TEST_POINT_CONSUME_BEFORE_REARM);
	if (!u64_cas_acq_rel(&hot->word, &view->word, rearmed))
		return timer_done(TIMER_CHANGED);
	if (!timer_same_life(hot, view->handle)) {
		/*
		 * Our timer was cancelled: before our change, which hit a later life, or after it,
		 * and the slot lives again. No event is returned.
		 */
		outcome = timer_undo(hot, before, rearmed);
		submit &= outcome.result == 0;
		outcome.result = TIMER_CHANGED;
	}
	return submit ? timer_submit(outcome.result, rearmed, word_claimed(before)) : outcome;
}

struct timer_outcome timer_give_back(struct timer_hot *hot, struct timer_view *view)
{
	uint64_t before = view->word;
	uint64_t rearmed = word_rearmed(before, word_deadline(before)) | WORD_CLAIMED;
	struct timer_outcome outcome;

	if (!u64_cas_acq_rel(&hot->word, &view->word, rearmed))
		return timer_done(TIMER_CHANGED);
	outcome = timer_confirm_or_undo(hot, view->handle, before, rearmed);
	if (outcome.result == 0)
		outcome = timer_submit(0, rearmed, word_claimed(before));
	outcome.result = TIMER_GIVEN_BACK;
	return outcome;
}

struct timer_outcome timer_deliver_other(const struct timers *timers, uint32_t queue,
                                         struct timer_view *view, uint64_t before, uint64_t after)
{
	uint32_t slot = handle_slot(view->handle);
	struct timer_hot *hot = &timers->hot[slot];
	struct timer_outcome outcome;

	view->word = before;
	/* A slot that was made free is ours: deliver, if a one-shot of this queue, not kept. */
	if (!handle_kept(view->handle)) {
		uint64_t queue_slack = u64_load_relaxed(&timers->cold[slot].queue_slack);
		uint64_t identity = u64_load_relaxed(&hot->identity);
		uint64_t handle = handle_make(identity_generation(identity), slot);

		if (queue_slack_queue(queue_slack) == queue && !identity_periodic(identity) &&
		    !handle_kept(handle) && timer_view_expiry(timers, handle, view))
			return timer_done(TIMER_DELIVERED);
	}
	outcome = timer_undo(hot, before, after);
	outcome.result = TIMER_CHANGED; /* and the handle is found stale */
	return outcome;
}
