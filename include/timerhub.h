/* SPDX-License-Identifier: MIT */
/*
 * timerhub: one timer service for a whole process.
 *
 * Any thread arms, re-arms and cancels timers without a lock. One owner thread keeps the timers in
 * a hierarchical timing wheel (G. Varghese and A. Lauck, "Hashed and hierarchical timing wheels",
 * 1987; Linux kernel/time/timer.c) and a heap. The owner puts each expiry into a queue. A queue has
 * an eventfd that any event loop can poll.
 *
 * Conventions. Every call returns 0 or a count, or a negative errno; on failure no output is
 * written. The library never prints and never sets errno on purpose. All times are uint64_t
 * nanoseconds on the hub's clock; a deadline is a point in time, a delay or timeout is a distance.
 * A deadline is kept to the nanosecond, and an event returns it unrounded. The latest deadline is
 * 2^63 - 128 ns. The k-th period of a periodic timer is due at exactly its first deadline +
 * k x interval. A re-arm sets a new first deadline.
 *
 * Threads. "Any thread" means: any number of threads at once, without outside locking. Calls marked
 * lock-free take no lock, allocate nothing and are async-signal-safe. A thread that is stopped
 * inside such a call never delays another thread. No call is a cancellation point of
 * pthread_cancel(3). A thread that is cancelled between two calls holds nothing of the library.
 * Asynchronous cancelability (PTHREAD_CANCEL_ASYNCHRONOUS) is not supported inside a call.
 *
 * Who may free when. The data of a timer often points at memory that the program frees. An event
 * counts as delivered when a call returns it or calls its fn. An event in the caller's array that
 * is not yet handled is therefore delivered.
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
 * "Free" means at once, as far as the timer's events go. If the array that epoll_wait(2) has filled
 * may still name the memory, the program frees it after the batch. With drain and wait,
 * timerhub_cancel_sync() does no more than timerhub_cancel(), because the library cannot see when a
 * thread has finished with its array. After timerhub_queue_close() no event of any timer of the
 * queue will come.
 *
 * Fork. In a child process every call that needs the owner returns -EOWNERDEAD. In a child only
 * timerhub_close() and timerhub_queue_close() are useful, and both are safe. daemon(3) forks too,
 * and the parent exits: a program that calls daemon(3) opens its hubs afterwards.
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

/* A hub is a timer service: an owner thread and its timers. */
struct timerhub;

/* A queue has the expired timers for one group of consumers, and one eventfd. */
struct timerhub_queue;

/*
 * A handle identifies a timer from arm to its end. The handle 0 is never valid. The library rejects
 * a handle whose timer has ended, until 2^38 more timers have used the same slot.
 */
typedef uint64_t timerhub_timer;

struct timerhub_event;

/*
 * A callback: timerhub_dispatch() calls it for an event, on the thread that dispatches. A callback
 * may arm, re-arm, cancel and dispatch. A callback must not close the queue or the hub. A C++
 * exception may leave a callback, and so may the end of its thread (pthread_exit, pthread_cancel).
 * After that the library is consistent, and the event counts as delivered. With musl only an
 * exception may leave a callback, because pthread_exit() of musl does not unwind the stack.
 * longjmp() out of a callback is not supported.
 */
typedef void timerhub_fn(const struct timerhub_event *event);

/*
 * The clock of a hub. A manual hub ignores the clock of its config, because only timerhub_advance()
 * sets its time.
 *
 * The wall clock can be set. All deadlines of a hub on the wall clock are points on it, even if
 * they were given as a delay.
 *
 *   - If the clock is set forward, the owner expires at once all timers whose deadline has passed.
 *   - If the clock is set back, timers wait until the clock reaches their deadlines. An expiry that
 *     is not yet delivered waits too, because an event is delivered only when its deadline has
 *     passed.
 *   - A periodic timer keeps its phase on the wall clock. If the clock jumps over periods, `count`
 *     includes them. After a jump back no period is delivered twice: the next period is the first
 *     after the last delivered.
 *   - While the clock is behind a time that it had before, a call costs O(log n) instead of O(1).
 */
