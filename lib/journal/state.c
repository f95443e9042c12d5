/* SPDX-License-Identifier: MIT */
/* The timer is set for who sleeps on it or polls it. */
#include "journal/state.h"

struct write_batch *state_open_batch(struct group_commit *commit)
{
	return &commit->batches[commit->open];
}

/* By the present wall clock; UINT64_MAX: none. */
static uint64_t state_lease_end_ns(struct timerhub_journal *journal)
{
	uint64_t left_ns =
		wall_timer_left_ns(journal->timer, agenda_first_ns(&journal->backlog.leases));
	uint64_t now_ns;

	if (left_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = journal->timer->ops->wall_ns(journal->timer);
	return left_ns < UINT64_MAX - now_ns ? now_ns + left_ns : UINT64_MAX;
}

/* Too early for a lease if the wall clock is set forward before: a take then finds nothing. */
void state_set_timer(struct timerhub_journal *journal)
{
	bool blocks = !journal->takers.shut && journal->takers.stopped_ns == UINT64_MAX;
	uint64_t due_ns = blocks ? agenda_first_ns(&journal->backlog.agenda) : 0;
	uint64_t end_ns;

	if (!journal->takers.timed && !journal->takers.polled)
		return;
	end_ns = state_lease_end_ns(journal);
	journal->timer->ops->set(journal->timer, due_ns < end_ns ? due_ns : end_ns);
}
