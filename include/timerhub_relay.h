/* SPDX-License-Identifier: MIT */
/*
 * timerhub_relay: keeps delayed tasks of many machines in Redis, and delivers them at their times.
 *
 * A queue of tasks is stored in Redis (7.0 or later) or Valkey (8 or later). timerhub-relay(5)
 * documents the queue's keys and Redis functions. A task is an id, a time and some bytes. Any
 * process may put, cancel and move tasks. Each due task goes to one taker, which is a thread or
 * program that takes tasks. At least one process must serve the queue. A serving process moves due
 * tasks into the stream of Redis that takers read. A process serves the queue if it runs
 * `timerhub-relay run`, or opens the queue with TIMERHUB_RELAY_SERVE.
 *
 * If timerhub_relay_put(), timerhub_relay_cancel(), timerhub_relay_move(), timerhub_relay_done() or
 * timerhub_relay_retry() returns 0, Redis holds the change. Whether the change survives a failure
 * of Redis depends on the persistence of Redis, see timerhub-relay(7). Delivery is at least once.
 * If a task was taken and not acknowledged, the task is delivered again after its lease. A done or
 * cancelled task is never delivered again. No task is delivered before its time on Redis's clock.
 * Tasks are delivered in order of time.
 *
 * The calls follow the conventions of timerhub.h. A call that can fail returns 0 or a count, or a
 * negative errno. A call that fails writes no output. The library never prints. Times are uint64_t
 * nanoseconds, rounded up to whole microseconds. Points in time are on the CLOCK_REALTIME of
 * Redis's machine. Any number of threads may make any call at once, unless the comment of a call
 * says otherwise. The calls lock a mutex and wait for the network. Therefore a signal handler must
 * make no call of this library.
 *
 * Every call that sends a request to Redis may return one of the following network errors. After
 * any network error except -ETIMEDOUT, the queue has not changed.
 *
 *   -ETIMEDOUT     The request was sent and not answered in time.
 *                  Redis may have executed the request. The caller may repeat the call.
 *   -ECONNREFUSED, -EHOSTUNREACH …
 *                  Connecting to the server failed or took too long. The request was not sent.
 *   -EROFS         no server accepted the change in time:
 *                  the server is a replica, loads its data, or has too few replicas
 *   -EACCES        the server refuses the password, or the user lacks rights
 *   -EOPNOTSUPP    the server is older than Redis 7.0, or is a node of a cluster
 *   -ENOSPC        Redis has reached its memory limit
 *   -EIO           Redis cannot write to its disk
 *   -EBADMSG       a key of the queue holds a value of another type
 *   -EPROTO        the server does not speak the protocol of Redis
 *   -ENOMEM        this process has no memory
 *
 * Fork. In a child process every call returns -EOWNERDEAD. In a child process
 * timerhub_relay_close() frees the child's copy and does not change the parent's relay.
 */
#ifndef TIMERHUB_RELAY_H
#define TIMERHUB_RELAY_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A relay is a queue of delayed tasks in Redis that this process has opened. */
struct timerhub_relay;

#define TIMERHUB_RELAY_ID_BYTES 65 /* size of an id of at most 64 bytes, and its NUL */
#define TIMERHUB_RELAY_DELIVERY_BYTES 48

/*
 * A task that a taker has taken. The task's data stays valid until timerhub_relay_done() or
 * timerhub_relay_retry() returns 0, -ESTALE or -ENOENT, or until the taker releases the task. The
 * data stays valid even if the task ends or another taker takes the task.
 */
struct timerhub_relay_task {
	char id[TIMERHUB_RELAY_ID_BYTES];
	char delivery[TIMERHUB_RELAY_DELIVERY_BYTES]; /* identifies this delivery of the task */
	/* time at which the task is due, on CLOCK_REALTIME */
	uint64_t due_ns;
	/* Number of deliveries of the task so far, including this delivery. */
	uint64_t attempts;
	const void *data;
	size_t data_len;
};

/* The flag of struct timerhub_relay_config. */
/* This process serves the queue: it moves due tasks into the stream that takers read. */
#define TIMERHUB_RELAY_SERVE (1u << 0)

