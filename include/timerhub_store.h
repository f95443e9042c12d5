/* SPDX-License-Identifier: MIT */
/*
 * timerhub_store: delayed tasks in a table of an SQLite database, which commit together with the
 * program's own data. timerhub-store(7) has the laws, timerhub-store(5) describes the table for
 * programs in other languages, and each call has a page.
 *
 * A call returns 0 or a count, or a negative errno. If it fails, it has written no output, unless
 * its comment says so. Any thread may make any call except close, and a signal handler may make
 * none. Every call can return these errors:
 *   -EINVAL: an argument is wrong.
 *   -EOWNERDEAD: this process is a child of the one that opened the store.
 *   -ENOMEM: there is no memory left.
 *   -EIO: the disk has failed, or a file of the database was removed or replaced. All later calls
 *     fail too, so open the store anew.
 *
 * `when_ns` is a delay from now, or with TIMERHUB_ABSOLUTE a time on CLOCK_REALTIME, or
 * TIMERHUB_NEVER. `delay_ns`, `interval_ns`, `lease_ns` and `timeout_ns` are lengths of time. The
 * store keeps times in microseconds and rounds them up.
 *
 * A process must have only one copy of SQLite, because two copies release each other's file locks,
 * and committed data is lost then. So open, install and commit_in are macros, which pass the
 * address of one of the program's SQLite functions. They return -EXDEV if the library uses another
 * copy.
 */
#ifndef TIMERHUB_STORE_H
#define TIMERHUB_STORE_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#ifdef __GNUC__
#pragma GCC diagnostic push
/*
 * The functions timerhub_store_put() and timerhub_store_stats() have the same names as structs,
 * which C++ allows.
 */
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#endif

struct sqlite3;

/* A queue of tasks in a database, as one process has opened it for all of its threads. */
struct timerhub_store;

/* The longest key, in bytes. A key is UTF-8 without NUL, and not empty. */
#define TIMERHUB_STORE_KEY_MAX 255
/* How many changes one call can make. */
#define TIMERHUB_STORE_CHANGES_MAX 1000

/*
 * A flag for a put. A waiting or parked task with this key keeps its id, gets the new time, data
 * and interval, and its attempts count from 0. If a worker has the task, the put returns -EEXIST.
 */
#define TIMERHUB_STORE_REPLACE (1u << 16)

/* Describes a queue to timerhub_store_open(). A field that is 0 has its default. */
struct timerhub_store_config {
	uint32_t size;     /* sizeof(struct timerhub_store_config) */
	uint32_t flags;    /* 0 */
	const char *queue; /* name of the queue; NULL: the empty name */
	uint64_t lease_ns; /* how long a task is reserved for the worker that took it; 0: 30 s */
	uint32_t attempts_max; /* deliveries before a task is parked; 0: 25; UINT32_MAX: no limit */
	uint32_t data_max;     /* longest data of a task that can be put, in bytes; 0: 1 MiB */
	uint64_t timeout_ns;   /* how long a change waits for other writers; 0: 5 s */
};

/*
 * Opens a store, which is one queue in the database file `path`, and creates the file and the
 * tables if they do not exist. `config` may be NULL. If the process forks, open the store
 * afterwards, in the child. timerhub_store_open(3) lists the errors, such as:
 *   -EXDEV: the program and the library use two different copies of SQLite.
 *   -EBADMSG: the file is not a database, or is damaged.
 *   -EOPNOTSUPP: the tables are of a later version, or the file system cannot have a WAL.
 *   -EBUSY: others locked the database for longer than timeout_ns.
 */
TIMERHUB_API int timerhub_store_open(struct timerhub_store **ret, const char *path,
                                     const struct timerhub_store_config *config);

/*
 * Creates the store's tables in the main database of `db`. In an open transaction they exist once
 * it commits. Returns the errors of timerhub_store_open(), or -ECANCELED if SQLite has rolled the
 * transaction back.
 */
TIMERHUB_API int timerhub_store_install(struct sqlite3 *db);

/*
 * Stops a store, so that the threads that take its tasks can end: timerhub_store_take() still hands
 * out the tasks that are due now, and then returns -ESHUTDOWN. All other calls still work.
 */
TIMERHUB_API void timerhub_store_stop(struct timerhub_store *store);

/*
 * Closes a store, after all submitted changes are made. Workers in timerhub_store_take() get
 * -ESHUTDOWN, but no other call may be running or begin. `store` may be NULL. In a forked child the
 * call does nothing.
 */
