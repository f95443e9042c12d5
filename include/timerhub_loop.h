/* SPDX-License-Identifier: MIT */
/*
 * Timeouts for one event loop, such as the idle timeouts of a server's connections. The manual is
 * timerhub_loop(3).
 *
 * A timeout is a field of the caller's own struct. Zero it, add it to a loop once, and then set,
 * move and stop it as often as you like. These calls only store a deadline in the field, and the
 * loop looks at the field only about once in the length of the timeout. So a timeout that is moved
 * for every message costs next to nothing. The field must stay at its address until the timeout is
 * removed or its loop is closed.
 *
 * Timeouts expire only inside timerhub_loop_turn(). Call it right before the program blocks. If you
 * call it elsewhere, call timerhub_loop_settle() right before the program blocks.
 *
 * Times are uint64_t nanoseconds on the loop's clock. A delay counts from the moment at which the
 * loop next reads its clock, usually in the next turn, so a timeout never expires early. In a
 * manual loop, and on a manual hub, the program gives the time, and timeouts expire exactly.
 *
 * A loop belongs to one thread: the first that uses it, until another thread adopts the loop. All
 * other threads get -EPERM. Calls return 0 or a count. If a call fails, it returns a negative errno
 * and has changed nothing. Every call returns -EINVAL if a pointer is NULL that must not be, or if
 * the timeout is not added to this loop.
 *
 * In a forked child, turn, settle, fd, advance and add return -EOWNERDEAD until the child has
 * called timerhub_loop_adopt(). All other calls change only the child's memory, so any thread of
 * the child may make them.
 */
#ifndef TIMERHUB_LOOP_H
#define TIMERHUB_LOOP_H

#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

struct timerhub_loop;

/*
 * A timeout. Set its memory to zero before timerhub_timeout_add(). Only the library may use the
 * members, which are public and part of the ABI because the inline calls need them.
 */
struct timerhub_timeout {
	uint64_t deadline_ns; /* deadline on the loop's clock; UINT64_MAX: not set */
	uint64_t filed_ns;    /* when the loop next looks at deadline_ns; UINT64_MAX: never */
	uint64_t owner;       /* bitwise complement of the loop's address; 0: not added */
	uint32_t place;       /* index of the timeout in the loop's table */
	uint8_t fresh;     /* 1 + index of the timeout in the loop's array `fresh`; 0: not there */
	uint8_t is_listed; /* 1: the next turn checks whether filed_ns is too late */
	uint8_t grid;      /* filed_ns is a multiple of 2^grid ns, or the deadline */
	uint8_t reserved;  /* always 0 */
};

/*
 * The type of a timeout's callback. timerhub_loop_turn() calls it when the timeout has expired and
 * is no longer set.
 * - A callback may set the timeout again, remove and free it, or close the loop and its hub.
 * - timerhub_loop_turn(), _settle(), _advance() and _adopt() return -EBUSY inside a callback.
 * - A callback may throw an exception, but must not leave by longjmp().
 */
typedef void timerhub_timeout_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* Describes a loop to timerhub_loop_open(). A member that is 0 has its default. */
struct timerhub_loop_config {
	uint32_t size;         /* sizeof(struct timerhub_loop_config) */
	uint32_t flags;        /* TIMERHUB_LOOP_MANUAL, _OBSERVABLE, _LOCKED */
	uint32_t timeouts_max; /* how many timeouts can be added, up to 67,108,862; 0: 1,048,576 */
	uint32_t clock;        /* an enum timerhub_clock; ignored with a hub or in a manual loop */
	/*
	 * A callback that takes this long or longer is slow, and timerhub_loop_slow() reports it if
	 * the loop is observable. 0: 10 ms; UINT64_MAX: no callback is slow.
	 */
	uint64_t slow_ns;
};

/*
 * A flag for timerhub_loop_config: the loop is manual. It reads no clock and has no descriptor; the
 * program gives it the time by calling timerhub_loop_advance().
 */
