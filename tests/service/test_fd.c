/* SPDX-License-Identifier: MIT */
/*
 * Law 9: while events wait, the queue's fd is readable, by level, by edge, and for callers that
 * read it.
 */
#include "rig.h"

#include <stdatomic.h>
#include <unistd.h>

static uint64_t now_ns; /* time of the manual hub of the running test */

/* Several consumers, each polling in its way: each event goes to one. */
static atomic_uint crowd_taken;
static unsigned crowd_wanted;

struct poller {
	struct rig *rig;
	bool edge;
	bool reads;
	unsigned max;
};

static void *poll_and_drain(void *arg)
{
	const struct poller *me = arg;
	int fd = timerhub_queue_fd(me->rig->queue);
	int epoll_fd = edge_open(fd);

	while (atomic_load(&crowd_taken) < crowd_wanted) {
		int count;

		if (me->edge ? !edge_seen(epoll_fd, 20 * MS) : !fd_readable_within(fd, 20 * MS))
			continue;
		if (me->reads) {
			uint64_t value;
			ssize_t size = read(fd, &value, sizeof(value));

			expect(size == sizeof(value) || errno == EAGAIN);
		}
		do {
			count = take_up_to(me->rig->queue, me->max);
			expect(count >= 0);
			atomic_fetch_add(&crowd_taken, (unsigned)count);
		} while (me->edge && count);
	}
	close(epoll_fd);
	return NULL;
}

static void *arm_singly(void *arg)
{
	struct rig *rig = arg;
	struct dice dice = dice_new(1);

	for (unsigned i = 0; i < crowd_wanted; i++) {
		arm_after(rig->queue, dice_magnitude(&dice, 18), i);
		if (dice_below(&dice, 8) == 0)
			sleep_ns(dice_magnitude(&dice, 18));
	}
	return NULL;
}

/* A worker between two calls must not read a stranger's file with the old number. */
TEST(fd_of_a_closed_queue_is_forgotten, 30)
{
	struct rig rig = rig_manual(64);
	int fd = timerhub_queue_fd(rig.queue), pipe_fds[2];
	char bytes[16];

	arm_and_expire(&rig, &now_ns, 1);
	timerhub_queue_close(rig.queue);
	expect_eq(pipe(pipe_fds), 0);
	/* the pipe gets the number of the closed queue's fd */
	expect_eq(dup2(pipe_fds[0], fd), fd);
	expect_eq(write(pipe_fds[1], "12345678", 8), 8);
	(void)timerhub_dispatch(rig.queue, 1);
	expect_eq(write(pipe_fds[1], ".", 1), 1);
	expect_eq(read(fd, bytes, sizeof(bytes)), 9);
	expect_cmp(timerhub_queue_fd(rig.queue), <, 0);
	timerhub_close(rig.hub);
}

TEST(fd_serves_several_consumers, 60)
{
	struct rig rig = rig_open(0);
	struct poller pollers[] = { { &rig, false, false, 1 },
		                    { &rig, true, false, 2 },
		                    { &rig, true, true, 1 },
		                    { &rig, false, false, 8 } };
	pthread_t threads[COUNT_OF(pollers)];
	pthread_t armer;

	crowd_wanted = scaled(8000);
	thread_start(&armer, arm_singly, &rig);
	for (unsigned i = 0; i < COUNT_OF(pollers); i++)
		thread_start(&threads[i], poll_and_drain, &pollers[i]);
	for (unsigned i = 0; i < COUNT_OF(pollers); i++)
		thread_join(threads[i]);
	thread_join(armer);
	expect_eq(atomic_load(&crowd_taken), crowd_wanted);
	(void)stats_settled(rig.hub); /* the owner may still be about to signal the fd */
	expect_empty(rig.queue);
	expect(!fd_readable(timerhub_queue_fd(rig.queue)));
	rig_close(&rig);
}
