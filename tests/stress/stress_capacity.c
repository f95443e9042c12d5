/* SPDX-License-Identifier: MIT */
/*
 * Tests laws 2, 3, 7 and 10. In the first test several threads use all slots of a small hub. The
 * threads arm timers of all kinds, re-arm them, cancel them or let them expire, and try stale
 * handles. Every arm must succeed, and each event may come only once. A call on a timer must not
 * change a later timer of the slot. In the second test two threads arm and cancel ten-hour timers
 * at full speed.
 */
#include "rig.h"

#include <stdatomic.h>
#include <stdlib.h>

#define TENANTS 4
#define EACH 4 /* number of timers that each thread has */

enum state { EMPTY, HELD, GONE };

/*
 * A timer and its state. Canceller and consumer both try to change the state from HELD to GONE by
 * compare-and-swap. Only one of them may succeed.
 */
struct cell {
	atomic_uint life_state; /* 4 times the number of timers so far, plus the enum state */
	timerhub_timer handle;
	bool periodic;
};

static struct cell cells[TENANTS][EACH];
static struct rig rig;
static atomic_bool over;

static bool cell_end(struct cell *cell, unsigned life)
{
	unsigned held = life * 4 + HELD;

	return atomic_compare_exchange_strong(&cell->life_state, &held, life * 4 + GONE);
}

static void end_delivered(const struct timerhub_event *event)
{
	struct cell *cell = &cells[event->data % TENANTS][event->data / TENANTS % EACH];
	unsigned life = (unsigned)(event->data / TENANTS / EACH % 0x1000000);
	bool periodic = event->data >> 63;

	expect_cmp(monotonic_ns(), >=, event->expires_ns);
	if (!periodic)
		expect(cell_end(cell, life));
}

static void *take(void *arg)
{
	struct timerhub_event events[4];

	(void)arg;
	while (!atomic_load(&over)) {
		int count = timerhub_wait(rig.queue, events, COUNT_OF(events), 10 * MS);

		expect(count >= 0);
		for (int i = 0; i < count; i++)
			end_delivered(&events[i]);
	}
	return NULL;
}

static void cell_arm(struct cell *cell, unsigned tenant, unsigned at, struct dice *dice)
{
	unsigned life = (atomic_load(&cell->life_state) / 4 + 1) % 0x1000000;
	struct timerhub_spec spec = SPEC(.expires_ns = dice_magnitude(dice, 18));

	cell->periodic = dice_below(dice, 8) == 0;
	if (cell->periodic)
		spec.interval_ns = 1 + dice_magnitude(dice, 18);
	else if (dice_below(dice, 8) == 0)
		spec.slack_ns = dice_magnitude(dice, 18);
	else if (dice_below(dice, 4) == 0)
		spec.expires_ns = 10 * HOUR;
	spec.data = ((uint64_t)life * EACH + at) * TENANTS + tenant;
	spec.data |= (uint64_t)cell->periodic << 63;
	atomic_store(&cell->life_state, life * 4 + HELD);
	cell->handle = arm(rig.queue, spec);
}

static void cell_cancel(struct cell *cell)
{
	unsigned life = atomic_load(&cell->life_state) / 4;
	int result = timerhub_cancel(rig.hub, cell->handle);

	if (result == 0)
		expect(cell_end(cell, life));
	else
		expect(result == -ENOENT && !cell->periodic);
}

static void *run_tenant(void *arg)
{
	unsigned tenant = (unsigned)(uintptr_t)arg;
	struct dice dice = dice_new(tenant);
	timerhub_timer old[64] = { 0 };

	for (unsigned i = 0; i < scaled(250000); i++) {
		unsigned at = (unsigned)dice_below(&dice, EACH);
		struct cell *cell = &cells[tenant][at];

		if (atomic_load(&cell->life_state) % 4 != HELD) {
			if (cell->handle)
				old[dice_below(&dice, 64)] = cell->handle;
			cell_arm(cell, tenant, at, &dice);
		} else if (dice_below(&dice, 2)) {
			int result =
				timerhub_rearm(rig.hub, cell->handle, dice_magnitude(&dice, 18), 0);

			expect(result == 0 || (result == -ENOENT && !cell->periodic));
		} else {
			cell_cancel(cell);
		}
		expect_eq(timerhub_cancel(rig.hub, old[dice_below(&dice, 64)]), -ENOENT);
	}
	for (unsigned at = 0; at < EACH; at++)
		if (atomic_load(&cells[tenant][at].life_state) % 4 == HELD)
			cell_cancel(&cells[tenant][at]);
	return NULL;
}

START_TEST(capacity_is_never_refused_nor_mixed_up)
{
	pthread_t tenants[TENANTS];
	pthread_t takers[2];
	uint64_t until_ns;

	rig = rig_open(TENANTS * EACH);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_start(&takers[i], take, NULL);
	for (unsigned i = 0; i < TENANTS; i++)
		thread_start(&tenants[i], run_tenant, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < TENANTS; i++)
		thread_join(tenants[i]);
	until_ns = monotonic_ns() + ARRIVES;
	while (stats_of(rig.hub).live) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(MS);
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < COUNT_OF(takers); i++)
		thread_join(takers[i]);
	for (unsigned i = 0; i < TENANTS * EACH; i++)
		arm_after(rig.queue, HOUR, i);
	expect_eq(timerhub_after(rig.queue, HOUR, 0, NULL), -EAGAIN);
	rig_close(&rig);
}
END_TEST

static pthread_barrier_t rounds;

static void *churn(void *arg)
{
	(void)arg;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < scaled(1500000); i++) {
			timerhub_timer timer = arm_after(rig.queue, 10 * HOUR, i);

			expect_eq(timerhub_cancel(rig.hub, timer), 0);
		}
		pthread_barrier_wait(&rounds);
	}
	return NULL;
}

/*
 * Two threads arm and cancel timers of a default hub, which has one other live timer. The hub must
 * accept every timer, and its memory must not grow.
 */
START_TEST(capacity_under_churn_costs_no_memory)
{
	pthread_t threads[2];
	uint64_t rss_bytes = 0;

	rig = rig_open(0);
	arm_after(rig.queue, 10 * HOUR, 0);
	expect_eq(pthread_barrier_init(&rounds, NULL, COUNT_OF(threads) + 1), 0);
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_start(&threads[i], churn, NULL);
	for (unsigned round = 0; round < 3; round++) {
		pthread_barrier_wait(&rounds);
		if (round == 0)
			rss_bytes = process_rss_bytes();
	}
	process_rss_is_still(rss_bytes);
	for (unsigned i = 0; i < COUNT_OF(threads); i++)
		thread_join(threads[i]);
	expect_eq(pthread_barrier_destroy(&rounds), 0);
	expect_eq(stats_of(rig.hub).live, 1);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("stress_capacity", argc, argv);
	tests_add(capacity_is_never_refused_nor_mixed_up, 300);
	tests_add(capacity_under_churn_costs_no_memory, 300);
	return tests_run();
}
