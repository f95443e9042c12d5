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

/*
 * The times at which the next task of a queue becomes due, and at which the next lease ends, in us.
 * INT64_MAX means never.
 */
struct look {
	int64_t due_us;   /* at which a waiting task becomes due, on CLOCK_REALTIME */
	int64_t lease_us; /* at which the lease of a taken task ends, on CLOCK_BOOTTIME */
};

enum { WORK_WAITS, WORK_LEADS, WORK_DONE };

/*
 * A work item: changes to make, or tasks to take. Threads queue items, and one thread at a time,
 * the leader, does all that are queued. An item lies on its waiting thread's stack.
 * timerhub_store_submit() does not wait, so its items lie on the heap.
 */
struct work {
	struct work *next;
	struct timerhub_store_change *changes; /* what to change; NULL: this is a take */
	struct timerhub_store_task *tasks;     /* where a take stores the tasks */
	unsigned count; /* of the changes, or of the tasks that a take has room for */
	bool is_submit;
	int64_t now_us;       /* the wall clock when the changes were asked for */
	struct look look;     /* what becomes due next, if a take has found nothing */
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

	/*
	 * Only the leader uses these fields. The leader is the one thread at a time that may use
	 * the connection to the database.
	 */
	struct statements statements;
	bool has_turn;             /* it holds the lock by which writers queue */
	uint64_t no_turn_until_ns; /* on CLOCK_MONOTONIC, see NO_TURN_NS */
	int64_t offset_us; /* CLOCK_REALTIME minus CLOCK_BOOTTIME, as timerhub_clock has it */

	/*
	 * The queue of work items that wait to be done in the next transaction, and the statistics.
	 * One lock protects both.
	 */
	struct {
		struct lock lock;
		struct work *first, **last;
		bool is_led;
		struct timerhub_store_stats counts;
	} shared;

	/*
	 * Held during a sync of the WAL and until its results are reported, so that completions
	 * come in the order of the transactions.
	 */
	struct {
		struct lock lock;
		struct work *completed, **last_completed;
		atomic_u32 submits; /* that are in flight, or completed and not taken */
		int fd;
		bool is_rung;
	} synced;

	/*
	 * What threads in timerhub_store_take() sleep on. One of them watches epoll_fd, which
	 * becomes readable at a commit, a due time or the end of a lease. The others sleep on the
	 * futex `is_taken`.
	 */
	struct {
		atomic_u32 takes;      /* threads that are in a take */
		atomic_u32 is_taken;   /* 1: some taker watches */
		atomic_u64 stopped_us; /* when the store was stopped; UINT64_MAX before that */
		atomic_u32 is_polling; /* inotify was refused, so takers look every 20 ms */
		int epoll_fd, bell, inotify_fd;
		struct deadline_fd timer;
		/* Only the thread that sleeps on epoll_fd uses the following fields. */
		bool has_files;         /* inotify watches the files */
		int64_t next_due_us;    /* at which the next task becomes due, as far as is known */
		uint64_t held_since_ns; /* since when somebody has written; 0: nobody writes */
		uint64_t looked_ns, look_took_ns; /* when the last look ended, and its duration */
	} watch;

	/*
	 * The store's own thread, the keeper. It copies the WAL into the database, and makes the
	 * changes that programs have queued with timerhub_store_submit().
	 */
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

/* Returns CLOCK_BOOTTIME in us, without the offset of the process's time namespace. */
static inline int64_t store_boot_us(const struct timerhub_store *store)
{
	return store_now_us(&store->since_boot) - store->shift_us;
}

/* Returns how many periods have begun by `now_us`: at least 1, and 1 if interval_us is 0. */
static inline int64_t store_periods(int64_t due_us, int64_t interval_us, int64_t now_us)
{
	return interval_us > 0 && now_us > due_us ? (now_us - due_us) / interval_us + 1 : 1;
}

/*
 * Rounds the end of a lease up to an even number, because the lowest bit of the column `lease` has
 * another meaning (IS_BY_DONE).
 */
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
	/* Relaxed is enough: see the head of writer.c. */
	return u32_load_relaxed(&store->failed) != 0;
}

/* ---- files.c ---- */

/* Opens the files. `path` is SQLite's full name of the database, whose -wal and -shm exist. */
int files_open(struct files *files, const char *path);
void files_close(struct files *files);

/*
 * Returns whether the database, its -wal and its -shm still have their names. If not, SQLite would
 * write to a removed file, and the changes would be lost.
 */
