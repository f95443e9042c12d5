/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes hubs, and answers what a program may ask about a hub. Tested by tests/service/.
 *
 * What interrupts hub_open_new() is a signal during fallocate() or, on Linux 6.1, the teardown of
 * this thread's io_uring.
 *
 * timerhub_stats() computes the number of cancels, because counting them would cost each cancel a
 * write to shared memory. It also computes how many timers were armed: the number of slots that
 * were taken, less those that a refused timerhub_arm_many() has taken and put back. If such a call
 * comes between the loads of the two numbers, the difference can be negative, and the result is 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/options.h"
#include "base/valgrind.h"
#include "hub/hub.h"

#define HUB_TIMERS_DEFAULT (1u << 20)
/*
 * The size of the config in the first version. Programs that were compiled with that version still
 * pass it.
 */
#define CONFIG_LEAST_BYTES offsetof(struct timerhub_config, slow_ns)

const char *timerhub_version(void)
{
	return TIMERHUB_VERSION;
}

/* ---- options ---- */

/* Checks the config, and fills in the defaults. Returns 0 or -EINVAL. */
static int config_complete(struct timerhub_config *config)
{
	const char *sleeper = secure_getenv("TIMERHUB_SLEEPER");

	if ((config->flags & ~(TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE | TIMERHUB_HUGE_PAGES)) != 0 ||
	    config->timers_max > TIMER_SLOTS_MAX || config->clock > TIMERHUB_CLOCK_REALTIME ||
	    config->sleeper > TIMERHUB_SLEEPER_POLL)
		return -EINVAL;
	if (config->timers_max == 0)
		config->timers_max = HUB_TIMERS_DEFAULT;
	if (config->slow_ns == 0)
		config->slow_ns = BOARD_SLOW_DEFAULT_NS;
	if (!config->thread_name)
		config->thread_name = "timerhub";
	if (config->sleeper == TIMERHUB_SLEEPER_AUTO && sleeper) {
		if (strcmp(sleeper, "poll") == 0)
			config->sleeper = TIMERHUB_SLEEPER_POLL;
		else if (strcmp(sleeper, "uring") == 0)
			config->sleeper = TIMERHUB_SLEEPER_URING;
	}
	/*
	 * Valgrind runs one thread at a time. While a thread waits in io_uring_enter(2), valgrind
	 * would let no other thread run.
	 */
	if (config->sleeper == TIMERHUB_SLEEPER_AUTO && valgrind_runs_this())
		config->sleeper = TIMERHUB_SLEEPER_POLL;
	return 0;
}

/* ---- open ---- */

/*
 * Opens the page `living`. It is zero in a forked child, which keeps most calls from doing harm
 * there. Returns 0 or a negative errno.
 */
static int hub_open_living(struct timerhub *hub)
{
	int result = fork_check_open(&hub->fork_check, sizeof(*hub->living));

	if (result < 0)
		return result;
	hub->living = (struct hub_living *)hub->fork_check.is_opener;
	bell_words_init(&hub->living->bells);
	hub->living->capacity = hub->living->is_opener ? hub->arena.capacity : 0;
	return 0;
}

static int hub_open_owner(struct timerhub *hub)
{
	struct owner_world world = {
		.arena = &hub->arena,
		.inbox = &hub->inbox,
		.promise = &hub->promise,
		.clock = &hub->clock,
		.queues = hub->queues,
		.bell = hub->bell,
		.counts = &hub->board->owner,
		.is_observable = hub->board_fd >= 0,
	};

	return owner_open(&hub->owner, &world);
}

/*
 * Frees a hub, whose owner thread must have ended. It also frees a hub whose open has failed
 * halfway.
 */
static void hub_free(struct timerhub *hub)
{
	owner_close(&hub->owner);
	bell_close(hub->bell);
	callbacks_close(&hub->callbacks);
	memory_release(&hub->queues_memory);
	fork_check_close(&hub->fork_check);
	inbox_close(&hub->inbox);
	arena_close(&hub->arena);
	board_close(hub->board, hub->board_fd);
	free(hub);
}

