/* SPDX-License-Identifier: MIT */
/*
 * timerhub: one timer service for a whole process.
 *
 * Any thread arms, re-arms and cancels timers without a lock; one owner thread keeps them in a
 * hierarchical timing wheel (G. Varghese and A. Lauck, "Hashed and hierarchical timing wheels",
 * 1987; Linux kernel/time/timer.c) and a heap; expiries are handed out through queues, each of
 * which has an eventfd that any event loop can poll.
 *
 * Conventions. Every call returns 0 or a count, or a negative errno; on failure no output is
 * written. The library never prints and never sets errno on purpose. All times are uint64_t
 * nanoseconds on the hub's clock; a deadline is a point in time, a delay or timeout is a distance.
 * A deadline is kept to the nanosecond, and an event returns it unrounded. The latest deadline is
 * 2^63 - 128 ns. The k-th period of a periodic timer is due at exactly its first deadline +
 * k x interval. A re-arm sets a new first deadline.
 *
 * Threads. "Any thread" means: any number of threads at once, without outside locking. Calls marked
 * lock-free take no lock, allocate nothing, are async-signal-safe, and are never delayed by another
 * thread that was stopped inside one of them. No call is a cancellation point of pthread_cancel(3),
 * and a thread cancelled between two calls leaves nothing behind. Asynchronous cancelability
 * (PTHREAD_CANCEL_ASYNCHRONOUS) is not supported inside a call.
 *
 * Who may free when. The data of a timer often points at memory that the program frees. An event
 * is delivered as soon as a call has returned it or is calling its fn, so an event that lies in the
 * caller's array and is not yet handled is a delivered one.
 *
 *   the call returned     one-shot                  periodic or kept
 *   --------------------  ------------------------  ------------------------
 *   dispatch, on the cancelling thread alone:
 *   cancel: 0             free                      free [1]
 *   cancel: -ENOENT       free, unless its          do not free [2]
 *                         callback does [1]
 *   dispatch, on another thread:
 *   cancel: 0             free                      call cancel_sync outside
 *                                                   its callbacks, then free
 *   cancel: -ENOENT       call cancel_sync, then    do not free [2]
 *                         see its row
 *   cancel_sync: 0        free                      free [1]
 *   cancel_sync: -ENOENT  free, unless its          do not free [2]
 *                         callback does [3]
 *   drain or wait, on the cancelling thread alone:
 *   cancel: 0             free                      free after the batch [4]
 *   cancel: -ENOENT       free after the batch,     do not free [2]
 *                         unless its handler does
 *                         [4]
 *   drain or wait, on another thread:
 *   cancel: 0             free                      free after the batches
 *                                                   of all threads [5]
 *   cancel: -ENOENT       do not free: the thread   do not free [2]
 *                         that has the event does
 *
 *   [1] Inside the timer's own callback too; that callback must not touch
 *       the data afterwards.
 *   [2] This -ENOENT comes from an earlier cancel: the row of that cancel
 *       applies, to its caller. So it does for a one-shot that was
 *       cancelled.
 *   [3] Inside the timer's own callback cancel_sync waits for nothing. If
 *       another caller of cancel_sync is to free, the callback must not.
 *   [4] The batch: all events that a thread has taken and has not yet
 *       handled.
 *   [5] The library cannot see their end. Use dispatch and cancel_sync; or
 *       give a number as data, and look it up under a lock. Counting
 *       references does not help: a thread that has the event may be too
 *       late to take one.
 *
 * "Free" means at once. With drain and wait, timerhub_cancel_sync() returns what timerhub_cancel()
 * would: it cannot see when a thread has finished with its array. After timerhub_queue_close() no
 * event of the queue's timers will come, whatever they are.
 *
 * Fork. In a child process every call that needs the owner returns -EOWNERDEAD; only
 * timerhub_close() and timerhub_queue_close() are of use there, and they are safe. daemon(3) forks
 * too, and its parent ends: a program that calls it opens its hubs afterwards.
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

/* The service: an owner thread and its timers. */
struct timerhub;

