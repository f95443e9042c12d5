/* SPDX-License-Identifier: MIT */
/*
 * The journal: everything put together, and what the files of the calls need of each other.
 * journal.c opens and closes, change.c puts, cancels, moves, acknowledges and gives back, take.c
 * delivers, writer.c brings changes to the disk, cleaner.c keeps the disk small.
 *
 * A change is a request. Its caller puts it, and its record, into the batch that is being gathered;
 * the writer writes that batch out and syncs it, applies all its requests to the tasks in memory,
 * and then wakes their callers, while the next batch has been gathering. So nothing is delivered
 * that is not stable, and a change that the disk refused has never happened.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <timerhub_journal.h>

#include "agenda.h"
#include "alarm.h"
#include "cleaner.h"
#include "life.h"
#include "lock.h"
#include "log.h"
#include "record.h"
#include "tasks.h"
#include "ticket.h"

#define JOURNAL_BATCHES 2
#define JOURNAL_FINISHED 4

/* A change that a caller waits for, on his stack; his again when it is done. */
struct request {
	struct request *next;
	struct task *task;
	enum record_type type;
	uint64_t due_ns;       /* the new one: put, move, retry */
	uint64_t lease_end_ns; /* where the task goes back to if the change is refused */
	size_t at;             /* its record in the batch */
	int result;            /* by the writer */
};

struct batch {
	uint8_t *bytes;
	size_t used;
	uint32_t records;
	uint32_t number;
	struct request *first; /* NULL: nobody waits for it, so it need not be synced */
	struct request *last;
};

struct timerhub_journal {
	struct disk *disk;
	struct alarm *alarm;
	bool owns;     /* disk and alarm are the real ones, to be closed with us */
	bool threaded; /* else every change writes out for itself: tests */
	struct life life;
	uint64_t lease_ns;
	uint32_t tasks_max;
	uint32_t data_max;
	size_t batch_bytes;

	/* The writer's alone, after open. */
	struct log log;
	struct cleaner cleaner;
	pthread_t thread;

	/* Everything below: under the lock, but for the tickets' numbers. */
	struct lock lock;
	struct tasks tasks;
	struct agenda agenda; /* pending, by due_ns, but those on their way to the disk */
	struct agenda leases; /* taken, by the end of the lease, likewise */
	uint32_t reserved;    /* tasks on their way in */
	uint64_t next_id;
	struct batch batches[JOURNAL_BATCHES];
	unsigned gathering;                       /* which of them callers write to */
	struct ticket finished[JOURNAL_FINISHED]; /* by number modulo: the last one finished */
	struct ticket work;                       /* what an idle writer waits for */
	bool idle;                                /* the writer waits, or is about to */
	bool stopping;                            /* the writer ends when all is written */
	struct ticket takers; /* what takers wait for, but for the one who leads */
	bool led;             /* a taker waits for the alarm, for all of them */
	bool closing;         /* takers are sent away */
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

/* ---- for callers; the lock is held ---- */

/*
 * Put a record into the batch that is being gathered, for a request or (NULL) for nobody. If there
 * is no room, a request waits for the next batch, giving the lock away meanwhile; nobody's record
 * is dropped. Returns the batch's number.
 */
uint32_t journal_gather(struct timerhub_journal *journal, struct request *request,
                        const struct record *record);

/* Must the writer be woken for what was gathered? Then ticket_wake(&journal->work, 1), unlocked. */
bool journal_kick(struct timerhub_journal *journal);

/* Let the alarm ring for what is now the first task. */
void journal_set_alarm(struct timerhub_journal *journal);

/* ---- for callers; the lock is not held ---- */

/* Wait until the batch of that number is finished. */
void journal_await(struct timerhub_journal *journal, uint32_t number);

/* ---- writer.c ---- */

/* Give back what leases are over for, write out what was gathered, clean. Was there anything? */
bool journal_pass(struct timerhub_journal *journal);

int journal_start_writer(struct timerhub_journal *journal);

/* Returns when everything gathered is written out. */
void journal_stop_writer(struct timerhub_journal *journal);

#endif
