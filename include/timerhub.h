/* SPDX-License-Identifier: MIT */
/*
 * timerhub: one timer service for a whole process.
 *
 * Any thread arms, re-arms and cancels timers without a lock; one owner thread keeps them in a
 * hierarchical timing wheel and a heap; expiries are handed out through queues, each of which has
 * an eventfd that any event loop can poll.
 *
 * Conventions. Every call returns 0 or a count, or a negative errno; on failure no output is
 * written. The library never prints and never sets errno on purpose. All times are uint64_t
 * nanoseconds on the hub's clock; a deadline is a point in time, a delay or timeout is a distance.
 * Deadlines up to 2^63 - 128 ns can be kept. `arm` keeps a deadline to the nanosecond, `rearm`
 * rounds it up to the next multiple of 64 ns; so may one that comes too late, and fails, round the
 * old deadline.
 *
 * Threads. "Any thread" means: any number of threads at once, without outside locking. Calls marked
 * lock-free take no lock, allocate nothing, are async-signal-safe, and are never delayed by another
 * thread that was stopped inside one of them.
 *
 * Fork. In a child process every call that needs the owner returns -EOWNERDEAD; only
 * timerhub_close() and timerhub_queue_close() are of use there, and they are safe.
 */
#ifndef TIMERHUB_H
#define TIMERHUB_H

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

/* What timerhub_dispatch() calls for an event, on the thread that dispatches. */
typedef void timerhub_fn(const struct timerhub_event *event);

/*
 * The clock of a hub; a manual hub's is moved by timerhub_advance() alone, whatever is asked for.
 *
 * The wall clock can be set. All deadlines are points on it, also those given as a delay. When it
 * is set forward, what has fallen due expires at once; when it is set back, timers wait. What had
 * expired but was not yet delivered waits too: at the time of its delivery the deadline has passed.
 * A periodic timer stays on the phase of the wall clock: periods that were jumped over are in
 * `count`, and after a jump back none is delivered twice, the next is the one after the last
 * delivered. While the clock is behind where it once was, timers cost O(log n) instead of O(1).
 */
enum timerhub_clock {
	TIMERHUB_CLOCK_MONOTONIC = 0, /* stands still while the machine is suspended */
	TIMERHUB_CLOCK_BOOTTIME = 1, /* counts suspended time too, and what fell due expires then */
	TIMERHUB_CLOCK_REALTIME = 2, /* the wall clock, ns since 1970 */
};

enum timerhub_sleeper {
	TIMERHUB_SLEEPER_AUTO = 0,  /* io_uring where the kernel lets us, else ppoll */
	TIMERHUB_SLEEPER_URING = 1, /* io_uring or an error */
	TIMERHUB_SLEEPER_POLL = 2,  /* ppoll */
};

/* Flags of timerhub_spec and timerhub_rearm(). */
#define TIMERHUB_ABSOLUTE (1u << 0) /* expires_ns is a point on the hub's clock, not a delay */

/* Flags of timerhub_config. */
#define TIMERHUB_MANUAL (1u << 0)     /* no owner thread: time moves by timerhub_advance() alone */
#define TIMERHUB_OBSERVABLE (1u << 1) /* timerhub-top can watch: timerhub-top(1) */

/* A deadline that never comes, until the timer is re-armed. */
#define TIMERHUB_NEVER UINT64_MAX

/* How to arm a timer. Zeroed fields mean the default. */
struct timerhub_spec {
	uint32_t size;        /* sizeof(struct timerhub_spec) */
	uint32_t flags;       /* TIMERHUB_ABSOLUTE or 0 */
	uint64_t expires_ns;  /* delay from now, or a point in time; UINT64_MAX: never */
	uint64_t interval_ns; /* > 0: periodic, phase-locked to the first deadline */
	uint64_t slack_ns;    /* may expire anywhere in [deadline, deadline + slack] */
	uint64_t data;        /* handed back in the event */
	timerhub_fn *fn;      /* what timerhub_dispatch() calls; may be NULL */
};