#define TIMERHUB_LOOP_MANUAL 1u
/*
 * A flag for timerhub_loop_config: the loop is observable. It keeps its counters in a memfd too,
 * from which timerhub-top(1) shows them.
 */
#define TIMERHUB_LOOP_OBSERVABLE 2u
/*
 * A flag for timerhub_loop_config: any thread may use the loop while it holds a lock of the
 * program. The library neither takes that lock nor checks it. Callbacks run on the thread that
 * calls timerhub_loop_turn().
 */
#define TIMERHUB_LOOP_LOCKED 4u

/*
 * Opens a loop and reserves all its memory. With a `hub`, it uses the hub's clock, and has a queue
 * for timers of other threads. `config` may be NULL. timerhub_loop_open(3) lists the errors.
 */
TIMERHUB_API int timerhub_loop_open(struct timerhub_loop **ret_loop, struct timerhub *hub,
                                    const struct timerhub_loop_config *config);

/*
 * Closes a loop and removes its timeouts, whose memory must still be valid. `loop` may be NULL.
 * Close it before its hub. The callback of a timer on the loop's queue must not close the hub.
 */
TIMERHUB_API void timerhub_loop_close(struct timerhub_loop *loop);

/*
 * Gives the loop to the calling thread. The program must make sure that no two threads use the loop
 * at once. In a forked child, the call makes the child's copy of the loop usable, or returns
 * -EOWNERDEAD if the loop has a hub.
 */
TIMERHUB_API int timerhub_loop_adopt(struct timerhub_loop *loop);

/*
 * Returns a descriptor that is readable when timerhub_loop_turn() has something to do. Only poll
 * it. Call timerhub_loop_turn() or timerhub_loop_settle() right before the wait, because the
 * descriptor does not know of timeouts that are set later.
 */
TIMERHUB_API int timerhub_loop_fd(struct timerhub_loop *loop);

/*
 * Returns how long the program may block, in ns; UINT64_MAX: no limit. Timeouts that were set since
 * the last turn count too. It returns 0 inside a callback, and on a thread that may not use the
 * loop.
 */
TIMERHUB_API uint64_t timerhub_loop_timeout(struct timerhub_loop *loop);

/*
 * Returns how long epoll_wait() or poll() may block, in ms, rounded up; -1: no limit. It returns 0
 * inside a callback, and on a thread or in a forked child that may not use the loop.
 */
TIMERHUB_API int timerhub_loop_timeout_ms(struct timerhub_loop *loop);

/*
 * Calls the callbacks that are due, those of the loop's queue first, and returns how many: at most
 * 256. While more are due, the descriptor stays readable. If it fails, callbacks may have been
 * called; see timerhub_loop(3).
 */
TIMERHUB_API int timerhub_loop_turn(struct timerhub_loop *loop);

/*
 * Call it before the program waits, if timeouts may have been set since the last
 * timerhub_loop_turn(). The loop's descriptor then becomes readable when the next timeout is due.
 * If ret_block_ns is not NULL, *ret_block_ns says how long the program may block. Calls no
 * callbacks.
 */
TIMERHUB_API int timerhub_loop_settle(struct timerhub_loop *loop, uint64_t *ret_block_ns);

/*
 * Sets the time of a manual loop, which begins at 0. Returns -EINVAL if the time would go back.
 * Call it right after the wait for events, before their handlers. Otherwise the delays that the
 * handlers set begin too early.
 */
TIMERHUB_API int timerhub_loop_advance(struct timerhub_loop *loop, uint64_t now_ns);

/*
 * Returns the time at which the loop last read its clock. If handlers of sockets use this time,
 * call timerhub_loop_update() right after the wait for events. Otherwise the handlers get a time
 * from before the wait.
 */
TIMERHUB_API uint64_t timerhub_loop_now(const struct timerhub_loop *loop);

