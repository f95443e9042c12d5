/* SPDX-License-Identifier: MIT */
/*
 * timerhub: the timeouts of one event loop.
 *
 * The program must call timerhub_loop_turn() in every turn of its event loop, right before the loop
 * blocks. No timeout expires outside that call.
 *
 * A timeout is a field of the caller's own struct. One thread sets, moves and stops all timeouts of
 * a loop. The same thread calls their callbacks. A call that sets, moves or stops a timeout stores
 * a number in the field. The loop has the timeout scheduled no later than its deadline. At the
 * scheduled time, the loop reads the deadline. If the deadline has moved, the loop schedules the
 * timeout again. The TCP code of the Linux kernel does this for its retransmission timer
 * (net/ipv4/tcp_timer.c). Scheduled times are rounded down to a grid of about an eighth of the
 * remaining time, as in the kernel's timer wheel (kernel/time/timer.c). So the loop reads timeouts
 * of one length together.
 *
 * Time. All times are uint64_t nanoseconds on the loop's clock. A delay counts from the call, but
 * the call reads no clock. The deadline of a delay first counts from the loop's last reading of the
 * clock. The next reading moves the deadline on by the time between the two readings. The loop
 * reads its clock in each turn, and before the 65th timeout that is set by delay since the last
 * reading. So a timeout never expires early. A timeout is late by at most the length of the turn in
 * which it was set.
 *
 * Threads. A loop belongs to the thread that opened it. The loop's thread makes all calls, and
 * other threads get -EPERM. No call is async-signal-safe. No call is a cancellation point of
 * pthread_cancel(3).
 *
 * Errors. A call returns 0 or a count, or a negative errno. A call that fails writes no output and
 * changes no timeout. Every call that takes a timeout returns -EINVAL if the timeout is NULL or is
 * not added to this loop, and -EPERM on a thread that did not open the loop. All tables are
 * reserved at open, so a timeout that is added can always be set, stopped and removed.
 *
 * Memory. A timeout must be zeroed before timerhub_timeout_add(). The timeout's address must not
 * change until timerhub_timeout_remove() or timerhub_loop_close(). After these calls the library
 * holds no pointer to the timeout, and its memory may be freed, also inside its own callback.
 *
 * Fork. In a child process timerhub_loop_open() with the parent's hub, timerhub_loop_turn() and
 * timerhub_loop_fd() return -EOWNERDEAD. timerhub_loop_close() is safe in a child. The other calls
 * change the child's memory only.
 */
#ifndef TIMERHUB_LOOP_H
#define TIMERHUB_LOOP_H

#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loop has the timeouts of one event loop, and belongs to one thread. */
struct timerhub_loop;

/*
 * One timeout, 32 bytes: a field of the caller's struct. The members belong to the library. The
 * offsets and meanings of the members are part of the ABI, because the inline calls below use them.
 */
struct timerhub_timeout {
	uint64_t deadline_ns; /* the deadline on the loop's clock; UINT64_MAX: not set */
	uint64_t filed_ns;    /* when the loop reads the deadline; UINT64_MAX: never */
	uint64_t owner;       /* the loop's address XOR the number of its thread; 0: not added */
	uint32_t place;       /* index of the timeout's place in the loop's table */
	uint8_t fresh;        /* index in the loop's array `fresh`, plus 1; 0: not in the array */
	uint8_t is_listed;    /* 1: the next turn checks filed_ns */
	uint8_t grid;         /* filed_ns is a multiple of 2^grid ns, or exact */
	uint8_t reserved;     /* 0 */
};

/*
 * The callback of a timeout, on the loop's thread, inside timerhub_loop_turn(). The timeout is no
 * longer set; `fn` may set it again. `fn` may make every call of this header, for any timeout, but
 * timerhub_loop_turn() returns -EBUSY. A callback may remove its own timeout and free the memory
 * that holds it. A callback may close the loop. A C++ exception may leave a callback, and so may
 * the end of its thread. After that the loop is consistent, and the next turn continues with the
 * next callback. longjmp() out of a callback is not supported.
 */
typedef void timerhub_timeout_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* How to open a loop. A field of 0 means the default. */
struct timerhub_loop_config {
	uint32_t size;  /* sizeof(struct timerhub_loop_config) */
	uint32_t flags; /* no flag exists yet; 0 */
	/* The most timeouts that may be added at once; 0: 1,048,576; at most 67,108,862. */
	uint32_t timeouts_max;
	uint32_t clock; /* enum timerhub_clock; ignored with a hub: the hub's clock counts */
};

