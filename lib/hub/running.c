/* SPDX-License-Identifier: MIT */
/*
 * Tells a program what the threads of an observable hub are doing, and which callbacks were slow.
 * The threads write all of that into shared memory, the hub's counter board, so any thread can read
 * it while they go on. Tested by tests/service/test_running.c.
 */
#include <errno.h>

#include "hub/hub.h"
#include "queue/thread_cells.h"

/*
 * Returns 0, or a negative errno if the hub was not opened with TIMERHUB_OBSERVABLE, or if this is
 * a forked child.
 */
static int hub_check_observable(const struct timerhub *hub)
{
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	return hub->board_fd >= 0 ? 0 : -EOPNOTSUPP;
}

/*
 * Calls `fn` for the thread or the loop that `cell` describes. Leaves out a thread that has ended,
 * but not a loop whose thread has ended, because another thread can go on with it.
 */
static int cell_tell(const struct board_cell *cell, timerhub_running_fn *fn, void *context)
{
	struct timerhub_running running = { .size = sizeof(running) };
	struct cell_reading reading;

	if (!cell_read(cell, &reading) || (reading.loop == 0 && !thread_lives(reading.tid)))
		return 0;
	running.tid = (int32_t)reading.tid;
	running.fn = (timerhub_any_fn *)(uintptr_t)reading.fn;
	running.timer = reading.timer;
	running.queue = (struct timerhub_queue *)(uintptr_t)reading.queue;
	running.loop = (void *)(uintptr_t)reading.loop;
	running.since_ns = reading.since_ns;
	running.where = reading.where;
	return fn(&running, context);
}

int timerhub_each_running(struct timerhub *hub, timerhub_running_fn *fn, void *context)
{
	int result = hub && fn ? hub_check_observable(hub) : -EINVAL;

	for (unsigned i = 0; result == 0 && i < BOARD_CELLS_MAX; i++)
		result = cell_tell(&hub->board->cells[i], fn, context);
	/* Relaxed, because it does no harm to miss a queue that is being opened meanwhile. */
	for (uint32_t i = 0; result == 0 && i < u64_load_relaxed(&hub->queues_end); i++)
		result = cell_tell(&hub->board->queues[i].loop, fn, context);
	return result;
}

int timerhub_slow(struct timerhub *hub, struct timerhub_slow_callback *ret, unsigned max)
{
	int result = hub && (ret || max == 0) ? hub_check_observable(hub) : -EINVAL;

	return result < 0 ? result : slow_table_list(&hub->board->slow, ret, max);
}