/*
 * Reads the loop's clock and returns the time. If your handlers use timerhub_loop_now() or
 * timerhub_timeout_set_at(), make this call as soon as epoll_wait(2) has returned. In a callback,
 * and on a manual loop, the call does not read the clock, and returns the same as
 * timerhub_loop_now().
 */
TIMERHUB_API uint64_t timerhub_loop_update(struct timerhub_loop *loop);

/*
 * Returns the deadline for which the running callback was called, or UINT64_MAX outside the
 * callback of a timeout. For a period without drift, set the timeout to this deadline plus the
 * period.
 */
TIMERHUB_API uint64_t timerhub_loop_due(const struct timerhub_loop *loop);

/*
 * Returns the queue on which other threads can arm timers for this loop, or NULL if it has no hub.
 * Do not take its events or close it, because the loop does both.
 */
TIMERHUB_API struct timerhub_queue *timerhub_loop_queue(const struct timerhub_loop *loop);

/*
 * The type of the function that timerhub_loop_each() calls for each timeout. `context` is what the
 * caller has passed. If the function returns something other than 0, the walk ends.
 */
typedef int timerhub_loop_each_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                  void *context);

/*
 * Calls `fn` for every timeout that is added, in no particular order. `fn` may set, stop and remove
 * any timeout, but must not close the loop. Returns 0, or what `fn` has returned to end the walk.
 */
TIMERHUB_API int timerhub_loop_each(struct timerhub_loop *loop, timerhub_loop_each_fn *fn,
                                    void *context);

/*
 * The counters of a loop. `added` and `set` describe the present. All others have counted since the
 * loop was opened.
 */
struct timerhub_loop_stats {
	uint32_t size; /* sizeof(struct timerhub_loop_stats) */
	uint32_t reserved0;
	uint64_t added, set;  /* how many timeouts are added now, and how many of those are set */
	uint64_t turns;       /* how often timerhub_loop_turn() was called */
	uint64_t callbacks;   /* callbacks that turns have called, including those of the queue */
	uint64_t empty_wakes; /* turns that looked at a timeout, but called no callback */
	uint64_t turn_max_ns; /* how long the longest turn took */
	/*
	 * How late timeouts expired, as a histogram: bucket i counts those that were at least 2^i
	 * ns late and less than 2^(i+1) ns; bucket 0 begins at 0.
	 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	/* How many calls were refused because the loop belongs to another thread. */
	uint64_t refused;
	/*
	 * How many callbacks took slow_ns or longer, and how long these callbacks took altogether.
	 * Both are 0 if the loop was opened without TIMERHUB_LOOP_OBSERVABLE, and begin at 0 in a
	 * forked child.
	 */
	uint64_t slow_callbacks, slow_sum_ns;
	uint64_t reserved[5];
};

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* The function has the same name as the struct, which C++ allows. */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * Stores the loop's counters in *ret_stats. Before the call, set its `size` to 0 or to
 * sizeof(struct timerhub_loop_stats). The call looks at every timeout, because it counts those that
 * are set.
 */