bool files_are_there(const struct files *files);
/* Returns whether `database` names the store's database. */
bool files_are_of(const struct files *files, const char *database);

/*
 * Writers queue for a file lock, so that each gets its turn. Returns whether another handle has
 * this lock or waits for it.
 */
bool files_have_queue(const struct files *files);

/*
 * Waits until `deadline_ns` on CLOCK_MONOTONIC for the lock by which writers queue. Returns whether
 * the caller got it. If not, the caller may write all the same: the lock only makes the order fair.
 */
bool files_take_turn(const struct files *files, uint64_t deadline_ns);
void files_give_turn(const struct files *files);

/* Returns whether any connection, in this process or another, holds the WAL's write lock. */
bool files_is_writing(const struct files *files);

/* Returns the pid of a process that holds one of the WAL's read locks, or 0. */
int files_reader(const struct files *files);

/*
 * Reserves disk space, so that tasks can be ended on a full disk, and syncs are faster. It appends
 * zeros to the WAL, where SQLite ignores them, and enlarges the -shm file. The caller holds the
 * write lock.
 */
void files_make_room(const struct files *files, uint32_t frame_bytes, uint64_t used_bytes);
bool files_have_room(const struct files *files, uint64_t used_bytes);
uint64_t files_wal_bytes(const struct files *files);

/*
 * Returns whether the disk is so full that no more tasks may be put. `wal_bytes` is how many bytes
 * of the WAL are in use.
 */
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

/*
 * Makes all changes or none, in an open transaction. Sets their `result`, and the `id` of new
 * tasks. After an error, SQLite may have ended the transaction.
 */
int changes_make(struct timerhub_store *store, struct making *making, int64_t now_us,
                 struct timerhub_store_change *changes, unsigned count);

/*
 * Adds changes to the statistics `counts`. `result` is what their transaction has ended with. The
 * caller holds shared.lock.
 */
void changes_count(struct timerhub_store_stats *counts, const struct timerhub_store_change *changes,
                   unsigned count, int result);

/* ---- take.c, called by the leader ---- */

/*
 * Stores when the next task becomes due and when the next lease ends. Returns 1 if a task is due
 * now, a lease is over, or the wall clock was set. Otherwise returns 0 or a negative errno.
 */
int deliver_look(struct timerhub_store *store, struct look *ret);

/*
 * Gives the due tasks to those work items that take tasks. Before that, ends the leases that are
 * over, and corrects the stored times if somebody has set the wall clock.
 */
int deliver_serve(struct timerhub_store *store, struct work *works);

/* Ends all leases if the machine was rebooted, because CLOCK_BOOTTIME has restarted at 0. */
int deliver_open(struct timerhub_store *store);

/* ---- writer.c ---- */

/*
 * Does a work item, or waits until another thread has done it. Returns its result, or -EAGAIN if
 * nobody has begun it by its deadline.
 */
int writer_do(struct timerhub_store *store, struct work *work);

/*
 * Queues a work item for the store's own thread. When it is done, it is in the list
 * synced.completed.
 */
void writer_submit(struct timerhub_store *store, struct work *work);

/*
 * Begins a transaction that holds the write lock. Returns 0, or -EAGAIN if the lock was not free by
 * `deadline_ns`, or another negative errno.
 */
int writer_begin(struct timerhub_store *store, uint64_t deadline_ns);

/* Commits the transaction, or rolls it back if `result` is an error. Returns 0 or the error. */
int writer_end(struct timerhub_store *store, int result);

/* Syncs the WAL, so that all that was committed before the call is on stable storage. */
int writer_sync_all(struct timerhub_store *store);

/*
 * From now on every change and every take returns -EIO. After a failed sync this is needed, because
 * the next sync can succeed although data was lost.
 */
void store_fail(struct timerhub_store *store);
/*
 * Checks whether the database, the -wal and the -shm are still there. Returns 0, or if one was
 * removed or replaced, makes the store fail and returns -EIO.
 */
int store_find_files(struct timerhub_store *store);

/*
 * The main function of the store's own thread. Once `quits` is set, the thread makes the changes
 * that timerhub_store_submit() has queued, and returns.
 */
void *keeper_main(void *store);

/* Stores the length of the WAL after a commit. It is a callback for sqlite3_wal_hook(). */
int keeper_on_commit(void *context, sqlite3 *db, const char *name, int pages);

#endif
