/* SPDX-License-Identifier: MIT */
/*
 * Tests timerhub_queue_stop() while workers are between and inside their waits. Each worker's wait
 * must end. No event of a timer that expired before the stop may stay in the queue.
 */
#include "rig.h"

#include <sched.h>
#include <stdatomic.h>

#define WORKERS 2

/*
 * In each round the workers take events from one queue. The thread that stops the queue opens the
 * queue of the next round.
 */
static struct rig rig;
static struct timerhub_queue *_Atomic queue;
static atomic_uint home; /* number of workers that have left the queue of this round */
static atomic_bool over;

static void *work(void *argument)
{
	struct timerhub_queue *last = NULL;
	struct dice dice = dice_new((uintptr_t)argument);

	while (!atomic_load(&over)) {
		struct timerhub_queue *mine = atomic_load(&queue);
		struct timerhub_event event;
		int result;

		if (mine == last) {
			(void)sched_yield();
			continue;
		}
		do {
			/*
			 * Pause for a random time, so that the stop comes before, during or after a
			 * wait.
			 */
			for (uint64_t i = dice_magnitude(&dice, 8); i > 0; i--)
				(void)atomic_load(&over);
			result = timerhub_wait(mine, &event, 1, UINT64_MAX);
		} while (result == 1);
		expect_eq(result, -ESHUTDOWN);
		last = mine;
		atomic_fetch_add(&home, 1);
	}
	return NULL;
}

static void wait_until_home(void)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	for (unsigned i = 0; atomic_load(&home) < WORKERS; i++) {
		if (i % 1024 == 0)
			expect(monotonic_ns() < until_ns);
		(void)sched_yield();
	}
}

START_TEST(stopped_workers_come_home)
{
	unsigned rounds = scaled(8000);
	struct timerhub_queue *queues[2] = { NULL, NULL };
	struct dice dice = dice_new(77);
	pthread_t workers[WORKERS];
	uint64_t now_ns = 0;

	rig = rig_manual(64);
	for (unsigned i = 0; i < WORKERS; i++)
		thread_start(&workers[i], work, (void *)(uintptr_t)i);
	for (unsigned round = 0; round < rounds; round++) {
		struct timerhub_queue **mine = &queues[round % 2];
		unsigned count = (unsigned)dice_below(&dice, 4);

		/* the workers no longer use the queue of the round before last */
		timerhub_queue_close(*mine);
		*mine = queue_open(rig.hub);
		atomic_store(&home, 0);
		atomic_store(&queue, *mine);
		for (unsigned i = 0; i < count; i++)
			arm_at(*mine, now_ns + 1, i);
		advance(rig.hub, now_ns = now_ns + 1);
		for (uint64_t i = dice_magnitude(&dice, 10); i > 0; i--)
			(void)atomic_load(&over);
		timerhub_queue_stop(*mine);
		wait_until_home();
		expect_empty(*mine);
		expect_eq(stats_of(rig.hub).live, 0);
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < WORKERS; i++)
		thread_join(workers[i]);
	rig_close(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("stress_stop", argc, argv);
	tests_add(stopped_workers_come_home, 300);
	return tests_run();
}
