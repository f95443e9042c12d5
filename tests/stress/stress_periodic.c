/* SPDX-License-Identifier: MIT */
/*
 * Tests laws 2, 3 and 7 for periodic timers. Several consumers take the events of fast periodic
 * timers, which are cancelled at random. No period of a timer may be reported twice. All periods up
 * to the cancel must be reported. If a consumer holds an event during the cancel, the periods of
 * that event may be lost.
 */
#include "rig.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define ARMERS 2
#define TAKERS 3
#define LIVES_MAX 200000
/*
 * One in RESTS_EVERY timers is cancelled while no consumer holds an event of the timer. The other
 * timers are cancelled at any time.
 */
#define RESTS_EVERY 8
/*
 * Number of periods of each timer that are recorded. A timer reaches more than PERIODS_MAX periods
 * only if the machine stalls.
 */
#define PERIODS_MAX 512

struct life {
	uint64_t first_ns;
	uint64_t interval_ns;
	_Atomic uint64_t count; /* number of periods that events have reported */
	/* a bit for each of the first PERIODS_MAX periods, set when reported */
	_Atomic uint64_t told[PERIODS_MAX / 64];
};

static struct rig rig;
static struct life lives[LIVES_MAX];
static unsigned lives_each;
static atomic_bool over;

static _Atomic uint64_t turns[TAKERS];

static bool life_rests(const struct life *life)
{
	return (life - lives) % RESTS_EVERY == 0;
}

static void life_tell(struct life *life, uint64_t at, uint64_t count)
{
	atomic_fetch_add(&life->count, count);
	for (uint64_t i = at; i < at + count && i < PERIODS_MAX; i++) {
		uint64_t bit = (uint64_t)1 << i % 64;

		expect_eq(atomic_fetch_or(&life->told[i / 64], bit) & bit, 0);
	}
}

static bool life_has_told(const struct life *life, uint64_t period)
{
	return (atomic_load(&life->told[period / 64]) >> period % 64 & 1) != 0;
}

/* Returns the number of gaps. A gap is an unreported period that precedes a reported period. */
static unsigned life_gaps(const struct life *life)
{
	unsigned gaps = 0;

	for (uint64_t i = 1; i < PERIODS_MAX; i++)
		gaps += life_has_told(life, i) && !life_has_told(life, i - 1);
	return gaps;
}

/* Wait until no consumer holds an event that it took before this call. */
static void wait_for_takers(void)
{
	uint64_t before[TAKERS];

	for (unsigned i = 0; i < TAKERS; i++)
		before[i] = atomic_load(&turns[i]);
	for (unsigned i = 0; i < TAKERS; i++)
		while (atomic_load(&turns[i]) < before[i] + 2) {
			timerhub_interrupt(rig.queue);
			sched_yield();
		}
}

static void *take(void *arg)
{
	_Atomic uint64_t *turn = arg;
	struct timerhub_event events[4];

	while (!atomic_load(&over)) {
		int count = timerhub_wait(rig.queue, events, COUNT_OF(events), 10 * MS);
		uint64_t now_ns = monotonic_ns();

		for (int i = 0; i < count; i++) {
			struct life *life = &lives[events[i].data];
			/*
			 * The event's deadline is rounded to a tick. An interval is longer than a
			 * tick, so the deadline says which period the event reports.
			 */
			uint64_t at = (events[i].expires_ns - life->first_ns) / life->interval_ns;
			uint64_t last = at + events[i].count - 1;

			expect_cmp(events[i].expires_ns, ==,
			           life->first_ns + at * life->interval_ns);
			expect_cmp(life->first_ns + last * life->interval_ns, <=, now_ns);
			life_tell(life, at, events[i].count);
		}
		atomic_fetch_add(turn, 1);
	}
	return NULL;
}

static void *run_armer(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg * lives_each;
	struct dice dice = dice_new(first);

	for (unsigned i = first; i < first + lives_each; i++) {
		timerhub_timer timer;

		lives[i].first_ns = monotonic_ns() + dice_magnitude(&dice, 14);
		lives[i].interval_ns = 2000 + dice_magnitude(&dice, 15);
		timer = arm(rig.queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .data = i,
		                            .expires_ns = lives[i].first_ns,
		                            .interval_ns = lives[i].interval_ns));
		sleep_ns(dice_magnitude(&dice, 18));
		if (life_rests(&lives[i])) {
			expect_eq(timerhub_rearm(rig.hub, timer, UINT64_MAX, 0), 0);
			wait_for_takers();
		}
		expect_eq(timerhub_cancel(rig.hub, timer), 0);
		expect_eq(timerhub_cancel(rig.hub, timer), -ENOENT);
	}
	return NULL;
}

START_TEST(periods_are_told_once_each_under_races)
{
	pthread_t armers[ARMERS];
	pthread_t takers[TAKERS];
	uint64_t told = 0;

	lives_each = scaled(8000) < LIVES_MAX / ARMERS ? scaled(8000) : LIVES_MAX / ARMERS;
	rig = rig_open(ARMERS);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_start(&takers[i], take, (void *)&turns[i]);
	for (unsigned i = 0; i < ARMERS; i++)
		thread_start(&armers[i], run_armer, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < ARMERS; i++)
		thread_join(armers[i]);
	atomic_store(&over, true);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_join(takers[i]);
	for (unsigned i = 0; i < ARMERS * lives_each; i++) {
		expect_cmp(life_gaps(&lives[i]), <=, life_rests(&lives[i]) ? 0 : TAKERS - 1);
		told += atomic_load(&lives[i].count);
	}
	expect_eq(stats_of(rig.hub).delivered + stats_of(rig.hub).overruns, told);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("stress_periodic", argc, argv);
	tests_add(periods_are_told_once_each_under_races, 300);
	return tests_run();
}
