/* SPDX-License-Identifier: MIT */
/*
 * timerhub: one timer service for a whole process; the manual is timerhub(7).
 *
 * Any thread arms, re-arms and cancels timers without a lock. One owner thread keeps them in a
 * hierarchical timing wheel (G. Varghese and A. Lauck, "Hashed and hierarchical timing wheels",
 * 1987; Linux kernel/time/timer.c) and a heap, and puts each expiry into a queue, whose eventfd any
 * event loop can poll.
 *
 * A call that can fail returns 0 or a count, or a negative errno, and then has written no output.
 * Times are uint64_t nanoseconds on the hub's clock; a deadline is at most 2^63 - 128, is not
 * rounded, and is what the event returns. -EINVAL: an argument is NULL, a flag is unknown, or a
 * number is out of range. No call is a cancellation point of pthread_cancel(3); asynchronous
 * cancellation is not supported. "Lock-free": takes no lock, allocates nothing, async-signal-safe.
 *
 * When a timer's memory may be freed (timerhub-free(7)); an event in an array counts as delivered:
 *
 *   the call returned     one-shot                  periodic or kept
 *   --------------------  ------------------------  ------------------------
 *   If only the cancelling thread dispatches:
 *   cancel: 0             free                      free [1]
 *   cancel: -ENOENT       free, unless the          do not free [2]
 *                         timer's callback
 *                         frees the data [1]
 *   If another thread dispatches:
 *   cancel: 0             free                      first call cancel_sync
 *                                                   outside the timer's
 *                                                   callbacks, then free
 *   cancel: -ENOENT       call cancel_sync, then    do not free [2]
 *                         see the cancel_sync rows
 *   cancel_sync: 0        free                      free [1]
 *   cancel_sync: -ENOENT  free, unless the          do not free [2]
 *                         timer's callback
 *                         frees the data [3]
 *   If only the cancelling thread calls drain or wait:
 *   cancel: 0             free                      free after the batch [4]
 *   cancel: -ENOENT       free after the batch      do not free [2]
 *                         [4], unless the event's
 *                         handler frees the data
 *   If another thread calls drain or wait:
 *   cancel: 0             free                      free after the batches
 *                                                   of all threads [5]
 *   cancel: -ENOENT       do not free: the thread   do not free [2]
 *                         that took the event
 *                         frees the data
 *
 *   [1] The program may free the data even inside the timer's own callback.
 *       After that the callback must not use the data.
 *   [2] An earlier cancel ended the timer. Only the caller of the earlier
 *       cancel may free the data, at the time that this table gives for the
 *       result of the earlier cancel. If an earlier cancel ended a one-shot,
 *       the same rule holds for the data of the one-shot.
 *   [3] Inside the timer's own callback cancel_sync waits for nothing. If
 *       another caller of cancel_sync will free the data, the callback must
 *       not free the data.
 *   [4] The batch is the set of all events that a thread has taken and has
 *       not yet handled.
 *   [5] The library cannot see the end of these batches. There are two safe
 *       ways. Either use dispatch and cancel_sync, or let the timer's data be
 *       a number that the program looks up in a table under a lock. Reference
 *       counts do not help, because a thread that has the event may be too
 *       late to take a reference.
 *
 * In a forked child, calls that need the owner return -EOWNERDEAD; timerhub_close() and
 * timerhub_queue_close() are safe. daemon(3) forks.
 */
#ifndef TIMERHUB_H
#define TIMERHUB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TIMERHUB_API __attribute__((visibility("default")))
#else
#define TIMERHUB_API
#endif

/* An owner thread and its timers. */
struct timerhub;

/* The expired timers for one group of consumers. */
struct timerhub_queue;

/*
 * Names a timer until its end; 0 is never valid. A stale handle is told, until 2^38 more timers
 * were in the same slot.
 */
typedef uint64_t timerhub_timer;

struct timerhub_event;

/*
 * Called by timerhub_dispatch(), on its thread. May arm, re-arm, cancel and dispatch, but not close
 * its queue or hub; may throw, or end its thread (not with musl); no longjmp().
 */
typedef void timerhub_fn(const struct timerhub_event *event);

/* A hub's clock; see timerhub_open(3) for a wall clock that is set. */
enum timerhub_clock {
	TIMERHUB_CLOCK_MONOTONIC = 0, /* this clock stands still while the machine is suspended */
	/* counts a suspend too, after which overdue timers expire */
	TIMERHUB_CLOCK_BOOTTIME = 1,
	TIMERHUB_CLOCK_REALTIME = 2, /* the wall clock, in ns since 1970 */
};