enum timerhub_clock {
	TIMERHUB_CLOCK_MONOTONIC = 0, /* stands still while the machine is suspended */
	/* Counts suspended time; timers due during a suspend expire after it. */
	TIMERHUB_CLOCK_BOOTTIME = 1,
	TIMERHUB_CLOCK_REALTIME = 2, /* the wall clock, ns since 1970 */
};

/*
 * How the owner sleeps. If the config says AUTO, the environment variable TIMERHUB_SLEEPER may
 * decide: `poll` (valgrind needs it) or `uring`, with the meaning of the constants below. The
 * library ignores any other value, and the environment of a set-user-ID program.
 */
enum timerhub_sleeper {
	TIMERHUB_SLEEPER_AUTO = 0,  /* io_uring if the kernel permits it, else ppoll */
	TIMERHUB_SLEEPER_URING = 1, /* io_uring; if the kernel refuses it, open fails */
	TIMERHUB_SLEEPER_POLL = 2,  /* the system call ppoll(2) */
};

/* Flag of timerhub_spec, timerhub_rearm() and timerhub_rearm_many(). */
#define TIMERHUB_ABSOLUTE (1u << 0) /* expires_ns is a point on the hub's clock, not a delay */

/*
 * Flag of timerhub_spec: a kept timer. The handle of a kept timer stays valid after the expiry. A
 * delivered kept timer is idle until it is re-armed or cancelled: it has no deadline, and it keeps
 * its slot. A heartbeat is therefore one timerhub_rearm() that cannot fail, even if it races with
 * the expiry. The flag cannot be combined with an interval.
 */
#define TIMERHUB_KEEP (1u << 1)

/* Flags of timerhub_config. */
#define TIMERHUB_MANUAL (1u << 0) /* no owner thread: timerhub_advance() sets the time */
/* The program timerhub-top can show the hub, see timerhub-top(1). */
#define TIMERHUB_OBSERVABLE (1u << 1)
#define TIMERHUB_HUGE_PAGES (1u << 2) /* advise the kernel to back the timers with huge pages */

/* This value instead of a deadline means that the timer does not expire until it is re-armed. */
#define TIMERHUB_NEVER UINT64_MAX

/* How to arm a timer. A field of 0 means the default. */
struct timerhub_spec {
	uint32_t size;       /* sizeof(struct timerhub_spec) */
	uint32_t flags;      /* TIMERHUB_ABSOLUTE, TIMERHUB_KEEP or 0 */
	uint64_t expires_ns; /* a delay from now, or a point in time; UINT64_MAX: never */
	/* The period; the k-th period is due at deadline + k x interval; 0: not periodic. */
	uint64_t interval_ns;
	uint64_t slack_ns; /* the timer may expire anywhere in [deadline, deadline + slack] */
	union {
		uint64_t data; /* a number that the event returns; alternative to `ptr` */
		void *ptr;     /* a pointer that the event returns; alternative to `data` */
	};
	timerhub_fn *fn; /* the callback of timerhub_dispatch(); may be NULL */
};

/* An event: one expiry of a timer. */
struct timerhub_event {
	union {
		uint64_t data; /* the number from the spec */
		void *ptr;     /* the pointer from the spec */
	};
	/* The timer's handle, which is stale already if the timer is a one-shot and not kept. */
	timerhub_timer timer;
	uint64_t expires_ns; /* the deadline that was due, on the hub's clock */
	/* Number of periods that this event stands for; 1 if the timer is not periodic. */
	uint64_t count;
	timerhub_fn *fn;              /* the callback from the spec */
	struct timerhub_queue *queue; /* the queue that the timer was armed on */
};

/* How to open a hub. A field of 0 means the default. */
struct timerhub_config {
	uint32_t size;  /* sizeof(struct timerhub_config) */
	uint32_t flags; /* TIMERHUB_MANUAL, _OBSERVABLE, _HUGE_PAGES or 0 */
	/* The most timers that may be live at once; 0: 1,048,576; at most 67,108,862. */
	uint32_t timers_max;
	uint32_t clock;        /* enum timerhub_clock */
	uint32_t sleeper;      /* enum timerhub_sleeper */
	uint32_t cpu_plus_one; /* run the owner on CPU cpu_plus_one - 1; 0: not pinned */
	/*
	 * Wake this much before a deadline and spin up to it. With spin_ns the owner does not
	 * coalesce bursts, and does not sleep while deadlines are closer together than spin_ns.
	 */
	uint64_t spin_ns;
	const char *thread_name; /* the owner's name, cut to 15 bytes; NULL: "timerhub" */
};

