/* SPDX-License-Identifier: MIT */
/*
 * The calls for timeouts: add, remove, set, stop, and the walk over all of them. The loop's
 * statistics are here too.
 *
 * Setting a timeout means storing its deadline in it. A delay is added to the time at which the
 * loop last read its clock, so the timeout also enters the array `fresh`, and the next reading
 * corrects the deadline. If the loop or its hub is manual, reading the time is cheap, so each call
 * reads it, and the deadline is exact at once. A timeout with an exact deadline enters the list if
 * it is scheduled too late. During a turn it always enters the list, so that it does not expire in
 * that turn. Nothing is scheduled before the next turn or settle.
 *
 * The inline functions of timerhub_loop.h handle the frequent cases of set, set_at and stop, and
 * call the functions of this file for the others. Tested by tests/unit/test_loop.c and
 * tests/service/test_loop.c.
 */
#include <string.h>

#include "base/invariant.h"
#include "loop/access.h"
#include "loop/fresh_timeouts.h"

/* timerhub_loop.h has macros with the names of these functions, which this file defines. */
#undef timerhub_timeout_set
#undef timerhub_timeout_set_at
#undef timerhub_timeout_stop

/*
 * Returns the value of `owner` in a loop's timeouts: the complement of the loop's address, so that
 * a zeroed timeout belongs to no loop, not even to NULL.
 */
static uint64_t loop_owner(const struct timerhub_loop *loop)
{
	return ~(uint64_t)(uintptr_t)loop;
}

/*
 * Checks the thread and the arguments of a call. Compares `loop` with timeout->owner before
 * anything reads *loop, because if they differ, the loop may have been freed.
 */
static int timeout_check(struct timerhub_loop *loop, const struct timerhub_timeout *timeout)
{
	if (!loop || !timeout || timeout->owner != loop_owner(loop))
		return -EINVAL;
	return loop_check(loop);
}

/*
 * Returns false for an unaligned timeout, which a packed struct can have. The table needs bit 0 of
 * the address as a mark.
 */
static bool timeout_is_aligned(const struct timerhub_timeout *timeout)
{
	return (uintptr_t)timeout % _Alignof(struct timerhub_timeout) == 0;
}

int timerhub_timeout_add(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                         timerhub_timeout_fn *fn)
{
	static const struct timerhub_timeout zeroed;
	int result;

	if (!timeout || !fn || !timeout_is_aligned(timeout))
		return -EINVAL;
	result = loop_check_alive(loop);
	if (result < 0)
		return result;
	if (memcmp(timeout, &zeroed, sizeof(zeroed)) != 0)
		return -EEXIST;
	if (!places_take(&loop->places, timeout, fn))
		return -EAGAIN;
	timeout->deadline_ns = UINT64_MAX;
	timeout->owner = loop_owner(loop);
	loop_bind(loop);
	return 0;
}

int timerhub_timeout_remove(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	int result = timeout_check(loop, timeout);

	if (result < 0)
		return result;
	invariant(timeout->fresh == 0 || loop->front.fresh[timeout->fresh - 1] == timeout);
	fresh_forget(loop, timeout);
	places_put(&loop->places, timeout);
	*timeout = (struct timerhub_timeout){ .owner = 0 };
	return 0;
}

/*
 * Sets a timeout to an exact deadline. If the timeout is scheduled later than that, adds it to the
 * list of timeouts that the loop schedules before it blocks.
 */
static void timeout_set_to(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                           uint64_t deadline_ns)
{
	timeout->deadline_ns = deadline_ns;
	if (deadline_ns < timeout->filed_ns || loop->front.turning)
		fresh_list(loop, timeout);
}

/*
 * Sets a timeout by a delay, for a loop whose time the program gives (it is manual, or its hub is).
 * The deadline is exact, because the delay counts from the present time.
 */
static int timeout_set_exactly(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                               uint64_t delay_ns)
{
	uint64_t now_ns = loop->is_manual ? loop->front.base_ns : loop_read_ns(loop);

	if (delay_ns > UINT64_MAX - 1 - now_ns)
		return -ERANGE;
	timeout_set_to(loop, timeout, now_ns + delay_ns);
	return 0;
}

int timerhub_timeout_set(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                         uint64_t delay_ns)
{
	int result = timeout_check(loop, timeout);
	struct timerhub_loop_front *front;

	if (result < 0)
		return result;
	if (loop->is_exact)
		return timeout_set_exactly(loop, timeout, delay_ns);
	front = &loop->front;
	if (timeout->fresh == 0 && front->fresh_count == TIMERHUB_LOOP_FRESH_MAX)
		fresh_move_on(loop, loop_read_ns(loop)); /* this also changes delay_max_ns */
	if (delay_ns > front->delay_max_ns)
		return -ERANGE;
	if (timeout->fresh == 0) {
		front->fresh[front->fresh_count++] = timeout;
		timeout->fresh = (uint8_t)front->fresh_count;
	}
	timeout->deadline_ns = front->base_ns + delay_ns;
	return 0;
}

int timerhub_timeout_set_at(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                            uint64_t deadline_ns)
{
	int result = timeout_check(loop, timeout);

	if (result < 0)
		return result;
	if (deadline_ns == UINT64_MAX)
		return -ERANGE;
	fresh_forget(loop, timeout);
	timeout_set_to(loop, timeout, deadline_ns);
	return 0;
}

/*
 * Stops a timeout. Returns 1 if it was set, else 0. Its schedule entry stays; when the entry comes
 * up, the loop sees that the timeout is stopped.
 */