TIMERHUB_API void timerhub_store_close(struct timerhub_store *store);

/*
 * Returns a descriptor that is readable when timerhub_store_take() would not wait. It can be
 * readable although no task is due, until a take with timeout 0 finds none.
 */
TIMERHUB_API int timerhub_store_fd(struct timerhub_store *store);

/*
 * Syncs the WAL, so that everything that any connection committed before the call is on stable
 * storage. You need it only after a COMMIT of your own with synchronous=NORMAL.
 */
TIMERHUB_API int timerhub_store_sync(struct timerhub_store *store);

/* ---- changes: on stable storage when they return 0; after an error nothing has changed ---- */

/*
 * All changes can return -EAGAIN if other writers kept the database busy for the config's
 * timeout_ns, and -ENOSPC if the disk is full. Even then there is some room to end and to cancel
 * tasks.
 */

struct timerhub_store_put {
	uint32_t size;        /* sizeof(struct timerhub_store_put) */
	uint32_t flags;       /* TIMERHUB_ABSOLUTE, TIMERHUB_STORE_REPLACE */
	uint64_t when_ns;     /* a delay, a time, or TIMERHUB_NEVER: the task waits for a move */
	uint64_t interval_ns; /* period of a periodic task; 0: the task is not periodic */
	const char *key;      /* names the task within its queue; NULL: it has no key */
	const void *data;
	size_t data_len;
};

/*
 * Puts a task, and stores its id in *ret_id, which may be NULL. Errors are:
 *   -EEXIST: a live task has the same key; *ret_id gets its id.
 *   -EMSGSIZE: the data is longer than data_max.
 *   -ERANGE: the time lies before 2001 or after 2286.
 */
TIMERHUB_API int timerhub_store_put(struct timerhub_store *store,
                                    const struct timerhub_store_put *put, uint64_t *ret_id);

/*
 * Cancels a task that no worker has, so that none gets it. Returns -EBUSY if a worker has the task,
 * and -ENOENT if the queue has no such task.
 */
TIMERHUB_API int timerhub_store_cancel(struct timerhub_store *store, uint64_t id);

/* Finds a task by its key and cancels it. Returns the errors of timerhub_store_cancel(). */
TIMERHUB_API int timerhub_store_cancel_key(struct timerhub_store *store, const char *key);

/*
 * Gives a new time to a task that waits or is parked, and counts its attempts from 0 again. `flags`
 * is 0 or TIMERHUB_ABSOLUTE. Errors are:
 *   -EBUSY: a worker has the task.
 *   -ENOENT: the queue has no such task.
 *   -ERANGE: the time lies before 2001 or after 2286.
 */
TIMERHUB_API int timerhub_store_move(struct timerhub_store *store, uint64_t id, uint64_t when_ns,
                                     uint32_t flags);

/*
 * Finds the task by its key, and gives it a new time. Returns the errors of timerhub_store_move().
 */
TIMERHUB_API int timerhub_store_move_key(struct timerhub_store *store, const char *key,
                                         uint64_t when_ns, uint32_t flags);

/* ---- deliveries ---- */

/*
 * A task as timerhub_store_take() delivers it to a worker. The struct may be copied, but all copies
 * share the key and data, so answer or release only one of them.
 */
struct timerhub_store_task {
	uint64_t id;           /* never 0, and never used again for another task */
	uint64_t delivery;     /* names this delivery, together with the id */
	uint64_t due_ns;       /* on CLOCK_REALTIME */
	uint64_t lease_end_ns; /* on CLOCK_BOOTTIME; later, another worker can get the task */
	uint64_t interval_ns;  /* 0: the task is not periodic */
	uint64_t periods;      /* 1, plus the periods that passed while nobody took it */
	uint64_t attempts;     /* how often it was delivered so far, this time included */
	const char *key;       /* the task's key, or NULL */
	const void *data;      /* the library adds a NUL, which data_len does not count */
	size_t data_len;
	uint64_t reserved[6];
};

/*
 * Takes up to `max` due tasks in the order of their times, and waits up to timeout_ns for one;
 * UINT64_MAX: without limit. Returns how many, 0 after the timeout, or -ESHUTDOWN if the store is
 * stopped and has no more.
 *
 * A task that is not ended within its lease is delivered again. After attempts_max deliveries it is
 * parked until the program moves it.
 */
TIMERHUB_API int timerhub_store_take(struct timerhub_store *store,
                                     struct timerhub_store_task *tasks, unsigned max,
                                     uint64_t timeout_ns);

