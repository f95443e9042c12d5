/* SPDX-License-Identifier: MIT */
/*
 * sd-event: one time source each, of one microsecond accuracy, re-armed by
 * sd_event_source_set_time and set_enabled(ONESHOT) as sd_event_add_time(3) says. Deadlines count
 * from a time that the caller caches. Other threads reach the loop by a locked list and an eventfd,
 * since sd-event has no thread-safe call.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "clocks.h"
#include "mailbox.h"
#include "subject_list.h"

#define ACCURACY_US 1

static sd_event *event;
static sd_event_source **sources;
static uint64_t cached_us;
static int wake_fd;

static int sdevent_expired(sd_event_source *source, uint64_t time_us, void *context)
{
	(void)source;
	(void)time_us;
	subject_expired((uint32_t)(uintptr_t)context);
	return 0;
}

static int sdevent_woken(sd_event_source *source, int fd, uint32_t ready, void *context)
{
	uint64_t count;

	(void)source;
	(void)ready;
	(void)context;
	if (read(fd, &count, sizeof(count)) == sizeof(count))
		mailbox_apply();
	return 0;
}

static void sdevent_check(int result, const char *what)
{
	if (result < 0)
		subject_fail(what, -result);
}

static void sdevent_open(const struct subject_setup *setup)
{
	sdevent_check(sd_event_new(&event), "sd_event_new");
	sources = subject_allocate((uint64_t)setup->timers + 1, sizeof(sd_event_source *));
	for (uint32_t i = 0; i <= setup->timers; i++) {
		sdevent_check(sd_event_add_time(event, &sources[i], CLOCK_MONOTONIC, UINT64_MAX,
		                                ACCURACY_US, sdevent_expired, (void *)(uintptr_t)i),
		              "sd_event_add_time");
		sdevent_check(sd_event_source_set_enabled(sources[i], SD_EVENT_OFF),
		              "sd_event_source_set_enabled");
	}
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sdevent_check(sd_event_add_io(event, NULL, wake_fd, EPOLLIN, sdevent_woken, NULL),
	              "sd_event_add_io");
}

static void sdevent_tick(void)
{
	cached_us = now_ns() / NS_PER_US;
}

static int sdevent_rearm(uint32_t timer, uint64_t delay_ns)
{
	return sd_event_source_set_time(sources[timer],
	                                cached_us + (delay_ns + NS_PER_US - 1) / NS_PER_US);
}

static int sdevent_arm(uint32_t timer, uint64_t delay_ns)
{
	(void)sdevent_rearm(timer, delay_ns);
	return sd_event_source_set_enabled(sources[timer], SD_EVENT_ONESHOT);
}

static void sdevent_cancel(uint32_t timer)
{
	(void)sd_event_source_set_enabled(sources[timer], SD_EVENT_OFF);
}

static void sdevent_run(bool (*done)(void))
{
	while (!done())
		(void)sd_event_run(event, UINT64_MAX);
}

static void sdevent_wake(void)
{
	uint64_t one = 1;

	if (write(wake_fd, &one, sizeof(one)) != sizeof(one))
		subject_fail("eventfd", errno);
}

const struct subject subject_sdevent = {
	.name = "sd-event",
	.how = "a time source each, accuracy 1 us; across threads a locked list and an eventfd",
	.can = CAN_REARM | CAN_CANCEL | CAN_EXPIRE | CAN_CROSS | CAN_PUSH_TAKE | CAN_BE_LATE |
	       CAN_COUNT_WAKES,
	.timers_max = 1000000,
	.open = sdevent_open,
	.tick = sdevent_tick,
	.arm = sdevent_arm,
	.rearm = sdevent_rearm,
	.cancel = sdevent_cancel,
	.run = sdevent_run,
	.wake = sdevent_wake,
};
