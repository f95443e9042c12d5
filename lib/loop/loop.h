/* SPDX-License-Identifier: MIT */
/*
 * A loop: everything put together, for the files of its calls. open.c opens, closes and answers;
 * timeout.c adds, removes, sets and stops; turn.c expires.
 */
#ifndef TIMERHUB_LOOP_INSIDE_H
#define TIMERHUB_LOOP_INSIDE_H

#include <timerhub_loop.h>

#include "base/clock.h"
#include "loop/place.h"
#include "loop/wake.h"
#include "schedule/schedule.h"

/* Zero in a forked child. */
struct loop_living {
	uint32_t is_parent; /* 1 in the process that opened the loop */
};

struct timerhub_loop {
	struct timerhub_loop_front front; /* first: inline calls use it */
	uint64_t thread;                  /* names the thread that opened the loop */
	uint64_t turn_ns;                 /* the last turn's last reading of the clock */
	uint64_t next_ns;                 /* the first instant of the schedule, or before it */
	uint64_t timeout_ns;              /* for how long to block, from turn_ns on */
	uint32_t *listed; /* places whose timeouts may need to be filed earlier; each once */
	uint32_t listed_count;
	uint32_t first;  /* the place that is filed at next_ns; SLOT_NONE: none, or not known */
	bool is_stirred; /* filings have changed since next_ns was computed */
	struct timerhub_timeout gone; /* in `fresh`, in the place of one that left it; never set */
	bool is_closed;               /* by a callback: the turn frees the loop */
	struct places places;
	struct schedule schedule;
	struct wake wake;
	struct clock clock; /* without a hub */
	const struct loop_living *living;
	struct timer_filing *filings;
	struct memory memory;        /* holds filings and `listed` */
	struct memory living_memory; /* zeroed by the kernel in a forked child */
};

/* Returns a number that no other living thread has. */
uint64_t loop_thread(void);

static inline bool loop_alive(const struct timerhub_loop *loop)
{
	return loop->living->is_parent != 0;
}

/* Returns 0 if the calling thread may use the loop, or -EINVAL, -EPERM or -EOWNERDEAD. */
int loop_check(const struct timerhub_loop *loop);

/* Free a loop that has no timeouts; fine if it was opened halfway. */
void loop_free(struct timerhub_loop *loop);

/* Read the loop's clock. */
uint64_t loop_read_ns(const struct timerhub_loop *loop);

#endif
