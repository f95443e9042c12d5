/* SPDX-License-Identifier: MIT */
/*
 * timerhub: one timer service for a whole process. The manual begins at timerhub(7).
 *
 * Any thread arms, re-arms and cancels timers without taking a lock. One thread of the hub, its
 * owner, keeps them in a hierarchical timing wheel (G. Varghese and A. Lauck, "Hashed and
 * hierarchical timing wheels", 1987; Linux kernel/time/timer.c) and a heap. When a timer expires,
 * the owner puts an event into the timer's queue, and the queue's eventfd becomes readable, which
 * any event loop can poll.
 *
 * Results: a call that can fail returns 0 or a count, or a negative errno, and a call that failed
 * has written no output. Every call returns -EINVAL if an argument is NULL that must not be, if a
 * flag is unknown, or if a number is out of range; the comments below name the other errors.
 *
 * Times are uint64_t nanoseconds on the hub's clock. A deadline is never rounded, and can be at
 * most 2^63 - 128; beyond that a call returns -ERANGE.
 *
 * Threads: all calls are safe to make from any thread, except where the comment says otherwise. A
 * call that is marked "Lock-free." takes no lock and allocates nothing, so it can also be made from
 * a signal handler. No call is a cancellation point of pthread_cancel(3), and threads that are
 * cancelled asynchronously must not be inside one.
 *
 * Freeing: whether the memory that a timer's data points at may be freed after a cancel depends on
 * who takes the events. timerhub-free(7) has the rules.
 *
 * Forking: in a forked child every call that needs the owner returns -EOWNERDEAD, because the owner
 * is a thread of the parent. Closing the child's copies of hub and queues is safe. daemon(3) forks,
 * so call it before timerhub_open().
 */
#ifndef TIMERHUB_H
#define TIMERHUB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What stands before each function. A program that reads the headers for another language, and does
 * not know attributes, can define it as nothing. timerhub-ffi(7) says more.
 */
#ifndef TIMERHUB_API
#if defined(__GNUC__)
#define TIMERHUB_API __attribute__((visibility("default")))
#else
#define TIMERHUB_API
#endif
#endif

/* A timer service: the timers of a process, and the owner thread that keeps them. */
struct timerhub;

/* Where the events of expired timers wait for one thread, or for a group that shares the work. */
struct timerhub_queue;

/*
 * The handle of a timer. 0 is never a timer's handle. A handle may be kept after its timer has
 * ended: calls then answer -ENOENT and touch no other timer, because the number is not used again
 * until 2^38 further timers have had the same place in the hub.
 */
typedef uint64_t timerhub_timer;

struct timerhub_event;

/*
 * A timer's callback. timerhub_dispatch() calls it on the thread that dispatches, and it must
 * return on that same thread, so a fiber must not move to another thread inside it.
 *
 * It can make any call of this header except to close its own queue or hub. It may throw a C++
 * exception or end its thread (with musl: only throw), but must not leave by longjmp().
 */
typedef void timerhub_fn(const struct timerhub_event *event);

/* The clock of a hub. timerhub_open(3) says what happens to timers when the wall clock is set. */
enum timerhub_clock {
	TIMERHUB_CLOCK_MONOTONIC = 0, /* stands still while the machine is suspended */
	TIMERHUB_CLOCK_BOOTTIME = 1,  /* goes on while the machine is suspended */
	TIMERHUB_CLOCK_REALTIME = 2,  /* the wall clock, in ns since 1970 */
};

/* How the owner thread sleeps until the next timer is due. */
enum timerhub_sleeper {
	/*
	 * io_uring if the kernel permits it, else ppoll(2). TIMERHUB_SLEEPER=poll or =uring in the
	 * environment decides instead.
	 */
	TIMERHUB_SLEEPER_AUTO = 0,
	TIMERHUB_SLEEPER_URING = 1, /* io_uring; where it is refused, timerhub_open() fails */
	TIMERHUB_SLEEPER_POLL = 2,  /* ppoll(2) */
};

/* A flag of timerhub_spec and of both re-arms: expires_ns is a time on the clock, not a delay. */
#define TIMERHUB_ABSOLUTE (1u << 0)

