/* SPDX-License-Identifier: MIT */
/*
 * timerhub_journal: durable delayed tasks, kept in a directory, delivered through timerhub.
 *
 * A task is an id, an optional key of the caller, a wall-clock time and some bytes. When a call
 * that changes a task returns 0, the change is on stable storage. Delivery is at least once: if a
 * task was taken and not acknowledged, it is delivered again after its lease, or after the next
 * open. A done or cancelled task is never delivered again. No task is delivered before its time on
 * CLOCK_REALTIME; tasks are delivered in order of time.
 *
 * Conventions, as in timerhub.h. A call returns 0 or a count, or a negative errno and then writes
 * no output. The library never prints. Times are uint64_t nanoseconds; points in time are on
 * CLOCK_REALTIME. Any number of threads may make any call at once, unless the comment of a call
 * says otherwise. The calls lock a mutex, and a call that changes a task waits for the disk, so a
 * signal handler must make none of them.
 *
 * Fork. In a child every call returns -EOWNERDEAD. In a child timerhub_journal_close() frees the
 * child's copy and does not change the parent's journal.
 */
#ifndef TIMERHUB_JOURNAL_H
#define TIMERHUB_JOURNAL_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A journal is a directory that holds durable delayed tasks. The process that has the journal open
 * holds its lock.
 */
struct timerhub_journal;

/* The most bytes of a key, and the most changes of one timerhub_journal_commit(). */
#define TIMERHUB_JOURNAL_KEY_MAX 255
#define TIMERHUB_JOURNAL_CHANGES_MAX 64

/*
 * One delivery of a task. Data and key stay valid until done, retry or park of this delivery
 * returns 0, -ESTALE or -ENOENT, or until it is released. Data and key stay valid even if the task
 * ends or another worker takes it before that.
 */
struct timerhub_task {
	uint64_t id;     /* the task's id; never 0, and never used again in this journal */
	uint64_t due_ns; /* time on CLOCK_REALTIME at which the task is due */
	/* Number of deliveries so far, including this delivery; see timerhub_journal_take(). */
	uint64_t attempts;
	const void *data;
	size_t data_len;
	const void *key; /* key of the task; NULL: the task has no key */
	size_t key_len;
	uint64_t delivery;    /* names this delivery in this open journal; never 0 */
	uint64_t interval_ns; /* 0: not periodic */
	uint64_t periods;     /* 1 for this delivery, plus the number of missed periods before it */
	uint64_t reserved[6];
};

/* How to open a journal. A field of 0 means the default. */
struct timerhub_journal_config {
	uint32_t size;  /* sizeof(struct timerhub_journal_config) */
	uint32_t flags; /* no flag exists yet; 0 */
	/* A taken task is delivered again after this time; 0: after a restart. */
	uint64_t lease_ns;
	uint64_t segment_bytes;  /* size of a file; 0: 16 MiB; 4 KiB to 4 GiB */
	uint32_t tasks_max;      /* the most live tasks, above which a put fails; 0: 1,048,576 */
	uint32_t data_max;       /* the most bytes of one task's data; 0: 64 KiB; at most 16 MiB */
	uint64_t data_bytes_max; /* the most bytes of all data and keys; 0: 1 GiB */
	uint32_t attempts_max;   /* a task returned after its last attempt is parked; 0: no limit */
	uint32_t reserved;
};

/* Why compaction does not begin although it would free space. */
enum timerhub_journal_held_up {
	TIMERHUB_JOURNAL_NOT_HELD_UP = 0,
	TIMERHUB_JOURNAL_BY_BACKUP = 1, /* compaction waits until a backup is complete */
	/* A write of compaction failed; compaction tries again after the next change. */
	TIMERHUB_JOURNAL_BY_DISK = 2,
};

/* How the log is written. Version 0.2 and later use only plain calls, which take less time. */
enum timerhub_journal_writer {
	TIMERHUB_JOURNAL_PLAIN = 0, /* the log is written by pwrite(2) and fdatasync(2) */
	TIMERHUB_JOURNAL_URING = 1, /* the log is written by io_uring; no longer used */
};