/* Where expiries wait for one group of consumers; one eventfd. */
struct timerhub_queue;

/* Names one life of one timer. 0 is never a timer; a stale handle is detected, never followed. */
typedef uint64_t timerhub_timer;

struct timerhub_event;

/*
 * A callback: timerhub_dispatch() calls it for an event, on the thread that dispatches. It may arm,
 * re-arm, cancel and dispatch, but not close the queue or the hub. A C++ exception may leave it,
 * and so may the end of its thread (pthread_exit, pthread_cancel): the library is clean afterwards,
 * and the event counts as delivered. (With musl, whose pthread_exit() unwinds no stack: exceptions
 * only.) longjmp() out of it is not supported.
 */
typedef void timerhub_fn(const struct timerhub_event *event);

/*
 * The clock of a hub. timerhub_advance() alone moves that of a manual hub, whatever is chosen here.
 *
 * The wall clock can be set. All deadlines are points on it, also those given as a delay. If it is
 * set forward, timers whose deadline has then passed expire at once. If it is set back, timers
 * wait, and so does an expiry not yet delivered: at its delivery the deadline has passed. A
 * periodic timer stays on the phase of the wall clock: periods that were jumped over are in
 * `count`; after a jump back none is delivered twice, the next is the one after the last delivered.
 * While the clock is behind a time that it once had, timers cost O(log n) instead of O(1).
 */
enum timerhub_clock {
	TIMERHUB_CLOCK_MONOTONIC = 0, /* stands still while the machine is suspended */
	TIMERHUB_CLOCK_BOOTTIME = 1, /* counts suspended time; timers due in it expire at the end */
	TIMERHUB_CLOCK_REALTIME = 2, /* the wall clock, ns since 1970 */
};

/*
 * How the owner sleeps. If the config says AUTO, the environment may decide (valgrind needs ppoll):
 * TIMERHUB_SLEEPER=poll or TIMERHUB_SLEEPER=uring, with the meaning of the constants below. Any
 * other value, and the environment of a set-user-ID program, is ignored.
 */
enum timerhub_sleeper {
	TIMERHUB_SLEEPER_AUTO = 0,  /* io_uring where the kernel permits it, else ppoll */
	TIMERHUB_SLEEPER_URING = 1, /* io_uring or an error */
	TIMERHUB_SLEEPER_POLL = 2,  /* ppoll */
};

/* Flag of timerhub_spec, timerhub_rearm() and timerhub_rearm_many(). */
#define TIMERHUB_ABSOLUTE (1u << 0) /* expires_ns is a point on the hub's clock, not a delay */

/*
 * Flag of timerhub_spec: a kept timer. Its handle outlives the expiry: once delivered the timer
 * idles (its deadline is never, its place stays taken) until it is re-armed or cancelled. So a
 * heartbeat is one timerhub_rearm() that does not fail and does not race with the expiry. Not
 * together with an interval.
 */
#define TIMERHUB_KEEP (1u << 1)

/* Flags of timerhub_config. */
#define TIMERHUB_MANUAL (1u << 0)     /* no owner thread: time moves by timerhub_advance() alone */
#define TIMERHUB_OBSERVABLE (1u << 1) /* timerhub-top can watch: timerhub-top(1) */
#define TIMERHUB_HUGE_PAGES (1u << 2) /* advise the kernel to back the timers with huge pages */

/* A deadline that never comes, until the timer is re-armed. */
#define TIMERHUB_NEVER UINT64_MAX

/* How to arm a timer. Zeroed fields mean the default. */
struct timerhub_spec {
	uint32_t size;        /* sizeof(struct timerhub_spec) */
	uint32_t flags;       /* TIMERHUB_ABSOLUTE, TIMERHUB_KEEP or 0 */
	uint64_t expires_ns;  /* a delay from now, or a point in time; UINT64_MAX: never */
	uint64_t interval_ns; /* > 0: periodic, phase-locked to the first deadline */
	uint64_t slack_ns;    /* may expire anywhere in [deadline, deadline + slack] */
	union {
		uint64_t data; /* handed back in the event: a number, ... */
		void *ptr;     /* ... or a pointer */
	};
	timerhub_fn *fn; /* the callback of timerhub_dispatch(); may be NULL */
};

