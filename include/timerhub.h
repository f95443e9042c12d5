/* SPDX-License-Identifier: MIT */
/*
 * timerhub: one timer service for a whole process. The manual begins at timerhub(7).
 *
 * Any thread arms, re-arms and cancels timers without taking a lock. One thread of the library, the
 * owner, keeps the timers in a hierarchical timing wheel (G. Varghese and A. Lauck, "Hashed and
 * hierarchical timing wheels", 1987; Linux kernel/time/timer.c) and a heap. When a timer expires,
 * the owner puts an event into the timer's queue and makes the queue's eventfd readable. Any event
 * loop can poll that descriptor.
 *
 * Results: a call that can fail returns 0 or a count, or a negative errno. If it fails, it writes
 * no output. Every call returns -EINVAL if an argument is NULL that must not be, if a flag is
 * unknown, or if a number is out of range. The comments below name only the other errors.
 *
 * Times are uint64_t nanoseconds on the hub's clock. A deadline is never rounded. It can be at most
 * 2^63 - 128; for a later one, a call returns -ERANGE.
 *
 * Threads: all calls are safe to make from any thread, unless their comment says otherwise. A call
 * that is marked "Lock-free." takes no lock and allocates nothing, so a signal handler can make it
 * too. No call is a cancellation point of pthread_cancel(3), and a thread that can be cancelled
 * asynchronously must not make any call.
 *
 * Freeing: whether you may free the memory that a timer's data points at, once you have cancelled
 * the timer, depends on who takes the events. timerhub-free(7) has the rules.
 *
 * Forking: a forked child has no owner, because the owner is a thread of the parent. So every call
 * that needs the owner returns -EOWNERDEAD there. The child can safely close its copies of hubs and
 * queues. daemon(3) forks, so call it before timerhub_open().
 */
#ifndef TIMERHUB_H
#define TIMERHUB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Stands before each function and exports it from the shared library. A program that reads this
 * header for another language, and cannot parse attributes, can define it as nothing; see
 * timerhub-ffi(7).
 */
#ifndef TIMERHUB_API
#if defined(__GNUC__)
#define TIMERHUB_API __attribute__((visibility("default")))
#else
#define TIMERHUB_API
#endif
#endif

/* A hub: the timers of a process, together with the owner thread that keeps them. */
struct timerhub;

/*
 * A queue, in which the events of expired timers wait until a thread takes them. Several threads
 * can share the work of one queue; each event goes to one of them.
 */
struct timerhub_queue;

/*
 * A handle, which names a timer in calls such as timerhub_cancel(). It is never 0. Once its timer
 * has ended, calls with it return -ENOENT: the library uses it again only after 2^38 further
 * timers.
 */
typedef uint64_t timerhub_timer;

struct timerhub_event;

/*
 * The type of a timer's callback. It must return on the thread that calls it. It may make any call,
 * except to close its own queue or hub. It may throw a C++ exception, but must not leave by
 * longjmp().
 */
typedef void timerhub_fn(const struct timerhub_event *event);

/*
 * The clock that a hub's deadlines refer to. timerhub_open(3) says what happens to timers when
 * somebody sets the wall clock.
 */
enum timerhub_clock {
	TIMERHUB_CLOCK_MONOTONIC = 0, /* stands still while the machine is suspended */
	TIMERHUB_CLOCK_BOOTTIME = 1,  /* goes on while the machine is suspended */
	TIMERHUB_CLOCK_REALTIME = 2,  /* the wall clock, in ns since 1970 */
};

/* How the hub's owner thread sleeps until the next timer is due. */
enum timerhub_sleeper {
	/*
	 * The owner thread waits by io_uring if the kernel allows it, and otherwise by ppoll(2).
	 * The environment variable TIMERHUB_SLEEPER overrides this if it is "poll" or "uring".
	 */
	TIMERHUB_SLEEPER_AUTO = 0,
	TIMERHUB_SLEEPER_URING = 1, /* io_uring; timerhub_open() fails if the kernel refuses it */
	TIMERHUB_SLEEPER_POLL = 2,  /* ppoll(2), even if the kernel has io_uring */
};

