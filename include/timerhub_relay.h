/* SPDX-License-Identifier: MIT */
/*
 * timerhub_relay: delayed tasks of many machines in Redis (7.0 or later) or Valkey (8 or later);
 * the manual is timerhub-relay(7), keys and functions in timerhub-relay(5).
 *
 * Any process puts, cancels and moves tasks; each due one goes to one taker, and again after its
 * lease unless it is acknowledged. At least one process must serve, that is, move tasks that are
 * due to the takers: who takes does, and so does `timerhub-relay run`. What a call has returned 0
 * for, Redis holds; its persistence decides the rest.
 *
 * A call that can fail returns 0 or a count, or a negative errno, and then has written no output.
 * Times are uint64_t nanoseconds, rounded up to microseconds, on Redis's CLOCK_REALTIME. Any
 * thread, but no signal handler. In a forked child: -EOWNERDEAD, and close closes descriptors only.
 *
 * Network errors, after which nothing has changed but with the first:
 *   -ETIMEDOUT      not answered in time; Redis may have executed the call
 *   -ECONNREFUSED, -EHOSTUNREACH …   not connected
 *   -EROFS          a replica, loading, or too few replicas
 *   -EACCES         password, rights, or a certificate of TLS
 *   -EOPNOTSUPP     older than Redis 7.0, another kind of server, a later layout, or no TLS here
 *   -ENOSPC, -EIO   Redis's memory limit, Redis's disk
 *   -EBADMSG        a key of another type
 *   -EPROTO         not Redis's protocol
 *   -ENOMEM, -EMFILE, -ENFILE   of this process, or the server's clients
 */
#ifndef TIMERHUB_RELAY_H
#define TIMERHUB_RELAY_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A queue that this process has opened. */
struct timerhub_relay;

#define TIMERHUB_RELAY_ID_BYTES 65 /* size of an id of at most 64 bytes, and its NUL */
#define TIMERHUB_RELAY_DELIVERY_BYTES 48

/*
 * Taken. Its data stays valid until done or retry returns 0, -ESTALE or -ENOENT, or it is released.
 */
struct timerhub_relay_task {
	char id[TIMERHUB_RELAY_ID_BYTES];
	char delivery[TIMERHUB_RELAY_DELIVERY_BYTES]; /* identifies this delivery of the task */
	/* on CLOCK_REALTIME */
	uint64_t due_ns;
	/* deliveries so far, this one included */
	uint64_t attempts;
	const void *data;
	size_t data_len;
	uint64_t interval_ns; /* of a periodic task; 0: it comes once */
	uint64_t periods;     /* how many periods this delivery stands for: 1, and those untaken */
	uint64_t reserved[6];
};

/* Flags of struct timerhub_relay_config. */
/* serve from open on, also if this process never takes */
#define TIMERHUB_RELAY_SERVE (1u << 0)
/* take without serving: other processes move the tasks that are due */
#define TIMERHUB_RELAY_NO_SERVE (1u << 1)

/* A flag of timerhub_relay_put(), which also has the flag TIMERHUB_ABSOLUTE. */
/*
 * a waiting task with this id gets the new time and data, and 0 attempts; an id whose task has
 * ended may be used again at once
 */
#define TIMERHUB_RELAY_REPLACE (1u << 16)

/* 0 is the default of each field. */
struct timerhub_relay_config {
	uint32_t size;  /* sizeof(struct timerhub_relay_config) */
	uint32_t flags; /* 0, TIMERHUB_RELAY_SERVE or TIMERHUB_RELAY_NO_SERVE */
	/*
	 * "redis://[user:password@]host[:port][/db]", "unix:/path",
	 * "sentinel://[user:password@]host[:port][+host...]/master[/db]" or
	 * "cluster://[user:password@]host[:port][+host...]"; NULL: redis://127.0.0.1. By TLS it is
	 * rediss://, sentinels:// or clusters://. Several addresses, separated by commas, are
	 * independent masters, in one order for all processes. "@PATH" reads it all from a file.
	 */
	const char *redis;
	/* in Redis; NULL: of host, process id and chance */
	const char *consumer;
	uint64_t timeout_ns; /* timeout of each call, at most the queue's past_us. 0 means 5 s. */
	/* rank 0 looks at least so often; 0: 10 s */
	uint64_t horizon_ns;
	/* rank 1's failover delay, doubled with each rank; 0: 100 ms */
	uint64_t grace_ns;
	/* most tasks that a look moves, up to 1000; 0: 128 */
	uint32_t batch;
	/* that must hold a change before its call returns 0; at most 100 */
	uint32_t replicas;
};

