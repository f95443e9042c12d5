/* SPDX-License-Identifier: MIT */
/*
 * timerhub_journal: delayed tasks, stored durably in a directory and delivered at their times.
 *
 * timerhub-journal(7) has the promises; each call has a page. Returns 0, a count or a negative
 * errno, and then has written no output, unless said. Any thread may make any call, except close;
 * no signal handler may. A forked child gets -EOWNERDEAD.
 *
 * Names: `due_ns` is a time on CLOCK_REALTIME. `when_ns` is a delay from now, or with
 * TIMERHUB_ABSOLUTE a time, or TIMERHUB_NEVER. `delay_ns`, `interval_ns`, `lease_ns` and
 * `timeout_ns` are lengths.
 */
#ifndef TIMERHUB_JOURNAL_H
#define TIMERHUB_JOURNAL_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Open in one process at a time. */
struct timerhub_journal;

#define TIMERHUB_JOURNAL_KEY_MAX 255
#define TIMERHUB_JOURNAL_CHANGES_MAX 64

/* In a put: the task is due `when_ns` from now, and then every `when_ns`. */
#define TIMERHUB_JOURNAL_PERIODIC (1u << 17)

/*
 * A delivery. Data and key stay valid until the worker ends it (done, retry or park returns 0,
 * -ESTALE or -ENOENT) or releases it.
 */
struct timerhub_journal_task {
	uint64_t id; /* never 0, and never used again in this journal */
	uint64_t due_ns;
	uint64_t attempts; /* deliveries, this one included */
	const void *data;
	size_t data_len;
	const void *key; /* NULL: the task has no key */
	size_t key_len;
	uint64_t delivery;    /* never 0 */
	uint64_t interval_ns; /* 0: not periodic */
	uint64_t periods;     /* missed before this delivery, plus 1 */
	uint64_t reserved[6];
};

/* The name in version 0.3, for programs that still use it. */
#define timerhub_task timerhub_journal_task

/* 0: the default */
struct timerhub_journal_config {
	uint32_t size;           /* sizeof(struct timerhub_journal_config) */
	uint32_t flags;          /* 0 */
	uint64_t lease_ns;       /* 0: an unanswered task comes again only after the next open */
	uint64_t segment_bytes;  /* size of a log file, 4 KiB to 4 GiB; default 16 MiB */
	uint32_t tasks_max;      /* live tasks; default 1,048,576 */
	uint32_t data_max;       /* bytes of a task's data, up to 16 MiB; default 64 KiB */
	uint64_t data_bytes_max; /* data and keys of all tasks; default 1 GiB */
	uint32_t attempts_max;   /* deliveries before a task is parked; 0: no limit */
	uint32_t reserved;
};

/* Why compaction does not begin. */
enum timerhub_journal_held_up {
	TIMERHUB_JOURNAL_NOT_HELD_UP = 0,
	TIMERHUB_JOURNAL_BY_BACKUP = 1, /* a backup is in progress */
	TIMERHUB_JOURNAL_BY_DISK = 2,   /* the disk refused */
};

