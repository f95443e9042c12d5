/* SPDX-License-Identifier: MIT */
/*
 * The state of an open store, and the functions that its sources call of each other. README.md in
 * this folder says how it works.
 */
#ifndef TIMERHUB_STORE_STATE_H
#define TIMERHUB_STORE_STATE_H

#include <errno.h>
#include <sys/stat.h>
#include <timerhub_store.h>

#include "base/clock.h"
#include "base/deadline_fd.h"
#include "base/eventcount.h"
#include "base/fork_check.h"
#include "base/histogram.h"
#include "base/lock.h"
#include "store/sql.h"

/* The op of a touch, which a program can only make by timerhub_store_touch(). */
#define STORE_TOUCH 7u
_Static_assert(STORE_TOUCH == DO_TOUCH && (int)TIMERHUB_STORE_PUT == DO_PUT,
               "change_make() uses an op as a statement");

enum { FILE_DATABASE, FILE_WAL, FILE_SHM, FILES };

struct files {
	char *names[FILES];
	struct stat found[FILES]; /* device and inode of each at the open */
	int wal_fd, shm_fd;
};

/* When a queue next has something to do. INT64_MAX means never. */
struct look {
	int64_t due_us;   /* when the next waiting task becomes due, on CLOCK_REALTIME */
	int64_t lease_us; /* when the next lease ends, on CLOCK_BOOTTIME */
};

enum { WORK_WAITS, WORK_LEADS, WORK_DONE };

/* A work item: what a thread asks of the leader, the one thread that uses the database now. */
struct work {
	struct work *next;
	struct timerhub_store_change *changes; /* what to change; NULL: this is a take */
	struct timerhub_store_task *tasks;     /* where a take stores the tasks */
	unsigned count;   /* of the changes, or of the tasks that a take has room for */
	bool is_submit;   /* lies on the heap; other items lie on the stack of a waiting thread */
	int64_t now_us;   /* the wall clock when the changes were asked for */
	struct look look; /* what becomes due next, if a take has found nothing */
	uint64_t deadline_ns; /* on CLOCK_MONOTONIC: the item fails if it has not begun by then */
	int result;           /* a negative errno, 0, or how many tasks a take has got */
	atomic_u32 state;     /* WORK_WAITS, WORK_LEADS or WORK_DONE; a futex */
};

struct timerhub_store {
	struct fork_check fork_check;
	atomic_u32 failed; /* 0, or EIO after the disk has failed: nothing is done any more */

	/* These fields are set when the store is opened, and never change. */
	char *queue;
	int64_t lease_us;
	uint64_t timeout_ns;
	uint32_t attempts_max, data_max;
	char boot[40]; /* identifies the machine's present boot */
	uint32_t frame_bytes;
	struct clock wall, since_boot;
	int64_t shift_us; /* what the process's time namespace adds to CLOCK_BOOTTIME */
	struct files files;

	/* Only the leader uses these fields, see struct work. */
	struct statements statements;
	bool has_turn;             /* this handle has the lock by which writers queue */
	uint64_t no_turn_until_ns; /* on CLOCK_MONOTONIC, see NO_TURN_NS */
	int64_t offset_us; /* CLOCK_REALTIME minus CLOCK_BOOTTIME, as timerhub_clock has it */

	/* The queue of waiting work items, and the statistics. `lock` protects both. */
	struct {
		struct lock lock;
		struct work *first, **last;
		bool is_led;
		struct timerhub_store_stats counts;
	} shared;

	/* Syncs of the WAL, and completions of timerhub_store_submit(). */
	struct {
		struct lock lock; /* held from a sync until its results are reported, in order */
		struct work *completed, **last_completed;
		atomic_u32 submits; /* that are in flight, or completed and not taken */
		int fd;
		bool is_rung;
	} synced;

	/* What waiting takers sleep on: one on epoll_fd, the others on the futex `is_taken`. */
	struct {
		atomic_u32 takes;      /* threads that are in a take */
		atomic_u32 is_taken;   /* 1: a taker watches epoll_fd */
		atomic_u64 stopped_us; /* when the store was stopped; UINT64_MAX before that */
		atomic_u32 is_polling; /* inotify was refused, so takers look every 20 ms */
		/* epoll_fd is readable after a commit, a due time or the end of a lease. */
		int epoll_fd, bell, inotify_fd;
		struct deadline_fd timer;
		/* Only the thread that sleeps on epoll_fd uses the following fields. */
		bool has_files;         /* inotify watches the files */
		int64_t next_due_us;    /* at which the next task becomes due, as far as is known */
		uint64_t held_since_ns; /* since when somebody has written; 0: nobody writes */
		uint64_t looked_ns, look_took_ns; /* when the last look ended, and its duration */
	} watch;

	/* The keeper, the store's own thread, checkpoints the WAL and makes submitted changes. */
	struct {
		pthread_t thread;
		struct eventcount work;
		struct lock lock; /* of the connection, which the statistics use too */
		struct statements statements;
		/* shared.lock protects the following fields. */
		bool quits;
		bool wants_restart;    /* the next leader begins the WAL anew */
		bool is_held_back;     /* a reader kept the last checkpoint from copying all */
		uint64_t wal_bytes;    /* bytes of valid frames in the WAL at the last commit */
		uint64_t copied_bytes; /* bytes of these when the last checkpoint began */
		uint64_t wakes_bytes;  /* a commit wakes the thread if wal_bytes is no less */
	} keeper;
};

/* Returns the time in whole us, rounded down, so that no task comes before its time. */
static inline int64_t store_now_us(const struct clock *clock)
{
	return (int64_t)(clock_now_ns(clock) / 1000);
}

