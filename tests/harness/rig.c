/* SPDX-License-Identifier: MIT */
#include "rig.h"
#include "older_uring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* lets a child that was forked among threads start threads */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

enum timerhub_sleeper sleeper_asked(void)
{
	const char *name = getenv("TIMERHUB_TEST_SLEEPER");

	if (!name || !strcmp(name, "auto"))
		return TIMERHUB_SLEEPER_AUTO;
	if (!strcmp(name, "poll"))
		return TIMERHUB_SLEEPER_POLL;
	uring_is_older |= !strcmp(name, "older_uring");
	if (!strcmp(name, "uring") || !strcmp(name, "older_uring"))
		return TIMERHUB_SLEEPER_URING;
	fprintf(stderr, "TIMERHUB_TEST_SLEEPER=%s: not uring, older_uring, poll or auto\n", name);
	exit(EXIT_FAILURE);
}

static __attribute__((constructor)) void sleeper_needed(void)
{
	if (sleeper_asked() == TIMERHUB_SLEEPER_URING)
		uring_needed();
}

int hub_open(struct timerhub **ret_hub, const struct timerhub_config *config)
{
	int result = timerhub_open(ret_hub, config);

	if (config->sleeper == TIMERHUB_SLEEPER_URING && uring_ran_out(result))
		test_skips("io_uring", -result);
	if (config->sleeper == TIMERHUB_SLEEPER_URING && result == 0)
		expect(uring_was_made);
	return result;
}

struct rig rig_open_config(struct timerhub_config config)
{
	struct rig rig = { NULL, NULL };

	config.size = sizeof(config);
	if (!(config.flags & TIMERHUB_MANUAL))
		config.sleeper = sleeper_asked();
	if (getenv("TIMERHUB_TEST_OBSERVABLE"))
		config.flags |= TIMERHUB_OBSERVABLE;
	expect_eq(hub_open(&rig.hub, &config), 0);
	rig.queue = queue_open(rig.hub);
	return rig;
}

struct rig rig_open(uint32_t timers_max)
{
	return rig_open_config((struct timerhub_config){ .timers_max = timers_max });
}

struct rig rig_manual(uint32_t timers_max)
{
	return rig_open_config(
		(struct timerhub_config){ .flags = TIMERHUB_MANUAL, .timers_max = timers_max });
}

void rig_close(struct rig *rig)
{
	timerhub_close(rig->hub);
	*rig = (struct rig){ NULL, NULL };
}

struct timerhub_queue *queue_open(struct timerhub *hub)
{
	struct timerhub_queue *queue = NULL;

	expect_eq(timerhub_queue_open(hub, &queue, NULL), 0);
	expect(queue);
	return queue;
}

timerhub_timer arm(struct timerhub_queue *queue, struct timerhub_spec spec)
{
	timerhub_timer timer = 0;

	expect_eq(timerhub_arm(queue, &spec, &timer), 0);
	expect(timer != 0);
	return timer;
}

timerhub_timer arm_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data)
{
	timerhub_timer timer = 0;

	expect_eq(timerhub_after(queue, delay_ns, data, &timer), 0);
	expect(timer != 0);
	return timer;
}

timerhub_timer arm_at(struct timerhub_queue *queue, uint64_t expires_ns, uint64_t data)
{
	return arm(queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = expires_ns, .data = data));
}

uint64_t advance(struct timerhub *hub, uint64_t now_ns)
{
	uint64_t next_ns = 0;

	expect_eq(timerhub_advance(hub, now_ns, &next_ns), 0);
	expect_eq(timerhub_now(hub), now_ns);
	return next_ns;
}

void arm_and_expire(struct rig *rig, uint64_t *now_ns, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		arm_after(rig->queue, 1 + i, i);
	*now_ns += US;
	advance(rig->hub, *now_ns);
}

struct timerhub_event take_one(struct timerhub_queue *queue)
{
	struct timerhub_event event = { 0 };

	expect_eq(timerhub_wait(queue, &event, 1, ARRIVES), 1);
	return event;
}

int take_up_to(struct timerhub_queue *queue, unsigned max)
{
	struct timerhub_event events[64];

	expect_cmp(max, <=, COUNT_OF(events));
	return timerhub_drain(queue, events, max);
}

unsigned drain_all(struct timerhub_queue *queue)
{
	struct timerhub_event events[64];
	unsigned total = 0;
	int count;

	while ((count = timerhub_drain(queue, events, COUNT_OF(events))) > 0)
		total += (unsigned)count;
	expect_eq(count, 0);
	return total;
}

void expect_empty(struct timerhub_queue *queue)
{
	struct timerhub_event event;

	expect_eq(timerhub_drain(queue, &event, 1), 0);
}

void ignore_event(const struct timerhub_event *event)
{
	(void)event;
}

void ignore_timeout(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	(void)loop;
	(void)timeout;
}

void no_callback(const struct timerhub_event *event)
{
	(void)event;
	expect(false);
}

int no_timer(const struct timerhub_event *timer, uint64_t interval_ns, void *context)
{
	(void)timer;
	(void)interval_ns;
	(void)context;
	expect(false);
	return 0;
}

struct timerhub_stats stats_of(struct timerhub *hub)
{
	struct timerhub_stats stats;

	expect_eq(timerhub_stats(hub, &stats), 0);
	return stats;
}

/*
 * Waits until the hubs' threads have slept for a whole window, and returns the counters. Equal
 * counts of wake-ups do not suffice, because an owner may be awake and waiting for a CPU.
 */
static struct timerhub_stats settle(struct timerhub *hub, uint64_t window_ns)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	struct timerhub_stats before;
	struct timerhub_stats after;
	bool blocked;

	do {
		expect(monotonic_ns() < until_ns);
		before = stats_of(hub);
		blocked = threads_are_blocked("timerhub");
		sleep_ns(window_ns);
		blocked = threads_are_blocked("timerhub") && blocked;
		after = stats_of(hub);
	} while (!blocked || before.owner_wakeups != after.owner_wakeups);
	return after;
}

void owner_settles(struct timerhub *hub)
{
	(void)settle(hub, 10 * MS);
}

struct timerhub_stats stats_settled(struct timerhub *hub)
{
	return settle(hub, 50 * MS);
}
