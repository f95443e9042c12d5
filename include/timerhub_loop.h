/* SPDX-License-Identifier: MIT */
/*
 * The timeouts of one event loop; the manual is timerhub_loop(3).
 *
 * A timeout is a field of the caller's struct: to set, move or stop it is to store a number, which
 * the loop reads at a scheduled time, never later than the deadline, and schedules again if it has
 * moved, as Linux does with TCP's retransmission timer (net/ipv4/tcp_timer.c). Scheduled times are
 * rounded down to an eighth of the remaining time, as in kernel/time/timer.c, and so read together.
 *
 * Nothing expires outside timerhub_loop_turn(): call it right before the loop blocks, or
 * timerhub_loop_settle() there and the turn elsewhere. Times are uint64_t nanoseconds on the loop's
 * clock. A delay counts from its call by the loop's next reading: never early, late by the length
 * of that turn at most; exact in a manual loop and on a manual hub.
 *
 * A loop belongs to the thread that first uses it, later to the last that adopted it; others get
 * -EPERM. A call returns 0 or a count, or a negative errno, and then has changed nothing; -EINVAL:
 * NULL, or a timeout of another loop or none. A timeout is zeroed before it is added, and stays at
 * its address until it is removed or the loop closed. In a forked child, turn, settle, fd, advance
 * and add return -EOWNERDEAD until timerhub_loop_adopt() has made the loop the child's. The other
 * calls change only the child's memory; any of its threads may make them.
 */
#ifndef TIMERHUB_LOOP_H
#define TIMERHUB_LOOP_H

#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

struct timerhub_loop;

/* 32 bytes; the members are the library's, and part of the ABI. */
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
 * Called by a turn, with the timeout no longer set. May do everything but turn, settle, advance and
 * adopt (-EBUSY), also remove and close; may throw or end its thread; no longjmp().
 */
typedef void timerhub_timeout_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* 0 is the default of each field. */
struct timerhub_loop_config {
	uint32_t size;         /* sizeof(struct timerhub_loop_config) */
	uint32_t flags;        /* TIMERHUB_LOOP_MANUAL, _OBSERVABLE, _LOCKED */
	uint32_t timeouts_max; /* most timeouts at one time, up to 67,108,862; 0: 1,048,576 */
	uint32_t clock; /* enum timerhub_clock; ignored with a hub, or if the loop is manual */
};

/* no clock and no descriptor: the time is timerhub_loop_advance()'s */
#define TIMERHUB_LOOP_MANUAL 1u
/* timerhub-top(1) reads the counters, in a memfd */
#define TIMERHUB_LOOP_OBSERVABLE 2u
/*
 * Any thread may use the loop, one at a time, under a lock of the program: no call returns -EPERM.
 * Callbacks run on the thread that turns.
 */
#define TIMERHUB_LOOP_LOCKED 4u

/*
 * For timeouts_max timeouts. With a hub: its clock, and a queue for other threads' timers. -EINVAL:
 * also a manual loop with a hub; -E2BIG: a config of a later version; -EAGAIN: the hub is full;
 * -EOWNERDEAD; else as timerhub_queue_open(), observable as timerhub_open().
 */
TIMERHUB_API int timerhub_loop_open(struct timerhub_loop **ret_loop, struct timerhub *hub,
                                    const struct timerhub_loop_config *config);

/*
 * Removes all timeouts, whose memory must be valid, and calls none; before its hub. `loop` may be
 * NULL.
 */
TIMERHUB_API void timerhub_loop_close(struct timerhub_loop *loop);

/*
 * Gives the loop, with all its timeouts, to the calling thread. The former thread may have ended.
 * Two threads must not use a loop at once: the program sees to that, for example by a lock.
 *
 * In a forked child it makes the copy of a loop without a hub the child's own. All timeouts stay as
 * they were; the parent's descriptor is closed here, and the next timerhub_loop_fd() makes another.
 *
 * Returns -EBUSY inside a turn, and -EOWNERDEAD in the child of a loop with a hub. In a loop with
 * TIMERHUB_LOOP_LOCKED it does nothing and returns 0, but for the forked child. Observable, in a
 * child: errors as timerhub_loop_open().
 */
TIMERHUB_API int timerhub_loop_adopt(struct timerhub_loop *loop);

/*
 * To poll, by level or edge; don't read or close it. What was set after the last turn or settle
 * does not count yet. -EINVAL: manual; -EMFILE, -ENFILE, -ENOMEM, or timerfd_settime()'s.
 */
TIMERHUB_API int timerhub_loop_fd(struct timerhub_loop *loop);

/*
 * For how many ns to block: 0: don't; UINT64_MAX: for ever. May read the clock. UINT64_MAX for
 * NULL, 0 in a callback and on another thread.
 */
TIMERHUB_API uint64_t timerhub_loop_timeout(struct timerhub_loop *loop);

/* In ms, rounded up, at most INT_MAX; -1: for ever; 0 in a forked child. */
TIMERHUB_API int timerhub_loop_timeout_ms(struct timerhub_loop *loop);

/*
 * Reads the clock, calls what is due, in order, and the queue's callbacks, and sets the descriptor.
 * Returns how many: at most 256, of them 128 of the queue; if more are due, the descriptor stays
 * readable, with a new edge. What a callback sets comes in a later turn. -EBUSY: in a callback. Any
 * other errno: the descriptor can't be set; all other work is done.
 */
TIMERHUB_API int timerhub_loop_turn(struct timerhub_loop *loop);

/* The same without callbacks. `*ret_block_ns` (or NULL) is what timerhub_loop_timeout() returns. */
TIMERHUB_API int timerhub_loop_settle(struct timerhub_loop *loop, uint64_t *ret_block_ns);

/* Of a manual loop, 0 at first. -EINVAL: not manual, or back in time; -EBUSY. */
TIMERHUB_API int timerhub_loop_advance(struct timerhub_loop *loop, uint64_t now_ns);

/* By the last turn, settle or timeout; 0 for NULL. */
TIMERHUB_API uint64_t timerhub_loop_now(const struct timerhub_loop *loop);

/* For other threads' timers, or NULL. Don't drain, dispatch or close it. */
TIMERHUB_API struct timerhub_queue *timerhub_loop_queue(const struct timerhub_loop *loop);

typedef int timerhub_loop_each_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                  void *context);

/* Every added timeout; `fn` may remove any, not close the loop. Returns 0 or `fn`'s result. */
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

/* `size` is 0, or the size that the caller knows. */
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

/* Then its memory may be freed, or added again. */
TIMERHUB_API int timerhub_timeout_remove(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout);

/* In `delay_ns`. -ERANGE: not below UINT64_MAX. */
TIMERHUB_API int timerhub_timeout_set(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      uint64_t delay_ns);

/* Exactly; a past one is due in the next turn. -ERANGE: UINT64_MAX. */
TIMERHUB_API int timerhub_timeout_set_at(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout, uint64_t deadline_ns);

/* 1: it was set; 0. */
TIMERHUB_API int timerhub_timeout_stop(struct timerhub_loop *loop,
                                       struct timerhub_timeout *timeout);

/* 1 or 0; NULL: 0. */
TIMERHUB_API int timerhub_timeout_is_added(const struct timerhub_timeout *timeout);
TIMERHUB_API int timerhub_timeout_is_set(const struct timerhub_timeout *timeout);

/* UINT64_MAX: not set. A delay's moves with the next reading. */
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

/* May this thread use this timeout with this loop? Both may be NULL. */
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