static inline int timeout_unset(struct timerhub_timeout *timeout)
{
	uint64_t before_ns = timeout->deadline_ns;

	timeout->deadline_ns = UINT64_MAX;
	return before_ns != UINT64_MAX;
}

/*
 * The rare cases of timerhub_timeout_stop(): a call of another thread, or a wrong argument. A
 * function of its own, so that the usual case needs no stack frame.
 */
static __attribute__((noinline, cold)) int timeout_stop_slowly(struct timerhub_loop *loop,
                                                               struct timerhub_timeout *timeout)
{
	int result = timeout_check(loop, timeout);

	return result < 0 ? result : timeout_unset(timeout);
}

int timerhub_timeout_stop(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	if (!loop || !timeout || timeout->owner != loop_owner(loop) ||
	    loop->front.thread != thread_self())
		return timeout_stop_slowly(loop, timeout);
	return timeout_unset(timeout);
}

int timerhub_timeout_is_added(const struct timerhub_timeout *timeout)
{
	return timeout && timeout->owner != 0;
}

int timerhub_timeout_is_set(const struct timerhub_timeout *timeout)
{
	return timerhub_timeout_deadline(timeout) != UINT64_MAX;
}

uint64_t timerhub_timeout_deadline(const struct timerhub_timeout *timeout)
{
	return timerhub_timeout_is_added(timeout) ? timeout->deadline_ns : UINT64_MAX;
}

/* ---- all timeouts ---- */

int timerhub_loop_each(struct timerhub_loop *loop, timerhub_loop_each_fn *fn, void *context)
{
	int result = fn ? loop_check(loop) : -EINVAL;

	for (uint32_t i = 0; result == 0 && i < loop->places.used; i++) {
		struct timerhub_timeout *timeout = place_timeout(&loop->places.table[i]);

		if (timeout)
			result = fn(loop, timeout, context);
	}
	return result;
}

/* Counts a timeout in *context, a uint64_t, if the timeout is set. */
static int each_count_set(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                          void *context)
{
	uint64_t *count = context;

	(void)loop;
	*count += timeout->deadline_ns != UINT64_MAX;
	return 0;
}

void loop_show_due(const struct timerhub_loop *loop)
{
	bool at_once = (loop->unquiet & LOOP_MUST_TURN) != 0;

	u64_store_relaxed(&loop->board->loop.due_ns,
	                  at_once ? loop->turn_ns : u64_max(loop->next_ns, loop->turn_ns));
}

void loop_show(const struct timerhub_loop *loop)
{
	struct board_loop *copy = &loop->board->loop;
	uint64_t ahead[AHEAD_RANGES];

	/* Relaxed is enough, because these numbers are only shown. */
	u64_store_relaxed(&copy->added, loop->places.taken);
	u64_store_relaxed(&copy->turns, loop->turns);
	u64_store_relaxed(&copy->callbacks, loop->counts.callbacks);
	u64_store_relaxed(&copy->empty_wakes, loop->counts.empty_wakes);
	u64_store_relaxed(&copy->turn_max_ns, loop->counts.turn_max_ns);
	u64_store_relaxed(&copy->refused, u64_load_relaxed(&loop->refused));
	for (unsigned i = 0; i < BOARD_LATENESS_BUCKETS; i++)
		u64_store_relaxed(&loop->board->owner.lateness[i], loop->counts.lateness[i]);
	/* Relaxed: only this thread writes it. */
	if (loop->turn_ns - u64_load_relaxed(&loop->board->owner.ahead_at_ns) >= AHEAD_EVERY_NS) {
		schedule_ahead(&loop->schedule, loop->turn_ns, ahead);
		board_show_ahead(&loop->board->owner, loop->turn_ns, ahead);
	}
	loop_show_due(loop);
	cell_reset(loop->cell);

	u64_store_release(&loop->cell->since_ns, loop->turn_ns);
}

int timerhub_loop_slow(struct timerhub_loop *loop, struct timerhub_slow_callback *ret, unsigned max)
{
	int result = ret || max == 0 ? loop_check_alive(loop) : -EINVAL;

	if (result == 0 && !loop->board)
		result = -EOPNOTSUPP;
	return result < 0 ? result : slow_table_list(&loop->board->slow, ret, max);
}

int timerhub_loop_stats(struct timerhub_loop *loop, struct timerhub_loop_stats *ret_stats)
{
	struct timerhub_loop_stats stats = { .size = sizeof(stats) };
	int result;

	if (!ret_stats || (ret_stats->size > 0 && ret_stats->size < sizeof(stats)))
		return -EINVAL;
	result = loop_check(loop);
	if (result < 0)
		return result;
	(void)timerhub_loop_each(loop, each_count_set, &stats.set);
	stats.added = loop->places.taken;
	stats.turns = loop->turns;
	stats.callbacks = loop->counts.callbacks;
	stats.empty_wakes = loop->counts.empty_wakes;
	stats.turn_max_ns = loop->counts.turn_max_ns;
	stats.refused = u64_load_relaxed(&loop->refused); /* relaxed, because it is only shown */
	if (loop->board) {
		stats.slow_callbacks = u64_load_relaxed(&loop->board->slow.count);
		stats.slow_sum_ns = u64_load_relaxed(&loop->board->slow.sum_ns);
	}
	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		stats.lateness[i] = loop->counts.lateness[i];
	*ret_stats = stats;
	return 0;
}