/* One expiry. */
struct timerhub_event {
	union {
		uint64_t data; /* from the spec, a number ... */
		void *ptr;     /* ... or a pointer */
	};
	timerhub_timer timer; /* the handle; of a one-shot it is stale by now, unless kept */
	uint64_t expires_ns;  /* the deadline that was due, on the hub's clock */
	uint64_t count;       /* periods that this event stands for; 1 unless periodic */
	timerhub_fn *fn;      /* from the spec */
	struct timerhub_queue *queue; /* the queue that the timer was armed on */
};

/* How to open a hub. Zeroed fields mean the default. */
struct timerhub_config {
	uint32_t size;           /* sizeof(struct timerhub_config) */
	uint32_t flags;          /* TIMERHUB_MANUAL, _OBSERVABLE, _HUGE_PAGES or 0 */
	uint32_t timers_max;     /* most timers live at once; 0: 1,048,576; at most 67,108,862 */
	uint32_t clock;          /* enum timerhub_clock */
	uint32_t sleeper;        /* enum timerhub_sleeper */
	uint32_t cpu_plus_one;   /* run the owner on CPU cpu_plus_one - 1; 0: not pinned */
	uint64_t spin_ns;        /* wake this much before a deadline and spin up to it. The
	                          * owner then never gathers a stream of expiries, and never
	                          * sleeps if deadlines are closer together than this */
	const char *thread_name; /* the owner's name, cut to 15 bytes; NULL: "timerhub" */
};

/* How to open a queue. */
struct timerhub_queue_config {
	uint32_t size;  /* sizeof(struct timerhub_queue_config) */
	uint32_t flags; /* none yet */
};

#define TIMERHUB_LATENESS_BUCKETS 64

/*
 * The counters of a hub, since it was opened. They are read one by one while other threads go on,
 * so they are exact only for events before the call.
 */
struct timerhub_stats {
	uint64_t armed;         /* timers armed */
	uint64_t refiled;       /* times that a timer was found moved to a later deadline */
	uint64_t cancelled;     /* timers cancelled */
	uint64_t expired;       /* deadlines that the owner put into a queue */
	uint64_t delivered;     /* events returned by drain and wait or handed to a callback */
	uint64_t overruns;      /* periods that were folded into the count of another's event */
	uint64_t live;          /* timers live now: not over; kept ones that idle among them */
	uint64_t live_max;      /* most live at once; up to 32 a CPU too many if threads moved */
	uint64_t inbox_max;     /* most submissions that the owner found waiting in one pass */
	uint64_t owner_wakeups; /* times that the owner slept and woke */
	uint64_t submit_wakes;  /* times that a caller woke the owner */
	uint64_t queue_signals; /* times that the owner made a queue's fd readable */
	uint64_t cascaded;      /* timers moved from one level of the wheel to a lower one */
	uint32_t sleeper;       /* enum timerhub_sleeper in use; AUTO on a manual hub: none */
	uint32_t reserved0;
	/*
	 * The time at which the queue was told of an expiry, minus its deadline: bucket 0 counts 0
	 * and 1 ns, bucket i from 2^i to 2^(i+1) - 1 ns.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t clock_jumps; /* times that the owner was told of the wall clock being set */
	uint64_t reserved[15];
};

/*
 * Open a hub: reserve its memory (timers_max timers; committed as touched) and start its owner
 * thread, unless TIMERHUB_MANUAL. Any thread. `config` may be NULL. -EINVAL: NULL, an unknown flag
 * or enum value, timers_max too large, size too small, no such CPU; -E2BIG: a non-zero byte past
 * the members that this version knows; -ENOMEM, -EMFILE, -EAGAIN …: from the kernel; with
 * TIMERHUB_SLEEPER_URING also the errno with which it refused io_uring, -ENOSYS if the library was
 * built without it. With TIMERHUB_OBSERVABLE the hub's counters lie in a memfd, one fd more;
 * -ENOSPC: 256 such hubs are open; -EFBIG: more than RLIMIT_FSIZE allows.
 */
