/* SPDX-License-Identifier: MIT */
/*
 * The timeouts of one event loop, such as the idle timeouts of a server's connections. The manual
 * is timerhub_loop(3).
 *
 * A timeout is a field of the caller's struct. Zero it, add it to a loop once, and then set, move
 * and stop it as often as you like: that only stores its deadline in the field. The loop reads the
 * field about once in the length of the timeout, so a timeout that is moved for every message costs
 * next to nothing. The field must stay at its address until the timeout is removed or its loop is
 * closed.
 *
 * Nothing expires outside timerhub_loop_turn(). Call it right before the program blocks; or call it
 * elsewhere, and timerhub_loop_settle() right before the program blocks.
 *
 * Times are uint64_t nanoseconds on the loop's clock. A delay counts from the call that sets it.
 * The timeout never expires early; it may be late by the time from that call to the loop's next
 * reading of the clock. Where the program itself gives the time, in a manual loop and on a manual
 * hub, it expires exactly.
 *
 * One thread uses a loop: the thread that uses it first, until another one adopts it. All others
 * get -EPERM. Calls return 0 or a count. On failure they return a negative errno and have changed
 * nothing; -EINVAL also means that a pointer is NULL or that the timeout is not added to this loop.
 *
 * In a forked child, turn, settle, fd, advance and add return -EOWNERDEAD until the child has
 * called timerhub_loop_adopt(). The other calls change only the child's memory, and any of its
 * threads may make them.
 */
#ifndef TIMERHUB_LOOP_H
#define TIMERHUB_LOOP_H

#include <timerhub.h>

#ifdef __cplusplus
extern "C" {
#endif

struct timerhub_loop;

/*
 * A timeout, to be zeroed and then given to timerhub_timeout_add(). Only the library may use its
 * members, which are here because the inline calls need them and are part of the ABI.
 */
struct timerhub_timeout {
	uint64_t deadline_ns; /* deadline on the loop's clock; UINT64_MAX: not set */
	uint64_t filed_ns;    /* when the loop next reads deadline_ns; UINT64_MAX: never */
	uint64_t owner;       /* complement of the loop's address; 0: not added */
	uint32_t place;       /* index of the timeout in the loop's table */
	uint8_t fresh;        /* 1 + its index in the array `fresh` of the loop; 0: not there */
	uint8_t is_listed;    /* 1: the next turn checks whether filed_ns must be earlier */
	uint8_t grid;         /* filed_ns is a multiple of 2^grid ns, or the deadline itself */
	uint8_t reserved;     /* always 0 */
};

/*
 * The callback of a timeout. timerhub_loop_turn() calls it when the timeout has expired. The
 * timeout is then no longer set, and the callback may set it again, or remove it and free its
 * memory. It may also close the loop, and the loop's hub after that.
 *
 * Inside a callback turn, settle, advance and adopt return -EBUSY. A callback may throw an
 * exception or end its thread, but must not be left by longjmp().
 */
typedef void timerhub_timeout_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout);

/* How to open a loop. Members that are 0 mean the default. */
struct timerhub_loop_config {
	uint32_t size;         /* sizeof(struct timerhub_loop_config) */
	uint32_t flags;        /* TIMERHUB_LOOP_MANUAL, _OBSERVABLE, _LOCKED */
	uint32_t timeouts_max; /* how many can be added at once, up to 67,108,862; 0: 1,048,576 */
	uint32_t clock;        /* an enum timerhub_clock; ignored with a hub or in a manual loop */
	/*
	 * From which duration on an observable loop records a callback as slow, for
	 * timerhub_loop_slow(). 0: 10 ms; UINT64_MAX: it records none.
	 */
	uint64_t slow_ns;
};

/*
 * Opens a manual loop: it reads no clock and has no descriptor, and the program gives it the time
 * by timerhub_loop_advance().
 */
#define TIMERHUB_LOOP_MANUAL 1u
/* Lets timerhub-top(1) show the loop's counters, by a copy of them in a memfd. */
#define TIMERHUB_LOOP_OBSERVABLE 2u
/*
 * Lets any thread use the loop while it holds a lock of the program, so no call returns -EPERM. The
 * library neither takes that lock nor sees that it is missing. Callbacks run on the thread that
 * calls timerhub_loop_turn().
 */
#define TIMERHUB_LOOP_LOCKED 4u

