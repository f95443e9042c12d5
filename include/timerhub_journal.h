/* SPDX-License-Identifier: MIT */
/*
 * timerhub_journal: durable delayed tasks, kept in a directory, delivered through timerhub.
 *
 * A task is an id, perhaps a key of the caller's, a wall-clock time and some bytes. When a call
 * that changes a task returns 0, the change is on stable storage. Delivery is at least once: a task
 * that was taken and not acknowledged comes again after its lease, or after the next open. A task
 * done or cancelled never comes again. No task comes before its time on CLOCK_REALTIME; tasks come
 * in order of time.
 *
 * Conventions are timerhub.h's: 0 or a count, or a negative errno with outputs untouched; never
 * prints. Times are uint64_t nanoseconds, points in time on CLOCK_REALTIME. Unless said otherwise
 * any number of threads may call at once. The calls lock a mutex, and those that change a task wait
 * for the disk: not for signal handlers.
 *
 * Fork. In a child every call returns -EOWNERDEAD; timerhub_journal_close() there frees the child's
 * copy and leaves the parent's journal alone.
 */
#ifndef TIMERHUB_JOURNAL_H
#define TIMERHUB_JOURNAL_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A directory that holds durable delayed tasks; one process at a time, which holds its lock. */
struct timerhub_journal;

/* Most bytes of a key, and most changes of one timerhub_journal_commit(). */
#define TIMERHUB_JOURNAL_KEY_MAX 255
#define TIMERHUB_JOURNAL_CHANGES_MAX 64

/*
 * One delivery of a task. Its taker holds data and key until done, retry or park of it returns 0,
 * -ESTALE or -ENOENT, or until release; however long that takes, and whatever becomes of the task.
 */
struct timerhub_task {
	uint64_t id;       /* never 0, never used again in this journal */
	uint64_t due_ns;   /* CLOCK_REALTIME */
	uint64_t attempts; /* deliveries so far, this one included; see take */
	const void *data;
	size_t data_len;
	const void *key; /* NULL: it has none */
	size_t key_len;
	uint64_t delivery;    /* names this delivery in this open journal; never 0 */
	uint64_t interval_ns; /* 0: not periodic */
	uint64_t periods;     /* that this delivery stands for: 1, and those missed before it */
	uint64_t reserved[6];
};

/* How to open a journal. Zeroed fields mean the default. */
struct timerhub_journal_config {
	uint32_t size;           /* sizeof(struct timerhub_journal_config) */
	uint32_t flags;          /* none yet */
	uint64_t lease_ns;       /* a task taken comes again after this; 0: only after a restart */
	uint64_t segment_bytes;  /* a file's size; 0: 16 MiB; 4 KiB to 4 GiB */
	uint32_t tasks_max;      /* most tasks that put lets in; 0: 1,048,576 */
	uint32_t data_max;       /* most bytes of one task's data; 0: 64 KiB; at most 16 MiB */
	uint64_t data_bytes_max; /* most bytes of all data and keys; 0: 1 GiB */
	uint32_t attempts_max;   /* a task that comes back after so many is parked; 0: never */
	uint32_t reserved;
};

/* Why compaction does nothing although there is something to gain. */
enum timerhub_journal_held_up {
	TIMERHUB_JOURNAL_NOT_HELD_UP = 0,
	TIMERHUB_JOURNAL_BY_BACKUP = 1, /* until it is made */
	TIMERHUB_JOURNAL_BY_DISK = 2,   /* the disk refused; tried again after the next change */
};

/* How the log is written. Since 0.2 by plain calls alone, which take less time. */
enum timerhub_journal_writer {
	TIMERHUB_JOURNAL_PLAIN = 0, /* pwrite and fdatasync */
	TIMERHUB_JOURNAL_URING = 1, /* io_uring: no longer */
};

