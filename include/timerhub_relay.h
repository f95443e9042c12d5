/* SPDX-License-Identifier: MIT */
/*
 * timerhub_relay: delayed tasks for many machines, kept in Redis (7.0 or later) or Valkey (8 or
 * later). The manual is timerhub-relay(7); timerhub-relay(5) describes the keys and functions in
 * Redis.
 *
 * Any process can put, cancel and move tasks. Each task that is due is given to one process that
 * takes tasks. That process answers by done, retry or park. If it does not do so within a time that
 * is called the lease, somebody else is given the task. At least one process must serve the queue,
 * which means that it makes tasks available when they are due. Every process that takes tasks does
 * that, and so does `timerhub-relay run`. When a call has returned 0, Redis has the change. Whether
 * the change can still be lost depends on how Redis saves its data.
 *
 * A call returns 0 or a count. If it fails, it returns a negative errno and has written no output.
 * Any thread may make any call, but no signal handler may. In a forked child every call returns
 * -EOWNERDEAD, and close only closes the child's descriptors. Times are in nanoseconds on the
 * CLOCK_REALTIME of Redis's machine, and are rounded up to microseconds.
 *
 * Every call that asks Redis can fail with one of the following errors, which the comments below
 * call "network errors". Nothing has changed then, except that after -ETIMEDOUT Redis may have made
 * the change:
 *   -ETIMEDOUT: the server, or its replicas, did not answer in time
 *   -ECONNREFUSED, -EHOSTUNREACH, ...: the server could not be reached
 *   -EROFS: the server accepts no changes, because it is a replica, is loading its data, or has too
 *     few replicas
 *   -EACCES: the server refuses the password, a right or a certificate
 *   -EOPNOTSUPP: the server is older than Redis 7.0, or of another kind than the address says, or a
 *     later version of the library has changed the layout of the queue
 *   -ENOSPC, -EIO: the server's memory is full, or it cannot write to its disk
 *   -EBADMSG: a key of the queue has a value of another type
 *   -EPROTO: the server's replies are not those of Redis
 *   -ENOMEM, -EMFILE, -ENFILE: this process has no memory or descriptor left, or the server accepts
 *     no more clients
 */
#ifndef TIMERHUB_RELAY_H
#define TIMERHUB_RELAY_H

#include <stddef.h>
#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A queue of tasks in Redis, as one process has opened it for all of its threads. */
struct timerhub_relay;

#define TIMERHUB_RELAY_ID_BYTES 65       /* space for an id of at most 64 bytes and its NUL */
#define TIMERHUB_RELAY_DELIVERY_BYTES 48 /* space for the name of a delivery and its NUL */

/*
 * A task as timerhub_relay_take() delivers it. Its data stays valid until the task is released, or
 * until done, retry or park has returned 0, -ESTALE or -ENOENT.
 */
struct timerhub_relay_task {
	char id[TIMERHUB_RELAY_ID_BYTES];
	char delivery[TIMERHUB_RELAY_DELIVERY_BYTES]; /* names this delivery of the task */
	uint64_t due_ns;                              /* on CLOCK_REALTIME of Redis's machine */
	uint64_t attempts; /* how often the task was delivered so far, this time included */
	const void *data;
	size_t data_len;
	uint64_t interval_ns; /* 0: the task is not periodic */
	uint64_t periods;     /* 1, plus the periods that passed while nobody took it */
	uint64_t reserved[6];
};

/*
 * A flag for timerhub_relay_config: serve the queue from the time it is opened, even if this
 * process never takes a task.
 */
#define TIMERHUB_RELAY_SERVE (1u << 0)

/*
 * A flag for timerhub_relay_config: never serve the queue, even if this process takes tasks,
 * because other processes serve it.
 */
#define TIMERHUB_RELAY_NO_SERVE (1u << 1)

/*
 * A flag for a put. If the id's task still waits, it gets the new time and data, and its attempts
 * count from 0. If that task has ended, the put works even before past_us has passed.
 */
#define TIMERHUB_RELAY_REPLACE (1u << 16)

