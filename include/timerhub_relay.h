/* SPDX-License-Identifier: MIT */
/*
 * timerhub_relay: delayed tasks for many machines, kept in Redis, delivered at the very instant.
 *
 * A queue of tasks lives in a server of Redis (7.0 or later) or Valkey (8 or later), by the keys
 * and functions of timerhub-relay(5). A task is an id, a time and some bytes. Any process puts,
 * cancels and moves; each task that is due goes to one taker. Some process must serve as an alarm
 * clock: the daemon `timerhub-relay run`, or any that opens the queue with TIMERHUB_RELAY_SERVE;
 * any number may.
 *
 * When put, cancel, move, done or retry returns 0, Redis holds that fact; what becomes of it when
 * Redis fails is up to its persistence, see timerhub-relay(7). Delivery is at least once: a task
 * that was taken and not acknowledged comes again after its lease. A task done or cancelled never
 * comes again. No task comes before its time on Redis's clock; tasks come in order of time.
 *
 * Conventions are timerhub.h's: 0 or a count, or a negative errno with outputs untouched; never
 * prints. Times are uint64_t nanoseconds, rounded up to whole microseconds; points in time are of
 * CLOCK_REALTIME, on Redis's machine. Unless said otherwise any number of threads may call at once.
 * The calls lock a mutex and wait for the network: not for signal handlers.
 *
 * Errors of every call that asks Redis: -ETIMEDOUT: in doubt: sent, and not answered in time; it
 * may or may not have happened, and may be repeated; -ECONNREFUSED, -EHOSTUNREACH …: no
 * connection in time, never sent; -EROFS: no server that takes changes in time (a replica, loading,
 * short of replicas); -EACCES: password or rights; -EOPNOTSUPP: before 7.0, or a cluster; -ENOSPC:
 * Redis's memory is full; -EIO: Redis cannot persist; -EBADMSG: a key holds something else;
 * -EPROTO: the server's answers are not Redis's; -ENOMEM. Except after -ETIMEDOUT nothing has
 * changed.
 *
 * Fork. In a child every call returns -EOWNERDEAD; timerhub_relay_close() there frees the child's
 * copy and leaves the parent's alone.
 */
#ifndef TIMERHUB_RELAY_H
#define TIMERHUB_RELAY_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A queue of delayed tasks in Redis. */
struct timerhub_relay;

#define TIMERHUB_RELAY_ID_BYTES 65 /* an id of at most 64 bytes, and its NUL */
#define TIMERHUB_RELAY_DELIVERY_BYTES 48

/*
 * A task in a taker's hands. The taker holds its data until done or retry of it returns 0, -ESTALE
 * or -ENOENT, or until release; however long that takes, and whatever becomes of the task.
 */
struct timerhub_relay_task {
	char id[TIMERHUB_RELAY_ID_BYTES];
	char delivery[TIMERHUB_RELAY_DELIVERY_BYTES]; /* which one: a later one makes it stale */
	uint64_t due_ns;                              /* CLOCK_REALTIME */
	uint64_t attempts;                            /* deliveries so far, this one included */
	const void *data;
	size_t data_len;
};

/* For timerhub_relay_config.flags. */
#define TIMERHUB_RELAY_SERVE (1u << 0) /* also be one of the queue's alarm clocks */

/* For timerhub_relay_put(), beside TIMERHUB_ABSOLUTE. */
#define TIMERHUB_RELAY_REPLACE (1u << 16) /* a task that still waits gets this time and data */

/* How to open a queue. Zeroed fields mean the default. */
struct timerhub_relay_config {
	uint32_t size;  /* sizeof(struct timerhub_relay_config) */
	uint32_t flags; /* TIMERHUB_RELAY_SERVE */
	/*
	 * "redis://[user:password@]host[:port][/db]", "unix:/path" or
	 * "sentinel://[user:password@]host[:port][+host...]/master[/db]"; several by commas, each a
	 * master of its own: the queue is spread over them, in this order for its whole life;
	 * NULL: redis://127.0.0.1
	 */
	const char *redis;
	const char *consumer; /* its name for Redis; NULL: host, process and a random part */
	uint64_t timeout_ns;  /* how long a call tries; 0: 5 s; at most the queue's past_us */
	uint64_t horizon_ns;  /* serving: the longest sleep of the first relay; 0: 10 s */
	uint64_t grace_ns;    /* serving: what a relay leaves to those before it; 0: 100 ms */
	uint32_t batch;       /* serving: most tasks moved by one script; 0: 128; at most 1000 */
	uint32_t replicas; /* put and the others return 0 when so many hold it too; at most 100 */
};