/* Of the queue, of all relays, and of this process. */
struct timerhub_relay_stats {
	uint64_t waiting; /* tasks that wait for their time */
	uint64_t ready;   /* tasks that are due, including taken tasks */
	uint64_t taken;
	uint64_t parked; /* tasks set aside, by a park or because their attempts are used up */
	/* ids of ended tasks that a put still refuses */
	uint64_t past;
	uint64_t relays;      /* processes that serve the queue */
	uint64_t promoted;    /* tasks that all relays moved into the stream */
	uint64_t leases_over; /* deliveries repeated because their lease expired */
	uint64_t parked_ever; /* tasks that were ever parked */
	/* elements of other programs in the queue's keys */
	uint64_t orphans;
	/* puts of this process that returned 0 */
	uint64_t put;
	uint64_t cancelled; /* number of this process's cancel calls that returned 0 */
	uint64_t moved;     /* number of this process's move calls that returned 0 */
	uint64_t delivered; /* number of tasks that this process has taken */
	uint64_t done;      /* number of this process's done calls that returned 0 */
	uint64_t retried;   /* number of this process's retry calls that returned 0 */
	/* of this process; 0: it does not serve */
	uint64_t looks;
	/* looks without a due task */
	uint64_t looks_empty;
	/* messages that asked for an earlier look */
	uint64_t bells;
	/* of this process on the first server, if it serves; 0 looks first */
	uint64_t rank;
	uint64_t connects; /* command connections made */
	/* calls sent again after a lost connection */
	uint64_t in_doubt;
	/* of tasks moved by this process, by Redis's clock; buckets as in struct timerhub_stats */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t parked_cut; /* of the queue: parked tasks that dead_max has cut off unseen */
	uint64_t paused;     /* 1: the queue is paused, on at least one server */
	uint64_t reserved[14];
};

/* What survives a failed server or machine, or a failover. */
enum timerhub_relay_keeps {
	TIMERHUB_RELAY_KEEPS_UNKNOWN = 0,  /* the server does not show its configuration */
	TIMERHUB_RELAY_KEEPS_NOTHING = 1,  /* the server has no persistence */
	TIMERHUB_RELAY_KEEPS_SNAPSHOT = 2, /* the server writes RDB snapshots only */
	/* an AOF with appendfsync `everysec` or `no` */
	TIMERHUB_RELAY_KEEPS_SECONDS = 3,
	TIMERHUB_RELAY_KEEPS_ALL = 4, /* the server's AOF has appendfsync `always` */
};

/* What timerhub_relay_check() finds wrong; each is a bit of its report's `faults`. */
enum timerhub_relay_fault {
	TIMERHUB_RELAY_FAULT_UNSERVED = 1, /* no relay serves the queue */
	TIMERHUB_RELAY_FAULT_OVERDUE = 2,  /* a task is overdue by more than 5 s */
	TIMERHUB_RELAY_FAULT_UNHEARD = 4,  /* no relay hears the messages that wake it */
	TIMERHUB_RELAY_FAULT_EVICTS = 8,   /* the server may remove tasks when its memory is full */
	TIMERHUB_RELAY_FAULT_LOST = 16,    /* records of tasks that are nowhere */
	TIMERHUB_RELAY_FAULT_FOREIGN = 32, /* ids or entries without a record */
	TIMERHUB_RELAY_FAULT_AWAY = 64,    /* a server of several does not answer */
};