/*
 * A flag of timerhub_spec: the timer is kept when it has expired. Its handle stays valid, and it is
 * idle until it is re-armed or cancelled. Re-arming it cannot fail for lack of room, because it
 * never gave up its place. A periodic timer cannot be kept as well: -EINVAL.
 */
#define TIMERHUB_KEEP (1u << 1)

/* A flag of timerhub_config: the hub has no owner thread; timerhub_advance() moves its time. */
#define TIMERHUB_MANUAL (1u << 0)
/* A flag of timerhub_config: timerhub-top(1) can show what the hub does. */
#define TIMERHUB_OBSERVABLE (1u << 1)
/* A flag of timerhub_config: advises the kernel to back the timers with huge pages. */
#define TIMERHUB_HUGE_PAGES (1u << 2)

/* As a deadline or a delay: the timer does not expire until it is re-armed. */
#define TIMERHUB_NEVER UINT64_MAX

/* Describes a new timer. A field that is 0 has its default. */
struct timerhub_spec {
	uint32_t size;        /* sizeof(struct timerhub_spec) */
	uint32_t flags;       /* TIMERHUB_ABSOLUTE, TIMERHUB_KEEP, both, or 0 */
	uint64_t expires_ns;  /* a delay from now; with TIMERHUB_ABSOLUTE, a time on the clock */
	uint64_t interval_ns; /* distance between the periods of a periodic timer; 0: a one-shot */
	uint64_t slack_ns;    /* how much later than its deadline the timer may be made to expire */
	union {
		uint64_t data; /* a number of the program's, which each event carries */
		void *ptr;     /* the same as a pointer, which the library never follows */
	};
	timerhub_fn *fn; /* the callback for timerhub_dispatch(); NULL: none is called */
};

/* Says that a timer has expired. */
struct timerhub_event {
	union {
		uint64_t data; /* what the timer's spec had as data */
		void *ptr;     /* what the timer's spec had as ptr */
	};
	timerhub_timer timer; /* the handle, which a one-shot that is not kept no longer has */
	uint64_t expires_ns;  /* the deadline that has passed, on the hub's clock, exact */
	uint64_t count;       /* how many periods of a periodic timer have passed; else 1 */
	timerhub_fn *fn;      /* the callback of the timer's spec, or NULL */
	struct timerhub_queue *queue; /* the queue on which the timer was armed */
	uint64_t reserved[2];         /* 0 */
};

/* Describes a new hub. A field that is 0 has its default. */
struct timerhub_config {
	uint32_t size;         /* sizeof(struct timerhub_config) */
	uint32_t flags;        /* TIMERHUB_MANUAL, _OBSERVABLE, _HUGE_PAGES, or 0 */
	uint32_t timers_max;   /* most timers live at once, up to 67,108,862; 0: 1,048,576 */
	uint32_t clock;        /* an enum timerhub_clock: the clock that deadlines refer to */
	uint32_t sleeper;      /* an enum timerhub_sleeper: how the owner sleeps */
	uint32_t cpu_plus_one; /* pins the owner to CPU cpu_plus_one - 1; 0: where main() may run */
	/*
	 * How long before a deadline the owner wakes up and spins, which makes events more punctual
	 * for more CPU time. It then no longer gathers deadlines that are close together into one
	 * wake-up. 0: the hub chooses, at most 16 us.
	 */
	uint64_t spin_ns;
	const char *thread_name; /* the owner's name in ps -T, up to 15 bytes; NULL: "timerhub" */
	/*
	 * From which duration on an observable hub records a callback as slow, for timerhub_slow().
	 * 0: 10 ms; UINT64_MAX: it records none.
	 */
	uint64_t slow_ns;
};

/* Describes a new queue. */
struct timerhub_queue_config {
	uint32_t size;  /* sizeof(struct timerhub_queue_config) */
	uint32_t flags; /* 0, because there are no flags yet */
};

#define TIMERHUB_LATENESS_BUCKETS 64