/* What a journal holds, and what it has done since it was opened. */
struct timerhub_journal_stats {
	uint64_t tasks;       /* tasks live: put, and neither done nor cancelled */
	uint64_t taken;       /* of those, taken: neither given back nor over their lease */
	uint64_t data_bytes;  /* data and keys in memory */
	uint64_t live_bytes;  /* on disk: a record of each live task, and one that ends it */
	uint64_t disk_bytes;  /* what is on disk, zeros written ahead included */
	uint64_t segments;    /* in so many files */
	uint64_t recovered;   /* tasks found at open */
	uint64_t recovery_ns; /* how long finding them took */
	uint64_t cut_bytes;   /* torn bytes that open cut off the end */
	uint64_t put;         /* calls that returned 0 */
	uint64_t cancelled;
	uint64_t moved;
	uint64_t delivered; /* tasks taken, each time they were */
	uint64_t done;
	uint64_t retried;
	uint64_t leases_over;      /* tasks given back because their lease was over */
	uint64_t batches;          /* writes to the log */
	uint64_t records;          /* records in them */
	uint64_t syncs;            /* syncs of the log that callers waited for */
	uint64_t copied_bytes;     /* written by compaction */
	uint64_t segments_dropped; /* files removed by compaction */
	int32_t failed;            /* 0, or what every change returns from now on: -EIO */
	uint32_t writer;           /* enum timerhub_journal_writer: plain */
	uint64_t held;             /* deliveries that their takers have not answered for */
	uint64_t parked;           /* of the tasks, those that are parked */
	uint64_t oldest_due_ns;    /* of the tasks not taken and not parked; UINT64_MAX: none */
	uint64_t disk_full; /* times that the disk was full, and changes were refused for it */
	uint64_t healed;    /* segments that compaction could not read, and wrote from memory */
	uint64_t held_up;   /* enum timerhub_journal_held_up */
	uint64_t reserved[10];
	/*
	 * Of all deliveries, the time of taking minus due_ns; and of all writes that callers waited
	 * for, how long the write and the sync took. Bucket 0 counts 0 and 1 ns, bucket i from 2^i
	 * to 2^(i+1) - 1 ns.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t sync_ns[TIMERHUB_LATENESS_BUCKETS];
};

/* What timerhub_journal_check() found. */
struct timerhub_journal_report {
	uint64_t segments;   /* files read */
	uint64_t records;    /* good records in them */
	uint64_t tasks;      /* tasks live at their end */
	uint64_t torn_bytes; /* at the end, cut by the next open; see the man page */
	uint64_t segment;    /* number of the file with the first fault, or of the last file */
	uint64_t offset;     /* where in it the fault is, or the last good record ends */
	const char *fault;   /* what is wrong there; NULL: nothing. A constant. */
	uint64_t reserved[8];
};

/*
 * Open the journal in `dir`, an existing directory; an empty one is a new journal. Finds every
 * acknowledged fact again and cuts a torn end. `config` may be NULL.
 * -EBUSY: open already, here or in another process; -EBADMSG: a file is corrupt before its end
 * (timerhub_journal_check() says where, `timerhub-journal repair` keeps what can still be read);
 * -EOPNOTSUPP: written by another version; -EINVAL, -E2BIG: bad config; -ENOMEM, -ENOENT, -EACCES,
 * -ENOSPC, -EIO …: from the kernel. The caller that makes the directory syncs its parent.
 */
TIMERHUB_API int timerhub_journal_open(struct timerhub_journal **ret_journal, const char *dir,
                                       const struct timerhub_journal_config *config);

/*
 * Close. Threads blocked in take return -ESHUTDOWN first; no other call may be running or start:
 * to end workers, call timerhub_journal_stop(), join them, then close. Tasks taken and not done
 * come again at the next open. NULL is fine.
 */
TIMERHUB_API void timerhub_journal_close(struct timerhub_journal *journal);

/*
 * From now on no take blocks. Tasks that are due at this moment are still handed out; when none is
 * left, take returns -ESHUTDOWN, then and ever after. A stop cannot be undone; all other calls work
 * as before. NULL is fine; in a forked child it does nothing.
 */
TIMERHUB_API void timerhub_journal_stop(struct timerhub_journal *journal);

/*
 * Readable when take would not block. After a task was cancelled, moved or taken elsewhere it may
 * be readable for nothing; the next take returns 0 and clears it. Poll it, never read or close it.
 * -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_fd(struct timerhub_journal *journal);

/* ---- changes: on stable storage when they return 0 ---- */

/*
 * Put a task, to be delivered `when_ns` from now or, with TIMERHUB_ABSOLUTE, at that time.
 * TIMERHUB_NEVER: not before it is moved. `ret_id` may be NULL. -EAGAIN: tasks_max tasks are live,
 * or data_bytes_max bytes in memory; -EMSGSIZE: more than data_max bytes; -ERANGE: beyond 2^63 ns;
 * -EINVAL; -ENOMEM; -ENOSPC, -EDQUOT, -EFBIG …: the disk refused the write: nothing has changed,
 * the call may be repeated; -EIO: a write or a sync failed. After that the fact is in doubt, no
 * change is accepted any more, delivery goes on; open the journal again.
 */
TIMERHUB_API int timerhub_journal_put(struct timerhub_journal *journal, uint64_t when_ns,
                                      uint32_t flags, const void *data, size_t data_len,
                                      uint64_t *ret_id);

/*
 * Put a task under a key: 1 to TIMERHUB_JOURNAL_KEY_MAX bytes, which no other live task has. The
 * key outlives the process as the task does. -EEXIST: a live task has the key; `*ret_id` is its id
 * (the one case where a failing call writes an output). Else as for put.
 */
TIMERHUB_API int timerhub_journal_put_key(struct timerhub_journal *journal, const void *key,
                                          size_t key_len, uint64_t when_ns, uint32_t flags,
                                          const void *data, size_t data_len, uint64_t *ret_id);

/*
 * 0: the task will never be delivered (again). -EBUSY: a worker has it; the worker decides what
 * becomes of it. -ENOENT: done, cancelled, or never put. Else as for put.
 */
TIMERHUB_API int timerhub_journal_cancel(struct timerhub_journal *journal, uint64_t id);
TIMERHUB_API int timerhub_journal_cancel_key(struct timerhub_journal *journal, const void *key,
                                             size_t key_len);

/*
 * 0: the task comes at the new time, not the old. Errors as for cancel; -EBUSY also if the task is
 * parked; -ERANGE.
 */
TIMERHUB_API int timerhub_journal_move(struct timerhub_journal *journal, uint64_t id,
                                       uint64_t when_ns, uint32_t flags);
TIMERHUB_API int timerhub_journal_move_key(struct timerhub_journal *journal, const void *key,
                                           size_t key_len, uint64_t when_ns, uint32_t flags);

/* ---- deliveries ---- */

/*
 * Take the task that is due, the earliest first; waits up to `timeout_ns` (0: not at all,
 * UINT64_MAX: for ever) for one. 1: taken; 0: the time is over; -ESHUTDOWN: the journal is stopped
 * and nothing is left, or it is being closed; -ENOMEM. The number of attempts is recorded some
 * milliseconds behind the delivery, so that the last may be missing after a crash. Signals do not
 * end it, and it is no cancellation point.
 */
TIMERHUB_API int timerhub_journal_take(struct timerhub_journal *journal,
                                       struct timerhub_task *ret_task, uint64_t timeout_ns);

/*
 * As take, of up to `max` tasks that are due when the first one is. Returns how many; 0: the time
 * is over; errors as of take.
 */
TIMERHUB_API int timerhub_journal_take_many(struct timerhub_journal *journal,
                                            struct timerhub_task *ret_tasks, unsigned max,
                                            uint64_t timeout_ns);

/*
 * Acknowledge a delivery: the task is never delivered again; a periodic one comes at its next
 * period. The lease may be over, as long as no later delivery was made. -ESTALE: one was, so that
 * the task is another worker's; -ENOENT: the task was done or cancelled, or this delivery is
 * answered for. Else as for put. A full disk takes the end of a task; done of a periodic one, which
 * ends nothing, is -ENOSPC there, and the delivery stays the worker's.
 */
TIMERHUB_API int timerhub_journal_done(struct timerhub_journal *journal,
                                       const struct timerhub_task *task);

/*
 * Give a delivery back, for the task to be delivered again `delay_ns` from now; or, after
 * attempts_max deliveries, to be parked with reason 0. Errors as for done; -ERANGE.
 */
TIMERHUB_API int timerhub_journal_retry(struct timerhub_journal *journal,
                                        const struct timerhub_task *task, uint64_t delay_ns);

/*
 * Park the task: it stays, and is not delivered until timerhub_journal_revive(). `reason` is any
 * number of the caller's, for timerhub_journal_each(). Errors as for done.
 */
TIMERHUB_API int timerhub_journal_park(struct timerhub_journal *journal,
                                       const struct timerhub_task *task, uint32_t reason);

/*
 * Deliver a parked task at that time, its attempts counted from 0 again. To drop it instead, cancel
 * it. -ENOENT: no task of that id is parked. Else as for move.
 */
TIMERHUB_API int timerhub_journal_revive(struct timerhub_journal *journal, uint64_t id,
                                         uint64_t when_ns, uint32_t flags);

/*
 * Prolong a delivery's lease: it lasts `lease_ns` from now; 0: as long as lease_ns of the config.
 * A task whose lease is over is taken again, if no other worker has it. Nothing is written to disk,
 * and in a journal without leases nothing changes. -ESTALE, -ENOENT: as for done; -EINVAL.
 */
TIMERHUB_API int timerhub_journal_touch(struct timerhub_journal *journal,
                                        const struct timerhub_task *task, uint64_t lease_ns);

/*
 * Let go of a delivery without an answer: data and key are no longer the caller's. The task comes
 * again when its lease is over. -ENOENT: this delivery is answered for; -EINVAL, -EOWNERDEAD.
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

/* One change. Fields that its op does not name, and reserved ones, are zero. */
struct timerhub_journal_change {
	uint32_t op;    /* enum timerhub_journal_op */
	uint32_t flags; /* put, move, revive: 0 or TIMERHUB_ABSOLUTE */
	uint64_t id;    /* cancel, move, revive: which task, if key_len is 0; put: written */
	const void *key;
	size_t key_len;
	uint64_t when_ns;     /* put, move, retry, revive */
	uint64_t interval_ns; /* put: then every so many ns; 0: once */
	const void *data;     /* put */
	size_t data_len;
	const struct timerhub_task *task; /* done, retry, park */
	uint32_t reason;                  /* park */
	int32_t result;                   /* written: why this change is the one refused */
	uint64_t reserved[4];
};

/*
 * Make `count` changes of different tasks, at most TIMERHUB_JOURNAL_CHANGES_MAX: all are made, or
 * none, also if the process or the machine dies. So "done this, and put the next" never loses a
 * step nor doubles one. A put may use the key of a task that the same call ends. -E2BIG: too many;
 * -EMSGSIZE: together they are larger than a batch; -EINVAL; else of the first change that cannot
 * be made, whose `result` says the same. A reserved field or a flag that this version does not know
 * is -EINVAL.
 */
TIMERHUB_API int timerhub_journal_commit(struct timerhub_journal *journal,
                                         struct timerhub_journal_change *changes, unsigned count);

/* ---- without waiting ---- */

/* What became of a timerhub_journal_submit(). */
struct timerhub_journal_completion {
	uint64_t tag;   /* of the submit */
	uint64_t id;    /* of the first change's task: of a put, the new one */
	int32_t result; /* as timerhub_journal_commit() would have returned */
	uint32_t reserved;
};

/*
 * As commit, but only begin: the changes are made, or not, by the time that a completion with this
 * tag comes. Any number may be in flight. Nothing in `changes` needs to be kept. 0: one completion
 * will come, unless the journal is closed first; else none will, errors as of commit, and -EAGAIN
 * also if it would have to wait: for room in the batch, or for a change in flight of one of its
 * tasks. Then submit again after a completion. -EINVAL also for no change at all.
 */
TIMERHUB_API int timerhub_journal_submit(struct timerhub_journal *journal,
                                         struct timerhub_journal_change *changes, unsigned count,
                                         uint64_t tag);

/*
 * Write up to `max` completions, in the order in which they happened. Does not wait. Returns how
 * many; -EINVAL, -EOWNERDEAD. With 0 the fd is clear.
 */
TIMERHUB_API int timerhub_journal_completions(struct timerhub_journal *journal,
                                              struct timerhub_journal_completion *completions,
                                              unsigned max);

/*
 * Readable when there are completions; it may be readable for nothing, and
 * timerhub_journal_completions() that returns 0 clears it. Poll it, never read or close it.
 * -EINVAL, -EOWNERDEAD; -EMFILE, -ENFILE, -ENOMEM.
 */
TIMERHUB_API int timerhub_journal_completion_fd(struct timerhub_journal *journal);

/* ---- asking ---- */

enum timerhub_journal_state {
	TIMERHUB_JOURNAL_PENDING = 0,
	TIMERHUB_JOURNAL_TAKEN = 1,
	TIMERHUB_JOURNAL_PARKED = 2,
};

/* A task as it is, without its data. */
struct timerhub_journal_info {
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns;
	uint64_t attempts;
	uint64_t data_len;
	uint32_t state;  /* enum timerhub_journal_state */
	uint32_t reason; /* of a parked task */
	uint64_t reserved[4];
	uint32_t key_len;
	unsigned char key[TIMERHUB_JOURNAL_KEY_MAX + 1]; /* and a final 0 */
};

/* Told of a task by timerhub_journal_each(). Other than 0 ends that. */
typedef int timerhub_journal_visit(void *context, const struct timerhub_journal_info *info);

/* The id of the live task that has the key. -ENOENT: none has; -EINVAL, -EOWNERDEAD. */
TIMERHUB_API int timerhub_journal_find(struct timerhub_journal *journal, const void *key,
                                       size_t key_len, uint64_t *ret_id);

/*
 * Look at a live task; copy the first `data_size` bytes of its data to `data` (NULL if 0), and
 * write how many it has. -ENOENT; -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_peek(struct timerhub_journal *journal, uint64_t id,
                                       struct timerhub_journal_info *ret_info, void *data,
                                       size_t data_size);
TIMERHUB_API int timerhub_journal_peek_key(struct timerhub_journal *journal, const void *key,
                                           size_t key_len, struct timerhub_journal_info *ret_info,
                                           void *data, size_t data_size);

/*
 * Call `visit` for every task that was live when this was called, in order of time, then of id;
 * those that end meanwhile are left out. No lock is held: `visit` may make any call but close. If
 * it returns other than 0 that ends it, and is returned. 0; -ENOMEM; -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_each(struct timerhub_journal *journal,
                                       timerhub_journal_visit *visit, void *context);

/* Read the counters. -EINVAL, -EOWNERDEAD. */
TIMERHUB_API int timerhub_journal_stats(struct timerhub_journal *journal,
                                        struct timerhub_journal_stats *ret_stats);

/*
 * Read the journal in `dir` as open would, changing nothing and without its lock; what a process
 * that has it open is just changing is looked at again. 0: open would succeed; -EBADMSG or
 * -EOPNOTSUPP: it would not, `*ret_report` says why (a failing call that writes an output); else
 * from the kernel.
 */
TIMERHUB_API int timerhub_journal_check(const char *dir,
                                        struct timerhub_journal_report *ret_report);

/*
 * Copy the journal, without stopping anything, into `to`, an existing empty directory: a journal
 * that holds all that was acknowledged before the call. No files are dropped meanwhile. -ENOTEMPTY;
 * -EBADMSG: the journal on disk is damaged; -EINVAL, -EOWNERDEAD; -ENOMEM, -ENOSPC, -EIO …: from
 * the kernel. A copy that was broken off is refused by open.
 */
TIMERHUB_API int timerhub_journal_backup(struct timerhub_journal *journal, const char *to);

#ifdef __cplusplus
}
#endif

#endif
