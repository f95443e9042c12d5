/* SPDX-License-Identifier: MIT */
/*
 * Declares the timeouts of one event loop, a part of timerhub.
 *
 * The program must call timerhub_loop_turn() in every turn of its event loop, right before the loop
 * blocks. No timeout expires outside timerhub_loop_turn().
 *
 * A timeout is a field of the caller's own struct. One thread, the loop's thread, sets, moves and
 * stops all timeouts of a loop, and calls their callbacks. A call that sets, moves or stops a
 * timeout stores a number in the timeout. After each turn of the loop, every timeout that is set is
 * scheduled no later than its deadline. At the scheduled time, the loop reads the deadline. If the
 * deadline has moved, the loop schedules the timeout again. The TCP code of the Linux kernel also
 * reads the deadline of its retransmission timer only at the scheduled time (net/ipv4/tcp_timer.c).
 * Scheduled times are rounded down to a grid, as in the kernel's timer wheel (kernel/time/timer.c).
 * A step of the grid is about an eighth of the remaining time. Timeouts of one length therefore
 * share scheduled times, and the loop reads these timeouts together.
 *
 * Time. All times are uint64_t nanoseconds on the loop's clock. A delay counts from the call that
 * sets the timeout, although the call does not read the clock. Until the loop reads its clock
 * again, the delay counts from the last reading. When the loop reads its clock again, it adds the
 * time since the last reading to the deadline. The loop reads its clock in each turn. If a delay
 * was given to 64 timeouts since the last reading, the loop reads its clock before the 65th. A
 * timeout therefore never expires before its delay has passed. A timeout is late by at most the
 * length of the turn in which it was set.
 *
 * Threads. A loop belongs to the thread that opened it. Only the loop's thread may make calls, and
 * other threads get -EPERM. No call is async-signal-safe. No call is a cancellation point of
 * pthread_cancel(3).
 *
 * Errors. A call that can fail returns 0 or a count, or a negative errno. A call that fails writes
 * no output and changes no timeout. If a timeout is NULL or is not added to this loop, calls that
 * set, stop or remove it return -EINVAL. On a thread that did not open the loop, they return
 * -EPERM. timerhub_loop_open() reserves all tables. Therefore an added timeout can always be set,
 * stopped and removed.
 *
 * Memory. A timeout must be zeroed before timerhub_timeout_add(). The timeout's address must not
 * change until timerhub_timeout_remove() or timerhub_loop_close(). After timerhub_timeout_remove()
 * or timerhub_loop_close() the library holds no pointer to the timeout, and the program may free
 * the timeout's memory. A program may remove a timeout and free its memory even inside the
 * timeout's own callback.
 *
 * Fork. In a child process timerhub_loop_turn() and timerhub_loop_fd() return -EOWNERDEAD. If the
 * argument `hub` is the parent's hub, timerhub_loop_open() also returns -EOWNERDEAD. In a child
 * process timerhub_loop_close() is safe. The other calls of a child process change only the memory
 * of the child process.
 */
#ifndef TIMERHUB_LOOP_H
#define TIMERHUB_LOOP_H

#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loop holds the timeouts of one event loop, and belongs to one thread. */
struct timerhub_loop;

/*
 * A timeout is a field of the caller's struct, and has 32 bytes. The members belong to the library.
 * The offsets and meanings of the members are part of the ABI, because the inline calls below use
 * them.
 */
struct timerhub_timeout {
	uint64_t deadline_ns; /* the deadline on the loop's clock, or UINT64_MAX if not set */
	uint64_t filed_ns;    /* time at which the loop reads the deadline, UINT64_MAX for never */
	uint64_t owner;       /* the loop's address XOR its thread's number, or 0 if not added */
	uint32_t place;       /* index of the timeout's place in the loop's table */
	uint8_t fresh;        /* index in the loop's array `fresh` plus 1, or 0 if not in `fresh` */
	uint8_t is_listed;    /* 1: the next turn checks whether filed_ns is too late */
	uint8_t grid;         /* filed_ns is a multiple of 2^grid ns, or is an exact deadline */
	uint8_t reserved;     /* always 0 */
};

