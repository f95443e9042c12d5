/* SPDX-License-Identifier: MIT */
/*
 * timerhub_journal: stores delayed tasks durably in a directory, and delivers them at their times.
 *
 * A task is an id, an optional key of the caller, a wall-clock time and some bytes. When a call
 * that changes a task returns 0, the change is on stable storage. Delivery is at least once. A
 * taken task that is not acknowledged is delivered again when its lease expires, or when the
 * journal is opened again. A done or cancelled task is never delivered again. No task is delivered
 * before its time on CLOCK_REALTIME. Tasks are delivered in order of time.
 *
 * The calls follow the conventions of timerhub.h. A call that can fail returns 0 or a count, or a
 * negative errno. A call that fails writes no output. The library never prints. Times are uint64_t
 * nanoseconds. Points in time are on CLOCK_REALTIME. Any number of threads may make any call at
 * once, unless the comment of a call says otherwise. The calls lock a mutex, and a call that
 * changes a task waits for the disk. Therefore a signal handler must make no call of this library.
 *
 * Fork. In a child process every call returns -EOWNERDEAD. In a child process
 * timerhub_journal_close() frees the child's copy of the journal, and does not change the parent's
 * journal.
 */
#ifndef TIMERHUB_JOURNAL_H
#define TIMERHUB_JOURNAL_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A journal is a directory that holds durable delayed tasks. Only one process at a time can have a
 * journal open, and it holds a file lock in the directory.
 */
struct timerhub_journal;

/* The most bytes of a key, and the most changes of one timerhub_journal_commit(). */
#define TIMERHUB_JOURNAL_KEY_MAX 255
#define TIMERHUB_JOURNAL_CHANGES_MAX 64

/*
 * One delivery of a task to a worker. Data and key stay valid until the worker ends or releases the
 * delivery. timerhub_journal_done(), timerhub_journal_retry() and timerhub_journal_park() end a
 * delivery if they return 0, -ESTALE or -ENOENT. timerhub_journal_release() releases a delivery.
 * Data and key of the delivery stay valid even if the task ends or another worker takes the task.
 */
struct timerhub_task {
	uint64_t id;     /* the task's id; never 0, and never used again in this journal */
	uint64_t due_ns; /* time on CLOCK_REALTIME at which the task is due */
	/*
	 * Number of deliveries of the task so far, including this delivery; see
	 * timerhub_journal_take().
	 */
	uint64_t attempts;
	const void *data;
	size_t data_len;
	const void *key; /* key of the task, or NULL if the task has no key */
	size_t key_len;
	uint64_t delivery;    /* identifies this delivery until the journal is closed; never 0 */
	uint64_t interval_ns; /* length of a period, or 0 if the task is not periodic */
	uint64_t periods;     /* number of periods missed before this delivery, plus 1 */
	uint64_t reserved[6];
};

/* The settings of an open journal. A field that is 0 means the default. */
struct timerhub_journal_config {
	uint32_t size;  /* sizeof(struct timerhub_journal_config) */
	uint32_t flags; /* flags of the journal; must be 0, because no flag exists yet */
	/* Time after which a taken task is delivered again (the lease); 0: only after a restart. */
	uint64_t lease_ns;
	uint64_t segment_bytes; /* size of a log file, from 4 KiB to 4 GiB. 0 means 16 MiB. */
	/* the most live tasks; a put of one more task fails; 0 means 1,048,576 */
	uint32_t tasks_max;
	/* the most bytes of one task's data, up to 16 MiB; 0 means 64 KiB */
	uint32_t data_max;
	uint64_t data_bytes_max; /* the most bytes of data and keys of all tasks. 0 means 1 GiB. */
	/*
	 * the most deliveries of a task before timerhub_journal_retry() parks the task; 0: no limit
	 */
	uint32_t attempts_max;
	uint32_t reserved;
};

/* The reasons for which compaction does not begin although it would free space. */
enum timerhub_journal_held_up {
	TIMERHUB_JOURNAL_NOT_HELD_UP = 0,
	TIMERHUB_JOURNAL_BY_BACKUP = 1, /* compaction waits until a backup is complete */
	/* A write of compaction failed. Compaction tries again after the next change of a task. */
	TIMERHUB_JOURNAL_BY_DISK = 2,
};

/*
 * The system calls by which the library writes the log. Version 0.2 and later use only pwrite(2)
 * and fdatasync(2), which take less time than io_uring.
 */