/* Describes a queue to timerhub_relay_open(). A field that is 0 has its default. */
struct timerhub_relay_config {
	uint32_t size;  /* sizeof(struct timerhub_relay_config) */
	uint32_t flags; /* 0, TIMERHUB_RELAY_SERVE or TIMERHUB_RELAY_NO_SERVE */
	/*
	 * The address of the Redis server, in one of these forms; NULL: redis://127.0.0.1. What is
	 * in square brackets may be left out. "+host" names another Sentinel or cluster node.
	 *
	 *   redis://[user:password@]host[:port][/db]
	 *   unix:/path
	 *   sentinel://[user:password@]host[:port][+host...]/master[/db]
	 *   cluster://[user:password@]host[:port][+host...]
	 *
	 * For TLS, begin with rediss://, sentinels:// or clusters://.
	 *
	 * To spread the queue over several masters, write their addresses with commas between them.
	 * All processes must list them in the same order.
	 *
	 * If the address is in a file, write an at sign and the path, for example
	 * "@/etc/redis-url". The first line of the file is the address.
	 */
	const char *redis;
	const char *consumer; /* this process's name in Redis; NULL: the library makes one up */
	uint64_t timeout_ns;  /* timeout of each call, at most the queue's past_us; 0: 5 s */
	uint64_t horizon_ns;  /* longest time between two polls of the first relay; 0: 10 s */
	uint64_t grace_ns;    /* how much later the next relay polls, doubled for each; 0: 100 ms */
	uint32_t batch;       /* most tasks that one poll makes available, up to 1,000; 0: 128 */
	uint32_t replicas; /* replicas that must have a change before its call returns; up to 100 */
};

/*
 * Counters of a queue, and of what this process does with it. A relay is a process that serves the
 * queue; a poll is its call to Redis that makes due tasks available.
 */
struct timerhub_relay_stats {
	/* The first ten counters are about the queue, and come from Redis. */
	uint64_t waiting; /* tasks that are not due yet */
	uint64_t ready;   /* tasks that are due, including those that somebody has taken */
	uint64_t taken;  /* tasks that somebody has taken and not answered by done, retry or park */
	uint64_t parked; /* tasks set aside by a park or after their last attempt */
	uint64_t past;   /* ids of ended tasks that cannot be used again yet */
	uint64_t relays; /* processes that serve the queue */
	uint64_t promoted;    /* tasks that relays have made available since the queue exists */
	uint64_t leases_over; /* tasks that were delivered again because their lease was over */
	uint64_t parked_ever; /* tasks that were parked since the queue exists */
	uint64_t orphans;     /* ids and entries in the queue's keys that have no task */
	/*
	 * `put` and the counters that follow say what this process has done since it opened the
	 * queue.
	 */
	uint64_t put;         /* puts that returned 0 */
	uint64_t cancelled;   /* cancels that returned 0 */
	uint64_t moved;       /* moves that returned 0 */
	uint64_t delivered;   /* tasks that this process has taken */
	uint64_t done;        /* calls of done that returned 0 */
	uint64_t retried;     /* retries that returned 0 */
	uint64_t looks;       /* how often it has polled as a relay; 0: it does not serve */
	uint64_t looks_empty; /* polls that found no task that was due */
	uint64_t bells;       /* messages that woke it as a relay */
	uint64_t rank;     /* its position among the first server's relays; number 0 polls first */
	uint64_t connects; /* connections that it has made for calls */
	uint64_t in_doubt; /* calls sent again because the connection was lost */
	/*
	 * How late the tasks were when this process made them available, as a histogram with the
	 * same buckets as in struct timerhub_stats.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	/*
	 * `parked_cut` and `paused` come from Redis. They describe the queue, not what this process
	 * has done.
	 */
	uint64_t parked_cut; /* parked tasks that dead_max removed; nobody can revive them */
	uint64_t paused;     /* 1 if the queue is paused on at least one server, else 0 */
	uint64_t reserved[14];
};

/*
 * Which tasks are still there after a server or its machine has failed. Of the values from 1 to 4,
 * a higher one keeps more tasks. timerhub-relay(7) has the details.
 */
enum timerhub_relay_keeps {
	TIMERHUB_RELAY_KEEPS_UNKNOWN = 0,  /* the server does not show its configuration */
	TIMERHUB_RELAY_KEEPS_NOTHING = 1,  /* the server has no persistence */
	TIMERHUB_RELAY_KEEPS_SNAPSHOT = 2, /* the server writes RDB snapshots only */
	TIMERHUB_RELAY_KEEPS_SECONDS = 3,  /* the server's AOF has appendfsync `everysec` or `no` */
	TIMERHUB_RELAY_KEEPS_ALL = 4,      /* the server's AOF has appendfsync `always` */
};