/* What a hub has done since it was opened. What other threads do meanwhile may be missing. */
struct timerhub_stats {
	uint64_t armed;     /* timers armed */
	uint64_t refiled;   /* timers that had moved to a later deadline by when they were due */
	uint64_t cancelled; /* timers cancelled */
	uint64_t expired;   /* expiries that the owner put into a queue */
	uint64_t delivered; /* events that drain, wait or dispatch handed out */
	uint64_t overruns;  /* periods that were counted in the event of an earlier period */
	uint64_t live;      /* timers live now, idle kept ones included */
	/*
	 * The most timers that were live at once. It is counted by the places that were ever used,
	 * so it can be up to 256 a CPU too high.
	 */
	uint64_t live_max;
	uint64_t inbox_max;     /* most arms, re-arms and cancels that the owner found at once */
	uint64_t owner_wakeups; /* how often the owner slept and woke */
	uint64_t submit_wakes;  /* how often a caller woke the owner */
	uint64_t queue_signals; /* how often the owner made a queue's eventfd readable */
	uint64_t cascaded;      /* how often a timer moved to a lower level of the wheel */
	uint32_t sleeper;       /* the enum timerhub_sleeper in use; AUTO in a manual hub */
	uint32_t reserved0;     /* 0 */
	/*
	 * How late events were signalled, as a histogram: bucket i counts those that were at least
	 * 2^i ns late and less than 2^(i+1); bucket 0 begins at 0.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t clock_jumps;    /* how often the kernel said that the wall clock had been set */
	uint64_t slow_callbacks; /* callbacks that took slow_ns or longer; 0: not observable */
	uint64_t slow_sum_ns;    /* how long these callbacks took together */
	/* events that wait in queues now, with those of timers that were cancelled since */
	uint64_t waiting;
	/* for how long nobody has taken from a queue that has events, the longest of all queues */
	uint64_t untaken_ns;
	uint64_t reserved[11]; /* 0 */
	/*
	 * How late events were taken, with the same buckets. A drain, wait or dispatch reads the
	 * clock once, so time spent in earlier callbacks of the same call is not seen.
	 */
	uint64_t delivery_lateness[TIMERHUB_LATENESS_BUCKETS];
};

/*
 * Opens a hub and starts its owner thread. `config` may be NULL for the defaults.
 *
 * All memory that the hub will ever need is reserved now, but the kernel provides a page only when
 * it is first used. Returns 0, or -ENOMEM, -EMFILE or -EAGAIN if the process may have no more
 * memory, descriptors or threads; -E2BIG if the config is that of a later version and uses what
 * this one does not know; -ENOSPC if 256 hubs are observable already; -EFBIG if RLIMIT_FSIZE
 * forbids an observable hub. If TIMERHUB_SLEEPER_URING was asked for and io_uring is refused, it
 * returns the kernel's errno, or -ENOSYS if the library was built without io_uring.
 */
TIMERHUB_API int timerhub_open(struct timerhub **ret_hub, const struct timerhub_config *config);

/*
 * Closes a hub with all its queues, and ends its owner thread. `hub` may be NULL.
 *
 * A thread that is blocked in timerhub_wait() gets -ESHUTDOWN. Every other call on the hub must
 * have returned before, and none may begin, because the hub's memory goes.
 */
TIMERHUB_API void timerhub_close(struct timerhub *hub);

/*
 * Returns the time on the hub's clock. A manual hub's time is what was last given to
 * timerhub_advance(). Returns 0 if `hub` is NULL. Lock-free.
 */
TIMERHUB_API uint64_t timerhub_now(const struct timerhub *hub);

/*
 * Returns the kernel's thread id of the owner, so that a program can set its priority with
 * sched_setscheduler(2). A manual hub has no owner: -EINVAL. In a forked child: -EOWNERDEAD.
 * Lock-free.
 */
TIMERHUB_API int timerhub_owner_tid(const struct timerhub *hub);

/*
 * Opens a queue, on which timers can then be armed. `config` may be NULL. Returns 0, or -ENOSPC if
 * the hub has 65,535 queues, or -ENOMEM, -EMFILE, -E2BIG as timerhub_open() does.
 */
TIMERHUB_API int timerhub_queue_open(struct timerhub *hub, struct timerhub_queue **ret_queue,
                                     const struct timerhub_queue_config *config);

