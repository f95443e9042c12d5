/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub, used as its header recommends, by any thread. Deadlines count from the time
 * that the caller's loop has cached (TIMERHUB_ABSOLUTE), and one consumer is in timerhub_wait().
 */
#include "records.h"
#include "timerhub.h"

#define EVENTS_MAX 256

static struct timerhub *hub;
static struct timerhub_queue *queue;

static timerhub_timer *handle_of(uint32_t timer)
{
	return records_timer(timer);
}

static void hub_open(const struct subject_setup *setup)
{
	struct timerhub_config config = {
		.size = sizeof(config),
		.timers_max = setup->timers + setup->spare + 1,
	};

	subject_must(timerhub_open(&hub, &config));
	subject_must(timerhub_queue_open(hub, &queue, NULL));
	records_open(setup, sizeof(timerhub_timer));
}

static void hub_tick(void)
{
	subject_cached_ns = timerhub_now(hub);
}

static int hub_arm(uint32_t timer, uint64_t delay_ns)
{
	struct timerhub_spec spec = {
		.size = sizeof(spec),
		.flags = TIMERHUB_ABSOLUTE,
		.expires_ns = subject_cached_ns + delay_ns,
		.data = timer,
	};

	return timerhub_arm(queue, &spec, handle_of(timer));
}

static int hub_rearm(uint32_t timer, uint64_t delay_ns)
{
	return timerhub_rearm(hub, *handle_of(timer), subject_cached_ns + delay_ns,
	                      TIMERHUB_ABSOLUTE);
}

static void hub_cancel(uint32_t timer)
{
	(void)timerhub_cancel(hub, *handle_of(timer)); /* -ENOENT if the timer has expired */
}

static void hub_run(bool (*done)(void))
{
	struct timerhub_event events[EVENTS_MAX];

	while (!done()) {
		int count = timerhub_wait(queue, events, EVENTS_MAX, UINT64_MAX);

		subject_must(count);
		for (int i = 0; i < count; i++)
			subject_expired((uint32_t)events[i].data);
	}
}

SUBJECT(timerhub, "timerhub", TIMERS | CROSS | OWNER | SERVER,
        CALLS(hub_open, hub_tick, hub_arm, hub_rearm, hub_cancel, hub_run))
