/* SPDX-License-Identifier: MIT */
/* See state.h. Under the journal's lock. */
#include "journal/state.h"

struct batch *state_gathering(struct timerhub_journal *journal)
{
	return &journal->batches[journal->gathering];
}

/* Returns when the first lease ends, on the wall clock as it is now; UINT64_MAX: none does. */
static uint64_t state_lease_end_ns(struct timerhub_journal *journal)
{
	const struct alarm_ops *ops = journal->alarm->ops;
	uint64_t end_ns = agenda_first_ns(&journal->leases), now_ns;

	if (end_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = ops->monotonic_ns(journal->alarm);
	end_ns = end_ns > now_ns ? end_ns - now_ns : 0;
	now_ns = ops->wall_ns(journal->alarm);
	return end_ns < UINT64_MAX - now_ns ? now_ns + end_ns : UINT64_MAX;
}

/*
 * A thread in take ends leases by itself. For a caller that polls the alarm rings then: early, if
 * the wall clock is set forward meanwhile, and its take finds nothing yet.
 */
void state_set_alarm(struct timerhub_journal *journal)
{
	bool blocks = !journal->shut && journal->stopped_ns == UINT64_MAX;
	uint64_t due_ns = blocks ? agenda_first_ns(&journal->agenda) : 0;

	if (!journal->led && !journal->polled)
		return;
	if (journal->polled) {
		uint64_t end_ns = state_lease_end_ns(journal);

		due_ns = due_ns < end_ns ? due_ns : end_ns;
	}
	journal->alarm->ops->set(journal->alarm, due_ns);
}
