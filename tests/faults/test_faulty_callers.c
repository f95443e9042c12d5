/* SPDX-License-Identifier: MIT */
/*
 * The program makes the faults: strangers write and read a queue's eventfd, and the wake fd. The
 * simulation and tests/service/test_lifecycle.c close among waiters and callers.
 */
#include "checked_workload.h"

#include <stdatomic.h>
#include <unistd.h>

#define FULL (UINT64_MAX - 1) /* the largest count of an eventfd */

static atomic_bool over;

/* To the maximum, again if the owner has signalled meanwhile. */
static void fill_up(int fd)
{
	uint64_t most = FULL;
	uint64_t count;

	do
		(void)!read(fd, &count, sizeof(count));
	while (write(fd, &most, sizeof(most)) != sizeof(most));
}

static void *fill_and_read(void *arg)
{
	struct timerhub_queue *queue = arg;
	struct dice dice = dice_new(3);
	uint64_t count;

	while (!atomic_load(&over)) {
		if (dice_below(&dice, 3) > 0)
			fill_up(timerhub_queue_fd(queue));
		else
			(void)!read(timerhub_queue_fd(queue), &count, sizeof(count));
		sleep_ns(dice_below(&dice, 300 * US));
	}
	return NULL;
}

TEST(a_strangers_eventfd_writes_harm_no_waiter, 60)
{
	/* for all timers of the test, even if nobody consumes */
	struct rig rig = rig_open(1024);
	pthread_t stranger;

	thread_start(&stranger, fill_and_read, rig.queue);
	life_live(&rig, scaled(600), 100 * MS);
	atomic_store(&over, true);
	thread_join(stranger);
	owner_rests(rig.hub);
	rig_close(&rig);
}

/*
 * Waits until the eventfd is readable, or until epoll reports an edge of it. An owner that finds
 * the eventfd full clears it and writes again, so it is unreadable for a moment.
 */
static void await(const struct rig *rig, int poll_fd)
{
	if (poll_fd == timerhub_queue_fd(rig->queue))
		expect(fd_readable_within(poll_fd, ARRIVES));
	else
		expect(edge_seen(poll_fd, ARRIVES));
}

/* Expects one event of each timer by poll() and drain, though the eventfd is full before each. */
static void take_polled(struct rig *rig, int poll_fd)
{
	struct timerhub_event events[4];

	for (unsigned i = 0; i < scaled(400); i++) {
		unsigned taken = 0;

		fill_up(timerhub_queue_fd(rig->queue));
		if (i % 2)
			expect_empty(rig->queue);
		arm_after(rig->queue, i % 5 * 50 * US, i);
		while (taken == 0) {
			await(rig, poll_fd);
			for (int count; (count = timerhub_drain(rig->queue, events, 4)) > 0;)
				taken += (unsigned)count;
		}
		expect_eq(taken, 1);
		expect_eq(events[0].data, i);
	}
}

TEST_LOOP(a_full_eventfd_still_wakes_a_poller_by_level_and_by_edge, 60, 2)
{
	struct rig rig = rig_open(4);
	int epoll = edge_open(timerhub_queue_fd(rig.queue));

	take_polled(&rig, _i == 0 ? timerhub_queue_fd(rig.queue) : epoll);
	owner_rests(rig.hub);
	close(epoll);
	rig_close(&rig);
}

TEST(a_full_eventfd_is_cleared_by_the_next_drain_of_an_event, 60)
{
	struct rig rig = rig_manual(4);
	int fd = timerhub_queue_fd(rig.queue);

	for (unsigned i = 1; i <= 100; i++) {
		fill_up(fd);
		arm_after(rig.queue, US, i);
		advance(rig.hub, i * MS);
		expect(fd_readable(fd));
		expect_eq(drain_all(rig.queue), 1);
		expect(!fd_readable(fd));
	}
	rig_close(&rig);
}

TEST(a_full_wake_fd_still_speaks, 60)
{
	struct rig rig = rig_manual(256);
	int epoll = edge_open(timerhub_wake_fd(rig.hub));

	for (unsigned i = 1; i <= 100; i++) {
		advance(rig.hub, i * MS);
		expect(!fd_readable(timerhub_wake_fd(rig.hub)));
		fill_up(timerhub_wake_fd(rig.hub));
		expect(edge_seen(epoll, 0));
		arm_after(rig.queue, HOUR - i * SEC, i);
		expect(edge_seen(epoll, 0));
		expect(fd_readable(timerhub_wake_fd(rig.hub)));
	}
	close(epoll);
	rig_close(&rig);
}