/* What a queue holds, by its server, and what this process has done with it since open. */
struct timerhub_relay_stats {
	uint64_t due;         /* the queue: tasks that wait */
	uint64_t ready;       /* tasks due, taken ones included */
	uint64_t taken;       /* of those, in some consumer's hands */
	uint64_t dead;        /* tasks that have used up their attempts, as far as they are kept */
	uint64_t past;        /* ids refused for a while */
	uint64_t relays;      /* alarm clocks */
	uint64_t promoted;    /* by all relays: tasks that became due */
	uint64_t leases_over; /* deliveries repeated because their lease was over */
	uint64_t buried;      /* tasks that went to the dead */
	uint64_t orphans;     /* what other programs have left in the keys */
	uint64_t put;         /* this process: calls that returned 0 */
	uint64_t cancelled;
	uint64_t moved;
	uint64_t delivered; /* tasks taken */
	uint64_t done;
	uint64_t retried;
	uint64_t looks;       /* serving: how often it has looked */
	uint64_t looks_empty; /* of those, for nothing */
	uint64_t bells;       /* messages that a task is earlier than was promised */
	uint64_t rank;        /* 0: it looks first; the others follow if it does not */
	uint64_t connects;    /* connections made to the server */
	uint64_t in_doubt;    /* calls repeated because a connection was lost */
	/*
	 * Of the tasks that this process has moved: promotion minus due time, on Redis's clock;
	 * buckets as of timerhub_stats.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t reserved[16];
};

/* What a server keeps when it, its machine, or its place as the master is lost. */
enum timerhub_relay_keeps {
	TIMERHUB_RELAY_KEEPS_UNKNOWN = 0,  /* it does not show its configuration */
	TIMERHUB_RELAY_KEEPS_NOTHING = 1,  /* no persistence */
	TIMERHUB_RELAY_KEEPS_SNAPSHOT = 2, /* RDB only */
	TIMERHUB_RELAY_KEEPS_SECONDS = 3,  /* AOF, appendfsync everysec or no */
	TIMERHUB_RELAY_KEEPS_ALL = 4,      /* AOF, appendfsync always */
};

/* What timerhub_relay_check() found. */
struct timerhub_relay_report {
	uint32_t keeps;        /* enum timerhub_relay_keeps */
	uint32_t replicas;     /* connected */
	uint32_t replicas_min; /* min-replicas-to-write; 0: a cut-off master goes on accepting */
	uint32_t evicts;       /* 1: maxmemory-policy is not noeviction: records may vanish */
	uint64_t tasks;        /* records of tasks */
	uint64_t placed; /* ids that wait, and entries of the stream: as many if all is well */
	uint64_t round_trip_ns; /* the quickest of some; grace_ns should be 4 times as long */
	const char *fault;      /* the first thing that is wrong; NULL: nothing. A constant. */
	uint64_t relays;        /* that look when they have promised to; 0 is a fault */
	uint64_t overdue_ns;    /* the first waiting task is due since; above 5 s is a fault */
	uint64_t reserved[6];
};

/*
 * Open a queue; the first open makes it. `queue` is 1 to 64 of A-Z, a-z, 0-9, '_', '.' and '-'.
 * `config` may be NULL. Tries for timeout_ns to find each server. -EINVAL, -E2BIG: bad config, bad
 * queue; -EEXIST: the queue is spread over other servers, or over these in another order;
 * -EOPNOTSUPP: rediss://, a server before 7.0, a node of a cluster, a later version's queue;
 * -EMFILE; errors of the network as above.
 */
TIMERHUB_API int timerhub_relay_open(struct timerhub_relay **ret_relay, const char *queue,
                                     const struct timerhub_relay_config *config);

/*
 * From now on no take waits, and no take asks Redis: threads blocked in take return, later takes
 * return at once. Tasks that were read ahead are still handed out; when none is left, take returns
 * -ESHUTDOWN for ever. A stop cannot be undone; all other calls work as before. NULL is fine.
 */
TIMERHUB_API void timerhub_relay_stop(struct timerhub_relay *relay);

/*
 * Close. Threads blocked in take return -ESHUTDOWN first. No other call may be running or start: to
 * end workers, call timerhub_relay_stop(), join them, then close. Tasks taken and not done come
 * again after their lease. If it serves, it leaves to the next relay without lateness. NULL is
 * fine.
 */
TIMERHUB_API void timerhub_relay_close(struct timerhub_relay *relay);

/*
 * Readable when take would not block. From the first call on one task is taken from Redis ahead of
 * take, so that its lease runs. It may be readable for nothing; the next take returns 0 and clears
 * it. Poll it, never read or close it. -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_relay_fd(struct timerhub_relay *relay);

/*
 * Put a task, to be delivered `when_ns` from now or, with TIMERHUB_ABSOLUTE, at that time.
 * TIMERHUB_NEVER: not before it is moved. `id` is your own: a repeat with it changes nothing; NULL:
 * one is made. `ret_id`, of TIMERHUB_RELAY_ID_BYTES, may be NULL.
 * -EEXIST: the id is live, or was put less than past_us ago and is finished; -EAGAIN: tasks_max
 * tasks are live; -EMSGSIZE: more than data_max bytes; -ERANGE: beyond 2^53 us; -EINVAL; errors as
 * above. A put in doubt is repeated until the time is over, and never carried out after that.
 */
TIMERHUB_API int timerhub_relay_put(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                    uint32_t flags, const void *data, size_t data_len,
                                    char *ret_id);

/*
 * 0: the task will never be delivered, not even if it was due already. -EBUSY: a taker has it; what
 * becomes of it is that taker's to say. -ENOENT: done, cancelled, or never put. Errors as above;
 * -ETIMEDOUT also if it was repeated in doubt and then found no task, or a taken one.
 */
TIMERHUB_API int timerhub_relay_cancel(struct timerhub_relay *relay, const char *id);

/* 0: the task comes at the new time, not the old. Errors as for cancel; -ERANGE. */
TIMERHUB_API int timerhub_relay_move(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                     uint32_t flags);

/*
 * Take a task that is due, the earliest first; waits up to `timeout_ns` (0: for one answer of
 * Redis, UINT64_MAX: for ever) for one. 1: taken; 0: the time is over; -ESHUTDOWN: the relay was
 * stopped and has none left, or is being closed. Without waiting (0), errors as above too.
 */
TIMERHUB_API int timerhub_relay_take(struct timerhub_relay *relay,
                                     struct timerhub_relay_task *ret_task, uint64_t timeout_ns);

/*
 * Acknowledge: the task is never delivered again. A taker that comes after the end of the lease can
 * still say so. -ENOENT: done by another taker, or cancelled. Errors as above.
 */
TIMERHUB_API int timerhub_relay_done(struct timerhub_relay *relay,
                                     const struct timerhub_relay_task *task);

/*
 * Give a task back that was taken, to be delivered again `delay_ns` from now; one that has used up
 * its attempts goes to the dead. -ESTALE: the lease is over, another delivery has taken its place;
 * -ENOENT: done; -ERANGE; errors as above.
 */
TIMERHUB_API int timerhub_relay_retry(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task, uint64_t delay_ns);

/*
 * Prolong a delivery's lease: it begins once more. -ESTALE: the delivery is over: the task is done,
 * or another taker has it. Errors as above.
 */
TIMERHUB_API int timerhub_relay_touch(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task);

/*
 * Let go of a delivery without an answer: its data is no longer the caller's. The task comes again
 * when its lease is over. -ENOENT: this delivery is answered for; -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_relay_release(struct timerhub_relay *relay,
                                        const struct timerhub_relay_task *task);

/* Read the counters, those of the queue from Redis. -EINVAL, -EOWNERDEAD; errors as above. */
TIMERHUB_API int timerhub_relay_stats(struct timerhub_relay *relay,
                                      struct timerhub_relay_stats *ret_stats);

/*
 * Ask the server at `redis`, as in struct timerhub_relay_config, what it keeps, whether relays
 * serve `queue`, and whether its keys agree with each other. Changes nothing. 0: `ret_report` says
 * it, a fault too; -ENOENT: there is no such queue; -EINVAL, -EOPNOTSUPP; errors as above.
 */
TIMERHUB_API int timerhub_relay_check(const char *redis, const char *queue,
                                      struct timerhub_relay_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
