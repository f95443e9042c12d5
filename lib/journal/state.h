/* SPDX-License-Identifier: MIT */
/*
 * The state of an open journal, all of it in one struct. delivery.h and transaction.h decide on the
 * state, the leader writes changes to the disk (writer.h), and the public calls use both. Each
 * layer knows only the layers below.
 */
#ifndef JOURNAL_STATE_H
#define JOURNAL_STATE_H

#include <stdbool.h>
#include <timerhub_journal.h>

#include "journal/agenda.h"
#include "journal/batch.h"
#include "journal/compactor.h"
#include "journal/completions.h"
#include "journal/deliveries.h"
#include "journal/eventcount.h"
#include "journal/life.h"
#include "journal/lock.h"
#include "journal/log.h"
#include "journal/tasks.h"
#include "journal/wall_timer.h"

#define JOURNAL_BATCHES 2
#define JOURNAL_FINISHED 4

struct timerhub_journal {
	struct disk *disk;
	struct alarm *alarm;
	bool owns;     /* disk and alarm are the real ones, to be closed with us */
	bool threaded; /* else every change writes out for itself: tests */
	struct life life;
	uint64_t lease_ns;
	uint64_t data_bytes_max;
	uint32_t tasks_max;
	uint32_t data_max;
	uint32_t attempts_max;
	size_t batch_bytes;

	/* After open: of the thread that leads. */
	struct log log;
	struct cleaner cleaner;
	pthread_t thread; /* the keeper */

	/* Everything below: under the lock, except the tickets' numbers. */
	struct lock lock;
	struct tasks tasks;
	struct hands hands;
	struct agenda agenda; /* pending, by due_ns, but those with a change in flight */
	struct agenda leases; /* taken, by the end of the lease, likewise */
	uint32_t arriving;    /* tasks whose put is in flight */
	uint32_t parked;
	uint64_t next_id;
	struct batch batches[JOURNAL_BATCHES];
	unsigned gathering;                       /* which of them callers write to */
	struct ticket finished[JOURNAL_FINISHED]; /* by number modulo: the last one finished */
	struct completions completions;           /* of requests that no thread waits for */
	bool writing;       /* a thread leads: log, cleaner and the batch written out are its own */
	bool stopping;      /* the keeper ends when all is written */
	bool hurry;         /* what has gathered is written though no caller waits for it */
	bool cleans;        /* the keeper has segments to clean */
	bool called;        /* the keeper is awake, or about to be */
	struct ticket work; /* what the keeper sleeps on */
	uint64_t look_ns;   /* when it looks whether to hurry; UINT64_MAX: not before a take */
	struct ticket takers; /* what takers wait for, except the one that leads */
	bool led;             /* a taker waits for the alarm, for all of them */
	bool polled;          /* a caller has asked for the fd: the alarm is always set */
	uint64_t stopped_ns;  /* what is due later is handed out no more; UINT64_MAX: not stopped */
	bool shut;            /* takers are sent away, for ever: closing, or stopped and empty */
	uint32_t waiting;     /* takers waiting for the ticket */
	uint32_t inside;      /* takers inside take */
	int failed;           /* the log's */
	struct timerhub_journal_stats stats;
};

/* Returns the batch that is gathering. The lock is held. */
struct batch *state_gathering(struct timerhub_journal *journal);

/* Returns the bucket of a duration in a histogram. */
static inline unsigned state_bucket(uint64_t ns)
{
	return ns > 1 ? 63 - (unsigned)__builtin_clzll(ns) : 0;
}

/*
 * If the fd is polled or a taker waits, let the alarm ring for what is now the first task, or
 * lease. The lock is held.
 */
void state_set_alarm(struct timerhub_journal *journal);

#endif
