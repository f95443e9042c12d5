/* SPDX-License-Identifier: MIT */
/*
 * The timeouts of one event loop, a part of timerhub.
 *
 * No timeout expires outside timerhub_loop_turn(), so every turn of the event loop must call it,
 * right before the loop blocks. A program that expires timeouts at another place also calls
 * timerhub_loop_settle() right before it blocks. timerhub_loop(3) shows both orders.
 *
 * A timeout is a field of the caller's struct. To set, move or stop it is to store a number in it;
 * the loop reads the number at a scheduled time, which is never later than the deadline, and
 * schedules the timeout again if the deadline has moved. The TCP code of the Linux kernel treats
 * its retransmission timer so (net/ipv4/tcp_timer.c). Scheduled times are rounded down to a grid of
 * about an eighth of the remaining time, as in the kernel's timer wheel (kernel/time/timer.c), so
 * the loop reads timeouts of one length together.
 *
 * Time. All times are uint64_t nanoseconds on the loop's clock. A delay counts from the call,
 * although the call reads no clock: the loop's next reading adds the time since its last one to
 * each delay that was set in between. So no timeout is early, and one is late by at most the length
 * of the turn in which it was set. In a manual loop, and with a manual hub, deadlines are exact.
 *
 * Threads. A loop belongs to the thread that first adds, turns, settles or advances, and later to
 * the last that called timerhub_loop_adopt(). Other threads get -EPERM. No call is
 * async-signal-safe or a cancellation point of pthread_cancel(3).
 *
 * Errors. A call returns 0 or a count, or a negative errno; it then has written no output and
 * changed no timeout. -EINVAL: an argument is NULL, or the timeout is not added to this loop. All
 * tables are reserved at open, so an added timeout can always be set, stopped and removed.
 *
 * Memory. A timeout is zeroed before timerhub_timeout_add(), and stays at its address until
 * timerhub_timeout_remove() or timerhub_loop_close(). Then the library holds no pointer to it, and
 * the program may free it, even inside the timeout's own callback.
 *
 * Fork. In a child, turn, settle, fd and adopt return -EOWNERDEAD, close is safe, and the other
 * calls change only the memory of the child.
 */
#ifndef TIMERHUB_LOOP_H
#define TIMERHUB_LOOP_H

#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

struct timerhub_loop;

/*
 * One timeout, 32 bytes. The members belong to the library, and are part of the ABI because the
 * inline calls below use them.
 */
struct timerhub_timeout {
	uint64_t deadline_ns; /* the deadline on the loop's clock, or UINT64_MAX if not set */
	uint64_t filed_ns;    /* time at which the loop reads the deadline, UINT64_MAX for never */
	uint64_t owner;       /* complement of the loop's address, or 0 if not added */
	uint32_t place;       /* index of the timeout's place in the loop's table */
	uint8_t fresh;        /* index in the loop's array `fresh` plus 1, or 0 if not in `fresh` */
	uint8_t is_listed;    /* 1: the next turn checks whether filed_ns is too late */
	uint8_t grid;         /* filed_ns is a multiple of 2^grid ns, or is an exact deadline */
	uint8_t reserved;     /* always 0 */
};

/*
 * The callback of a timeout, called by timerhub_loop_turn(). The timeout is no longer set; the
 * callback may set it again. It may make every call for any timeout, remove its own and close the
 * loop; only turn, settle, advance and adopt return -EBUSY inside. A C++ exception or the end of
 * the thread may leave a callback; longjmp() may not.
 */
typedef void timerhub_timeout_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* The settings of a new loop. A field that is 0 means the default. */
struct timerhub_loop_config {
	uint32_t size;         /* sizeof(struct timerhub_loop_config) */
	uint32_t flags;        /* TIMERHUB_LOOP_MANUAL, TIMERHUB_LOOP_OBSERVABLE */
	uint32_t timeouts_max; /* most timeouts at one time, up to 67,108,862; 0: 1,048,576 */
	uint32_t clock; /* enum timerhub_clock; ignored with a hub, or if the loop is manual */
};

/* The loop reads no clock and has no descriptor: its time is what timerhub_loop_advance() gave. */
#define TIMERHUB_LOOP_MANUAL 1u
/* timerhub-top(1) can read the counters, which are in a memfd: one more descriptor. */
#define TIMERHUB_LOOP_OBSERVABLE 2u