/* How the owner sleeps. With AUTO the environment's TIMERHUB_SLEEPER (poll, uring) may choose. */
enum timerhub_sleeper {
	TIMERHUB_SLEEPER_AUTO = 0,  /* io_uring if the kernel permits io_uring, else ppoll(2) */
	TIMERHUB_SLEEPER_URING = 1, /* io_uring; if the kernel refuses it, timerhub_open() fails */
	TIMERHUB_SLEEPER_POLL = 2,  /* the system call ppoll(2) */
};

/* TIMERHUB_ABSOLUTE is a flag of timerhub_spec, timerhub_rearm() and timerhub_rearm_many(). */
#define TIMERHUB_ABSOLUTE (1u << 0) /* expires_ns is a point on the hub's clock, not a delay */

/*
 * Kept: the handle outlives the expiry. Delivered, the timer is idle until it is re-armed, which
 * cannot fail, or cancelled. Not with an interval.
 */
#define TIMERHUB_KEEP (1u << 1)

/* The flags of struct timerhub_config. */
/* no owner thread: timerhub_advance() sets the time */
#define TIMERHUB_MANUAL (1u << 0)
/* TIMERHUB_OBSERVABLE: timerhub-top(1) can show the counters of the hub. */
#define TIMERHUB_OBSERVABLE (1u << 1)
#define TIMERHUB_HUGE_PAGES (1u << 2) /* advise the kernel to back the timers with huge pages */

/* Does not expire until it is re-armed. */
#define TIMERHUB_NEVER UINT64_MAX

/* 0 is the default of each field. */
struct timerhub_spec {
	uint32_t size;       /* sizeof(struct timerhub_spec) */
	uint32_t flags;      /* flags of the timer: TIMERHUB_ABSOLUTE, TIMERHUB_KEEP or 0 */
	uint64_t expires_ns; /* the deadline: a delay, a point in time, or TIMERHUB_NEVER */
	/* 0: no periods; period k is due at deadline + k x interval */
	uint64_t interval_ns;
	uint64_t slack_ns; /* the timer may expire anywhere in [deadline, deadline + slack] */
	union {
		/* a number that each event returns */
		uint64_t data;
		/* or a pointer */
		void *ptr;
	};
	timerhub_fn *fn; /* the callback that timerhub_dispatch() calls; may be NULL */
};

/* An event reports one expiry of a timer. */
struct timerhub_event {
	union {
		uint64_t data; /* the number from the timer's spec */
		void *ptr;     /* the pointer from the timer's spec */
	};
	/* stale already if it is a one-shot and not kept */
	timerhub_timer timer;
	uint64_t expires_ns; /* the deadline that this event reports, on the hub's clock */
	/* periods that this event stands for; else 1 */
	uint64_t count;
	timerhub_fn *fn;              /* the callback from the timer's spec */
	struct timerhub_queue *queue; /* the queue that the timer was armed on */
};

/* 0 is the default of each field. */
struct timerhub_config {
	uint32_t size;  /* sizeof(struct timerhub_config) */
	uint32_t flags; /* flags of the hub: TIMERHUB_MANUAL, _OBSERVABLE, _HUGE_PAGES or 0 */
	/* live at once, up to 67,108,862; 0: 1,048,576 */
	uint32_t timers_max;
	uint32_t clock;        /* clock of the hub: a value of enum timerhub_clock */
	uint32_t sleeper;      /* how the owner sleeps: a value of enum timerhub_sleeper */
	uint32_t cpu_plus_one; /* number of the owner's CPU plus 1; 0: the main thread's CPUs */
	/*
	 * the owner wakes so much early and spins; it then coalesces no bursts, and does not sleep
	 * between deadlines that are closer
	 */
	uint64_t spin_ns;
	/* of the owner, up to 15 bytes; NULL: "timerhub" */
	const char *thread_name;
};

/* The settings of a new queue. */
struct timerhub_queue_config {
	uint32_t size;  /* sizeof(struct timerhub_queue_config) */
	uint32_t flags; /* flags of the queue; must be 0, because no flag exists yet */
};

#define TIMERHUB_LATENESS_BUCKETS 64

/* Counters since the open; changes during the call may be missed. */
struct timerhub_stats {
	uint64_t armed;     /* number of timers that were armed */
	uint64_t refiled;   /* number of schedule entries that the owner moved to a later time */
	uint64_t cancelled; /* number of timers that were cancelled */
	uint64_t expired;   /* number of expiries that the owner put into a queue */
	uint64_t delivered; /* number of events that a call returned or passed to a callback */
	uint64_t overruns;  /* number of periods counted in an earlier period's event */
	uint64_t live;      /* number of live timers, including idle kept timers */
	/* memory ever used, in timers: the most live at once, plus up to 256 for each CPU */
	uint64_t live_max;
	/* most submissions that one round of the owner found */
	uint64_t inbox_max;
	uint64_t owner_wakeups; /* number of times that the owner slept and woke */
	uint64_t submit_wakes;  /* number of times that a caller woke the owner */
	uint64_t queue_signals; /* number of times that the owner made a queue's fd readable */
	uint64_t cascaded;      /* number of moves of a timer to a lower level of the wheel */
	/* enum timerhub_sleeper; AUTO in a manual hub */
	uint32_t sleeper;
	uint32_t reserved0;
	/* time of the signal minus the deadline; bucket i: from 2^i ns on, bucket 0: from 0 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	/* how often the kernel said that the wall clock was set */
	uint64_t clock_jumps;
	uint64_t reserved[15];
	/* the same for the taking, by the call's one reading of the clock */
	uint64_t delivery_lateness[TIMERHUB_LATENESS_BUCKETS];
};

