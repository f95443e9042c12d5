/* SPDX-License-Identifier: MIT */
/*
 * Reads the hubs of a process again and again. See latest_readings.h. Between two readings the
 * process may open and close hubs. A serial number identifies the hub of a reading.
 */
#include "latest_readings.h"

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
	if (!watch->now || !watch->before) {
		(void)snprintf(watch->target.refusal, sizeof(watch->target.refusal),
		               "out of memory");
		return -1;
	}
	watch->found_ns = reading_clock_ns();
	return target_open(&watch->target, pid) < 0 ? -1 : watch_read(watch);
}

void watch_close(struct watch *watch)
{
	target_close(&watch->target);
	free(watch->now);
	free(watch->before);
}

static int watch_check(struct watch *watch)
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

int watch_read(struct watch *watch)
{
	if (watch_check(watch) < 0)
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
		reading_take(watch->target.hubs[i].board, &watch->now[i]);
		if (watch->before[i].at_ns > 0)
			reading_follow(&watch->now[i], &watch->before[i]);
	}
	return 0;
}

const struct reading *watch_before(const struct watch *watch, unsigned index)
{
	return watch->before[index].at_ns > 0 ? &watch->before[index] : NULL;
}