/*
 * Open a loop of the calling thread. The memory for timeouts_max timeouts is reserved, and a page
 * is committed when it is first touched. `config` may be NULL. With a hub the loop opens a queue of
 * that hub and arms one kept timer there: other threads may arm timers on timerhub_loop_queue(),
 * and timerhub_loop_turn() calls their callbacks too. With a hub, the loop's clock is the hub's
 * clock, so with a manual hub the loop runs in virtual time.
 *
 *   -EINVAL      NULL, an unknown flag or clock, timeouts_max too large, size too small
 *   -E2BIG       a byte past the members that this version knows is not 0
 *   -EAGAIN      timers_max timers of the hub are live
 *   -EOWNERDEAD  the hub belongs to a parent process
 *   -ENOMEM, -EMFILE, -ENFILE, -ENOSPC  as timerhub_queue_open()
 */
TIMERHUB_API int timerhub_loop_open(struct timerhub_loop **ret_loop, struct timerhub *hub,
                                    const struct timerhub_loop_config *config);

/*
 * Remove all timeouts, call none of them, and free the loop. The argument may be NULL. The loop's
 * thread may close the loop, also inside a callback. After the end of this thread any other thread
 * may close it. Close the loop before its hub. The timeouts that are still added must be valid
 * memory.
 */
TIMERHUB_API void timerhub_loop_close(struct timerhub_loop *loop);

/*
 * Returns a descriptor that is readable when timerhub_loop_turn() has something to do. The program
 * may poll the descriptor for reading, and must not read or close it. With a hub the descriptor is
 * the eventfd of the loop's queue. Without a hub it is a timerfd, which the first call creates. A
 * loop without a hub makes no system call before. Errors: -EINVAL for NULL, -EPERM, -EOWNERDEAD,
 * and -EMFILE, -ENFILE or -ENOMEM from the kernel.
 */
TIMERHUB_API int timerhub_loop_fd(struct timerhub_loop *loop);

/*
 * Returns for how many ns the program may block, counted from the end of the last turn. The result
 * 0 means that the program must not block. UINT64_MAX means that it may block until a descriptor is
 * ready. Before the first turn, and for NULL, the result is UINT64_MAX. The program rounds the
 * result up to the unit of its system call. A program that polls timerhub_loop_fd() may ignore this
 * result.
 */
TIMERHUB_API uint64_t timerhub_loop_timeout(const struct timerhub_loop *loop);

/*
 * Read the clock and call the callbacks of the timeouts whose deadlines have passed, in order of
 * deadline. With a hub, dispatch the loop's queue too. The program must call it once in every turn
 * of the event loop, right before the loop blocks. Returns how many callbacks were called; an event
 * of the queue without a callback counts too.
 *
 * A turn calls at most 256 callbacks, and at most 128 of them from the queue. If more are due,
 * timerhub_loop_timeout() returns 0 afterwards and the descriptor is readable: the program serves
 * its sockets first. If a callback sets a timeout, the timeout expires in a later turn, even with a
 * delay of 0. Errors: -EINVAL for NULL, -EPERM, -EOWNERDEAD, and -EBUSY inside a callback of this
 * turn.
 */
TIMERHUB_API int timerhub_loop_turn(struct timerhub_loop *loop);

/*
 * Returns the last turn's reading of the clock, in ns. Before the first turn this is the reading of
 * open. For NULL the result is 0.
 */
TIMERHUB_API uint64_t timerhub_loop_now(const struct timerhub_loop *loop);

/*
 * Returns the queue on which other threads arm timers for this loop's thread; NULL without a hub
 * and for NULL. The program must not drain, dispatch or close this queue.
 */
TIMERHUB_API struct timerhub_queue *timerhub_loop_queue(const struct timerhub_loop *loop);

/*
 * Add a timeout to the loop. An added timeout is not set yet. Returns 0. -EAGAIN: timeouts_max
 * timeouts are added. -EEXIST: the timeout is added already, or its memory was not zeroed. -EINVAL:
 * an argument is NULL. -EPERM.
 */
TIMERHUB_API int timerhub_timeout_add(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      timerhub_timeout_fn *fn);

/*
 * Remove a timeout. A timeout that was set will not expire. The timeout's memory may be freed at
 * once, or the timeout added again. Returns 0, -EINVAL or -EPERM.
 */
TIMERHUB_API int timerhub_timeout_remove(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout);

/*
 * Set or move a timeout to `delay_ns` from now. Returns 0, -ERANGE if the deadline is not below
 * UINT64_MAX, -EINVAL or -EPERM.
 */
TIMERHUB_API int timerhub_timeout_set(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      uint64_t delay_ns);

