/* SPDX-License-Identifier: MIT */
/*
 * Places between two atomic accesses where a test can stop a thread, because in similar designs a
 * thread that was stopped there did harm. In all other builds they are nothing. The comments say
 * what the thread has done and what it has not.
 */
#ifndef TIMERHUB_TEST_POINT_H
#define TIMERHUB_TEST_POINT_H

enum test_point {
	TEST_POINT_PAIR_HALF_READ,       /* state loaded, deadline not */
	TEST_POINT_SUBMIT_BEFORE_PUSH,   /* push claimed, slot not pushed */
	TEST_POINT_PUSH_AT_CELL,         /* cell chosen, not read */
	TEST_POINT_SUBMIT_AFTER_PUSH,    /* slot pushed, promise not read */
	TEST_POINT_WAITS_READ_WORD,      /* one word of the map read, the next not */
	TEST_POINT_TAKE_FOUND_NONE,      /* one free stack searched, the next not */
	TEST_POINT_TAKE_READ_TOP,        /* a free stack's top read, not yet confirmed */
	TEST_POINT_OWNER_BEFORE_INBOX,   /* clock read, inbox not */
	TEST_POINT_OWNER_BEFORE_REFILE,  /* pair read, entry not corrected */
	TEST_POINT_OWNER_BEFORE_PROMISE, /* timers expired, promise unchanged */
	TEST_POINT_OWNER_AFTER_PROMISE,  /* promise raised, inbox not read again */
	TEST_POINT_OWNER_BEFORE_PUBLISH, /* timer pending, handle not in the outbox */
	TEST_POINT_RING_BEFORE_COUNT,    /* fd readable, `rings` not advanced */
	TEST_POINT_OUTBOX_TAKEN_OUT,     /* outbox emptied, nothing put back */
	TEST_POINT_CONSUME_BEFORE_REARM, /* periods counted, not re-armed */
	TEST_POINT_STOP_HALFWAY,         /* waiters must return, not woken */
	TEST_POINT_WAIT_FOUND_NOTHING,   /* no event found, waiter not counted */
	TEST_POINT_WAIT_BEFORE_SLEEP,    /* counted, about to block */
	TEST_POINT_WAIT_HAS_RESULT,      /* result known, still counted */
	TEST_POINT_CALLBACK_BEFORE_NAP,  /* handle found, not yet delivered */
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