/* The faults that timerhub_relay_check() can find. Each is a bit of `faults` in the report. */
enum timerhub_relay_fault {
	TIMERHUB_RELAY_FAULT_UNSERVED = 1, /* no relay serves the queue */
	TIMERHUB_RELAY_FAULT_OVERDUE = 2,  /* a task is overdue by more than 5 s */
	TIMERHUB_RELAY_FAULT_UNHEARD = 4,  /* no relay hears the messages that wake it */
	TIMERHUB_RELAY_FAULT_EVICTS = 8,   /* the server may remove tasks when its memory is full */
	TIMERHUB_RELAY_FAULT_LOST = 16,    /* tasks have records, but neither wait nor are due */
	TIMERHUB_RELAY_FAULT_FOREIGN = 32, /* ids or entries have no record of a task */
	TIMERHUB_RELAY_FAULT_AWAY = 64,    /* one of several servers does not answer */
};

/* The report of timerhub_relay_check(). */
struct timerhub_relay_report {
	uint32_t keeps;        /* a value of enum timerhub_relay_keeps */
	uint32_t replicas;     /* how many replicas are connected */
	uint32_t replicas_min; /* min-replicas-to-write; 0: a cut-off master accepts changes */
	uint32_t evicts;       /* 1 if Redis may evict tasks (maxmemory-policy allkeys-*), else 0 */
	uint64_t tasks;        /* how many records of tasks Redis has */
	uint64_t placed;       /* tasks that wait or are due; a fault if it is not `tasks` */
	uint64_t round_trip_ns; /* the shortest one measured; grace_ns should be 4 times that */
	const char *fault;      /* a constant text about the first fault; NULL: there is none */
	uint64_t relays;     /* processes that serve the queue and polled in time; 0 is a fault */
	uint64_t overdue_ns; /* how long the earliest task is overdue; more than 5 s is a fault */
	uint64_t faults;     /* all faults, as bits of enum timerhub_relay_fault */
	uint64_t reserved[5];
};

/*
 * Opens a queue, and creates it if it does not exist. `config` may be NULL. Returns 0 or a network
 * error, but never -ETIMEDOUT. Other errors:
 * - -EINVAL, -E2BIG: `config` is wrong, or the name does not consist of 1 to 64 characters A-Z,
 *   a-z, 0-9, underscore, period and hyphen.
 * - -EEXIST: the queue has other servers, or the same in another order.
 * - -EAGAIN: no thread can be started.
 * - -EOPNOTSUPP: this build has no TLS, or a later version of the library has changed the queue.
 */
TIMERHUB_API int timerhub_relay_open(struct timerhub_relay **ret_relay, const char *queue,
                                     const struct timerhub_relay_config *config);

/*
 * Stops this process from taking tasks, so that its threads can end: timerhub_relay_take() returns
 * the tasks that the library has read already, and then -ESHUTDOWN. All other calls still work. A
 * stop cannot be undone. `relay` may be NULL.
 */
TIMERHUB_API void timerhub_relay_stop(struct timerhub_relay *relay);

/*
 * Closes a queue. `relay` may be NULL. First call timerhub_relay_stop() and join the threads that
 * use the queue. A timerhub_relay_take() that still waits returns -ESHUTDOWN, but no other call may
 * be running, and no call may begin. Tasks that were taken and not answered come again after their
 * leases.
 */
TIMERHUB_API void timerhub_relay_close(struct timerhub_relay *relay);

/*
 * Returns a descriptor to poll. It is readable when timerhub_relay_take() would not wait, and can
 * be readable although no task is due. After the first call, the library reads one task in advance,
 * and the lease of that task begins when it is read.
 */
TIMERHUB_API int timerhub_relay_fd(struct timerhub_relay *relay);

/*
 * Puts a task that is due in `when_ns`. If `id` is NULL, the library makes an id. `ret_id` is NULL,
 * or an array of TIMERHUB_RELAY_ID_BYTES that receives the task's id. After -ETIMEDOUT repeat the
 * put with that id. timerhub_relay_put(3) lists the errors, such as:
 * - -EEXIST: a task with this id is live.
 * - -EALREADY: a task with this id has ended, and was put not long ago (a minute, by default).
 */
TIMERHUB_API int timerhub_relay_put(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                    uint32_t flags, const void *data, size_t data_len,
                                    char *ret_id);

/*
 * Cancels a task. If it returns 0, the task is never delivered, even if it was due already. Other
 * results are network errors or:
 *   -EBUSY: somebody has taken the task.
 *   -ENOENT: the task has ended, or was never put.
 *   -ETIMEDOUT: an attempt whose reply was lost may have cancelled the task.
 */
TIMERHUB_API int timerhub_relay_cancel(struct timerhub_relay *relay, const char *id);

/*
 * Gives a new time to a task that nobody has taken. If it returns 0, the task is delivered at the
 * new time, and not at the old one. Returns the errors of timerhub_relay_cancel(), or -ERANGE.
 */
