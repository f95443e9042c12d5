/* SPDX-License-Identifier: MIT */
/*
 * timerhub_store: delayed tasks in a table of an SQLite database, which commit together with the
 * program's own data.
 *
 * timerhub-store(7) has the laws, timerhub-store(5) the table for programs in other languages, and
 * each call has a page. A call returns 0, a count, or a negative errno; after an error it has
 * written no output, unless its comment says so. Any thread may make any call but close, and no
 * signal handler may make any. Every call returns -EINVAL for a wrong argument, -EOWNERDEAD in a
 * child of the process that opened the store, -ENOMEM without memory, and -EIO once the disk has
 * failed or one of the database's files was removed or replaced: open the store anew then.
 *
 * `when_ns` is a delay from now, or with TIMERHUB_ABSOLUTE a time on CLOCK_REALTIME, or
 * TIMERHUB_NEVER. `delay_ns`, `interval_ns`, `lease_ns` and `timeout_ns` are lengths of time. The
 * store keeps times in microseconds and rounds them up.
 *
 * One process must have one copy of SQLite only: two copies release each other's file locks and so
 * lose committed data. Open, install and commit_in are therefore also macros, which pass the
 * address of one of the program's SQLite functions; they return -EXDEV if the library uses another
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
/* the functions timerhub_store_put() and timerhub_store_stats() have the names of structs */
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#endif

struct sqlite3;

/* One queue of a database, opened by one process, for all of its threads. */
struct timerhub_store;

#define TIMERHUB_STORE_KEY_MAX 255 /* bytes of a key, which is UTF-8 without NUL, and not empty */
#define TIMERHUB_STORE_CHANGES_MAX 1000

/*
 * A flag of a put. If a waiting or parked task has the key, it gets the new time, data and interval
 * and 0 attempts, and keeps its id. If a worker has the task, the put returns -EEXIST.
 */
#define TIMERHUB_STORE_REPLACE (1u << 16)

/* 0 is the default of each field. */
struct timerhub_store_config {
	uint32_t size;         /* sizeof(struct timerhub_store_config) */
	uint32_t flags;        /* 0 */
	const char *queue;     /* name of the queue; NULL: the empty name */
	uint64_t lease_ns;     /* how long a taken task is its worker's alone; 0: 30 seconds */
	uint32_t attempts_max; /* deliveries before a task is parked; 0: 25; UINT32_MAX: no limit */
	uint32_t data_max;     /* bytes of a task's data that a put accepts; 0: 1 MiB */
	uint64_t timeout_ns;   /* how long a change waits for other writers; 0: 5 seconds */
};

/*
 * Opens a queue of the database `path`, whose file and tables are made if they are missing, and
 * stores the handle in *ret. `config` may be NULL.
 *
 * A process that forks must open only afterwards, and in the child. Returns -EXDEV if the program
 * uses another copy of SQLite than the library. Returns -EBADMSG if the file is no database or is
 * damaged, -EOPNOTSUPP if its tables belong to a later version or its file system has no WAL,
 * -EBUSY if others lock the database for longer than timeout_ns, -E2BIG if the config has members
 * that this version does not know. Also -EACCES, -EROFS, -ENOENT, -ENOSPC, -EMFILE, -EAGAIN (no
 * thread).
 */
TIMERHUB_API int timerhub_store_open(struct timerhub_store **ret, const char *path,
                                     const struct timerhub_store_config *config);

/*
 * Makes the store's tables in the main database of the connection `db`, for a program's own
 * migration. If a transaction is open, the tables exist when it commits. The journal mode stays as
 * it is. Errors as timerhub_store_open().
 */
TIMERHUB_API int timerhub_store_install(struct sqlite3 *db);

/*
 * Ends the taking of tasks: a take still hands out what is due now, and returns -ESHUTDOWN when
 * nothing of that is left. Changes can still be made.
 */
TIMERHUB_API void timerhub_store_stop(struct timerhub_store *store);

