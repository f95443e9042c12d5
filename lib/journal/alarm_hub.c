/* SPDX-License-Identifier: MIT */
/*
 * See alarm.h: the real alarm, and the only file that calls the timer service. A hub on the wall
 * clock with one queue and one timer, which is armed for ever: its expiry is never taken out of the
 * queue while a task is due, so that the queue's fd is readable just then. The hub sees to it that
 * this holds when the clock is set. Tests set it: tests/journal/test_clock.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <timerhub.h>

#include "alarm.h"

#define TIMERS_MAX 64
#define NS_PER_S UINT64_C(1000000000)
/* A little less than 2^63, in the year 2262: the hub takes no deadlines beyond. */
#define REACH_NS ((UINT64_C(1) << 63) - 4096)

struct alarm_hub {
	struct alarm alarm;
	struct timerhub *hub;
	struct timerhub_queue *queue;
	timerhub_timer timer;
	uint64_t due_ns; /* what it is set to */
};

static struct alarm_hub *alarm_hub_of(struct alarm *alarm)
{
	return (struct alarm_hub *)(void *)alarm;
}

static uint64_t alarm_hub_wall_ns(struct alarm *alarm)
{
	return timerhub_now(alarm_hub_of(alarm)->hub);
}

static uint64_t alarm_hub_monotonic_ns(struct alarm *alarm)
{
	struct timespec now;

	(void)alarm;
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* it exists everywhere */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* What the hub is told instead of a time; "never" as it is. */
static uint64_t alarm_hub_within_reach(uint64_t due_ns)
{
	return due_ns > REACH_NS && due_ns != UINT64_MAX ? REACH_NS : due_ns;
}

static void alarm_hub_arm(struct alarm_hub *hub, uint64_t expires_ns)
{
	struct timerhub_spec spec = {
		.size = sizeof(spec),
		.flags = TIMERHUB_ABSOLUTE,
		.expires_ns = expires_ns,
	};

	/* Cannot be refused: there is room, and only one lives at a time. */
	(void)timerhub_arm(hub->queue, &spec, &hub->timer);
}

static void alarm_hub_rearm(struct alarm_hub *hub, uint64_t expires_ns)
{
	if (timerhub_rearm(hub->hub, hub->timer, expires_ns, TIMERHUB_ABSOLUTE) < 0)
		alarm_hub_arm(hub, expires_ns);
}

/* May be true a moment before the fd is readable. */
static bool alarm_hub_has_rung(const struct alarm_hub *hub)
{
	uint64_t left_ns = 0;

	return timerhub_remaining(hub->hub, hub->timer, &left_ns) == 0 && left_ns == 0;
}

static void alarm_hub_set(struct alarm *alarm, uint64_t due_ns)
{
	struct alarm_hub *hub = alarm_hub_of(alarm);
	uint64_t now_ns = alarm_hub_wall_ns(alarm);
	struct timerhub_event event;

	/* It rings for another that is due, and goes on: no need to trouble the hub. */
	if (due_ns <= now_ns && alarm_hub_has_rung(hub))
		return;
	if (due_ns != hub->due_ns)
		alarm_hub_rearm(hub, alarm_hub_within_reach(due_ns));
	hub->due_ns = due_ns;
	/*
	 * The fd may be readable for what was withdrawn, just now or long ago: an owner may ring
	 * late. Finding the queue empty clears it.
	 */
	if (due_ns > now_ns && timerhub_drain(hub->queue, &event, 1) == 1)
		alarm_hub_arm(hub, alarm_hub_within_reach(due_ns)); /* it has come meanwhile */
}

static int alarm_hub_fd(struct alarm *alarm)
{
	return timerhub_queue_fd(alarm_hub_of(alarm)->queue);
}

static void alarm_hub_wait(struct alarm *alarm, uint64_t timeout_ns)
{
	struct pollfd poll_fd = { .fd = alarm_hub_fd(alarm), .events = POLLIN };
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / NS_PER_S),
		.tv_nsec = (long)(timeout_ns % NS_PER_S),
	};

	(void)ppoll(&poll_fd, 1, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
}

static void alarm_hub_close(struct alarm *alarm)
{
	struct alarm_hub *hub = alarm_hub_of(alarm);

	timerhub_close(hub->hub);
	free(hub);
}

static const struct alarm_ops alarm_hub_ops = {
	.wall_ns = alarm_hub_wall_ns,
	.monotonic_ns = alarm_hub_monotonic_ns,
	.set = alarm_hub_set,
	.fd = alarm_hub_fd,
	.wait = alarm_hub_wait,
	.close = alarm_hub_close,
};

static int alarm_hub_init(struct alarm_hub *hub)
{
	struct timerhub_config config = {
		.size = sizeof(config),
		.timers_max = TIMERS_MAX,
		.clock = TIMERHUB_CLOCK_REALTIME,
		.thread_name = "timerhub-alarm",
	};
	int result = timerhub_open(&hub->hub, &config);

	if (result == 0)
		result = timerhub_queue_open(hub->hub, &hub->queue, NULL);
	if (result == 0)
		result = timerhub_after(hub->queue, TIMERHUB_NEVER, 0, &hub->timer);
	return result;
}

int alarm_hub_open(struct alarm **ret_alarm)
{
	struct alarm_hub *hub = calloc(1, sizeof(*hub));
	int result;

	if (!hub)
		return -ENOMEM;
	hub->alarm.ops = &alarm_hub_ops;
	hub->due_ns = UINT64_MAX;
	result = alarm_hub_init(hub);
	if (result < 0) {
		alarm_hub_close(&hub->alarm);
		return result;
	}
	*ret_alarm = &hub->alarm;
	return 0;
}
