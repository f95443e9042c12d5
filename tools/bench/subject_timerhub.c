/* SPDX-License-Identifier: MIT */
/*
 * Measures timerhub, used as its header recommends, by any thread. Deadlines count from the time
 * that the caller's loop has cached (TIMERHUB_ABSOLUTE), and one consumer is in timerhub_wait().
 * "timerhub-many" passes a batch of timers in one call.
 */
#include <errno.h>

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

static struct timerhub_spec spec_of(uint32_t timer, uint64_t delay_ns)
{
	return (struct timerhub_spec){
		.size = sizeof(struct timerhub_spec),
		.flags = TIMERHUB_ABSOLUTE,
		.expires_ns = subject_cached_ns + delay_ns,
		.data = timer,
	};
}

static int hub_arm(uint32_t timer, uint64_t delay_ns)
{
	struct timerhub_spec spec = spec_of(timer, delay_ns);

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

#define HUB_CALLS CALLS(hub_open, hub_tick, hub_arm, hub_rearm, hub_cancel, hub_run)

SUBJECT(timerhub, "timerhub", TIMERS | CROSS | OWNER | SERVER | LATE, HUB_CALLS)

/* ---- in batches ---- */

static void handles_of(const uint32_t *timers, unsigned count, timerhub_timer *ret_handles)
{
	for (unsigned i = 0; i < count; i++)
		ret_handles[i] = *handle_of(timers[i]);
}

static int rearm_many(const uint32_t *timers, unsigned count, uint64_t delay_ns)
{
	timerhub_timer batch[BATCH_MAX];

	handles_of(timers, count, batch);
	return timerhub_rearm_many(hub, batch, count, subject_cached_ns + delay_ns,
	                           TIMERHUB_ABSOLUTE);
}

static int arm_many(const uint32_t *timers, uint64_t delay_ns, unsigned count)
{
	static _Thread_local struct timerhub_spec specs[BATCH_MAX];
	timerhub_timer batch[BATCH_MAX];
	int result;

	for (unsigned i = 0; i < count; i++)
		specs[i] = spec_of(timers[i], delay_ns);
	result = timerhub_arm_many(queue, specs, count, batch);
	if (result >= 0 && (unsigned)result < count)
		return -EAGAIN;
	for (unsigned i = 0; i < count; i++)
		*handle_of(timers[i]) = batch[i];
	return result;
}

static void cancel_many(const uint32_t *timers, unsigned count)
{
	timerhub_timer batch[BATCH_MAX];

	handles_of(timers, count, batch);
	(void)timerhub_cancel_many(hub, batch, count);
}

SUBJECT(timerhub_many, "timerhub-many", CROSS | OWNER | SERVER, HUB_CALLS, .rearm_many = rearm_many,
        .arm_many = arm_many, .cancel_many = cancel_many)