/*
 * Opens a loop and reserves all its memory, so that no later call has to allocate any. `hub` may be
 * NULL. With a hub, the loop has the hub's clock and gets a queue on which other threads can arm
 * timers. `config` may be NULL for the defaults.
 *
 * Returns -EINVAL if a manual loop is given a hub, -E2BIG if config has members that only a later
 * version knows, -EAGAIN if the hub is full, and -EOWNERDEAD in a forked child of the hub's
 * process. It can also fail as timerhub_queue_open() does or, if the loop is to be observable, as
 * timerhub_open() does.
 */
TIMERHUB_API int timerhub_loop_open(struct timerhub_loop **ret_loop, struct timerhub *hub,
                                    const struct timerhub_loop_config *config);

/*
 * Removes all timeouts, without calling their callbacks, and closes the loop. NULL is fine. The
 * memory of timeouts that are still added must be valid, because the loop writes to it.
 *
 * Close a loop before its hub. The callback of a timeout may close both; a callback of the loop's
 * queue may close the loop, but not the hub, because the hub is just calling it.
 */
TIMERHUB_API void timerhub_loop_close(struct timerhub_loop *loop);

/*
 * Gives the loop, with all its timeouts, to the calling thread. The thread that had it may have
 * ended. The program sees to it that two threads never use a loop at once, for example by a lock.
 *
 * In a forked child, the call makes the child's copy of the loop its own. The timeouts stay as they
 * were. The child's copy of the parent's descriptor is closed, and the next timerhub_loop_fd()
 * creates another one. A loop with a hub cannot be adopted there, because the hub's thread is in
 * the parent: -EOWNERDEAD.
 *
 * Returns -EBUSY during a turn. In the child it can also fail as timerhub_loop_open() does, if the
 * loop is observable. A loop that was opened with TIMERHUB_LOOP_LOCKED needs no adopting except in
 * a forked child, and the call returns 0.
 */
TIMERHUB_API int timerhub_loop_adopt(struct timerhub_loop *loop);

/*
 * Returns a descriptor that becomes readable when timerhub_loop_turn() has something to do. Poll it
 * for reading, by level or by edge, but never read it, close it or change its flags. A timeout that
 * is set after the last turn or settle does not make it readable, so call one of the two before the
 * program blocks.
 *
 * Returns -EINVAL for a manual loop, which has no descriptor; -EMFILE, -ENFILE or -ENOMEM if the
 * kernel creates no timerfd; or the error of timerfd_settime().
 */
TIMERHUB_API int timerhub_loop_fd(struct timerhub_loop *loop);

/*
 * Returns for how many ns the program may block: 0 if it must not block at all, UINT64_MAX if there
 * is no limit. Timeouts that were set since the last turn are taken into account; the call reads
 * the clock for them. Returns 0 inside a callback and on a thread that may not use the loop, and
 * UINT64_MAX if `loop` is NULL.
 */
TIMERHUB_API uint64_t timerhub_loop_timeout(struct timerhub_loop *loop);

/*
 * Returns how long epoll_wait() or poll() may block, in ms, rounded up and at most INT_MAX. -1
 * means that there is no limit, also because `loop` is NULL. Returns 0 inside a callback, on a
 * thread that may not use the loop, and in a forked child that has not adopted it.
 */
TIMERHUB_API int timerhub_loop_timeout_ms(struct timerhub_loop *loop);

/*
 * Expires timeouts: reads the clock, calls the callbacks of timers on the loop's queue, then those
 * of the timeouts that are due, in the order of their deadlines, and sets the descriptor for the
 * next timeout. Timeouts with equal deadlines come in any order.
 *
 * Returns how many callbacks it has called: at most 256, of which at most 128 are the queue's. If
 * more are due, the descriptor stays readable and gives a new edge. A timeout that a callback sets
 * expires in a later turn, even with a delay of 0.
 *
 * Returns -EPERM, -EOWNERDEAD, or -EBUSY inside a callback. Any other error means that the kernel
 * refused to set the descriptor; everything else has been done then, so callbacks may have run.
 */
TIMERHUB_API int timerhub_loop_turn(struct timerhub_loop *loop);

/*
 * Prepares the loop for the program's wait, without calling a callback: reads the clock, takes into
 * account what was set since the last turn, and sets the descriptor. Stores in *ret_block_ns for
 * how many ns the program may block, as timerhub_loop_timeout() would return it; ret_block_ns may
 * be NULL. It fails as timerhub_loop_turn() does, and then stores nothing.
 */
