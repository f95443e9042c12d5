/* SPDX-License-Identifier: MIT */
/*
 * Tests laws 2 and 4 for kept timers. Two threads re-arm timers while the timers expire and are
 * delivered. No re-arm may be refused. A timer must expire once after it was armed, and once after
 * each re-arm that found it idle. Each of these expiries must be delivered exactly once.
 */
#include "rig.h"

#include <sched.h>
#include <stdatomic.h>

#define MOVERS 2
#define TIMERS 16

struct kept {
	timerhub_timer handle;
	/*
	 * number of expiries that must come: 1, plus the number of re-arms that found the timer
	 * idle
	 */
	_Atomic uint64_t started;
	_Atomic uint64_t came;
};

static struct rig rig;
static struct kept table[TIMERS];

static void take_events(const struct timerhub_event *events, int count)
{
	for (int i = 0; i < count; i++) {
		expect_cmp(monotonic_ns(), >=, events[i].expires_ns);
		expect_eq(events[i].timer, table[events[i].data].handle);
		atomic_fetch_add(&table[events[i].data].came, 1);
	}
}

static void *take(void *unused)
{
	struct timerhub_event events[8];
	int count;

	(void)unused;
	while ((count = timerhub_wait(rig.queue, events, COUNT_OF(events), UINT64_MAX)) > 0)
		take_events(events, count);
	expect_eq(count, -ESHUTDOWN);
	return NULL;
}

/* Returns a random delay: mostly a few microseconds, sometimes an hour. */
static uint64_t some_delay(struct dice *dice)
{
	return dice_below(dice, 16) == 0 ? HOUR : dice_magnitude(dice, 13);
}

static void move(struct kept *kept, uint64_t expires_ns, uint32_t flags)
{
	int result = timerhub_rearm(rig.hub, kept->handle, expires_ns, flags);

	expect(result == 0 || result == 1);
	if (result == 1)
		atomic_fetch_add(&kept->started, 1);
}

static void *run_mover(void *arg)
{
	struct dice dice = dice_new((uintptr_t)arg);

	for (unsigned i = 0; i < scaled(200000); i++) {
		struct kept *kept = &table[dice_below(&dice, TIMERS)];

		if (dice_below(&dice, 2) == 0)
			move(kept, some_delay(&dice), 0);
		else
			move(kept, monotonic_ns() + some_delay(&dice), TIMERHUB_ABSOLUTE);
	}
	return NULL;
}

START_TEST(kept_timers_come_once_for_each_start)
{
	pthread_t movers[MOVERS], takers[2];
	uint64_t total = 0;

	rig = rig_open(TIMERS);
	for (unsigned i = 0; i < TIMERS; i++) {
		atomic_store(&table[i].started, 1);
		table[i].handle = arm(rig.queue, SPEC(.flags = TIMERHUB_KEEP,
		                                      .expires_ns = TIMERHUB_NEVER, .data = i));
	}
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_start(&takers[i], take, NULL);
	for (unsigned i = 0; i < MOVERS; i++)
		thread_start(&movers[i], run_mover, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < MOVERS; i++)
		thread_join(movers[i]);
	for (unsigned i = 0; i < TIMERS; i++)
		move(&table[i], 0, 0);
	for (unsigned i = 0; i < TIMERS; i++) {
		uint64_t until_ns = monotonic_ns() + ARRIVES;

		while (atomic_load(&table[i].came) < atomic_load(&table[i].started)) {
			expect(monotonic_ns() < until_ns);
			sleep_ns(50 * US);
		}
		total += atomic_load(&table[i].started);
	}
	timerhub_queue_stop(rig.queue);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_join(takers[i]);
	for (unsigned i = 0; i < TIMERS; i++) {
		expect_eq(atomic_load(&table[i].came), atomic_load(&table[i].started));
		expect_eq(timerhub_rearm(rig.hub, table[i].handle, HOUR, 0), 1);
	}
	expect_eq(stats_of(rig.hub).delivered, total);
	expect_eq(stats_of(rig.hub).armed, TIMERS);
	expect_eq(stats_of(rig.hub).live, TIMERS);
	rig_close(&rig);
}
END_TEST

/* ---- manual hubs: the delivering thread advances the clock by a step in each turn ---- */

static atomic_bool moved;

static void *run_stepper(void *unused)
{
	struct timerhub_event events[TIMERS];
	uint64_t now_ns = 0;
	bool last = false;

	(void)unused;
	while (!last) {
		last = atomic_load(&moved);
		advance(rig.hub, now_ns += 64);
		for (int i = 0, count = timerhub_drain(rig.queue, events, TIMERS); i < count; i++) {
			expect_cmp(events[i].expires_ns, <=, now_ns);
			atomic_fetch_add(&table[events[i].data].came, 1);
		}
	}
	return NULL;
}

/*
 * Re-arms random timers, each to one of the next three steps of the clock. At most TIMERS re-arms
 * are made in one step of the clock.
 */
static void *run_racer(void *arg)
{
	struct dice dice = dice_new((uintptr_t)arg);
	uint64_t now_ns = 0;

	for (unsigned i = 0; i < scaled(100000); i++) {
		while (i % TIMERS == 0 && timerhub_now(rig.hub) == now_ns)
			(void)sched_yield();
		now_ns = timerhub_now(rig.hub);
		move(&table[dice_below(&dice, TIMERS)], now_ns + dice_below(&dice, 192),
		     TIMERHUB_ABSOLUTE);
	}
	return NULL;
}

START_TEST(kept_timers_race_with_every_step_of_the_clock)
{
	uint64_t came = 0;
	pthread_t stepper, racer;

	rig = rig_manual(TIMERS);
	for (unsigned i = 0; i < TIMERS; i++) {
		atomic_store(&table[i].started, 1);
		table[i].handle = arm(rig.queue, SPEC(.flags = TIMERHUB_KEEP,
		                                      .expires_ns = TIMERHUB_NEVER, .data = i));
	}
	thread_start(&stepper, run_stepper, NULL);
	thread_start(&racer, run_racer, NULL);
	thread_join(racer);
	for (unsigned i = 0; i < TIMERS; i++)
		move(&table[i], 0, TIMERHUB_ABSOLUTE);
	atomic_store(&moved, true);
	thread_join(stepper);
	for (unsigned i = 0; i < TIMERS; i++) {
		expect_eq(atomic_load(&table[i].came), atomic_load(&table[i].started));
		came += atomic_load(&table[i].came);
	}
	expect_eq(stats_of(rig.hub).delivered, came);
	expect_cmp(came, >, TIMERS);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("stress_keep", argc, argv);
	tests_add(kept_timers_come_once_for_each_start, 300);
	tests_add(kept_timers_race_with_every_step_of_the_clock, 300);
	return tests_run();
}
