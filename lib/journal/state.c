/* SPDX-License-Identifier: MIT */
/*
 * Implements state.h: returns the open batch of a journal, and sets its timer.
 */
#include "journal/state.h"

struct write_batch *state_open_batch(struct group_commit *commit)
{
	return &commit->batches[commit->open];
}

/* By the present wall clock; UINT64_MAX: none. */
static uint64_t state_lease_end_ns(struct timerhub_journal *journal)
{
	const struct wall_timer_ops *ops = journal->timer->ops;
	uint64_t end_ns = agenda_first_ns(&journal->backlog.leases), now_ns;

	if (end_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = ops->monotonic_ns(journal->timer);
	end_ns = end_ns > now_ns ? end_ns - now_ns : 0;
	now_ns = ops->wall_ns(journal->timer);
	return end_ns < UINT64_MAX - now_ns ? now_ns + end_ns : UINT64_MAX;
}

/*
 * For who polls the fd, also at the end of the first lease: too early if the wall clock is set
 * forward before, and then a take finds nothing.
 */
void state_set_timer(struct timerhub_journal *journal)
{
	bool blocks = !journal->takers.shut && journal->takers.stopped_ns == UINT64_MAX;
	uint64_t due_ns = blocks ? agenda_first_ns(&journal->backlog.agenda) : 0;

	if (!journal->takers.timed && !journal->takers.polled)
		return;
	if (journal->takers.polled) {
		uint64_t end_ns = state_lease_end_ns(journal);

		due_ns = due_ns < end_ns ? due_ns : end_ns;
	}
	journal->timer->ops->set(journal->timer, due_ns);
}
