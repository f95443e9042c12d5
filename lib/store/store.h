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

/* the op of a touch, which is no change that a program can make in a commit */
#define STORE_TOUCH 7u
_Static_assert(STORE_TOUCH == TIMERHUB_STORE_PARK + 1, "change_check() takes the ops in between");
enum { FILE_DATABASE, FILE_WAL, FILE_SHM, FILES };

struct files {
	char *names[FILES];
	struct stat found[FILES]; /* device and inode of each at the open */
	int wal_fd, shm_fd;
};

/* The earliest times of a queue, in us; INT64_MAX if there is none. */
struct look {
	int64_t due_us;   /* earliest due time of a waiting task, on CLOCK_REALTIME */
	int64_t lease_us; /* earliest end of a lease, on CLOCK_BOOTTIME */
};

enum { WORK_WAITS, WORK_LEADS, WORK_DONE };
enum work_kind { WORK_CHANGES, WORK_TAKE, WORK_CALL };

/*
 * What a thread wants the leader to do, the one thread at a time that uses the connection. It lies
 * on the stack of that thread, or it is a submit, for which nobody waits.
 */
struct work {
	struct work *next;
	enum work_kind kind;
	bool is_submit;
	unsigned count; /* of the changes, or of the tasks that a take has room for */
	struct timerhub_store_change *changes; /* of WORK_CHANGES */
	int64_t now_us;                        /* when the changes were asked for */
	struct timerhub_store_task *tasks;     /* of WORK_TAKE */
	struct look look; /* of WORK_TAKE: what the leader saw if nothing was due */
	void (*call)(struct timerhub_store *, void *); /* of WORK_CALL */
	void *context;
	uint64_t deadline_ns; /* until when the work must have begun, on CLOCK_MONOTONIC */
	int result;           /* a negative errno, 0, or how many tasks a take has got */
	atomic_u32 state;     /* a futex */
};

/*
 * Counters for the statistics. Whoever does a thing counts it, and nobody acts on the numbers, so
 * all accesses are relaxed.
 */
struct counts {
	atomic_u64 done[STORE_TOUCH + 1]; /* changes, by their op */
	atomic_u64 delivered, leases_over, commits, syncs, checkpoints, disk_full;
	atomic_u64 lateness[TIMERHUB_LATENESS_BUCKETS], sync_ns[TIMERHUB_LATENESS_BUCKETS];
};

struct timerhub_store {
	struct fork_check fork_check;
	struct counts counts;
	atomic_u32 failed; /* 0, or EIO if the disk has failed and nothing is done any more */

	/* These are set by the open and never changed. */
	char *queue;
	int64_t lease_us;
	uint64_t timeout_ns;
	uint32_t attempts_max, data_max;
	char boot[40]; /* identifies the machine's present boot */
	uint32_t frame_bytes;
	struct clock wall, since_boot;
	struct files files;

	/* These belong to the leader. */
	struct statements statements;
	bool has_turn;
	uint64_t commits;  /* how many transactions it has made */
	int64_t offset_us; /* CLOCK_REALTIME minus CLOCK_BOOTTIME, as timerhub_clock has it */

	struct {
		struct lock lock;
		struct work *first, **last;
		bool is_led;
	} queue_of_work;

	/* Whoever has the lock syncs, and hands out the completions before the next one syncs. */
	struct {
		struct lock lock;
		uint64_t commits; /* how many of the leader's transactions are on stable storage */
		struct work *completed, **last_completed;
		atomic_u32 submits; /* that are in flight, or completed and not taken */
		int fd;
		bool is_rung;
	} synced;

	/*
	 * What takers that find nothing sleep on. One of them watches: it sleeps on epoll_fd, which
	 * tells of commits by anybody, of the next due time, and of the end of a lease. The others
	 * sleep on the futex `is_taken`.
	 */
	struct {
		atomic_u32 takes;      /* threads that are in a take */
		atomic_u32 is_taken;   /* 1: some taker watches */
		atomic_u64 stopped_us; /* when the store was stopped; UINT64_MAX before that */
		atomic_u32 is_polling; /* inotify was refused, so takers look every 20 ms */
		int epoll_fd, bell, inotify_fd;
		struct deadline_fd due, again;
		/* The watcher's own: */
		bool has_files; /* inotify watches the files */
		int64_t next_due_us;
		uint64_t held_since_ns; /* since when it has seen the write lock held; 0: free */
		uint64_t looked_ns, look_took_ns;
	} watch;

	/* The store's own thread. */
	struct {
		struct eventcount work;
		atomic_u32 quits;
		pthread_t thread;
		sqlite3 *db;
		atomic_u64 wal_bytes; /* bytes of valid frames in the WAL at the last commit */
		atomic_u64 checkpointed_bytes; /* bytes of these when the last checkpoint began */
		atomic_u64 wakes_bytes;  /* a commit wakes the thread if wal_bytes is no less */
		atomic_u32 is_held_back; /* a reader kept the last checkpoint from copying all */
	} keeper;
};

/* Cut off, so that a task whose due time is rounded up is never early. */
static inline int64_t store_now_us(const struct clock *clock)
{
	return (int64_t)(clock_now_ns(clock) / 1000);
}

static inline int64_t store_us(uint64_t ns)
{
	return (int64_t)(ns / 1000 + (ns % 1000 != 0));
}

/* Half of what a lease can be is as good as for ever, and its end in ns still fits. */
static inline int64_t store_lease_us(uint64_t lease_ns)
{
	return store_us(lease_ns < INT64_MAX ? lease_ns : INT64_MAX);
}