/*
 * Closes a store. Changes that were submitted are made first. No other call may run or begin,
 * except that takers who wait return -ESHUTDOWN. `store` may be NULL. In a forked child it does
 * nothing.
 */
TIMERHUB_API void timerhub_store_close(struct timerhub_store *store);

/*
 * Returns a descriptor to poll. It is readable when a take would not block, and sometimes when one
 * would; a take with timeout 0 makes it unreadable.
 */
TIMERHUB_API int timerhub_store_fd(struct timerhub_store *store);

/*
 * Returns 0 when all that any connection had committed before this call is on stable storage. Only
 * needed after a COMMIT of the program's own with synchronous=NORMAL.
 */
TIMERHUB_API int timerhub_store_sync(struct timerhub_store *store);

/* ---- changes: on stable storage when they return 0; after an error nothing has changed ---- */

/*
 * All changes return -EAGAIN if other writers kept the database busy for the config's timeout_ns,
 * and -ENOSPC on a full disk, where ends and cancels still have room for some time.
 */

struct timerhub_store_put {
	uint32_t size;        /* sizeof(struct timerhub_store_put) */
	uint32_t flags;       /* TIMERHUB_ABSOLUTE, TIMERHUB_STORE_REPLACE */
	uint64_t when_ns;     /* a delay, a time, or TIMERHUB_NEVER: the task waits for a move */
	uint64_t interval_ns; /* 0: once; else the task becomes due every interval_ns after that */
	const char *key;      /* names the task within its queue; NULL: it has no key */
	const void *data;
	size_t data_len;
};

/*
 * Puts a task, whose id is stored in *ret_id; ret_id may be NULL. Returns -EEXIST if a live task
 * has the key, and then stores that task's id in *ret_id. Returns -EMSGSIZE if the data is longer
 * than data_max, -ERANGE if the time lies before 2001 or after 2286.
 */
TIMERHUB_API int timerhub_store_put(struct timerhub_store *store,
                                    const struct timerhub_store_put *put, uint64_t *ret_id);

/*
 * Cancels a task that waits or is parked: no worker gets it any more. Returns -EBUSY if a worker
 * has it, -ENOENT if the queue has no such task.
 */
TIMERHUB_API int timerhub_store_cancel(struct timerhub_store *store, uint64_t id);

/* Cancels the task that has the key. Errors as timerhub_store_cancel(). */
TIMERHUB_API int timerhub_store_cancel_key(struct timerhub_store *store, const char *key);

/*
 * Gives a task that waits or is parked a new time and 0 attempts. A parked task waits again
 * afterwards. `flags` is 0 or TIMERHUB_ABSOLUTE. Returns -EBUSY if a worker has the task, -ENOENT
 * if the queue has no such task, -ERANGE as timerhub_store_put().
 */
TIMERHUB_API int timerhub_store_move(struct timerhub_store *store, uint64_t id, uint64_t when_ns,
                                     uint32_t flags);

/* Gives the task that has the key a new time. Errors as timerhub_store_move(). */
TIMERHUB_API int timerhub_store_move_key(struct timerhub_store *store, const char *key,
                                         uint64_t when_ns, uint32_t flags);

/* ---- deliveries ---- */

/*
 * A task as a worker has taken it. The struct may be copied; key and data belong to all copies
 * together, so only one of them is answered or released.
 */
struct timerhub_store_task {
	uint64_t id;           /* never 0, and never another task's */
	uint64_t delivery;     /* together with the id it names this delivery */
	uint64_t due_ns;       /* on CLOCK_REALTIME */
	uint64_t lease_end_ns; /* on CLOCK_BOOTTIME; after that another worker can get the task */
	uint64_t interval_ns;  /* 0: the task is not periodic */
	uint64_t periods;      /* 1, plus the periods that passed while nobody took the task */
	uint64_t attempts;     /* deliveries of the task or its period, this one included */
	const char *key;       /* NULL: it has none */
	const void *data;      /* a NUL follows the data, which data_len does not count */
	size_t data_len;
	uint64_t reserved[6];
};