/*
 * Open a loop, and reserve memory for timeouts_max timeouts. With a hub, the loop has the hub's
 * clock and a queue of the hub, whose timers other threads arm and timerhub_loop_turn() delivers.
 *
 *   -EINVAL      ret_loop is NULL, a flag or the clock is unknown, a manual loop has a hub,
 *                timeouts_max is too large, or size is too small
 *   -E2BIG       a byte of the config after the members that this version knows is not 0
 *   -EAGAIN      timers_max timers of the hub are live
 *   -EOWNERDEAD  the hub belongs to a parent process
 *   -ENOMEM, -EMFILE, -ENFILE, -ENOSPC  as for timerhub_queue_open(); -ENOSPC and -EFBIG of an
 *                observable loop as for timerhub_open()
 */
TIMERHUB_API int timerhub_loop_open(struct timerhub_loop **ret_loop, struct timerhub *hub,
                                    const struct timerhub_loop_config *config);

/*
 * Remove all timeouts, whose memory must be valid, call none, and free the loop; before its hub.
 * Only while no other thread uses the loop. `loop` may be NULL.
 */
TIMERHUB_API void timerhub_loop_close(struct timerhub_loop *loop);

/*
 * Give the loop to the calling thread, in constant time. The former thread may have ended; the
 * program makes sure that no two threads use the loop at once. -EBUSY: a turn is running.
 */
TIMERHUB_API int timerhub_loop_adopt(struct timerhub_loop *loop);

/*
 * Returns a descriptor to poll for reading, by level or by edge; never read or close it. With a hub
 * it is the eventfd of the loop's queue, else a timerfd that the first call creates. A deadline
 * that was set since the last turn or settle does not count yet. -EINVAL: the loop is manual. Also
 * -EMFILE, -ENFILE, -ENOMEM, and what timerfd_settime() returns where a filter refuses it.
 */
TIMERHUB_API int timerhub_loop_fd(struct timerhub_loop *loop);

/*
 * Returns for how many ns the program may block: 0, do not block; UINT64_MAX, until a descriptor is
 * ready. A delay that was set since the loop's last reading of the clock makes the call read the
 * clock. UINT64_MAX for NULL, and 0 inside a callback or on another thread.
 */
TIMERHUB_API uint64_t timerhub_loop_timeout(struct timerhub_loop *loop);

/*
 * The same in ms, for epoll_wait() and poll(): rounded up, at most INT_MAX; -1: for ever. 0 in a
 * forked child.
 */
TIMERHUB_API int timerhub_loop_timeout_ms(struct timerhub_loop *loop);

/*
 * Read the clock and call the callbacks of due timeouts, in order of deadline; with a hub also
 * those of the loop's queue. Then set the descriptor. Returns how many callbacks were called,
 * events without a callback included: at most 256, of them 128 from the queue. If more are due, do
 * not block: the descriptor is readable, with a new edge. A timeout
 * that a callback sets expires in a later turn.
 *
 * -EBUSY: inside a callback. Any other errno, -EPERM from a filter included, means that the kernel
 * has refused to set the descriptor; the turn has done all its other work, so treat it like a
 * result above 0.
 */
TIMERHUB_API int timerhub_loop_turn(struct timerhub_loop *loop);

/*
 * Read the clock once, schedule what was set since, and set the descriptor; call no callback.
 * `*ret_block_ns` becomes what timerhub_loop_timeout() returns; it may be NULL. Errors as for
 * timerhub_loop_turn().
 */
TIMERHUB_API int timerhub_loop_settle(struct timerhub_loop *loop, uint64_t *ret_block_ns);

/*
 * Set the time of a manual loop, which is 0 at first. -EINVAL: the loop is not manual, or the time
 * would go back. -EBUSY: inside a callback.
 */
TIMERHUB_API int timerhub_loop_advance(struct timerhub_loop *loop, uint64_t now_ns);

/* Returns the clock as the last turn, settle or timeout read it; 0 for NULL. */
TIMERHUB_API uint64_t timerhub_loop_now(const struct timerhub_loop *loop);