/* One expiry. */
struct timerhub_event {
	uint64_t data;        /* from the spec */
	timerhub_timer timer; /* the handle; of a one-shot it is stale by now */
	uint64_t expires_ns;  /* the deadline that was due, on the hub's clock */
	uint64_t count;       /* periods this event stands for; 1 for a one-shot */
	timerhub_fn *fn;      /* from the spec */
};

/* How to open a hub. Zeroed fields mean the default. */
struct timerhub_config {
	uint32_t size;           /* sizeof(struct timerhub_config) */
	uint32_t flags;          /* TIMERHUB_MANUAL, TIMERHUB_OBSERVABLE or 0 */
	uint32_t timers_max;     /* most timers live at once; 0: 1,048,576; at most 67,108,862 */
	uint32_t clock;          /* enum timerhub_clock */
	uint32_t sleeper;        /* enum timerhub_sleeper */
	uint32_t cpu_plus_one;   /* run the owner on CPU cpu_plus_one - 1; 0: not pinned */
	uint64_t spin_ns;        /* wake this much before a deadline and spin up to it; then
	                          * a stream of expiries is never gathered either */
	const char *thread_name; /* the owner's name, cut to 15 bytes; NULL: "timerhub" */
};

/* How to open a queue. */
struct timerhub_queue_config {
	uint32_t size;  /* sizeof(struct timerhub_queue_config) */
	uint32_t flags; /* none yet */
};

#define TIMERHUB_LATENESS_BUCKETS 64

/*
 * What a hub has done since it was opened. The counters are read one by one while threads go on, so
 * they are exact only for what happened before the call.
 */
struct timerhub_stats {
	uint64_t armed;         /* timers armed */
	uint64_t refiled;       /* timers that came up and were found moved to a later deadline */
	uint64_t cancelled;     /* timers cancelled */
	uint64_t expired;       /* deadlines that the owner put into a queue */
	uint64_t delivered;     /* events returned by drain and wait or handed to a callback */
	uint64_t overruns;      /* periods that were folded into the count of another's event */
	uint64_t live;          /* timers live now: armed, not yet delivered or cancelled */
	uint64_t live_max;      /* most live at once; up to 32 a CPU too many if threads moved */
	uint64_t inbox_max;     /* most submissions that the owner found waiting in one pass */
	uint64_t owner_wakeups; /* times that the owner slept and woke */
	uint64_t submit_wakes;  /* times that a caller woke the owner */
	uint64_t queue_signals; /* times that the owner made a queue's fd readable */
	uint64_t cascaded;      /* timers moved from one level of the wheel to a lower one */
	uint32_t sleeper;       /* enum timerhub_sleeper in use; AUTO on a manual hub: none */
	uint32_t reserved0;
	/*
	 * Signal time minus deadline: bucket 0 counts 0 and 1 ns, bucket i from 2^i to 2^(i+1) - 1
	 * ns.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t clock_jumps; /* times that the owner was told of the wall clock being set */
	uint64_t reserved[15];
};

/*
 * Open a hub: reserve its memory (timers_max timers; committed as touched) and start its owner
 * thread, unless TIMERHUB_MANUAL. Any thread. `config` may be NULL. -EINVAL: NULL, unknown flag or
 * enum value, size too small, no such CPU; -E2BIG: a non-zero byte past what this version knows;
 * -ENOMEM, -EMFILE, -EAGAIN …: from the kernel; with TIMERHUB_SLEEPER_URING also the errno with
 * which it refused io_uring. With TIMERHUB_OBSERVABLE the hub's counters lie in a memfd, one fd
 * more; -ENOSPC: 256 such hubs are open; -EFBIG: more than RLIMIT_FSIZE allows.
 */
TIMERHUB_API int timerhub_open(struct timerhub **ret_hub, const struct timerhub_config *config);

/*
 * Stop the owner, close the queues still open (threads inside timerhub_wait() return -ESHUTDOWN
 * first), free everything. NULL is fine. No other call on the hub may be running or start, those
 * waits excepted. In a forked child: frees the child's copy and leaves the parent's alone.
 */
