/* SPDX-License-Identifier: MIT */
/*
 * Reads the hubs of a process again and again. See watch.h. Between two readings the process may
 * open and close hubs, so a reading finds the one before by the serial number of its hub.
 */
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* time between two searches for new hubs, each of which reads all descriptors of the process */
#define FIND_EVERY_NS (3 * NS_PER_S)

int watch_open(struct watch *watch, pid_t pid)
{
	memset(watch, 0, sizeof(*watch));
	watch->target.proc = -1;
	watch->now = calloc(TARGET_HUBS_MAX, sizeof(*watch->now));
	watch->earlier = calloc(TARGET_HUBS_MAX, sizeof(*watch->earlier));
	watch->running = calloc(1, sizeof(*watch->running));
	watch->earlier_running = calloc(1, sizeof(*watch->earlier_running));
	if (!watch->now || !watch->earlier || !watch->running || !watch->earlier_running) {
		(void)snprintf(watch->target.refusal, TARGET_TEXT_BYTES, "out of memory");
		return -1;
	}
	watch->found_ns = clock_monotonic_ns();
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
	free(watch->earlier_running);
	free(watch->now);
	free(watch->earlier);
}

int watch_find(struct watch *watch)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (now_ns - watch->found_ns < FIND_EVERY_NS)
		return target_check(&watch->target);
	watch->found_ns = now_ns;
	return target_find_hubs(&watch->target);
}

static const struct reading *find(const struct reading *readings, unsigned count, uint64_t serial)
{
	for (unsigned i = 0; i < count; i++)
		if (readings[i].about.serial == serial)
			return &readings[i];
	return NULL;
}

int watch_read(struct watch *watch)
{
	struct reading *now = watch->earlier;
	struct runnings *running = watch->earlier_running;
	unsigned earlier_count = watch->count;

	if (watch_find(watch) < 0)
		return -1;
	watch->earlier = watch->now;
	watch->now = now;
	watch->count = watch->target.hub_count;
	for (unsigned i = 0; i < watch->count; i++) {
		reading_take(watch->target.proc, &watch->target.hubs[i], &now[i]);
		reading_follow(&now[i], find(watch->earlier, earlier_count, now[i].about.serial));
	}
	watch->earlier_running = watch->running;
	watch->running = running;
	runnings_take(running, watch->earlier_running, &watch->target);
	return 0;
}
