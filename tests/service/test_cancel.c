/* SPDX-License-Identifier: MIT */
/* Law 3: cancel is final. Each timer is either cancelled with success or delivered. */
#include "rig.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

static unsigned calls;

static void count_call(const struct timerhub_event *event)
{
	(void)event;
	calls++;
}

START_TEST(cancel_is_final_on_a_real_hub_with_the_expiry_in_the_queue)
{
	struct rig rig = rig_open(8);

	for (unsigned i = 0; i < 50; i++) {
		timerhub_timer timer = arm_after(rig.queue, i * US, i);

		expect(fd_readable_within(timerhub_queue_fd(rig.queue), ARRIVES));
		expect_eq(timerhub_cancel(rig.hub, timer), 0);
		expect_empty(rig.queue);
	}
	expect_eq(stats_of(rig.hub).delivered, 0);
	rig_close(&rig);
}
END_TEST

static struct timerhub *callback_hub;
static timerhub_timer callback_victims[10];

static void cancel_the_others(const struct timerhub_event *event)
{
	calls++;
	expect_eq(timerhub_cancel(callback_hub, event->timer), -ENOENT);
	for (unsigned i = 1; i < COUNT_OF(callback_victims); i++)
		expect_eq(timerhub_cancel(callback_hub, callback_victims[i]), i % 3 ? 0 : -ENOENT);
}

/* All are due at once; the first callback cancels the others, so no other may run. */
START_TEST(cancel_is_final_from_a_callback_for_what_is_due_next)
{
	struct rig rig = rig_manual(16);

	callback_hub = rig.hub;
	for (unsigned i = 0; i < COUNT_OF(callback_victims); i++)
		callback_victims[i] =
			arm(rig.queue, SPEC(.expires_ns = 1000 + 100 * i,
		                            .fn = i ? count_call : cancel_the_others));
	for (unsigned i = 3; i < COUNT_OF(callback_victims); i += 3)
		expect_eq(timerhub_cancel(rig.hub, callback_victims[i]), 0);
	advance(rig.hub, 100000);
	expect_eq(timerhub_dispatch(rig.queue, 1000), 1);
	expect_eq(calls, 1);
	expect_eq(timerhub_dispatch(rig.queue, 1000), 0);
	rig_close(&rig);
}
END_TEST

static void cancel_itself_at_three(const struct timerhub_event *event)
{
	if (++calls == 3)
		expect_eq(timerhub_cancel(callback_hub, event->timer), 0);
}

START_TEST(cancel_is_final_for_a_periodic_timer_in_its_own_callback)
{
	struct rig rig = rig_manual(4);

	callback_hub = rig.hub;
	arm(rig.queue, SPEC(.expires_ns = 1000, .interval_ns = 1000, .fn = cancel_itself_at_three));
	for (uint64_t now_ns = 0; now_ns < 20000; now_ns += 500) {
		advance(rig.hub, now_ns);
		timerhub_dispatch(rig.queue, 10);
	}
	expect_eq(calls, 3);
	expect_eq(stats_of(rig.hub).live, 0);
	rig_close(&rig);
}
END_TEST

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

START_TEST(cancel_is_final_so_the_data_may_be_freed)
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
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("cancel", argc, argv);
	tests_add(cancel_is_final_on_a_real_hub_with_the_expiry_in_the_queue, 60);
	tests_add(cancel_is_final_from_a_callback_for_what_is_due_next, 30);
	tests_add(cancel_is_final_for_a_periodic_timer_in_its_own_callback, 30);
	tests_add(cancel_is_final_so_the_data_may_be_freed, 60);
	return tests_run();
}