static int hub_open(struct timerhub *hub, const struct timerhub_config *config)
{
	bool manual = (config->flags & TIMERHUB_MANUAL) != 0;
	bool shown = (config->flags & TIMERHUB_OBSERVABLE) != 0;
	int result;

	clock_init(&hub->clock, config->clock, manual);
	promise_init(&hub->promise, manual ? UINT64_MAX : 0);
	hub->board_fd = -1;
	hub->bell = bell_open();
	result = hub->bell < 0 ? hub->bell : board_open(&hub->board, &hub->board_fd, config);
	if (result == 0)
		result = arena_open(&hub->arena, config->timers_max,
		                    shown ? hub->board->shards : NULL);
	if (result == 0)
		result = inbox_open(&hub->inbox, config->timers_max,
		                    shown ? hub->board->lanes : NULL);
	if (result == 0)
		result = hub_open_living(hub);
	if (result == 0)
		result = memory_reserve(&hub->queues_memory, OWNER_QUEUES_MAX * sizeof(atomic_ptr));
	hub->queues = hub->queues_memory.base;
	if (result == 0)
		result = callbacks_open(&hub->callbacks);
	if (result == 0)
		result = hub_open_owner(hub);
	if (result == 0 && (config->flags & TIMERHUB_HUGE_PAGES) != 0) {
		memory_advise_huge(&hub->arena.memory);
		memory_advise_huge(&hub->owner.schedule.memory);
	}
	if (result == 0 && !manual)
		result = owner_start(&hub->owner, config);
	if (result == 0) {
		/*
		 * Relaxed is enough, because board_announce() below makes this store visible to
		 * timerhub-top(1).
		 */
		u64_store_relaxed(&hub->board->owner.tid, (uint64_t)owner_tid(&hub->owner));
		board_announce(hub->board, true);
	}
	return result;
}

static int hub_open_new(struct timerhub **ret_hub, const struct timerhub_config *config)
{
	struct timerhub *hub = memory_allocate(sizeof(*hub));
	int result;

	if (!hub)
		return -ENOMEM;
	result = hub_open(hub, config);
	if (result < 0) {
		hub_free(hub);
		return result;
	}
	*ret_hub = hub;
	return 0;
}

int timerhub_open(struct timerhub **ret_hub, const struct timerhub_config *config)
{
	CANCELLATION_HELD;
	struct timerhub_config known = { .size = sizeof(known) };
	int result;

	if (!ret_hub)
		return -EINVAL;
	result = options_read(&known, sizeof(known), CONFIG_LEAST_BYTES, config);
	if (result == 0)
		result = config_complete(&known);
	if (result < 0)
		return result;
	/* Open the hub. If a signal interrupts that, try again. */
	result = -EINTR;
	for (unsigned i = 0; i < HUB_OPEN_TRIES && result == -EINTR; i++)
		result = hub_open_new(ret_hub, &known);
	return result;
}

/* ---- close ---- */

void timerhub_close(struct timerhub *hub)
{
	CANCELLATION_HELD;

	if (!hub)
		return;
	owner_stop(&hub->owner, hub_alive(hub));
	if (hub_alive(hub)) {
		board_announce(hub->board, false);
		/*
		 * Make the eventfd unreadable before it is closed. If a forked child has a copy, an
		 * epoll instance goes on reporting a readable eventfd after the close.
		 */
		bell_clear_by(hub->bell, &hub->living->bells);
	}
	hub_close_queues(hub);
	hub_free(hub);
}

/* ---- ask ---- */

uint64_t timerhub_now(const struct timerhub *hub)
{
	return hub ? clock_now_ns(&hub->clock) : 0;
}

int timerhub_owner_tid(const struct timerhub *hub)
{
	if (!hub || hub->clock.manual)
		return -EINVAL;
	return hub_alive(hub) ? owner_tid(&hub->owner) : -EOWNERDEAD;
}

/*
 * Adds the counters of all queues to the statistics, and returns how many timers have ended by
 * their delivery. The loads are relaxed, because these numbers are only shown.
 */
static uint64_t stats_add_queues(const struct timerhub *hub, struct timerhub_stats *stats)
{
	uint64_t retired = 0;

	for (uint32_t i = 0; i < u64_load_relaxed(&hub->queues_end); i++) {
		const struct board_queue *counts = &hub->board->queues[i];

		stats->delivered += u64_load_relaxed(&counts->delivered);
		stats->overruns += u64_load_relaxed(&counts->overruns);
		retired += u64_load_relaxed(&counts->retired);
	}
	return retired;
}

