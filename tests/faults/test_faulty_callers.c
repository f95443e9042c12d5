/* SPDX-License-Identifier: MIT */
/*
 * The program makes the faults: it writes and reads a queue's eventfd, closes under waits and
 * calls, and arms on a closing queue.
 */
#include "checked_workload.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define FULL (UINT64_MAX - 1) /* the largest count of an eventfd */

static atomic_bool over;

/* ---- strangers write and read the eventfd ---- */

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
 * Readable or an edge: an owner that finds the eventfd full clears it and writes again, and it is
 * unreadable between.
 */
static void await(const struct rig *rig, int poll_fd)
{
	if (poll_fd == timerhub_queue_fd(rig->queue))
		expect(fd_readable_within(poll_fd, ARRIVES));
	else
		expect(edge_seen(poll_fd, ARRIVES));
}

/* By poll() and drain, with the eventfd set to its maximum before each. */
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

/* ---- close while other threads call ---- */

#define WAITERS 3
#define TIMERS 64
#define CAPACITY 8192
/* timers that wait while the machine stalls and nobody consumes */
#define LATE_MAX (CAPACITY / 2)

static atomic_uint waiters_told;
static timerhub_timer shared_timers[TIMERS];

static void *wait_for_the_end(void *arg)
{
	struct timerhub_event events[4];
	int count;

	while ((count = timerhub_wait(arg, events, COUNT_OF(events), UINT64_MAX)) > 0)
		for (int i = 0; i < count; i++)
			expect_cmp(events[i].expires_ns, <=, monotonic_ns());
	expect_eq(count, -ESHUTDOWN);
	atomic_fetch_add(&waiters_told, 1);
	return NULL;
}

/* Re-arms and cancels timers of a closing queue, which is allowed, and uses a queue of its own. */
static void *call_meanwhile(void *arg)
{
	const struct rig *mine = arg;
	struct timerhub *hub = mine->hub;
	struct dice dice = dice_new(5);

	while (!atomic_load(&over)) {
		timerhub_timer timer = shared_timers[dice_below(&dice, TIMERS)];
		uint64_t left_ns;
		int result;

		if (dice_below(&dice, 2))
			result = timerhub_rearm(hub, timer, dice_below(&dice, 2 * MS), 0);
		else if (dice_below(&dice, 2))
			result = timerhub_cancel(hub, timer);
		else
			result = timerhub_remaining(hub, timer, &left_ns);
		expect(result == 0 || result == -ENOENT);
		arm_after(mine->queue, dice_below(&dice, 100 * US), 7);
		expect_eq(take_one(mine->queue).data, 7);
	}
	expect_empty(mine->queue);
	timerhub_queue_close(mine->queue);
	return NULL;
}

/*
 * Arms on a queue during its close, which is forbidden: the library must end these timers, and the
 * hub go on.
 */
static void *arm_too_long(void *arg)
{
	struct dice dice = dice_new(8);

	for (unsigned armed = 0; !atomic_load(&over); armed++) {
		if (armed < LATE_MAX)
			expect_eq(timerhub_after(arg, dice_below(&dice, 20 * US), 0, NULL), 0);
		sleep_ns(dice_below(&dice, 20 * US));
	}
	return NULL;
}

struct crowd {
	pthread_t waiters[WAITERS];
	pthread_t callers[2];
	struct rig theirs[2];
	pthread_t producer;
};

/* After the close no queue is opened: the late producer might arm on it. */
static void crowd_start(struct crowd *crowd, struct timerhub *hub, struct timerhub_queue *queue)
{
	atomic_store(&over, false);
	for (unsigned w = 0; w < WAITERS; w++)
		thread_start(&crowd->waiters[w], wait_for_the_end, queue);
	for (unsigned c = 0; c < COUNT_OF(crowd->callers); c++) {
		crowd->theirs[c] = (struct rig){ hub, queue_open(hub) };
		thread_start(&crowd->callers[c], call_meanwhile, &crowd->theirs[c]);
	}
	thread_start(&crowd->producer, arm_too_long, queue);
}

static void crowd_end(const struct crowd *crowd)
{
	atomic_store(&over, true);
	for (unsigned w = 0; w < WAITERS; w++)
		thread_join(crowd->waiters[w]);
	for (unsigned c = 0; c < COUNT_OF(crowd->callers); c++)
		thread_join(crowd->callers[c]);
	thread_join(crowd->producer);
}

static void all_timers_end(struct timerhub *hub)
{
	uint64_t until_ns = monotonic_ns() + ARRIVES;

	while (stats_of(hub).live > 0) {
		expect(monotonic_ns() < until_ns);
		sleep_ns(100 * US);
	}
}

TEST(queues_close_among_waiters_and_callers, 60)
{
	struct rig rig = rig_open(CAPACITY);
	struct dice dice = dice_new(6);
	unsigned rounds = scaled(40);

	for (unsigned i = 0; i < rounds; i++) {
		struct timerhub_queue *queue = queue_open(rig.hub);
		struct crowd crowd;

		for (unsigned t = 0; t < TIMERS; t++)
			shared_timers[t] = arm_after(queue, dice_below(&dice, 3 * MS), t);
		crowd_start(&crowd, rig.hub, queue);
		sleep_ns(dice_below(&dice, 3 * MS));
		timerhub_queue_close(queue);
		for (unsigned t = 0; t < TIMERS; t++)
			expect_eq(timerhub_cancel(rig.hub, shared_timers[t]), -ENOENT);
		crowd_end(&crowd);
		all_timers_end(rig.hub);
	}
	expect_eq(atomic_load(&waiters_told), rounds * WAITERS);
	life_live(&rig, 50, 5 * MS);
	owner_rests(rig.hub);
	rig_close(&rig);
}
