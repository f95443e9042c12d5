/* SPDX-License-Identifier: MIT */
/*
 * The timeouts of one event loop; the manual is timerhub_loop(3).
 *
 * A timeout is a field of the caller's struct. To set, move or stop it is to store a number, which
 * the loop reads at a scheduled time, never later than the deadline, and schedules again if it has
 * moved, as Linux does with TCP's retransmission timer (net/ipv4/tcp_timer.c). Scheduled times are
 * rounded down to an eighth of the remaining time, as in kernel/time/timer.c, so that one wake-up
 * serves many timeouts.
 *
 * Nothing expires outside timerhub_loop_turn(). Call it right before the program blocks; or call it
 * elsewhere, and timerhub_loop_settle() right before the program blocks. Times are uint64_t
 * nanoseconds on the loop's clock. A delay counts from its call: the timeout is never early, and
 * late by at most the length of the turn in which it is set. In a manual loop and on a manual hub
 * it is exact.
 *
 * A loop belongs to the thread that uses it first, later to the one that adopts it; other threads
 * get -EPERM. A call returns 0 or a count, or a negative errno, having changed nothing. -EINVAL
 * means that an argument is NULL, or that the timeout is not added to this loop. A timeout is
 * zeroed before it is added, and stays at its address until it is removed or its loop is closed.
 *
 * In a forked child, turn, settle, fd, advance and add return -EOWNERDEAD until
 * timerhub_loop_adopt() has made the loop the child's. All other calls change only the child's
 * memory there, and any of its threads may make them.
 */
#ifndef TIMERHUB_LOOP_H
#define TIMERHUB_LOOP_H

#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

struct timerhub_loop;

/* A timeout. Its members are the library's, and part of the ABI. */
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
 * The callback of a timeout. A turn calls it when the timeout has expired, which is then no longer
 * set. It may make every call but turn, settle, advance and adopt, which return -EBUSY; it may also
 * remove and free the timeout, and close the loop and then its hub. It may throw an exception or
 * end its thread, but not leave by longjmp().
 */
typedef void timerhub_timeout_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* How to open a loop. A field that is 0 has its default. */
struct timerhub_loop_config {
	uint32_t size;         /* sizeof(struct timerhub_loop_config) */
	uint32_t flags;        /* TIMERHUB_LOOP_MANUAL, _OBSERVABLE, _LOCKED */
	uint32_t timeouts_max; /* most timeouts at one time, up to 67,108,862; 0: 1,048,576 */
	uint32_t clock; /* enum timerhub_clock; ignored with a hub, or if the loop is manual */
};

/* The loop reads no clock and has no descriptor: timerhub_loop_advance() gives its time. */
#define TIMERHUB_LOOP_MANUAL 1u
/* timerhub-top(1) can show the loop's counters, which are then in a memfd. */
#define TIMERHUB_LOOP_OBSERVABLE 2u
/*
 * Any thread may use the loop, one at a time, under a lock of the program: no call returns -EPERM.
 * Callbacks run on the thread that turns.
 */
#define TIMERHUB_LOOP_LOCKED 4u

/*
 * Opens a loop and reserves its memory, so that no later call allocates. With a hub, the loop has
 * the hub's clock, and a queue on which other threads arm timers.
 *
 * Returns -EINVAL also for a manual loop with a hub, -E2BIG for a config of a later version,
 * -EAGAIN if the hub is full, -EOWNERDEAD in a forked child of the hub's process, and the errors of
 * timerhub_queue_open(); of an observable loop also those of timerhub_open().
 */
TIMERHUB_API int timerhub_loop_open(struct timerhub_loop **ret_loop, struct timerhub *hub,
                                    const struct timerhub_loop_config *config);

/*
 * Removes all timeouts without calling them, and closes the loop; NULL is fine. The memory of the
 * timeouts must still be valid. Close a loop before its hub: also a timeout's callback may do both,
 * but in a callback of the loop's queue the hub cannot be closed.
 */
TIMERHUB_API void timerhub_loop_close(struct timerhub_loop *loop);

