/* SPDX-License-Identifier: MIT */
/*
 * timerhub_relay: delayed tasks for many machines, kept in Redis, delivered at their time.
 *
 * A queue of tasks is stored in a server of Redis (7.0 or later) or Valkey (8 or later); its keys
 * and functions are documented in timerhub-relay(5). A task is an id, a time and some bytes. Any
 * process puts, cancels and moves tasks. Each task that is due goes to one taker. At least one
 * process must serve the queue: it moves due tasks into the stream that takers read. A process
 * serves if it runs `timerhub-relay run`, or opens the queue with TIMERHUB_RELAY_SERVE.
 *
 * When put, cancel, move, done or retry returns 0, Redis holds the change. Whether the change
 * survives a failure of Redis depends on the persistence of Redis, see timerhub-relay(7). Delivery
 * is at least once: if a task was taken and not acknowledged, it is delivered again after its
 * lease. A done or cancelled task is never delivered again. No task is delivered before its time on
 * Redis's clock; tasks are delivered in order of time.
 *
 * Conventions, as in timerhub.h. A call returns 0 or a count, or a negative errno and then writes
 * no output. The library never prints. Times are uint64_t nanoseconds, rounded up to whole
 * microseconds. Points in time are on the CLOCK_REALTIME of Redis's machine. Any number of threads
 * may make any call at once, unless the comment of a call says otherwise. The calls lock a mutex
 * and wait for the network, so a signal handler must make none of them.
 *
 * Errors of every call that sends a request to Redis. Except after -ETIMEDOUT, nothing has changed.
 *
 *   -ETIMEDOUT     The request was sent and not answered in time. It is unknown whether Redis has
 *                  executed it. The caller may repeat the call.
 *   -ECONNREFUSED, -EHOSTUNREACH …
 *                  no connection in time; the request was not sent
 *   -EROFS         no server accepts changes in time: it is a replica, it loads its data, or it has
 *                  too few replicas
 *   -EACCES        the server refuses the password, or the user lacks rights
 *   -EOPNOTSUPP    the server is older than 7.0, or a node of a cluster
 *   -ENOSPC        Redis has reached its memory limit
 *   -EIO           Redis cannot write to its disk
 *   -EBADMSG       a key of the queue holds a value of another type
 *   -EPROTO        the server does not speak the protocol of Redis
 *   -ENOMEM        memory of this process
 *
 * Fork. In a child every call returns -EOWNERDEAD. In a child timerhub_relay_close() frees the
 * child's copy and does not change the parent's relay.
 */
#ifndef TIMERHUB_RELAY_H
#define TIMERHUB_RELAY_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A relay is an open queue of delayed tasks in Redis. */
struct timerhub_relay;

#define TIMERHUB_RELAY_ID_BYTES 65 /* size of an id of at most 64 bytes, and its NUL */
#define TIMERHUB_RELAY_DELIVERY_BYTES 48

/*
 * A task that a taker has taken. The task's data stays valid until done or retry of it returns 0,
 * -ESTALE or -ENOENT, or until it is released. The data stays valid even if the task ends or
 * another taker takes it before that.
 */
struct timerhub_relay_task {
	char id[TIMERHUB_RELAY_ID_BYTES];
	char delivery[TIMERHUB_RELAY_DELIVERY_BYTES]; /* identifies this delivery of the task */
	uint64_t due_ns;                              /* due time, on CLOCK_REALTIME */
	/* Number of deliveries so far, including this delivery. */
	uint64_t attempts;
	const void *data;
	size_t data_len;
};

/* Flag of timerhub_relay_config. */
/* This process serves the queue: it moves due tasks into the stream. */
#define TIMERHUB_RELAY_SERVE (1u << 0)

/* Flag of timerhub_relay_put(), in addition to TIMERHUB_ABSOLUTE. */
#define TIMERHUB_RELAY_REPLACE (1u << 16) /* a task that still waits gets this time and data */

/* How to open a queue. A field of 0 means the default. */
struct timerhub_relay_config {
	uint32_t size;  /* sizeof(struct timerhub_relay_config) */
	uint32_t flags; /* TIMERHUB_RELAY_SERVE */
	/*
	 * "redis://[user:password@]host[:port][/db]", "unix:/path" or
	 * "sentinel://[user:password@]host[:port][+host...]/master[/db]"; NULL: redis://127.0.0.1.
	 * Several addresses, separated by commas, are independent masters, over which the queue is
	 * spread. The order of the addresses must be the same in every open of the queue.
	 */
	const char *redis;
	const char *consumer; /* consumer name in Redis; NULL: host, process id and a random part */
	uint64_t timeout_ns;  /* timeout of each call; 0: 5 s; at most the queue's past_us */
	uint64_t horizon_ns;  /* serving: longest time between polls of rank 0; 0: 10 s */
	uint64_t grace_ns;    /* serving: failover delay of rank 1, doubled per rank; 0: 100 ms */
	uint32_t batch;       /* serving: most tasks moved by one poll; 0: 128; at most 1000 */
	uint32_t replicas;    /* a change returns 0 when this many replicas hold it; at most 100 */
};