/*
 * A flag for timerhub_spec, timerhub_rearm() and timerhub_rearm_many(): expires_ns is a point in
 * time on the hub's clock, and not a delay from now.
 */
#define TIMERHUB_ABSOLUTE (1u << 0)

/*
 * A flag for timerhub_spec: the timer does not end when it expires. It is then idle, still counts
 * as live, and can be re-armed until it is cancelled. A periodic timer cannot have this flag
 * (-EINVAL).
 */
#define TIMERHUB_KEEP (1u << 1)

/*
 * A flag for timerhub_config: the hub is manual. It has no owner thread and reads no clock; the
 * program moves its time by calling timerhub_advance().
 */
#define TIMERHUB_MANUAL (1u << 0)
/* A flag for timerhub_config: the hub is observable. timerhub-top(1) can then show what it does. */
#define TIMERHUB_OBSERVABLE (1u << 1)
/* A flag for timerhub_config: advises the kernel to use huge pages for the hub's timers. */
#define TIMERHUB_HUGE_PAGES (1u << 2)

/* A value for a deadline or a delay: the timer does not expire until somebody re-arms it. */
#define TIMERHUB_NEVER UINT64_MAX

/*
 * Describes a timer to timerhub_arm(). A field that is 0 has its default, except that expires_ns 0
 * means now.
 */
struct timerhub_spec {
	uint32_t size;        /* sizeof(struct timerhub_spec) */
	uint32_t flags;       /* TIMERHUB_ABSOLUTE, TIMERHUB_KEEP, both, or 0 */
	uint64_t expires_ns;  /* a delay from now; with TIMERHUB_ABSOLUTE, a point in time */
	uint64_t interval_ns; /* time between the expiries of a periodic timer; 0: a one-shot */
	uint64_t slack_ns;    /* how much later than its deadline the timer may expire */
	union {
		uint64_t data; /* a number of the program's own, which each event carries */
		void *ptr;     /* a pointer in place of it, which the library never follows */
	};
	timerhub_fn *fn; /* what timerhub_dispatch() calls; NULL: nothing */
};

/* An event, which says that a timer has expired. */
struct timerhub_event {
	union {
		uint64_t data; /* what the timer's spec had as data */
		void *ptr;     /* what the timer's spec had as ptr */
	};
	/* The timer's handle. A one-shot without TIMERHUB_KEEP ends when its event is taken. */
	timerhub_timer timer;
	uint64_t expires_ns; /* the deadline that has passed, exact, on the hub's clock */
	uint64_t count;      /* how many periods of a periodic timer have passed; otherwise 1 */
	timerhub_fn *fn;     /* the callback of the timer's spec, or NULL */
	struct timerhub_queue *queue; /* the queue on which the timer was armed */
	uint64_t reserved[2];         /* 0 */
};

/* Describes a hub to timerhub_open(). A field that is 0 has its default. */
struct timerhub_config {
	uint32_t size;         /* sizeof(struct timerhub_config) */
	uint32_t flags;        /* TIMERHUB_MANUAL, _OBSERVABLE, _HUGE_PAGES, or 0 */
	uint32_t timers_max;   /* how many timers can be live, up to 67,108,862; 0: 1,048,576 */
	uint32_t clock;        /* which clock deadlines refer to, an enum timerhub_clock */
	uint32_t sleeper;      /* how the owner thread sleeps, an enum timerhub_sleeper */
	uint32_t cpu_plus_one; /* pins the owner to CPU cpu_plus_one - 1; 0: where main() may run */
	/*
	 * How long before a deadline the owner thread wakes up, to poll its clock until the
	 * deadline (spin). Spinning makes events more punctual, and costs CPU time;
	 * timerhub_open(3) has figures. 0: the hub chooses at most 16 us.
	 */
	uint64_t spin_ns;
	const char *thread_name; /* the owner's name in ps -T, up to 15 bytes; NULL: "timerhub" */
	/*
	 * A callback that takes this long or longer is slow. timerhub_slow() reports the slow
	 * callbacks of a hub that was opened with TIMERHUB_OBSERVABLE. 0: 10 ms; UINT64_MAX: no
	 * callback is slow.
	 */
	uint64_t slow_ns;
};