/*
 * Takes up to `max` due tasks in the order of their times, and waits up to timeout_ns (UINT64_MAX:
 * without limit) for the first. Returns how many, 0 if the time is over, or -ESHUTDOWN after a
 * stop.
 *
 * A task that its worker does not end comes again after the lease. A task that has been delivered
 * attempts_max times is parked by the next take instead.
 */
TIMERHUB_API int timerhub_store_take(struct timerhub_store *store,
                                     struct timerhub_store_task *tasks, unsigned max,
                                     uint64_t timeout_ns);

/*
 * Ends a task, or lets a periodic one wait for its next period. It also works after the lease, as
 * long as nobody else got the task. Returns -ESTALE if the task was delivered again, moved or
 * answered since, -ENOENT if it has ended.
 *
 * Key and data are freed, and set to NULL, when done, retry and park return 0, -ESTALE or -ENOENT.
 */
TIMERHUB_API int timerhub_store_done(struct timerhub_store *store,
                                     struct timerhub_store_task *task);

/*
 * Gives a task back, to be delivered again after delay_ns. Errors and memory as
 * timerhub_store_done(), and -ERANGE if the delay is too long.
 */
TIMERHUB_API int timerhub_store_retry(struct timerhub_store *store,
                                      struct timerhub_store_task *task, uint64_t delay_ns);

/*
 * Sets a task aside until a move. It keeps its key, and `reason`, a number of the program's own, is
 * shown by timerhub_list. Errors and memory as timerhub_store_done().
 */
TIMERHUB_API int timerhub_store_park(struct timerhub_store *store, struct timerhub_store_task *task,
                                     uint32_t reason);

/*
 * Lets the lease end lease_ns from now (0: as long as the config says), and stores its new end in
 * the task. Not on stable storage: after a loss of power the lease has ended anyway. Returns
 * -ESTALE and -ENOENT as timerhub_store_done(), but frees nothing.
 */
TIMERHUB_API int timerhub_store_touch(struct timerhub_store *store,
                                      struct timerhub_store_task *task, uint64_t lease_ns);

/*
 * Frees the key and data of a task, and sets them to NULL. The lease goes on, so the task can still
 * be answered. A second release does nothing.
 */
TIMERHUB_API void timerhub_store_release(struct timerhub_store *store,
                                         struct timerhub_store_task *task);

/* ---- several changes as one ---- */

/* The kinds of a change. */
enum timerhub_store_op {
	TIMERHUB_STORE_PUT = 1,
	TIMERHUB_STORE_CANCEL = 2,
	TIMERHUB_STORE_MOVE = 3,
	TIMERHUB_STORE_DONE = 4,
	TIMERHUB_STORE_RETRY = 5,
	TIMERHUB_STORE_PARK = 6,
};

/* A change of a task. What its op does not use, and what is reserved, must be 0. */
struct timerhub_store_change {
	uint32_t op;    /* an enum timerhub_store_op */
	uint32_t flags; /* of a put or move */
	uint64_t id; /* of the task to cancel or move, if key is NULL; a put stores its id here */
	const char *key;      /* of the task to put, cancel or move */
	uint64_t when_ns;     /* of a put or move; the delay of a retry */
	uint64_t interval_ns; /* of a put */
	const void *data;     /* of a put */
	size_t data_len;
	struct timerhub_store_task *task; /* to end by done, retry or park */
	uint32_t reason;                  /* of a park */
	int32_t result;                   /* is written: 0, or the error of this change */
	uint64_t reserved[4];
};

/*
 * Makes up to TIMERHUB_STORE_CHANGES_MAX changes in their order, all or none. Returns the error of
 * the first that cannot be made, which is also in its `result`; that of the others is 0.
 */
TIMERHUB_API int timerhub_store_commit(struct timerhub_store *store,
                                       struct timerhub_store_change *changes, unsigned count);

