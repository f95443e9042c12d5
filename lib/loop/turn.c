/* SPDX-License-Identifier: MIT */
/*
 * Implements timerhub_loop_turn() and timerhub_loop_settle(), and the calls that say how long the
 * program may block. Tested by tests/unit/test_loop.c and test_loop_model.c.
 *
 * A turn expires timeouts in the order of their deadlines, although the schedule knows only the
 * times of their entries, which may be earlier. It takes the entries in the order of those times.
 * If the deadline of a timeout is later than its entry, the turn schedules the timeout again at the
 * deadline, even if that has passed too. So a timeout's callback is called only when the timeout
 * comes out of the schedule at its deadline, and by then all earlier ones have been called.
 *
 * If a callback sets a timeout, the timeout is not scheduled before the turn ends. Until then it is
 * in the array `fresh` or in the list of timeouts to be scheduled. So a callback that sets its
 * timeout to 0 again and again cannot keep the turn busy.
 *
 * Most turns have nothing to do. Such a turn is quiet: by one comparison with quiet_ns it finds
 * that it may return right after it has read the clock. fresh_list() sets quiet_ns to 0, because it
 * makes work for the next turn.
 *
 * turn_fetch() prefetches in two steps, because the address of a timeout is in its table element.
 * The element must be in the cache before the timeout can be prefetched.
 *
 * turn_expire_watched() must know when the first callback begins, to see how long it takes. If the
 * turn has called callbacks of the queue, the last of them ended at cell->since_ns. Otherwise the
 * turn has only read the clock, at turn_ns.
 *
 * turn_end() also runs if a callback throws an exception, because of -fexceptions. If a callback of
 * the queue threw it, `called` is still 0, but is_dispatching is set.
 */
#include <limits.h>

#include "base/histogram.h"
#include "base/probe.h"
#include "loop/access.h"
#include "loop/fresh_timeouts.h"
#include "loop/scheduling.h"

#define TURN_CALLBACKS_MAX 256 /* how many callbacks one turn may call */
#ifndef TURN_EVENTS_MAX
#define TURN_EVENTS_MAX 128 /* how many of those may be the queue's */
#endif
#define TURN_AHEAD 12 /* how many schedule entries turn_fetch() prefetches ahead */

/* The state of a turn that may call callbacks. */
struct turn {
	struct timerhub_loop *loop;
	uint64_t began_ns; /* when the turn began */
	unsigned called;   /* how many callbacks it has called */
	bool was_due;      /* a schedule entry was due when the turn began */
	int *ret_result;   /* where turn_end() stores what timerhub_loop_turn() returns */
};

/*
 * Returns true if the turn must call no more callbacks: it has called enough, or a callback has
 * closed the loop, or has forked and this is the child.
 */
static bool turn_is_over(const struct turn *turn)
{
	return turn->called >= TURN_CALLBACKS_MAX || turn->loop->is_closed ||
	       !loop_alive(turn->loop);
}

/* Prefetches table elements and timeouts that the turn will soon need. */
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

/* Returns true if a timeout of the loop may be due. */
static bool turn_may_expire(const struct timerhub_loop *loop)
{
	return loop->next_ns <= loop->turn_ns || (loop->unquiet & LOOP_STIRRED) != 0;
}

/* Records a callback that took slow_ns or longer. */
static __attribute__((noinline, cold)) void loop_count_slow(struct timerhub_loop *loop,
                                                            timerhub_timeout_fn *fn,
                                                            uint64_t took_ns, uint64_t now_ns)
{
	if (took_ns <=
	    now_ns) /* else the wall clock was set back, or the callback closed the loop */
		slow_table_add(&loop->board->slow, (uint64_t)(uintptr_t)fn, took_ns, now_ns);
}

/*
 * Calls a callback. If the loop is observable (`watched`), shows other processes that the callback
 * runs, and reads the clock afterwards, to see how long it took.
 */