/* Returns CLOCK_BOOTTIME without the offset of this process's time namespace. */
static inline int64_t store_boot_us(const struct timerhub_store *store)
{
	return store_now_us(&store->since_boot) - store->shift_us;
}

/* Rounds the end of a lease up to an even number, see IS_BY_DONE. */
static inline int64_t lease_even(int64_t end_us)
{
	return (end_us + 1) & ~INT64_C(1);
}

static inline int64_t store_us(uint64_t ns)
{
	return (int64_t)(ns / 1000 + (ns % 1000 != 0));
}

/* Limits a lease to 292 years, because its end must fit into 64 bits of ns. */
static inline int64_t store_lease_us(uint64_t lease_ns)
{
	return store_us(lease_ns < INT64_MAX ? lease_ns : INT64_MAX);
}

static inline void store_count(struct timerhub_store *store, uint64_t *counter, uint64_t more)
{
	lock_take(&store->shared.lock);
	*counter += more;
	lock_give(&store->shared.lock);
}

static inline int store_check(const struct timerhub_store *store)
{
	return store ? fork_check_result(&store->fork_check) : -EINVAL;
}

static inline bool store_has_failed(const struct timerhub_store *store)
{
	/* Relaxed, because sync_wal() checks it again with the lock held. */
	return u32_load_relaxed(&store->failed) != 0;
}

/* ---- files.c ---- */

/* Opens the files. `path` is SQLite's full name of the database, whose -wal and -shm exist. */
int files_open(struct files *files, const char *path);
void files_close(struct files *files);

/*
 * Returns whether all three files still have their names. Changes to a removed file would be lost.
 */
bool files_are_there(const struct files *files);
/* Returns whether `database` names the store's database. */
bool files_are_of(const struct files *files, const char *database);

/*
 * Writers queue for a file lock, the turn. Returns whether another handle has it or waits for it.
 */
bool files_have_queue(const struct files *files);

/*
 * Waits for the turn until `deadline_ns` on CLOCK_MONOTONIC, and returns whether the caller has it.
 */
bool files_take_turn(const struct files *files, uint64_t deadline_ns);
void files_give_turn(const struct files *files);

/* Returns whether any connection, in this process or another, holds the WAL's write lock. */
bool files_is_writing(const struct files *files);

/* Returns the pid of a process that holds one of the WAL's read locks, or 0. */
int files_reader(const struct files *files);

/*
 * Reserves room in the WAL, so that tasks can be ended on a full disk. Called with the write lock
 * held.
 */
void files_make_room(const struct files *files, uint32_t frame_bytes, uint64_t used_bytes);
bool files_have_room(const struct files *files, uint64_t used_bytes);
uint64_t files_wal_bytes(const struct files *files);

/* Returns whether the disk has no room for puts, if `wal_bytes` of the WAL are in use. */
bool files_disk_is_low(const struct files *files, uint64_t wal_bytes);

/* Sleeps for `ns`. Unlike nanosleep(2), it is no cancellation point. */
void files_nap(uint64_t ns);

/* ---- calls.c ---- */

/* What the changes of one transaction have in common. */
struct making {
	struct statements *statements;
	int is_low;      /* whether the disk has no room for puts; -1: not asked yet */
	bool is_refused; /* the last changes have a put, and the disk has no room for it */
	bool is_due;     /* a change makes a task due at once */
};

/* Makes all changes or none in an open transaction, which SQLite may end after an error. */
int changes_make(struct timerhub_store *store, struct making *making, int64_t now_us,
                 struct timerhub_store_change *changes, unsigned count);

/*
 * Adds changes, whose transaction ended with `result`, to `counts`. Called with shared.lock held.
 */
void changes_count(struct timerhub_store_stats *counts, const struct timerhub_store_change *changes,
                   unsigned count, int result);

/* ---- take.c, called by the leader ---- */

/*
 * Stores what comes next. Returns 1 if deliver_serve() has something to do now, 0, or a negative
 * errno.
 */
int deliver_look(struct timerhub_store *store, struct look *ret);

/* Hands out due tasks to the threads that wait for them, and ends old leases. */
int deliver_serve(struct timerhub_store *store, struct work *works);

/* After a reboot, ends all leases. */
int deliver_open(struct timerhub_store *store);

/* ---- writer.c ---- */

/*
 * Waits until a work item is done. Returns its result, or -EAGAIN if nobody began by its deadline.
 */
int writer_do(struct timerhub_store *store, struct work *work);

/* Queues a work item without waiting. A finished item is in the list synced.completed. */
void writer_submit(struct timerhub_store *store, struct work *work);

/* Begins a write transaction. Returns -EAGAIN if the write lock was not free by `deadline_ns`. */
int writer_begin(struct timerhub_store *store, uint64_t deadline_ns);

/* Commits the transaction, or rolls it back if `result` is an error. Returns 0 or the error. */
int writer_end(struct timerhub_store *store, int result);

/* Syncs the WAL, so that all that was committed before the call is on stable storage. */
int writer_sync_all(struct timerhub_store *store);

/* From now on changes and takes return -EIO, because a second sync can hide a failed one. */
void store_fail(struct timerhub_store *store);
/* Returns 0, or calls store_fail() and returns -EIO if a file was removed or replaced. */
int store_find_files(struct timerhub_store *store);

/* The main function of the keeper. Once `quits` is set, it empties the queue and returns. */
void *keeper_main(void *store);

/* Stores the length of the WAL after a commit. It is a callback for sqlite3_wal_hook(). */
int keeper_on_commit(void *context, sqlite3 *db, const char *name, int pages);

#endif
