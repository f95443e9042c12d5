/* SPDX-License-Identifier: MIT */
/*
 * The journal: everything put together, and what the files of the calls need of each other.
 * journal.c opens and closes, change.c and request.c change tasks, take.c delivers them, ask.c
 * tells of them, writer.c brings changes to the disk, and cleaner.c keeps the disk small.
 *
 * Changes that count together are a request. Its caller puts it, and its records, into the batch
 * that is gathering; the writer writes that batch out and syncs it, applies all its requests to the
 * tasks in memory, and then wakes their callers, while the next batch gathers. So nothing is
 * delivered that is not stable, and a change that the disk refused has never happened.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <timerhub_journal.h>

#include "agenda.h"
#include "alarm.h"
#include "batch.h"
#include "cleaner.h"
#include "completions.h"
#include "hands.h"
#include "life.h"
#include "lock.h"
#include "log.h"
#include "tasks.h"
#include "ticket.h"

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

/* Zeroed fields are replaced by defaults, and all are checked. 0, -EINVAL, -E2BIG. */
int journal_read_config(struct timerhub_journal_config *ret_known,
                        const struct timerhub_journal_config *config);

/* Open on any disk and alarm, which stay the caller's; `config` from journal_read_config(). */
int journal_open(struct timerhub_journal **ret_journal, struct disk *disk, struct alarm *alarm,
                 const struct timerhub_journal_config *config, bool threaded);

/* ---- for all calls; the lock is held ---- */

/* Returns the batch that is gathering. */
struct batch *journal_gathering(struct timerhub_journal *journal);

/* Returns the bucket of a duration in a histogram. */
static inline unsigned journal_bucket(uint64_t ns)
{
	return ns > 1 ? 63 - (unsigned)__builtin_clzll(ns) : 0;
}

/*
 * Have the keeper write what has gathered, unless a thread writes: that one looks before it leaves.
 * Returns whether the keeper must be woken: then ticket_wake(&journal->work, 1), unlocked.
 */
bool journal_kick(struct timerhub_journal *journal);

/* As journal_kick(), within some milliseconds: for records that no caller waits for. */
bool journal_remind(struct timerhub_journal *journal);

/* Is there something to write? */
bool journal_must_write(struct timerhub_journal *journal);

/* If no thread writes, the calling one does: then journal_lead(), unlocked. */
bool journal_may_lead(struct timerhub_journal *journal);

/*
 * If the fd is polled or a taker waits, let the alarm ring for what is now the first task, or
 * lease.
 */
void journal_set_alarm(struct timerhub_journal *journal);

/* ---- take.c; the lock is held ---- */

/* Wake every taker that waits; each then looks whether to leave. Gives the lock away. */
void journal_wake_takers(struct timerhub_journal *journal);

/* Let a task be delivered at its time; or, after too many attempts, park it. */
void journal_let_come(struct timerhub_journal *journal, struct task *task);

/* Give back every task whose lease is over. */
void journal_end_leases(struct timerhub_journal *journal);

/* ---- request.c ---- */

/*
 * Find a delivery that may change its task. The lock is held. 0, with no change of the task in
 * flight; -ENOENT, -ESTALE: see timerhub_journal_done(), and the hand is let go. 1: a change of the
 * task is in flight, in the batch `*ret_batch`.
 */
int change_find_hand(struct timerhub_journal *journal, uint64_t id, uint64_t delivery,
                     struct hand **ret_hand, uint32_t *ret_batch);

/* Returns the bytes of all of a request's records. */
size_t request_bytes(const struct request *request);

/*
 * Let the changes gather. The lock is not held. 0, and the number of their batch; or why not, and
 * which one is refused. -EAGAIN: they would have to wait, and may not.
 */
int request_start(struct timerhub_journal *journal, struct request *request, bool may_wait,
                  unsigned *ret_index, uint32_t *ret_number);

/* ---- writer.c ---- */

/*
 * Write out what has gathered, on the calling thread, which journal_may_lead() let. Then a waiting
 * caller leads, or the keeper has what is left. `keeper`: this is the keeper, which compacts too.
 * The lock is not held.
 */
void journal_lead(struct timerhub_journal *journal, bool keeper);

/*
 * Wait until the batch of that number is finished; its thread may be asked to lead. The lock is not
 * held.
 */
void journal_await(struct timerhub_journal *journal, uint32_t number);

/* Write what has gathered, and compact a little. Was there anything? Where no thread is: tests. */
bool journal_pass(struct timerhub_journal *journal);

/* ---- keeper.c ---- */

int keeper_start(struct timerhub_journal *journal);

/* Returns when everything gathered is written out. */
void keeper_stop(struct timerhub_journal *journal);

#endif