TIMERHUB_API int timerhub_relay_move(struct timerhub_relay *relay, const char *id, uint64_t when_ns,
                                     uint32_t flags);

/*
 * Takes the task that has been due for longest, and waits up to `timeout_ns` for one; UINT64_MAX:
 * without limit. Returns 1, 0 after the timeout, or -ESHUTDOWN if the relay is closed, or stopped
 * and empty. Only a take with timeout 0 returns network errors.
 */
TIMERHUB_API int timerhub_relay_take(struct timerhub_relay *relay,
                                     struct timerhub_relay_task *ret_task, uint64_t timeout_ns);

/*
 * Ends a task that this process has taken; a periodic one waits for its next period. Returns
 * -ESTALE if it was delivered again, moved or put again meanwhile, -ENOENT if it has ended, or a
 * network error.
 */
TIMERHUB_API int timerhub_relay_done(struct timerhub_relay *relay,
                                     const struct timerhub_relay_task *task);

/*
 * Gives a task back, to be delivered again in `delay_ns`. After its last attempt it is parked
 * instead: only an operator can revive it. Returns the errors of timerhub_relay_done(), or -ERANGE.
 */
TIMERHUB_API int timerhub_relay_retry(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task, uint64_t delay_ns);

/*
 * Parks a task that would fail again: it is not delivered until an operator revives it. `reason` is
 * any number, which timerhub_relay_each() shows. Returns the errors of timerhub_relay_done().
 */
TIMERHUB_API int timerhub_relay_park(struct timerhub_relay *relay,
                                     const struct timerhub_relay_task *task, uint32_t reason);

/*
 * Begins the lease of a task again, so that nobody else gets this task until the new lease is over.
 * Returns -ESTALE if the task has ended or somebody else has got it, or a network error.
 */
TIMERHUB_API int timerhub_relay_touch(struct timerhub_relay *relay,
                                      const struct timerhub_relay_task *task);

/*
 * Frees the data of a task without telling Redis, so the task is delivered again after its lease.
 * Make no other call with `task` then. Returns -ENOENT if it was answered or released before.
 */
TIMERHUB_API int timerhub_relay_release(struct timerhub_relay *relay,
                                        const struct timerhub_relay_task *task);

/* ---- many changes at once ---- */

/* The kinds of change that struct timerhub_relay_change can describe. */
enum timerhub_relay_op {
	TIMERHUB_RELAY_PUT = 1,
	TIMERHUB_RELAY_CANCEL = 2,
	TIMERHUB_RELAY_MOVE = 3,
	TIMERHUB_RELAY_DONE = 4,
	TIMERHUB_RELAY_RETRY = 5,
	TIMERHUB_RELAY_PARK = 6,
};

/*
 * Describes one change of a task. Fields that its `op` does not use, and reserved ones, must be 0.
 */
struct timerhub_relay_change {
	uint32_t op;    /* an enum timerhub_relay_op */
	uint32_t flags; /* TIMERHUB_RELAY_REPLACE for a put, TIMERHUB_ABSOLUTE for a put or move */
	const char *id; /* the task; NULL for a put: the library makes an id up */
	uint64_t when_ns;     /* the time for a put or move, or the delay for a retry */
	uint64_t interval_ns; /* for a put: the period; 0: the task is not periodic */
	const void *data;     /* for a put */
	size_t data_len;
	const struct timerhub_relay_task *task; /* the task for done, retry or park */
	uint32_t reason;                        /* for a park */
	int32_t result;  /* output: what the call for this change alone would return */
	char ret_id[72]; /* output of a put whose result is 0: the task's id */
	uint64_t reserved[4];
};

/*
 * Puts many tasks in a few round trips. The `op` of each change is TIMERHUB_RELAY_PUT, or 0, which
 * means the same here. Each put can fail alone, as its `result` says. Returns how many succeeded,
 * or the first error if nothing was sent.
 */
TIMERHUB_API int timerhub_relay_put_many(struct timerhub_relay *relay,
                                         struct timerhub_relay_change *changes, unsigned count);

/*
 * Ends many tasks in a few round trips, as timerhub_relay_done() ends one. The `op` of each change
 * is 0 or TIMERHUB_RELAY_DONE. Returns how many tasks were ended, or the first error if nothing was
 * sent.
 */
TIMERHUB_API int timerhub_relay_done_many(struct timerhub_relay *relay,
                                          struct timerhub_relay_change *changes, unsigned count);