/*
 * Closes a queue and cancels all timers that were armed on it. `queue` may be NULL.
 *
 * Threads that are blocked in timerhub_wait() get -ESHUTDOWN; every other call on the queue must
 * have returned before. With several consumers, call timerhub_queue_stop(), join the threads, then
 * close. It must not be called from a callback of the queue. It visits each place in which the hub
 * has ever had a timer, so it takes a while in a large hub.
 */
TIMERHUB_API void timerhub_queue_close(struct timerhub_queue *queue);

/*
 * Ends the consumers of a queue: from now on timerhub_wait() never blocks on it. It still returns
 * the events that have expired, and -ESHUTDOWN once there are none. Everything else goes on to
 * work. There is no way back. `queue` may be NULL. Lock-free.
 */
TIMERHUB_API void timerhub_queue_stop(struct timerhub_queue *queue);

/*
 * Returns the queue's eventfd, which is readable while events wait. Poll it, with level or edge
 * triggering, but never close it or change its flags. Lock-free.
 */
TIMERHUB_API int timerhub_queue_fd(const struct timerhub_queue *queue);

/* Returns the hub of a queue, or NULL if `queue` is NULL. Lock-free. */
TIMERHUB_API struct timerhub *timerhub_queue_hub(const struct timerhub_queue *queue);

/*
 * Arms a timer on `queue`. Its deadline, period and slack are described by `spec`.
 *
 * The handle is stored in *ret_timer, which may be NULL, before the timer can expire, so that
 * whoever gets the event finds the handle there. Returns 0, or -EAGAIN if timers_max timers are
 * live, or -ERANGE if the deadline is too far in the future, or -E2BIG if the spec is that of a
 * later version and uses what this one does not know. Lock-free.
 */
TIMERHUB_API int timerhub_arm(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                              timerhub_timer *ret_timer);

/*
 * Arms a one-shot timer that expires in `delay_ns` and whose event carries `data`. Returns what
 * timerhub_arm() returns. Lock-free.
 */
TIMERHUB_API int timerhub_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                                timerhub_timer *ret_timer);

/*
 * Arms a one-shot timer that expires in `delay_ns`. timerhub_dispatch() then calls `fn` with an
 * event that carries `ptr`. Returns what timerhub_arm() returns. Lock-free.
 */
TIMERHUB_API int timerhub_call(struct timerhub_queue *queue, uint64_t delay_ns, timerhub_fn *fn,
                               void *ptr, timerhub_timer *ret_timer);

/*
 * Gives a timer a new deadline: a delay from now, or with TIMERHUB_ABSOLUTE a point on the hub's
 * clock. If the old deadline has passed but nobody has taken the event yet, that event is
 * withdrawn. The periods of a periodic timer count from the new deadline.
 *
 * A server can move a timer to a later deadline for every message that it receives, because that
 * is a single compare-and-swap. Returns 0, or 1 if the timer was idle (only a kept timer can be),
 * or -ENOENT if it has ended or belongs to another hub, or -ERANGE. Lock-free.
 */
TIMERHUB_API int timerhub_rearm(struct timerhub *hub, timerhub_timer timer, uint64_t expires_ns,
                                uint32_t flags);

/*
 * Gives `count` timers the same new deadline, for one reading of the clock. Handles of timers that
 * have ended are skipped. Returns how many timers were live, idle ones included, or -ERANGE.
 * Lock-free.
 */
TIMERHUB_API int timerhub_rearm_many(struct timerhub *hub, const timerhub_timer *timers,
                                     unsigned count, uint64_t expires_ns, uint32_t flags);

/*
 * Cancels a timer. After it has returned 0, no further event of the timer is delivered, not even
 * one that was already waiting in the queue. It returns -ENOENT if the timer had already ended, or
 * if another thread is just receiving its only event, or if the handle belongs to another hub.
 *
 * A periodic or kept timer can still have an earlier event in the hands of another thread, so
 * timerhub-free(7) says whether you may now free what the timer's data points at. Lock-free.
 */
TIMERHUB_API int timerhub_cancel(struct timerhub *hub, timerhub_timer timer);