TIMERHUB_API int timerhub_loop_stats(struct timerhub_loop *loop,
                                     struct timerhub_loop_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Stores in `ret` up to `max` callback functions that have taken slow_ns or longer, the one with
 * the longest call first. The loop remembers 32 functions. Returns how many it has stored, or
 * -EOPNOTSUPP if the loop is not observable.
 */
TIMERHUB_API int timerhub_loop_slow(struct timerhub_loop *loop, struct timerhub_slow_callback *ret,
                                    unsigned max);

/*
 * Adds a timeout to a loop. It is not set yet; when it is set and expires, timerhub_loop_turn()
 * calls `fn`. Errors are:
 *   -EAGAIN: timeouts_max timeouts are added.
 *   -EEXIST: the timeout is added already, or its memory is not zero.
 *   -EINVAL: its address is not a multiple of 8, as can happen in a packed struct.
 */
TIMERHUB_API int timerhub_timeout_add(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      timerhub_timeout_fn *fn);

/*
 * Removes a timeout from its loop. Afterwards the program may free the timeout's memory, or add the
 * timeout again. A timeout's own callback may also remove it.
 */
TIMERHUB_API int timerhub_timeout_remove(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout);

/*
 * Sets a timeout to expire in `delay_ns`. If it is set already, it is moved. Returns -ERANGE if the
 * deadline would be UINT64_MAX or later.
 */
TIMERHUB_API int timerhub_timeout_set(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      uint64_t delay_ns);

/*
 * Sets or moves a timeout to `deadline_ns` on the loop's clock. Returns -ERANGE for UINT64_MAX. In
 * a socket's handler, compute the deadline from timerhub_loop_update(), because timerhub_loop_now()
 * still returns the time before the wait.
 */
TIMERHUB_API int timerhub_timeout_set_at(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout, uint64_t deadline_ns);

/*
 * Stops a timeout, so that it does not expire. It stays added and can be set again. Returns 1 if it
 * was set, otherwise 0.
 */
TIMERHUB_API int timerhub_timeout_stop(struct timerhub_loop *loop,
                                       struct timerhub_timeout *timeout);

/* Returns 1 if the timeout is added to a loop, and 0 if it is not, or if `timeout` is NULL. */
TIMERHUB_API int timerhub_timeout_is_added(const struct timerhub_timeout *timeout);

/* Returns 1 if the timeout is set, and 0 if it is not, or if `timeout` is NULL. */
TIMERHUB_API int timerhub_timeout_is_set(const struct timerhub_timeout *timeout);

/*
 * Returns the deadline of a timeout, or UINT64_MAX if it is not set. The deadline that
 * timerhub_timeout_set() gives is a little too early, and is corrected when the loop next reads its
 * clock.
 */
TIMERHUB_API uint64_t timerhub_timeout_deadline(const struct timerhub_timeout *timeout);

/* ---- inline ---- */

/*
 * Defined if timerhub_timeout_set(), timerhub_timeout_set_at() and timerhub_timeout_stop() are
 * inlined into the caller. The inline versions check the loop and the thread, handle the frequent
 * cases, and call the library's functions for all others. To call a library's function directly,
 * put its name in parentheses: (timerhub_timeout_set)(...).
 */
#if defined(__GNUC__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define TIMERHUB_LOOP_INLINE 1
#endif

/* How many timeouts can be set by a delay before the loop has to read its clock again. */
#define TIMERHUB_LOOP_FRESH_MAX 64

/*
 * The first members of struct timerhub_loop, which the inline calls read and write. Only the
 * library may use them. They are part of the ABI.
 */
struct timerhub_loop_front {
	uint64_t base_ns;      /* when the loop last read its clock; delays are added to it */
	uint64_t delay_max_ns; /* longest valid delay: UINT64_MAX - 1 - base_ns */
	uint64_t thread;       /* the thread to which the loop belongs; 0: none yet */
	/*
	 * How many elements of `fresh` are used. If the array is full, the library must empty it
	 * before the next timeout is added to it.
	 *
	 * A manual loop never uses the array: the value is then always TIMERHUB_LOOP_FRESH_MAX + 1,
	 * and base_ns is the exact time. If the loop's hub is manual, the value is always
	 * TIMERHUB_LOOP_FRESH_MAX, so that the library is called and asks the hub for the time.
	 */
	uint32_t fresh_count;
	uint32_t turning; /* 1: the loop's thread is inside timerhub_loop_turn() */
	/*
	 * Timeouts that the program has set by a delay after the loop last read its clock (at
	 * base_ns). The delay counts from base_ns, so their deadlines are a little too early until
	 * the next reading.
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
 * Returns a number that identifies the calling thread. It is the thread pointer, because one
 * instruction can read that.
 */
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

/*
 * Returns 1 if the loop belongs to the calling thread and `timeout` was added to this loop. Returns
 * 0 otherwise, and also if `timeout` is NULL.
 */
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