/* Describes a queue to timerhub_queue_open(). */
struct timerhub_queue_config {
	uint32_t size;  /* sizeof(struct timerhub_queue_config) */
	uint32_t flags; /* 0; there are no flags yet */
};

#define TIMERHUB_LATENESS_BUCKETS 64

/*
 * What a hub has done since it was opened, and what it holds now. The numbers may not add up
 * exactly, because they are read one by one while other threads change them.
 */
struct timerhub_stats {
	uint64_t armed;     /* how many timers were armed */
	uint64_t refiled;   /* how often the owner found that a timer had a later deadline by now */
	uint64_t cancelled; /* how many timers were cancelled */
	uint64_t expired;   /* how many expiries the owner put into a queue */
	uint64_t delivered; /* how many events drain, wait or dispatch handed out */
	uint64_t overruns;  /* periods that shared the event of an earlier period */
	uint64_t live;      /* timers that are live now, including idle ones */
	/*
	 * The most timers that were live at once. It can be too high, by up to 256 for each CPU,
	 * because it counts the slots that timers have ever used.
	 */
	uint64_t live_max;
	uint64_t inbox_max;     /* most changes of timers that the owner found waiting at once */
	uint64_t owner_wakeups; /* how often the owner thread slept and woke up */
	uint64_t submit_wakes;  /* how often a call woke the owner thread */
	uint64_t queue_signals; /* how often the owner made the eventfd of a queue readable */
	uint64_t cascaded;      /* how often a timer moved to a finer level of the timing wheel */
	uint32_t sleeper;   /* how the owner sleeps, an enum timerhub_sleeper; 0 in a manual hub */
	uint32_t reserved0; /* 0 */
	/*
	 * How late events were when their queue was signalled, as a histogram. Bucket i counts
	 * those that were at least 2^i ns late and less than 2^(i+1) ns; bucket 0 begins at 0.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t clock_jumps;    /* how often the kernel reported that the wall clock was set */
	uint64_t slow_callbacks; /* callbacks that took slow_ns or longer; 0 if not observable */
	uint64_t slow_sum_ns;    /* how long those callbacks took altogether */
	/*
	 * How many events wait in queues now. The event of a timer that has been cancelled can
	 * still be among them until a consumer skips it.
	 */
	uint64_t waiting;
	/*
	 * How long events have waited in a queue without any thread taking one, in ns; the longest
	 * time of all queues. 0 if no events wait, or if the hub is not observable.
	 */
	uint64_t untaken_ns;
	uint64_t reserved[11]; /* 0 */
	/*
	 * How late events were when a thread took them, in the same buckets as `lateness`. The time
	 * that earlier callbacks of the same call took is not included.
	 */
	uint64_t delivery_lateness[TIMERHUB_LATENESS_BUCKETS];
};

/*
 * Opens a hub, starts its owner thread, and reserves all memory that the hub will ever need.
 * `config` may be NULL. timerhub_open(3) lists the errors.
 */
TIMERHUB_API int timerhub_open(struct timerhub **ret_hub, const struct timerhub_config *config);

/*
 * Closes a hub with all its queues, and ends its owner thread. `hub` may be NULL. Threads that are
 * blocked in timerhub_wait() return from it with -ESHUTDOWN. No thread may be inside any other call
 * or begin a call, because the hub's memory is freed.
 */
TIMERHUB_API void timerhub_close(struct timerhub *hub);

/*
 * Returns the time on the hub's clock. If the hub is manual, that is the time that was last given
 * to timerhub_advance(). Returns 0 if `hub` is NULL. Lock-free.
 */
