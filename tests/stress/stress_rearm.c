/* SPDX-License-Identifier: MIT */
/*
 * Tests laws 2 and 4. Timers are re-armed earlier, later and to NEVER at about the time when they
 * expire. Each timer must be delivered once, with the deadline of the last re-arm that returned 0.
 * After a re-arm of a timer has returned -ENOENT, no later re-arm of the timer may return 0.
 */
#include "rig.h"

#include <stdatomic.h>
#include <stdlib.h>

#define MOVERS 2
#define TIMERS 32 /* number of timers that each mover has at a time */
/* largest difference between an event's deadline and the requested deadline */
#define ROUNDING_NS 128

struct moved {
	timerhub_timer handle;
	/* deadline of the last re-arm that returned 0. UINT64_MAX means NEVER. */
	uint64_t asked_ns;
	bool told;                /* true if a re-arm of the timer has returned -ENOENT */
	_Atomic uint64_t came_ns; /* deadline in the timer's event. 0 before the event. */
};

static struct rig rig;
static struct moved table[MOVERS][TIMERS];
static atomic_bool over;

static void *take(void *arg)
{
	struct timerhub_event events[8];

	(void)arg;
	while (!atomic_load(&over)) {
		int count = timerhub_wait(rig.queue, events, COUNT_OF(events), 10 * MS);

		expect(count >= 0);
		for (int i = 0; i < count; i++) {
			struct moved *moved =
				&table[events[i].data / TIMERS][events[i].data % TIMERS];

			expect_cmp(monotonic_ns(), >=, events[i].expires_ns);
			expect_eq(atomic_exchange(&moved->came_ns, events[i].expires_ns), 0);
		}
	}
	return NULL;
}

static void move(struct moved *moved, uint64_t deadline_ns)
{
	int result = timerhub_rearm(rig.hub, moved->handle, deadline_ns, TIMERHUB_ABSOLUTE);

	expect(result == 0 || result == -ENOENT);
	/* an earlier re-arm has returned -ENOENT, so the timer is delivered */
	expect(!(moved->told && result == 0));
	if (result == 0)
		moved->asked_ns = deadline_ns;
	else
		moved->told = true;
}

/* Returns a random deadline: mostly close to now, sometimes in the past, in an hour, or NEVER. */
static uint64_t some_deadline(struct dice *dice)
{
	switch (dice_below(dice, 8)) {
	case 0:
		return monotonic_ns() - dice_magnitude(dice, 14);
	case 1:
		return monotonic_ns() + HOUR;
	case 2:
		return TIMERHUB_NEVER;
	default:
		return monotonic_ns() + dice_magnitude(dice, 16);
	}
}

static void expect_came(struct moved *moved)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;
	uint64_t came_ns;

	while (!(came_ns = atomic_load(&moved->came_ns))) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(20 * US);
	}
	expect_cmp(came_ns, >=, moved->asked_ns);
	expect_cmp(came_ns, <, moved->asked_ns + ROUNDING_NS);
	expect_eq(timerhub_rearm(rig.hub, moved->handle, 1, 0), -ENOENT);
}

static void run_round(struct moved *timers, unsigned mover, struct dice *dice)
{
	for (unsigned i = 0; i < TIMERS; i++) {
		atomic_store(&timers[i].came_ns, 0);
		timers[i].told = false;
		timers[i].asked_ns = monotonic_ns() + dice_magnitude(dice, 16);
		timers[i].handle = arm_at(rig.queue, timers[i].asked_ns, mover * TIMERS + i);
	}
	for (unsigned i = 0; i < TIMERS * 20; i++)
		move(&timers[dice_below(dice, TIMERS)], some_deadline(dice));
	for (unsigned i = 0; i < TIMERS; i++)
		move(&timers[i], monotonic_ns() + dice_magnitude(dice, 14));
	for (unsigned i = 0; i < TIMERS; i++)
		expect_came(&timers[i]);
}

static void *run_mover(void *arg)
{
	unsigned mover = (unsigned)(uintptr_t)arg;
	struct dice dice = dice_new(mover);

	for (unsigned round = 0; round < scaled(1500); round++)
		run_round(table[mover], mover, &dice);
	return NULL;
}

START_TEST(rearm_is_final_under_races)
{
	pthread_t movers[MOVERS];
	pthread_t takers[2];

	rig = rig_open(MOVERS * TIMERS);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_start(&takers[i], take, NULL);
	for (unsigned i = 0; i < MOVERS; i++)
		thread_start(&movers[i], run_mover, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < MOVERS; i++)
		thread_join(movers[i]);
	atomic_store(&over, true);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_join(takers[i]);
	expect_empty(rig.queue);
	expect_eq(stats_of(rig.hub).live, 0);
	expect_eq(stats_of(rig.hub).armed, stats_of(rig.hub).delivered);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("stress_rearm", argc, argv);
	tests_add(rearm_is_final_under_races, 300);
	return tests_run();
}
