/* SPDX-License-Identifier: MIT */
/*
 * timerhub_relay: delayed tasks for many machines, kept in Redis (7.0 or later) or Valkey (8 or
 * later). The manual is timerhub-relay(7); timerhub-relay(5) has the keys and functions.
 *
 * Any process can put, cancel and move tasks. Each task that is due goes to one process that takes
 * tasks, and it comes again after its lease unless it is acknowledged. At least one process must
 * serve the queue, which means that it makes tasks available when they are due: every process that
 * takes does so, and so does `timerhub-relay run`. When a call has returned 0, Redis has the
 * change, and Redis's persistence decides whether it can still be lost.
 *
 * A call returns 0 or a count, or a negative errno, and then has written no output. Any thread may
 * make any call, but no signal handler may. In a forked child every call returns -EOWNERDEAD, and
 * close only closes the child's descriptors. Times are in nanoseconds on the CLOCK_REALTIME of
 * Redis's machine, and are rounded up to microseconds.
 *
 * Every call that asks Redis can return these errors; "network errors" below means them. Nothing
 * has changed, except that after -ETIMEDOUT Redis may have made the change:
 *   -ETIMEDOUT      the server, or its replicas, did not answer in time
 *   -ECONNREFUSED, -EHOSTUNREACH, ...   the server could not be reached
 *   -EROFS          it accepts no changes: it is a replica, is loading, or has too few replicas
 *   -EACCES         it refuses the password, a right or a certificate
 *   -EOPNOTSUPP     it is older than Redis 7.0, or of another kind than the address says, or a
 *                   later version of the library has changed the layout of the queue
 *   -ENOSPC, -EIO   its memory is full, or it cannot write to its disk
 *   -EBADMSG        a key of the queue has a value of another type
 *   -EPROTO         its replies are not those of Redis
 *   -ENOMEM, -EMFILE, -ENFILE   this process has no memory or descriptor left, or the server
 *                   accepts no more clients
 */
#ifndef TIMERHUB_RELAY_H
#define TIMERHUB_RELAY_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One queue, opened by one process, for all of its threads. */
struct timerhub_relay;

#define TIMERHUB_RELAY_ID_BYTES 65       /* size of an id of at most 64 bytes, and its NUL */
#define TIMERHUB_RELAY_DELIVERY_BYTES 48 /* size of the name of a delivery, and its NUL */

/*
 * A task as timerhub_relay_take() has delivered it. The data stays valid until the task is
 * released, or until done, retry or park has returned 0, -ESTALE or -ENOENT.
 */
struct timerhub_relay_task {
	char id[TIMERHUB_RELAY_ID_BYTES];
	char delivery[TIMERHUB_RELAY_DELIVERY_BYTES]; /* names this delivery of the task */
	uint64_t due_ns;                              /* on CLOCK_REALTIME of Redis's machine */
	uint64_t attempts;                            /* deliveries so far, this one included */
	const void *data;
	size_t data_len;
	uint64_t interval_ns; /* 0: the task is not periodic */
	uint64_t periods;     /* 1, plus the periods that passed while nobody took the task */
	uint64_t reserved[6];
};

/*
 * A flag of timerhub_relay_open(): serve the queue from then on, even if this process never takes.
 */
#define TIMERHUB_RELAY_SERVE (1u << 0)

/*
 * A flag of timerhub_relay_open(): take without serving, because other processes serve the queue.
 */
#define TIMERHUB_RELAY_NO_SERVE (1u << 1)

/*
 * A flag of a put. If a task with this id still waits, it gets the new time and data and 0
 * attempts. If the id's task has ended, the id is used again at once, instead of after past_us.
 */
#define TIMERHUB_RELAY_REPLACE (1u << 16)