TIMERHUB_API int timerhub_open(struct timerhub **ret_hub, const struct timerhub_config *config);

/*
 * Stop the owner, close the queues still open (threads inside timerhub_wait() return -ESHUTDOWN
 * first), free everything. NULL is fine. No other call on the hub may be running or start, except
 * threads already blocked in timerhub_wait(). In a forked child: frees the child's copy and leaves
 * the parent's alone.
 */
TIMERHUB_API void timerhub_close(struct timerhub *hub);

/*
 * Returns the time on the hub's clock, in ns; 0 for NULL. Any thread, lock-free. On a manual hub
 * this is the time that timerhub_advance() was last given: inside a long batch as old as the batch.
 */
TIMERHUB_API uint64_t timerhub_now(const struct timerhub *hub);

/*
 * Returns the thread id of the owner, for sched_setscheduler(2) and the like. Any thread,
 * lock-free. -EINVAL: NULL, or a manual hub, which has no owner thread; -EOWNERDEAD: in a forked
 * child.
 */
TIMERHUB_API int timerhub_owner_tid(const struct timerhub *hub);

/*
 * Open a queue. Any thread. `config` may be NULL.
 * -EINVAL, -E2BIG as for timerhub_open(); -ENOMEM, -EMFILE; -ENOSPC: 65,535 queues are open.
 */
TIMERHUB_API int timerhub_queue_open(struct timerhub *hub, struct timerhub_queue **ret_queue,
                                     const struct timerhub_queue_config *config);

/*
 * Close a queue: drop its timers, make threads inside timerhub_wait() return -ESHUTDOWN and wait
 * until they have. Any thread, but not from a callback of this queue. No other call on the queue
 * may be running or start, except threads already blocked in timerhub_wait(): to end workers, call
 * timerhub_queue_stop(), join them, then close. Slow if the hub ever had many timers: walks every
 * place that one ever had. NULL is fine.
 */
TIMERHUB_API void timerhub_queue_close(struct timerhub_queue *queue);

/*
 * From now on no timerhub_wait() on the queue blocks: threads blocked in it return, later calls
 * return at once. Events that have expired are still handed out; when none is left, timerhub_wait()
 * returns -ESHUTDOWN. A stop cannot be undone; all other calls work as before. Any thread,
 * lock-free. NULL is fine.
 */
TIMERHUB_API void timerhub_queue_stop(struct timerhub_queue *queue);

/*
 * Returns the queue's eventfd, readable when events wait. Poll it, never close it. Any thread,
 * lock-free. -EINVAL: NULL.
 */
TIMERHUB_API int timerhub_queue_fd(const struct timerhub_queue *queue);

/* Returns the hub that the queue was opened on; NULL for NULL. Any thread, lock-free. */
TIMERHUB_API struct timerhub *timerhub_queue_hub(const struct timerhub_queue *queue);

/*
 * Arm a timer. Any thread, lock-free. `*ret_timer` (may be NULL) is written before the timer can
 * expire. -EAGAIN: timers_max timers are live, or a concurrent timerhub_arm_many() holds the free
 * places while it collects them; -ERANGE: the deadline does not fit; -EINVAL: NULL, bad flags, an
 * interval together with TIMERHUB_KEEP, bad size; -E2BIG: a non-zero byte past the
 * members that this version knows.
 */
TIMERHUB_API int timerhub_arm(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                              timerhub_timer *ret_timer);

/* Arm a one-shot `delay_ns` from now. As timerhub_arm(). */
TIMERHUB_API int timerhub_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                                timerhub_timer *ret_timer);

/*
 * Arm a one-shot `delay_ns` from now whose callback is `fn`, with `ptr` in the event. As
 * timerhub_arm(); -EINVAL also: `fn` is NULL.
 */