/* The contents of a journal, and counters since it was opened. */
struct timerhub_journal_stats {
	/* Number of live tasks, which are put and neither done nor cancelled. */
	uint64_t tasks;
	uint64_t taken;      /* number of live tasks that a worker has, with an unexpired lease */
	uint64_t data_bytes; /* bytes of data and keys in memory */
	/* Bytes on disk for live tasks: the record of each task and of its end. */
	uint64_t live_bytes;
	uint64_t disk_bytes;  /* size of all segments, including zeros written ahead */
	uint64_t segments;    /* number of files of the log */
	uint64_t recovered;   /* number of tasks that open found */
	uint64_t recovery_ns; /* how long open took to recover them */
	uint64_t cut_bytes;   /* number of torn bytes that open cut off the end of the log */
	uint64_t put;         /* number of puts that returned 0; so for the next counters */
	uint64_t cancelled;
	uint64_t moved;
	uint64_t delivered; /* number of deliveries; a task that is taken twice counts twice */
	uint64_t done;
	uint64_t retried;
	uint64_t leases_over;      /* number of deliveries whose lease expired */
	uint64_t batches;          /* number of writes to the log */
	uint64_t records;          /* number of records in these writes */
	uint64_t syncs;            /* number of syncs of the log that callers waited for */
	uint64_t copied_bytes;     /* number of bytes that compaction wrote */
	uint64_t segments_dropped; /* number of files that compaction removed */
	/* 0, or -EIO after a failure because of which every change returns -EIO. */
	int32_t failed;
	uint32_t writer; /* enum timerhub_journal_writer; always TIMERHUB_JOURNAL_PLAIN */
	uint64_t held;   /* number of deliveries that are neither answered nor released */
	uint64_t parked; /* number of live tasks that are parked */
	/* Due time of the first task that is neither taken nor parked; UINT64_MAX: none. */
	uint64_t oldest_due_ns;
	/* Number of times that the disk was full and the journal refused changes. */
	uint64_t disk_full;
	/* Number of unreadable segments that compaction wrote again from memory. */
	uint64_t healed;
	uint64_t held_up; /* enum timerhub_journal_held_up */
	uint64_t reserved[10];
	/*
	 * lateness: for each delivery, the time of the take minus due_ns. sync_ns: for each write
	 * that callers waited for, the duration of write and sync. Bucket 0 counts 0 and 1 ns,
	 * bucket i counts 2^i to 2^(i+1) - 1 ns.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t sync_ns[TIMERHUB_LATENESS_BUCKETS];
};

/* The result of timerhub_journal_check(). */
struct timerhub_journal_report {
	uint64_t segments; /* number of files read */
	uint64_t records;  /* number of valid records in these files */
	uint64_t tasks;    /* number of live tasks at the end of the log */
	/* Number of torn bytes at the end, which the next open cuts off; see the man page. */
	uint64_t torn_bytes;
	uint64_t segment;  /* number of the file with the first fault, or of the last file */
	uint64_t offset;   /* offset of the fault in that file, or end of the last valid record */
	const char *fault; /* the fault, as a constant text; NULL: the journal has no fault */
	uint64_t reserved[8];
};

/*
 * Open the journal in `dir`, an existing directory; an empty directory becomes a new journal. The
 * call recovers every acknowledged change and cuts a torn tail. `config` may be NULL. A program
 * that creates the directory must sync the parent directory.
 *
 *   -EBUSY                                      the journal is open already, in this process or in
 *                                               another
 *   -EBADMSG                                    a file is corrupt before its end:
 *                                               timerhub_journal_check() reports the position, and
 *                                               `timerhub-journal repair` keeps the readable
 *                                               records
 *   -EOPNOTSUPP                                 another version wrote the journal
 *   -EINVAL, -E2BIG                             bad config
 *   -ENOMEM, -ENOENT, -EACCES, -ENOSPC, -EIO …  from the kernel
 */
TIMERHUB_API int timerhub_journal_open(struct timerhub_journal **ret_journal, const char *dir,
                                       const struct timerhub_journal_config *config);

/*
 * Close the journal. Threads blocked in take return -ESHUTDOWN first. No other call on the journal
 * may be running or start. To end workers, call timerhub_journal_stop() and join the workers before
 * this call. The next open delivers taken tasks that are not done. The argument may be NULL.
 */
TIMERHUB_API void timerhub_journal_close(struct timerhub_journal *journal);

/*
 * Stop a journal: from now on no take blocks. Tasks that are due when the call is made are still
 * delivered. When no such task is left, take returns -ESHUTDOWN, and so does every later take. A
 * stop cannot be undone. All other calls work as before. NULL is allowed; in a forked child the
 * call does nothing.
 */
TIMERHUB_API void timerhub_journal_stop(struct timerhub_journal *journal);

/*
 * Returns a descriptor that is readable when take would not block. The program may poll the
 * descriptor, and must not read or close it. The descriptor may be readable although no task is
 * due, for example after another thread took the task. In this case the next take returns 0 and
 * makes the descriptor unreadable. -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_fd(struct timerhub_journal *journal);

/* ---- changes: on stable storage when they return 0 ---- */

/*
 * Put a task, to be delivered `when_ns` from now or, with TIMERHUB_ABSOLUTE, at the time `when_ns`.
 * With TIMERHUB_NEVER the task is not due until timerhub_journal_move() sets a time. `ret_id` may
 * be NULL.
 *
 *   -EAGAIN                     tasks_max tasks are live, or data_bytes_max bytes are in memory
 *   -EMSGSIZE                   more than data_max bytes
 *   -ERANGE                     the time is beyond 2^63 ns
 *   -ENOSPC, -EDQUOT, -EFBIG …  the disk refused the write: nothing has changed, and the caller may
 *                               repeat the call
 *   -EIO                        A write or a sync failed, so it is unknown whether the change is
 *                               stable. From then on the journal accepts no change, and still
 *                               delivers. To repair this, close the journal and open it again.
 *   -EINVAL, -ENOMEM            nothing has changed
 */
TIMERHUB_API int timerhub_journal_put(struct timerhub_journal *journal, uint64_t when_ns,
                                      uint32_t flags, const void *data, size_t data_len,
                                      uint64_t *ret_id);

/*
 * Put a task under a key: 1 to TIMERHUB_JOURNAL_KEY_MAX bytes that no other live task has. The key
 * is durable, like the task. -EEXIST: a live task has the key, and `*ret_id` is its id. No other
 * failing call of a change writes an output. Everything else is as for timerhub_journal_put().
 */
TIMERHUB_API int timerhub_journal_put_key(struct timerhub_journal *journal, const void *key,
                                          size_t key_len, uint64_t when_ns, uint32_t flags,
                                          const void *data, size_t data_len, uint64_t *ret_id);

/*
 * Cancel a task. Returns 0 if the task will not be delivered again. -EBUSY: a worker has the task,
 * and decides how it ends. -ENOENT: the task is done or cancelled, or was never put. Everything
 * else is as for timerhub_journal_put().
 */
TIMERHUB_API int timerhub_journal_cancel(struct timerhub_journal *journal, uint64_t id);
TIMERHUB_API int timerhub_journal_cancel_key(struct timerhub_journal *journal, const void *key,
                                             size_t key_len);

/*
 * Give a task a new time. Returns 0 if the task will be delivered at the new time only. -EBUSY: a
 * worker has the task, or the task is parked. -ERANGE: the time is beyond 2^63 ns. Other errors are
 * as for cancel.
 */
TIMERHUB_API int timerhub_journal_move(struct timerhub_journal *journal, uint64_t id,
                                       uint64_t when_ns, uint32_t flags);
TIMERHUB_API int timerhub_journal_move_key(struct timerhub_journal *journal, const void *key,
                                           size_t key_len, uint64_t when_ns, uint32_t flags);

/* ---- deliveries ---- */

/*
 * Take the earliest task that is due. If no task is due, wait up to `timeout_ns`. The call does not
 * wait if `timeout_ns` is 0, and waits without limit if it is UINT64_MAX. A signal does not end the
 * wait, and the call is not a cancellation point. The journal records the number of attempts some
 * milliseconds after the delivery, so after a crash the last attempt may not be counted.
 *
 *   1           a task was taken
 *   0           timed out
 *   -ESHUTDOWN  the journal is stopped and no task is left, or it is being closed
 *   -ENOMEM     no task was taken
 */
TIMERHUB_API int timerhub_journal_take(struct timerhub_journal *journal,
                                       struct timerhub_task *ret_task, uint64_t timeout_ns);

/*
 * Like timerhub_journal_take(), for up to `max` tasks. The call waits for the first task, and adds
 * further tasks that are due when the wait ends. Returns the number of tasks, or 0 after a timeout.
 * The errors are those of timerhub_journal_take(), and -EINVAL if `max` is 0 or above INT_MAX.
 */
TIMERHUB_API int timerhub_journal_take_many(struct timerhub_journal *journal,
                                            struct timerhub_task *ret_tasks, unsigned max,
                                            uint64_t timeout_ns);

/*
 * Acknowledge a delivery: the task has ended, or if it is periodic, waits for its next period. The
 * lease may have expired, unless the task was delivered again. A full disk does not refuse the end
 * of a task. But done of a periodic task ends no task. So a full disk refuses it with -ENOSPC, and
 * the worker keeps the delivery.
 *
 *   -ESTALE  the task was delivered again, to another worker
 *   -ENOENT  the task was done or cancelled, or this delivery is answered already
 *
 * Other errors as for put.
 */
TIMERHUB_API int timerhub_journal_done(struct timerhub_journal *journal,
                                       const struct timerhub_task *task);

/*
 * Return a task: the task is delivered again `delay_ns` from now. If this was the task's
 * attempts_max-th delivery, the task is parked with reason 0 instead. Errors as for done; -ERANGE.
 */
TIMERHUB_API int timerhub_journal_retry(struct timerhub_journal *journal,
                                        const struct timerhub_task *task, uint64_t delay_ns);

/*
 * Park a task: the task stays in the journal, and is not delivered until timerhub_journal_revive().
 * timerhub_journal_each() reports `reason`, any number of the caller's choice. Errors as for done.
 */
TIMERHUB_API int timerhub_journal_park(struct timerhub_journal *journal,
                                       const struct timerhub_task *task, uint32_t reason);

/*
 * Deliver a parked task at the time `when_ns`. The task's attempts start again at 0. To end a
 * parked task, cancel it. -ENOENT: no task with this id is parked. Everything else is as for
 * timerhub_journal_move().
 */
TIMERHUB_API int timerhub_journal_revive(struct timerhub_journal *journal, uint64_t id,
                                         uint64_t when_ns, uint32_t flags);

/*
 * Prolong the lease of a delivery: the lease ends `lease_ns` from now. The value 0 means lease_ns
 * of the config. If the lease has expired and no other worker has the task, this worker takes the
 * task again. The call writes nothing to disk. In a journal without leases the call changes
 * nothing. -ESTALE, -ENOENT: as for done; -EINVAL.
 */
TIMERHUB_API int timerhub_journal_touch(struct timerhub_journal *journal,
                                        const struct timerhub_task *task, uint64_t lease_ns);

/*
 * Give up a delivery without an answer; its data and key are no longer valid. The task is delivered
 * again when its lease expires. -ENOENT: this delivery is answered already; -EINVAL, -EOWNERDEAD.
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
 * One change of a commit or submit. Members that the op does not use, and reserved members, are
 * zero.
 */
struct timerhub_journal_change {
	uint32_t op;    /* enum timerhub_journal_op */
	uint32_t flags; /* put, move, revive: 0 or TIMERHUB_ABSOLUTE */
	/* Cancel, move, revive: id of the task, if key_len is 0; put: output, the new id. */
	uint64_t id;
	const void *key;
	size_t key_len;
	uint64_t when_ns;     /* put, move, retry, revive: the time or delay */
	uint64_t interval_ns; /* put: the period; 0: not periodic */
	const void *data;     /* put: the data of the task */
	size_t data_len;
	const struct timerhub_task *task; /* done, retry, park: the delivery */
	uint32_t reason;                  /* park: why the task is parked */
	int32_t result;                   /* output: the error, if this change was refused */
	uint64_t reserved[4];
};

/*
 * Make `count` changes of different tasks, at most TIMERHUB_JOURNAL_CHANGES_MAX. Either all changes
 * are made or none, even if the process or the machine crashes. A program can therefore finish one
 * step and put the next in one call. A put may use the key of a task that an earlier change in the
 * call ends.
 *
 *   -E2BIG     too many changes
 *   -EMSGSIZE  the changes together are larger than a batch
 *   -EINVAL    NULL, a reserved member that is not 0, an unknown flag, or two changes of one task
 *
 * Other errors are those of the first change that cannot be made; its `result` is the same error.
 */
TIMERHUB_API int timerhub_journal_commit(struct timerhub_journal *journal,
                                         struct timerhub_journal_change *changes, unsigned count);

/* ---- without waiting ---- */

/* The outcome of a timerhub_journal_submit(). */
struct timerhub_journal_completion {
	uint64_t tag;   /* the tag of the submit */
	uint64_t id;    /* id of the task of the first change; of a put, the new id */
	int32_t result; /* the result that timerhub_journal_commit() would have returned */
	uint32_t reserved;
};

/*
 * Like timerhub_journal_commit(), but without a wait: a completion with this tag reports later
 * whether the changes were made. Any number of submits may be in flight. After the call the caller
 * need not keep `changes` or the memory that it points at.
 *
 *   0        there will be one completion, unless the journal is closed first
 *   -EAGAIN  tasks_max or data_bytes_max is reached, as for put. Or the call would wait for space
 *            in the batch, or for a change in flight of one of its tasks. Submit again after a
 *            completion.
 *   -EINVAL  as for commit, or `count` is 0
 *
 * Other errors as for commit. After an error there is no completion.
 */
TIMERHUB_API int timerhub_journal_submit(struct timerhub_journal *journal,
                                         struct timerhub_journal_change *changes, unsigned count,
                                         uint64_t tag);

/*
 * Store up to `max` completions, in the order in which they happened. The call never waits. Returns
 * the number of completions. If the number is 0, the call also makes the fd unreadable. -EINVAL,
 * -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_completions(struct timerhub_journal *journal,
                                              struct timerhub_journal_completion *completions,
                                              unsigned max);

/*
 * Returns a descriptor that is readable when there are completions. The program may poll the
 * descriptor, and must not read or close it. The descriptor may be readable without a completion.
 * In this case timerhub_journal_completions() returns 0 and makes it unreadable. -EINVAL,
 * -EOWNERDEAD; -EMFILE, -ENFILE, -ENOMEM.
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
	uint32_t state;  /* enum timerhub_journal_state */
	uint32_t reason; /* why the task is parked; 0 if it is not parked */
	uint64_t reserved[4];
	uint32_t key_len;
	unsigned char key[TIMERHUB_JOURNAL_KEY_MAX + 1]; /* key of the task, and a final 0 */
};