struct timerhub_journal_stats {
	uint64_t tasks;      /* live: put, and not yet done or cancelled */
	uint64_t taken;      /* of these, within the lease */
	uint64_t data_bytes; /* data and keys in memory */
	uint64_t live_bytes; /* on disk for live tasks, with the records that will end them */
	uint64_t disk_bytes; /* all files */
	uint64_t segments;   /* files of the log */
	uint64_t recovered;  /* tasks that the open found */
	uint64_t recovery_ns;
	uint64_t cut_bytes; /* torn bytes that the open cut off */
	uint64_t put;
	uint64_t cancelled;
	uint64_t moved;
	uint64_t delivered;
	uint64_t done;
	uint64_t retried; /* by retry or park */
	uint64_t leases_over;
	uint64_t batches;      /* writes to the log */
	uint64_t records;      /* records in these writes */
	uint64_t syncs;        /* that callers waited for */
	uint64_t copied_bytes; /* written by compaction */
	uint64_t segments_dropped;
	int32_t failed; /* what every change returns from now on: 0 or -EIO */
	uint32_t reserved0;
	uint64_t held;          /* deliveries neither answered nor released */
	uint64_t parked;        /* live tasks that are parked */
	uint64_t oldest_due_ns; /* of the tasks neither taken nor parked; UINT64_MAX: none */
	uint64_t disk_full;     /* times that the journal refused changes for want of room */
	uint64_t healed;        /* unreadable segments, written again from memory */
	uint64_t held_up;       /* enum timerhub_journal_held_up */
	uint64_t reserved[10];
	/* Bucket i counts times from 2^i ns to 2^(i+1) - 1; bucket 0 also 0. */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS]; /* due_ns to delivery */
	uint64_t sync_ns[TIMERHUB_LATENESS_BUCKETS];  /* a write and its sync, if waited for */
};

struct timerhub_journal_report {
	uint64_t segments;
	uint64_t records;
	uint64_t tasks;
	uint64_t torn_bytes; /* at the end; an open would cut them off */
	uint64_t segment;    /* of the first fault, or the last */
	uint64_t offset;     /* of the fault, or the end of the last valid record */
	const char *fault;   /* a constant text; NULL: no fault */
	uint64_t reserved[8];
};

/*
 * Open the journal in the directory `dir`; an empty one becomes a new journal. `config` may be
 * NULL. -EBUSY: it is open here or elsewhere. -EBADMSG: damaged, see timerhub_journal_check().
 * -EOPNOTSUPP: another version's format. -EINVAL, -E2BIG: the config. Or the kernel's error.
 */
TIMERHUB_API int timerhub_journal_open(struct timerhub_journal **ret_journal, const char *dir,
                                       const struct timerhub_journal_config *config);

/*
 * No other call may run or begin, except that blocked takers return -ESHUTDOWN. End workers by
 * timerhub_journal_stop() and join them first. `journal` may be NULL.
 */
TIMERHUB_API void timerhub_journal_close(struct timerhub_journal *journal);

/* From now on a take never blocks: it delivers what was due at the stop, then -ESHUTDOWN. */
TIMERHUB_API void timerhub_journal_stop(struct timerhub_journal *journal);

/*
 * Readable when a take would not block, and sometimes when it would; to poll only. -EINVAL,
 * -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_fd(struct timerhub_journal *journal);

/* ---- changes: on stable storage when they return 0 ---- */

/*
 * Put a task. `flags`: TIMERHUB_ABSOLUTE or TIMERHUB_JOURNAL_PERIODIC. -EAGAIN: tasks_max or
 * data_bytes_max is reached. -EMSGSIZE: data_max. -ERANGE: not below 2^63 ns. -EOVERFLOW: no id is
 * left. -EINVAL, -ENOMEM.
 * -ENOSPC and other errors of the disk: nothing has changed. -EIO: unknown whether it has, and no
 * further change is accepted until the journal is opened again.
 */
TIMERHUB_API int timerhub_journal_put(struct timerhub_journal *journal, uint64_t when_ns,
                                      uint32_t flags, const void *data, size_t data_len,
                                      uint64_t *ret_id);

/*
 * The same, under a key of 1 to 255 bytes. -EEXIST: a live task has the key, `*ret_id` is its id.
 */
TIMERHUB_API int timerhub_journal_put_key(struct timerhub_journal *journal, const void *key,
                                          size_t key_len, uint64_t when_ns, uint32_t flags,
                                          const void *data, size_t data_len, uint64_t *ret_id);

/* -EBUSY: a worker has taken the task. -ENOENT: done, cancelled, never put. As put. */
TIMERHUB_API int timerhub_journal_cancel(struct timerhub_journal *journal, uint64_t id);
TIMERHUB_API int timerhub_journal_cancel_key(struct timerhub_journal *journal, const void *key,
                                             size_t key_len);