TIMERHUB_API int timerhub_call(struct timerhub_queue *queue, uint64_t delay_ns, timerhub_fn *fn,
                               void *ptr, timerhub_timer *ret_timer);

/*
 * Move a timer to another deadline (a delay, or with TIMERHUB_ABSOLUTE a point in time; UINT64_MAX:
 * never). Withdraws an expiry not yet delivered. A periodic timer takes its phase from the new
 * deadline. Any thread, lock-free; moving an armed timer later is one compare-and-swap.
 * 0: the old deadline will not be delivered; 1: a kept timer that had idled, its last expiry having
 * been delivered. -ENOENT: already delivered and not kept, cancelled, or never a timer of this hub;
 * -ERANGE; -EINVAL: NULL, bad flags.
 */
TIMERHUB_API int timerhub_rearm(struct timerhub *hub, timerhub_timer timer, uint64_t expires_ns,
                                uint32_t flags);

/*
 * Move `count` timers, all to one deadline, with one reading of the clock. Returns how many of them
 * were live (idling kept timers among them): the others are left alone. Any thread, lock-free.
 * -ERANGE; -EINVAL: NULL, bad flags, count above INT_MAX.
 */
TIMERHUB_API int timerhub_rearm_many(struct timerhub *hub, const timerhub_timer *timers,
                                     unsigned count, uint64_t expires_ns, uint32_t flags);

/*
 * Cancel a timer. Any thread, lock-free. 0: no further event of this timer will be delivered, not
 * even if an expiry already sat in the queue; of a one-shot none was. Of a periodic or kept timer a
 * call on another thread may be returning one right now. -ENOENT: already delivered
 * and not kept, or being returned right now by a call on another thread, or cancelled, or never a
 * timer of this hub. The table above says when the memory that its data points at may be freed.
 */
TIMERHUB_API int timerhub_cancel(struct timerhub *hub, timerhub_timer timer);

/*
 * Cancel a timer, and wait until no callback of it runs inside timerhub_dispatch() on another
 * thread; the memory that those callbacks wrote can then be read. Any thread, but not in a signal
 * handler. Blocks on a futex; lock-free if no such callback runs or is about to begin.
 *
 * Outside this timer's callbacks: 0 and -ENOENT as for timerhub_cancel(), and in both cases no
 * callback of it runs and none will. Inside a callback of this timer (also further out, if this
 * call is made in another timer's callback dispatched from there): 0 means cancelled, and the
 * callbacks on other threads are over; the calling thread's own is not waited for. -ENOENT means
 * that another caller has cancelled, or that it is a one-shot; nothing was waited for, do not free.
 *
 * Two callbacks that cancel_sync each other's timers deadlock. Events that a drain or wait
 * has returned are not waited for: the library cannot see their end.
 */
TIMERHUB_API int timerhub_cancel_sync(struct timerhub *hub, timerhub_timer timer);

/*
 * Arm `count` timers, all or none; returns `count`. All specs must have the same `size`, which is
 * also the stride of the array and so a multiple of 8. `ret_timers` may be NULL. Any thread,
 * lock-free. Errors as timerhub_arm(): any of them means that none was armed.
 */
TIMERHUB_API int timerhub_arm_many(struct timerhub_queue *queue, const struct timerhub_spec *specs,
                                   unsigned count, timerhub_timer *ret_timers);

/* Cancel `count` timers; returns how many of them were live. Any thread, lock-free. */
TIMERHUB_API int timerhub_cancel_many(struct timerhub *hub, const timerhub_timer *timers,
                                      unsigned count);

/*
 * How long until a timer's deadline, in ns; 0 when it has passed, UINT64_MAX for never and for a
 * kept timer that idles. Any thread, lock-free. -ENOENT as for timerhub_cancel().
 */
TIMERHUB_API int timerhub_remaining(struct timerhub *hub, timerhub_timer timer, uint64_t *ret_ns);