/*
 * Fills in `waiting`, `slow_callbacks` and `slow_sum_ns`. If the hub is observable, also fills in
 * `untaken_ns`; other hubs do not record when timerhub_dispatch() takes events.
 */
static void stats_add_waiting(const struct timerhub *hub, struct timerhub_stats *stats)
{
	bool observable = hub->board_fd >= 0;
	uint64_t now_ns = observable ? clock_now_ns(&hub->clock) : 0;

	for (uint32_t i = 0; i < u64_load_relaxed(&hub->queues_end); i++) {
		const struct board_queue *queue = &hub->board->queues[i];
		uint64_t waiting = board_queue_waiting(queue), since_ns;

		if (waiting == 0 || u64_load_relaxed(&queue->address) == 0)
			continue;
		stats->waiting += waiting;
		if (!observable)
			continue;
		since_ns = board_untaken_since_ns(hub->board, i);
		if (since_ns < now_ns)
			stats->untaken_ns = u64_max(stats->untaken_ns, now_ns - since_ns);
	}
	stats->slow_callbacks = u64_load_relaxed(&hub->board->slow.count);
	stats->slow_sum_ns = u64_load_relaxed(&hub->board->slow.sum_ns);
}

static void stats_add_owner(const struct owner *owner, struct timerhub_stats *stats)
{
	const struct board_owner *counts = owner->counts;

	stats->refiled = u64_load_relaxed(&counts->refiled);
	stats->expired = u64_load_relaxed(&counts->expired);
	stats->inbox_max = u64_load_relaxed(&counts->inbox_max);
	stats->owner_wakeups = u64_load_relaxed(&counts->wakeups);
	stats->queue_signals = u64_load_relaxed(&counts->queue_signals);
	stats->cascaded = u64_load_relaxed(&counts->cascaded);
	stats->clock_jumps = u64_load_relaxed(&counts->clock_jumps);
	stats->sleeper = (uint32_t)u64_load_relaxed(&counts->sleeper);
	for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
		stats->lateness[i] = u64_load_relaxed(&counts->lateness[i]);
}

static void stats_add_deliveries(const struct board *board, struct timerhub_stats *stats)
{
	for (unsigned cpu = 0; cpu < BOARD_DELIVERIES_MAX; cpu++)
		for (unsigned i = 0; i < TIMERHUB_LATENESS_BUCKETS; i++)
			stats->delivery_lateness[i] +=
				u64_load_relaxed(&board->deliveries[cpu].lateness[i]);
}

int timerhub_stats(struct timerhub *hub, struct timerhub_stats *ret_stats)
{
	struct timerhub_stats stats = { .armed = 0 };
	const struct board_callers *callers;
	struct arena_counts arena;
	uint64_t ended, untaken;

	if (!hub || !ret_stats)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	callers = &hub->board->callers;
	/*
	 * Count the live timers first. A timer that is delivered during this call is then counted
	 * twice, and not left out; a timer that is left out would be counted as cancelled.
	 */
	arena = arena_count(&hub->arena);
	ended = stats_add_queues(hub, &stats);
	stats_add_waiting(hub, &stats);
	stats_add_owner(&hub->owner, &stats);
	stats_add_deliveries(hub->board, &stats);
	/*
	 * `untaken` counts the slots that a failed timerhub_arm_many() had taken. No timers were
	 * armed in them.
	 */
	untaken = u64_load_relaxed(&callers->untaken);
	stats.armed = arena.taken > untaken ? arena.taken - untaken : 0;
	stats.live = arena.in_use;
	stats.live_max = arena.in_use_max;
	stats.submit_wakes = u64_load_relaxed(&callers->submit_wakes);
	ended += u64_load_relaxed(&callers->dropped) + arena.in_use;
	/*
	 * Each armed timer is live or has ended, and those that ended in no other way were
	 * cancelled. The sum can be too large for a moment while other threads arm timers or take
	 * events, hence the test.
	 */
	stats.cancelled = stats.armed > ended ? stats.armed - ended : 0;
	*ret_stats = stats;
	return 0;
}