TIMERHUB_API uint64_t timerhub_now(const struct timerhub *hub);

/*
 * Returns the kernel's id of the owner thread, for sched_setscheduler(2). Returns -EINVAL for a
 * manual hub, which has no such thread, and -EOWNERDEAD in a forked child. Lock-free.
 */
TIMERHUB_API int timerhub_owner_tid(const struct timerhub *hub);

/*
 * Opens a queue, on which timers can be armed. `config` may be NULL. Returns 0, -ENOSPC if the hub
 * has 65,535 queues, or -ENOMEM, -EMFILE or -E2BIG as timerhub_open() does.
 */
TIMERHUB_API int timerhub_queue_open(struct timerhub *hub, struct timerhub_queue **ret_queue,
                                     const struct timerhub_queue_config *config);

/*
 * Closes a queue and cancels its timers. `queue` may be NULL. Do not call it in a callback of the
 * same queue. First call timerhub_queue_stop() and join the queue's threads, because no other call
 * on the queue may be running or begin.
 */
TIMERHUB_API void timerhub_queue_close(struct timerhub_queue *queue);

/*
 * Stops a queue, so that its threads can end: timerhub_wait() returns the events that are left, and
 * then -ESHUTDOWN. All other calls still work. A stop cannot be undone. `queue` may be NULL.
 * Lock-free.
 */
TIMERHUB_API void timerhub_queue_stop(struct timerhub_queue *queue);

/*
 * Returns the queue's eventfd, which is readable while events wait. Poll it, level-triggered or
 * edge-triggered, but never close it or change its flags. Lock-free.
 */
TIMERHUB_API int timerhub_queue_fd(const struct timerhub_queue *queue);

/* Returns the hub that a queue belongs to, or NULL if `queue` is NULL. Lock-free. */
TIMERHUB_API struct timerhub *timerhub_queue_hub(const struct timerhub_queue *queue);

/*
 * Arms a timer on `queue`, as `spec` describes it. Stores the timer's handle in *ret_timer before
 * the timer can expire; `ret_timer` may be NULL. Returns -EAGAIN if timers_max timers are live.
 * Lock-free.
 */
TIMERHUB_API int timerhub_arm(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                              timerhub_timer *ret_timer);

/*
 * Arms a timer that expires once, in `delay_ns`, and whose event carries `data`. Returns the same
 * errors as timerhub_arm(). Lock-free.
 */
TIMERHUB_API int timerhub_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                                timerhub_timer *ret_timer);

/*
 * Arms a timer that expires once, in `delay_ns`. timerhub_dispatch() then calls `fn` with an event
 * that carries `ptr`. Returns the same errors as timerhub_arm(). Lock-free.
 */
TIMERHUB_API int timerhub_call(struct timerhub_queue *queue, uint64_t delay_ns, timerhub_fn *fn,
                               void *ptr, timerhub_timer *ret_timer);

/*
 * Gives a timer a new deadline, and withdraws an event that nobody has taken yet. Returns 0, or 1
 * if the timer was idle, as a timer with TIMERHUB_KEEP is after its event was taken. Returns
 * -ENOENT if the timer has ended, or -ERANGE if the deadline is too late. Lock-free.
 */
TIMERHUB_API int timerhub_rearm(struct timerhub *hub, timerhub_timer timer, uint64_t expires_ns,
                                uint32_t flags);

/*
 * Gives `count` timers the same new deadline. The clock is read only once. Handles of timers that
 * have ended are skipped. Returns how many of the timers had not ended, or -ERANGE. Lock-free.
 */
TIMERHUB_API int timerhub_rearm_many(struct timerhub *hub, const timerhub_timer *timers,
                                     unsigned count, uint64_t expires_ns, uint32_t flags);

/*
 * Cancels a timer. If it returns 0, no further event of the timer is delivered. -ENOENT: it has
 * ended, or its event is just being taken. Before you free its data, read timerhub-free(7).
 * Lock-free.
 */