TIMERHUB_API int timerhub_loop_settle(struct timerhub_loop *loop, uint64_t *ret_block_ns);

/*
 * Sets the time of a manual loop. Before the first call the time is 0. Call it right after the
 * wait, before the sockets are served: a handler that runs earlier would set its delays from the
 * time before the wait, and they would expire too soon.
 *
 * Returns -EINVAL if the loop is not manual or the time would go back, and -EBUSY inside a
 * callback.
 */
TIMERHUB_API int timerhub_loop_advance(struct timerhub_loop *loop, uint64_t now_ns);

/*
 * Returns the time that the loop last read from its clock, without reading it again. In the handler
 * of a socket that is the time before the wait, which may be long ago. So if a handler calls
 * timerhub_loop_now() or timerhub_timeout_set_at(), call timerhub_loop_update() right after the
 * wait. timerhub_timeout_set() needs no such call. Returns 0 if `loop` is NULL.
 */
TIMERHUB_API uint64_t timerhub_loop_now(const struct timerhub_loop *loop);

/*
 * Reads the loop's clock and returns the time, so that timerhub_loop_now() is right in the handlers
 * of sockets. Call it right after the wait.
 *
 * The deadlines of timeouts that were set by a delay are exact afterwards. Inside a callback and in
 * a manual loop it reads nothing and returns timerhub_loop_now(). Returns 0 if `loop` is NULL, on a
 * thread that may not use the loop, and in a forked child that has not adopted it.
 */
TIMERHUB_API uint64_t timerhub_loop_update(struct timerhub_loop *loop);

/*
 * Tells the callback of a timeout for which deadline it was called. timerhub_loop_now() minus that
 * is how late the call is. A callback that sets its timeout to this deadline plus a period does not
 * drift. Outside such a callback it returns UINT64_MAX.
 */
TIMERHUB_API uint64_t timerhub_loop_due(const struct timerhub_loop *loop);

/*
 * Returns the queue on which other threads can arm timers for this loop, or NULL if the loop was
 * opened without a hub. Do not drain, dispatch or close it, because timerhub_loop_turn() takes its
 * events and timerhub_loop_close() closes it.
 */
TIMERHUB_API struct timerhub_queue *timerhub_loop_queue(const struct timerhub_loop *loop);

/*
 * The function that timerhub_loop_each() calls for each timeout, with the caller's `context`. A
 * result other than 0 ends the walk.
 */
typedef int timerhub_loop_each_fn(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                  void *context);

/*
 * Calls `fn` for every timeout that is added to the loop, set or not, in no particular order. `fn`
 * may set, stop and remove any timeout, but must not close the loop. Returns 0, or the result by
 * which `fn` has ended the walk.
 */
TIMERHUB_API int timerhub_loop_each(struct timerhub_loop *loop, timerhub_loop_each_fn *fn,
                                    void *context);

/* What timerhub_loop_stats() counts. All but `added` and `set` count since the loop was opened. */
struct timerhub_loop_stats {
	uint32_t size; /* sizeof(struct timerhub_loop_stats), as the library knows it */
	uint32_t reserved0;
	uint64_t added, set;  /* how many timeouts are added now, and how many of them are set */
	uint64_t turns;       /* calls of timerhub_loop_turn() */
	uint64_t callbacks;   /* callbacks that the turns have called, the queue's included */
	uint64_t empty_wakes; /* turns for a timeout that had been moved or stopped meanwhile */
	uint64_t turn_max_ns; /* longest turn, from its first reading of the clock to its last */
	/* how late timeouts were; bucket i counts those from 2^i ns on, bucket 0 from 0 ns on */
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
	/* calls that were refused because the loop belongs to another thread */
	uint64_t refused;
	/* callbacks that took slow_ns or longer, and how long they took; 0: not observable */
	uint64_t slow_callbacks, slow_sum_ns;
	uint64_t reserved[5];
};

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
/* the function has the name of the struct */
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/*
 * Stores the loop's counters in *ret_stats, whose `size` must be 0 or the sizeof that the caller
 * was compiled with. To count the timeouts that are set, it walks over all of them.
 */
TIMERHUB_API int timerhub_loop_stats(struct timerhub_loop *loop,
                                     struct timerhub_loop_stats *ret_stats);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/*
 * Stores up to `max` of the functions whose callbacks were slow since the loop was opened, those of
 * timeouts and of the queue, the one with the longest callback first. Returns how many it has
 * stored, or -EOPNOTSUPP if the loop is not observable. The loop remembers 32 functions.
 */
