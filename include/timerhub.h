/* SPDX-License-Identifier: MIT */
/*
 * timerhub: one timer service for a whole process.
 *
 * Any thread arms, re-arms and cancels timers without a lock. One owner thread keeps the timers in
 * a hierarchical timing wheel (G. Varghese and A. Lauck, "Hashed and hierarchical timing wheels",
 * 1987; Linux kernel/time/timer.c) and a heap. The owner puts each expiry into a queue. A queue has
 * an eventfd that any event loop can poll.
 *
 * Conventions. A call that can fail returns 0 or a count, or a negative errno. A call that fails
 * writes no output. The library never prints and never sets errno on purpose. All times are
 * uint64_t nanoseconds on the hub's clock. A deadline is a point in time. A delay or a timeout is a
 * distance in time. The library does not round a deadline, and an event returns exactly the
 * deadline that was given. The latest deadline is 2^63 - 128 ns. The k-th period of a periodic
 * timer is due at exactly its first deadline + k x interval. A re-arm of a periodic timer sets a
 * new first deadline.
 *
 * Threads. Any number of threads may make a call marked thread-safe at once, without a lock. Calls
 * marked lock-free take no lock, allocate nothing and are async-signal-safe. A thread that is
 * stopped inside a lock-free call never delays another thread. No call of the library is a
 * cancellation point of pthread_cancel(3). A thread that is cancelled between two calls holds no
 * lock or memory of the library. Asynchronous cancelability (PTHREAD_CANCEL_ASYNCHRONOUS) is not
 * supported inside a call of the library.
 *
 * Who may free when. The data of a timer often points at memory that the program frees. An event
 * counts as delivered when a call returns the event or calls the event's fn. An event in the
 * caller's array therefore counts as delivered, even if the caller has not yet handled it.
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
 * In the table "free" means that the program may free the memory at once. The table considers only
 * the timer's events. If an array of epoll_wait(2) points at the memory, the program must first
 * handle the whole array. The library cannot see when a thread has handled the events that a drain
 * or wait has returned. For events of a drain or wait, timerhub_cancel_sync() therefore does no
 * more than timerhub_cancel(). After timerhub_queue_close() no event of a timer of the closed queue
 * is delivered.
 *
 * Fork. In a child process every call that needs the owner thread returns -EOWNERDEAD. The calls
 * that a child process may need, timerhub_close() and timerhub_queue_close(), are safe there. The
 * function daemon(3) forks, and the program goes on in the child process. A program must therefore
 * open its hubs after the call of daemon(3).
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

/* A queue holds the expired timers for one group of consumers, and has one eventfd. */
struct timerhub_queue;

/*
 * A handle identifies a timer, from the call that arms the timer to the end of the timer. The
 * handle 0 is never valid. The library rejects the handle of an ended timer. After 2^38 more timers
 * in the same slot, the handle may name a new timer.
 */
typedef uint64_t timerhub_timer;

struct timerhub_event;

/*
 * The callback of a timer. timerhub_dispatch() calls the callback for each event of the timer, on
 * the thread that called timerhub_dispatch(). A callback may arm, re-arm and cancel timers, and may
 * call timerhub_dispatch(). A callback must not close its queue or its hub. A callback may throw a
 * C++ exception, and may end its thread (pthread_exit, pthread_cancel). After an exception or the
 * end of the thread, the library stays consistent, and treats the event as delivered. With musl a
 * callback must not end its thread. pthread_exit() of musl does not unwind the stack. longjmp() out
 * of a callback is not supported.
 */
typedef void timerhub_fn(const struct timerhub_event *event);

/*
 * The clocks that a hub can use. Only timerhub_advance() sets the time of a manual hub, so a manual
 * hub ignores the clock of its config.
 *
 * The wall clock (CLOCK_REALTIME) can be set. If a hub uses the wall clock, all its deadlines are
 * points on the wall clock, even the deadline of a timer that was armed with a delay.
 *
 *   - If the wall clock is set forward, the owner at once expires all overdue timers.
 *   - If the wall clock is set back, timers wait until the wall clock reaches their deadlines. An
 *     expiry that is not yet delivered waits too, because an event is delivered only when its
 *     deadline has passed.
 *   - A periodic timer keeps its phase on the wall clock. If the wall clock jumps forward over
 *     periods, `count` of the next event includes these periods. If the wall clock is set back, no
 *     period is delivered twice. The next period to be delivered is the one after the last
 *     delivered period.
 *   - While the wall clock is earlier than its latest time so far, a call costs O(log n) instead of
 *     O(1).
 */