/*
 * Cancels a timer like timerhub_cancel(), and then waits until its callback runs on no other
 * thread, so that what the callback uses can be freed.
 *
 * Called from that very callback, it does not wait for itself. If it returns -ENOENT there, it has
 * waited for nobody, and the data must not be freed: the timer was a one-shot that ended when its
 * callback was called, or whoever cancelled the timer may be waiting for this callback.
 *
 * Do not hold a mutex that the callback locks, because each would wait for the other for ever. Of
 * events that drain or wait have returned the call knows nothing. Not for signal handlers.
 */
TIMERHUB_API int timerhub_cancel_sync(struct timerhub *hub, timerhub_timer timer);

/*
 * Arms `count` timers, or none if it fails. All specs must have the same `size`, a multiple of 8.
 * ret_timers, which may be NULL, gets a handle for each. Returns `count`, or an error as
 * timerhub_arm() does. Lock-free.
 */
TIMERHUB_API int timerhub_arm_many(struct timerhub_queue *queue, const struct timerhub_spec *specs,
                                   unsigned count, timerhub_timer *ret_timers);

/*
 * Cancels `count` timers and returns how many of them were live. It does not say which, so use it
 * where nothing has to be freed. Lock-free.
 */
TIMERHUB_API int timerhub_cancel_many(struct timerhub *hub, const timerhub_timer *timers,
                                      unsigned count);

/*
 * Stores in *ret_ns how long it takes until the timer is due: 0 if its deadline has passed,
 * UINT64_MAX if it has none or is idle. Returns -ENOENT if the timer has ended. Lock-free.
 */
TIMERHUB_API int timerhub_remaining(struct timerhub *hub, timerhub_timer timer, uint64_t *ret_ns);

/*
 * What timerhub_each() calls for a live timer, described as an event would be: `expires_ns` is its
 * deadline, UINT64_MAX if it has none, and `count` is 1 if it has expired and nobody has taken the
 * event. The walk ends when it returns something other than 0.
 */
typedef int timerhub_each_fn(const struct timerhub_event *timer, uint64_t interval_ns,
                             void *context);

/*
 * Calls `fn` for each live timer that the program has armed, in no particular order. Timers that
 * other threads arm or cancel during the walk may be missed or shown, so `fn` must not follow a
 * pointer that another thread may have freed. Returns 0, or what `fn` returned to end the walk. The
 * call itself takes no lock and allocates nothing.
 */
TIMERHUB_API int timerhub_each(struct timerhub *hub, timerhub_each_fn *fn, void *context);

/*
 * Takes up to `max` events from the queue, in the order of their deadlines, and never blocks.
 * Returns how many it has stored in `events`; they count as delivered from then on. If some are
 * left, the eventfd stays readable and gives a new edge. Lock-free.
 */
TIMERHUB_API int timerhub_drain(struct timerhub_queue *queue, struct timerhub_event *events,
                                unsigned max);

/*
 * Takes up to `max` events from the queue like timerhub_drain(), but waits for the first one, for
 * at most `timeout_ns` of real time, or without limit if it is UINT64_MAX. Signals do not end the
 * wait. Returns how many events it has stored, or 0 if the time is over, or -ESHUTDOWN if the queue
 * is stopped and has no more events or is being closed. Not for signal handlers.
 */
TIMERHUB_API int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events,
                               unsigned max, uint64_t timeout_ns);

/*
 * Takes up to `max` events from the queue, one by one, and calls their callbacks on this thread.
 * Returns how many events it took.
 *
 * Each timer's callback is called at most once in a call. A periodic timer that falls due again
 * meanwhile waits for the next call, so a slow callback cannot keep the caller for ever. Events can
 * therefore be left although fewer than `max` were taken; the eventfd is readable then. If 16,384
 * threads are inside callbacks of the hub already, the call waits for one of them. Not for signal
 * handlers.
 */
TIMERHUB_API int timerhub_dispatch(struct timerhub_queue *queue, unsigned max);

/*
 * Sets the time of a manual hub and expires the timers that are due by then. *ret_next_ns, which
 * may be NULL, is the time at which it must be called again; UINT64_MAX if no timer has a deadline.
 *
 * Returns 0, or -EINVAL if the hub is not manual or `now_ns` is before the present time, or -EBUSY
 * if another thread is inside the call.
 */