/*
 * Ends a task; a periodic one waits for its next period. Returns 0, -ESTALE if the task was changed
 * or delivered again, or -ENOENT if it is gone; in these three cases the call frees the task's key
 * and data. After any other error they are still there.
 */
TIMERHUB_API int timerhub_store_done(struct timerhub_store *store,
                                     struct timerhub_store_task *task);

/*
 * Gives a task back, to be delivered again after delay_ns. Returns 0, -ESTALE if the task was
 * changed or delivered again, or -ENOENT if it is gone; in these three cases the call frees the
 * task's key and data. After any other error, such as -ERANGE, the worker still has both.
 */
TIMERHUB_API int timerhub_store_retry(struct timerhub_store *store,
                                      struct timerhub_store_task *task, uint64_t delay_ns);

/*
 * Parks a task: no worker gets it until timerhub_store_move() gives it a new time. `reason` is a
 * number of your choice, which the view timerhub_list shows. Returns 0, -ESTALE if the task was
 * changed or delivered again, or -ENOENT if it is gone; in these three cases the call frees the
 * task's key and data. After any other error they are still there.
 */
TIMERHUB_API int timerhub_store_park(struct timerhub_store *store, struct timerhub_store_task *task,
                                     uint32_t reason);

/*
 * Gives a task a new lease, which begins now and lasts lease_ns. If lease_ns is 0, it lasts as long
 * as the config says. Stores the lease's end in *task, and frees nothing. Returns 0, -ESTALE if the
 * task was changed or delivered again, or -ENOENT if it is gone.
 *
 * The new lease is not on stable storage. After a loss of power, all leases have ended.
 */
TIMERHUB_API int timerhub_store_touch(struct timerhub_store *store,
                                      struct timerhub_store_task *task, uint64_t lease_ns);

/*
 * Frees the key and data of a task, and sets them to NULL. The worker still has the task, and can
 * still end it. Releasing a task twice does no harm.
 */
TIMERHUB_API void timerhub_store_release(struct timerhub_store *store,
                                         struct timerhub_store_task *task);

/* ---- several changes as one ---- */

/* The kinds of change that struct timerhub_store_change can describe. */
enum timerhub_store_op {
	TIMERHUB_STORE_PUT = 1,
	TIMERHUB_STORE_CANCEL = 2,
	TIMERHUB_STORE_MOVE = 3,
	TIMERHUB_STORE_DONE = 4,
	TIMERHUB_STORE_RETRY = 5,
	TIMERHUB_STORE_PARK = 6,
};

/*
 * Describes one change of a task. Fields that its `op` does not use, and reserved ones, must be 0.
 */
struct timerhub_store_change {
	uint32_t op;          /* an enum timerhub_store_op */
	uint32_t flags;       /* for a put or move */
	uint64_t id;          /* the task to cancel or move, if key is NULL; output of a put */
	const char *key;      /* the key of the task to put, cancel or move */
	uint64_t when_ns;     /* the time for a put or move, or the delay for a retry */
	uint64_t interval_ns; /* for a put */
	const void *data;     /* for a put */
	size_t data_len;
	struct timerhub_store_task *task; /* the task for done, retry or park */
	uint32_t reason;                  /* for a park */
	int32_t result;                   /* output: 0, or the error of this change */
	uint64_t reserved[4];
};

/*
 * Makes up to TIMERHUB_STORE_CHANGES_MAX changes in one transaction, in their order. If a change
 * cannot be made, none is. Then its error is in its `result`, and is returned.
 */
TIMERHUB_API int timerhub_store_commit(struct timerhub_store *store,
                                       struct timerhub_store_change *changes, unsigned count);

/*
 * Makes changes within the transaction that is open on the program's own connection `db`. They are
 * made if, and only if, the transaction commits. Its main database must be the store's file.
 * - Call it on the thread that uses `db`, after BEGIN IMMEDIATE.
 * - After COMMIT, release the tasks that the changes have ended.
 * - With synchronous=NORMAL, call timerhub_store_sync() after COMMIT.
 *
 * After an error only these changes are undone. It returns the errors of the single changes, or:
 *   -EINVAL: no transaction is open, or `db` is of another file.
 *   -EDEADLK: the transaction has only read so far.
 *   -EXDEV: `db` is of another copy of SQLite.
 *   -ECANCELED: SQLite has rolled back the whole transaction.
 */
TIMERHUB_API int timerhub_store_commit_in(struct timerhub_store *store, struct sqlite3 *db,
                                          struct timerhub_store_change *changes, unsigned count);