static inline __attribute__((always_inline)) void turn_call(struct turn *turn,
                                                            timerhub_timeout_fn *fn,
                                                            struct timerhub_timeout *timeout,
                                                            bool watched)
{
	struct timerhub_loop *loop = turn->loop;

	if (watched)
		cell_begin(loop->cell, (uint64_t)(uintptr_t)fn, (uint64_t)(uintptr_t)timeout,
		           turn->called);
	probe2(callback_begin, fn, timeout);
	fn(loop, timeout);
	probe2(callback_end, fn, timeout);
	if (watched) {
		uint64_t now_ns = loop_read_ns(loop);
		uint64_t took_ns = now_ns - loop->read_ns;

		cell_end(loop->cell, now_ns);
		loop->read_ns = now_ns;
		if (took_ns >= loop->slow_ns)
			loop_count_slow(loop, fn, took_ns, now_ns);
	}
}

/*
 * Calls the callbacks of the timeouts that are due. It is inlined twice, so that one version has no
 * code for observable loops.
 */
static inline __attribute__((always_inline)) void turn_expire(struct turn *turn, bool watched)
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
		loop->counts.lateness[histogram_bucket(loop->turn_ns - timeout->deadline_ns)]++;
		loop->due_ns = timeout->deadline_ns;
		timeout->deadline_ns = UINT64_MAX;
		turn->called++;
		turn_call(turn, loop->places.table[place].fn, timeout, watched);
	}
}

/*
 * Calls the callbacks of the timeouts that are due, and lets other processes see which one is
 * running.
 */
static __attribute__((noinline)) void turn_expire_watched(struct turn *turn)
{
	struct timerhub_loop *loop = turn->loop;

	loop->read_ns = turn->called > 0 ? u64_load_relaxed(&loop->cell->since_ns) : loop->turn_ns;
	cell_enter(loop->cell, cell_state(loop->cell), loop->read_ns);
	turn_expire(turn, true);
}

/* ---- schedule, and say how long the program may block ---- */

/*
 * Reads the loop's clock, if it has one, and corrects the deadlines of the timeouts that were set
 * since the last reading.
 */
static inline __attribute__((always_inline)) void loop_read(struct timerhub_loop *loop)
{
	/* The usual loop has a clock and no hub, so test for that first. */
	if (__builtin_expect((loop->unquiet & (LOOP_HAS_NO_CLOCK | LOOP_HAS_HUB)) == 0, 1))
		loop->turn_ns = clock_now_ns(&loop->clock);
	else if ((loop->unquiet & LOOP_HAS_NO_CLOCK) != 0)
		return;
	else
		loop->turn_ns = loop_read_ns(loop);
	fresh_move_on(loop, loop->turn_ns);
}

/* Reads the clock, and schedules the timeouts that were set since the last turn. */
static void loop_look(struct timerhub_loop *loop)
{
	loop_read(loop);
	if (loop->listed_count > 0)
		fresh_file(loop);
}

/*
 * Returns how many ns are left until next_ns, which must be in the future. Returns UINT64_MAX if
 * the loop has nothing to wait for.
 */
static uint64_t loop_until_next_ns(const struct timerhub_loop *loop)
{
	return loop->next_ns == UINT64_MAX ? UINT64_MAX : loop->next_ns - loop->turn_ns;
}

/*
 * Returns how many ns the program may block, or UINT64_MAX if there is no limit. loop->next_ns must
 * be up to date.
 */
static uint64_t loop_block_ns(const struct timerhub_loop *loop)
{
	if ((loop->unquiet & LOOP_MUST_TURN) != 0 || loop->next_ns <= loop->turn_ns)
		return 0;
	return loop_until_next_ns(loop);
}

/* Sets loop->quiet_ns, the time before which a turn has nothing to do; 0: not known. */
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
		loop->quiet_ns = wake->set_ns; /* when the timerfd expires, it must be set anew */
}