/* A flag of timerhub_relay_put(), which also has the flag TIMERHUB_ABSOLUTE. */
/* if a task with the same id still waits, the put gives it the new time and data */
#define TIMERHUB_RELAY_REPLACE (1u << 16)

/* The settings of a new relay. A field that is 0 means the default. */
struct timerhub_relay_config {
	uint32_t size;  /* sizeof(struct timerhub_relay_config) */
	uint32_t flags; /* flags of the relay: TIMERHUB_RELAY_SERVE or 0 */
	/*
	 * "redis://[user:password@]host[:port][/db]", "unix:/path" or
	 * "sentinel://[user:password@]host[:port][+host...]/master[/db]"; NULL: redis://127.0.0.1.
	 * Several addresses, separated by commas, are independent masters, and the queue's tasks
	 * are spread over these masters. Every process that opens the queue must give the addresses
	 * in the same order.
	 */
	const char *redis;
	/* consumer name in Redis; NULL: a name of host, process id and a random part */
	const char *consumer;
	uint64_t timeout_ns; /* timeout of each call, at most the queue's past_us. 0 means 5 s. */
	/* The serving process of rank 0 polls at least once in this time. The default is 10 s. */
	uint64_t horizon_ns;
	/*
	 * Failover delay of the serving process of rank 1. The delay doubles with each rank. The
	 * value 0 means 100 ms.
	 */
	uint64_t grace_ns;
	/* Largest number of tasks that one poll moves, at most 1000. The value 0 means 128. */
	uint32_t batch;
	/* number of replicas that must hold a change before its call returns 0; at most 100 */
	uint32_t replicas;
};

/*
 * Statistics of a relay: the state of the queue, the counters of all relays, and the counters of
 * this process.
 */