/*
 * Called by timerhub_each() for one live timer: data, fn, queue and handle as in its event;
 * `expires_ns` its deadline, UINT64_MAX for never and for a kept timer that idles; `count` 1 if its
 * expiry waits undelivered, else 0. Not 0 ends the walk.
 */
typedef int timerhub_each_fn(const struct timerhub_event *timer, uint64_t interval_ns,
                             void *context);

/*
 * Call `fn` for every live timer of the hub, in no order: what is pending? Timers that are armed,
 * moved or delivered meanwhile may be missed or shown as they were. By the time of the call the
 * timer may have been cancelled and the memory that its data points at freed: do not follow the
 * pointer unless the program makes sure that it is valid. `fn` may make any call that a callback
 * may. Any thread, lock-free if `fn` is. Returns 0, or what `fn` returned. -EINVAL: NULL.
 */
TIMERHUB_API int timerhub_each(struct timerhub *hub, timerhub_each_fn *fn, void *context);

/*
 * Take up to `max` events, in order of deadline. Never blocks. Any thread, lock-free. Returns how
 * many; 0 with `max` 0. If it finds the queue empty, the fd is no longer readable; if it stops at
 * `max`, the fd stays readable, and an edge-triggered poller gets a new edge. Every event in the
 * array counts as delivered: the table above says when its data may be freed.
 */
TIMERHUB_API int timerhub_drain(struct timerhub_queue *queue, struct timerhub_event *events,
                                unsigned max);

/*
 * As timerhub_drain(), but blocks up to `timeout_ns` (UINT64_MAX: for ever) for the first event;
 * on a manual hub too that is real time. A signal does not end the wait. Any thread. 0: timed out;
 * -ECANCELED: interrupted; -ESHUTDOWN: the queue was stopped and is empty, or is being closed;
 * -EINVAL: NULL, or `max` 0.
 */
TIMERHUB_API int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events,
                               unsigned max, uint64_t timeout_ns);

/*
 * Take up to `max` events one by one, and call each event's fn (if any) on this thread before
 * taking the next. A callback may arm, re-arm and cancel, also the timer that is due next. Returns
 * how many events were taken.
 */
TIMERHUB_API int timerhub_dispatch(struct timerhub_queue *queue, unsigned max);

/*
 * Make every thread now blocked in timerhub_wait() return -ECANCELED. A thread between two waits
 * misses it: to end workers use timerhub_queue_stop(). Any thread, lock-free.
 */
TIMERHUB_API void timerhub_interrupt(struct timerhub_queue *queue);

/*
 * Manual hubs: set the clock to `now_ns`, expire the timers that are due, and tell when to call
 * again (UINT64_MAX: not before a timer is armed or re-armed; `ret_next_ns` may be NULL). A call
 * that comes early is harmless. One thread at a time.
 * -EINVAL: not a manual hub, or time would go back; -EBUSY: another thread is inside.
 */
TIMERHUB_API int timerhub_advance(struct timerhub *hub, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Manual hubs: returns an eventfd that becomes readable when a timer was armed or re-armed that is
 * due earlier than timerhub_advance() told. The next advance clears it. -EINVAL: not a manual hub.
 */
TIMERHUB_API int timerhub_wake_fd(const struct timerhub *hub);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* the function has the name of the struct */
#endif

/* Read the counters. Any thread. -EINVAL: NULL. */
TIMERHUB_API int timerhub_stats(struct timerhub *hub, struct timerhub_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Write statistics as text for a log: a line "name value" for each counter, the sleeper's name, and
 * the lateness that half, 99 % and all of the expiries stayed below. As snprintf(): returns the
 * length of the whole text; a text that does not fit into `bytes` is cut, and ends with a NUL all
 * the same. `buffer` may be NULL if `bytes` is 0. Any thread; async-signal-safe. -EINVAL: NULL.
 */
TIMERHUB_API int timerhub_stats_text(const struct timerhub_stats *stats, char *buffer,
                                     size_t bytes);

/* "MAJOR.MINOR.PATCH". */
TIMERHUB_API const char *timerhub_version(void);

#ifdef __cplusplus
}
#endif

#endif