/* Returns the queue for other threads' timers, or NULL. Do not drain, dispatch or close it. */
TIMERHUB_API struct timerhub_queue *timerhub_loop_queue(const struct timerhub_loop *loop);

typedef int timerhub_loop_each_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                  void *context);

/*
 * Call `fn` for every added timeout, set or not. `fn` may remove any. It may miss timeouts that are
 * added during the call, and must not close the loop. Returns 0, or the first result of `fn` that
 * is not 0.
 */
TIMERHUB_API int timerhub_loop_each(struct timerhub_loop *loop, timerhub_loop_each_fn *fn,
                                    void *context);

struct timerhub_loop_stats {
	uint32_t size; /* sizeof(struct timerhub_loop_stats), as the library knows it */
	uint32_t reserved0;
	uint64_t added, set;  /* now; `set` is counted by a walk over all timeouts */
	uint64_t turns;       /* since open, as all that follow */
	uint64_t callbacks;   /* the results of all turns */
	uint64_t empty_wakes; /* turns at which an entry was due and nothing was called */
	uint64_t turn_max_ns; /* longest turn, from its first reading of the clock to its last */
	/* The turn's reading minus the deadline. Bucket i: from 2^i ns on; bucket 0: from 0 on. */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	uint64_t reserved[8];
};

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Read the counters. `size` of *ret_stats is 0 or the size of the struct that the caller knows. */
TIMERHUB_API int timerhub_loop_stats(struct timerhub_loop *loop,
                                     struct timerhub_loop_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Add a timeout, which is not set yet. -EAGAIN: timeouts_max are added. -EEXIST: it is added
 * already, or its memory was not zeroed.
 */
TIMERHUB_API int timerhub_timeout_add(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      timerhub_timeout_fn *fn);

/* Remove a timeout. Its memory may be freed, or added again. */
TIMERHUB_API int timerhub_timeout_remove(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout);

/* Set or move a timeout to `delay_ns` from now. -ERANGE: the deadline is not below UINT64_MAX. */
TIMERHUB_API int timerhub_timeout_set(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      uint64_t delay_ns);

/*
 * Set or move a timeout to exactly `deadline_ns`. If that has passed, it is due in the next turn.
 * -ERANGE for UINT64_MAX, which is not a time.
 */
TIMERHUB_API int timerhub_timeout_set_at(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout, uint64_t deadline_ns);

/* Stop a timeout until it is set again. Returns 1 if it was set, or 0. */
TIMERHUB_API int timerhub_timeout_stop(struct timerhub_loop *loop,
                                       struct timerhub_timeout *timeout);

/* Return 1 or 0. For NULL, 0. */
TIMERHUB_API int timerhub_timeout_is_added(const struct timerhub_timeout *timeout);
TIMERHUB_API int timerhub_timeout_is_set(const struct timerhub_timeout *timeout);

/*
 * Returns the deadline, or UINT64_MAX if none is set. The next reading of the clock moves a
 * deadline that timerhub_timeout_set() has set since the last.
 */
TIMERHUB_API uint64_t timerhub_timeout_deadline(const struct timerhub_timeout *timeout);

/* ---- inline ---- */

/*
 * The frequent cases of set, set_at and stop. The library's functions, called by a name in
 * parentheses as in (timerhub_timeout_set)(...), handle the rare cases and all mistakes. Each
 * inline call checks the loop and the thread.
 */
#if defined(__GNUC__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define TIMERHUB_LOOP_INLINE 1
#endif

/* Most timeouts whose delays may count from one reading of the clock. */
#define TIMERHUB_LOOP_FRESH_MAX 64

/* The beginning of struct timerhub_loop. It belongs to the library, and is part of the ABI. */
struct timerhub_loop_front {
	uint64_t base_ns;      /* time last read from the loop's clock; a delay begins then */
	uint64_t delay_max_ns; /* longest valid delay: UINT64_MAX - 1 - base_ns */
	uint64_t thread;       /* number of the thread that the loop belongs to; 0: none yet */
	/*
	 * Entries in `fresh`. At 64 timerhub_timeout_set() goes out of line, and reads the clock.
	 * It is 64 for ever with a manual hub, and 65 in a manual loop, where base_ns is exact.
	 */
	uint32_t fresh_count;
	uint32_t turning; /* 1: the loop's thread is inside timerhub_loop_turn() */
	struct timerhub_timeout *fresh[TIMERHUB_LOOP_FRESH_MAX]; /* set by delay since base_ns */
};

#ifdef TIMERHUB_LOOP_INLINE

#ifdef __cplusplus
#define TIMERHUB_LOOP_CAST(type, value) (reinterpret_cast<type>(value))
#define TIMERHUB_LOOP_BYTE(value) (static_cast<uint8_t>(value))
#else
#define TIMERHUB_LOOP_CAST(type, value) ((type)(value))
#define TIMERHUB_LOOP_BYTE(value) ((uint8_t)(value))
#endif

/* One instruction reads the thread pointer, which has a different value on each living thread. */
static inline uint64_t timerhub_loop_thread(void)
{
	uint64_t thread;

#ifdef __x86_64__
	__asm__("mov %%fs:0, %0" : "=r"(thread));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(thread));
#endif
	return thread;
}

