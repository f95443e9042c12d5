/* SPDX-License-Identifier: MIT */
/*
 * See alarm.h: the real alarm, and the only file that calls the timer service. One queue, and one
 * timer, which is armed for ever: its expiry is never taken out of the queue while a task is due,
 * so that the queue's fd is readable just then; re-arming withdraws it.
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

struct alarm_hub {
	struct alarm alarm;
	struct timerhub *hub;
	struct timerhub_queue *queue;
	timerhub_timer timer;
	uint64_t due_ns; /* what it is set to */
};

static struct alarm_hub *hub_of(struct alarm *alarm)
{
	return (struct alarm_hub *)(void *)alarm;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now); /* these clocks exist everywhere */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t hub_wall_ns(struct alarm *alarm)
{
	(void)alarm;
	return clock_ns(CLOCK_REALTIME);
}

static uint64_t hub_monotonic_ns(struct alarm *alarm)
{
	(void)alarm;
	return clock_ns(CLOCK_MONOTONIC);
}

/* How the hub's clock calls a time of the wall clock. */
static uint64_t delay_to(uint64_t due_ns, uint64_t now_ns)
{
	if (due_ns == UINT64_MAX)
		return TIMERHUB_NEVER;
	return due_ns > now_ns ? due_ns - now_ns : 0;
}

static void arm(struct alarm_hub *hub, uint64_t delay_ns)
{
	/* Cannot be refused: there is room, and only one lives at a time. */
	(void)timerhub_after(hub->queue, delay_ns, 0, &hub->timer);
}

/* May be true a moment before the fd is readable. */
static bool has_rung(const struct alarm_hub *hub)
{
	uint64_t left_ns = 0;

	return timerhub_remaining(hub->hub, hub->timer, &left_ns) < 0 || left_ns == 0;
}

static void hub_set(struct alarm *alarm, uint64_t due_ns)
{
	struct alarm_hub *hub = hub_of(alarm);
	uint64_t delay_ns = delay_to(due_ns, hub_wall_ns(alarm));
	bool rang = has_rung(hub);
	struct timerhub_event event;

	/* It rings for another that is due, and goes on: no need to trouble the hub. */
	if (rang && delay_ns == 0)
		return;
	if ((rang || due_ns != hub->due_ns) &&
	    timerhub_rearm(hub->hub, hub->timer, delay_ns, 0) < 0)
		arm(hub, delay_ns);
	hub->due_ns = due_ns;
	/*
	 * The fd may be readable for what was withdrawn, just now or long ago: an owner may ring
	 * late. Finding the queue empty clears it.
	 */
	if (delay_ns > 0 && timerhub_drain(hub->queue, &event, 1) == 1)
		arm(hub, 0); /* the new time has come meanwhile */
}

static int hub_fd(struct alarm *alarm)
{
	return timerhub_queue_fd(hub_of(alarm)->queue);
}

static void hub_wait(struct alarm *alarm, uint64_t timeout_ns)
{
	struct pollfd poll_fd = { .fd = hub_fd(alarm), .events = POLLIN };
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / NS_PER_S),
		.tv_nsec = (long)(timeout_ns % NS_PER_S),
	};

	(void)ppoll(&poll_fd, 1, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
}

static void hub_close(struct alarm *alarm)
{
	struct alarm_hub *hub = hub_of(alarm);

	timerhub_close(hub->hub);
	free(hub);
}

static const struct alarm_ops alarm_hub_ops = {
	.wall_ns = hub_wall_ns,
	.monotonic_ns = hub_monotonic_ns,
	.set = hub_set,
	.fd = hub_fd,
	.wait = hub_wait,
	.close = hub_close,
};

static int open_hub(struct alarm_hub *hub)
{
	struct timerhub_config config = {
		.size = sizeof(config),
		.timers_max = TIMERS_MAX,
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
	result = open_hub(hub);
	if (result < 0) {
		hub_close(&hub->alarm);
		return result;
	}
	*ret_alarm = &hub->alarm;
	return 0;
}
