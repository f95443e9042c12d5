/* SPDX-License-Identifier: MIT */
/*
 * Marks points between two atomic accesses, at which a test can stop a thread. A thread that
 * stopped at one of these points has broken a similar design. A test point does nothing unless the
 * library is built for tests.
 */
#ifndef TIMERHUB_TEST_POINT_H
#define TIMERHUB_TEST_POINT_H

enum test_point {
	TEST_POINT_PAIR_HALF_READ,       /* a thread loaded the state, not yet the deadline */
	TEST_POINT_ARM_BEFORE_PUBLISH,   /* an armer took a slot, has not written the pair */
	TEST_POINT_SUBMIT_BEFORE_PUSH,   /* a thread claimed the push, has not pushed the slot */
	TEST_POINT_PUSH_AT_CELL,         /* a producer chose a position, has not read the cell */
	TEST_POINT_SUBMIT_AFTER_PUSH,    /* a thread pushed a slot, has not read the promise */
	TEST_POINT_REARM_BEFORE_CAS,     /* a re-arm read the pair, has not changed it */
	TEST_POINT_CANCEL_BEFORE_CAS,    /* a cancel found the timer live, has not ended it */
	TEST_POINT_TAKE_FOUND_NONE,      /* a taker searched one free stack, not yet the next */
	TEST_POINT_CANCEL_BEFORE_FREE,   /* a cancel ended the timer, has not freed the slot */
	TEST_POINT_WAKE_BEFORE_RECORD,   /* a caller woke the owner, has not recorded the pass */
	TEST_POINT_OWNER_BEFORE_INBOX,   /* the owner read the clock, has not drained the inbox */
	TEST_POINT_OWNER_BEFORE_REFILE,  /* the owner read a pair, has not corrected its entry */
	TEST_POINT_OWNER_BEFORE_PROMISE, /* the owner expired timers, has not changed the promise */
	TEST_POINT_OWNER_AFTER_PROMISE,  /* the owner raised the promise, has not read the inbox */
	TEST_POINT_OWNER_BEFORE_PUBLISH, /* a timer became pending, its handle is not put yet */
	TEST_POINT_RING_BEFORE_COUNT,    /* the fd became readable, `rings` is not advanced yet */
	TEST_POINT_OUTBOX_TAKEN_OUT,     /* the owner emptied a full outbox, put nothing back */
	TEST_POINT_CONSUME_BEFORE_REARM, /* a consumer counted periods, has not re-armed */
	TEST_POINT_CONSUME_IN_CLEAR,     /* a consumer cleared the eventfd, not yet the flag */
	TEST_POINT_INTERRUPT_HALFWAY,    /* waiters must return, but are not woken yet */
	TEST_POINT_WAIT_FOUND_NOTHING,   /* a waiter found no event, has not counted itself */
	TEST_POINT_WAIT_BEFORE_SLEEP,    /* a waiter counted itself, and is about to block */
	TEST_POINT_CALLBACK_BEFORE_NAP,  /* a canceller found a delivery that is not decided */
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