/* How to open a queue. */
struct timerhub_queue_config {
	uint32_t size;  /* sizeof(struct timerhub_queue_config) */
	uint32_t flags; /* no flag exists yet; 0 */
};

#define TIMERHUB_LATENESS_BUCKETS 64

/*
 * The counters of a hub, since it was opened. timerhub_stats() reads the counters one by one while
 * other threads run, so a counter is exact only for events before the call.
 */
struct timerhub_stats {
	uint64_t armed;     /* number of timers armed */
	uint64_t refiled;   /* schedule entries that the owner moved to a later time */
	uint64_t cancelled; /* number of timers cancelled */
	uint64_t expired;   /* deadlines that the owner put into a queue */
	uint64_t delivered; /* events returned by drain and wait or passed to a callback */
	uint64_t overruns;  /* periods counted in the event of an earlier period */
	uint64_t live;      /* live timers, idle kept timers included */
	/* Most timers that were live at once; may be too high, by up to 32 for each CPU. */
	uint64_t live_max;
	uint64_t inbox_max;     /* most submissions that the owner found waiting in one pass */
	uint64_t owner_wakeups; /* times that the owner slept and woke */
	uint64_t submit_wakes;  /* times that a caller woke the owner */
	uint64_t queue_signals; /* times that the owner made a queue's fd readable */
	uint64_t cascaded;      /* timers moved from one level of the wheel to a lower one */
	uint32_t sleeper;       /* enum timerhub_sleeper in use; AUTO for a manual hub */
	uint32_t reserved0;
	/*
	 * How late the owner signalled each expiry: the time of the signal minus the deadline.
	 * Bucket 0 counts 0 and 1 ns, bucket i counts 2^i to 2^(i+1) - 1 ns.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t clock_jumps; /* times that the kernel reported a set wall clock to the owner */
	uint64_t reserved[15];
};

/*
 * Open a hub: reserve memory for timers_max timers, which the kernel commits as it is touched, and
 * start the owner thread, unless TIMERHUB_MANUAL is set. Any thread may call. `config` may be NULL.
 * With TIMERHUB_OBSERVABLE the hub's counters are in a memfd, which takes one more fd.
 *
 *   -EINVAL                      ret_hub is NULL, an unknown flag or enum value, timers_max too
 *                                large, size too small, no such CPU
 *   -E2BIG                       a byte past the members that this version knows is not 0
 *   -ENOSPC                      256 observable hubs are open
 *   -EFBIG                       an observable hub needs more than RLIMIT_FSIZE allows
 *   -ENOSYS                      TIMERHUB_SLEEPER_URING, and the library was built without io_uring
 *   -ENOMEM, -EMFILE, -EAGAIN …  from the kernel; with TIMERHUB_SLEEPER_URING also the errno with
 *                                which it refused io_uring
 */
TIMERHUB_API int timerhub_open(struct timerhub **ret_hub, const struct timerhub_config *config);

/*
 * Stop the owner, close all open queues, and free everything. Threads inside timerhub_wait() return
 * -ESHUTDOWN first. The argument may be NULL. No other call on the hub may be running or start,
 * except that threads may be blocked in timerhub_wait(). In a forked child, the call frees the
 * child's copy and does not change the parent's hub.
 */
TIMERHUB_API void timerhub_close(struct timerhub *hub);

/*
 * Returns the time on the hub's clock, in ns; 0 for NULL. Any thread may call; lock-free. For a
 * manual hub the result is the last time given to timerhub_advance(), even while that call still
 * runs.
 */
TIMERHUB_API uint64_t timerhub_now(const struct timerhub *hub);

/*
 * Returns the thread id of the owner, for sched_setscheduler(2) and similar calls. Any thread may
 * call; lock-free. -EINVAL: an argument is NULL, or a manual hub, which has no owner thread.
 * -EOWNERDEAD: the caller is a forked child.
 */
TIMERHUB_API int timerhub_owner_tid(const struct timerhub *hub);