/*
 * The callback of a timeout. timerhub_loop_turn() calls the callback on the loop's thread. When the
 * callback begins, its timeout is no longer set, and the callback may set it again. A callback may
 * make every call of this header, for any timeout, but timerhub_loop_turn() returns -EBUSY inside a
 * callback. A callback may remove its own timeout and free the memory of the timeout. A callback
 * may close the loop. A callback may throw a C++ exception or end its thread. The loop then stays
 * consistent, and the next turn continues with the next callback. longjmp() out of a callback is
 * not supported.
 */
typedef void timerhub_timeout_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* The settings of a new loop. A field that is 0 means the default. */
struct timerhub_loop_config {
	uint32_t size;  /* sizeof(struct timerhub_loop_config) */
	uint32_t flags; /* flags of the loop; must be 0, because no flag exists yet */
	/* The most timeouts that may be added at one time, up to 67,108,862; 0 means 1,048,576. */
	uint32_t timeouts_max;
	uint32_t clock; /* enum timerhub_clock; ignored with a hub, whose clock is used instead */
};

/*
 * Open a loop of the calling thread. timerhub_loop_open() reserves memory for timeouts_max
 * timeouts. The kernel commits a page at its first use. `config` may be NULL. If `hub` is not NULL,
 * the loop opens a queue of the hub, and arms one kept timer on the queue. Other threads may arm
 * timers on this queue. timerhub_loop_queue() returns the queue. timerhub_loop_turn() also calls
 * the callbacks of these timers. With a hub, the loop's clock is the hub's clock, so with a manual
 * hub the loop runs in virtual time.
 *
 *   -EINVAL      ret_loop is NULL, a flag or the clock is unknown, timeouts_max is too large, or
 *                size is too small
 *   -E2BIG       a byte of the config after the members that this version of the library knows is
 *                not 0
 *   -EAGAIN      timers_max timers of the hub are live
 *   -EOWNERDEAD  the hub belongs to a parent process
 *   -ENOMEM, -EMFILE, -ENFILE, -ENOSPC  as for timerhub_queue_open()
 */
TIMERHUB_API int timerhub_loop_open(struct timerhub_loop **ret_loop, struct timerhub *hub,
                                    const struct timerhub_loop_config *config);

/*
 * Remove all timeouts without calling their callbacks, and free the loop. `loop` may be NULL. The
 * loop's thread may close the loop, even inside a callback. After the end of the loop's thread any
 * other thread may close the loop. Close the loop before its hub. The memory of the timeouts that
 * are still added must be valid.
 */
TIMERHUB_API void timerhub_loop_close(struct timerhub_loop *loop);

/*
 * Returns a descriptor that is readable when timerhub_loop_turn() has something to do. The program
 * may poll the descriptor for reading, and must not read or close it. With a hub the descriptor is
 * the eventfd of the loop's queue. Without a hub the descriptor is a timerfd. The first call of
 * timerhub_loop_fd() creates the timerfd. Until then the turns of such a loop make no system call.
 * Errors: -EINVAL for NULL, -EPERM, -EOWNERDEAD, and -EMFILE, -ENFILE or -ENOMEM from the kernel.
 */
TIMERHUB_API int timerhub_loop_fd(struct timerhub_loop *loop);

/*
 * Returns for how many ns the program may block, counted from the end of the last turn. If the
 * result is 0, the program must not block. If the result is UINT64_MAX, the program may block until
 * a descriptor is ready. Before the first turn, and for NULL, the result is UINT64_MAX. The program
 * rounds the result up to the unit of its system call. A program that polls timerhub_loop_fd() need
 * not call timerhub_loop_timeout().
 */
TIMERHUB_API uint64_t timerhub_loop_timeout(const struct timerhub_loop *loop);

/*
 * Read the clock, and call the callbacks of due timeouts in order of deadline. With a hub, dispatch
 * the loop's queue too. The program must call timerhub_loop_turn() once in every turn of its event
 * loop, right before the event loop blocks. Returns how many callbacks were called. The result also
 * counts events of the loop's queue that have no callback.
 *
 * A turn calls at most 256 callbacks, and at most 128 of them from the queue. If more callbacks are
 * due, timerhub_loop_timeout() returns 0 after the turn, and the descriptor is readable. The limits
 * of a turn let the program serve its sockets between two turns. If a callback sets a timeout, the
 * timeout expires in a later turn, even with a delay of 0. Errors: -EINVAL for NULL, -EPERM,
 * -EOWNERDEAD, and -EBUSY inside a callback of the turn. With any other negative errno the kernel
 * has refused to set the descriptor; the turn has done all its other work.
 */
