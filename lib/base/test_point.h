/* SPDX-License-Identifier: MIT */
/*
 * Between two atomic accesses, where in similar designs a stopped thread caused a fault: a test can
 * stop one here. Nothing in other builds.
 */
#ifndef TIMERHUB_TEST_POINT_H
#define TIMERHUB_TEST_POINT_H

enum test_point {
	TEST_POINT_PAIR_HALF_READ,       /* thread has loaded the state, but not the deadline */
	TEST_POINT_SUBMIT_BEFORE_PUSH,   /* thread has claimed a push, but not pushed the slot */
	TEST_POINT_PUSH_AT_CELL,         /* producer has chosen a cell, but not read the cell */
	TEST_POINT_SUBMIT_AFTER_PUSH,    /* thread has pushed a slot, but not read the promise */
	TEST_POINT_TAKE_FOUND_NONE,      /* taker has searched one free stack, but not the next */
	TEST_POINT_OWNER_BEFORE_INBOX,   /* owner has read the clock, but not the inbox */
	TEST_POINT_OWNER_BEFORE_REFILE,  /* owner read a pair, but did not correct its entry */
	TEST_POINT_OWNER_BEFORE_PROMISE, /* timers have expired, but the promise is unchanged */
	TEST_POINT_OWNER_AFTER_PROMISE,  /* promise is raised, but the inbox not read again */
	TEST_POINT_OWNER_BEFORE_PUBLISH, /* timer is pending, but its handle not in the outbox */
	TEST_POINT_RING_BEFORE_COUNT,    /* fd is readable, but `rings` is not advanced yet */
	TEST_POINT_OUTBOX_TAKEN_OUT,     /* owner has emptied an outbox, but put nothing back */
	TEST_POINT_CONSUME_BEFORE_REARM, /* consumer has counted periods, but not re-armed */
	TEST_POINT_INTERRUPT_HALFWAY,    /* waiters must return, but are not woken yet */
	TEST_POINT_WAIT_FOUND_NOTHING,   /* waiter found no event, and has not counted itself */
	TEST_POINT_WAIT_BEFORE_SLEEP,    /* waiter counted itself, and is about to block */
	TEST_POINT_WAIT_HAS_RESULT,      /* waiter knows its result, but still counts itself */
	TEST_POINT_CALLBACK_BEFORE_NAP,  /* canceller found a handle that is not yet delivered */
};

#ifdef TIMERHUB_TEST_POINTS
extern void (*test_point_hook)(enum test_point point);
static inline void test_point(enum test_point point)
{
	if (test_point_hook)
		test_point_hook(point);
}
#else
static inline void test_point(enum test_point point)
{
	(void)point;
}
#endif

#endif
