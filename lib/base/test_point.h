/* SPDX-License-Identifier: MIT */
/*
 * Points between two atomic steps, at which a test stops the thread. At each of them a stopped
 * thread has broken a design like this one. A test point does nothing unless the library is built
 * for tests.
 */
#ifndef TIMERHUB_TEST_POINT_H
#define TIMERHUB_TEST_POINT_H

enum test_point {
	TEST_POINT_PAIR_HALF_READ,       /* the state loaded, the deadline not yet */
	TEST_POINT_ARM_BEFORE_PUBLISH,   /* slot taken, pair not yet written */
	TEST_POINT_SUBMIT_BEFORE_PUSH,   /* the push is claimed, the inbox does not hold the slot */
	TEST_POINT_PUSH_AT_CELL,         /* a place chosen, its cell not yet looked at */
	TEST_POINT_SUBMIT_AFTER_PUSH,    /* pushed, the promise not yet read */
	TEST_POINT_REARM_BEFORE_CAS,     /* pair read, not yet changed */
	TEST_POINT_CANCEL_BEFORE_CAS,    /* found alive, pair not yet changed */
	TEST_POINT_CANCEL_BEFORE_FREE,   /* dead, slot not yet in the free list */
	TEST_POINT_WAKE_BEFORE_RECORD,   /* owner woken, pass not yet recorded */
	TEST_POINT_OWNER_BEFORE_INBOX,   /* pass numbered, clock read, inbox not yet looked at */
	TEST_POINT_OWNER_BEFORE_REFILE,  /* looked at before it is due, not yet filed again */
	TEST_POINT_OWNER_BEFORE_PROMISE, /* expired, next deadline known, promise not yet changed */
	TEST_POINT_OWNER_AFTER_PROMISE,  /* promise raised, second look not yet taken */
	TEST_POINT_OWNER_BEFORE_CAS,     /* found due, pair not yet changed */
	TEST_POINT_OWNER_BEFORE_PUBLISH, /* pair says pending, outbox does not yet */
	TEST_POINT_RING_BEFORE_COUNT,    /* the fd is readable, and not yet said to be */
	TEST_POINT_OUTBOX_TAKEN_OUT,     /* a full outbox taken out, and nothing put back yet */
	TEST_POINT_CONSUME_BEFORE_CAS,   /* taken from the outbox, pair not yet changed */
	TEST_POINT_CONSUME_BEFORE_REARM, /* periods counted, pair not yet changed */
	TEST_POINT_CONSUME_BEFORE_CLEAR, /* outbox found empty, signal not yet cleared */
	TEST_POINT_CONSUME_IN_CLEAR,     /* bell cleared, the flag that it was rung not yet */
	TEST_POINT_CONSUME_AFTER_CLEAR,  /* signal cleared, outbox not yet looked at again */
	TEST_POINT_INTERRUPT_HALFWAY,    /* waiters are to leave, and not yet woken */
	TEST_POINT_WAIT_FOUND_NOTHING,   /* found the queue empty, and is not yet a waiter */
	TEST_POINT_WAIT_BEFORE_SLEEP,    /* waiter registered and about to block */
	TEST_POINT_CALLBACK_BEFORE_NAP,  /* found a dispatcher that has not yet decided */
	TEST_POINT_EACH_BEFORE_CAS,      /* a timer was read, and may be another by now */
	TEST_POINT_DISPATCH_BEFORE_BEGIN, /* delivered, not yet said that the callback runs */
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