/* Give a task a new time. -EBUSY: it is taken or parked. Otherwise as put and cancel. */
TIMERHUB_API int timerhub_journal_move(struct timerhub_journal *journal, uint64_t id,
                                       uint64_t when_ns, uint32_t flags);
TIMERHUB_API int timerhub_journal_move_key(struct timerhub_journal *journal, const void *key,
                                           size_t key_len, uint64_t when_ns, uint32_t flags);

/* ---- deliveries ---- */

/*
 * Take the earliest due task, or wait for one. 1: taken. 0: timeout. -ESHUTDOWN: stopped, and none
 * is left. -ENOMEM. `timeout_ns` UINT64_MAX: no limit. Not a cancellation point.
 */
TIMERHUB_API int timerhub_journal_take(struct timerhub_journal *journal,
                                       struct timerhub_journal_task *ret_task, uint64_t timeout_ns);

/* Wait for one task, then take all that are due, up to `max` (1 to INT_MAX). Their number. */
TIMERHUB_API int timerhub_journal_take_many(struct timerhub_journal *journal,
                                            struct timerhub_journal_task *ret_tasks, unsigned max,
                                            uint64_t timeout_ns);

/*
 * Acknowledge a delivery: the task ends, or waits for its next period. Also after the lease.
 * -ESTALE: delivered again since. -ENOENT: ended, cancelled, or answered before. Else as put.
 */
TIMERHUB_API int timerhub_journal_done(struct timerhub_journal *journal,
                                       const struct timerhub_journal_task *task);

/* Deliver again `delay_ns` from now, or park after attempts_max deliveries. -ERANGE, as done. */
TIMERHUB_API int timerhub_journal_retry(struct timerhub_journal *journal,
                                        const struct timerhub_journal_task *task,
                                        uint64_t delay_ns);

/* Set the task aside until timerhub_journal_revive(). `reason` is any number. As done. */
TIMERHUB_API int timerhub_journal_park(struct timerhub_journal *journal,
                                       const struct timerhub_journal_task *task, uint32_t reason);

/* Give a parked task a time and 0 attempts. -ENOENT: no such task is parked. Else as move. */
TIMERHUB_API int timerhub_journal_revive(struct timerhub_journal *journal, uint64_t id,
                                         uint64_t when_ns, uint32_t flags);

/* The lease ends `lease_ns` from now; 0: the config's. -ESTALE and -ENOENT as done; -EINVAL. */
TIMERHUB_API int timerhub_journal_touch(struct timerhub_journal *journal,
                                        const struct timerhub_journal_task *task,
                                        uint64_t lease_ns);

/*
 * Give up a delivery and its data without an answer: the task comes again after its lease.
 * -ENOENT: answered or released before. -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_release(struct timerhub_journal *journal,
                                          const struct timerhub_journal_task *task);

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

/* What `op` does not use, and what is reserved, must be 0. */
struct timerhub_journal_change {
	uint32_t op;     /* enum timerhub_journal_op */
	uint32_t flags;  /* put, move, revive */
	uint64_t id;     /* cancel, move, revive, if key_len is 0; put: the new task's */
	const void *key; /* put, cancel, move, revive */
	size_t key_len;
	uint64_t when_ns;     /* put, move, revive; retry: the delay */
	uint64_t interval_ns; /* put: 0 if not periodic */
	const void *data;     /* put */
	size_t data_len;
	const struct timerhub_journal_task *task; /* done, retry, park */
	uint32_t reason;                          /* park */
	int32_t result;                           /* written: 0, or in one of them the error */
	uint64_t reserved[4];
};

/*
 * Make up to 64 changes of different tasks, all or none. Returns the error of the first that cannot
 * be made. -E2BIG: too many. -EMSGSIZE: too large for one write. -EINVAL: wrong, or one task twice.
 */