enum timerhub_clock {
	TIMERHUB_CLOCK_MONOTONIC = 0, /* this clock stands still while the machine is suspended */
	/*
	 * This clock also counts the time during which the machine is suspended. A timer that is
	 * due during a suspend expires after the suspend.
	 */
	TIMERHUB_CLOCK_BOOTTIME = 1,
	TIMERHUB_CLOCK_REALTIME = 2, /* the wall clock, in ns since 1970 */
};

/*
 * The ways in which the owner thread can sleep. If the config says AUTO, the environment variable
 * TIMERHUB_SLEEPER may choose how the owner sleeps. The variable's value `poll` means
 * TIMERHUB_SLEEPER_POLL, which valgrind needs. The value `uring` means TIMERHUB_SLEEPER_URING. The
 * library ignores any other value of TIMERHUB_SLEEPER. In a set-user-ID program the library ignores
 * TIMERHUB_SLEEPER.
 */
enum timerhub_sleeper {
	TIMERHUB_SLEEPER_AUTO = 0,  /* io_uring if the kernel permits io_uring, else ppoll(2) */
	TIMERHUB_SLEEPER_URING = 1, /* io_uring; if the kernel refuses it, timerhub_open() fails */
	TIMERHUB_SLEEPER_POLL = 2,  /* the system call ppoll(2) */
};

/* TIMERHUB_ABSOLUTE is a flag of timerhub_spec, timerhub_rearm() and timerhub_rearm_many(). */
#define TIMERHUB_ABSOLUTE (1u << 0) /* expires_ns is a point on the hub's clock, not a delay */

/*
 * TIMERHUB_KEEP is a flag of struct timerhub_spec, and makes a kept timer. The handle of a kept
 * timer stays valid after the expiry. After its delivery a kept timer is idle until it is re-armed
 * or cancelled. An idle timer has no deadline, and keeps its slot. For example, a program can
 * re-arm one kept timer for each heartbeat of a connection. The re-arm of a kept timer cannot fail,
 * even if it races with the expiry. TIMERHUB_KEEP cannot be combined with an interval.
 */
#define TIMERHUB_KEEP (1u << 1)

/* The flags of struct timerhub_config. */
/* the hub has no owner thread; timerhub_advance() sets its time */
#define TIMERHUB_MANUAL (1u << 0)
/* TIMERHUB_OBSERVABLE: timerhub-top(1) can show the counters of the hub. */
#define TIMERHUB_OBSERVABLE (1u << 1)
#define TIMERHUB_HUGE_PAGES (1u << 2) /* advise the kernel to back the timers with huge pages */

/* The deadline TIMERHUB_NEVER means that the timer does not expire until it is re-armed. */
#define TIMERHUB_NEVER UINT64_MAX