TIMERHUB_API void timerhub_close(struct timerhub *hub);

/* The hub's clock, in ns. Any thread, lock-free. A manual hub's is what advance was last given. */
TIMERHUB_API uint64_t timerhub_now(const struct timerhub *hub);

/*
 * Open a queue. Any thread. `config` may be NULL.
 * -EINVAL, -E2BIG as for timerhub_open(); -ENOMEM, -EMFILE; -ENOSPC: 65,535 queues are open.
 */
TIMERHUB_API int timerhub_queue_open(struct timerhub *hub, struct timerhub_queue **ret_queue,
                                     const struct timerhub_queue_config *config);

/*
 * Close a queue: drop its timers, make threads inside timerhub_wait() return -ESHUTDOWN and wait
 * until they have. Any thread but one inside a call on this queue; no other call on it may be
 * running or start, those waits excepted. Walks every slot ever used. NULL is fine.
 */
TIMERHUB_API void timerhub_queue_close(struct timerhub_queue *queue);

/* The queue's eventfd: readable when events wait. Poll it, never close it. -EINVAL: NULL. */
TIMERHUB_API int timerhub_queue_fd(const struct timerhub_queue *queue);

/*
 * Arm a timer. Any thread, lock-free. `*ret_timer` (may be NULL) is written before the timer can
 * expire. -EAGAIN: timers_max timers are live; -ERANGE: the deadline does not fit; -EINVAL, -E2BIG:
 * bad spec.
 */
TIMERHUB_API int timerhub_arm(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                              timerhub_timer *ret_timer);

/* Arm a one-shot `delay_ns` from now. As timerhub_arm(). */
TIMERHUB_API int timerhub_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                                timerhub_timer *ret_timer);

/*
 * Move a timer to another deadline (a delay, or with TIMERHUB_ABSOLUTE a point in time; UINT64_MAX:
 * never). Withdraws an expiry not yet delivered. A periodic timer takes its phase from the new
 * deadline. Any thread, lock-free; moving it later is one atomic exchange.
 * -ENOENT: already delivered, cancelled, or never a timer of this hub; -ERANGE; -EINVAL: bad flags.
 */
TIMERHUB_API int timerhub_rearm(struct timerhub *hub, timerhub_timer timer, uint64_t expires_ns,
                                uint32_t flags);

/*
 * Cancel a timer. Any thread, lock-free. 0: it will never be delivered, and what its data points at
 * may be freed at once. -ENOENT: already delivered, or being returned right now by a call on
 * another thread, or cancelled, or never a timer of this hub.
 */
TIMERHUB_API int timerhub_cancel(struct timerhub *hub, timerhub_timer timer);

/*
 * As timerhub_cancel(), and does not return while a callback of this timer runs inside
 * timerhub_dispatch() on another thread: afterwards, whatever the result, none runs and none will,
 * and what they wrote can be read; what the timer's data points at may be freed.
 * 0: cancelled, and never to be delivered (again: a callback of an earlier period of a periodic
 * timer may have run, and was waited for). -ENOENT as for timerhub_cancel(), after having waited.
 * -EDEADLK: the calling thread is inside a callback of this timer, also further down, beneath
 * another timer's callback that it has dispatched from there; nothing was done, timerhub_cancel()
 * would do. Threads whose callbacks wait for each other's wait for ever, as does who waits for a
 * callback that does not return (but leaves by longjmp, or ends its thread).
 * Events that drain or wait have returned are not waited for: the library cannot see their end.
 * Any thread, but not in a signal handler. Blocks on a futex; lock-free if no such callback runs
 * or is about to begin.
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
 * How long until a timer's deadline, in ns; 0 when it has passed, UINT64_MAX for never.
 * Any thread, lock-free. -ENOENT as for timerhub_cancel().
 */
TIMERHUB_API int timerhub_remaining(struct timerhub *hub, timerhub_timer timer, uint64_t *ret_ns);