/* How to open a queue. A field that is 0 has its default. */
struct timerhub_relay_config {
	uint32_t size;  /* sizeof(struct timerhub_relay_config) */
	uint32_t flags; /* 0, TIMERHUB_RELAY_SERVE or TIMERHUB_RELAY_NO_SERVE */
	/*
	 * The server's address: "redis://[user:password@]host[:port][/db]", "unix:/path",
	 * "sentinel://[user:password@]host[:port][+host...]/master[/db]" or
	 * "cluster://[user:password@]host[:port][+host...]"; NULL means redis://127.0.0.1. With TLS
	 * it begins with rediss://, sentinels:// or clusters://. Several addresses with commas
	 * between them are independent masters, which all processes must give in the same order.
	 * "@PATH" stands for the first line of a file.
	 */
	const char *redis;
	const char *consumer; /* this process's name in Redis; NULL: the library makes one */
	uint64_t timeout_ns;  /* timeout of each call, at most the queue's past_us; 0: 5 s */
	uint64_t horizon_ns;  /* longest sleep of the relay that polls first; 0: 10 s */
	uint64_t grace_ns;    /* by how much the next polls later, doubled for each; 0: 100 ms */
	uint32_t batch;       /* most tasks that one poll makes available, at most 1,000; 0: 128 */
	uint32_t replicas;    /* how many must have a change before its call returns; at most 100 */
};

/*
 * Counters of a queue and of this process. A relay is a process that serves the queue; it polls
 * Redis when the next task is due, and when a wake-up message of another process asks for it.
 */
struct timerhub_relay_stats {
	/* The first ten are about the queue, and are asked of Redis. */
	uint64_t waiting;  /* tasks that wait for their time */
	uint64_t ready;    /* tasks that are due, those that somebody has taken included */
	uint64_t taken;    /* tasks that somebody has taken and not answered */
	uint64_t parked;   /* tasks set aside, by a park or because their attempts are used up */
	uint64_t past;     /* ids of ended tasks that a put still refuses */
	uint64_t relays;   /* processes that serve the queue */
	uint64_t promoted; /* tasks that all relays have made available, since the queue exists */
	uint64_t leases_over; /* deliveries that were repeated because their lease was over */
	uint64_t parked_ever; /* tasks that were parked since the queue exists */
	uint64_t orphans;     /* ids and entries of other programs in the queue's keys */
	/* From here on: what this process has done since it opened the queue. */
	uint64_t put;       /* puts that returned 0 */
	uint64_t cancelled; /* cancels that returned 0 */
	uint64_t moved;     /* moves that returned 0 */
	uint64_t delivered; /* tasks that it has taken */
	uint64_t done;      /* calls of done that returned 0 */
	uint64_t retried;   /* retries that returned 0 */
	uint64_t looks;     /* how often it has polled the queue as a relay; 0: it does not serve */
	uint64_t looks_empty; /* polls that found no due task */
	uint64_t bells;       /* wake-up messages that it has received as a relay */
	uint64_t rank;        /* among the relays of the first server; that of rank 0 polls first */
	uint64_t connects;    /* connections for calls that it has made */
	uint64_t in_doubt;    /* calls that it has sent again because the connection was lost */
	/* How late the tasks were that it made available; buckets as in struct timerhub_stats. */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	/* The last two are about the queue again. */
	uint64_t parked_cut; /* parked tasks that dead_max has cut off, so nobody can revive them */
	uint64_t paused;     /* 1 if the queue is paused on at least one server, else 0 */
	uint64_t reserved[14];
};

/* What is kept if a server or its machine fails, best last. timerhub-relay(7) has the details. */
enum timerhub_relay_keeps {
	TIMERHUB_RELAY_KEEPS_UNKNOWN = 0,  /* the server does not show its configuration */
	TIMERHUB_RELAY_KEEPS_NOTHING = 1,  /* the server has no persistence */
	TIMERHUB_RELAY_KEEPS_SNAPSHOT = 2, /* the server writes RDB snapshots only */
	TIMERHUB_RELAY_KEEPS_SECONDS = 3,  /* the server's AOF has appendfsync `everysec` or `no` */
	TIMERHUB_RELAY_KEEPS_ALL = 4,      /* the server's AOF has appendfsync `always` */
};

/* What timerhub_relay_check() finds wrong; each is a bit of its report's `faults`. */
enum timerhub_relay_fault {
	TIMERHUB_RELAY_FAULT_UNSERVED = 1, /* no relay serves the queue */
	TIMERHUB_RELAY_FAULT_OVERDUE = 2,  /* a task is overdue by more than 5 s */
	TIMERHUB_RELAY_FAULT_UNHEARD = 4,  /* no relay hears the messages that wake it */
	TIMERHUB_RELAY_FAULT_EVICTS = 8,   /* the server may remove tasks when its memory is full */
	TIMERHUB_RELAY_FAULT_LOST = 16,    /* tasks have records, but neither wait nor are due */
	TIMERHUB_RELAY_FAULT_FOREIGN = 32, /* ids or entries have no record of a task */
	TIMERHUB_RELAY_FAULT_AWAY = 64,    /* one of several servers does not answer */
};