TIMERHUB_API int timerhub_cancel(struct timerhub *hub, timerhub_timer timer);

/*
 * Cancels a timer, and waits until its callback has returned on all other threads. After that you
 * can free what the callback uses. Not for signal handlers.
 * - If you hold a mutex that the callback locks, the call and the callback wait for ever.
 * - It does not wait for threads that have got an event by timerhub_drain() or timerhub_wait().
 * - If a callback gets -ENOENT for its own timer, it must not free the data; see
 *   timerhub_cancel(3).
 */
TIMERHUB_API int timerhub_cancel_sync(struct timerhub *hub, timerhub_timer timer);

/*
 * Arms `count` timers, or none if it fails. All specs must have one `size`, which is a multiple of
 * 8. `ret_timers` may be NULL. Returns `count`, or an error like timerhub_arm(). Lock-free.
 */
TIMERHUB_API int timerhub_arm_many(struct timerhub_queue *queue, const struct timerhub_spec *specs,
                                   unsigned count, timerhub_timer *ret_timers);

/*
 * Cancels `count` timers and returns how many of them were live, but not which. So use it only if
 * nothing has to be freed after a cancel. Lock-free.
 */
TIMERHUB_API int timerhub_cancel_many(struct timerhub *hub, const timerhub_timer *timers,
                                      unsigned count);

/*
 * Stores in *ret_ns how long it is until the timer is due: 0 if its deadline has passed, UINT64_MAX
 * if it is idle or has no deadline. Returns -ENOENT if the timer has ended. Lock-free.
 */
TIMERHUB_API int timerhub_remaining(struct timerhub *hub, timerhub_timer timer, uint64_t *ret_ns);

/*
 * The type of the function that timerhub_each() calls. A result other than 0 ends the walk.
 * timer->expires_ns is the deadline or UINT64_MAX; timer->count is 1 if an event waits, else 0.
 */
typedef int timerhub_each_fn(const struct timerhub_event *timer, uint64_t interval_ns,
                             void *context);

/*
 * Calls `fn` for each live timer, in no particular order, without a lock. If other threads may free
 * a timer's data, `fn` must not follow its pointer. Returns 0, or what `fn` has returned to end the
 * walk.
 */
TIMERHUB_API int timerhub_each(struct timerhub *hub, timerhub_each_fn *fn, void *context);

/*
 * Takes up to `max` events in the order of their deadlines, and returns how many. It never blocks.
 * If more are left, the eventfd stays readable, and pollers with EPOLLET are told again. Lock-free.
 */
TIMERHUB_API int timerhub_drain(struct timerhub_queue *queue, struct timerhub_event *events,
                                unsigned max);

/*
 * Takes up to `max` events, and waits up to `timeout_ns` for the first; UINT64_MAX: without limit.
 * Returns their number, 0 after the timeout, or -ESHUTDOWN if the queue is closing, or stopped and
 * empty. Not for signal handlers.
 */
TIMERHUB_API int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events,
                               unsigned max, uint64_t timeout_ns);

/*
 * Takes up to `max` events, calls their callbacks on this thread, and returns how many it has
 * taken. Each timer's callback runs at most once. While events are left, the eventfd stays
 * readable. Not for signal handlers.
 */
TIMERHUB_API int timerhub_dispatch(struct timerhub_queue *queue, unsigned max);

/*
 * Sets the time of a manual hub, and expires the timers that are due. `ret_next_ns`, which may be
 * NULL, gets the time by which to call it again; UINT64_MAX: no timer has a deadline. Returns
 * -EINVAL if the time would go back.
 */
