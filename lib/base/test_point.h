/* SPDX-License-Identifier: MIT */
/*
 * Marks points between two atomic accesses, at which a test can stop a thread. At each of these
 * points, a stopped thread has broken a similar design. A test point does nothing unless the
 * library is built for tests.
 */
#ifndef TIMERHUB_TEST_POINT_H
#define TIMERHUB_TEST_POINT_H

enum test_point {
	TEST_POINT_PAIR_HALF_READ,       /* the state loaded, the deadline not yet */
	TEST_POINT_ARM_BEFORE_PUBLISH,   /* slot taken, pair not yet written */
	TEST_POINT_SUBMIT_BEFORE_PUSH,   /* the push is claimed, the inbox does not hold the slot */
	TEST_POINT_PUSH_AT_CELL,         /* a position chosen, its cell not yet read */
	TEST_POINT_SUBMIT_AFTER_PUSH,    /* pushed, the promise not yet read */
	TEST_POINT_REARM_BEFORE_CAS,     /* pair read, not yet changed */
	TEST_POINT_CANCEL_BEFORE_CAS,    /* timer found live, pair not yet changed */
	TEST_POINT_TAKE_FOUND_NONE,      /* one free stack searched, the next not yet */
	TEST_POINT_CANCEL_BEFORE_FREE,   /* timer ended, slot not yet in the free list */
	TEST_POINT_WAKE_BEFORE_RECORD,   /* owner woken, pass not yet recorded */
	TEST_POINT_OWNER_BEFORE_INBOX,   /* pass numbered, clock read, inbox not yet drained */
	TEST_POINT_OWNER_BEFORE_REFILE,  /* pair read before it is due, entry not yet corrected */
	TEST_POINT_OWNER_BEFORE_PROMISE, /* expired, next deadline known, promise not yet changed */
	TEST_POINT_OWNER_AFTER_PROMISE,  /* promise raised, inbox not yet read once more */
	TEST_POINT_OWNER_BEFORE_PUBLISH, /* pair says pending, outbox does not yet */
	TEST_POINT_RING_BEFORE_COUNT,    /* the fd is readable, `rings` not yet advanced */
	TEST_POINT_OUTBOX_TAKEN_OUT,     /* a full outbox taken out, nothing put back yet */
	TEST_POINT_CONSUME_BEFORE_REARM, /* periods counted, pair not yet changed */
	TEST_POINT_CONSUME_IN_CLEAR,     /* the eventfd cleared, the flag not yet */
	TEST_POINT_INTERRUPT_HALFWAY,    /* waiters must leave, but are not yet woken */
	TEST_POINT_WAIT_FOUND_NOTHING,   /* the queue found empty, not yet counted as a waiter */
	TEST_POINT_WAIT_BEFORE_SLEEP,    /* waiter registered and about to block */
	TEST_POINT_CALLBACK_BEFORE_NAP,  /* a dispatcher found that has not yet delivered */
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
