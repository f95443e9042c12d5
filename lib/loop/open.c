/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes loops, and returns a loop's descriptor, queue, time and timeout. Only the loop's
 * thread calls these functions. Tested by tests/unit/test_loop.c and tests/service/test_loop.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cancellation.h"
#include "base/options.h"
#include "loop/fresh_timeouts.h"

#define LOOP_TIMEOUTS_DEFAULT (1u << 20)
/* The largest number of timeouts in a loop, and the largest number of timers in a hub. */
#define LOOP_TIMEOUTS_MAX ((1u << 26) - 2)

uint64_t loop_thread(void)
{
#ifdef TIMERHUB_LOOP_INLINE
	/* timerhub_loop_owner(NULL) returns the number of the calling thread */
	return timerhub_loop_owner(NULL);
#else
	static _Thread_local char self;

	return (uint64_t)(uintptr_t)&self;
#endif
}

uint64_t loop_read_ns(const struct timerhub_loop *loop)
{
	uint64_t now_ns =
		loop->wake.hub ? timerhub_now(loop->wake.hub) : clock_now_ns(&loop->clock);

	/* do not return UINT64_MAX, which means that there is no deadline */
	return u64_min(now_ns, UINT64_MAX - 1);
}

/* ---- open ---- */

static int loop_config_check(const struct timerhub_loop_config *config)
{
	return config->flags != 0 || config->timeouts_max > LOOP_TIMEOUTS_MAX ||
	                       config->clock > TIMERHUB_CLOCK_REALTIME
	               ? -EINVAL
	               : 0;
}

static int loop_open_tables(struct timerhub_loop *loop, uint32_t max)
{
	size_t filings_bytes = max * sizeof(struct timer_filing);
	int result = memory_reserve(&loop->memory, filings_bytes + max * sizeof(*loop->listed));
	char *base = loop->memory.base;

	if (result < 0)
		return result;
	loop->filings = (struct timer_filing *)(void *)base;
	loop->listed = (uint32_t *)(void *)(base + filings_bytes);
	result = places_open(&loop->places, max);
	return result == 0 ? schedule_open(&loop->schedule, loop->filings, max) : result;
}

static int loop_open(struct timerhub_loop *loop, struct timerhub *hub,
                     const struct timerhub_loop_config *config)
{
	uint32_t max = config->timeouts_max > 0 ? config->timeouts_max : LOOP_TIMEOUTS_DEFAULT;
	int result;

	loop->thread = loop_thread();
	loop->next_ns = UINT64_MAX;
	loop->first = SLOT_NONE;
	loop->gone = (struct timerhub_timeout){ .deadline_ns = UINT64_MAX, .filed_ns = UINT64_MAX };
	loop->timeout_ns = UINT64_MAX;
	clock_init(&loop->clock, config->clock, false);
	result = wake_open(&loop->wake, hub, &loop->clock);
	if (result == 0)
		result = fork_check_open(&loop->fork_check, sizeof(uint32_t));
	if (result == 0)
		result = loop_open_tables(loop, max);
	if (result == 0) {
		loop->turn_ns = loop_read_ns(loop);
		fresh_move_on(loop, loop->turn_ns);
	}
	return result;
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
	result = options_read(&known, sizeof(known), sizeof(known), config);
	if (result == 0)
		result = loop_config_check(&known);
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

void loop_free(struct timerhub_loop *loop)
{
	CANCELLATION_HELD;

	wake_close(&loop->wake);
	schedule_close(&loop->schedule);
	places_close(&loop->places);
	memory_release(&loop->memory);
	fork_check_close(&loop->fork_check);
	free(loop);
}

static void loop_remove_all(struct timerhub_loop *loop)
{
	for (uint32_t i = 0; i < loop->places.used; i++) {
		struct timerhub_timeout *timeout = loop->places.table[i].timeout;

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
	/*
	 * A callback has closed the loop. The turn calls no further callback, and the end of the
	 * turn frees the loop.
	 */
	loop->is_closed = true;
	wake_drop_timers(&loop->wake);
}

/* ---- ask ---- */

int loop_check(const struct timerhub_loop *loop)
{
	if (!loop)
		return -EINVAL;
	if (loop->thread != loop_thread())
		return -EPERM;
	return fork_check_result(&loop->fork_check);
}

int timerhub_loop_fd(struct timerhub_loop *loop)
{
	int result = loop_check(loop);

	return result < 0 ? result : wake_fd(&loop->wake, loop->next_ns, loop->turn_ns);
}

uint64_t timerhub_loop_timeout(const struct timerhub_loop *loop)
{
	return loop ? loop->timeout_ns : UINT64_MAX;
}

uint64_t timerhub_loop_now(const struct timerhub_loop *loop)
{
	return loop ? loop->turn_ns : 0;
}

struct timerhub_queue *timerhub_loop_queue(const struct timerhub_loop *loop)
{
	return loop ? loop->wake.queue : NULL;
}
