/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes loops, gives a manual loop its time, and returns a loop's descriptor, queue and
 * time.
 *
 * If a callback closes the loop, the loop is freed at the end of the turn. But
 * timerhub_loop_close() closes the queue at once, because the callback may close the hub next. If
 * the queue is being dispatched, only its timers are cancelled at once, and the queue is closed at
 * the end of the turn.
 *
 * Tested by tests/unit/test_loop.c and tests/service/test_loop.c.
 */
#include <stdlib.h>

#include "base/cancellation.h"
#include "base/options.h"
#include "loop/access.h"
#include "loop/fresh_timeouts.h"
#include "queue/queue.h"

/*
 * The size of the config in the first version. Programs that were compiled with that version still
 * pass it.
 */
#define LOOP_CONFIG_LEAST_BYTES offsetof(struct timerhub_loop_config, slow_ns)

#define LOOP_TIMEOUTS_DEFAULT (1u << 20)

/* ---- open ---- */

static int loop_config_check(const struct timerhub_loop_config *config, const struct timerhub *hub)
{
	uint32_t known =
		TIMERHUB_LOOP_OBSERVABLE | TIMERHUB_LOOP_LOCKED | (hub ? 0 : TIMERHUB_LOOP_MANUAL);

	return (config->flags & ~known) != 0 || config->timeouts_max > SCHEDULE_SLOTS_MAX ||
	                       config->clock > TIMERHUB_CLOCK_REALTIME
	               ? -EINVAL
	               : 0;
}

static int loop_open_board(struct timerhub_loop *loop)
{
	struct timerhub_config about = {
		.flags = TIMERHUB_OBSERVABLE | (loop->is_exact ? TIMERHUB_MANUAL : 0),
		.timers_max = loop->places.max,
		.clock = loop->clock_kind,
		.thread_name = "loop",
		.slow_ns = loop->slow_ns,
	};
	int result = board_open(&loop->board, &loop->board_fd, &about);

	if (result < 0)
		return result;
	loop->board->header.kind = BOARD_LOOP;
	u64_store_relaxed(&loop->board->loop.address, (uint64_t)(uintptr_t)loop);
	u64_store_relaxed(&loop->board->loop.due_ns, UINT64_MAX);
	loop->unquiet |= LOOP_IS_SHOWN;
	loop->cell = &loop->board->loop.cell;
	if (loop->wake.queue && loop->wake.queue->hub_board)
		loop->cell = &loop->wake.queue->counts->loop;
	u64_store_relaxed(&loop->cell->loop, (uint64_t)(uintptr_t)loop);
	if (loop->wake.queue)
		queue_watch(loop->wake.queue, loop->board, loop->cell);
	board_announce(loop->board, true);
	return 0;
}

int loop_renew_board(struct timerhub_loop *loop)
{
	struct board *parents = loop->board;
	int parents_fd = loop->board_fd, result;

	if (!parents)
		return 0;
	result = loop_open_board(loop);
	if (result == 0)
		board_close(parents, parents_fd);
	return result;
}

static int loop_open_tables(struct timerhub_loop *loop, uint32_t max)
{
	int result = memory_reserve(&loop->memory, max * sizeof(struct timer_filing));

	if (result < 0)
		return result;
	loop->filings = loop->memory.base;
	result = places_open(&loop->places, max);
	return result == 0 ? schedule_open(&loop->schedule, loop->filings, max) : result;
}

static int loop_open(struct timerhub_loop *loop, struct timerhub *hub,
                     const struct timerhub_loop_config *config)
{
	uint32_t max = config->timeouts_max > 0 ? config->timeouts_max : LOOP_TIMEOUTS_DEFAULT;
	int result;

	loop->next_ns = UINT64_MAX;
	loop->due_ns = UINT64_MAX;
	loop->first = SLOT_NONE;
	loop->gone = (struct timerhub_timeout){ .deadline_ns = UINT64_MAX, .filed_ns = UINT64_MAX };
	loop->is_manual = (config->flags & TIMERHUB_LOOP_MANUAL) != 0;
	loop->is_locked = (config->flags & TIMERHUB_LOOP_LOCKED) != 0;
	loop->clock_kind = config->clock;
	loop->slow_ns = config->slow_ns > 0 ? config->slow_ns : BOARD_SLOW_DEFAULT_NS;
	loop->is_exact = loop->is_manual || (hub && timerhub_wake_fd(hub) >= 0);
	loop->unquiet = loop->is_manual ? LOOP_HAS_NO_CLOCK : hub ? LOOP_HAS_HUB : 0;
	clock_init(&loop->clock, config->clock, loop->is_manual);
	result = wake_open(&loop->wake, hub, &loop->clock);
	if (result == 0)
		result = fork_check_open(&loop->fork_check, sizeof(uint32_t));
	if (result == 0)
		result = loop_open_tables(loop, max);
	if (result == 0 && (config->flags & TIMERHUB_LOOP_OBSERVABLE) != 0)
		result = loop_open_board(loop);
	if (result < 0)
		return result;
	loop->turn_ns = loop_read_ns(loop);
	fresh_move_on(loop, loop->turn_ns);
	if (loop->is_exact) /* the array `fresh` always looks full, so that no timeout enters it */
		loop->idle_count = TIMERHUB_LOOP_FRESH_MAX + loop->is_manual;
	loop->front.fresh_count = loop->idle_count;
	return 0;
}