struct timerhub_relay_stats {
	uint64_t due;   /* number of the queue's tasks that wait for their time */
	uint64_t ready; /* number of the queue's tasks that are due, including taken tasks */
	uint64_t taken; /* number of the queue's tasks that a consumer has taken */
	uint64_t dead;  /* number of stored tasks that have used up their attempts */
	/* Number of ids of ended tasks for which timerhub_relay_put() still returns -EEXIST. */
	uint64_t past;
	uint64_t relays;      /* number of processes that serve the queue */
	uint64_t promoted;    /* number of tasks that all relays moved into the stream */
	uint64_t leases_over; /* number of deliveries repeated because their lease expired */
	uint64_t buried;      /* number of tasks that used up their attempts */
	/* Number of elements that other programs wrote into the queue's keys. */
	uint64_t orphans;
	/* Number of this process's put calls that returned 0. */
	uint64_t put;
	uint64_t cancelled; /* number of this process's cancel calls that returned 0 */
	uint64_t moved;     /* number of this process's move calls that returned 0 */
	uint64_t delivered; /* number of tasks that this process has taken */
	uint64_t done;      /* number of this process's done calls that returned 0 */
	uint64_t retried;   /* number of this process's retry calls that returned 0 */
	/* Number of this process's polls, or 0 if this process does not serve the queue. */
	uint64_t looks;
	/* Number of this process's polls that found no due task. */
	uint64_t looks_empty;
	/* Number of messages that asked this process to poll earlier than planned. */
	uint64_t bells;
	/*
	 * Rank of this process, if it serves the queue. The process of rank 0 polls first, and
	 * higher ranks poll later.
	 */
	uint64_t rank;
	uint64_t connects; /* number of connections that this process has made to servers */
	/* Number of this process's calls that were sent again because a connection was lost. */
	uint64_t in_doubt;
	/*
	 * Histogram of the lateness of the tasks that this process moved into the stream. The
	 * lateness is the time of the move minus the task's due time, on Redis's clock. The buckets
	 * are those of `lateness` in struct timerhub_stats.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t reserved[16];
};

/* Which data survives if the server or its machine fails, or if the server is no longer master. */
enum timerhub_relay_keeps {
	TIMERHUB_RELAY_KEEPS_UNKNOWN = 0,  /* the server does not show its configuration */
	TIMERHUB_RELAY_KEEPS_NOTHING = 1,  /* the server has no persistence */
	TIMERHUB_RELAY_KEEPS_SNAPSHOT = 2, /* the server writes RDB snapshots only */
	/* The server writes an AOF, and its appendfsync is `everysec` or `no`. */
	TIMERHUB_RELAY_KEEPS_SECONDS = 3,
	TIMERHUB_RELAY_KEEPS_ALL = 4, /* the server's AOF has appendfsync `always` */
};

/* The result of timerhub_relay_check(). */
struct timerhub_relay_report {
	uint32_t keeps;    /* a value of enum timerhub_relay_keeps */
	uint32_t replicas; /* number of connected replicas */
	/* The server's min-replicas-to-write; 0: an isolated master accepts changes. */
	uint32_t replicas_min;
	/* 1: the server's maxmemory-policy is not noeviction, so Redis may drop tasks. */
	uint32_t evicts;
	uint64_t tasks; /* number of records of tasks in Redis */
	/*
	 * Number of ids that wait for their time, plus number of stream entries. If the queue has
	 * no fault, this number equals `tasks`.
	 */
	uint64_t placed;
	/* Shortest measured round trip to a server; grace_ns should be at least 4 times as long. */
	uint64_t round_trip_ns;
	const char *fault; /* the first fault as a constant text, or NULL if there is no fault */
	/* Number of serving relays that poll at their planned times; 0 is a fault. */
	uint64_t relays;
	uint64_t overdue_ns; /* how long the earliest task is overdue; more than 5 s is a fault */
	uint64_t reserved[6];
};

/*
 * Open a queue. If the queue does not exist, timerhub_relay_open() creates it. `queue`, the name of
 * the queue, is 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'. `config` may be NULL.
 * timerhub_relay_open() searches for each server for at most timeout_ns of the config.
 *
 *   -EINVAL, -E2BIG  the config or the name of the queue is wrong
 *   -EEXIST          the queue was created with other servers, or with another order of the servers
 *   -EOPNOTSUPP      a later version of the library created the queue,
 *                    the address begins with rediss://,
 *                    or the server is a node of a cluster or older than Redis 7.0
 *
 * Other errors are the network errors at the top of this header.
 */
TIMERHUB_API int timerhub_relay_open(struct timerhub_relay **ret_relay, const char *queue,
                                     const struct timerhub_relay_config *config);

/*
 * Stop a relay: from now on timerhub_relay_take() neither waits nor sends a request to Redis.
 * Threads blocked in timerhub_relay_take() return. timerhub_relay_take() still delivers the tasks
 * that were already read from Redis, and after these tasks always returns -ESHUTDOWN. A stop cannot
 * be undone. All other calls on a stopped relay work as before. `relay` may be NULL.
 */
TIMERHUB_API void timerhub_relay_stop(struct timerhub_relay *relay);

/*
 * Close the relay. Threads blocked in timerhub_relay_take() return -ESHUTDOWN before the relay is
 * freed. No other call on the relay may run or begin during timerhub_relay_close(). To end worker
 * threads, call timerhub_relay_stop() and join the threads before timerhub_relay_close(). Tasks
 * that are taken and not done are delivered again after their lease. If this process serves the
 * queue, the serving process of the next rank takes over without delay. `relay` may be NULL.
 */
TIMERHUB_API void timerhub_relay_close(struct timerhub_relay *relay);

/*
 * Returns a descriptor that is readable when timerhub_relay_take() would not block. The program may
 * poll the descriptor, and must not read or close it. From the first call of timerhub_relay_fd()
 * on, the library takes one task from Redis in advance. The lease of a task begins when the library
 * takes the task from Redis. The descriptor may be readable although no task is left. If no task is
 * left, timerhub_relay_take() returns 0 and makes the descriptor unreadable. Errors: -EINVAL,
 * -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_relay_fd(struct timerhub_relay *relay);

/*
 * Put a task, which is due `when_ns` from now. With TIMERHUB_ABSOLUTE the task is due at the time
 * `when_ns`. With TIMERHUB_NEVER the task is not due until timerhub_relay_move() sets a time.
 * Because the caller chooses `id`, a repeated put with the same `id` changes nothing. If `id` is
 * NULL, the library makes an id. `ret_id` is NULL, or has room for TIMERHUB_RELAY_ID_BYTES. If a
 * connection is lost, the library repeats the put until timeout_ns is over.
 *
 *   -EEXIST    a task with this id is live, or has ended, and was put less than past_us ago
 *   -EAGAIN    live tasks and remembered ids of ended tasks together reach tasks_max
 *   -EMSGSIZE  data_len is above data_max of the queue
 *   -ERANGE    the time is beyond 2^53 us
 *   -EINVAL    an argument is NULL, the id is not valid, or a flag is unknown
 *
 * Other errors are the network errors at the top of this header.
 */
TIMERHUB_API int timerhub_relay_put(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                    uint32_t flags, const void *data, size_t data_len,
                                    char *ret_id);

/*
 * Cancel a task. Returns 0 if the task will never be delivered, even if it was due. -EBUSY: a taker
 * has taken the task, and decides how the task ends. -ENOENT: the task is done or cancelled, or was
 * never put. Other errors are the network errors at the top of this header. The library repeats a
 * request whose connection was lost. If the repeated request finds no task or a taken task,
 * timerhub_relay_cancel() returns -ETIMEDOUT.
 */
TIMERHUB_API int timerhub_relay_cancel(struct timerhub_relay *relay, const char *id);

/*
 * Give a task a new time. Returns 0 if the task will be delivered at the new time, and not at the
 * old time. Fails with the errors of timerhub_relay_cancel(), or with -ERANGE.
 */
TIMERHUB_API int timerhub_relay_move(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                     uint32_t flags);

/*
 * Take the earliest task that is due. If no task is due, wait up to `timeout_ns`. If `timeout_ns`
 * is 0, timerhub_relay_take() waits only for one reply of Redis. If `timeout_ns` is UINT64_MAX, the
 * wait has no limit.
 *
 *   1           a task was taken
 *   0           the timeout has passed, and no task was taken
 *   -ESHUTDOWN  the relay was stopped and has no task left, or the relay is being closed
 *
 * If `timeout_ns` is 0, timerhub_relay_take() may also return the network errors at the top of this
 * header.
 */
TIMERHUB_API int timerhub_relay_take(struct timerhub_relay *relay,
                                     struct timerhub_relay_task *ret_task, uint64_t timeout_ns);

/*
 * Acknowledge a delivery: its task is never delivered again. -ESTALE: the task was delivered again,
 * moved, or put again. -ENOENT: the task is done or cancelled. Else network errors.
 */
TIMERHUB_API int timerhub_relay_done(struct timerhub_relay *relay,
                                     const struct timerhub_relay_task *task);

/*
 * Return a taken task: the task is delivered again `delay_ns` from now. If the task has used up its
 * attempts, the task becomes dead. Errors: those of timerhub_relay_done(), and -ERANGE.
 */
TIMERHUB_API int timerhub_relay_retry(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task, uint64_t delay_ns);

/*
 * Prolong the lease of a delivery: the lease starts again now. -ESTALE: the task is done, or
 * another taker has taken the task. Other errors are the network errors at the top of this header.
 */
TIMERHUB_API int timerhub_relay_touch(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task);

/*
 * Give up a delivery, and neither acknowledge its task nor return it. The data of a released
 * delivery is no longer valid. The task is delivered again when its lease expires. -ENOENT:
 * timerhub_relay_done() or timerhub_relay_retry() has already ended the delivery, or the delivery
 * was released before. Other errors are -EINVAL and -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_relay_release(struct timerhub_relay *relay,
                                        const struct timerhub_relay_task *task);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function timerhub_relay_stats() has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * Read the counters of the relay, and the counters of the queue from Redis. Errors: -EINVAL,
 * -EOWNERDEAD, and the network errors at the top of this header.
 */
TIMERHUB_API int timerhub_relay_stats(struct timerhub_relay *relay,
                                      struct timerhub_relay_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Check the queue `queue` on the servers at `redis`. `redis` has the form of
 * timerhub_relay_config.redis. The call checks the servers' persistence, the serving relays, and
 * the consistency of the queue's keys. It changes nothing. If timerhub_relay_check() returns 0,
 * `*ret_report` is written, and may report a fault. -ENOENT: the queue does not exist. Other errors
 * are -EINVAL, -EOPNOTSUPP, and the network errors at the top of this header.
 */
TIMERHUB_API int timerhub_relay_check(const char *redis, const char *queue,
                                      struct timerhub_relay_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