/*
 * Gives the loop, with all its timeouts, to the calling thread. The former thread may have ended.
 * Two threads must not use a loop at once: the program sees to that, for example by a lock.
 *
 * In a forked child it makes the copy of a loop without a hub the child's own. All timeouts stay as
 * they were; the parent's descriptor is closed here, and the next timerhub_loop_fd() makes another.
 *
 * Returns -EBUSY inside a turn, and -EOWNERDEAD in the child of a loop with a hub. In the child of
 * an observable loop it can fail as timerhub_loop_open() does. If the loop is locked, it does
 * nothing and returns 0, except in a forked child.
 */
TIMERHUB_API int timerhub_loop_adopt(struct timerhub_loop *loop);

/*
 * Returns the descriptor that becomes readable when the loop must turn. Poll it by level or by
 * edge; don't read it, close it or change its flags. It knows nothing of what was set after the
 * last turn or settle.
 *
 * Returns -EINVAL for a manual loop, -EMFILE, -ENFILE or -ENOMEM if the kernel gives no timerfd, or
 * the errno of timerfd_settime().
 */
TIMERHUB_API int timerhub_loop_fd(struct timerhub_loop *loop);

/*
 * Returns for how many ns the program may block: 0 if it must not, UINT64_MAX if there is no limit.
 * Reads the clock if something was set since the last reading. Returns 0 in a callback and on
 * another thread than the loop's, and UINT64_MAX for NULL.
 */
TIMERHUB_API uint64_t timerhub_loop_timeout(struct timerhub_loop *loop);

/*
 * Returns how long epoll_wait() or poll() may block, in ms, rounded up and at most INT_MAX; -1
 * means no limit. Returns 0 in a forked child that has not adopted the loop.
 */
TIMERHUB_API int timerhub_loop_timeout_ms(struct timerhub_loop *loop);

/*
 * Reads the clock, calls the callbacks of the queue and of the timeouts that are due, these in
 * order of their deadlines (equal ones in any order), and sets the descriptor. Returns how many it
 * called: at most 256, of them 128 of the queue. If more are due, the descriptor stays readable,
 * with a new edge. What a callback sets comes in a later turn.
 *
 * Returns -EBUSY in a callback. Any other errno means that the descriptor can't be set; all other
 * work is done then.
 */
TIMERHUB_API int timerhub_loop_turn(struct timerhub_loop *loop);

/*
 * Does what a turn does, without calling callbacks. Stores in *ret_block_ns, which may be NULL,
 * what timerhub_loop_timeout() would return. Errors as timerhub_loop_turn().
 */
TIMERHUB_API int timerhub_loop_settle(struct timerhub_loop *loop, uint64_t *ret_block_ns);

/*
 * Sets the time of a manual loop, which is 0 at first. Call it right after the wait, before the
 * sockets are served: a delay that is set before it counts from the earlier time, and is too short.
 * Returns -EINVAL if the loop is not manual or the time would go back, and -EBUSY in a callback.
 */
TIMERHUB_API int timerhub_loop_advance(struct timerhub_loop *loop, uint64_t now_ns);

/*
 * Returns the time of the loop's last reading of its clock, without reading it. In the handler of a
 * socket this is the time before the wait, perhaps long ago: call timerhub_loop_update() right
 * after the wait if you use now() or timerhub_timeout_set_at() there. A delay needs no such call.
 * Returns 0 for NULL.
 */
TIMERHUB_API uint64_t timerhub_loop_now(const struct timerhub_loop *loop);

/*
 * Reads the loop's clock and returns it, so that timerhub_loop_now() is right until the program
 * blocks again. Delays that were set before are counted from here, as settle does. Inside a
 * callback and in a manual loop it reads nothing, and returns timerhub_loop_now(). Returns 0 for
 * NULL, on a thread that may not use the loop, and in a forked child that has not adopted it.
 */
TIMERHUB_API uint64_t timerhub_loop_update(struct timerhub_loop *loop);

/*
 * Returns the deadline for which the callback is called, inside the callback of a timeout: with
 * timerhub_loop_now() it says how late the call is, and a period that adds to it does not drift.
 * Returns UINT64_MAX elsewhere.
 */
TIMERHUB_API uint64_t timerhub_loop_due(const struct timerhub_loop *loop);