/* The settings of a new timer. A field that is 0 means the default. */
struct timerhub_spec {
	uint32_t size;       /* sizeof(struct timerhub_spec) */
	uint32_t flags;      /* flags of the timer: TIMERHUB_ABSOLUTE, TIMERHUB_KEEP or 0 */
	uint64_t expires_ns; /* the deadline: a delay, a point in time, or TIMERHUB_NEVER */
	/* Length of a period; 0: no periods. Period k is due at deadline + k x interval. */
	uint64_t interval_ns;
	uint64_t slack_ns; /* the timer may expire anywhere in [deadline, deadline + slack] */
	union {
		/* a number that each event of the timer returns; used instead of `ptr` */
		uint64_t data;
		/* a pointer that each event of the timer returns; used instead of `data` */
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
	/* Handle of the timer; already stale if the timer is a one-shot and not kept. */
	timerhub_timer timer;
	uint64_t expires_ns; /* the deadline that this event reports, on the hub's clock */
	/* Number of periods that this event stands for; 1 if the timer is not periodic. */
	uint64_t count;
	timerhub_fn *fn;              /* the callback from the timer's spec */
	struct timerhub_queue *queue; /* the queue that the timer was armed on */
};

/* The settings of a new hub. A field that is 0 means the default. */
struct timerhub_config {
	uint32_t size;  /* sizeof(struct timerhub_config) */
	uint32_t flags; /* flags of the hub: TIMERHUB_MANUAL, _OBSERVABLE, _HUGE_PAGES or 0 */
	/* The most timers that may be live at once, up to 67,108,862; 0 means 1,048,576. */
	uint32_t timers_max;
	uint32_t clock;        /* clock of the hub: a value of enum timerhub_clock */
	uint32_t sleeper;      /* how the owner sleeps: a value of enum timerhub_sleeper */
	uint32_t cpu_plus_one; /* number of the owner's CPU plus 1; 0: the main thread's CPUs */
	/*
	 * The owner wakes spin_ns before a deadline, and spins until the deadline. If spin_ns is
	 * not 0, the owner does not coalesce bursts. While deadlines are closer together than
	 * spin_ns, the owner does not sleep.
	 */
	uint64_t spin_ns;
	/* name of the owner thread, cut to 15 bytes. NULL means "timerhub". */
	const char *thread_name;
};

/* The settings of a new queue. */
struct timerhub_queue_config {
	uint32_t size;  /* sizeof(struct timerhub_queue_config) */
	uint32_t flags; /* flags of the queue; must be 0, because no flag exists yet */
};

#define TIMERHUB_LATENESS_BUCKETS 64

/*
 * The counters of a hub since the hub was opened. timerhub_stats() may miss changes that other
 * threads make during the call.
 */
struct timerhub_stats {
	uint64_t armed;     /* number of timers that were armed */
	uint64_t refiled;   /* number of schedule entries that the owner moved to a later time */
	uint64_t cancelled; /* number of timers that were cancelled */
	uint64_t expired;   /* number of expiries that the owner put into a queue */
	uint64_t delivered; /* number of events that a call returned or passed to a callback */
	uint64_t overruns;  /* number of periods counted in an earlier period's event */
	uint64_t live;      /* number of live timers, including idle kept timers */
	/* most timers live at once; more where threads change CPUs: memory ever used, in timers */
	uint64_t live_max;
	/* The largest number of callers' submissions that the owner found in one of its rounds. */
	uint64_t inbox_max;
	uint64_t owner_wakeups; /* number of times that the owner slept and woke */
	uint64_t submit_wakes;  /* number of times that a caller woke the owner */
	uint64_t queue_signals; /* number of times that the owner made a queue's fd readable */
	uint64_t cascaded;      /* number of moves of a timer to a lower level of the wheel */
	/* A value of enum timerhub_sleeper. A manual hub has TIMERHUB_SLEEPER_AUTO. */
	uint32_t sleeper;
	uint32_t reserved0;
	/*
	 * Histogram of lateness: the time at which the owner signalled an expiry, minus the
	 * expiry's deadline. Bucket 0 counts times below 2 ns. Bucket i counts times of at least
	 * 2^i ns and below 2^(i+1) ns.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	/* Number of times that the kernel told the owner that the wall clock was set. */
	uint64_t clock_jumps;
	uint64_t reserved[15];
	/*
	 * The same histogram for the delivery: the time at which a call took an event, minus the
	 * deadline. A call reads the clock once, when it has found its first event, so the time in
	 * its own callbacks is not counted.
	 */
	uint64_t delivery_lateness[TIMERHUB_LATENESS_BUCKETS];
};

/*
 * Open a hub: reserve memory for timers_max timers, and start the owner thread. The kernel commits
 * a page of the memory when the page is first touched. With TIMERHUB_MANUAL no owner thread is
 * started. Thread-safe. `config` may be NULL. With TIMERHUB_OBSERVABLE the hub's counters are in a
 * memfd, so the hub has one more fd.
 *
 *   -EINVAL                      ret_hub is NULL, a flag or an enum value is unknown,
 *                                the CPU of cpu_plus_one does not exist,
 *                                timers_max is too large, or size is too small
 *   -E2BIG                       the config has an additional member that is not 0, so the program
 *                                needs a later version of the library
 *   -ENOSPC                      256 observable hubs are open
 *   -EFBIG                       an observable hub needs more than RLIMIT_FSIZE allows
 *   -ENOSYS                      the config demands TIMERHUB_SLEEPER_URING, but the library was
 *                                built without io_uring
 *   -ENOMEM, -EMFILE, -EAGAIN …  The kernel returned this error. If the config demands
 *                                TIMERHUB_SLEEPER_URING and the kernel refuses io_uring, the
 *                                result is the kernel's errno, such as -EPERM or -ENOSYS.
 */
TIMERHUB_API int timerhub_open(struct timerhub **ret_hub, const struct timerhub_config *config);

/*
 * Stop the owner, close all open queues, and free the hub. Threads inside timerhub_wait() return
 * -ESHUTDOWN before the hub is freed. `hub` may be NULL. No other call on the hub may run or begin
 * during timerhub_close(), except that threads may be blocked in timerhub_wait(). In a forked
 * child, timerhub_close() frees the child's copy and does not change the parent's hub.
 */
TIMERHUB_API void timerhub_close(struct timerhub *hub);

/*
 * Returns the time on the hub's clock, in ns. If `hub` is NULL, the result is 0. Thread-safe and
 * lock-free. For a manual hub the result is the last time given to timerhub_advance(), even while
 * timerhub_advance() still runs.
 */
TIMERHUB_API uint64_t timerhub_now(const struct timerhub *hub);

/*
 * Returns the thread id of the owner, for sched_setscheduler(2) and similar calls. Thread-safe
 * and lock-free. -EINVAL: `hub` is NULL, or the hub is manual and has no owner thread.
 * -EOWNERDEAD: the caller is a forked child.
 */
TIMERHUB_API int timerhub_owner_tid(const struct timerhub *hub);

/*
 * Open a queue. Thread-safe. `config` may be NULL. -EINVAL and -E2BIG mean the same as for
 * timerhub_open(). -ENOMEM and -EMFILE come from the kernel. -ENOSPC means that 65,535 queues of
 * the hub are open.
 */
TIMERHUB_API int timerhub_queue_open(struct timerhub *hub, struct timerhub_queue **ret_queue,
                                     const struct timerhub_queue_config *config);

/*
 * Close a queue: cancel its timers, make threads inside timerhub_wait() return -ESHUTDOWN, and wait
 * until these threads have returned. Thread-safe, but not allowed in a callback of this queue. No
 * other call on the queue may run or begin during timerhub_queue_close(), except that threads may
 * be blocked in timerhub_wait(). To end worker threads, stop the queue, join the threads, and close
 * the queue. timerhub_queue_close() visits every slot that the hub ever used. If the hub ever had
 * many timers, the call is slow. `queue` may be NULL.
 */
TIMERHUB_API void timerhub_queue_close(struct timerhub_queue *queue);

/*
 * Stop a queue: from now on timerhub_wait() never blocks on the queue. Threads blocked in
 * timerhub_wait() return, and later calls of timerhub_wait() return at once. Events of expired
 * timers are still delivered. When no event is left, timerhub_wait() returns -ESHUTDOWN. A stop
 * cannot be undone. All other calls on the queue work as before. Thread-safe and lock-free. `queue`
 * may be NULL.
 */
TIMERHUB_API void timerhub_queue_stop(struct timerhub_queue *queue);

/*
 * Returns the queue's eventfd, which is readable when the queue has events. The program may poll
 * the eventfd, and must not close the eventfd. Thread-safe and lock-free. -EINVAL: `queue` is NULL.
 */
TIMERHUB_API int timerhub_queue_fd(const struct timerhub_queue *queue);

/*
 * Returns the hub of the queue. If `queue` is NULL, returns NULL. Thread-safe and lock-free.
 */
TIMERHUB_API struct timerhub *timerhub_queue_hub(const struct timerhub_queue *queue);

/*
 * Arm a timer. Thread-safe and lock-free. timerhub_arm() writes the handle to `*ret_timer` before
 * the timer can expire. `ret_timer` may be NULL.
 *
 *   -EAGAIN  timers_max timers are live,
 *            or a concurrent timerhub_arm_many() has taken the free slots
 *   -ERANGE  the deadline or the interval is above 2^63 - 128 ns
 *   -EINVAL  an argument is NULL, a flag is unknown, size is too small,
 *            or the spec has both TIMERHUB_KEEP and an interval
 *   -E2BIG   a byte of the spec after the members that this version of the library knows is not 0
 */
TIMERHUB_API int timerhub_arm(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                              timerhub_timer *ret_timer);

/*
 * Arm a one-shot that is due `delay_ns` from now. Thread-safe and lock-free. The errors are those
 * of timerhub_arm().
 */
TIMERHUB_API int timerhub_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                                timerhub_timer *ret_timer);