/*
 * Open a queue. Any thread may call. `config` may be NULL. -EINVAL and -E2BIG: as for
 * timerhub_open(). -ENOMEM, -EMFILE: from the kernel. -ENOSPC: 65,535 queues are open.
 */
TIMERHUB_API int timerhub_queue_open(struct timerhub *hub, struct timerhub_queue **ret_queue,
                                     const struct timerhub_queue_config *config);

/*
 * Close a queue: cancel its timers, make threads inside timerhub_wait() return -ESHUTDOWN, and wait
 * until they have returned. Any thread may call, except in a callback of this queue. No other call
 * on the queue may be running or start, except that threads may be blocked in timerhub_wait(). To
 * end workers, stop the queue, join the workers, and close the queue. The call visits every slot
 * that was ever used. If the hub ever had many timers, the call is slow. The argument may be NULL.
 */
TIMERHUB_API void timerhub_queue_close(struct timerhub_queue *queue);

/*
 * Stop a queue: from now on timerhub_wait() never blocks on the queue. Threads blocked in
 * timerhub_wait() return, and later calls return at once. Expired events are still delivered. When
 * no event is left, timerhub_wait() returns -ESHUTDOWN. A stop cannot be undone. All other calls
 * work as before. Any thread may call; lock-free. The argument may be NULL.
 */
TIMERHUB_API void timerhub_queue_stop(struct timerhub_queue *queue);

/*
 * Returns the queue's eventfd, which is readable when events wait. The program may poll the
 * eventfd, and must not close it. Any thread may call; lock-free. -EINVAL: an argument is NULL.
 */
TIMERHUB_API int timerhub_queue_fd(const struct timerhub_queue *queue);

/* Returns the hub that the queue was opened on; NULL for NULL. Any thread may call; lock-free. */
TIMERHUB_API struct timerhub *timerhub_queue_hub(const struct timerhub_queue *queue);

/*
 * Arm a timer. Any thread may call; lock-free. The handle is written to `*ret_timer`, which may be
 * NULL, before the timer can expire.
 *
 *   -EAGAIN  timers_max timers are live, or a concurrent timerhub_arm_many() has taken the free
 *            slots
 *   -ERANGE  the deadline or the interval is above 2^63 - 128 ns
 *   -EINVAL  NULL, unknown flags, an interval together with TIMERHUB_KEEP, size too small
 *   -E2BIG   a byte past the members that this version knows is not 0
 */
TIMERHUB_API int timerhub_arm(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                              timerhub_timer *ret_timer);

/* Arm a one-shot `delay_ns` from now. Like timerhub_arm(). */
TIMERHUB_API int timerhub_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                                timerhub_timer *ret_timer);

/*
 * Arm a one-shot `delay_ns` from now with the callback `fn`; its event has `ptr`. Like
 * timerhub_arm(); also -EINVAL if `fn` is NULL.
 */
TIMERHUB_API int timerhub_call(struct timerhub_queue *queue, uint64_t delay_ns, timerhub_fn *fn,
                               void *ptr, timerhub_timer *ret_timer);

/*
 * Give a timer a new deadline: a delay, with TIMERHUB_ABSOLUTE a point in time, or UINT64_MAX for
 * never. An expiry that is not yet delivered is withdrawn. The periods of a periodic timer start
 * again at the new deadline. Any thread may call; lock-free. A move of an armed timer to a later
 * deadline is one compare-and-swap.
 *
 *   0        the old deadline will not be delivered
 *   1        the timer was an idle kept timer: its last expiry had been delivered
 *   -ENOENT  delivered and not kept, cancelled, or never a timer of this hub
 *   -ERANGE  the deadline is too late
 *   -EINVAL  NULL, unknown flags
 */
TIMERHUB_API int timerhub_rearm(struct timerhub *hub, timerhub_timer timer, uint64_t expires_ns,
                                uint32_t flags);

/*
 * Give `count` timers the same deadline. The call reads the clock at most once. The call skips
 * timers that are not live. Returns the number of live timers, idle kept timers included. Any
 * thread may call; lock-free. -ERANGE: the deadline is too late. -EINVAL: an argument is NULL,
 * unknown flags, count above INT_MAX.
 */
