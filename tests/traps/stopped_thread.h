/* SPDX-License-Identifier: MIT */
/*
 * Declares threads that stop at a chosen point inside the library, as if the kernel had preempted
 * them. A thread stays stopped until the test releases it. If the library is built with
 * TIMERHUB_TEST_POINTS, it calls a hook at the points listed in lib/base/test_point.h.
 */
#ifndef TESTS_STOPPED_THREAD_H
#define TESTS_STOPPED_THREAD_H

#include <rig.h>

#include <stdatomic.h>

#include "base/test_point.h"

/* The first margin that a test passes to until_in_time(). */
#define MARGIN (30 * MS)

/*
 * A delay longer than any test. If the owner overlooks a timer, the timer's event comes only after
 * the delay FAR, and the test fails.
 */
#define FAR HOUR

enum deed_kind { ARM, REARM, CANCEL, DRAIN, WAIT, ADVANCE, STOP };

/* The library call that a stopped thread makes. */
struct deed {
	enum deed_kind what;
	struct timerhub_queue *queue;
	struct timerhub *hub;
	timerhub_timer timer; /* timer to re-arm or cancel; for ARM, the armed timer */
	uint64_t at_ns;       /* absolute deadline, new time (ADVANCE) or timeout (WAIT) */
	unsigned max;         /* largest number of events to take; used by DRAIN and WAIT */
	int result;
	struct timerhub_event events[8];
};

struct stopped_thread {
	struct deed deed; /* the test reads deed.result after stopped_thread_finish() */
	pthread_t thread;
	atomic_int stop_at; /* test point (enum test_point) at which the thread stops, or NOWHERE */
	/* number of times that the thread runs past its test point before the thread stops there */
	atomic_int passes;
	atomic_bool stopped;  /* true while the thread is stopped */
	atomic_bool released; /* true if the thread may continue */
	atomic_bool over;     /* true if the library call has returned */
};

/*
 * Starts a thread that makes the library call, and returns when the thread has stopped at the
 * point.
 */
void stopped_thread_start(struct stopped_thread *held, enum test_point point);
/*
 * Lets the stopped thread continue, and returns when the thread has stopped at this point or
 * finished its call.
 */
void stopped_thread_go_on_if_it_comes(struct stopped_thread *held, enum test_point point);
/* Lets the stopped thread continue, and waits until its library call has returned. */
void stopped_thread_finish(struct stopped_thread *held);

/* Makes the owner thread stop when it reaches this point for the nth time. */
void owner_stop_at(enum test_point point, int nth);
void owner_wait_stopped(void);
void owner_release(void);

timerhub_timer arm_periodic(struct rig *rig, uint64_t at_ns, uint64_t interval_ns, uint64_t data);
/* Returns the queue's next event. The event must have this data and come within ARRIVES ns. */
struct timerhub_event expect_event(struct rig *rig, uint64_t data);
void expect_nothing(struct rig *rig);
/*
 * Expects that a manual hub announces the time `at_ns`. The event with this data must come at this
 * time, and no event earlier.
 */
void expect_at(struct rig *rig, uint64_t data, uint64_t at_ns);
bool queue_readable(const struct timerhub_queue *queue);

#endif