/*
 * Arm a one-shot that is due `delay_ns` from now, with the callback `fn`. The timer's event returns
 * `ptr`. The errors are those of timerhub_arm(), and -EINVAL if `fn` is NULL. Thread-safe and
 * lock-free.
 */
TIMERHUB_API int timerhub_call(struct timerhub_queue *queue, uint64_t delay_ns, timerhub_fn *fn,
                               void *ptr, timerhub_timer *ret_timer);

/*
 * Give a timer a new deadline. `expires_ns` is a delay from now. With TIMERHUB_ABSOLUTE
 * `expires_ns` is a point in time. The value UINT64_MAX means never. If the timer has an expiry
 * that is not yet delivered, the expiry is withdrawn. The periods of a periodic timer start again
 * at the new deadline. Thread-safe and lock-free. A move of an armed timer to a later deadline is
 * one compare-and-swap, once the owner has read the timer's last arming.
 *
 *   0        the old deadline will not be delivered
 *   1        the timer was an idle kept timer: its last expiry had been delivered
 *   -ENOENT  the timer was delivered and is neither periodic nor kept,
 *            or was cancelled, or is not of this hub
 *   -ERANGE  the deadline is above 2^63 - 128 ns
 *   -EINVAL  `hub` is NULL, or a flag is unknown
 */