TIMERHUB_API int timerhub_journal_commit(struct timerhub_journal *journal,
                                         struct timerhub_journal_change *changes, unsigned count);

/* ---- without waiting ---- */

struct timerhub_journal_completion {
	uint64_t tag;
	uint64_t id;    /* the first change's task */
	int32_t result; /* what timerhub_journal_commit() would have returned */
	uint32_t reserved;
};

/*
 * A commit that does not wait: 0 promises one completion with `tag`, unless the journal is closed
 * first. -EAGAIN: full, or a task has a change in flight. As commit.
 */
TIMERHUB_API int timerhub_journal_submit(struct timerhub_journal *journal,
                                         struct timerhub_journal_change *changes, unsigned count,
                                         uint64_t tag);

/* Store up to `max` completions, in their order; never waits. -EINVAL, -EOWNERDEAD. */
TIMERHUB_API int timerhub_journal_completions(struct timerhub_journal *journal,
                                              struct timerhub_journal_completion *ret_completions,
                                              unsigned max);

/* To poll. -EINVAL, -EOWNERDEAD, -EMFILE, -ENFILE, -ENOMEM. */
TIMERHUB_API int timerhub_journal_completion_fd(struct timerhub_journal *journal);

/* ---- asking ---- */

enum timerhub_journal_state {
	TIMERHUB_JOURNAL_PENDING = 0,
	TIMERHUB_JOURNAL_TAKEN = 1,
	TIMERHUB_JOURNAL_PARKED = 2,
};

struct timerhub_journal_info {
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns;
	uint64_t attempts;
	uint64_t data_len;
	uint32_t state; /* enum timerhub_journal_state */
	uint32_t reason;
	uint64_t reserved[4];
	uint32_t key_len;
	unsigned char key[TIMERHUB_JOURNAL_KEY_MAX + 1]; /* ends with a 0 */
};

/* Not 0: ends timerhub_journal_each(), which returns it. */
typedef int timerhub_journal_each_fn(void *context, const struct timerhub_journal_info *info);

/* -ENOENT: no live task has the key. -EINVAL, -EOWNERDEAD. */
TIMERHUB_API int timerhub_journal_find(struct timerhub_journal *journal, const void *key,
                                       size_t key_len, uint64_t *ret_id);

/*
 * Read a live task, and the first `data_size` bytes of its data. -ENOENT, -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_peek(struct timerhub_journal *journal, uint64_t id,
                                       struct timerhub_journal_info *ret_info, void *data,
                                       size_t data_size);
TIMERHUB_API int timerhub_journal_peek_key(struct timerhub_journal *journal, const void *key,
                                           size_t key_len, struct timerhub_journal_info *ret_info,
                                           void *data, size_t data_size);

/*
 * Call `fn` for each task that is live now, in order of time, without a lock: it may make any call
 * except close. -ENOMEM, -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_journal_each(struct timerhub_journal *journal,
                                       timerhub_journal_each_fn *fn, void *context);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function timerhub_journal_stats() has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* -EINVAL, -EOWNERDEAD. */
TIMERHUB_API int timerhub_journal_stats(struct timerhub_journal *journal,
                                        struct timerhub_journal_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Read the journal as an open would, but change and lock nothing. 0, or the error of an open;
 * the report is also written with -EBADMSG and -EOPNOTSUPP.
 */
TIMERHUB_API int timerhub_journal_check(const char *dir,
                                        struct timerhub_journal_report *ret_report);

/*
 * Copy an open journal into an empty directory. -ENOTEMPTY, -EBADMSG, -EINVAL, the kernel's.
 * -EBUSY: its files kept being removed.
 */
TIMERHUB_API int timerhub_journal_backup(struct timerhub_journal *journal, const char *to);

#ifdef __cplusplus
}
#endif

#endif