int timerhub_loop_open(struct timerhub_loop **ret_loop, struct timerhub *hub,
                       const struct timerhub_loop_config *config)
{
	CANCELLATION_HELD;
	struct timerhub_loop_config known = { .size = sizeof(known) };
	struct timerhub_loop *loop;
	int result;

	if (!ret_loop)
		return -EINVAL;
	result = options_read(&known, sizeof(known), LOOP_CONFIG_LEAST_BYTES, config);
	if (result == 0)
		result = loop_config_check(&known, hub);
	if (result < 0)
		return result;
	loop = memory_allocate(sizeof(*loop));
	if (!loop)
		return -ENOMEM;
	result = loop_open(loop, hub, &known);
	if (result < 0) {
		loop_free(loop);
		return result;
	}
	*ret_loop = loop;
	return 0;
}

/* ---- close ---- */

/*
 * Closes what wakes the loop. Disarms the timerfd first, because epoll goes on reporting it after
 * the close if a forked child has a copy.
 */
static void loop_close_wake(struct timerhub_loop *loop)
{
	/*
	 * If a callback closes the loop and then the hub, *loop->cell may be unmapped while the
	 * turn still writes to it. So let the turn write to gone_cell instead.
	 */
	if (loop->cell) {
		cell_reset(loop->cell);
		u32_store_release(&loop->cell->clock, 0);

		u64_store_release(&loop->cell->loop, 0);
		loop->cell = &loop->gone_cell;
	}
	/*
	 * After a failed open, is_opener may be NULL. A forked child must not disarm the timerfd,
	 * because it shares the timerfd with its parent.
	 */
	if (loop->fork_check.is_opener && fork_check_goes_on(&loop->fork_check))
		deadline_fd_disarm(&loop->wake.deadline_fd);
	wake_close(&loop->wake);
}

void loop_free(struct timerhub_loop *loop)
{
	CANCELLATION_HELD;

	loop_close_wake(loop);
	schedule_close(&loop->schedule);
	places_close(&loop->places);
	memory_release(&loop->memory);
	if (loop->board) {
		if (fork_check_goes_on(&loop->fork_check))
			board_announce(loop->board, false);
		board_close(loop->board, loop->board_fd);
	}
	fork_check_close(&loop->fork_check);
	free(loop);
}

/*
 * Removes all timeouts from the loop, by zeroing their memory, so that the program can add them
 * again.
 */
static void loop_remove_all(struct timerhub_loop *loop)
{
	for (uint32_t i = 0; i < loop->places.used; i++) {
		struct timerhub_timeout *timeout = place_timeout(&loop->places.table[i]);

		if (timeout)
			*timeout = (struct timerhub_timeout){ .owner = 0 };
	}
}

void timerhub_loop_close(struct timerhub_loop *loop)
{
	CANCELLATION_HELD;

	if (!loop || loop->is_closed)
		return;
	loop_remove_all(loop);
	if (!loop->front.turning) {
		loop_free(loop);
		return;
	}
	/* A callback has made this call. The loop stays until turn_end() frees it. */
	loop->is_closed = true;
	/* A queue that is being dispatched cannot be closed, so only cancel its timers. */
	if (loop->is_dispatching)
		wake_drop_timers(&loop->wake);
	else
		loop_close_wake(loop);
}

/* ---- ask ---- */

int timerhub_loop_fd(struct timerhub_loop *loop)
{
	int result = loop_check_alive(loop);

	if (result == 0 && loop->is_manual)
		result = -EINVAL;
	return result < 0 ? result : wake_fd(&loop->wake, loop->next_ns, loop->turn_ns);
}

int timerhub_loop_advance(struct timerhub_loop *loop, uint64_t now_ns)
{
	if (!loop_is_idle(loop)) {
		int result = loop_check_idle(loop);

		if (result < 0)
			return result;
	}
	if (!loop->is_manual || !clock_set(&loop->clock, now_ns))
		return -EINVAL;
	loop->turn_ns = u64_min(now_ns, UINT64_MAX - 1);
	fresh_move_on(loop, loop->turn_ns);
	loop_bind(loop);
	return 0;
}

uint64_t timerhub_loop_now(const struct timerhub_loop *loop)
{
	return loop ? loop->turn_ns : 0;
}

uint64_t timerhub_loop_due(const struct timerhub_loop *loop)
{
	return loop ? loop->due_ns : UINT64_MAX;
}

struct timerhub_queue *timerhub_loop_queue(const struct timerhub_loop *loop)
{
	return loop ? loop->wake.queue : NULL;
}