TIMERHUB_API int timerhub_rearm(struct timerhub *hub, timerhub_timer timer, uint64_t expires_ns,
                                uint32_t flags);

/*
 * Give `count` timers the same deadline. timerhub_rearm_many() reads the clock at most once, and
 * skips timers that are not live. Returns how many of the timers were live, including idle kept
 * timers. Thread-safe and lock-free. -ERANGE: the deadline is above 2^63 - 128 ns. -EINVAL: an
 * argument is NULL, a flag is unknown, or `count` is above INT_MAX.
 */
TIMERHUB_API int timerhub_rearm_many(struct timerhub *hub, const timerhub_timer *timers,
                                     unsigned count, uint64_t expires_ns, uint32_t flags);

/*
 * Cancel a timer. Thread-safe and lock-free. The table at the top of this header says when the
 * program may free the memory at the timer's `ptr`.
 *
 *   0        No further event of this timer will be delivered, even if its expiry was in the queue.
 *            If the timer is a one-shot, no event of it was delivered. If the timer is periodic or
 *            kept, a call on another thread may be returning an event of it now.
 *   -ENOENT  The timer was delivered and is neither periodic nor kept, or was cancelled, or is not
 *            of this hub. timerhub_cancel() also returns -ENOENT if a call on another thread is
 *            returning the event of a one-shot now.
 */
TIMERHUB_API int timerhub_cancel(struct timerhub *hub, timerhub_timer timer);

/*
 * Cancel a timer, and wait until no other thread runs the timer's callback inside
 * timerhub_dispatch(). After timerhub_cancel_sync() the caller sees everything that the timer's
 * callbacks wrote to memory. Thread-safe, but no signal handler may make this call.
 * timerhub_cancel_sync() waits on a futex. If no callback of the timer runs or is about to begin,
 * timerhub_cancel_sync() is lock-free.
 *
 * If the caller is outside this timer's callbacks, the results 0 and -ENOENT mean the same as for
 * timerhub_cancel(). After timerhub_cancel_sync() has returned 0 or -ENOENT to such a caller, no
 * thread runs or will run the timer's callback.
 *
 * If the caller is inside a callback of this timer, even through a nested dispatch, the results
 * have these meanings:
 *
 *   0        The timer is cancelled. timerhub_cancel_sync() has waited for the timer's callbacks
 *            on other threads, and not for the callback that the caller is inside.
 *   -ENOENT  Another caller has cancelled the timer, or the timer is a one-shot. The call did not
 *            wait for callbacks on other threads. Do not free the memory that the timer's data
 *            points at.
 *
 * It deadlocks if the caller holds a mutex that the callback locks, or if two callbacks call it for
 * each other's timers.
 * timerhub_cancel_sync() does not wait for events that timerhub_drain() or timerhub_wait() has
 * returned. The library cannot see when a thread has handled such an event.
 */