/* What timerhub_relay_check() has found out. */
struct timerhub_relay_report {
	uint32_t keeps;        /* a value of enum timerhub_relay_keeps */
	uint32_t replicas;     /* how many replicas are connected */
	uint32_t replicas_min; /* min-replicas-to-write; 0: a cut-off master accepts changes */
	uint32_t evicts;       /* 1 if Redis may evict tasks (maxmemory-policy allkeys-*), else 0 */
	uint64_t tasks;        /* how many records of tasks Redis has */
	uint64_t placed; /* tasks that wait or are due; differs from `tasks` if there is a fault */
	uint64_t round_trip_ns; /* the shortest measured; grace_ns should be 4 times as long */
	const char *fault;      /* a constant text about the first fault; NULL: there is none */
	uint64_t relays; /* processes that serve the queue and have polled in time; 0 is a fault */
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
 * Ends the taking of tasks in this process: takes still return what was read from Redis before, and
 * then -ESHUTDOWN. All other calls go on to work. It cannot be undone. `relay` may be NULL.
 */
TIMERHUB_API void timerhub_relay_stop(struct timerhub_relay *relay);

/*
 * Closes a queue. Takes that wait return -ESHUTDOWN, but no other call may run or begin, so call
 * timerhub_relay_stop() and join the threads that take before. A task that was taken and not
 * answered comes again after its lease. `relay` may be NULL.
 */
TIMERHUB_API void timerhub_relay_close(struct timerhub_relay *relay);

/*
 * Returns a descriptor for an event loop. It is readable when a take would not block, and sometimes
 * when there is nothing to take. Do not read or close it.
 *
 * After this call, and whenever a take with timeout_ns 0 has returned 0, the library reads one task
 * in advance, whose lease begins then.
 */
TIMERHUB_API int timerhub_relay_fd(struct timerhub_relay *relay);

/*
 * Puts a task that is due when `when_ns` have passed, or at that time with TIMERHUB_ABSOLUTE; with
 * TIMERHUB_NEVER it waits for a move. If `id` is NULL, the library makes one. It is stored in
 * `ret_id`, which has TIMERHUB_RELAY_ID_BYTES bytes or is NULL. A repeated put of one id changes
 * nothing, so the call can be repeated after -ETIMEDOUT.
 *
 * Returns -EEXIST if the id's task is live, -EALREADY if it has ended and was put less than past_us
 * ago, -EAGAIN if the queue has tasks_max tasks, -EMSGSIZE if the data is longer than data_max,
 * -ERANGE if the time is beyond 2^53 us, -EINVAL, or a network error.
 */
TIMERHUB_API int timerhub_relay_put(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                    uint32_t flags, const void *data, size_t data_len,
                                    char *ret_id);

/*
 * Cancels a task: after a 0 it is never delivered, even if it was due already.
 *
 * Returns -EBUSY if somebody has taken it, -ENOENT if it has ended or was never put, or a network
 * error. -ETIMEDOUT is also returned if the library had to send the cancel again and then found the
 * task taken or gone, because the first sending may have cancelled it.
 */
TIMERHUB_API int timerhub_relay_cancel(struct timerhub_relay *relay, const char *id);

/*
 * Gives a task that nobody has taken a new time; after a 0 it is delivered at that time only.
 * Returns the errors of timerhub_relay_cancel(), or -ERANGE.
 */
TIMERHUB_API int timerhub_relay_move(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                     uint32_t flags);

/*
 * Takes the earliest task that is due, and waits for one for up to `timeout_ns`, or without limit
 * if that is UINT64_MAX. With 0 it asks each server once; in a program that has the descriptor of
 * timerhub_relay_fd() it gives up on a server after 100 ms.
 *
 * Returns 1 if it has taken a task, 0 after the timeout, or -ESHUTDOWN if the relay is stopped and
 * has no task left, or is being closed. Only with a timeout of 0 it returns network errors;
 * otherwise it connects again while it waits.
 */
TIMERHUB_API int timerhub_relay_take(struct timerhub_relay *relay,
                                     struct timerhub_relay_task *ret_task, uint64_t timeout_ns);

/*
 * Ends a task: it is never delivered again, or if it is periodic, it waits for its next period.
 * Returns -ESTALE if it was delivered again, moved or put again since, -ENOENT if it has ended, or
 * a network error.
 */
TIMERHUB_API int timerhub_relay_done(struct timerhub_relay *relay,
                                     const struct timerhub_relay_task *task);

/*
 * Gives a task back, to be delivered again in `delay_ns`, or to be parked if its attempts are used
 * up. Returns the errors of timerhub_relay_done(), or -ERANGE.
 */
TIMERHUB_API int timerhub_relay_retry(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task, uint64_t delay_ns);

/*
 * Parks a task that no attempt can do: it is not delivered until an operator revives it. `reason`
 * is any number, which timerhub_relay_each() reports. Returns the errors of timerhub_relay_done().
 */
TIMERHUB_API int timerhub_relay_park(struct timerhub_relay *relay,
                                     const struct timerhub_relay_task *task, uint32_t reason);

/*
 * Begins the lease of a task again. Returns -ESTALE if the task has ended or somebody else has got
 * it, or a network error.
 */
TIMERHUB_API int timerhub_relay_touch(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task);

/*
 * Frees the data of a task without an answer to Redis, so that the task comes again after its
 * lease. Make no other call with this `task` afterwards. Returns -ENOENT if it was answered or
 * released before.
 */
TIMERHUB_API int timerhub_relay_release(struct timerhub_relay *relay,
                                        const struct timerhub_relay_task *task);

/* ---- many changes at once ---- */

/* The kinds of a change. */
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
	uint32_t op;      /* an enum timerhub_relay_op */
	uint32_t flags;   /* TIMERHUB_RELAY_REPLACE of a put, TIMERHUB_ABSOLUTE of a put or move */
	const char *id;   /* of a put, cancel or move; if a put has NULL, the library makes one */
	uint64_t when_ns; /* of a put or move; the delay of a retry */
	uint64_t interval_ns; /* of a put; if it is not 0, the task is periodic */
	const void *data;     /* of a put */
	size_t data_len;
	const struct timerhub_relay_task *task; /* to end by done, retry or park */
	uint32_t reason;                        /* of a park */
	int32_t result;  /* is written: what the call for this change alone would return */
	char ret_id[72]; /* is written by a put whose result is 0: the task's id */
	uint64_t reserved[4];
};