/* The result of timerhub_relay_check(). */
struct timerhub_relay_report {
	uint32_t keeps;    /* a value of enum timerhub_relay_keeps */
	uint32_t replicas; /* number of connected replicas */
	/* min-replicas-to-write; 0: an isolated master accepts changes */
	uint32_t replicas_min;
	/* 1 if maxmemory-policy is one of allkeys-*, so that Redis may evict tasks; else 0 */
	uint32_t evicts;
	uint64_t tasks; /* number of records of tasks in Redis */
	/* waiting ids plus entries; `tasks` if there is no fault */
	uint64_t placed;
	/* shortest measured; grace_ns should be 4 times as long */
	uint64_t round_trip_ns;
	const char *fault; /* the first fault as a constant text, or NULL if there is no fault */
	/* that look in time; 0 is a fault */
	uint64_t relays;
	uint64_t overdue_ns; /* how long the earliest task is overdue; more than 5 s is a fault */
	uint64_t faults;     /* all faults, a bit of enum timerhub_relay_fault for each */
	uint64_t reserved[5];
};

/*
 * Opens a queue, and creates it if it does not exist. Its name has 1 to 64 characters of A-Z, a-z,
 * 0-9, '_', '.' and '-'. `config` may be NULL.
 *
 * Returns -EINVAL or -E2BIG if the name or the config is wrong, -EEXIST if the queue was created
 * with other servers or in another order, -EAGAIN if no thread can be started, and -EOPNOTSUPP if
 * an address asks for TLS and the library was built without it, or if a later version has written
 * the queue. Network errors are returned too, but not -ETIMEDOUT.
 */
TIMERHUB_API int timerhub_relay_open(struct timerhub_relay **ret_relay, const char *queue,
                                     const struct timerhub_relay_config *config);

/*
 * Takes read no more from Redis: they return what was read, then -ESHUTDOWN; all else works on.
 * Not undone. `relay` may be NULL.
 */
TIMERHUB_API void timerhub_relay_stop(struct timerhub_relay *relay);

/*
 * Takes return -ESHUTDOWN; no other call may run or begin: stop, join, close. What is not done
 * comes again after its lease. `relay` may be NULL.
 */
TIMERHUB_API void timerhub_relay_close(struct timerhub_relay *relay);

/*
 * Returns a descriptor for an event loop, which is readable when a take would not block, perhaps
 * for nothing; don't read or close it. Now, and whenever a take with timeout_ns 0 has returned 0,
 * the library reads one task in advance, whose lease begins. -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_relay_fd(struct timerhub_relay *relay);

/*
 * Puts a task that is due in `when_ns`, or at that time with TIMERHUB_ABSOLUTE, or with
 * TIMERHUB_NEVER not before a move. If `id` is NULL, the library makes one, and stores it in
 * `ret_id`, which has TIMERHUB_RELAY_ID_BYTES or is NULL. To put an id again changes nothing.
 *
 * Returns -EEXIST if the id's task is live, -EALREADY if it has ended and was put less than past_us
 * ago, -EAGAIN if the queue has tasks_max tasks, -EMSGSIZE if the data is longer than data_max,
 * -ERANGE if the time is beyond 2^53 us, -EINVAL, or a network error.
 */
TIMERHUB_API int timerhub_relay_put(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                    uint32_t flags, const void *data, size_t data_len,
                                    char *ret_id);

/*
 * 0: never delivered, even if it was due. -EBUSY: taken; -ENOENT: done, cancelled, never put;
 * network errors, -ETIMEDOUT also if a repeated request finds the task taken or gone.
 */
TIMERHUB_API int timerhub_relay_cancel(struct timerhub_relay *relay, const char *id);

/* 0: delivered at the new time only. Errors as timerhub_relay_cancel(), -ERANGE. */
TIMERHUB_API int timerhub_relay_move(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                     uint32_t flags);

/*
 * Takes the earliest due task, and waits for it up to `timeout_ns` (UINT64_MAX: no limit; 0: for
 * one reply of each server, and for a program with the fd, 100 ms at most). Returns 1 if it has
 * taken a task, 0 after the timeout, or -ESHUTDOWN if the relay is stopped and has no task left, or
 * is being closed. With 0 it also returns network errors.
 */