/*
 * With memory for timers_max timers, committed when touched. Thread-safe. `config` may be NULL.
 * -EINVAL; -E2BIG: the config is of a later version; -ENOSPC: 256 observable hubs; -EFBIG:
 * RLIMIT_FSIZE; -ENOSYS or the kernel's errno: no io_uring, though asked for; -ENOMEM, -EMFILE,
 * -EAGAIN.
 */
TIMERHUB_API int timerhub_open(struct timerhub **ret_hub, const struct timerhub_config *config);

/*
 * Closes all queues; waits return -ESHUTDOWN. No other call on the hub may run or begin meanwhile,
 * but for blocked waits. `hub` may be NULL.
 */
TIMERHUB_API void timerhub_close(struct timerhub *hub);

/* In ns; 0 for NULL; of a manual hub what was last given to timerhub_advance(). Lock-free. */
TIMERHUB_API uint64_t timerhub_now(const struct timerhub *hub);

/* For sched_setscheduler(2) and the like. Lock-free. -EINVAL: also a manual hub. -EOWNERDEAD. */
TIMERHUB_API int timerhub_owner_tid(const struct timerhub *hub);

/* Thread-safe. `config` may be NULL. Errors as timerhub_open(); -ENOSPC: 65,535 queues are open. */
TIMERHUB_API int timerhub_queue_open(struct timerhub *hub, struct timerhub_queue **ret_queue,
                                     const struct timerhub_queue_config *config);

/*
 * Cancels its timers, and waits until waits have returned -ESHUTDOWN. Thread-safe; not in its own
 * callbacks, and without other calls on it but blocked waits: stop, join, close. Visits every slot
 * ever used. `queue` may be NULL.
 */
TIMERHUB_API void timerhub_queue_close(struct timerhub_queue *queue);

/*
 * Waits on it never block any more: they return what is left, then -ESHUTDOWN; all else works on.
 * Not undone. Lock-free. `queue` may be NULL.
 */
TIMERHUB_API void timerhub_queue_stop(struct timerhub_queue *queue);

/* The eventfd, readable while there are events; don't close it. Lock-free. -EINVAL. */
TIMERHUB_API int timerhub_queue_fd(const struct timerhub_queue *queue);

/* NULL for NULL. Lock-free. */
TIMERHUB_API struct timerhub *timerhub_queue_hub(const struct timerhub_queue *queue);

/*
 * The handle is in `*ret_timer` (or NULL) before the timer can expire. Lock-free. -EAGAIN:
 * timers_max are live; -ERANGE: beyond 2^63 - 128 ns; -EINVAL: also KEEP with an interval; -E2BIG:
 * a spec of a later version.
 */
TIMERHUB_API int timerhub_arm(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                              timerhub_timer *ret_timer);

/* A one-shot in `delay_ns`. Lock-free. Errors as timerhub_arm(). */
TIMERHUB_API int timerhub_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                                timerhub_timer *ret_timer);

/* The same with a callback, whose event has `ptr`. */
TIMERHUB_API int timerhub_call(struct timerhub_queue *queue, uint64_t delay_ns, timerhub_fn *fn,
                               void *ptr, timerhub_timer *ret_timer);

/*
 * A new deadline, by a delay, or TIMERHUB_ABSOLUTE; UINT64_MAX: never. An undelivered expiry is
 * withdrawn, periods begin anew. Lock-free; later, it is one compare-and-swap. 0: the old deadline
 * is not delivered; 1: it was idle; -ENOENT: ended, or not of this hub; -ERANGE; -EINVAL.
 */
TIMERHUB_API int timerhub_rearm(struct timerhub *hub, timerhub_timer timer, uint64_t expires_ns,
                                uint32_t flags);

/*
 * All to one deadline. Returns how many were live, idle ones included. Lock-free. -ERANGE, -EINVAL.
 */
TIMERHUB_API int timerhub_rearm_many(struct timerhub *hub, const timerhub_timer *timers,
                                     unsigned count, uint64_t expires_ns, uint32_t flags);

