/* SPDX-License-Identifier: MIT */
/* See puppet.h. */
#include "puppet.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define NOWHERE (-1)
#define POLL_NS (20 * US)

/* The puppet that this thread is, if it is one. */
static _Thread_local struct puppet *self;
/*
 * The owner of a real hub: nobody else comes to its points but puppets that advance a manual one.
 */
static struct puppet owner = { .stop_at = NOWHERE };

static bool is_owners(enum test_point point)
{
	return point == TEST_POINT_OWNER_BEFORE_INBOX || point == TEST_POINT_OWNER_BEFORE_PROMISE ||
	       point == TEST_POINT_OWNER_AFTER_PROMISE || point == TEST_POINT_OWNER_BEFORE_CAS ||
	       point == TEST_POINT_OWNER_BEFORE_PUBLISH || point == TEST_POINT_RING_BEFORE_COUNT;
}

static void hook(enum test_point point)
{
	struct puppet *puppet = self ? self : is_owners(point) ? &owner : NULL;

	if (!puppet || atomic_load(&puppet->stop_at) != (int)point ||
	    atomic_fetch_sub(&puppet->passes, 1) > 0)
		return;
	atomic_store(&puppet->stop_at, NOWHERE);
	atomic_store(&puppet->stopped, true);
	while (!atomic_load(&puppet->released))
		sleep_ns(POLL_NS);
	atomic_store(&puppet->released, false);
}

static void deed_do(struct deed *deed)
{
	struct timerhub_spec spec = { .size = sizeof(spec),
		                      .flags = TIMERHUB_ABSOLUTE,
		                      .expires_ns = deed->at_ns,
		                      .data = 'A' };

	switch (deed->what) {
	case ARM:
		deed->result = timerhub_arm(deed->queue, &spec, &deed->timer);
		break;
	case REARM:
		deed->result =
			timerhub_rearm(deed->hub, deed->timer, deed->at_ns, TIMERHUB_ABSOLUTE);
		break;
	case CANCEL:
		deed->result = timerhub_cancel(deed->hub, deed->timer);
		break;
	case CANCEL_SYNC:
		deed->result = timerhub_cancel_sync(deed->hub, deed->timer);
		break;
	case DRAIN:
		deed->result = timerhub_drain(deed->queue, deed->events, deed->max);
		break;
	case DISPATCH:
		deed->result = timerhub_dispatch(deed->queue, deed->max);
		break;
	case WAIT:
		deed->result = timerhub_wait(deed->queue, deed->events, deed->max, deed->at_ns);
		break;
	case DETACH:
		deed->result = timerhub_queue_detach_uring(deed->queue);
		break;
	case INTERRUPT:
		timerhub_interrupt(deed->queue);
		break;
	case ADVANCE:
		deed->result = timerhub_advance(deed->hub, deed->at_ns, NULL);
		break;
	case CLOSE_QUEUE:
		timerhub_queue_close(deed->queue);
		break;
	case EACH:
		(void)timerhub_each(deed->hub, deed->each, deed);
		break;
	case STOP:
		timerhub_queue_stop(deed->queue);
		break;
	}
}

static void *puppet_main(void *arg)
{
	self = arg;
	deed_do(&self->deed);
	atomic_store(&self->over, true);
	return NULL;
}

/* At its point, or over. */
static void wait_stopped_or_over(const struct puppet *puppet)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (!atomic_load(&puppet->stopped) && !atomic_load(&puppet->over)) {
		expect_lt(monotonic_ns(), until_ns);
		sleep_ns(POLL_NS);
	}
}

static void wait_stopped(const struct puppet *puppet)
{
	wait_stopped_or_over(puppet);
	expect(atomic_load(&puppet->stopped)); /* else it never was at the point */
}

void puppet_start(struct puppet *puppet, enum test_point point)
{
	atomic_store(&puppet->stop_at, (int)point);
	thread_start(&puppet->thread, puppet_main, puppet);
	wait_stopped(puppet);
}

void puppet_go_on_if_it_comes(struct puppet *puppet, enum test_point point)
{
	atomic_store(&puppet->stopped, false);
	atomic_store(&puppet->stop_at, (int)point);
	atomic_store(&puppet->released, true);
	wait_stopped_or_over(puppet);
}

void puppet_go_on(struct puppet *puppet, enum test_point point)
{
	puppet_go_on_if_it_comes(puppet, point);
	expect(atomic_load(&puppet->stopped));
}

void puppet_finish(struct puppet *puppet)
{
	atomic_store(&puppet->released, true);
	thread_join(puppet->thread);
}

void owner_stop_at(enum test_point point, int nth)
{
	expect(is_owners(point));
	atomic_store(&owner.passes, nth - 1);
	atomic_store(&owner.released, false);
	atomic_store(&owner.stopped, false);
	atomic_store(&owner.stop_at, (int)point);
}

void owner_wait_stopped(void)
{
	wait_stopped(&owner);
}

void owner_release(void)
{
	atomic_store(&owner.released, true);
}

void owner_stop_at_nothing(void)
{
	atomic_store(&owner.stop_at, NOWHERE);
	atomic_store(&owner.released, true);
}

void until_in_time(bool (*attempt)(uint64_t margin_ns))
{
	uint64_t margin_ns = 30 * MS;

	while (!attempt(margin_ns)) {
		owner_stop_at_nothing();
		margin_ns *= 2;
		expect_lt(margin_ns, 10 * SEC);
	}
}

static bool first_line(const char *tid, const char *name, char *line, int size)
{
	char path[64];
	FILE *file;
	bool found;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/%s", tid, name);
	file = fopen(path, "r");
	if (!file)
		return false;
	found = fgets(line, size, file) != NULL;
	(void)fclose(file);
	return found;
}