TIMERHUB_API int timerhub_relay_take(struct timerhub_relay *relay,
                                     struct timerhub_relay_task *ret_task, uint64_t timeout_ns);

/*
 * Never delivered again. -ESTALE: delivered again, moved or put again; -ENOENT: done or cancelled;
 * network errors.
 */
TIMERHUB_API int timerhub_relay_done(struct timerhub_relay *relay,
                                     const struct timerhub_relay_task *task);

/* Delivered again in `delay_ns`, or parked if its attempts are used up. Errors as done, -ERANGE. */
TIMERHUB_API int timerhub_relay_retry(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task, uint64_t delay_ns);

/*
 * Sets the task aside for good: it is delivered no more until an operator revives it. `reason` is
 * any number, which timerhub_relay_each() tells. Errors as done.
 */
TIMERHUB_API int timerhub_relay_park(struct timerhub_relay *relay,
                                     const struct timerhub_relay_task *task, uint32_t reason);

/* The lease starts again. -ESTALE: done, or another's; network errors. */
TIMERHUB_API int timerhub_relay_touch(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task);

/*
 * Without an answer: the data is gone, and the task comes again after its lease. Make no other call
 * with this `task`. -ENOENT: ended or released; -EINVAL, -EOWNERDEAD.
 */
TIMERHUB_API int timerhub_relay_release(struct timerhub_relay *relay,
                                        const struct timerhub_relay_task *task);

/* ---- many changes at once ---- */

enum timerhub_relay_op {
	TIMERHUB_RELAY_PUT = 1,
	TIMERHUB_RELAY_CANCEL = 2,
	TIMERHUB_RELAY_MOVE = 3,
	TIMERHUB_RELAY_DONE = 4,
	TIMERHUB_RELAY_RETRY = 5,
	TIMERHUB_RELAY_PARK = 6,
};

/* A change of a task. What its `op` does not use, and what is reserved, must be 0. */
struct timerhub_relay_change {
	uint32_t op;          /* enum timerhub_relay_op */
	uint32_t flags;       /* put: TIMERHUB_RELAY_REPLACE; put and move: TIMERHUB_ABSOLUTE */
	const char *id;       /* put, cancel, move; put: NULL: one is made, in ret_id */
	uint64_t when_ns;     /* put, move; retry: the delay */
	uint64_t interval_ns; /* put: 0, or the task is periodic: a done ends one period of it */
	const void *data;     /* put */
	size_t data_len;
	const struct timerhub_relay_task *task; /* done, retry, park */
	uint32_t reason;                        /* park */
	int32_t result;                         /* what the call for this change alone returns */
	char ret_id[72];                        /* put: the task's id, if result is 0 */
	uint64_t reserved[4];
};

/*
 * Puts up to INT_MAX tasks in a few round trips. The `op` of each change is 0 or
 * TIMERHUB_RELAY_PUT. Each is a put of its own, which may fail alone: its error is in `result`.
 * Returns how many are 0, or the first error if none was sent.
 */
TIMERHUB_API int timerhub_relay_put_many(struct timerhub_relay *relay,
                                         struct timerhub_relay_change *changes, unsigned count);

/* Ends many tasks, as timerhub_relay_put_many() puts many; `op` is 0 or TIMERHUB_RELAY_DONE. */
TIMERHUB_API int timerhub_relay_done_many(struct timerhub_relay *relay,
                                          struct timerhub_relay_change *changes, unsigned count);

/* Cancels many, as timerhub_relay_put_many() puts many; `op` is 0 or TIMERHUB_RELAY_CANCEL. */
TIMERHUB_API int timerhub_relay_cancel_many(struct timerhub_relay *relay,
                                            struct timerhub_relay_change *changes, unsigned count);

/* ---- without waiting ---- */