/*
 * Makes changes within the transaction that the program has open on its own connection `db`: they
 * are made if, and only if, that transaction commits. The main database of `db` is the store's
 * file. Call it on the thread that uses `db`, after BEGIN IMMEDIATE.
 *
 * Returns -EINVAL without a transaction or with another file, -EDEADLK in a transaction that has
 * only read so far, -EXDEV if `db` is of another copy of SQLite, -ECANCELED if SQLite has rolled
 * the whole transaction back. After any other error only these changes are undone. Nothing is
 * freed: release the tasks after COMMIT. With synchronous=NORMAL call timerhub_store_sync() after
 * COMMIT.
 */
TIMERHUB_API int timerhub_store_commit_in(struct timerhub_store *store, struct sqlite3 *db,
                                          struct timerhub_store_change *changes, unsigned count);

/*
 * Makes changes like timerhub_store_commit(), but does not wait: if it returns 0, one completion
 * with `tag` follows. The changes with their keys and data are copied, but not the tasks to end:
 * those structs stay until timerhub_store_completions() has stored the completion, and frees their
 * key and data then. Returns -EAGAIN if 1,024 submits are in flight or have completions that nobody
 * took.
 */
TIMERHUB_API int timerhub_store_submit(struct timerhub_store *store,
                                       struct timerhub_store_change *changes, unsigned count,
                                       uint64_t tag);

/* The result of one submit. */
struct timerhub_store_completion {
	uint64_t tag;   /* what the submit was given */
	uint64_t id;    /* of the first change's task */
	int32_t result; /* what timerhub_store_commit() would have returned */
	uint32_t reserved;
};

/*
 * Stores up to `max` completions, in the order of their submits, and returns how many. Never waits.
 */
TIMERHUB_API int timerhub_store_completions(struct timerhub_store *store,
                                            struct timerhub_store_completion *ret, unsigned max);

/* Returns a descriptor that is readable while completions wait, and sometimes when none do. */
TIMERHUB_API int timerhub_store_completion_fd(struct timerhub_store *store);

/* ---- statistics ---- */

struct timerhub_store_stats {
	uint32_t size;       /* sizeof(struct timerhub_store_stats), set by the caller */
	uint32_t is_polling; /* 1: the kernel refused inotify, so takers poll every 20 ms */
	uint64_t waiting; /* tasks of the queue that wait, due ones included; counted to 100,000 */
	uint64_t taken;   /* tasks that a worker has within its lease; counted to 100,000 */
	uint64_t parked;  /* tasks set aside; counted to 100,000 */
	uint64_t oldest_due_ns; /* of the waiting tasks; UINT64_MAX: none */
	/* what this handle has done since it was opened */
	uint64_t put;
	uint64_t cancelled;
	uint64_t moved;
	uint64_t delivered;
	uint64_t done;
	uint64_t retried;     /* by retry or park */
	uint64_t leases_over; /* leases that ended without an answer */
	uint64_t commits;     /* transactions of this handle */
	uint64_t syncs;       /* of the WAL */
	uint64_t checkpoints;
	uint64_t disk_full; /* how often puts were refused for want of room */
	uint64_t wal_bytes; /* size of the WAL now */
	int32_t failed;     /* 0, or the -EIO that all changes and takes return from now on */
	int32_t reader_pid; /* process whose read transaction keeps the WAL long; 0: nobody's */
	uint64_t reserved[16];
	/* Bucket i counts times from 2^i ns to 2^(i+1) - 1; bucket 0 also 0. */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS]; /* from due_ns to the delivery */
	uint64_t sync_ns[TIMERHUB_LATENESS_BUCKETS];  /* how long a sync took */
};

/* Stores the statistics in *ret, whose `size` the caller has set. For exact counts ask by SQL. */
TIMERHUB_API int timerhub_store_stats(struct timerhub_store *store,
                                      struct timerhub_store_stats *ret);

/* ---- one copy of SQLite ---- */

extern int sqlite3_libversion_number(void);

/*
 * The macros below call these. `sqlite` is the program's sqlite3_libversion_number, by whose
 * address the library recognizes another copy of SQLite.
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