/*
 * Is it an owner that does not sleep? Nor is one asleep that is about to, or was woken already: the
 * kernel then says "running" in place of the system call.
 */
static bool thread_is_owner_awake(const char *tid)
{
	char line[256];

	if (!first_line(tid, "stat", line, sizeof(line)) || !strstr(line, "(timerhub) "))
		return false;
	if (!strstr(line, "(timerhub) S"))
		return true;
	return first_line(tid, "syscall", line, sizeof(line)) && (line[0] < '0' || line[0] > '9');
}

static bool owners_awake(void)
{
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *entry;
	bool awake = false;

	expect(folder != NULL);
	while ((entry = readdir(folder)) != NULL)
		awake = thread_is_owner_awake(entry->d_name) || awake;
	(void)closedir(folder);
	return awake;
}

/* On a loaded machine the owner may wait for a processor for long, and count no wake-up. */
void owner_settles(struct timerhub *hub)
{
	uint64_t wakeups, until_ns = monotonic_ns() + ARRIVES;

	do {
		expect_lt(monotonic_ns(), until_ns);
		wakeups = stats_of(hub).owner_wakeups;
		sleep_ns(10 * MS);
	} while (owners_awake() || stats_of(hub).owner_wakeups != wakeups);
}

uint32_t rig_sleeper(void)
{
	const char *name = getenv("TIMERHUB_TEST_SLEEPER");

	if (name && strcmp(name, "uring") == 0)
		return TIMERHUB_SLEEPER_URING;
	return name && strcmp(name, "poll") == 0 ? TIMERHUB_SLEEPER_POLL : TIMERHUB_SLEEPER_AUTO;
}

void puppets_begin(const char *name, int argc, char **argv)
{
	struct timerhub_config config = { .size = sizeof(config), .sleeper = rig_sleeper() };
	struct timerhub *hub;
	int result = timerhub_open(&hub, &config);

	if (result < 0) {
		printf("skipped: no hub with this sleeper: %s\n", strerror(-result));
		exit(77); /* what meson takes for "skipped" */
	}
	timerhub_close(hub);
	tests_begin(name, argc, argv);
	test_point_hook = hook;
}

struct rig rig_open_config(struct timerhub_config config)
{
	struct rig rig = { .has_owner = !(config.flags & TIMERHUB_MANUAL) };

	config.size = sizeof(config);
	if (rig.has_owner)
		config.sleeper = rig_sleeper();
	expect_eq(timerhub_open(&rig.hub, &config), 0);
	expect_eq(timerhub_queue_open(rig.hub, &rig.queue, NULL), 0);
	expect_eq(timerhub_queue_open(rig.hub, &rig.aside, NULL), 0);
	return rig;
}

struct rig rig_open(uint32_t timers_max)
{
	return rig_open_config((struct timerhub_config){ .timers_max = timers_max });
}

struct rig rig_manual(uint32_t timers_max)
{
	return rig_open_config(
		(struct timerhub_config){ .timers_max = timers_max, .flags = TIMERHUB_MANUAL });
}

void rig_close(struct rig *rig)
{
	timerhub_close(rig->hub);
}

struct timerhub_stats stats_of(struct timerhub *hub)
{
	struct timerhub_stats stats;

	expect_eq(timerhub_stats(hub, &stats), 0);
	return stats;
}

timerhub_timer arm_periodic(struct rig *rig, uint64_t at_ns, uint64_t interval_ns, uint64_t data)
{
	struct timerhub_spec spec = { .size = sizeof(spec),
		                      .flags = TIMERHUB_ABSOLUTE,
		                      .expires_ns = at_ns,
		                      .interval_ns = interval_ns,
		                      .data = data };
	timerhub_timer timer = 0;

	expect_eq(timerhub_arm(rig->queue, &spec, &timer), 0);
	return timer;
}

timerhub_timer arm_at(struct rig *rig, uint64_t at_ns, uint64_t data)
{
	return arm_periodic(rig, at_ns, 0, data);
}

struct timerhub_event expect_event(struct rig *rig, uint64_t data)
{
	struct timerhub_event event = { .data = 0 };

	expect_eq(timerhub_wait(rig->queue, &event, 1, ARRIVES), 1);
	expect_eq(event.data, data);
	return event;
}

void expect_nothing(struct rig *rig)
{
	struct timerhub_event event;

	expect_eq(timerhub_drain(rig->queue, &event, 1), 0);
	if (rig->has_owner) {
		/* The owner rings after it has published: what it rang for may be taken by then. */
		owner_settles(rig->hub);
		expect_eq(timerhub_drain(rig->queue, &event, 1), 0);
	}
	expect(!fd_readable(rig->queue));
}

bool fd_readable(const struct timerhub_queue *queue)
{
	struct pollfd pollfd = { .fd = timerhub_queue_fd(queue), .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

void advance(struct rig *rig, uint64_t now_ns)
{
	expect_eq(timerhub_advance(rig->hub, now_ns, NULL), 0);
}

void expect_at(struct rig *rig, uint64_t data, uint64_t at_ns)
{
	advance(rig, at_ns - 1);
	expect_nothing(rig);
	advance(rig, at_ns);
	expect_eq(expect_event(rig, data).expires_ns, at_ns);
}

void owner_looks(struct rig *rig)
{
	struct timerhub_event event;

	expect_eq(timerhub_after(rig->aside, 0, 'B', NULL), 0);
	expect_eq(timerhub_wait(rig->aside, &event, 1, ARRIVES), 1);
	owner_settles(rig->hub);
}