/*
 * Begins up to 1,024 changes of any kind, and does not wait. The changes are copied. After a 0 each
 * has a completion, unless the relay is closed first. The data of a task that a change ends stays
 * valid until its completion is taken.
 *
 * After an error no change has begun. Returns -EAGAIN if there would be more than 1,024 changes
 * whose completion nobody has taken, -E2BIG if these alone are more, and -EMSGSIZE, -ERANGE or
 * -EINVAL if one of them is wrong.
 */
TIMERHUB_API int timerhub_relay_submit(struct timerhub_relay *relay,
                                       const struct timerhub_relay_change *changes, unsigned count,
                                       uint64_t tag);

/* The end of a submitted change. */
struct timerhub_relay_completion {
	uint64_t tag;   /* of timerhub_relay_submit() */
	uint32_t index; /* of the change in its array */
	int32_t result; /* what the call for this change alone returns */
	char id[72];    /* of the task */
	uint64_t reserved[2];
};

/* Takes up to `max` completions. Returns how many; 0: none is there. Never waits. */
TIMERHUB_API int timerhub_relay_completions(struct timerhub_relay *relay,
                                            struct timerhub_relay_completion *ret, unsigned max);

/*
 * Returns a descriptor to poll, which is readable while completions wait to be taken. Do not read
 * or close it. The errors are -EINVAL, -EOWNERDEAD, -EMFILE and -ENFILE.
 */
TIMERHUB_API int timerhub_relay_completion_fd(struct timerhub_relay *relay);

/* ---- the queue ---- */

/*
 * Pauses the queue, for all its takers, until timerhub_relay_resume(): takes wait, and puts go on.
 * What a taker has, or has read in advance, is not affected. Errors of the network.
 */
TIMERHUB_API int timerhub_relay_pause(struct timerhub_relay *relay);

/* Ends a pause: what is due is delivered. Errors of the network. */
TIMERHUB_API int timerhub_relay_resume(struct timerhub_relay *relay);

enum timerhub_relay_which {
	TIMERHUB_RELAY_WAITING = 0, /* due later, or due and not taken yet */
	TIMERHUB_RELAY_TAKEN = 1,
	TIMERHUB_RELAY_PARKED = 2,
};

/* What timerhub_relay_each() tells of a task. */
struct timerhub_relay_info {
	char id[72];
	char holder[128];     /* taken: who has it, the taker's config.consumer */
	uint64_t due_ns;      /* TIMERHUB_NEVER: until a move */
	uint64_t since_ns;    /* when it was put, taken (or touched), or parked */
	uint64_t attempts;    /* deliveries so far */
	uint64_t interval_ns; /* of a periodic task, or 0 */
	uint64_t data_len;
	uint32_t which;  /* enum timerhub_relay_which */
	uint32_t reason; /* parked: of timerhub_relay_park(); UINT32_MAX: attempts_max */
	uint64_t reserved[4];
};

/* Called for a task. If it returns anything but 0, timerhub_relay_each() ends and returns that. */
typedef int timerhub_relay_each_fn(const struct timerhub_relay_info *info, void *context);

/*
 * Calls `fn` for each task of the kind `which` (enum timerhub_relay_which), server by server. It
 * asks in steps that bound how long Redis is busy, so tasks change meanwhile: one that stays is
 * told, and a waiting one that becomes due perhaps twice. `fn` may make any call but close. Network
 * errors.
 */
TIMERHUB_API int timerhub_relay_each(struct timerhub_relay *relay, uint32_t which,
                                     timerhub_relay_each_fn *fn, void *context);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* The queue's are asked of Redis. -EINVAL, -EOWNERDEAD, network errors. */
TIMERHUB_API int timerhub_relay_stats(struct timerhub_relay *relay,
                                      struct timerhub_relay_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Persistence, serving relays and keys of `queue` at `redis`, without a change. 0: `*ret_report`
 * says it, faults too. -ENOENT: no such queue; -EINVAL; network errors but -ETIMEDOUT, if no
 * server answers.
 */
TIMERHUB_API int timerhub_relay_check(const char *redis, const char *queue,
                                      struct timerhub_relay_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