/*
 * Puts many tasks in a few round trips. The `op` of each change is 0 or TIMERHUB_RELAY_PUT. Each is
 * a put of its own and may fail alone; its result is in `result`. Returns how many have the result
 * 0, or the first error if none was sent.
 */
TIMERHUB_API int timerhub_relay_put_many(struct timerhub_relay *relay,
                                         struct timerhub_relay_change *changes, unsigned count);

/*
 * Ends many tasks in a few round trips. Each change has a `task`, and its `op` is 0 or
 * TIMERHUB_RELAY_DONE. Results as timerhub_relay_put_many().
 */
TIMERHUB_API int timerhub_relay_done_many(struct timerhub_relay *relay,
                                          struct timerhub_relay_change *changes, unsigned count);

/*
 * Cancels many tasks in a few round trips. Each change has an `id`, and its `op` is 0 or
 * TIMERHUB_RELAY_CANCEL. Results as timerhub_relay_put_many().
 */
TIMERHUB_API int timerhub_relay_cancel_many(struct timerhub_relay *relay,
                                            struct timerhub_relay_change *changes, unsigned count);

/* ---- without waiting ---- */

/*
 * Begins up to 1,024 changes of any kind and does not wait for them, so that an event loop can call
 * it. The changes and what they point at are copied. If it returns 0, each change has one
 * completion with `tag`, unless the relay is closed first. The data of a task that a change ends
 * stays valid until that completion is taken.
 *
 * After an error no change has begun. Returns -EAGAIN if there would be more than 1,024 changes
 * whose completion nobody has taken, -E2BIG if these alone are more, and -EMSGSIZE, -ERANGE or
 * -EINVAL if one of them is wrong.
 */