/* Returns whether the calling thread may use this timeout with this loop. Both may be NULL. */
static inline int timerhub_loop_owns(const struct timerhub_loop *loop,
                                     const struct timerhub_timeout *timeout)
{
	return timeout && timeout->owner == ~TIMERHUB_LOOP_CAST(uint64_t, loop) &&
	       TIMERHUB_LOOP_CAST(const struct timerhub_loop_front *, loop)->thread ==
	               timerhub_loop_thread();
}

static inline int timerhub_timeout_set_inline(struct timerhub_loop *loop,
                                              struct timerhub_timeout *timeout, uint64_t delay_ns)
{
	struct timerhub_loop_front *front = TIMERHUB_LOOP_CAST(struct timerhub_loop_front *, loop);
	uint32_t count;

	if (!timerhub_loop_owns(loop, timeout) || delay_ns > front->delay_max_ns)
		return timerhub_timeout_set(loop, timeout, delay_ns);
	if (timeout->fresh == 0) {
		count = front->fresh_count;
		if (count < TIMERHUB_LOOP_FRESH_MAX) {
			front->fresh[count] = timeout;
			front->fresh_count = count + 1;
			timeout->fresh = TIMERHUB_LOOP_BYTE(count + 1);
		} else if (count == TIMERHUB_LOOP_FRESH_MAX || front->turning ||
		           front->base_ns + delay_ns < timeout->filed_ns) {
			return timerhub_timeout_set(loop, timeout, delay_ns);
		}
	}
	timeout->deadline_ns = front->base_ns + delay_ns;
	return 0;
}

static inline int timerhub_timeout_set_at_inline(struct timerhub_loop *loop,
                                                 struct timerhub_timeout *timeout,
                                                 uint64_t deadline_ns)
{
	const struct timerhub_loop_front *front =
		TIMERHUB_LOOP_CAST(const struct timerhub_loop_front *, loop);

	if (!timerhub_loop_owns(loop, timeout) || front->turning || timeout->fresh != 0 ||
	    deadline_ns < timeout->filed_ns || deadline_ns == UINT64_MAX)
		return timerhub_timeout_set_at(loop, timeout, deadline_ns);
	timeout->deadline_ns = deadline_ns;
	return 0;
}

static inline int timerhub_timeout_stop_inline(struct timerhub_loop *loop,
                                               struct timerhub_timeout *timeout)
{
	uint64_t before_ns;

	if (!timerhub_loop_owns(loop, timeout))
		return timerhub_timeout_stop(loop, timeout);
	before_ns = timeout->deadline_ns;
	timeout->deadline_ns = UINT64_MAX;
	return before_ns != UINT64_MAX;
}

#undef TIMERHUB_LOOP_CAST
#undef TIMERHUB_LOOP_BYTE

#define timerhub_timeout_set(...) timerhub_timeout_set_inline(__VA_ARGS__)
#define timerhub_timeout_set_at(...) timerhub_timeout_set_at_inline(__VA_ARGS__)
#define timerhub_timeout_stop(...) timerhub_timeout_stop_inline(__VA_ARGS__)

#endif

#ifdef __cplusplus
}
#endif

#endif