/*
 * Take up to `max` events, in order of deadline. Never blocks. Any thread, lock-free. Returns how
 * many. Once it has found the queue empty the fd is no longer readable; when it stops at `max` the
 * fd stays readable, and an edge-triggered poller gets a new edge.
 */
TIMERHUB_API int timerhub_drain(struct timerhub_queue *queue, struct timerhub_event *events,
                                unsigned max);

/*
 * As timerhub_drain(), but blocks up to `timeout_ns` (UINT64_MAX: for ever) for the first event;
 * on a manual hub too that is real time. Any thread. 0: the time is over; -ECANCELED: interrupted;
 * -ESHUTDOWN: the queue is being closed; -EINVAL: NULL, or `max` 0.
 */
TIMERHUB_API int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events,
                               unsigned max, uint64_t timeout_ns);

/*
 * Take up to `max` events one by one, and call each event's fn (if any) on this thread before
 * taking the next. A callback may arm, re-arm and cancel, also what is due next. Returns how many.
 */
TIMERHUB_API int timerhub_dispatch(struct timerhub_queue *queue, unsigned max);

/* Make every thread now blocked in timerhub_wait() return -ECANCELED. Any thread, lock-free. */
TIMERHUB_API void timerhub_interrupt(struct timerhub_queue *queue);

/*
 * Announce expiries in an io_uring of the caller's, of any kind, as a completion with this user
 * data whose res is a hint of how many there are, 1 at least. It comes whenever the eventfd is made
 * readable: once when the empty queue has got events, and again when a drain or dispatch stopped at
 * its `max` and left some; at once if there are some already. Then drain. As with the eventfd it
 * may be for nothing. The eventfd is served as before, so if the ring has lost the completion
 * (a kernel out of memory), or is not entered, nothing is lost.
 *
 * The ring must be enabled, and its descriptor stay open as long as it is attached: detach before
 * closing it. If it is closed all the same it lives on until detached or the queue is closed;
 * whoever gets its number is not touched, and no more is posted, if kcmp(2) can tell. Completions
 * beyond the ring's size are kept by the kernel, as all completions are.
 *
 * Any thread; opens a small io_uring of its own. -EBADF: no descriptor; -EINVAL: NULL, or not an
 * io_uring; -EBUSY: attached already, detach first; -EOPNOTSUPP: the kernel cannot post to another
 * ring (IORING_OP_MSG_RING, 5.18); -EPERM, -ENOSYS, -ENOMEM, -EMFILE …: from the kernel.
 */
TIMERHUB_API int timerhub_queue_attach_uring(struct timerhub_queue *queue, int ring_fd,
                                             uint64_t user_data);

/*
 * Announce no more. When it returns no further completion will be posted; one posted before may
 * still lie in the ring. Any thread. -EINVAL: NULL; -ENOENT: not attached.
 */
TIMERHUB_API int timerhub_queue_detach_uring(struct timerhub_queue *queue);

/*
 * Manual hubs: set the clock to `now_ns`, expire what is due, and say when to call again
 * (UINT64_MAX: not before something is submitted; `ret_next_ns` may be NULL). One thread at a time.
 * -EINVAL: not a manual hub, or time would go back; -EBUSY: another thread is inside.
 */
TIMERHUB_API int timerhub_advance(struct timerhub *hub, uint64_t now_ns, uint64_t *ret_next_ns);

/*
 * Manual hubs: an eventfd that becomes readable when something was submitted that is due earlier
 * than advance said. The next advance clears it. -EINVAL: not a manual hub.
 */
TIMERHUB_API int timerhub_wake_fd(const struct timerhub *hub);

/* Read the counters. Any thread. -EINVAL: NULL. */
TIMERHUB_API int timerhub_stats(struct timerhub *hub, struct timerhub_stats *ret_stats);

/* "MAJOR.MINOR.PATCH". */
TIMERHUB_API const char *timerhub_version(void);

#ifdef __cplusplus
}
#endif

#endif