/* The state of the queue and the counters of all relays, then the counters of this process. */
struct timerhub_relay_stats {
	uint64_t due;         /* number of the queue's tasks that wait for their time */
	uint64_t ready;       /* number of tasks that are due, including taken tasks */
	uint64_t taken;       /* number of tasks that a consumer has taken */
	uint64_t dead;        /* number of stored tasks that have used up their attempts */
	uint64_t past;        /* number of ids of finished tasks that a put may not use yet */
	uint64_t relays;      /* number of processes that serve the queue */
	uint64_t promoted;    /* number of tasks that all relays moved into the stream */
	uint64_t leases_over; /* number of deliveries repeated because their lease expired */
	uint64_t buried;      /* number of tasks that used up their attempts */
	/* Number of foreign elements, which other programs wrote into the queue's keys. */
	uint64_t orphans;
	/* Of this process: number of puts that returned 0; so for the next counters. */
	uint64_t put;
	uint64_t cancelled;
	uint64_t moved;
	uint64_t delivered; /* of this process: number of tasks taken */
	uint64_t done;
	uint64_t retried;
	uint64_t looks;       /* of this process, if it serves: number of polls */
	uint64_t looks_empty; /* if it serves: number of polls that found no due task */
	/* If it serves: number of messages that a task is due before the planned poll. */
	uint64_t bells;
	/* If it serves: its rank; rank 0 polls first, each next rank after a longer delay. */
	uint64_t rank;
	uint64_t connects; /* of this process: number of connections to servers */
	/* Of this process: number of calls sent again because a connection was lost. */
	uint64_t in_doubt;
	/*
	 * For the tasks that this process has moved into the stream: the time of the move minus the
	 * due time, on Redis's clock. The buckets are as in timerhub_stats.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t reserved[16];
};

/* The data that survives if the server, its machine or its role as master is lost. */
enum timerhub_relay_keeps {
	TIMERHUB_RELAY_KEEPS_UNKNOWN = 0,  /* the server does not show its configuration */
	TIMERHUB_RELAY_KEEPS_NOTHING = 1,  /* the server has no persistence */
	TIMERHUB_RELAY_KEEPS_SNAPSHOT = 2, /* the server writes RDB snapshots only */
	/* The server writes an AOF with appendfsync everysec or no. */
	TIMERHUB_RELAY_KEEPS_SECONDS = 3,
	TIMERHUB_RELAY_KEEPS_ALL = 4, /* the server writes an AOF with appendfsync always */
};

/* The result of timerhub_relay_check(). */
struct timerhub_relay_report {
	uint32_t keeps;    /* enum timerhub_relay_keeps */
	uint32_t replicas; /* number of connected replicas */
	/* The server's min-replicas-to-write; 0: an isolated master accepts changes. */
	uint32_t replicas_min;
	/* 1 if maxmemory-policy is not noeviction, so that Redis may drop records. */
	uint32_t evicts;
	uint64_t tasks; /* number of records of tasks */
	/* Number of waiting ids plus stream entries; without a fault it equals `tasks`. */
	uint64_t placed;
	/* Shortest measured round trip; grace_ns should be at least 4 times as long. */
	uint64_t round_trip_ns;
	const char *fault; /* the first fault, as a constant text; NULL: no fault */
	/* Number of relays that poll at their planned times; 0 is a fault. */
	uint64_t relays;
	uint64_t overdue_ns; /* how long the first task is overdue; above 5 s is a fault */
	uint64_t reserved[6];
};

/*
 * Open a queue; the first open creates it. `queue` is 1 to 64 of A-Z, a-z, 0-9, '_', '.' and '-'.
 * `config` may be NULL. The call tries for timeout_ns to find each server.
 *
 *   -EINVAL, -E2BIG  bad config, bad queue name
 *   -EEXIST          the queue is spread over other servers, or over the same servers in another
 *                    order
 *   -EOPNOTSUPP      rediss://, a server before 7.0, a node of a cluster, a queue of a later
 *                    version
 *
 * Network errors as above.
 */
TIMERHUB_API int timerhub_relay_open(struct timerhub_relay **ret_relay, const char *queue,
                                     const struct timerhub_relay_config *config);

/*
 * Stop a relay: from now on take neither waits nor sends a request to Redis. Threads blocked in
 * take return, and later takes return at once. Tasks that were already read from Redis are still
 * delivered. When no such task is left, take always returns -ESHUTDOWN. A stop cannot be undone.
 * All other calls work as before. The argument may be NULL.
 */
TIMERHUB_API void timerhub_relay_stop(struct timerhub_relay *relay);

/*
 * Close the queue. Threads blocked in take return -ESHUTDOWN first. No other call on the relay may
 * be running or start. To end workers, call timerhub_relay_stop() and join the workers before this
 * call. Tasks that are taken and not done are delivered again after their lease. If this process
 * serves, the next relay takes over without delay. The argument may be NULL.
 */
TIMERHUB_API void timerhub_relay_close(struct timerhub_relay *relay);

/*
 * Returns a descriptor that is readable when take would not block. The program may poll the
 * descriptor, and must not read or close it. From the first call on, the library takes one task
 * from Redis in advance, and the lease of that task starts then. The descriptor may be readable
 * although no task is left: the next take returns 0 and makes it unreadable. -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_relay_fd(struct timerhub_relay *relay);

/*
 * Put a task, to be delivered `when_ns` from now or, with TIMERHUB_ABSOLUTE, at the time `when_ns`.
 * With TIMERHUB_NEVER the task is not due until timerhub_relay_move() sets a time. `id` is chosen
 * by the caller, so that a repeated put changes nothing; with NULL the library makes an id.
 * `ret_id` has room for TIMERHUB_RELAY_ID_BYTES, or is NULL. If a connection is lost, the library
 * repeats the put until timeout_ns is over. Redis does not execute a put that arrives after
 * timeout_ns.
 *
 *   -EEXIST    a task with this id is live, or has ended, and was put less than past_us ago
 *   -EAGAIN    live tasks and remembered ids of ended tasks together reach tasks_max
 *   -EMSGSIZE  more than data_max bytes
 *   -ERANGE    the time is beyond 2^53 us
 *   -EINVAL    NULL, a bad id, an unknown flag
 *
 * Other errors as above.
 */
TIMERHUB_API int timerhub_relay_put(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                    uint32_t flags, const void *data, size_t data_len,
                                    char *ret_id);

/*
 * Cancel a task. Returns 0 if the task will never be delivered, even if it was due. -EBUSY: a taker
 * has the task, and decides how it ends. -ENOENT: the task is done or cancelled, or was never put.
 * Other errors as above. If the library had to repeat the call, and then found no task or a taken
 * task, it returns -ETIMEDOUT.
 */
TIMERHUB_API int timerhub_relay_cancel(struct timerhub_relay *relay, const char *id);

/*
 * Give a task a new time. Returns 0 if the task is delivered at the new time only. The errors are
 * those of timerhub_relay_cancel(), and -ERANGE.
 */
TIMERHUB_API int timerhub_relay_move(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                     uint32_t flags);

/*
 * Take the earliest task that is due. If no task is due, wait up to `timeout_ns`. If `timeout_ns`
 * is 0, the call waits only for one reply of Redis. UINT64_MAX means no limit.
 *
 *   1           a task was taken
 *   0           timed out
 *   -ESHUTDOWN  the relay was stopped and has no task left, or is being closed
 *
 * If `timeout_ns` is 0, also the errors above.
 */
TIMERHUB_API int timerhub_relay_take(struct timerhub_relay *relay,
                                     struct timerhub_relay_task *ret_task, uint64_t timeout_ns);

/*
 * Acknowledge a task, which is never delivered again. The call also works after the end of the
 * lease. -ENOENT: another taker has done the task, or it was cancelled. Other errors as above.
 */
TIMERHUB_API int timerhub_relay_done(struct timerhub_relay *relay,
                                     const struct timerhub_relay_task *task);

/*
 * Return a taken task: the task is delivered again `delay_ns` from now. If the task has used up its
 * attempts, the task becomes dead instead. -ESTALE: the lease has expired, and the task was
 * delivered again. -ENOENT: the task is done. -ERANGE. Other errors as above.
 */
TIMERHUB_API int timerhub_relay_retry(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task, uint64_t delay_ns);

/*
 * Prolong the lease of a delivery: the lease starts again now. -ESTALE: the delivery is over,
 * because the task is done or another taker has it. Other errors as above.
 */
TIMERHUB_API int timerhub_relay_touch(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task);

/*
 * Give up a delivery without an answer; its data is no longer valid. The task is delivered again
 * when its lease expires. -ENOENT: this delivery is answered already; -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_relay_release(struct timerhub_relay *relay,
                                        const struct timerhub_relay_task *task);

/* Read the counters; Redis has the queue's counters. -EINVAL, -EOWNERDEAD; errors as above. */
TIMERHUB_API int timerhub_relay_stats(struct timerhub_relay *relay,
                                      struct timerhub_relay_stats *ret_stats);

/*
 * Check the queue on the servers at `redis`, written as in struct timerhub_relay_config: their
 * persistence, whether relays serve `queue`, and whether its keys are consistent. The call changes
 * nothing. If it returns 0, `*ret_report` is written, and may report a fault. -ENOENT: there is no
 * such queue. -EINVAL, -EOPNOTSUPP; other errors as above.
 */
TIMERHUB_API int timerhub_relay_check(const char *redis, const char *queue,
                                      struct timerhub_relay_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
