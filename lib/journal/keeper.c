/* SPDX-License-Identifier: MIT */
/*
 * The journal's own thread leads for work that nobody waits for: submits, records of deliveries,
 * compaction; and it ends leases, as takers do too, since it may be waiting for the disk. Tested by
 * tests/journal/test_writer.c.
 */
#define _GNU_SOURCE
#include "journal/keeper.h"

#include "base/thread.h"
#include "journal/delivery.h"
#include "journal/writer.h"

#define THREAD_NAME "timerhub-keeper"

/* Under the lock, which is free meanwhile. */
static void keeper_sleep(struct timerhub_journal *journal)
{
	uint64_t lease_ns = agenda_first_ns(&journal->backlog.leases);
	uint64_t flush_ns = journal->keeper.flush_ns;
	uint64_t timeout_ns =
		wall_timer_left_ns(journal->timer, lease_ns < flush_ns ? lease_ns : flush_ns);
	uint32_t number = eventcount_number(&journal->keeper.work);

	journal->keeper.called = false;
	lock_give(&journal->lock);
	if (timeout_ns > 0)
		eventcount_wait(&journal->keeper.work, number, timeout_ns);
	lock_take(&journal->lock);
	delivery_end_leases(journal);
	if (journal->timer->ops->monotonic_ns(journal->timer) < journal->keeper.flush_ns)
		return;
	journal->keeper.flush_ns = UINT64_MAX;
	journal->commit.flush = state_open_batch(&journal->commit)->used > 0;
}

static void *keeper_main(void *argument)
{
	struct timerhub_journal *journal = argument;

	thread_begin();
	(void)pthread_setname_np(pthread_self(), THREAD_NAME);
	lock_take(&journal->lock);
	for (;;) {
		bool works = journal->keeper.compacts || writer_must_write(journal);

		if (works && writer_may_lead(journal)) {
			lock_give(&journal->lock);
			writer_lead(journal, true);
			lock_take(&journal->lock);
			continue;
		}
		if (journal->keeper.stopping)
			break;
		keeper_sleep(journal);
	}
	lock_give(&journal->lock);
	return NULL;
}

int keeper_start(struct timerhub_journal *journal)
{
	/* an earlier process may have left segments to compact */
	journal->keeper.compacts = true;
	journal->keeper.called = true;
	return thread_create(&journal->keeper.thread, keeper_main, journal);
}

void keeper_stop(struct timerhub_journal *journal)
{
	lock_take(&journal->lock);
	journal->keeper.stopping = true;
	(void)writer_kick(journal);
	lock_give(&journal->lock);
	eventcount_wake(&journal->keeper.work, 1);
	(void)pthread_join(journal->keeper.thread, NULL);
}

void keeper_pause_compaction(struct timerhub_journal *journal)
{
	lock_take(&journal->lock);
	journal->compactor.pauses++;
	lock_give(&journal->lock);
}

void keeper_resume_compaction(struct timerhub_journal *journal)
{
	bool wake;

	lock_take(&journal->lock);
	journal->compactor.pauses--;
	journal->keeper.compacts = true;
	wake = writer_kick(journal);
	lock_give(&journal->lock);
	if (wake)
		eventcount_wake(&journal->keeper.work, 1);
}
