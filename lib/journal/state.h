/* SPDX-License-Identifier: MIT */
/*
 * struct timerhub_journal, the whole state of an open journal: read and changed by delivery.h and
 * transaction.h, written to the disk by the leader (writer.h), on behalf of the public calls.
 */
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

struct timerhub_journal {
	struct disk *disk;
	struct wall_timer *timer;
	bool owns; /* the journal owns disk and timer, and closes both */
	/* with a keeper; not in tests where each caller writes its own batch */
	bool threaded;
	struct fork_check fork_check;
	uint64_t lease_ns;
	uint64_t data_bytes_max;
	uint32_t tasks_max;
	uint32_t data_max;
	uint32_t attempts_max;
	size_t batch_bytes;

	/* After open, only the leader uses log and compactor. */
	struct log log;
	struct compactor compactor;
	pthread_t thread; /* the thread of the keeper */

	/* The lock protects all fields below, except the numbers of eventcounts. */
	struct lock lock;
	struct tasks tasks;
	struct delivery_table deliveries;
	/* Pending tasks, ordered by due_ns. Tasks with a change in flight are left out. */
	struct agenda agenda;
	/* taken tasks by the end of their lease, without those with a change in flight */
	struct agenda leases;
	uint32_t arriving; /* number of tasks whose put is in flight */
	uint32_t parked;
	uint64_t next_id;
	struct write_batch batches[JOURNAL_BATCHES];
	unsigned open_batch; /* the index of the batch that callers fill */
	/* a finished batch's number and a flag (writer.c); batch N uses [N % JOURNAL_FINISHED] */
	struct eventcount finished[JOURNAL_FINISHED];
	/* Outcomes of timerhub_journal_submit() that no caller has taken. */
	struct completions completions;
	/* a leader owns log, compactor and the closed batch */
	bool writing;
	bool stopping;          /* the keeper ends when all records are written */
	bool flush;             /* the open batch must be written, even if no caller waits */
	bool compacts;          /* compaction is due, so the keeper must become the leader */
	bool called;            /* the keeper is awake, or about to be */
	struct eventcount work; /* eventcount on which the keeper sleeps */
	uint64_t flush_ns;      /* time at which the keeper sets `flush`, or UINT64_MAX */
	/* Eventcount on which takers sleep, except the taker that sleeps on the timer. */
	struct eventcount takers;
	bool timed;  /* a taker sleeps on the timer, for all takers */
	bool polled; /* a caller has the timer's fd and may poll it, so the timer is always set */
	/* of timerhub_journal_stop(), or UINT64_MAX; later only what was due then is delivered */
	uint64_t stopped_ns;
	/* closing, or stopped without a due task: each take returns -ESHUTDOWN */
	bool shut;
	uint32_t waiting; /* number of threads that sleep on `takers` */
	uint32_t inside;  /* number of threads inside timerhub_journal_take() */
	int failed;       /* copy of log.failed: 0, or -EIO if the log has failed */
	struct timerhub_journal_stats stats;
};

/* Returns the open batch, which callers fill. The caller holds the journal's lock. */
struct write_batch *state_open_batch(struct timerhub_journal *journal);

/* Returns the bucket of a duration in a histogram. */
static inline unsigned state_bucket(uint64_t ns)
{
	return ns > 1 ? 63 - (unsigned)__builtin_clzll(ns) : 0;
}

/*
 * To the first due time, or, if the fd is polled, a lease's end; at once after a stop; nothing if
 * no taker sleeps on it and nobody polls. Under the lock.
 */
void state_set_timer(struct timerhub_journal *journal);

#endif