/*
 * 0: no further event is delivered, even if it was queued (of a periodic or kept timer, another
 * thread may be returning one now). -ENOENT: ended, or being delivered, or not of this hub. Lock-
 * free.
 */
TIMERHUB_API int timerhub_cancel(struct timerhub *hub, timerhub_timer timer);

/*
 * And waits until no other thread runs its callback in a dispatch: then none will. Inside that
 * callback it waits for the others' (0), or for nothing (-ENOENT: another call has ended it; don't
 * free). Deadlocks with a mutex that the callback locks. Events of drain and wait: as
 * timerhub_cancel(). Thread-safe, not in signal handlers.
 */
TIMERHUB_API int timerhub_cancel_sync(struct timerhub *hub, timerhub_timer timer);

/*
 * All or none; returns `count`. The specs have one `size`, a multiple of 8. Lock-free. Errors as
 * timerhub_arm().
 */
TIMERHUB_API int timerhub_arm_many(struct timerhub_queue *queue, const struct timerhub_spec *specs,
                                   unsigned count, timerhub_timer *ret_timers);

/* Returns how many were live. Lock-free. -EINVAL. */
TIMERHUB_API int timerhub_cancel_many(struct timerhub *hub, const timerhub_timer *timers,
                                      unsigned count);

/* 0: it has passed; UINT64_MAX: never, or idle. Lock-free. -ENOENT, -EINVAL. */
TIMERHUB_API int timerhub_remaining(struct timerhub *hub, timerhub_timer timer, uint64_t *ret_ns);

/*
 * Gets a live timer as an event: `expires_ns` is its deadline or UINT64_MAX, `count` 1 if an expiry
 * is undelivered. Another result than 0 ends the walk.
 */
typedef int timerhub_each_fn(const struct timerhub_event *timer, uint64_t interval_ns,
                             void *context);

/*
 * Each live timer of the program, in no order; what others change meanwhile may be missed, and its
 * memory freed. Thread-safe, as lock-free as `fn`. Returns 0 or `fn`'s result; -EINVAL.
 */
TIMERHUB_API int timerhub_each(struct timerhub *hub, timerhub_each_fn *fn, void *context);

/*
 * Up to `max` events, in order of expiry, without blocking. They count as delivered. The eventfd
 * stays readable, with a new edge, if some may be left. Lock-free. -EINVAL.
 */
TIMERHUB_API int timerhub_drain(struct timerhub_queue *queue, struct timerhub_event *events,
                                unsigned max);

/*
 * The same, but blocks for `timeout_ns` of real time (UINT64_MAX: no limit) for the first event.
 * Thread-safe. 0: timeout; -ECANCELED: timerhub_interrupt(); -ESHUTDOWN: stopped and empty, or
 * closing; -EINVAL.
 */
TIMERHUB_API int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events,
                               unsigned max, uint64_t timeout_ns);

/*
 * Up to `max` events one by one, with their fn on this thread; each timer once a call, so some may
 * be left although the result is below `max`. At most 16,384 dispatches of a hub run callbacks at
 * once. Thread-safe. -EINVAL.
 */
TIMERHUB_API int timerhub_dispatch(struct timerhub_queue *queue, unsigned max);

/*
 * Blocked waits return -ECANCELED, later ones don't: to end workers use timerhub_queue_stop().
 * Lock-free.
 */
TIMERHUB_API void timerhub_interrupt(struct timerhub_queue *queue);

/*
 * Sets a manual hub's clock and expires; `*ret_next_ns` (or NULL) is when to call again,
 * UINT64_MAX: after an arm. One thread at a time. -EINVAL: not manual, or back in time; -EBUSY.
 */
TIMERHUB_API int timerhub_advance(struct timerhub *hub, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Of a manual hub: readable when timerhub_advance() must come before the time that it returned,
 * which clears it. Don't write to it. Lock-free. -EINVAL.
 */
TIMERHUB_API int timerhub_wake_fd(const struct timerhub *hub);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function timerhub_stats() has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Lock-free. -EINVAL. */
TIMERHUB_API int timerhub_stats(struct timerhub *hub, struct timerhub_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Lines "name value", and bounds of the latenesses. As snprintf(): returns the whole length, cuts,
 * ends with NUL. Async-signal-safe. -EINVAL.
 */
TIMERHUB_API int timerhub_stats_text(const struct timerhub_stats *stats, char *buffer,
                                     size_t bytes);

/* The same in the OpenMetrics format 1.0, which Prometheus reads. */
TIMERHUB_API int timerhub_stats_metrics(const struct timerhub_stats *stats, char *buffer,
                                        size_t bytes);

/* "MAJOR.MINOR.PATCH". Lock-free. */
TIMERHUB_API const char *timerhub_version(void);

#ifdef __cplusplus
}
#endif

#endif