TIMERHUB_API int timerhub_loop_slow(struct timerhub_loop *loop, struct timerhub_slow_callback *ret,
                                    unsigned max);

/*
 * Adds a timeout, whose memory must be zeroed, to a loop. It is not set yet. When it expires,
 * timerhub_loop_turn() calls `fn`.
 *
 * Returns -EAGAIN if timeouts_max timeouts are added, -EEXIST if this one is added already or was
 * not zeroed, and -EINVAL if its address is no multiple of 8, as in a packed struct.
 */
TIMERHUB_API int timerhub_timeout_add(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      timerhub_timeout_fn *fn);

/*
 * Removes a timeout from its loop, so that its memory may be freed or added again. Its own callback
 * may do that too.
 */
TIMERHUB_API int timerhub_timeout_remove(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout);

/*
 * Sets a timeout to expire in `delay_ns`, or moves it there if it is set already. Returns -ERANGE
 * if its deadline would not be below UINT64_MAX.
 */
TIMERHUB_API int timerhub_timeout_set(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                                      uint64_t delay_ns);

/*
 * Sets a timeout to expire at `deadline_ns` on the loop's clock, or moves it there if it is set
 * already. If that time has passed, it expires in the next turn. Returns -ERANGE for UINT64_MAX.
 *
 * To compute a deadline in the handler of a socket, add to timerhub_loop_update(). There,
 * timerhub_loop_now() is still the time at which the loop began to wait.
 */
TIMERHUB_API int timerhub_timeout_set_at(struct timerhub_loop *loop,
                                         struct timerhub_timeout *timeout, uint64_t deadline_ns);

/* Stops a timeout, which stays added and may be set again. Returns 1 if it was set, else 0. */
TIMERHUB_API int timerhub_timeout_stop(struct timerhub_loop *loop,
                                       struct timerhub_timeout *timeout);

/* Returns 1 if the timeout is added to a loop, and 0 if it is not or is NULL. */
TIMERHUB_API int timerhub_timeout_is_added(const struct timerhub_timeout *timeout);

/* Returns 1 if the timeout is set, and 0 if it is not or is NULL. */
TIMERHUB_API int timerhub_timeout_is_set(const struct timerhub_timeout *timeout);

/*
 * Returns the deadline of a timeout, or UINT64_MAX if it is not set. If timerhub_timeout_set() has
 * set it, the deadline is a little too early until the loop next reads its clock and corrects it;
 * timerhub_loop_update() does so at once.
 */
TIMERHUB_API uint64_t timerhub_timeout_deadline(const struct timerhub_timeout *timeout);

/* ---- inline ---- */

/*
 * Defined where timerhub_timeout_set(), timerhub_timeout_set_at() and timerhub_timeout_stop() are
 * compiled into the caller. The inline versions check the loop and the thread, handle the frequent
 * cases, and leave the others to the library's functions. To call such a function directly, put its
 * name in parentheses: (timerhub_timeout_set)(...).
 */
#if defined(__GNUC__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define TIMERHUB_LOOP_INLINE 1
#endif

/* How many timeouts can be set by a delay before the loop has to read its clock again. */
#define TIMERHUB_LOOP_FRESH_MAX 64

/*
 * The beginning of struct timerhub_loop, which the inline calls read and write. Only the library
 * may use its members; they are part of the ABI.
 */
struct timerhub_loop_front {
	uint64_t base_ns;      /* time that the loop last read; a delay is added to it */
	uint64_t delay_max_ns; /* longest valid delay: UINT64_MAX - 1 - base_ns */
	uint64_t thread;       /* number of the thread that the loop belongs to; 0: none yet */
	/*
	 * How many entries of `fresh` are used. When all 64 are, the inline timerhub_timeout_set()
	 * calls the library, which reads the clock. With a manual hub this is always 64, so that
	 * each set calls the library. In a manual loop it is always 65: base_ns is exact there, so
	 * a deadline needs no later correction and no entry.
	 */
	uint32_t fresh_count;
	uint32_t turning; /* 1: the loop's thread is inside timerhub_loop_turn() */
	/*
	 * timeouts that were set by a delay since base_ns was read, whose deadlines are too early
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

/* Returns a number that identifies the calling thread: its thread pointer, by one instruction. */
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
 * Returns whether the loop belongs to the calling thread, and the timeout to the loop; either may
 * be NULL. If it returns 0, the library's function has to decide whether the call is an error.
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
