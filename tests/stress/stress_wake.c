/* SPDX-License-Identifier: MIT */
/*
 * Tests that no wake-up of the owner or of a consumer is lost. Each thread arms one timer at a
 * time, and blocks until the timer's event comes. If a wake-up is lost, the thread hangs, and the
 * test fails after 20 s (ARRIVES). Another thread moves the owner's promise to earlier and later
 * times. The promise is the time by which the owner looks at the inbox.
 */
#include "rig.h"

#include <stdatomic.h>
#include <unistd.h>

static struct rig rig;
static atomic_bool over;

enum way { BY_WAIT, BY_POLL, BY_EDGE, WAYS };

static void take_blocking(struct timerhub_queue *queue, enum way way, int edge_fd, uint64_t data)
{
	struct timerhub_event event;
	int count;

	if (way == BY_WAIT) {
		expect_eq(take_one(queue).data, data);
		return;
	}
	do {
		if (way == BY_POLL)
			expect(fd_readable_within(timerhub_queue_fd(queue), ARRIVES));
		else
			expect(edge_seen(edge_fd, ARRIVES));
		count = timerhub_drain(queue, &event, 1);
	} while (count == 0);
	expect_eq(count, 1);
	expect_eq(event.data, data);
	/* the queue must be empty, so that the next event writes the descriptor */
	if (way == BY_EDGE)
		expect_empty(queue);
}

static void *ping(void *arg)
{
	enum way way = (enum way)(uintptr_t)arg;
	struct timerhub_queue *queue = queue_open(rig.hub);
	struct dice dice = dice_new(way);
	int edge_fd = edge_open(timerhub_queue_fd(queue));

	for (unsigned i = 0; i < scaled(20000); i++) {
		if (dice_below(&dice, 2)) {
			arm_after(queue, dice_magnitude(&dice, 17), i);
		} else {
			timerhub_timer timer = arm_after(queue, HOUR, i);

			expect_eq(timerhub_rearm(rig.hub, timer, dice_magnitude(&dice, 17), 0), 0);
		}
		take_blocking(queue, way, edge_fd, i);
	}
	close(edge_fd);
	timerhub_queue_close(queue);
	return NULL;
}

/*
 * Arms an early timer again and again. The timer expires, is moved or is cancelled. The owner
 * therefore changes its promise while other threads submit.
 */
static void *move_promise(void *arg)
{
	struct dice dice = dice_new(99);

	(void)arg;
	while (!atomic_load(&over)) {
		timerhub_timer timer = arm_after(rig.queue, dice_magnitude(&dice, 22), 0);

		if (dice_below(&dice, 2))
			timerhub_rearm(rig.hub, timer, HOUR, 0);
		sleep_ns(dice_magnitude(&dice, 17));
		timerhub_cancel(rig.hub, timer);
		drain_all(rig.queue);
	}
	return NULL;
}

START_TEST(wake_is_never_lost)
{
	pthread_t pings[WAYS];
	pthread_t mover;

	rig = rig_open(64);
	thread_start(&mover, move_promise, NULL);
	for (uintptr_t i = 0; i < WAYS; i++)
		thread_start(&pings[i], ping, (void *)i);
	for (unsigned i = 0; i < WAYS; i++)
		thread_join(pings[i]);
	atomic_store(&over, true);
	thread_join(mover);
	rig_close(&rig);
}
END_TEST

/* No other thread uses the hub, so the owner goes to sleep before each timer and must be woken. */
START_TEST(wake_is_never_lost_alone)
{
	struct dice dice = dice_new(1);
	struct rig alone = rig_open(64);

	for (unsigned i = 0; i < scaled(30000); i++) {
		uint64_t until_ns;

		arm_after(alone.queue, 0, i);
		expect_eq(take_one(alone.queue).data, i);
		until_ns = monotonic_ns() + dice_magnitude(&dice, 15);
		while (monotonic_ns() < until_ns)
			;
	}
	rig_close(&alone);
}
END_TEST

int main(int argc, char **argv)
{
	rigs_begin("stress_wake", argc, argv);
	tests_add(wake_is_never_lost, 300);
	tests_add(wake_is_never_lost_alone, 300);
	return tests_run();
}