TIMERHUB_API int timerhub_cancel_sync(struct timerhub *hub, timerhub_timer timer);

/*
 * Arm `count` timers. Returns `count`. All specs must have the same `size`. The `size` of the specs
 * is the stride of the array and must be a multiple of 8. `ret_timers` may be NULL. Thread-safe and
 * lock-free. The errors are those of timerhub_arm(). If timerhub_arm_many() returns an error, no
 * timer is armed.
 */
TIMERHUB_API int timerhub_arm_many(struct timerhub_queue *queue, const struct timerhub_spec *specs,
                                   unsigned count, timerhub_timer *ret_timers);

/*
 * Cancel `count` timers. Returns how many of the timers were live. Thread-safe and lock-free.
 * -EINVAL: an argument is NULL, or `count` is above INT_MAX.
 */
TIMERHUB_API int timerhub_cancel_many(struct timerhub *hub, const timerhub_timer *timers,
                                      unsigned count);

/*
 * Store the time until the timer's deadline in `*ret_ns`. If the deadline has passed, store 0. If
 * the timer has no deadline or is an idle kept timer, store UINT64_MAX. Thread-safe and lock-free.
 * -ENOENT means the same as for timerhub_cancel(). -EINVAL: an argument is NULL.
 */
TIMERHUB_API int timerhub_remaining(struct timerhub *hub, timerhub_timer timer, uint64_t *ret_ns);

/*
 * A callback that timerhub_each() calls for each live timer. The event `timer` has the timer's
 * data, fn, queue and handle. `expires_ns` of the event is the timer's deadline. If the timer has
 * no deadline or is idle, `expires_ns` is UINT64_MAX. `count` of the event is 1 if the timer has an
 * undelivered expiry, else 0. If the callback returns a result other than 0, timerhub_each() visits
 * no further timer.
 */
typedef int timerhub_each_fn(const struct timerhub_event *timer, uint64_t interval_ns,
                             void *context);

/*
 * Call `fn` for every live timer that the program has armed on the hub, in no particular order.
 * During the call, another thread may arm, move or deliver a timer. timerhub_each() may then miss
 * the timer or show its earlier state. While `fn` runs, another thread may cancel the timer and
 * free the memory at the timer's `ptr`. `fn` may use this memory only if the program keeps it
 * valid. `fn` may make any call that a callback of timerhub_dispatch() may make. Thread-safe. If
 * `fn` is lock-free, timerhub_each() is also lock-free. Returns 0, or the first result of `fn` that
 * is not 0. -EINVAL: an argument is NULL.
 */
TIMERHUB_API int timerhub_each(struct timerhub *hub, timerhub_each_fn *fn, void *context);

/*
 * Take up to `max` events, in the order in which their timers expired. Timers with slack may expire
 * in another order than their deadlines. timerhub_drain() never blocks. Thread-safe and lock-free.
 * Returns the number of events. If a drain leaves no event, the queue's eventfd is no longer
 * readable. If a drain stops at `max`, the eventfd stays readable, and an edge-triggered poller
 * gets a new edge. Every event in the array counts as delivered. The table at the top of this
 * header says when the program may free the memory at an event's `ptr`. -EINVAL: an argument is
 * NULL, or `max` is above INT_MAX.
 */
TIMERHUB_API int timerhub_drain(struct timerhub_queue *queue, struct timerhub_event *events,
                                unsigned max);

/*
 * Take events like timerhub_drain(), but block until the queue has an event, or at most for
 * `timeout_ns`. If `timeout_ns` is UINT64_MAX, the wait has no limit. The timeout is in real time,
 * even on a manual hub. A signal does not end the wait. Thread-safe.
 *
 *   0           the timeout has passed, and the queue has no event
 *   -ECANCELED  timerhub_interrupt() was called
 *   -ESHUTDOWN  the queue was stopped and is empty, or the queue is being closed
 *   -EINVAL     an argument is NULL, or `max` is 0 or above INT_MAX
 */
