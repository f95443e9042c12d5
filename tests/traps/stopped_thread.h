/* SPDX-License-Identifier: MIT */
/*
 * Threads that stop at a chosen point inside the library and stay there until released, like a
 * thread preempted at the worst moment. The library, built with TIMERHUB_TEST_POINTS, calls a hook
 * at the points listed in lib/base/test_point.h.
 */
#ifndef TESTS_STOPPED_THREAD_H
#define TESTS_STOPPED_THREAD_H

#include <rig.h>

#include <stdatomic.h>

#include "base/test_point.h"

/* First margin that a test gives to until_in_time(). */
#define MARGIN (30 * MS)

/*
 * A delay longer than any test. If the owner overlooks a timer, its event comes only after this
 * delay.
 */
#define FAR HOUR

enum deed_kind { ARM, REARM, CANCEL, DRAIN, WAIT, INTERRUPT, ADVANCE, CLOSE_QUEUE, STOP };

/* The one library call that a stopped thread makes. */
struct deed {
	enum deed_kind what;
	struct timerhub_queue *queue;
	struct timerhub *hub;
	timerhub_timer timer; /* timer to re-arm or cancel; result of an arm */
	uint64_t at_ns;       /* absolute deadline; for ADVANCE the clock; for WAIT the timeout */
	unsigned max;         /* used by DRAIN, DISPATCH and WAIT */
	int result;
	struct timerhub_event events[8];
};

struct stopped_thread {
	struct deed deed; /* read the result after stopped_thread_finish() */
	pthread_t thread;
	atomic_int stop_at; /* enum test_point, or NOWHERE */
	atomic_int passes; /* how often the stopped thread passes the point before it stops there */
	atomic_bool stopped;  /* the stopped thread is stopped at the point */
	atomic_bool released; /* the stopped thread may continue */
	atomic_bool over;     /* the call has returned */
};

/* Start a thread that makes the call, and return when it has stopped at the point. */
void stopped_thread_start(struct stopped_thread *held, enum test_point point);
/*
 * Release the stopped thread, and return when it has stopped at this point or has finished its
 * call.
 */
void stopped_thread_go_on_if_it_comes(struct stopped_thread *held, enum test_point point);
/* Release the stopped thread, and wait until its call has returned. */
void stopped_thread_finish(struct stopped_thread *held);

/* The owner thread stops when it reaches this point for the nth time. */
void owner_stop_at(enum test_point point, int nth);
void owner_wait_stopped(void);
void owner_release(void);
/* Cancel owner_stop_at(): the owner no longer stops. */
void owner_stop_at_nothing(void);

/* Calls rigs_begin() and installs the hook. */
void stopped_threads_begin(const char *name, int argc, char **argv);

timerhub_timer arm_periodic(struct rig *rig, uint64_t at_ns, uint64_t interval_ns, uint64_t data);
/* Returns the next event, which must come within ARRIVES and have this data. */
struct timerhub_event expect_event(struct rig *rig, uint64_t data);
void expect_nothing(struct rig *rig);
/*
 * On a manual hub, the hub must announce the time `at_ns`, the event must come at that time, and no
 * event may come earlier.
 */
void expect_at(struct rig *rig, uint64_t data, uint64_t at_ns);
/* Make the owner look at its inbox, and sleep again. */
void owner_looks(struct rig *rig);
bool queue_readable(const struct timerhub_queue *queue);

#endif
