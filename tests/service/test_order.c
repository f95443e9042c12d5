/* SPDX-License-Identifier: MIT */
/*
 * Law 5: one consumer gets events in the order of their deadlines, if both timers were armed before
 * the earlier one.
 */
#include "rig.h"

#include <stdatomic.h>

#define TIMERS_MAX 8192

static void expect_not_before(uint64_t expires_ns, uint64_t last_ns)
{
	expect_cmp(expires_ns, >=, last_ns);
}

/* Nanoseconds apart or far; one advance, drained in parts. */
TEST(in_order_manual, 60)
{
	struct dice dice = dice_new(0);

	for (unsigned round = 0; round < scaled(60); round++) {
		struct rig rig = rig_manual(TIMERS_MAX);
		unsigned bits = 4 + (unsigned)dice_below(&dice, 44);
		uint64_t start_ns = dice_magnitude(&dice, 60);
		uint64_t last_ns = 0;
		unsigned left = 2000;

		advance(rig.hub, start_ns);
		for (unsigned i = 0; i < left; i++)
			arm_after(rig.queue, dice_magnitude(&dice, bits), i);
		advance(rig.hub, start_ns + (UINT64_C(1) << bits));
		while (left) {
			struct timerhub_event events[10];
			unsigned max = 1 + (unsigned)dice_below(&dice, COUNT_OF(events));
			int count = timerhub_drain(rig.queue, events, max);

			expect_cmp(count, >, 0);
			for (int i = 0; i < count; i++) {
				expect_not_before(events[i].expires_ns, last_ns);
				last_ns = events[i].expires_ns;
			}
			left -= (unsigned)count;
		}
		rig_close(&rig);
	}
}

/* Several threads arm timers while the owner expires earlier timers. */
/* when the call that armed it had returned */
static uint64_t armed_by_ns[TIMERS_MAX];
static struct timerhub_event came[TIMERS_MAX];

struct armer {
	struct timerhub_queue *queue;
	unsigned first;
	unsigned count;
	uint64_t salt;
};

static void *arm_some(void *arg)
{
	const struct armer *me = arg;
	struct dice dice = dice_new(me->salt);

	for (unsigned i = me->first; i < me->first + me->count; i++) {
		arm_after(me->queue, dice_below(&dice, 10 * MS), i);
		armed_by_ns[i] = monotonic_ns();
		if (i % 16 == 0)
			sleep_ns(50 * US);
	}
	return NULL;
}

static void expect_came_in_order(unsigned count)
{
	for (unsigned later = 1; later < count; later++)
		for (unsigned sooner = 0; sooner < later; sooner++) {
			uint64_t deadline_ns = came[later].expires_ns;

			if (came[sooner].expires_ns > deadline_ns)
				expect(armed_by_ns[came[sooner].data] > deadline_ns ||
				       armed_by_ns[came[later].data] > deadline_ns);
		}
}

static void run_armers(uint64_t salt)
{
	struct rig rig = rig_open(TIMERS_MAX);
	struct armer armers[3];
	pthread_t threads[COUNT_OF(armers)];
	unsigned each = sanitized() ? 500 : 1500;
	unsigned taken = 0;

	for (unsigned i = 0; i < COUNT_OF(armers); i++) {
		armers[i] = (struct armer){ rig.queue, i * each, each, salt + i };
		thread_start(&threads[i], arm_some, &armers[i]);
	}
	while (taken < each * COUNT_OF(armers)) {
		int count = timerhub_wait(rig.queue, &came[taken], TIMERS_MAX - taken, ARRIVES);

		expect_cmp(count, >, 0);
		taken += (unsigned)count;
	}
	for (unsigned i = 0; i < COUNT_OF(armers); i++)
		thread_join(threads[i]);
	expect_came_in_order(taken);
	rig_close(&rig);
}

TEST(in_order_real, 60)
{
	for (unsigned round = 0; round < scaled(4); round++)
		run_armers(round * 10);
}