enum timerhub_journal_writer {
	TIMERHUB_JOURNAL_PLAIN = 0, /* the log is written by pwrite(2) and fdatasync(2) */
	TIMERHUB_JOURNAL_URING = 1, /* io_uring, which only versions before 0.2 could use */
};

/* The contents of a journal, and counters since it was opened. */
struct timerhub_journal_stats {
	/* Number of live tasks. A task is live from its put until it is done or cancelled. */
	uint64_t tasks;
	/* number of live tasks that a worker has taken, with an unexpired lease */
	uint64_t taken;
	uint64_t data_bytes; /* number of bytes of data and keys in memory */
	/*
	 * Number of bytes on disk for live tasks. For each live task, the number includes the
	 * task's record and the record that will end the task.
	 */
	uint64_t live_bytes;
	uint64_t disk_bytes;  /* size of all segments, including zeros written ahead */
	uint64_t segments;    /* number of files of the log */
	uint64_t recovered;   /* number of tasks that timerhub_journal_open() found */
	uint64_t recovery_ns; /* time that timerhub_journal_open() took to recover the tasks */
	/* number of torn bytes that timerhub_journal_open() cut off the log */
	uint64_t cut_bytes;
	uint64_t put;          /* number of tasks that were put */
	uint64_t cancelled;    /* number of tasks that were cancelled */
	uint64_t moved;        /* number of moves of a task to a new time */
	uint64_t delivered;    /* number of deliveries; a task that is taken twice counts twice */
	uint64_t done;         /* number of deliveries that were acknowledged as done */
	uint64_t retried;      /* number of deliveries that ended by retry or park */
	uint64_t leases_over;  /* number of deliveries whose lease expired */
	uint64_t batches;      /* number of writes to the log */
	uint64_t records;      /* number of records in all writes to the log */
	uint64_t syncs;        /* number of syncs of the log that callers waited for */
	uint64_t copied_bytes; /* number of bytes that compaction wrote */
	uint64_t segments_dropped; /* number of files that compaction removed */
	/* -EIO: a write or a sync has failed, and every change returns -EIO; 0: no failure */
	int32_t failed;
	uint32_t writer; /* how the log is written: always TIMERHUB_JOURNAL_PLAIN */
	uint64_t held;   /* number of deliveries not yet ended by done, retry, park or release */
	uint64_t parked; /* number of live tasks that are parked */
	/* Due time of the earliest task that is neither taken nor parked; UINT64_MAX: no task. */
	uint64_t oldest_due_ns;
	/* Number of times that the disk was full and the journal refused changes. */
	uint64_t disk_full;
	/* Number of unreadable segments that compaction wrote again from memory. */
	uint64_t healed;
	uint64_t held_up; /* why compaction does not begin: enum timerhub_journal_held_up */
	uint64_t reserved[10];
	/*
	 * `lateness` is a histogram of the time from a task's due_ns to its delivery. `sync_ns` is
	 * a histogram of the duration of a write and its sync. `sync_ns` counts only writes that
	 * callers waited for. Bucket 0 counts times below 2 ns. Bucket i counts times of at least
	 * 2^i ns and below 2^(i+1) ns.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t sync_ns[TIMERHUB_LATENESS_BUCKETS];
};

/* The result of timerhub_journal_check(). */
struct timerhub_journal_report {
	uint64_t segments; /* number of files of the log that the check has read */
	uint64_t records;  /* number of valid records in the files that the check has read */
	uint64_t tasks;    /* number of live tasks at the end of the log */
	/* Number of torn bytes at the end of the log, which timerhub_journal_open() cuts off. */
	uint64_t torn_bytes;
	uint64_t segment;  /* number of the file with the first fault, or of the last file */
	uint64_t offset;   /* offset of the fault in the file, or end of the last valid record */
	const char *fault; /* the fault as a constant text, or NULL if there is no fault */
	uint64_t reserved[8];
};

/*
 * Open the journal in `dir`, an existing directory. An empty directory becomes a new journal.
 * timerhub_journal_open() recovers every change whose call returned 0. It cuts off a torn tail of
 * the log. `config` may be NULL. If the program creates the directory, the program must sync the
 * parent directory.
 *
 *   -EBUSY                                      this or another process has the journal open
 *   -EBADMSG                                    a file is corrupt before its end.
 *                                               timerhub_journal_check() reports the position.
 *                                               `timerhub-journal repair` keeps the readable
 *                                               records.
 *   -EOPNOTSUPP                                 another version of the library wrote the journal
 *   -EINVAL, -E2BIG                             an argument is NULL, or the config is wrong
 *   -ENOMEM, -ENOENT, -EACCES, -ENOSPC, -EIO …  the kernel returned this error
 */
TIMERHUB_API int timerhub_journal_open(struct timerhub_journal **ret_journal, const char *dir,
                                       const struct timerhub_journal_config *config);

/*
 * Close the journal. Threads blocked in timerhub_journal_take() return -ESHUTDOWN before the
 * journal is freed. No other call on the journal may run or begin during timerhub_journal_close().
 * To end worker threads, call timerhub_journal_stop() and join the threads before
 * timerhub_journal_close(). Taken tasks that are not done are delivered again when the journal is
 * opened again. `journal` may be NULL.
 */
TIMERHUB_API void timerhub_journal_close(struct timerhub_journal *journal);

/*
 * Stop a journal: from now on timerhub_journal_take() does not block. Tasks that are due when the
 * journal is stopped are still delivered. When all tasks that were due at the stop are taken, every
 * timerhub_journal_take() returns -ESHUTDOWN. A stop cannot be undone. All other calls on a stopped
 * journal work as before. `journal` may be NULL. In a forked child timerhub_journal_stop() does
 * nothing.
 */
TIMERHUB_API void timerhub_journal_stop(struct timerhub_journal *journal);

/*
 * Returns a descriptor that is readable when timerhub_journal_take() would not block. The program
 * may poll the descriptor, and must not read or close it. The descriptor may be readable although
 * no task is due, for example after another thread took the task. If no task is due,
 * timerhub_journal_take() returns 0 and makes the descriptor unreadable. Errors: -EINVAL,
 * -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_fd(struct timerhub_journal *journal);

/* ---- changes: on stable storage when they return 0 ---- */

/*
 * Put a task, which is due `when_ns` from now. With TIMERHUB_ABSOLUTE the task is due at the time
 * `when_ns`. With TIMERHUB_NEVER the task is not due until timerhub_journal_move() sets a time.
 * `ret_id` may be NULL.
 *
 *   -EAGAIN                     tasks_max tasks are live, or data_bytes_max bytes are in memory
 *   -EMSGSIZE                   data_len is above data_max
 *   -ERANGE                     the time is beyond 2^63 ns
 *   -ENOSPC, -EDQUOT, -EFBIG …  The disk refused the write. The journal has not changed, and the
 *                               caller may repeat the call.
 *   -EIO                        A write or a sync failed.
 *                               After -EIO it is unknown whether the change is stable. The
 *                               journal accepts no further change, but still delivers. To
 *                               change tasks again, close and open the journal.
 *   -EINVAL, -ENOMEM            an argument is wrong, or no memory; the journal has not changed
 */
TIMERHUB_API int timerhub_journal_put(struct timerhub_journal *journal, uint64_t when_ns,
                                      uint32_t flags, const void *data, size_t data_len,
                                      uint64_t *ret_id);

/*
 * Put a task under a key of 1 to TIMERHUB_JOURNAL_KEY_MAX bytes. No other live task may have the
 * same key. The key is durable, like the task. -EEXIST: a live task has the key, and `*ret_id` is
 * the id of the live task. With any other error timerhub_journal_put_key() writes no output. In all
 * else timerhub_journal_put_key() is like timerhub_journal_put().
 */
TIMERHUB_API int timerhub_journal_put_key(struct timerhub_journal *journal, const void *key,
                                          size_t key_len, uint64_t when_ns, uint32_t flags,
                                          const void *data, size_t data_len, uint64_t *ret_id);

/*
 * Cancel a task. Returns 0 if the task will not be delivered again. -EBUSY: a worker has taken the
 * task, and decides how the task ends. -ENOENT: the task is done or cancelled, or was never put.
 * Other errors are as for timerhub_journal_put().
 */
TIMERHUB_API int timerhub_journal_cancel(struct timerhub_journal *journal, uint64_t id);
TIMERHUB_API int timerhub_journal_cancel_key(struct timerhub_journal *journal, const void *key,
                                             size_t key_len);

/*
 * Give a task a new time. Returns 0 if the task will be delivered at the new time only. -EBUSY: a
 * worker has taken the task, or the task is parked. -ERANGE: the time is beyond 2^63 ns. Other
 * errors are as for timerhub_journal_cancel().
 */
TIMERHUB_API int timerhub_journal_move(struct timerhub_journal *journal, uint64_t id,
                                       uint64_t when_ns, uint32_t flags);
TIMERHUB_API int timerhub_journal_move_key(struct timerhub_journal *journal, const void *key,
                                           size_t key_len, uint64_t when_ns, uint32_t flags);

/* ---- deliveries ---- */

/*
 * Take the earliest task that is due. If no task is due, wait up to `timeout_ns`. If `timeout_ns`
 * is 0, timerhub_journal_take() does not wait. If `timeout_ns` is UINT64_MAX, the wait has no
 * limit. Signals do not end the wait. The wait is not a cancellation point. The journal writes the
 * number of attempts to disk some milliseconds after the delivery. If the machine or the process
 * crashes, `attempts` may therefore miss the last delivery.
 *
 *   1           a task was taken
 *   0           the timeout has passed, and no task was taken
 *   -ESHUTDOWN  the journal is stopped and no task is left, or the journal is being closed
 *   -ENOMEM     the process has no memory, and no task was taken
 */
TIMERHUB_API int timerhub_journal_take(struct timerhub_journal *journal,
                                       struct timerhub_task *ret_task, uint64_t timeout_ns);

/*
 * Take up to `max` tasks, like timerhub_journal_take(). timerhub_journal_take_many() waits only
 * until one task is due. It then takes all due tasks, but at most `max`. Returns their number, or 0
 * after a timeout. Fails with the errors of timerhub_journal_take(), or with -EINVAL if `max` is
 * 0 or above INT_MAX.
 */
TIMERHUB_API int timerhub_journal_take_many(struct timerhub_journal *journal,
                                            struct timerhub_task *ret_tasks, unsigned max,
                                            uint64_t timeout_ns);

/*
 * Acknowledge a delivery. A periodic task then waits for its next period. A task that is not
 * periodic ends. timerhub_journal_done() also succeeds after the end of the lease, until the task
 * is delivered again. On a full disk, timerhub_journal_done() still ends a task that is not
 * periodic. For a periodic task on a full disk, timerhub_journal_done() returns -ENOSPC, and the
 * worker keeps the delivery.
 *
 *   -ESTALE  the task was delivered again, to another worker
 *   -ENOENT  the task has ended or was cancelled,
 *            or a call of timerhub_journal_done(), timerhub_journal_retry() or
 *            timerhub_journal_park() has already ended this delivery
 *
 * Other errors are as for timerhub_journal_put().
 */
TIMERHUB_API int timerhub_journal_done(struct timerhub_journal *journal,
                                       const struct timerhub_task *task);

/*
 * Return a task to the journal, which delivers the task again `delay_ns` from now. If the task has
 * already been delivered attempts_max times, the journal parks the task with reason 0. Fails with
 * -ERANGE or the errors of timerhub_journal_done().
 */
TIMERHUB_API int timerhub_journal_retry(struct timerhub_journal *journal,
                                        const struct timerhub_task *task, uint64_t delay_ns);

/*
 * Park a task: the task stays in the journal, and is not delivered until timerhub_journal_revive().
 * The caller may choose any number as `reason`, which timerhub_journal_each() reports. Fails with
 * the errors of timerhub_journal_done().
 */
TIMERHUB_API int timerhub_journal_park(struct timerhub_journal *journal,
                                       const struct timerhub_task *task, uint32_t reason);

/*
 * Deliver a parked task at the time `when_ns`. The task's attempts start again at 0. To end a
 * parked task, cancel it. -ENOENT: no task with the id `id` is parked. In all else
 * timerhub_journal_revive() is like timerhub_journal_move().
 */
TIMERHUB_API int timerhub_journal_revive(struct timerhub_journal *journal, uint64_t id,
                                         uint64_t when_ns, uint32_t flags);

/*
 * Prolong the lease of a delivery: the lease ends `lease_ns` from now. If `lease_ns` is 0, the new
 * lease has the length that the config sets in `lease_ns`. After the end of the lease, the caller
 * takes the task again if no other worker has it. timerhub_journal_touch() writes nothing to disk.
 * In a journal without leases, timerhub_journal_touch() changes nothing. -ESTALE and -ENOENT mean
 * the same as for timerhub_journal_done(). -EINVAL: an argument is NULL.
 */
TIMERHUB_API int timerhub_journal_touch(struct timerhub_journal *journal,
                                        const struct timerhub_task *task, uint64_t lease_ns);

/*
 * Give up a delivery, and neither acknowledge, return nor park its task. Data and key of a released
 * delivery are no longer valid. The task is delivered again when its lease expires. -ENOENT:
 * timerhub_journal_done(), timerhub_journal_retry() or timerhub_journal_park() has already ended
 * the delivery, or the delivery was released before. Other errors are -EINVAL and -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_release(struct timerhub_journal *journal,
                                          const struct timerhub_task *task);

/* ---- several changes as one ---- */

enum timerhub_journal_op {
	TIMERHUB_JOURNAL_PUT = 1,
	TIMERHUB_JOURNAL_CANCEL = 2,
	TIMERHUB_JOURNAL_MOVE = 3,
	TIMERHUB_JOURNAL_DONE = 4,
	TIMERHUB_JOURNAL_RETRY = 5,
	TIMERHUB_JOURNAL_PARK = 6,
	TIMERHUB_JOURNAL_REVIVE = 7,
};

/*
 * One change of timerhub_journal_commit() or timerhub_journal_submit(). Members that `op` does not
 * use, and reserved members, must be zero.
 */
struct timerhub_journal_change {
	uint32_t op;    /* a value of enum timerhub_journal_op */
	uint32_t flags; /* in a put, move or revive: 0 or TIMERHUB_ABSOLUTE */
	/*
	 * In a cancel, move or revive: the id of the task, if key_len is 0. In a put: the call
	 * stores the id of the new task in `id`.
	 */
	uint64_t id;
	const void *key;
	size_t key_len;
	uint64_t when_ns;     /* in a put, move, retry or revive: the time or delay */
	uint64_t interval_ns; /* in a put: the length of a period, or 0 if not periodic */
	const void *data;     /* in a put: the data of the task */
	size_t data_len;
	const struct timerhub_task *task; /* if `op` is DONE, RETRY or PARK: the delivery to end */
	uint32_t reason;                  /* if `op` is PARK: why this change parks the task */
	int32_t result;                   /* output: the error, if this change was refused */
	uint64_t reserved[4];
};

/*
 * Make `count` changes of different tasks, at most TIMERHUB_JOURNAL_CHANGES_MAX changes. Either all
 * changes are made or none, even if the process or the machine crashes. For example, one call can
 * end the task of one step and put the task of the next step. If a change ends a task, a later put
 * in `changes` may use the key of the ended task.
 *
 *   -E2BIG     `count` is above TIMERHUB_JOURNAL_CHANGES_MAX
 *   -EMSGSIZE  the changes together are larger than one write to the log may be
 *   -EINVAL    an argument is NULL, a flag is unknown, a reserved member is not 0,
 *              or two changes name one task
 *
 * Any other error is the error of the first change that cannot be made. timerhub_journal_commit()
 * also stores this error in the member `result` of this change.
 */
TIMERHUB_API int timerhub_journal_commit(struct timerhub_journal *journal,
                                         struct timerhub_journal_change *changes, unsigned count);

/* ---- without waiting ---- */

/* The completion of a call of timerhub_journal_submit(). */
struct timerhub_journal_completion {
	uint64_t tag;   /* the tag given to timerhub_journal_submit() */
	uint64_t id;    /* id of the task of the first change; for a put, the id of the new task */
	int32_t result; /* the result that timerhub_journal_commit() would have returned */
	uint32_t reserved;
};

/*
 * Make changes like timerhub_journal_commit(), but do not wait for the disk. A later completion
 * with the tag `tag` reports whether the changes were made. Any number of calls of
 * timerhub_journal_submit() may be in flight. When timerhub_journal_submit() has returned, the
 * caller may free `changes` and the memory that the changes point at.
 *
 *   0        the changes will have one completion, unless the journal is closed first
 *   -EAGAIN  The journal has reached tasks_max or data_bytes_max, the batch has no space, or an
 *            earlier change of one of the tasks is in flight. When a completion has arrived,
 *            repeat the call.
 *   -EINVAL  as for timerhub_journal_commit(), or `count` is 0
 *
 * Other errors are as for timerhub_journal_commit(). If timerhub_journal_submit() fails, no
 * completion follows.
 */
TIMERHUB_API int timerhub_journal_submit(struct timerhub_journal *journal,
                                         struct timerhub_journal_change *changes, unsigned count,
                                         uint64_t tag);

/*
 * Store up to `max` completions, in the order in which they happened.
 * timerhub_journal_completions() never waits. Returns the number of completions. If no completion
 * waits, the descriptor of timerhub_journal_completion_fd() becomes unreadable. Errors: -EINVAL,
 * -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_completions(struct timerhub_journal *journal,
                                              struct timerhub_journal_completion *completions,
                                              unsigned max);

/*
 * Returns a descriptor that is readable when timerhub_journal_completions() can return completions.
 * The program may poll the descriptor, and must not read or close it. The descriptor may be
 * readable although there is no completion. timerhub_journal_completions() then returns 0 and makes
 * the descriptor unreadable. Errors: -EINVAL, -EOWNERDEAD, -EMFILE, -ENFILE, -ENOMEM.
 */
TIMERHUB_API int timerhub_journal_completion_fd(struct timerhub_journal *journal);

/* ---- asking ---- */

enum timerhub_journal_state {
	TIMERHUB_JOURNAL_PENDING = 0,
	TIMERHUB_JOURNAL_TAKEN = 1,
	TIMERHUB_JOURNAL_PARKED = 2,
};

/* The state of a task, without its data. */
struct timerhub_journal_info {
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns;
	uint64_t attempts;
	uint64_t data_len;
	uint32_t state;  /* a value of enum timerhub_journal_state */
	uint32_t reason; /* why the task is parked, or 0 if it is not parked */
	uint64_t reserved[4];
	uint32_t key_len;
	unsigned char key[TIMERHUB_JOURNAL_KEY_MAX + 1]; /* key of the task, and a final 0 */
};

/*
 * A callback that timerhub_journal_each() calls for each task. If the callback returns a result
 * other than 0, timerhub_journal_each() visits no further task.
 */
typedef int timerhub_journal_visit(void *context, const struct timerhub_journal_info *info);

/*
 * Find the id of the live task with the key `key`. -ENOENT: no live task has the key. Further
 * errors are -EINVAL and -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_find(struct timerhub_journal *journal, const void *key,
                                       size_t key_len, uint64_t *ret_id);

/*
 * Read a live task. Store its state in `*ret_info`, and copy the first `data_size` bytes of its
 * data to `data`. If `data_size` is 0, `data` may be NULL. `data_len` of `*ret_info` is the length
 * of the whole data. -ENOENT: the task is not live. Other errors are -EINVAL and -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_peek(struct timerhub_journal *journal, uint64_t id,
                                       struct timerhub_journal_info *ret_info, void *data,
                                       size_t data_size);
TIMERHUB_API int timerhub_journal_peek_key(struct timerhub_journal *journal, const void *key,
                                           size_t key_len, struct timerhub_journal_info *ret_info,
                                           void *data, size_t data_size);

/*
 * Call `visit` for every task that is live at the beginning of the call. The tasks come in the
 * order of their due times, and those with the same due time in the order of their ids. A task that
 * ends before its visit is skipped. No lock is held while `visit` runs, so `visit` may make any
 * call except timerhub_journal_close(). Returns 0, or the first result of `visit` that is not 0.
 * Errors: -ENOMEM, -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_each(struct timerhub_journal *journal,
                                       timerhub_journal_visit *visit, void *context);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function timerhub_journal_stats() has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Read the counters of the journal. Errors: -EINVAL, -EOWNERDEAD. */
TIMERHUB_API int timerhub_journal_stats(struct timerhub_journal *journal,
                                        struct timerhub_journal_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Check the journal in `dir`: read the journal as timerhub_journal_open() would, but change nothing
 * and take no lock. Another process may have the journal open. If a file changes during the check,
 * timerhub_journal_check() reads the file again.
 *
 *   0                      timerhub_journal_open() would succeed
 *   -EBADMSG, -EOPNOTSUPP  timerhub_journal_open() would fail with this error. The reason is
 *                          in `*ret_report`, which is written despite the error.
 *
 * Any other error comes from the kernel.
 */
TIMERHUB_API int timerhub_journal_check(const char *dir,
                                        struct timerhub_journal_report *ret_report);

/*
 * Copy the journal into `to`, an existing empty directory, while other calls go on. The copy is a
 * journal with all changes whose calls returned 0 before the backup began. During the copy the
 * journal keeps all files of its log. timerhub_journal_open() refuses an incomplete copy.
 *
 *   -ENOTEMPTY                `to` is not empty
 *   -EBADMSG                  the journal on disk is damaged
 *   -EINVAL                   an argument is NULL
 *   -EOWNERDEAD               the caller is a forked child
 *   -ENOMEM, -ENOSPC, -EIO …  the kernel returned this error
 */
TIMERHUB_API int timerhub_journal_backup(struct timerhub_journal *journal, const char *to);

#ifdef __cplusplus
}
#endif

#endif
