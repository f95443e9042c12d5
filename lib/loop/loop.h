/* SPDX-License-Identifier: MIT */
/*
 * Declares struct timerhub_loop with all its parts. open.c opens and closes loops. timeouts.c adds,
 * removes, sets and stops timeouts. turn.c expires timeouts.
 */
#ifndef TIMERHUB_LOOP_INSIDE_H
#define TIMERHUB_LOOP_INSIDE_H

#include <timerhub_loop.h>

#include "base/clock.h"
#include "base/fork_check.h"
#include "loop/timeout_table.h"
#include "loop/wake.h"
#include "schedule/schedule.h"

struct timerhub_loop {
	/* The inline calls use `front`, so `front` must be the first member of the loop. */
	struct timerhub_loop_front front;
	uint64_t thread;     /* number of the thread that opened the loop, from loop_thread() */
	uint64_t turn_ns;    /* the last turn's last reading of the clock */
	uint64_t next_ns;    /* time of the first schedule entry, or an earlier time */
	uint64_t timeout_ns; /* how long the program may block, counted from turn_ns */
	/*
	 * The list: places whose timeouts may be scheduled too late. A place is listed at most
	 * once.
	 */
	uint32_t *listed;
	uint32_t listed_count;
	/* the place that is scheduled at next_ns; SLOT_NONE: no place, or not known */
	uint32_t first;
	bool is_stirred; /* true: schedule entries have changed since next_ns was computed */
	/* A dummy timeout without a deadline. It replaces timeouts that leave the array `fresh`. */
	struct timerhub_timeout gone;
	/* True: a callback has closed the loop, so the end of the turn frees the loop. */
	bool is_closed;
	struct places places;
	struct schedule schedule;
	struct wake wake;
	struct clock clock; /* clock of a loop without a hub */
	struct fork_check fork_check;
	struct timer_filing *filings;
	struct memory memory; /* memory of `filings` and `listed` */
};

/* Returns the calling thread's number. Living threads have different numbers. */
uint64_t loop_thread(void);

static inline bool loop_alive(const struct timerhub_loop *loop)
{
	return fork_check_goes_on(&loop->fork_check);
}

/* Returns 0 if the calling thread may use the loop, or -EINVAL, -EPERM or -EOWNERDEAD. */
int loop_check(const struct timerhub_loop *loop);

/* Free a loop that has no timeouts. The loop may be only partly open. */
void loop_free(struct timerhub_loop *loop);

/* Read the loop's clock. */
uint64_t loop_read_ns(const struct timerhub_loop *loop);

#endif