TIMERHUB_API int timerhub_advance(struct timerhub *hub, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Returns the eventfd of a manual hub that becomes readable when a timer was armed or moved to
 * before the time at which timerhub_advance() wanted to be called again. The next
 * timerhub_advance() clears it. Poll it, but never write to it or close it. Lock-free.
 */
TIMERHUB_API int timerhub_wake_fd(const struct timerhub *hub);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* The function timerhub_stats() has the name of the struct. */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Stores what the hub has done since it was opened in *ret_stats. Lock-free. */
TIMERHUB_API int timerhub_stats(struct timerhub *hub, struct timerhub_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Writes statistics as text for people: lines of a name and a value, and percentiles of both
 * latenesses. Like snprintf(3) it returns how long the whole text is, writes what fits into
 * `bytes`, and ends it with a NUL. Lock-free.
 */
TIMERHUB_API int timerhub_stats_text(const struct timerhub_stats *stats, char *buffer,
                                     size_t bytes);

/*
 * Writes statistics in the OpenMetrics format 1.0, which Prometheus reads. The result is that of
 * timerhub_stats_text(). Lock-free.
 */
TIMERHUB_API int timerhub_stats_metrics(const struct timerhub_stats *stats, char *buffer,
                                        size_t bytes);

/* A callback's address without its type: cast it to timerhub_fn or timerhub_timeout_fn. */
typedef void timerhub_any_fn(void);

/* Where a thread is that dispatches a queue or turns a loop now and then. */
enum timerhub_where {
	TIMERHUB_AWAY = 0,        /* between two calls: in the program's own code, or its wait */
	TIMERHUB_IN_CALL = 1,     /* inside the call, and in no callback */
	TIMERHUB_IN_CALLBACK = 2, /* inside a callback */
};

/* What a thread does for a hub just now. */
struct timerhub_running {
	uint32_t size;       /* sizeof(struct timerhub_running), as the library knows it */
	int32_t tid;         /* the kernel's id of the thread */
	timerhub_any_fn *fn; /* the callback that runs; NULL unless `where` is IN_CALLBACK */
	uint64_t timer; /* its timer's handle, or the address of its timeout; 0 without callback */
	/* the queue that the thread dispatches or has dispatched, perhaps closed by now; or NULL */
	struct timerhub_queue *queue;
	void *loop;        /* the struct timerhub_loop whose thread it is, or NULL */
	uint64_t since_ns; /* since when this is so, on the hub's clock */
	uint32_t where;    /* an enum timerhub_where */
	uint32_t reserved0;
	uint64_t reserved[4];
};

/* What timerhub_each_running() calls for a thread. A result other than 0 ends the walk. */
typedef int timerhub_running_fn(const struct timerhub_running *running, void *context);

/*
 * Calls `fn` for each thread that has dispatched a queue of the hub and still lives, and for each
 * observable loop of the hub. The threads go on meanwhile, so it says what each of them did a
 * moment ago; but a callback that it names was running. Returns 0, or what `fn` returned to end the
 * walk, or -EOPNOTSUPP if the hub is not observable. Lock-free.
 */
TIMERHUB_API int timerhub_each_running(struct timerhub *hub, timerhub_running_fn *fn,
                                       void *context);

/* A function whose callbacks were slow: they took slow_ns or longer. */
struct timerhub_slow_callback {
	timerhub_any_fn *fn;
	uint64_t count;      /* how many of its callbacks were slow */
	uint64_t sum_ns;     /* how long these took together */
	uint64_t longest_ns; /* how long the longest of them took */
	uint64_t last_ns;    /* when the last of them ended, on the clock of the hub or the loop */
	uint64_t reserved[3];
};

/*
 * Stores up to `max` of the functions whose callbacks were slow since the hub was opened, the one
 * with the longest callback first. Returns how many it has stored, or -EOPNOTSUPP if the hub is not
 * observable. The hub remembers 32 functions. Lock-free.
 */
TIMERHUB_API int timerhub_slow(struct timerhub *hub, struct timerhub_slow_callback *ret,
                               unsigned max);

/* Returns the version of the library as "MAJOR.MINOR.PATCH". Lock-free. */
TIMERHUB_API const char *timerhub_version(void);

#ifdef __cplusplus
}
#endif

#endif