/*
 * Copies `changes` and makes them as timerhub_store_commit() does, but does not wait. When they are
 * made or have failed, timerhub_store_completions() returns `tag`. Until then keep each struct
 * timerhub_store_task that a change points to. Returns -EAGAIN if there are 1,024 submits whose
 * completions nobody has taken yet.
 */
TIMERHUB_API int timerhub_store_submit(struct timerhub_store *store,
                                       struct timerhub_store_change *changes, unsigned count,
                                       uint64_t tag);

/* The result of one timerhub_store_submit(). */
struct timerhub_store_completion {
	uint64_t tag;   /* what the submit was given */
	uint64_t id;    /* id of the first change's task */
	int32_t result; /* what timerhub_store_commit() would have returned */
	uint32_t reserved;
};

/*
 * Takes up to `max` completions, stores them in `ret` in the order of their submits, and returns
 * how many. It never waits.
 */
TIMERHUB_API int timerhub_store_completions(struct timerhub_store *store,
                                            struct timerhub_store_completion *ret, unsigned max);

/*
 * Returns a descriptor that is readable while completions wait, and sometimes when none do. Poll
 * it, but do not read or close it.
 */
TIMERHUB_API int timerhub_store_completion_fd(struct timerhub_store *store);

/* ---- statistics ---- */

struct timerhub_store_stats {
	uint32_t size;       /* sizeof(struct timerhub_store_stats), set by the caller */
	uint32_t is_polling; /* 1: the kernel refused inotify, so workers poll every 20 ms */
	uint64_t waiting; /* tasks that wait, including those that are due; counted up to 100,000 */
	uint64_t taken;   /* tasks that a worker has; counted up to 100,000 */
	uint64_t parked;  /* tasks that are parked; counted up to 100,000 */
	uint64_t oldest_due_ns; /* time of the earliest task that waits; UINT64_MAX: none */
	/* The following counters say what this handle has done since it was opened. */
	uint64_t put;
	uint64_t cancelled;
	uint64_t moved;
	uint64_t delivered;
	uint64_t done;
	uint64_t retried;     /* by retry or park */
	uint64_t leases_over; /* leases that ended without an answer */
	uint64_t commits;     /* transactions */
	uint64_t syncs;       /* how often the WAL was synced */
	uint64_t checkpoints;
	uint64_t disk_full; /* how often a put was refused because the disk was full */
	uint64_t wal_bytes; /* size of the WAL now */
	int32_t failed;     /* 0, or -EIO if all changes and takes fail from now on */
	int32_t reader_pid; /* process whose open read transaction makes the WAL grow; 0: none */
	uint64_t reserved[16];
	/*
	 * `lateness` and `sync_ns` are histograms: bucket i counts times from 2^i ns to 2^(i+1) - 1
	 * ns, and bucket 0 also counts 0.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS]; /* from due_ns to the delivery */
	uint64_t sync_ns[TIMERHUB_LATENESS_BUCKETS];  /* how long a sync took */
};

/*
 * Stores the statistics in *ret. Set the struct's `size` before the call. The counts of tasks stop
 * at 100,000. To count more, query the table of tasks by SQL.
 */
TIMERHUB_API int timerhub_store_stats(struct timerhub_store *store,
                                      struct timerhub_store_stats *ret);

/* ---- one copy of SQLite ---- */

extern int sqlite3_libversion_number(void);

/*
 * The macros below call these functions. `sqlite` is the program's sqlite3_libversion_number: by
 * its address the library recognizes whether the program uses another copy of SQLite.
 */
TIMERHUB_API int timerhub_store_open_checked(struct timerhub_store **ret, const char *path,
                                             const struct timerhub_store_config *config,
                                             int (*sqlite)(void));
TIMERHUB_API int timerhub_store_install_checked(struct sqlite3 *db, int (*sqlite)(void));
TIMERHUB_API int timerhub_store_commit_in_checked(struct timerhub_store *store, struct sqlite3 *db,
                                                  struct timerhub_store_change *changes,
                                                  unsigned count, int (*sqlite)(void));

#define timerhub_store_open(ret, path, config)                                                     \
	timerhub_store_open_checked((ret), (path), (config), sqlite3_libversion_number)
#define timerhub_store_install(db) timerhub_store_install_checked((db), sqlite3_libversion_number)
#define timerhub_store_commit_in(store, db, changes, count)                                        \
	timerhub_store_commit_in_checked((store), (db), (changes), (count),                        \
	                                 sqlite3_libversion_number)

#ifdef __cplusplus
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
}
#endif

#endif
