/* SPDX-License-Identifier: MIT */
/*
 * One dispatch calls each timer's callback at most once, however soon it expires again; the rest
 * comes in the next call. The simulation has the rest, such as old handles in the queue.
 */
#include "rig.h"

#include <unistd.h>

#define MAX 64

/* Expires again before its callback returns. */
struct returning {
	struct rig *rig;
	timerhub_timer timer;
	uint64_t now_ns;
	unsigned calls, others;
	uint64_t expiries;    /* number of expiries that the owner must have counted */
	bool rearms;          /* the callback re-arms the timer to a past time */
	unsigned other_armed; /* the callback arms this many one-shots, which expire at once */
};

static void expire(struct returning *returning)
{
	struct timerhub *hub = returning->rig->hub;

	returning->expiries++;
	if (timerhub_wake_fd(hub) >= 0) {
		returning->now_ns += 1000;
		(void)advance(hub, returning->now_ns);
		return;
	}
	while (stats_of(hub).expired < returning->expiries)
		sleep_ns(10 * US);
}

static void on_other(const struct timerhub_event *event)
{
	((struct returning *)event->ptr)->others++;
}

static void on_returning(const struct timerhub_event *event)
{
	struct returning *returning = event->ptr;

	returning->calls++;
	if (returning->rearms)
		expect_le(0, timerhub_rearm(returning->rig->hub, returning->timer, 1,
		                            TIMERHUB_ABSOLUTE));
	for (unsigned i = 0; i < returning->other_armed; i++)
		expect_eq(timerhub_call(event->queue, 0, on_other, returning, NULL), 0);
	expire(returning);
}

static void arm_returning(struct returning *returning, struct timerhub_queue *queue)
{
	bool rearms = returning->rearms;

	returning->timer =
		arm(queue,
	            SPEC(.flags = TIMERHUB_ABSOLUTE | (rearms ? TIMERHUB_KEEP : 0), .expires_ns = 1,
	                 .interval_ns = rearms ? 0 : 100, .ptr = returning, .fn = on_returning));
	expire(returning);
}

static struct rig rig_for(int manual)
{
	return manual ? rig_manual(100) : rig_open(100);
}

/* Bit 0 of _i: manual hub; bit 1: the callback re-arms its timer. */
TEST_LOOP(a_timer_that_returns_is_called_once_a_dispatch, 60, 4)
{
	struct rig rig = rig_for(_i & 1);
	struct returning returning = { .rig = &rig, .rearms = (_i & 2) != 0 };
	int epoll_fd = edge_open(timerhub_queue_fd(rig.queue));

	arm_returning(&returning, rig.queue);
	for (unsigned i = 1; i <= 100; i++) {
		expect(edge_seen(epoll_fd, ARRIVES));
		expect_eq(timerhub_dispatch(rig.queue, MAX), 1);
		expect_eq(returning.calls, i);
		/* an owner signals a little after it has counted */
		expect(!(_i & 1) || fd_readable(timerhub_queue_fd(rig.queue)));
	}
	expect_eq(close(epoll_fd), 0);
	rig_close(&rig);
}

TEST(what_a_dispatch_leaves_comes_in_the_next, 20)
{
	struct rig rig = rig_manual(100);
	struct returning returning = { .rig = &rig, .other_armed = 3 };

	arm_returning(&returning, rig.queue);
	expect_eq(timerhub_dispatch(rig.queue, MAX), 1);
	expect_eq(returning.others, 0);
	returning.other_armed = 0;
	expect_eq(timerhub_dispatch(rig.queue, MAX), 4);
	expect_eq(returning.others, 3);
	expect_eq(returning.calls, 2);
	rig_close(&rig);
}

static void on_link(const struct timerhub_event *event)
{
	struct returning *returning = event->ptr;

	if (++returning->calls < 10)
		expect_eq(timerhub_call(event->queue, 0, on_link, returning, NULL), 0);
	expire(returning);
}

/* A one-shot cannot return, so those that fall due in a callback come in the same call. */
TEST(one_shots_that_fall_due_meanwhile_come, 20)
{
	struct rig rig = rig_manual(100);
	struct returning returning = { .rig = &rig };

	expect_eq(timerhub_call(rig.queue, 0, on_link, &returning, NULL), 0);
	expire(&returning);
	expect_eq(timerhub_dispatch(rig.queue, MAX), 10);
	expect(!fd_readable(timerhub_queue_fd(rig.queue)));
	rig_close(&rig);
}
