/* SPDX-License-Identifier: MIT */
/*
 * Reads the hubs of a process again and again. See latest_readings.h. Between two readings the
 * process may open and close hubs. A serial number identifies the hub of a reading.
 */
#include "latest_readings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * time between two searches for new hubs; each search reads every descriptor of the watched process
 */
#define FIND_EVERY_NS UINT64_C(3000000000)

int watch_open(struct watch *watch, pid_t pid)
{
	memset(watch, 0, sizeof(*watch));
	watch->target.proc = -1;
	watch->now = calloc(TARGET_HUBS_MAX, sizeof(*watch->now));
	watch->before = calloc(TARGET_HUBS_MAX, sizeof(*watch->before));
	watch->running = calloc(1, sizeof(*watch->running));
	watch->running_before = calloc(1, sizeof(*watch->running_before));
	if (!watch->now || !watch->before || !watch->running || !watch->running_before) {
		(void)snprintf(watch->target.refusal, sizeof(watch->target.refusal),
		               "out of memory");
		return -1;
	}
	watch->found_ns = reading_clock_ns();
	if (target_open(&watch->target, pid) < 0)
		return -1;
	watch->names = function_names_open(watch->target.proc);
	return watch_read(watch);
}

void watch_close(struct watch *watch)
{
	function_names_close(watch->names);
	target_close(&watch->target);
	free(watch->running);
	free(watch->running_before);
	free(watch->now);
	free(watch->before);
}

int watch_find(struct watch *watch)
{
	uint64_t now_ns = reading_clock_ns();

	if (now_ns - watch->found_ns < FIND_EVERY_NS)
		return target_check(&watch->target);
	watch->found_ns = now_ns;
	return target_find_hubs(&watch->target);
}

/* Returns the last reading of the hub with this serial number, or NULL if the hub is new. */
static const struct reading *watch_latest(const struct watch *watch, uint64_t serial)
{
	for (unsigned i = 0; i < watch->reading_count; i++)
		if (watch->serials[i] == serial)
			return &watch->now[i];
	return NULL;
}

static void take(const struct target *target, const struct hub *hub, struct reading *ret_reading)
{
	uint64_t owner = u64_load_relaxed(&hub->board->owner.tid);

	reading_take(hub->board, hub_clock_ns(hub), ret_reading);
	if (owner > 0 && owner <= INT_MAX &&
	    !thread_look(target->proc, (int)owner, &ret_reading->owner))
		ret_reading->owner.tid = 0;
}

int watch_read(struct watch *watch)
{
	struct runnings *running = watch->running;

	if (watch_find(watch) < 0)
		return -1;
	for (unsigned i = 0; i < watch->target.hub_count; i++) {
		const struct reading *latest =
			watch_latest(watch, watch->target.hubs[i].about.serial);

		if (latest)
			watch->before[i] = *latest;
		else
			watch->before[i].at_ns = 0;
	}
	watch->reading_count = watch->target.hub_count;
	for (unsigned i = 0; i < watch->target.hub_count; i++) {
		watch->serials[i] = watch->target.hubs[i].about.serial;
		take(&watch->target, &watch->target.hubs[i], &watch->now[i]);
		if (watch->before[i].at_ns > 0)
			reading_follow(&watch->now[i], &watch->before[i]);
	}
	watch->running = watch->running_before;
	watch->running_before = running;
	runnings_take(watch->running, running, &watch->target);
	return 0;
}

const struct reading *watch_before(const struct watch *watch, unsigned index)
{
	return watch->before[index].at_ns > 0 ? &watch->before[index] : NULL;
}
