/* SPDX-License-Identifier: MIT */
/*
 * Declares the loop with all its parts. open.c opens, closes and answers questions; timeouts.c
 * adds, removes, sets and stops timeouts; turn.c expires them.
 */
#ifndef TIMERHUB_LOOP_INSIDE_H
#define TIMERHUB_LOOP_INSIDE_H

#include <timerhub_loop.h>

#include "base/clock.h"
#include "loop/place_table.h"
#include "loop/wake.h"
#include "schedule/schedule.h"

/* A page that the kernel zeroes in a forked child. */
struct loop_living {
	uint32_t is_parent; /* 1 in the process that opened the loop */
};

struct timerhub_loop {
	/* The loop's first member, because the inline calls use it. */
	struct timerhub_loop_front front;
	uint64_t thread;     /* identifies the thread that opened the loop */
	uint64_t turn_ns;    /* the last turn's last reading of the clock */
	uint64_t next_ns;    /* the schedule's first time, or an earlier time */
	uint64_t timeout_ns; /* how long the program may block, counted from turn_ns */
	/* Places whose timeouts may be scheduled too late; a place is here at most once. */
	uint32_t *listed;
	uint32_t listed_count;
	uint32_t first;  /* the place scheduled at next_ns; SLOT_NONE: none, or not known */
	bool is_stirred; /* schedule entries have changed since next_ns was computed */
	struct timerhub_timeout gone; /* replaces a removed timeout in `fresh`; never set */
	/* A callback has closed the loop, so the end of the turn frees the loop. */
	bool is_closed;
	struct places places;
	struct schedule schedule;
	struct wake wake;
	struct clock clock; /* clock of a loop without a hub */
	const struct loop_living *living;
	struct timer_filing *filings;
	struct memory memory;        /* holds filings and `listed` */
	struct memory living_memory; /* zeroed by the kernel in a forked child */
};

/* Returns a number that identifies the calling thread among the living threads. */
uint64_t loop_thread(void);

static inline bool loop_alive(const struct timerhub_loop *loop)
{
	return loop->living->is_parent != 0;
}

/* Returns 0 if the calling thread may use the loop, or -EINVAL, -EPERM or -EOWNERDEAD. */
int loop_check(const struct timerhub_loop *loop);

/* Free a loop that has no timeouts; it may be only partly open. */
void loop_free(struct timerhub_loop *loop);

/* Read the loop's clock. */
uint64_t loop_read_ns(const struct timerhub_loop *loop);

#endif