/*
 * A callback that timerhub_journal_each() calls for each task. A result other than 0 ends the walk.
 */
typedef int timerhub_journal_visit(void *context, const struct timerhub_journal_info *info);

/*
 * Find the id of the live task with this key. -ENOENT: no live task has the key; -EINVAL,
 * -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_find(struct timerhub_journal *journal, const void *key,
                                       size_t key_len, uint64_t *ret_id);

/*
 * Read a live task: store its state, and copy the first `data_size` bytes of its data to `data`,
 * which may be NULL if `data_size` is 0. `ret_info` has the whole length. -ENOENT; -EINVAL,
 * -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_peek(struct timerhub_journal *journal, uint64_t id,
                                       struct timerhub_journal_info *ret_info, void *data,
                                       size_t data_size);
TIMERHUB_API int timerhub_journal_peek_key(struct timerhub_journal *journal, const void *key,
                                           size_t key_len, struct timerhub_journal_info *ret_info,
                                           void *data, size_t data_size);

/*
 * Call `visit` for every task that is live when the call is made, in order of time, then of id. The
 * walk skips a task that ends before its turn. No lock is held: `visit` may make any call except
 * close. Returns 0, or the result of `visit` that ended the walk. -ENOMEM; -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_each(struct timerhub_journal *journal,
                                       timerhub_journal_visit *visit, void *context);

/* Read the counters. -EINVAL, -EOWNERDEAD. */
TIMERHUB_API int timerhub_journal_stats(struct timerhub_journal *journal,
                                        struct timerhub_journal_stats *ret_stats);

/*
 * Check the journal in `dir`: read it as open would, but change nothing and take no lock. Another
 * process may have the journal open: if a file changes during the call, the call reads it again.
 *
 *   0                      open would succeed
 *   -EBADMSG, -EOPNOTSUPP  open would fail; `*ret_report` says why, although the call has failed
 *
 * Other errors are from the kernel.
 */
TIMERHUB_API int timerhub_journal_check(const char *dir,
                                        struct timerhub_journal_report *ret_report);

/*
 * Copy the journal into `to`, an existing empty directory, while other calls go on. The copy is a
 * journal with all changes that were acknowledged before the call. No file is dropped during the
 * copy. Open refuses an incomplete copy.
 *
 *   -ENOTEMPTY                `to` is not empty
 *   -EBADMSG                  the journal on disk is damaged
 *   -EINVAL, -EOWNERDEAD      NULL, or a forked child
 *   -ENOMEM, -ENOSPC, -EIO …  from the kernel
 */
TIMERHUB_API int timerhub_journal_backup(struct timerhub_journal *journal, const char *to);

#ifdef __cplusplus
}
#endif

#endif