/*
 * Makes the loop's descriptor become readable when the next turn is needed. Returns 0, or a
 * negative errno if a system call has failed.
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

/*
 * Ends a turn: schedules the timeouts that callbacks have set, and sets when the descriptor must
 * wake the loop. It is a cleanup function in turn_run(), so it also runs after an exception.
 */
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
	/*
	 * The dispatch may have left events in the queue, because there were too many, or because a
	 * callback threw an exception.
	 */
	if (wake_holds_events(&loop->wake))
		loop->unquiet |= LOOP_MUST_TURN;
	/* Callbacks have taken time and may have set timeouts, so read the clock again. */
	if (turn->called > 0 || loop->is_dispatching)
		loop_look(loop);
	loop->is_dispatching = false;
	counts->callbacks += turn->called;
	counts->empty_wakes += turn->was_due && turn->called == 0;
	if (loop->turn_ns > turn->began_ns)
		counts->turn_max_ns = u64_max(counts->turn_max_ns, loop->turn_ns - turn->began_ns);
	loop->due_ns = UINT64_MAX;
	loop->front.turning = 0;
	if (loop_alive(loop)) /* in a forked child the descriptor is the parent's */
		result = loop_set_wake(loop);
	else if (turn->called == 0)
		result = -EOWNERDEAD;
	if (result < 0)
		*turn->ret_result = result;
}

/*
 * Calls the callbacks of the queue, and then those of the timeouts that are due. Stores in
 * *ret_result what timerhub_loop_turn() returns.
 */
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
	if (!turn_may_expire(loop))
		return;
	if (loop->cell)
		turn_expire_watched(&turn);
	else
		turn_expire(&turn, false);
}

/*
 * The rare cases of loop_enter(): the call may have to be refused, or no thread owns the loop yet,
 * or the loop has TIMERHUB_LOOP_LOCKED and another thread has used it last.
 */
static __attribute__((noinline, cold)) int loop_enter_slowly(struct timerhub_loop *loop)
{
	int result = loop_check_idle(loop);

	if (result == 0)
		loop_bind(loop);
	return result;
}

/*
 * Makes the loop belong to the calling thread if a turn or settle may begin now. Returns 0 or a
 * negative errno.
 */
static inline int loop_enter(struct timerhub_loop *loop)
{
	return loop_is_idle(loop) ? 0 : loop_enter_slowly(loop);
}

/*
 * Does the rest of a timerhub_loop_turn() that cannot return at once. Returns how many callbacks it
 * has called, or a negative errno.
 */
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

/*
 * Does the rest of a timerhub_loop_settle() that cannot return at once, and stores how long the
 * program may block. Returns 0 or a negative errno.
 */
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

uint64_t timerhub_loop_update(struct timerhub_loop *loop)
{
	if (!loop_is_idle(loop) && loop_check_alive(loop) < 0)
		return 0;
	if (!loop->front.turning)
		loop_read(loop);
	return loop->turn_ns;
}

/*
 * Returns true if a timeout may still have to be scheduled. Also returns true if the hub is manual,
 * because the program may have changed its time.
 */
static bool loop_has_news(const struct timerhub_loop *loop)
{
	return loop->listed_count > 0 ||
	       (loop->is_exact ? !loop->is_manual : loop->front.fresh_count > 0);
}

/*
 * Does the work of timerhub_loop_timeout() if that cannot answer from next_ns alone, for example
 * because timeouts were set since the last turn.
 */
static __attribute__((noinline)) uint64_t loop_timeout_slowly(struct timerhub_loop *loop)
{
	if (!loop)
		return UINT64_MAX;
	if (loop_check(loop) < 0 || loop->front.turning)
		return 0;
	if (loop_has_news(loop)) {
		loop_look(loop);
		loop_rest(loop);
		if (loop->board)
			loop_show_due(loop);
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
	if (ns > (uint64_t)INT_MAX * NS_PER_MS)
		return ns == UINT64_MAX ? -1 : INT_MAX;
	return (int)((ns + NS_PER_MS - 1) / NS_PER_MS);
}