/*
 * Cancels many tasks in a few round trips. Each change has an `id`, and `op` is 0 or
 * TIMERHUB_RELAY_CANCEL. Returns how many succeeded, or the first error if nothing was sent.
 */
TIMERHUB_API int timerhub_relay_cancel_many(struct timerhub_relay *relay,
                                            struct timerhub_relay_change *changes, unsigned count);

/* ---- without waiting ---- */

/*
 * Begins up to 1,024 changes, of which it makes copies, and does not wait for Redis. Each gets one
 * completion with `tag`. Until you take that, a task that the change ends keeps its data. After an
 * error, such as -EAGAIN for too many changes in flight, none has begun.
 */
TIMERHUB_API int timerhub_relay_submit(struct timerhub_relay *relay,
                                       const struct timerhub_relay_change *changes, unsigned count,
                                       uint64_t tag);

/* The result of one change that timerhub_relay_submit() has begun. */
struct timerhub_relay_completion {
	uint64_t tag;   /* what the submit was given */
	uint32_t index; /* the change's index in the array of the submit */
	int32_t result; /* what the call for this change alone would have returned */
	char id[72];    /* the task's id */
	uint64_t reserved[2];
};

/* Takes up to `max` completions, stores them in `ret`, and returns how many. It never waits. */
TIMERHUB_API int timerhub_relay_completions(struct timerhub_relay *relay,
                                            struct timerhub_relay_completion *ret, unsigned max);

/*
 * Returns a descriptor that is readable while completions wait. Poll it, but do not read or close
 * it. Returns -EMFILE or -ENFILE if no descriptor is left.
 */
TIMERHUB_API int timerhub_relay_completion_fd(struct timerhub_relay *relay);

/* ---- the queue ---- */

/*
 * Pauses the queue: no process is given a task until timerhub_relay_resume(), but other calls still
 * work. Tasks that were taken or read in advance stay with their process. Returns 0 or a network
 * error.
 */
TIMERHUB_API int timerhub_relay_pause(struct timerhub_relay *relay);

/* Ends a pause, so that tasks that are due are delivered again. Returns 0 or a network error. */
TIMERHUB_API int timerhub_relay_resume(struct timerhub_relay *relay);

/* The states of a task. timerhub_relay_each() lists the tasks in one of them. */
enum timerhub_relay_which {
	TIMERHUB_RELAY_WAITING = 0, /* not due yet, or due and not taken yet */
	TIMERHUB_RELAY_TAKEN = 1,   /* taken, and not answered yet by done, retry or park */
	TIMERHUB_RELAY_PARKED = 2,  /* set aside by a park, or after its last attempt */
};

/* Describes a task to the function that timerhub_relay_each() calls. */
struct timerhub_relay_info {
	char id[72];
	char holder[128];     /* config.consumer of the process that has taken it, or "" */
	uint64_t due_ns;      /* TIMERHUB_NEVER: the task waits for a move */
	uint64_t since_ns;    /* when it was put, taken, touched or parked */
	uint64_t attempts;    /* how often it was delivered so far */
	uint64_t interval_ns; /* 0: the task is not periodic */
	uint64_t data_len;
	uint32_t which;  /* its state, an enum timerhub_relay_which */
	uint32_t reason; /* why it is parked; UINT32_MAX: it had used up its attempts */
	uint64_t reserved[4];
};

/*
 * The type of the function that timerhub_relay_each() calls for each task. If it returns something
 * other than 0, timerhub_relay_each() ends and returns that value.
 */
typedef int timerhub_relay_each_fn(const struct timerhub_relay_info *info, void *context);

/*
 * Calls `fn`, which may make any call except close, for each task in the state `which`. Tasks can
 * change meanwhile: one that becomes due may be listed twice, and one that is moved or replaced
 * not at all. Returns 0, what `fn` has returned, or a network error.
 */
TIMERHUB_API int timerhub_relay_each(struct timerhub_relay *relay, uint32_t which,
                                     timerhub_relay_each_fn *fn, void *context);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* The function has the same name as the struct, which C++ allows. */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * Stores the counters of the queue, and of what this process has done, in *ret_stats. Returns 0 or
 * a network error.
 */
TIMERHUB_API int timerhub_relay_stats(struct timerhub_relay *relay,
                                      struct timerhub_relay_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Checks a queue without changing it: whether its servers would lose tasks in a crash, whether a
 * process serves it, and whether its keys in Redis contradict each other. Returns 0 even if it has
 * found faults, and -ENOENT if there is no such queue.
 */
TIMERHUB_API int timerhub_relay_check(const char *redis, const char *queue,
                                      struct timerhub_relay_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