/*
 * Returns the queue on which other threads arm timers for this loop, or NULL without a hub. Don't
 * drain, dispatch or close it.
 */
TIMERHUB_API struct timerhub_queue *timerhub_loop_queue(const struct timerhub_loop *loop);

/* Called by timerhub_loop_each() for each timeout. A result other than 0 ends the walk. */
typedef int timerhub_loop_each_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                  void *context);

/*
 * Calls `fn` for every added timeout, which it may remove, as any other; but not close the loop.
 * Returns 0, or the result of `fn` that has ended the walk.
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
	/* the turn's reading minus the deadline; bucket i: from 2^i ns on, bucket 0: from 0 */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	/* calls on another thread than the loop's: -EPERM, or 0 from timeout and update */
	uint64_t refused;
	uint64_t reserved[7];
};

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Fills *ret_stats, whose `size` must be 0 or the size that the caller knows. */
TIMERHUB_API int timerhub_loop_stats(struct timerhub_loop *loop,
                                     struct timerhub_loop_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Adds a timeout, which is not set yet; `fn` is its callback. Returns -EAGAIN if timeouts_max
 * timeouts are added, -EEXIST if this one is, or was not zeroed, and -EINVAL if its address is no
 * multiple of 8, as in a packed struct.
 */
TIMERHUB_API int timerhub_timeout_add(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      timerhub_timeout_fn *fn);

/* Removes a timeout, whose memory may then be freed or added again, also in its own callback. */
TIMERHUB_API int timerhub_timeout_remove(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout);

/*
 * Sets or moves a timeout to `delay_ns` from now. Returns -ERANGE if its deadline would not be
 * below UINT64_MAX.
 */
TIMERHUB_API int timerhub_timeout_set(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      uint64_t delay_ns);

/*
 * Sets or moves a timeout to exactly `deadline_ns` on the loop's clock. A deadline that has passed
 * is due in the next turn. In the handler of a socket, add to timerhub_loop_update(), because
 * timerhub_loop_now() is old there. Returns -ERANGE for UINT64_MAX.
 */
TIMERHUB_API int timerhub_timeout_set_at(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout, uint64_t deadline_ns);

/* Unsets a timeout. Returns 1 if it was set, else 0. */
TIMERHUB_API int timerhub_timeout_stop(struct timerhub_loop *loop,
                                       struct timerhub_timeout *timeout);

/* Returns 1 if the timeout is added to a loop, else 0, also for NULL. */
TIMERHUB_API int timerhub_timeout_is_added(const struct timerhub_timeout *timeout);

/* Returns 1 if the timeout is set, else 0, also for NULL. */
TIMERHUB_API int timerhub_timeout_is_set(const struct timerhub_timeout *timeout);

/*
 * Returns the deadline of a timeout, or UINT64_MAX if it is not set. A deadline that was set by a
 * delay moves to a later time when the loop next reads its clock.
 */
TIMERHUB_API uint64_t timerhub_timeout_deadline(const struct timerhub_timeout *timeout);

/* ---- inline ---- */

/*
 * The frequent cases of set, set_at and stop, which check loop and thread; the functions, called as
 * (timerhub_timeout_set)(...), do the rest.
 */
#if defined(__GNUC__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define TIMERHUB_LOOP_INLINE 1
#endif

/* delays that may count from one reading */
#define TIMERHUB_LOOP_FRESH_MAX 64

/* Of struct timerhub_loop: the library's, and part of the ABI. */
struct timerhub_loop_front {
	uint64_t base_ns;      /* time last read from the loop's clock; a delay begins then */
	uint64_t delay_max_ns; /* longest valid delay: UINT64_MAX - 1 - base_ns */
	uint64_t thread;       /* number of the thread that the loop belongs to; 0: none yet */
	/*
	 * entries in `fresh`; from 64 on timerhub_timeout_set() goes out of line and reads the
	 * clock: always with a manual hub; 65 in a manual loop, where base_ns is exact
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

/* One instruction: the thread pointer. */
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
 * Does the loop belong to this thread, and the timeout to the loop? Both may be NULL. If not, the
 * function decides.
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