TIMERHUB_API int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events,
                               unsigned max, uint64_t timeout_ns);

/*
 * Take up to `max` events one by one, and call each event's fn, unless it is NULL, on this thread.
 * A call calls each timer's callback at most once. It may therefore leave events, although its
 * result is below `max`. The fd then stays readable, and an edge-triggered poller gets a new edge.
 * A callback may arm, re-arm and cancel any timer, even if the timer's event is next in the queue.
 * Thread-safe, and async-signal-safe if its callbacks are. At most 16,384 dispatch calls of one hub
 * run callbacks at once, and a further dispatch call blocks. Returns the number of events. -EINVAL
 * means the same as for timerhub_drain().
 */
TIMERHUB_API int timerhub_dispatch(struct timerhub_queue *queue, unsigned max);

/*
 * Interrupt every thread that is blocked in timerhub_wait() on this queue. The interrupted
 * timerhub_wait() returns -ECANCELED. A thread that is between two calls of timerhub_wait() is not
 * interrupted. Therefore a program that ends its worker threads must call timerhub_queue_stop(),
 * not timerhub_interrupt(). Thread-safe and lock-free.
 */
TIMERHUB_API void timerhub_interrupt(struct timerhub_queue *queue);

/*
 * Set the clock of a manual hub to `now_ns`, and expire the timers that are due. `*ret_next_ns`
 * becomes the time at which the program must call timerhub_advance() next. If `*ret_next_ns` is
 * UINT64_MAX, the program need not call timerhub_advance() until a timer is armed or re-armed.
 * `ret_next_ns` may be NULL. A call before `*ret_next_ns` is harmless. Only one thread at a time
 * may call timerhub_advance().
 * -EINVAL: the hub is not manual, or `now_ns` is before the hub's time. -EBUSY: another thread is
 * inside timerhub_advance().
 */
TIMERHUB_API int timerhub_advance(struct timerhub *hub, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Returns an eventfd of a manual hub. If a timer gets a new deadline that is earlier than the last
 * `*ret_next_ns` of timerhub_advance(), the eventfd becomes readable. If thousands of submissions
 * wait for timerhub_advance(), the eventfd also becomes readable. The next timerhub_advance()
 * clears the eventfd. Thread-safe and lock-free. -EINVAL: the hub is not manual.
 */
TIMERHUB_API int timerhub_wake_fd(const struct timerhub *hub);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function timerhub_stats() has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Read the counters of the hub. Thread-safe and lock-free. -EINVAL: an argument is NULL. */
TIMERHUB_API int timerhub_stats(struct timerhub *hub, struct timerhub_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Write statistics as text for a log. The text has a line "name value" for each counter, and a line
 * with the sleeper's name. The last six lines have upper bounds of the lateness at the signal and
 * at the delivery: p50, p99 and maximum. As with snprintf(), the result is the length of the whole
 * text. A text that does not fit into `bytes` bytes is cut, and still ends with a NUL. `buffer` may
 * be NULL if `bytes` is 0. Thread-safe and async-signal-safe. -EINVAL: an argument is NULL.
 */
TIMERHUB_API int timerhub_stats_text(const struct timerhub_stats *stats, char *buffer,
                                     size_t bytes);

/*
 * Write statistics in the OpenMetrics format 1.0, which Prometheus reads. The text has a family for
 * each counter and gauge, the sleeper's name, and the lateness as a histogram in seconds. `buffer`,
 * `bytes` and the result have the same meaning as for timerhub_stats_text(). Thread-safe and
 * async-signal-safe. -EINVAL: an argument is NULL.
 */
TIMERHUB_API int timerhub_stats_metrics(const struct timerhub_stats *stats, char *buffer,
                                        size_t bytes);

/* Returns the version of the library as "MAJOR.MINOR.PATCH". Thread-safe and lock-free. */
TIMERHUB_API const char *timerhub_version(void);

#ifdef __cplusplus
}
#endif

#endif
