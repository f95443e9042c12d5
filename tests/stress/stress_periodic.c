/* SPDX-License-Identifier: MIT */
/*
 * Laws 2, 3 and 7 for periodic timers: fast ones, taken by several consumers, while they are
 * cancelled at random. Of each life the periods 0 .. n - 1 are told, each exactly once: the sums of
 * their numbers, squares and cubes are those of 0 .. n - 1.
 */
#include "hub.h"

#include <stdatomic.h>
#include <stdlib.h>

#define ARMERS 2
#define LIVES_MAX 200000
#define SUMS 4

struct life {
	uint64_t first_ns;
	uint64_t interval_ns;
	_Atomic uint64_t end; /* the highest period told, plus one */
	_Atomic uint64_t sums[SUMS];
};

static struct rig rig;
static struct life lives[LIVES_MAX];
static unsigned lives_each;
static atomic_bool over;

static void life_tell(struct life *life, uint64_t at, uint64_t count)
{
	uint64_t end = atomic_load(&life->end);

	while (end < at + count && !atomic_compare_exchange_weak(&life->end, &end, at + count))
		;
	for (uint64_t i = at; i < at + count; i++) {
		uint64_t power = 1;

		for (unsigned j = 0; j < SUMS; j++, power *= i)
			atomic_fetch_add(&life->sums[j], power);
	}
}

static void expect_told_once(struct life *life)
{
	uint64_t sums[SUMS] = { 0 };

	for (uint64_t i = 0; i < atomic_load(&life->end); i++) {
		uint64_t power = 1;

		for (unsigned j = 0; j < SUMS; j++, power *= i)
			sums[j] += power;
	}
	for (unsigned j = 0; j < SUMS; j++)
		expect_eq(atomic_load(&life->sums[j]), sums[j]);
}

static void *take(void *arg)
{
	struct timerhub_event events[4];

	(void)arg;
	while (!atomic_load(&over)) {
		int count = timerhub_wait(rig.queue, events, COUNT_OF(events), 10 * MS);
		uint64_t now_ns = clock_now_ns();

		for (int i = 0; i < count; i++) {
			struct life *life = &lives[events[i].data];
			uint64_t at = (events[i].expires_ns - life->first_ns) / life->interval_ns;
			uint64_t last_ns =
				events[i].expires_ns + (events[i].count - 1) * life->interval_ns;

			expect_eq((events[i].expires_ns - life->first_ns) % life->interval_ns, 0);
			expect_cmp(last_ns, <=, now_ns);
			life_tell(life, at, events[i].count);
		}
	}
	return NULL;
}

static void *run_armer(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg * lives_each;
	struct dice dice = dice_new(first);

	for (unsigned i = first; i < first + lives_each; i++) {
		timerhub_timer timer;

		lives[i].first_ns = clock_now_ns() + dice_magnitude(&dice, 14);
		lives[i].interval_ns = 2000 + dice_magnitude(&dice, 15);
		timer = arm(rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .data = i,
		                            .expires_ns = lives[i].first_ns,
		                            .interval_ns = lives[i].interval_ns));
		clock_sleep_ns(dice_magnitude(&dice, 18));
		expect_eq(timerhub_cancel(rig.hub, timer), 0);
		expect_eq(timerhub_cancel(rig.hub, timer), -ENOENT);
	}
	return NULL;
}

START_TEST(periods_are_told_once_each_under_races)
{
	pthread_t armers[ARMERS];
	pthread_t takers[3];
	uint64_t told = 0;

	lives_each = scaled(8000) < LIVES_MAX / ARMERS ? scaled(8000) : LIVES_MAX / ARMERS;
	rig = rig_open(ARMERS);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_start(&takers[i], take, NULL);
	for (unsigned i = 0; i < ARMERS; i++)
		thread_start(&armers[i], run_armer, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < ARMERS; i++)
		thread_join(armers[i]);
	atomic_store(&over, true);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_join(takers[i]);
	for (unsigned i = 0; i < ARMERS * lives_each; i++) {
		expect_told_once(&lives[i]);
		told += atomic_load(&lives[i].end);
	}
	expect_eq(stats_of(rig.hub).delivered + stats_of(rig.hub).overruns, told);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("stress_periodic", argc, argv);
	tests_add(periods_are_told_once_each_under_races, 300);
	return tests_run();
}
