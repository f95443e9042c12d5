/* SPDX-License-Identifier: MIT */
/*
 * Threads that stop at a chosen instant inside the library, and stay there until released: a
 * preempted thread at its worst. The library, built with TIMERHUB_TEST_POINTS, calls a hook at the
 * instants listed in lib/check.h.
 *
 *   TIMERHUB_TEST_SLEEPER  uring, poll or auto (default): the sleeper of every hub opened here
 */
#ifndef TESTS_PUPPET_H
#define TESTS_PUPPET_H

#include <harness.h>
#include <timerhub.h>

#include <errno.h>
#include <stdatomic.h>

#include "check.h"
#include "timer.h"

/* "Arrives at all": longer than any noise of the machine, shorter than any far timer. */
#define ARRIVES (20 * SEC)
/* A deadline as it is told: in whole ticks. */
static inline uint64_t whole_ticks(uint64_t deadline_ns)
{
	return ticks_from_ns(deadline_ns) << TIMER_TICK_SHIFT;
}

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
	DETACH,
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
/* Let it go on and wait until its deed is done. */
/* The same, if it comes to that point at all; else it is over. */
void puppet_go_on_if_it_comes(struct puppet *puppet, enum test_point point);
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
/* Wait until the owner has looked at everything and sleeps. */
void owner_settles(struct timerhub *hub);

/*
 * For what must be prepared before a deadline comes: calls `attempt` with a longer and longer
 * margin until it says that it was in time. A machine may stand still for a moment.
 */
void until_in_time(bool (*attempt)(uint64_t margin_ns));

/* Installs the hook. */
void puppets_begin(const char *name, int argc, char **argv);

/* A hub with a queue. */
struct rig {
	struct timerhub *hub;
	struct timerhub_queue *queue;
	struct timerhub_queue *aside; /* of owner_looks(), whose timer thus meets no other */
	bool has_owner;               /* a thread, not the test that advances it */
};

/* The sleeper that the environment asks for. */
uint32_t rig_sleeper(void);
struct rig rig_open(uint32_t timers_max);
struct rig rig_open_config(struct timerhub_config config); /* size and sleeper are filled in */
struct rig rig_manual(uint32_t timers_max);
void rig_close(struct rig *rig);

struct timerhub_stats stats_of(struct timerhub *hub);
timerhub_timer arm_at(struct rig *rig, uint64_t at_ns, uint64_t data);
timerhub_timer arm_periodic(struct rig *rig, uint64_t at_ns, uint64_t interval_ns, uint64_t data);
/* The next event, which must come within ARRIVES and have this data. */
struct timerhub_event expect_event(struct rig *rig, uint64_t data);
void expect_nothing(struct rig *rig);
/* On a hub that is moved by hand: the event comes at that instant, told so, and not before. */
void expect_at(struct rig *rig, uint64_t data, uint64_t at_ns);
/* Make the owner look at its inbox, and sleep again. */
void owner_looks(struct rig *rig);
bool fd_readable(const struct timerhub_queue *queue);
void advance(struct rig *rig, uint64_t now_ns);

#endif
