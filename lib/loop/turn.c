/* SPDX-License-Identifier: MIT */
/*
 * Makes a turn of a loop, and says how long the program may block. Tested by tests/unit/test_loop.c
 * and test_loop_model.c.
 *
 * The schedule returns places in the order of their scheduled times. If the deadline of a returned
 * place is later, even if both have passed, the turn schedules the place again, at the deadline; so
 * callbacks are called in the order of the deadlines. A timeout that a callback sets is in the
 * array `fresh` or in the list until the turn ends, and does not expire before.
 */
#include <limits.h>

#include "loop/access.h"
#include "loop/fresh_timeouts.h"
#include "loop/scheduling.h"

#define TURN_CALLBACKS_MAX 256 /* largest number of callbacks in one turn */
#ifndef TURN_EVENTS_MAX
#define TURN_EVENTS_MAX 128 /* largest number of the queue's callbacks in one turn */
#endif
#define MS_NS 1000000u
#define TURN_AHEAD 12 /* places by which turn_fetch() is in advance */

/* One call of timerhub_loop_turn(). */
struct turn {
	struct timerhub_loop *loop;
	uint64_t began_ns;
	unsigned called; /* number of callbacks that the turn has called */
	bool was_due;    /* true: a schedule entry was due when the turn began */
	int *ret_result; /* the turn's result becomes a negative errno if its end fails */
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
		__builtin_prefetch(place_timeout(&loop->places.table[near]), 1);
}

/* Returns whether a timeout of the loop may be due. */
static bool turn_may_expire(const struct timerhub_loop *loop)
{
	return loop->next_ns <= loop->turn_ns || (loop->unquiet & LOOP_STIRRED) != 0;
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
		loop->counts.lateness[bits_highest((loop->turn_ns - timeout->deadline_ns) | 1)]++;
		timeout->deadline_ns = UINT64_MAX;
		turn->called++;
		loop->places.table[place].fn(loop, timeout);
	}
}

/* ---- schedule, and say how long the program may block ---- */

static inline __attribute__((always_inline)) void loop_read(struct timerhub_loop *loop)
{
	if (__builtin_expect((loop->unquiet & (LOOP_HAS_NO_CLOCK | LOOP_HAS_HUB)) == 0, 1))
		loop->turn_ns = clock_now_ns(&loop->clock);
	else if ((loop->unquiet & LOOP_HAS_NO_CLOCK) != 0)
		return;
	else
		loop->turn_ns = loop_read_ns(loop);
	fresh_move_on(loop, loop->turn_ns);
}

/* Read the clock, and schedule the timeouts that were set since the last reading of the clock. */
static void loop_look(struct timerhub_loop *loop)
{
	loop_read(loop);
	if (loop->listed_count > 0)
		fresh_file(loop);
}

/* While the first schedule entry is not due. */
static uint64_t loop_until_next_ns(const struct timerhub_loop *loop)
{
	return loop->next_ns == UINT64_MAX ? UINT64_MAX : loop->next_ns - loop->turn_ns;
}

static uint64_t loop_block_ns(const struct timerhub_loop *loop)
{
	if ((loop->unquiet & LOOP_MUST_TURN) != 0 || loop->next_ns <= loop->turn_ns)
		return 0;
	return loop_until_next_ns(loop);
}

/* Find until when turns have nothing to do, as long as nothing is listed. */
static void loop_find_quiet(struct timerhub_loop *loop)
{
	const struct wake *wake = &loop->wake;

	loop->quiet_ns = 0;
	if ((loop->unquiet & ~(uint32_t)LOOP_HAS_NO_CLOCK) != 0 || loop->listed_count > 0 ||
	    loop->first != SLOT_NONE || loop->clock.goes_back)
		return;
	if (wake->deadline_fd.fd < 0)
		loop->quiet_ns = loop->next_ns;
	else if (wake_fd_is_set(wake, loop->next_ns, loop->turn_ns))
		loop->quiet_ns = wake->set_ns; /* it expires then, perhaps early, and is set anew */
}

/*
 * Find the time at which the loop must wake, and make the descriptor readable then. Returns 0, or
 * the negative errno with which the kernel has refused that.
 */
static int loop_set_wake(struct timerhub_loop *loop)
{
	bool must_turn = (loop->unquiet & LOOP_MUST_TURN) != 0;
	int result;

	loop_rest(loop);
	result = wake_set(&loop->wake, must_turn ? 0 : loop->next_ns, loop->turn_ns);
	if (result == -ECANCELED) {
		loop->unquiet |= LOOP_MUST_TURN;
		result = 0;
	}
	loop_find_quiet(loop);
	if (loop->board)
		loop_show(loop);
	return result;
}

