/* SPDX-License-Identifier: MIT */
/*
 * Threads that stop at a chosen instant inside the library, and stay there until released: a
 * preempted thread at its worst. The library, built with TIMERHUB_TEST_POINTS, calls a hook at the
 * instants listed in lib/base/test_point.h.
 */
#ifndef TESTS_PUPPET_H
#define TESTS_PUPPET_H

#include <rig.h>

#include <stdatomic.h>

#include "base/test_point.h"

/* What until_in_time() begins with. */
#define MARGIN (30 * MS)

/* What an event that was hidden from the owner waits for, if nothing else wakes it. */
#define FAR HOUR

enum deed_kind {
	ARM,
	REARM,
	CANCEL,
	CANCEL_SYNC,
	DRAIN,
	DISPATCH,
	WAIT,
	INTERRUPT,
	ADVANCE,
	CLOSE_QUEUE,
	EACH,
	STOP
};

/* What a puppet does: one call of the library. */
struct deed {
	enum deed_kind what;
	struct timerhub_queue *queue;
	struct timerhub *hub;
	timerhub_timer timer;   /* re-armed or cancelled; of an arm what it gave */
	uint64_t at_ns;         /* absolute deadline; of ADVANCE the clock; of WAIT the timeout */
	unsigned max;           /* of DRAIN, DISPATCH, WAIT */
	timerhub_each_fn *each; /* of EACH, called with this deed, and may count in its result */
	int result;
	struct timerhub_event events[8];
};

struct puppet {
	struct deed deed; /* read the result after puppet_finish() */
	pthread_t thread;
	atomic_int stop_at;   /* enum test_point, or NOWHERE */
	atomic_int passes;    /* times that it is to go on at the point before it stops */
	atomic_bool stopped;  /* it is at the point now */
	atomic_bool released; /* it may go on */
	atomic_bool over;     /* the deed is done */
};

/* Let another thread do the deed, and return when it has stopped at the point. */
void puppet_start(struct puppet *puppet, enum test_point point);
/* Let it go on, and return when it has stopped at this point. */
void puppet_go_on(struct puppet *puppet, enum test_point point);
/* Let it go on, and return when it has stopped at this point, or is over without coming there. */
void puppet_go_on_if_it_comes(struct puppet *puppet, enum test_point point);
/* Let it go on and wait until its deed is done. */
void puppet_finish(struct puppet *puppet);

/*
 * The owner thread stops when it is at this point, which must be one of its own, for the nth
 * time.
 */
void owner_stop_at(enum test_point point, int nth);
void owner_wait_stopped(void);
void owner_release(void);
/* It need not stop after all. */
void owner_stop_at_nothing(void);

/* As rigs_begin(), and installs the hook. */
void puppets_begin(const char *name, int argc, char **argv);

timerhub_timer arm_periodic(struct rig *rig, uint64_t at_ns, uint64_t interval_ns, uint64_t data);
/* The next event, which must come within ARRIVES and have this data. */
struct timerhub_event expect_event(struct rig *rig, uint64_t data);
void expect_nothing(struct rig *rig);
/* On a hub that is moved by hand: the event comes at that instant, told so, and not before. */
void expect_at(struct rig *rig, uint64_t data, uint64_t at_ns);
/* Make the owner look at its inbox, and sleep again. */
void owner_looks(struct rig *rig);
bool queue_readable(const struct timerhub_queue *queue);

#endif