TIMERHUB_API int timerhub_rearm_many(struct timerhub *hub, const timerhub_timer *timers,
                                     unsigned count, uint64_t expires_ns, uint32_t flags);

/*
 * Cancel a timer. Any thread may call; lock-free. The table above says when the memory that its
 * data points at may be freed.
 *
 *   0        No further event of this timer will be delivered, even if its expiry was in the queue.
 *            No event of a one-shot was delivered. For a periodic or kept timer, another thread's
 *            call may be returning an event now.
 *   -ENOENT  delivered and not kept; or another thread's call is returning its event now; or
 *            cancelled; or never a timer of this hub
 */
TIMERHUB_API int timerhub_cancel(struct timerhub *hub, timerhub_timer timer);

/*
 * Cancel a timer, and wait until no other thread runs its callback inside timerhub_dispatch(). The
 * caller can then read the memory that those callbacks wrote. Any thread may call, but no signal
 * handler. The call blocks on a futex; it is lock-free if no such callback runs or is about to
 * begin.
 *
 * If the caller is outside this timer's callbacks, 0 and -ENOENT mean the same as for
 * timerhub_cancel(). In both cases the timer's callback does not run, and will not run again.
 *
 * If the caller is inside a callback of this timer, even through a nested dispatch:
 *
 *   0        The timer is cancelled. Its callbacks on other threads have returned. The call does
 *            not wait for the caller's own callback.
 *   -ENOENT  Another caller has cancelled the timer, or it is a one-shot. The call has waited for
 *            no callback. Do not free.
 *
 * If two callbacks call cancel_sync for each other's timers, they deadlock. The call does not wait
 * for events that a drain or wait has returned, because the library cannot see their end.
 */
TIMERHUB_API int timerhub_cancel_sync(struct timerhub *hub, timerhub_timer timer);

/*
 * Arm `count` timers, or none if the call fails. Returns `count`. All specs must have the same
 * `size`. The `size` of the specs is the stride of the array and must be a multiple of 8.
 * `ret_timers` may be NULL. Any thread may call; lock-free. Errors as for timerhub_arm(); after an
 * error no timer is armed.
 */
TIMERHUB_API int timerhub_arm_many(struct timerhub_queue *queue, const struct timerhub_spec *specs,
                                   unsigned count, timerhub_timer *ret_timers);

/*
 * Cancel `count` timers. Returns how many of the timers were live. Any thread may call; lock-free.
 * -EINVAL: an argument is NULL, count above INT_MAX.
 */
TIMERHUB_API int timerhub_cancel_many(struct timerhub *hub, const timerhub_timer *timers,
                                      unsigned count);

/*
 * Store the time until the timer's deadline in `*ret_ns`. The value 0 means that the deadline has
 * passed. UINT64_MAX means that the timer has no deadline, or is an idle kept timer. Any thread may
 * call; lock-free. -ENOENT: as for timerhub_cancel(). -EINVAL: an argument is NULL.
 */
TIMERHUB_API int timerhub_remaining(struct timerhub *hub, timerhub_timer timer, uint64_t *ret_ns);

/*
 * A callback that timerhub_each() calls for each live timer. The event has the timer's data, fn,
 * queue and handle. `expires_ns` is the deadline; UINT64_MAX means never, or an idle kept timer.
 * `count` is 1 if an expiry waits undelivered, else 0. A result other than 0 ends the walk.
 */
typedef int timerhub_each_fn(const struct timerhub_event *timer, uint64_t interval_ns,
                             void *context);

/*
 * Call `fn` for every live timer of the hub, in no particular order. The walk may miss a timer that
 * another thread arms, moves or delivers during the call, or show its state before the change. When
 * `fn` runs, the timer may be cancelled and the memory that its data points at freed. Do not follow
 * the pointer unless the program makes sure that it is valid. `fn` may make any call that a
 * callback may. Any thread, lock-free if `fn` is. Returns 0, or the result of `fn` that ended the
 * walk. -EINVAL: an argument is NULL.
 */
TIMERHUB_API int timerhub_each(struct timerhub *hub, timerhub_each_fn *fn, void *context);