TIMERHUB_API int timerhub_advance(struct timerhub *hub, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Returns the eventfd of a manual hub. While you wait for the time in *ret_next_ns (see
 * timerhub_advance()), poll this eventfd. If it becomes readable, wait no longer, but call
 * timerhub_advance() at once. Never write to the eventfd or close it. Lock-free.
 */
TIMERHUB_API int timerhub_wake_fd(const struct timerhub *hub);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* The function timerhub_stats() has the same name as the struct, which C++ allows. */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Stores in *ret_stats what the hub has done since it was opened. Lock-free. */
TIMERHUB_API int timerhub_stats(struct timerhub *hub, struct timerhub_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Writes statistics as text for people, one name and value a line. Like snprintf(3), it writes as
 * much as fits into `bytes`, and returns the length of the whole text. Lock-free.
 */
TIMERHUB_API int timerhub_stats_text(const struct timerhub_stats *stats, char *buffer,
                                     size_t bytes);

/*
 * Writes statistics in the format OpenMetrics 1.0, which Prometheus reads. Like snprintf(3), it
 * writes as much as fits into `bytes`, and returns the length of the whole text. Lock-free.
 */
TIMERHUB_API int timerhub_stats_metrics(const struct timerhub_stats *stats, char *buffer,
                                        size_t bytes);

/* The address of a callback of any type. Cast it to timerhub_fn or timerhub_timeout_fn. */
typedef void timerhub_any_fn(void);

/*
 * Says whether a thread is inside timerhub_dispatch() or timerhub_loop_turn(), inside a callback
 * that one of these two calls made, or in neither.
 */
enum timerhub_where {
	TIMERHUB_AWAY = 0,        /* in the program's own code, between two calls, or in its wait */
	TIMERHUB_IN_CALL = 1,     /* inside the call, and in no callback */
	TIMERHUB_IN_CALLBACK = 2, /* inside a callback */
};

/* What a thread is doing for a hub at the moment. */
struct timerhub_running {
	uint32_t size;       /* sizeof(struct timerhub_running) in the library */
	int32_t tid;         /* the kernel's id of the thread */
	timerhub_any_fn *fn; /* the callback that runs; NULL: none */
	uint64_t timer; /* handle of that callback's timer, or address of its timeout; 0: none */
	/*
	 * The queue that the thread is dispatching, or has dispatched last. It may have been closed
	 * since. NULL: there is none.
	 */
	struct timerhub_queue *queue;
	void *loop;        /* the struct timerhub_loop that the thread turns, or NULL */
	uint64_t since_ns; /* since when the thread has been doing this, on the hub's clock */
	uint32_t where;    /* where the thread is, an enum timerhub_where */
	uint32_t reserved0;
	uint64_t reserved[4];
};

/*
 * The type of the function that timerhub_each_running() calls for each thread. If it returns
 * something other than 0, the walk ends.
 */
typedef int timerhub_running_fn(const struct timerhub_running *running, void *context);

/*
 * Calls `fn` for each thread that has dispatched a queue of the hub, and for each observable loop
 * on it. Returns 0, what `fn` has returned, or -EOPNOTSUPP if the hub is not observable. Lock-free.
 */
TIMERHUB_API int timerhub_each_running(struct timerhub *hub, timerhub_running_fn *fn,
                                       void *context);

/* Counts the slow callbacks of one function. A callback is slow if it takes slow_ns or longer. */
struct timerhub_slow_callback {
	timerhub_any_fn *fn;
	uint64_t count;      /* how many callbacks were slow */
	uint64_t sum_ns;     /* how long these took altogether */
	uint64_t longest_ns; /* how long the longest of them took */
	uint64_t last_ns;    /* when the last of them ended, on the clock of the hub or loop */
	uint64_t reserved[3];
};

/*
 * Stores in `ret` up to `max` callback functions that have taken slow_ns or longer, the one with
 * the longest call first. The hub remembers 32 functions. Returns how many it has stored, or
 * -EOPNOTSUPP if the hub is not observable. Lock-free.
 */
TIMERHUB_API int timerhub_slow(struct timerhub *hub, struct timerhub_slow_callback *ret,
                               unsigned max);

/* Returns the version of the library as a string "MAJOR.MINOR.PATCH". Lock-free. */
TIMERHUB_API const char *timerhub_version(void);

#ifdef __cplusplus
}
#endif

#endif
