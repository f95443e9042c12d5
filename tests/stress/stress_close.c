/* SPDX-License-Identifier: MIT */
/*
 * Tests closing queues and hubs while their timers expire and threads wait for their events. Every
 * wait must end with -ESHUTDOWN. The queues that stay open must keep working. Every slot must
 * become free.
 */
#include "rig.h"

#include <stdatomic.h>
#include <unistd.h>

#define WAITERS 3

struct waiter {
	pthread_t thread;
	struct timerhub_queue *queue;
	atomic_int tid; /* thread id of the waiter. 0 until the waiter is about to wait. */
};

static void *wait_to_the_end(void *arg)
{
	struct waiter *me = arg;
	struct timerhub_event event;

	atomic_store(&me->tid, gettid());
	expect_eq(timerhub_wait(me->queue, &event, 1, UINT64_MAX), -ESHUTDOWN);
	return NULL;
}

static void waiters_start(struct waiter *waiters, struct timerhub_queue *queue)
{
	for (unsigned i = 0; i < WAITERS; i++) {
		waiters[i].queue = queue;
		atomic_store(&waiters[i].tid, 0);
		thread_start(&waiters[i].thread, wait_to_the_end, &waiters[i]);
	}
	for (unsigned i = 0; i < WAITERS; i++) {
		while (!atomic_load(&waiters[i].tid))
			sleep_ns(10 * US);
		thread_blocks(atomic_load(&waiters[i].tid));
	}
}

static void fill(struct timerhub_queue *queue, unsigned count, struct dice *dice)
{
	for (unsigned i = 0; i < count; i++)
		arm(queue, SPEC(.expires_ns = dice_magnitude(dice, 20),
		                .interval_ns = i % 4 ? 0 : 1 + dice_magnitude(dice, 16)));
}

START_TEST(close_amid_expiries_gives_everything_back)
{
	struct dice dice = dice_new(0);
	struct rig rig = rig_open(500);

	for (unsigned round = 0; round < scaled(1500); round++) {
		struct timerhub_queue *queue = queue_open(rig.hub);
		struct timerhub_event event;

		fill(queue, 400, &dice);
		arm_after(rig.queue, dice_magnitude(&dice, 18), round);
		for (uint64_t i = dice_magnitude(&dice, 8); i; i--)
			timerhub_drain(queue, &event, 1);
		sleep_ns(dice_magnitude(&dice, 18));
		timerhub_queue_close(queue);
		expect_eq(take_one(rig.queue).data, round);
		expect_eq(stats_of(rig.hub).live, 0);
	}
	for (unsigned i = 0; i < 500; i++)
		arm_after(rig.queue, HOUR, i);
	expect_eq(timerhub_after(rig.queue, HOUR, 0, NULL), -EAGAIN);
	rig_close(&rig);
}
END_TEST

/*
 * Threads wait for events of an idle queue, while another queue has many events. During the waits
 * the idle queue or the hub is closed.
 */
START_TEST(close_tells_every_waiter)
{
	struct dice dice = dice_new(0);

	for (unsigned round = 0; round < scaled(200); round++) {
		struct rig rig = rig_open(300);
		struct timerhub_queue *calm = queue_open(rig.hub);
		struct waiter waiters[WAITERS];

		waiters_start(waiters, calm);
		fill(rig.queue, 200, &dice);
		if (round % 2)
			timerhub_queue_close(calm);
		else
			rig_close(&rig);
		for (unsigned i = 0; i < WAITERS; i++)
			thread_join(waiters[i].thread);
		if (round % 2)
			rig_close(&rig);
	}
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("stress_close", argc, argv);
	tests_add(close_amid_expiries_gives_everything_back, 300);
	tests_add(close_tells_every_waiter, 300);
	return tests_run();
}
