/* SPDX-License-Identifier: MIT */
/* struct timerhub_journal, in groups: each says which file may write it, and when. */
#ifndef JOURNAL_STATE_H
#define JOURNAL_STATE_H

#include <stdbool.h>
#include <timerhub_journal.h>

#include "base/eventcount.h"
#include "base/fork_check.h"
#include "base/lock.h"
#include "journal/agenda.h"
#include "journal/compactor.h"
#include "journal/completions.h"
#include "journal/delivery_table.h"
#include "journal/log.h"
#include "journal/tasks.h"
#include "journal/wall_timer.h"
#include "journal/write_batch.h"

#define JOURNAL_BATCHES 2
#define JOURNAL_FINISHED 4

/* The tasks and what is to come of each. transaction.c, delivery.c; under the lock. */
struct backlog {
	/* set by open.c */
	uint64_t lease_ns;
	uint64_t data_bytes_max;
	uint32_t tasks_max;
	uint32_t attempts_max;

	struct tasks tasks;
	struct delivery_table deliveries;
	/* pending tasks by due_ns, without those with a change in flight */
	struct agenda agenda;
	/* taken tasks by the end of their lease, without those with a change in flight */
	struct agenda leases;
	uint32_t arriving; /* tasks whose put is in flight */
	uint32_t parked;
	uint64_t taken;
	uint64_t next_id;
};

/* writer.c; under the lock, but for the closed batch and the eventcounts' numbers. */
struct group_commit {
	struct write_batch batches[JOURNAL_BATCHES];
	unsigned open; /* the index of the batch that callers fill */
	bool writing;  /* a leader owns log, compactor and the closed batch */
	bool flush;    /* the open batch must be written, even if no caller waits */
	/* a finished batch's number and a flag (writer.c); batch N uses [N % JOURNAL_FINISHED] */
	struct eventcount finished[JOURNAL_FINISHED];
};

/* keeper.c, and writer.c, which wakes it; under the lock, but for the thread. */
struct keeper {
	pthread_t thread;
	bool stopping;          /* it ends when all records are written */
	bool compacts;          /* compaction is due, so it must become the leader */
	bool called;            /* it is awake, or about to be */
	struct eventcount work; /* on which it sleeps */
	uint64_t flush_ns;      /* when it sets `flush`, or UINT64_MAX */
};

/* The threads in timerhub_journal_take(). take.c, and close; under the lock. */
struct takers {
	struct eventcount eventcount; /* where all sleep but the one that sleeps on the timer */
	uint32_t waiting;             /* threads that sleep there */
	uint32_t inside;              /* threads in a take */
	bool timed;                   /* one sleeps on the timer, for all */
	bool polled; /* a caller has the timer's fd and may poll it, so the timer is always set */
	/* closing, or stopped without a due task: each take returns -ESHUTDOWN */
	bool shut;
	/* of timerhub_journal_stop(), or UINT64_MAX; later only what was due then is delivered */
	uint64_t stopped_ns;
};

struct timerhub_journal {
	/* ---- set by open.c, then only read ---- */
	struct disk *disk; /* the leader uses it */
	struct wall_timer *timer;
	bool owns; /* the journal owns disk and timer, and closes both */
	/* with a keeper; not in tests where each caller writes its own batch */
	bool threaded;
	struct fork_check fork_check;
	uint32_t data_max;
	size_t batch_bytes;

	/* ---- the leader's, without the lock ---- */
	struct log log;
	struct compactor compactor; /* but for `pauses` */

	/* ---- each thread's that has the lock ---- */
	struct lock lock;
	struct backlog backlog;
	struct group_commit commit;
	struct keeper keeper;
	struct takers takers;
	/* Outcomes of timerhub_journal_submit() that no caller has taken. */
	struct completions completions;
	int failed; /* copy of log.failed: 0, or -EIO if the log has failed */
	struct timerhub_journal_stats stats;
};

/* Which callers fill. */
struct write_batch *state_open_batch(struct group_commit *commit);

/* Returns the bucket of a duration in a histogram. */
static inline unsigned state_bucket(uint64_t ns)
{
	return ns > 1 ? 63 - (unsigned)__builtin_clzll(ns) : 0;
}

/*
 * To the first due time or lease's end; at once after a stop; nothing if no taker sleeps on it and
 * nobody polls. Under the lock.
 */
void state_set_timer(struct timerhub_journal *journal);

#endif