static inline void store_count(atomic_u64 *counter, uint64_t more)
{
	(void)u64_fetch_add_relaxed(counter, more);
}

static inline int store_check(const struct timerhub_store *store)
{
	return store ? fork_check_result(&store->fork_check) : -EINVAL;
}

static inline bool store_has_failed(const struct timerhub_store *store)
{
	/* relaxed: whoever does not see it yet gets the error of the disk by itself */
	return u32_load_relaxed(&store->failed) != 0;
}

/* ---- files.c ---- */

/* Opens the files. `path` is SQLite's full name of the database, whose -wal and -shm exist. */
int files_open(struct files *files, const char *path);
void files_close(struct files *files);

/*
 * Returns whether the files still have their names, because SQLite would go on to write to files
 * that were removed.
 */
bool files_are_there(const struct files *files);
bool files_are_of(const struct files *files, const char *database);

/* Returns whether other handles, of any process, have the turn to write or wait for it. */
bool files_have_queue(const struct files *files);

/*
 * Waits for the turn, at most until `deadline_ns` on CLOCK_MONOTONIC. Returns whether it has come.
 * A writer may go on without it, because only SQLite's own lock excludes others.
 */
bool files_take_turn(const struct files *files, uint64_t deadline_ns);
void files_give_turn(const struct files *files);

/* Returns whether any connection, in this process or another, holds the WAL's write lock. */
bool files_is_writing(const struct files *files);

/* Returns a process that holds one of the WAL's read locks, or 0. */
int files_reader(const struct files *files);

/*
 * Writes zeros at the end of the WAL, where they look like no frame, up to the room that it should
 * have, and at the end of the -shm, as SQLite needs it for so many frames. The caller holds the
 * write lock. A full disk just gives it less.
 */
void files_make_room(const struct files *files, uint32_t frame_bytes);
bool files_have_room(const struct files *files);
uint64_t files_wal_bytes(const struct files *files);

/* Returns whether the disk has less room than puts may use, when the WAL uses `wal_bytes`. */
bool files_disk_is_low(const struct files *files, uint64_t wal_bytes);

/* Sleeps, and is no cancellation point. */
void files_nap(uint64_t ns);

/* Returns whether the disk has less room than puts may use. */
static inline bool store_disk_is_low(const struct timerhub_store *store)
{
	/* relaxed: a hint from the last commit */
	return files_disk_is_low(&store->files, u64_load_relaxed(&store->keeper.wal_bytes));
}

/* ---- change.c: whether a caller may ask for a change, and what it does in a transaction ---- */

/* Checks a change without the database. Returns 0 or a negative errno. */
int change_check(const struct timerhub_store *store, const struct timerhub_store_change *change);

/*
 * Checks the changes that a caller makes as one. Sets `result` in each: at most one has an error,
 * which is also returned.
 */
int changes_check(const struct timerhub_store *store, struct timerhub_store_change *changes,
                  unsigned count);

/* Returns whether a change that was asked for at `now_us` makes its task due at once. */
bool change_is_due(const struct timerhub_store_change *change, int64_t now_us);

bool changes_have_put(const struct timerhub_store_change *changes, unsigned count);

/*
 * Makes the changes in a transaction, all or none. Sets `result` in each, and the ids of puts.
 * SQLite may have ended the whole transaction after an error.
 */
int changes_make(const struct timerhub_store *store, struct statements *statements, int64_t now_us,
                 struct timerhub_store_change *changes, unsigned count);

/* ---- deliver.c: what takes do in the database, on the leader's thread ---- */

/* Returns 1 if a transaction would find something to do now, 0 if not, or a negative errno. */
int deliver_look(struct timerhub_store *store, struct look *ret);

/* Ends leases that are over, and mends what a wrong clock has done. Returns 0 or an errno. */
int deliver_begin(struct timerhub_store *store);

/* Hands out due tasks to a take. Stores how many in its result. Returns 0 or an errno. */
int deliver_serve(struct timerhub_store *store, struct work *take);

/* Takes the tasks back because the transaction has failed. */
void deliver_undo(struct work *take);

/* Counts the tasks, whose transaction has been committed. */
void deliver_count(struct timerhub_store *store, const struct work *take);

/* At the open, ends the leases of an earlier boot and mends what a wrong clock has done. */
int deliver_open(struct timerhub_store *store);

/* ---- writer.c ---- */

/*
 * Does a work item, or waits until another thread has done it. Returns its result, or -EAGAIN if it
 * could not begin before its deadline.
 */
int writer_do(struct timerhub_store *store, struct work *work);

/* Submits a work item. Changes are in synced.completed when they are done. */
void writer_submit(struct timerhub_store *store, struct work *work);

/*
 * Begins a transaction with the write lock, in turn with other handles. Returns 0, -EAGAIN, or an
 * error.
 */
int writer_begin(struct timerhub_store *store, uint64_t deadline_ns);

/* Commits if `result` is 0, else rolls back. Returns 0 or the error. */
int writer_end(struct timerhub_store *store, int result);

/* Syncs the WAL. When it returns 0, all that was committed before the call is on stable storage. */
int writer_sync_all(struct timerhub_store *store);

/*
 * Lets every change and take return -EIO from now on, because after a failed sync the success of a
 * later one would prove nothing.
 */
void store_fail(struct timerhub_store *store);

/* The store's own thread. It ends when `quits` is set and it has made what was submitted. */
void *keeper_main(void *store);

/* A sqlite3_wal_hook(), which keeps count of the WAL's length. */
int keeper_on_commit(void *context, sqlite3 *db, const char *name, int pages);

#endif