/*
 * Set or move a timeout to exactly this time on the loop's clock; a time that has passed is due in
 * the next turn. Returns 0, -ERANGE for UINT64_MAX, which is no time, -EINVAL or -EPERM.
 */
TIMERHUB_API int timerhub_timeout_set_at(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout, uint64_t deadline_ns);

/*
 * Stop a timeout: it will not expire until it is set. Returns 1 if the timeout was set, 0 if not,
 * -EINVAL or -EPERM.
 */
TIMERHUB_API int timerhub_timeout_stop(struct timerhub_loop *loop,
                                       struct timerhub_timeout *timeout);

/* Returns 1 if the timeout is added and set, else 0. */
TIMERHUB_API int timerhub_timeout_is_set(const struct timerhub_timeout *timeout);

/*
 * Returns the deadline, or UINT64_MAX if the timeout is not set, not added, or NULL. A deadline
 * that was set by delay since the last turn moves on when the next turn begins.
 */
TIMERHUB_API uint64_t timerhub_timeout_deadline(const struct timerhub_timeout *timeout);

/* ---- inline ---- */

/*
 * The frequent cases of set, set_at and stop are inline. The functions above handle all other cases
 * and all mistakes. A name in parentheses, as in (timerhub_timeout_set)(...), is the function. One
 * comparison detects a wrong thread, a wrong loop and a timeout that is not added.
 */
#if defined(__GNUC__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define TIMERHUB_LOOP_INLINE 1
#endif

/* The most timeouts set by delay that share one reading of the clock. */
#define TIMERHUB_LOOP_FRESH_MAX 64

/* The beginning of a loop. The members belong to the library and are part of the ABI. */
struct timerhub_loop_front {
	uint64_t base_ns;      /* reading of the clock from which delays count */
	uint64_t delay_max_ns; /* UINT64_MAX - 1 - base_ns */
	/* Entries of `fresh` in use. At 64, the next set by delay first reads the clock. */
	uint32_t fresh_count;
	uint32_t turning; /* 1: inside a turn */
	/* The timeouts set by delay since base_ns was read. */
	struct timerhub_timeout *fresh[TIMERHUB_LOOP_FRESH_MAX];
};

#ifdef TIMERHUB_LOOP_INLINE

#ifdef __cplusplus
#define TIMERHUB_LOOP_CAST(type, value) (reinterpret_cast<type>(value))
#define TIMERHUB_LOOP_BYTE(value) (static_cast<uint8_t>(value))
#else
#define TIMERHUB_LOOP_CAST(type, value) ((type)(value))
#define TIMERHUB_LOOP_BYTE(value) ((uint8_t)(value))
#endif

/*
 * Returns the value of `owner` for timeouts of this loop that the calling thread may touch, never
 * 0.
 */
static inline uint64_t timerhub_loop_owner(const struct timerhub_loop *loop)
{
	uint64_t thread;

	/* The thread pointer: one instruction reads it, and each thread has another value. */
#ifdef __x86_64__
	__asm__("mov %%fs:0, %0" : "=r"(thread));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(thread));
#endif
	return TIMERHUB_LOOP_CAST(uint64_t, loop) ^ thread;
}

static inline int timerhub_timeout_set_inline(struct timerhub_loop *loop,
                                              struct timerhub_timeout *timeout, uint64_t delay_ns)
{
	struct timerhub_loop_front *front = TIMERHUB_LOOP_CAST(struct timerhub_loop_front *, loop);
	uint32_t count;

	if (!timeout || timeout->owner != timerhub_loop_owner(loop) ||
	    delay_ns > front->delay_max_ns)
		return timerhub_timeout_set(loop, timeout, delay_ns);
	if (timeout->fresh == 0) {
		count = front->fresh_count;
		if (count == TIMERHUB_LOOP_FRESH_MAX)
			return timerhub_timeout_set(loop, timeout, delay_ns);
		front->fresh[count] = timeout;
		front->fresh_count = count + 1;
		timeout->fresh = TIMERHUB_LOOP_BYTE(count + 1);
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

	if (!timeout || timeout->owner != timerhub_loop_owner(loop) || front->turning ||
	    timeout->fresh != 0 || deadline_ns < timeout->filed_ns || deadline_ns == UINT64_MAX)
		return timerhub_timeout_set_at(loop, timeout, deadline_ns);
	timeout->deadline_ns = deadline_ns;
	return 0;
}

static inline int timerhub_timeout_stop_inline(struct timerhub_loop *loop,
                                               struct timerhub_timeout *timeout)
{
	uint64_t before_ns;

	if (!timeout || timeout->owner != timerhub_loop_owner(loop))
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
