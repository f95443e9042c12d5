/* SPDX-License-Identifier: MIT */
/*
 * Makes a turn of a loop. A turn reads the clock and schedules the timeouts that were set since the
 * last turn. It then dispatches the queue and calls the callbacks of due timeouts. At its end, a
 * turn computes how long the program may block. Tested by tests/unit/test_loop.c.
 *
 * Callbacks are called in the order of the deadlines. The schedule returns places in the order of
 * their scheduled times. The deadline of a returned place may be later than its scheduled time,
 * even if both have passed. The turn then schedules the place again at the deadline. When the
 * schedule returns a place at the deadline, the turn calls the callback. If a callback sets a
 * timeout, the timeout is in the array `fresh` or in the list until the turn ends. Until then, the
 * timeout does not expire.
 */
#include <errno.h>

#include "loop/fresh_timeouts.h"
#include "loop/scheduling.h"

#define TURN_CALLBACKS_MAX 256 /* largest number of callbacks in one turn */
#define TURN_EVENTS_MAX 128    /* largest number of the queue's callbacks in one turn */
/* turn_fetch() prefetches the timeout of each place TURN_AHEAD places in advance */
#define TURN_AHEAD 12

/* One call of timerhub_loop_turn(). */
struct turn {
	struct timerhub_loop *loop;
	unsigned called;     /* number of callbacks that the turn has called */
	bool is_dispatching; /* true: the turn is calling callbacks of the queue */
	bool is_full;        /* true: the queue holds more events */
	int *ret_result;     /* the turn's result becomes a negative errno if its end fails */
};

static bool turn_is_over(const struct turn *turn)
{
	return turn->called >= TURN_CALLBACKS_MAX || turn->loop->is_closed ||
	       !loop_alive(turn->loop);
}

/* Prefetch the memory of places that the turn will soon take from the schedule. */
CPU_FETCHES void turn_fetch(const struct timerhub_loop *loop)
{
	uint32_t far = schedule_peek(&loop->schedule, 2 * TURN_AHEAD);
	uint32_t near = schedule_peek(&loop->schedule, TURN_AHEAD);

	if (far != SLOT_NONE) {
		__builtin_prefetch(&loop->places.table[far]);
		__builtin_prefetch(&loop->filings[far], 1);
	}
	if (near != SLOT_NONE)
		__builtin_prefetch(loop->places.table[near].timeout, 1);
}

/* Returns whether a timeout of the loop may be due. */
static bool turn_may_expire(const struct timerhub_loop *loop)
{
	return loop->next_ns <= loop->turn_ns || loop->is_stirred;
}

static void turn_expire(struct turn *turn)
{
	struct timerhub_loop *loop = turn->loop;

	while (!turn_is_over(turn)) {
		uint32_t place = schedule_take(&loop->schedule, loop->turn_ns, false);
		struct timerhub_timeout *timeout;

		if (place == SLOT_NONE)
			return;
		turn_fetch(loop);
		timeout = loop_recheck(loop, place, loop->schedule.taken_ns);
		if (!timeout)
			continue;
		timeout->deadline_ns = UINT64_MAX;
		turn->called++;
		loop->places.table[place].fn(loop, timeout);
	}
}

/* Read the clock, and schedule the timeouts that were set since the last reading of the clock. */
static void turn_read(struct timerhub_loop *loop)
{
	loop->turn_ns = loop_read_ns(loop);
	fresh_move_on(loop, loop->turn_ns);
	if (loop->listed_count > 0)
		fresh_file(loop);
}

/*
 * Compute how long the program may block, and set the time at which the descriptor becomes
 * readable. Returns 0, or the negative errno with which the kernel has refused that.
 */
static int turn_settle(struct timerhub_loop *loop, bool is_full)
{
	int result;

	loop_rest(loop);
	loop->timeout_ns = UINT64_MAX;
	if (loop->next_ns != UINT64_MAX)
		loop->timeout_ns =
			loop->next_ns > loop->turn_ns ? loop->next_ns - loop->turn_ns : 0;
	result = wake_set(&loop->wake, loop->next_ns, loop->turn_ns);
	if (result == -ECANCELED || is_full)
		loop->timeout_ns = 0;
	return result == -ECANCELED ? 0 : result;
}

/*
 * Ends a turn. The compiler's cleanup attribute calls this function, even if a callback throws an
 * exception or ends the thread.
 */
static void turn_end(struct turn *turn)
{
	struct timerhub_loop *loop = turn->loop;
	int result = 0;

	*turn->ret_result = (int)turn->called;
	if (loop->is_closed) {
		loop_free(loop);
		return;
	}
	/*
	 * The callbacks have taken time and may have set timeouts, so turn_end() reads the clock
	 * again.
	 */
	if (turn->called > 0 || turn->is_dispatching)
		turn_read(loop);
	loop->front.turning = 0;
	if (loop_alive(loop)) /* in a forked child the descriptors belong to the parent */
		result = turn_settle(loop, turn->is_full);
	if (result < 0)
		*turn->ret_result = result;
}

/* This file is compiled with -fexceptions, so that turn_end() runs when the stack is unwound. */
static void turn_run(struct timerhub_loop *loop, int *ret_result)
{
	__attribute__((cleanup(turn_end))) struct turn turn = {
		.loop = loop,
		.ret_result = ret_result,
	};

	loop->front.turning = 1;
	turn.is_dispatching = true;
	turn.called = wake_dispatch(&loop->wake, TURN_EVENTS_MAX, &turn.is_full);
	turn.is_dispatching = false;
	if (turn_may_expire(loop))
		turn_expire(&turn);
}

int timerhub_loop_turn(struct timerhub_loop *loop)
{
	int result = loop_check(loop);

	if (result < 0)
		return result;
	if (loop->front.turning)
		return -EBUSY;
	turn_read(loop);
	if (!loop->wake.hub && !turn_may_expire(loop))
		return turn_settle(loop, false);
	turn_run(loop, &result);
	return result;
}
