/* SPDX-License-Identifier: MIT */
/* Law 3: cancel is final. Each timer is either cancelled with success or delivered. */
#include "rig.h"

#include <stdatomic.h>
#include <stdlib.h>

/*
 * A timer's data is allocated: whoever cancels with 0 frees it, else the consumer, on delivery. The
 * sanitizers report any mistake.
 */
struct order {
	atomic_uint freed;
	unsigned number;
};

static atomic_uint orders_ended;

static void order_end(struct order *order)
{
	expect_eq(atomic_fetch_add(&order->freed, 1), 0);
	free(order);
	atomic_fetch_add(&orders_ended, 1);
}

static void *consume_orders(void *arg)
{
	struct rig *rig = arg;
	struct timerhub_event events[4];

	for (;;) {
		int count = timerhub_wait(rig->queue, events, COUNT_OF(events), UINT64_MAX);

		if (count == -ESHUTDOWN)
			return NULL;
		for (int i = 0; i < count; i++)
			order_end((struct order *)(uintptr_t)events[i].data);
	}
}

static void race_one_order(struct rig *rig, struct dice *dice, unsigned number)
{
	struct order *order = calloc(1, sizeof(*order));
	timerhub_timer timer;
	int result;

	order->number = number;
	timer = arm_after(rig->queue, dice_magnitude(dice, 18), (uintptr_t)order);
	for (uint64_t until_ns = monotonic_ns() + dice_magnitude(dice, 18);
	     monotonic_ns() < until_ns;)
		;
	result = timerhub_cancel(rig->hub, timer);
	if (result == 0)
		order_end(order);
	else
		expect_eq(result, -ENOENT);
}

TEST(cancel_is_final_so_the_data_may_be_freed, 60)
{
	struct rig rig = rig_open(1024);
	struct timerhub *hub = rig.hub;
	struct dice dice = dice_new(0);
	unsigned count = scaled(8000);
	uint64_t until_ns;
	pthread_t consumers[2];

	for (unsigned i = 0; i < COUNT_OF(consumers); i++)
		thread_start(&consumers[i], consume_orders, &rig);
	for (unsigned i = 0; i < count; i++)
		race_one_order(&rig, &dice, i);
	until_ns = monotonic_ns() + ARRIVES;
	while (atomic_load(&orders_ended) < count) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(MS);
	}
	timerhub_queue_close(rig.queue);
	for (unsigned i = 0; i < COUNT_OF(consumers); i++)
		thread_join(consumers[i]);
	expect_eq(stats_of(hub).cancelled + stats_of(hub).delivered, count);
	timerhub_close(hub);
}