/*
 * Take up to `max` events, in the order in which their timers expired. With slack, a timer with an
 * earlier deadline may expire later. The call never blocks. Any thread may call; lock-free. Returns
 * the number of events. If the call finds the queue empty, the fd is no longer readable. If a drain
 * stops at `max`, the fd stays readable, and an edge-triggered poller gets a new edge. Every event
 * in the array counts as delivered: the table above says when its data may be freed. -EINVAL: an
 * argument is NULL, `max` above INT_MAX.
 */
TIMERHUB_API int timerhub_drain(struct timerhub_queue *queue, struct timerhub_event *events,
                                unsigned max);

/*
 * Like timerhub_drain(), but blocks until there is an event, for at most `timeout_ns`. UINT64_MAX
 * means no limit. The timeout is real time, even on a manual hub. A signal does not end the wait.
 * Any thread may call.
 *
 *   0           timed out
 *   -ECANCELED  timerhub_interrupt() was called
 *   -ESHUTDOWN  the queue was stopped and is empty, or is being closed
 *   -EINVAL     NULL, `max` 0 or above INT_MAX
 */
TIMERHUB_API int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events,
                               unsigned max, uint64_t timeout_ns);

/*
 * Take up to `max` events, and call each event's fn, unless it is NULL, on this thread before
 * taking the next event. A callback may arm, re-arm and cancel any timer, even the next due timer.
 * Any thread may call; the call is async-signal-safe if its callbacks are. At most 16,384 calls for
 * one hub run callbacks at once; a further call blocks. Returns the number of events. -EINVAL: as
 * for timerhub_drain().
 */
TIMERHUB_API int timerhub_dispatch(struct timerhub_queue *queue, unsigned max);

/*
 * Make every thread that is blocked in timerhub_wait() now return -ECANCELED. A thread between two
 * waits misses the interrupt. To end workers use timerhub_queue_stop(). Any thread may call;
 * lock-free.
 */
TIMERHUB_API void timerhub_interrupt(struct timerhub_queue *queue);

/*
 * Set the clock of a manual hub to `now_ns`, and expire the timers that are due. Stores in
 * `*ret_next_ns` the time of the next call. UINT64_MAX means that the next call is needed only
 * after an arm or re-arm. `ret_next_ns` may be NULL. An early call is harmless. Only one thread at
 * a time may call. -EINVAL: the hub is not manual, or time would go back. -EBUSY: another thread is
 * inside the call.
 */
TIMERHUB_API int timerhub_advance(struct timerhub *hub, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Returns an eventfd of a manual hub. The eventfd becomes readable when a timer gets a deadline
 * before the time that timerhub_advance() stored in `*ret_next_ns`, or when thousands of
 * submissions wait. The next advance clears the eventfd. Any thread may call; lock-free. -EINVAL:
 * the hub is not manual.
 */
TIMERHUB_API int timerhub_wake_fd(const struct timerhub *hub);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* the function has the name of the struct */
#endif

/* Read the counters. Any thread may call; lock-free. -EINVAL: an argument is NULL. */
TIMERHUB_API int timerhub_stats(struct timerhub *hub, struct timerhub_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Write statistics as text for a log. The text has a line "name value" for each counter, the name
 * of the sleeper, and the lateness that 50 %, 99 % and 100 % of the expiries stayed below. As with
 * snprintf(), the result is the length of the whole text. A text that does not fit into `bytes` is
 * cut, and still ends with a NUL. `buffer` may be NULL if `bytes` is 0. Any thread may call;
 * async-signal-safe. -EINVAL: an argument is NULL.
 */
TIMERHUB_API int timerhub_stats_text(const struct timerhub_stats *stats, char *buffer,
                                     size_t bytes);

/*
 * Write statistics in the OpenMetrics format 1.0, which Prometheus reads: a family for each counter
 * and gauge, the sleeper's name, and the lateness as a histogram in seconds. `buffer`, `bytes` and
 * the result are as for timerhub_stats_text(). Any thread may call; async-signal-safe. -EINVAL: an
 * argument is NULL.
 */
TIMERHUB_API int timerhub_stats_metrics(const struct timerhub_stats *stats, char *buffer,
                                        size_t bytes);

/* Returns "MAJOR.MINOR.PATCH". Any thread may call; lock-free. */
TIMERHUB_API const char *timerhub_version(void);

#ifdef __cplusplus
}
#endif

#endif