/* By the cleanup attribute also if a callback throws an exception or ends the thread. */
static void turn_end(struct turn *turn)
{
	struct timerhub_loop *loop = turn->loop;
	struct loop_counts *counts = &loop->counts;
	int result = 0;

	*turn->ret_result = (int)turn->called;
	if (loop->is_closed) {
		loop_free(loop);
		return;
	}
	if (wake_holds_events(&loop->wake)) /* also if an exception left a callback */
		loop->unquiet |= LOOP_MUST_TURN;
	/* The callbacks have taken time and may have set timeouts, so read the clock again. */
	if (turn->called > 0 || loop->is_dispatching)
		loop_look(loop);
	loop->is_dispatching = false;
	counts->callbacks += turn->called;
	counts->empty_wakes += turn->was_due && turn->called == 0;
	if (loop->turn_ns > turn->began_ns)
		counts->turn_max_ns = u64_max(counts->turn_max_ns, loop->turn_ns - turn->began_ns);
	loop->front.turning = 0;
	if (loop_alive(loop)) /* in a forked child the descriptors belong to the parent */
		result = loop_set_wake(loop);
	else if (turn->called == 0)
		result = -EOWNERDEAD;
	if (result < 0)
		*turn->ret_result = result;
}

/* This file is compiled with -fexceptions, so that turn_end() runs when the stack is unwound. */
static __attribute__((noinline)) void turn_run(struct timerhub_loop *loop, int *ret_result)
{
	__attribute__((cleanup(turn_end))) struct turn turn = {
		.loop = loop,
		.began_ns = loop->turn_ns,
		.was_due = loop->next_ns <= loop->turn_ns,
		.ret_result = ret_result,
	};

	loop->front.turning = 1;
	loop->turn_thread = loop->front.thread;
	loop->quiet_ns = 0;
	loop->is_dispatching = true;
	turn.called = wake_dispatch(&loop->wake, TURN_EVENTS_MAX);
	loop->is_dispatching = false;
	if (turn_may_expire(loop))
		turn_expire(&turn);
}

/* The rest of loop_enter(): a mistake, or the loop is unbound, or another thread used it last. */
static __attribute__((noinline, cold)) int loop_enter_slowly(struct timerhub_loop *loop)
{
	int result = loop_check_idle(loop);

	if (result == 0)
		loop_bind(loop);
	return result;
}

/* Begin a turn or settle: check the call, and make the calling thread the loop's. */
static inline int loop_enter(struct timerhub_loop *loop)
{
	return loop_is_idle(loop) ? 0 : loop_enter_slowly(loop);
}

static __attribute__((noinline)) int turn_slowly(struct timerhub_loop *loop)
{
	int result = 0;

	loop->unquiet &= ~(uint32_t)LOOP_MUST_TURN;
	if (loop->listed_count > 0)
		fresh_file(loop);
	if (!loop->wake.hub && !turn_may_expire(loop))
		return loop_set_wake(loop);
	turn_run(loop, &result);
	return result;
}

int timerhub_loop_turn(struct timerhub_loop *loop)
{
	int result = loop_enter(loop);

	if (result < 0)
		return result;
	loop->turns++;
	loop_read(loop);
	return loop->turn_ns < loop->quiet_ns ? 0 : turn_slowly(loop);
}

static __attribute__((noinline)) int settle_slowly(struct timerhub_loop *loop,
                                                   uint64_t *ret_block_ns)
{
	int result;

	if (loop->listed_count > 0)
		fresh_file(loop);
	result = loop_set_wake(loop);
	if (result == 0 && ret_block_ns)
		*ret_block_ns = loop_block_ns(loop);
	return result;
}

int timerhub_loop_settle(struct timerhub_loop *loop, uint64_t *ret_block_ns)
{
	int result = loop_enter(loop);

	if (result < 0)
		return result;
	loop_read(loop);
	if (loop->turn_ns >= loop->quiet_ns)
		return settle_slowly(loop, ret_block_ns);
	if (ret_block_ns)
		*ret_block_ns = loop_until_next_ns(loop);
	return 0;
}

/* Returns whether something was set since the loop last looked, or a manual hub may have moved. */
static bool loop_has_news(const struct timerhub_loop *loop)
{
	return loop->listed_count > 0 ||
	       (loop->is_exact ? !loop->is_manual : loop->front.fresh_count > 0);
}

/* The rest of timerhub_loop_timeout(): something was set, or the call is a mistake. */
static __attribute__((noinline)) uint64_t loop_timeout_slowly(struct timerhub_loop *loop)
{
	if (!loop)
		return UINT64_MAX;
	if (loop_check(loop) < 0 || loop->front.turning)
		return 0;
	if (loop_has_news(loop)) {
		loop_look(loop);
		loop_rest(loop);
	}
	return loop_block_ns(loop);
}

uint64_t timerhub_loop_timeout(struct timerhub_loop *loop)
{
	if (!loop || loop->front.thread != thread_self() ||
	    loop->front.fresh_count != loop->idle_count || loop->turn_ns >= loop->quiet_ns)
		return loop_timeout_slowly(loop);
	return loop_until_next_ns(loop);
}

int timerhub_loop_timeout_ms(struct timerhub_loop *loop)
{
	uint64_t ns = timerhub_loop_timeout(loop);

	if (loop && !loop_alive(loop))
		return 0;
	if (ns > (uint64_t)INT_MAX * MS_NS)
		return ns == UINT64_MAX ? -1 : INT_MAX;
	return (int)((ns + MS_NS - 1) / MS_NS);
}