TIMERHUB_API int timerhub_loop_turn(struct timerhub_loop *loop);

/*
 * Returns the last turn's reading of the clock, in ns. Before the first turn the result is the
 * reading that timerhub_loop_open() made. For NULL the result is 0.
 */
TIMERHUB_API uint64_t timerhub_loop_now(const struct timerhub_loop *loop);

/*
 * Returns the queue on which other threads arm timers for the loop's thread. The result is NULL if
 * the loop has no hub or `loop` is NULL. The program must not drain, dispatch or close this queue.
 */
TIMERHUB_API struct timerhub_queue *timerhub_loop_queue(const struct timerhub_loop *loop);

/*
 * Add a timeout to the loop. An added timeout is not set yet. Returns 0 or an error. -EAGAIN: the
 * loop already has timeouts_max timeouts. -EEXIST: the timeout is already added, or its memory was
 * not zeroed. -EINVAL: an argument is NULL. -EPERM: another thread opened the loop.
 */
TIMERHUB_API int timerhub_timeout_add(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      timerhub_timeout_fn *fn);

/*
 * Remove a timeout from its loop. A removed timeout does not expire. The program may free the
 * timeout's memory at once, or add the timeout again. Returns 0, -EINVAL or -EPERM.
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
 * Set or move a timeout to exactly `deadline_ns` on the loop's clock. If `deadline_ns` has passed,
 * the timeout is due in the next turn. Returns 0, -EINVAL, -EPERM, or -ERANGE for UINT64_MAX, which
 * is not a time.
 */
TIMERHUB_API int timerhub_timeout_set_at(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout, uint64_t deadline_ns);

/*
 * Stop a timeout. A stopped timeout does not expire until it is set again. Returns 1 if the timeout
 * was set, 0 if it was not set, -EINVAL or -EPERM.
 */
TIMERHUB_API int timerhub_timeout_stop(struct timerhub_loop *loop,
                                       struct timerhub_timeout *timeout);

/* Returns 1 if the timeout is added and set, else 0. */
TIMERHUB_API int timerhub_timeout_is_set(const struct timerhub_timeout *timeout);

/*
 * Returns the deadline of a timeout that is set. For any other timeout and for NULL, returns
 * UINT64_MAX. If timerhub_timeout_set() has set the deadline since the loop last read its clock,
 * the next reading moves the deadline to a later time.
 */
TIMERHUB_API uint64_t timerhub_timeout_deadline(const struct timerhub_timeout *timeout);

/* ---- inline ---- */

/*
 * The frequent cases of timerhub_timeout_set(), _set_at() and _stop() are inline. Functions of the
 * library handle the rare cases and all mistakes. If a program writes the name of the call in
 * parentheses, as in (timerhub_timeout_set)(...), it calls the function of the library. The inline
 * calls compare `owner` once. This detects a wrong thread, a wrong loop and a missing
 * timerhub_timeout_add().
 */
#if defined(__GNUC__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define TIMERHUB_LOOP_INLINE 1
#endif

/* Largest number of timeouts whose delays may count from the same reading of the clock. */
#define TIMERHUB_LOOP_FRESH_MAX 64

/*
 * The first member of struct timerhub_loop. The inline calls read and write the fields of struct
 * timerhub_loop_front. These fields belong to the library and are part of the ABI.
 */
struct timerhub_loop_front {
	uint64_t base_ns;      /* time last read from the loop's clock; a delay begins then */
	uint64_t delay_max_ns; /* longest valid delay: UINT64_MAX - 1 - base_ns */
	/*
	 * Number of entries in `fresh`. If `fresh` has 64 entries, the next call of
	 * timerhub_timeout_set() reads the clock.
	 */
	uint32_t fresh_count;
	uint32_t turning; /* 1: the loop's thread is inside timerhub_loop_turn() */
	/*
	 * Timeouts that timerhub_timeout_set() has set after the loop read base_ns from the clock.
	 */
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
 * Returns the value of timerhub_timeout.owner for the timeouts of this loop that the calling thread
 * may use. The result is never 0.
 */
static inline uint64_t timerhub_loop_owner(const struct timerhub_loop *loop)
{
	uint64_t thread;

	/* One instruction reads the thread pointer, which has a different value on each thread. */
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
