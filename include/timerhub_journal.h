/* SPDX-License-Identifier: MIT */
/*
 * timerhub_journal: durable delayed tasks, kept in a directory, delivered through timerhub.
 *
 * A task is an id, a wall-clock time and some bytes. When put, cancel, move, done or retry returns
 * 0, that fact is on stable storage. Delivery is at least once: a task that was taken and not
 * acknowledged comes again after its lease, or after the next open. A task done or cancelled never
 * comes again. No task comes before its time on CLOCK_REALTIME; tasks come in order of time.
 *
 * Conventions are timerhub.h's: 0 or a count, or a negative errno with outputs untouched; never
 * prints. Times are uint64_t nanoseconds, points in time on CLOCK_REALTIME. Unless said otherwise
 * any number of threads may call at once. The calls lock a mutex and, but for take, fd and stats,
 * wait for the disk: not for signal handlers.
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

/* A task in the hands of whoever took it. */
struct timerhub_task {
	uint64_t id;       /* never 0, never used again in this journal */
	uint64_t due_ns;   /* CLOCK_REALTIME */
	uint64_t attempts; /* deliveries so far, this one included; see take */
	const void *data;  /* until done or retry is called, or the lease is over */
	size_t data_len;
};

/* How to open a journal. Zeroed fields mean the default. */
struct timerhub_journal_config {
	uint32_t size;          /* sizeof(struct timerhub_journal_config) */
	uint32_t flags;         /* none yet */
	uint64_t lease_ns;      /* a task taken comes again after this; 0: only after a restart */
	uint64_t segment_bytes; /* a file's size; 0: 16 MiB; 4 KiB to 4 GiB */
	uint32_t tasks_max;     /* most tasks that put lets in; 0: 1,048,576 */
	uint32_t data_max;      /* most bytes of one task's data; 0: 64 KiB; at most 16 MiB */
};

enum timerhub_journal_writer {
	TIMERHUB_JOURNAL_PLAIN = 0, /* pwrite and fdatasync */
	TIMERHUB_JOURNAL_URING = 1, /* io_uring, the write and the sync linked */
};

/* What a journal holds, and what it has done since it was opened. */
struct timerhub_journal_stats {
	uint64_t tasks;       /* tasks live: put, and neither done nor cancelled */
	uint64_t taken;       /* of those, in somebody's hands */
	uint64_t data_bytes;  /* data of live tasks */
	uint64_t live_bytes;  /* what the live tasks take on disk if nothing else were there */
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
	uint32_t writer;           /* enum timerhub_journal_writer in use */
	int32_t failed;            /* 0, or what every change returns from now on: -EIO */
	uint64_t reserved[16];
};

/* What timerhub_journal_check() found. */
struct timerhub_journal_report {
	uint64_t segments;   /* files read */
	uint64_t records;    /* good records in them */
	uint64_t tasks;      /* tasks live at their end */
	uint64_t torn_bytes; /* at the end, cut by the next open; nothing acknowledged was there */
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
 * -EOPNOTSUPP: written by a later version; -EINVAL, -E2BIG: bad config; -ENOMEM, -ENOENT, -EACCES,
 * -ENOSPC, -EIO …: from the kernel.
 */
TIMERHUB_API int timerhub_journal_open(struct timerhub_journal **ret_journal, const char *dir,
                                       const struct timerhub_journal_config *config);

/*
 * Close. Threads blocked in take return -ESHUTDOWN first; no other call may be running or start.
 * Tasks taken and not done come again at the next open. NULL is fine.
 */
TIMERHUB_API void timerhub_journal_close(struct timerhub_journal *journal);

/*
 * Readable when take would not block. After a task was cancelled, moved or taken elsewhere it may
 * be readable for nothing; the next take returns 0 and clears it. Poll it, never read or close it.
 * -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_fd(const struct timerhub_journal *journal);

/*
 * Put a task, to be delivered `when_ns` from now or, with TIMERHUB_ABSOLUTE, at that time.
 * TIMERHUB_NEVER: not before it is moved. `ret_id` may be NULL.
 * -EAGAIN: tasks_max tasks are live; -EMSGSIZE: more than data_max bytes; -ERANGE: beyond 2^63 ns;
 * -EINVAL; -ENOMEM; -ENOSPC, -EDQUOT, -EFBIG …: the disk refused the write: nothing has changed,
 * the call may be repeated; -EIO: the sync failed. After that the fact is in doubt, no change is
 * accepted any more, delivery goes on; open the journal again.
 */
TIMERHUB_API int timerhub_journal_put(struct timerhub_journal *journal, uint64_t when_ns,
                                      uint32_t flags, const void *data, size_t data_len,
                                      uint64_t *ret_id);

/*
 * 0: the task will never be delivered. -EBUSY: somebody has taken it; what becomes of it is theirs
 * to say. -ENOENT: done, cancelled, or never put. Else as for put.
 */
TIMERHUB_API int timerhub_journal_cancel(struct timerhub_journal *journal, uint64_t id);

/* 0: the task comes at the new time, not the old. Errors as for cancel; -ERANGE. */
TIMERHUB_API int timerhub_journal_move(struct timerhub_journal *journal, uint64_t id,
                                       uint64_t when_ns, uint32_t flags);

/*
 * Take the task that is due, the earliest first; waits up to `timeout_ns` (0: not at all,
 * UINT64_MAX: for ever) for one. 1: taken; 0: the time is over; -ESHUTDOWN: the journal is being
 * closed. The number of attempts is recorded behind the delivery, so that the last may be missing
 * after a crash.
 */
TIMERHUB_API int timerhub_journal_take(struct timerhub_journal *journal,
                                       struct timerhub_task *ret_task, uint64_t timeout_ns);

/*
 * Acknowledge: the task is never delivered again. It need not be taken, so that who comes after the
 * end of his lease can still say so. -ENOENT: done, cancelled, or never put. Else as for put.
 */
TIMERHUB_API int timerhub_journal_done(struct timerhub_journal *journal, uint64_t id);

/*
 * Give a task back that was taken, to be delivered again `delay_ns` from now. -ENOENT: done, or the
 * lease is over and nobody has it. Else as for put.
 */
TIMERHUB_API int timerhub_journal_retry(struct timerhub_journal *journal, uint64_t id,
                                        uint64_t delay_ns);

/* Read the counters. -EINVAL, -EOWNERDEAD. */
TIMERHUB_API int timerhub_journal_stats(struct timerhub_journal *journal,
                                        struct timerhub_journal_stats *ret_stats);

/*
 * Read the journal in `dir` as open would, changing nothing and without its lock; a process that
 * has it open may make its end look torn. 0: open would succeed; -EBADMSG or -EOPNOTSUPP: it would
 * not, `*ret_report` says why (the one case where a failing call writes an output); else from the
 * kernel.
 */
TIMERHUB_API int timerhub_journal_check(const char *dir,
                                        struct timerhub_journal_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