TIMERHUB_API int timerhub_relay_submit(struct timerhub_relay *relay,
                                       const struct timerhub_relay_change *changes, unsigned count,
                                       uint64_t tag);

/* The result of one submitted change. */
struct timerhub_relay_completion {
	uint64_t tag;   /* what the submit was given */
	uint32_t index; /* the change's index in the array of the submit */
	int32_t result; /* what the call for this change alone would have returned */
	char id[72];    /* the task's id */
	uint64_t reserved[2];
};

/* Stores up to `max` completions in `ret`, and returns how many; never waits. */
TIMERHUB_API int timerhub_relay_completions(struct timerhub_relay *relay,
                                            struct timerhub_relay_completion *ret, unsigned max);

/*
 * Returns a descriptor to poll, which is readable while completions wait to be taken. Do not read
 * or close it. Returns -EMFILE or -ENFILE if there is no descriptor left.
 */
TIMERHUB_API int timerhub_relay_completion_fd(struct timerhub_relay *relay);

/* ---- the queue ---- */

/*
 * Pauses the queue until timerhub_relay_resume(): nobody in any process gets a task, while puts,
 * cancels and moves go on. A taker keeps what it has, or has read in advance. Returns 0 or a
 * network error.
 */
TIMERHUB_API int timerhub_relay_pause(struct timerhub_relay *relay);

/* Ends a pause, so that what is due is delivered. Returns 0 or a network error. */
TIMERHUB_API int timerhub_relay_resume(struct timerhub_relay *relay);

/* The states of a task, one of which timerhub_relay_each() lists. */
enum timerhub_relay_which {
	TIMERHUB_RELAY_WAITING = 0, /* due later, or due and not taken yet */
	TIMERHUB_RELAY_TAKEN = 1,   /* delivered, and not answered yet */
	TIMERHUB_RELAY_PARKED = 2,  /* set aside by a park, or after its last attempt */
};

/* A task in the list of timerhub_relay_each(). */
struct timerhub_relay_info {
	char id[72];
	char holder[128];     /* config.consumer of the process that has taken it; else empty */
	uint64_t due_ns;      /* TIMERHUB_NEVER: the task waits for a move */
	uint64_t since_ns;    /* when it was put, taken or touched, or parked */
	uint64_t attempts;    /* deliveries so far */
	uint64_t interval_ns; /* 0: the task is not periodic */
	uint64_t data_len;
	uint32_t which;  /* its state, an enum timerhub_relay_which */
	uint32_t reason; /* why it is parked; UINT32_MAX: no attempt was left */
	uint64_t reserved[4];
};

/* What timerhub_relay_each() calls for a task. Anything but 0 ends the list, and is its result. */
typedef int timerhub_relay_each_fn(const struct timerhub_relay_info *info, void *context);

/*
 * Calls `fn` for each task that is in the state `which`, an enum timerhub_relay_which. `fn` may
 * make any call but close.
 *
 * Redis is asked in steps, so that it is never busy for long, and tasks change meanwhile: `fn` is
 * called for every task that stays in the state, and perhaps twice for a waiting one that becomes
 * due. Returns 0, what `fn` has returned, or a network error.
 */
TIMERHUB_API int timerhub_relay_each(struct timerhub_relay *relay, uint32_t which,
                                     timerhub_relay_each_fn *fn, void *context);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * Stores the counters of the queue and of this process in *ret_stats. Returns 0 or a network error.
 */
TIMERHUB_API int timerhub_relay_stats(struct timerhub_relay *relay,
                                      struct timerhub_relay_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Checks a queue: what each server at `redis` would keep if it failed, whether processes serve the
 * queue, and whether its keys agree with each other. Stores what it finds in *ret_report, and
 * changes nothing. If some of several servers do not answer, it reports that as a fault, and checks
 * the others.
 *
 * Returns 0 even if it has found faults. Returns -ENOENT if there is no such queue, -EINVAL if an
 * argument is wrong, or a network error other than -ETIMEDOUT if no server answers.
 */
TIMERHUB_API int timerhub_relay_check(const char *redis, const char *queue,
                                      struct timerhub_relay_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
