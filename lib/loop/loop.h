/* SPDX-License-Identifier: MIT */
/* struct timerhub_loop with all its parts, and what the files of this folder ask of each other. */
#ifndef TIMERHUB_LOOP_INSIDE_H
#define TIMERHUB_LOOP_INSIDE_H

#include <timerhub_loop.h>

#include <errno.h>

#include "base/clock.h"
#include "base/counter_board.h"
#include "base/fork_check.h"
#include "loop/timeout_table.h"
#include "loop/wake.h"
#include "schedule/schedule.h"

/* The counters of timerhub_loop_stats() that no decision depends on. */
struct loop_counts {
	uint64_t callbacks;
	uint64_t empty_wakes;
	uint64_t turn_max_ns;
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
};

enum loop_unquiet {
	LOOP_STIRRED = 1,   /* schedule entries have changed since next_ns was computed */
	LOOP_MUST_TURN = 2, /* do not block: the queue has more events, or the clock was set */
	LOOP_HAS_HUB = 4,
	LOOP_HAS_NO_CLOCK = 8, /* timerhub_loop_advance() gives the time */
	LOOP_IS_SHOWN = 16     /* each turn copies the counts to the board */
};

struct timerhub_loop {
	struct timerhub_loop_front front; /* the first member, because the inline calls use it */
	/* A quiet turn reads this cache line, and the first of `front`. */
	_Alignas(CACHE_LINE_BYTES)
		uint64_t next_ns; /* time of the first schedule entry, or an earlier time */
	uint64_t turn_ns;         /* the last reading of the clock by turn, settle or timeout */
	/* a turn before this time has nothing to schedule, to expire or to tell a descriptor */
	uint64_t quiet_ns;
	uint64_t turns;
	uint32_t unquiet;    /* bits of enum loop_unquiet; 0: a turn may have nothing to do */
	uint32_t idle_count; /* front.fresh_count while nothing is fresh; exact: full */
	struct clock clock;  /* of a loop without a hub */
	struct fork_check fork_check;
	uint32_t listed_count; /* of the list: places that may be scheduled too late, once each */
	/* place of an exact entry at next_ns, which may be stale by now, or SLOT_NONE */
	uint32_t first;
	bool is_manual; /* timerhub_loop_advance() gives the time */
	bool is_exact;  /* is_manual, or the hub is manual: a delay counts from the call's time */
	bool is_locked; /* threads use the loop in turn, under a lock of the program */
	bool is_closed; /* a callback has closed the loop, so the end of the turn frees it */
	bool is_dispatching; /* the turn is calling callbacks of the queue */
	struct wake wake;
	struct timerhub_timeout gone; /* stands in `fresh` for timeouts that have left it */
	struct places places;
	struct schedule schedule;
	struct timer_filing *filings; /* `place` of the k-th filing is the list's k-th place */
	struct memory memory;         /* of `filings` */
	struct loop_counts counts;
	atomic_u64 refused;   /* calls on other threads than the loop's, counted by those */
	uint64_t turn_thread; /* the thread of the turn in progress, or of the last one */
	uint32_t clock_kind;  /* enum timerhub_clock, as the config says */
	struct board *board;  /* a copy of the counts, for other processes; NULL: not observable */
	int board_fd;
};

/* In a forked child, give an observable loop a board of its own. Returns 0 or a negative errno. */
int loop_renew_board(struct timerhub_loop *loop);

/* Copy the counts to the board. */
void loop_show(const struct timerhub_loop *loop);

/* Free a loop that has no timeouts. It may be only partly open. */
void loop_free(struct timerhub_loop *loop);

/* Read the loop's clock. UINT64_MAX, which only a program can give, would mean no deadline. */
static inline uint64_t loop_read_ns(const struct timerhub_loop *loop)
{
	return (loop->unquiet & LOOP_HAS_HUB) != 0
	               ? u64_min(timerhub_now(loop->wake.hub), UINT64_MAX - 1)
	               : clock_now_ns(&loop->clock);
}

#endif
