/* SPDX-License-Identifier: MIT */
/*
 * struct timerhub_loop with all its parts, and the functions that the files of this folder call in
 * each other. README.md explains how a timeout goes through these parts, and the words: a place (an
 * index of the loop's table, which a timeout has as long as it is added), fresh (set by a delay
 * since the clock was last read) and the list (places that may be scheduled too late).
 */
#ifndef TIMERHUB_LOOP_INSIDE_H
#define TIMERHUB_LOOP_INSIDE_H

#include <timerhub_loop.h>

#include <errno.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/counter_board.h"
#include "base/fork_check.h"
#include "loop/timeout_table.h"
#include "loop/wake.h"
#include "schedule/schedule.h"

/* Those counters of timerhub_loop_stats() that nothing but the statistics reads. */
struct loop_counts {
	uint64_t callbacks;
	uint64_t empty_wakes;
	uint64_t turn_max_ns;
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
};

/*
 * Reasons why a turn cannot be quiet, which means that it returns right after it has read the
 * clock. They are bits of one word, so that one comparison finds that there is none.
 */
enum loop_unquiet {
	LOOP_STIRRED = 1,      /* the schedule was changed since next_ns was computed */
	LOOP_MUST_TURN = 2,    /* the queue has more events, or the clock was set: do not block */
	LOOP_HAS_HUB = 4,      /* only a dispatch finds out whether the queue has events */
	LOOP_HAS_NO_CLOCK = 8, /* advance gives the time; a turn may still be quiet */
	LOOP_IS_SHOWN = 16     /* each turn copies the counts to the board */
};

struct timerhub_loop {
	struct timerhub_loop_front front; /* the first member, because the inline calls use it */
	/* A quiet turn reads only this cache line and the first one of `front`. */
	_Alignas(CACHE_LINE_BYTES)
		uint64_t next_ns; /* when the first schedule entry comes up, or earlier */
	uint64_t turn_ns;         /* time that the loop last read, or that it was given */
	/* turns before this time have nothing to do; 0 while that is not known */
	uint64_t quiet_ns;
	uint64_t turns;
	uint32_t unquiet;    /* bits of enum loop_unquiet */
	uint32_t idle_count; /* front.fresh_count if nothing is fresh: 0; 64 or 65 if is_exact */
	struct clock clock;  /* the clock of a loop without a hub */
	struct fork_check fork_check;
	uint32_t listed_count; /* length of the list, which has each place at most once */
	/*
	 * The place whose entry comes up at next_ns, if that is exactly a deadline; else SLOT_NONE.
	 * If its timeout is moved or stopped, the loop need not wake then.
	 */
	uint32_t first;
	bool is_manual; /* timerhub_loop_advance() gives the time */
	bool is_exact; /* the program gives the time, by the loop or by its hub: nothing is fresh */
	bool is_locked; /* any thread may use the loop, under a lock of the program */
	bool is_closed; /* a callback has closed the loop, and the end of the turn will free it */
	bool is_dispatching; /* the turn is calling the queue's callbacks */
	struct wake wake;
	struct timerhub_timeout gone; /* takes the place in `fresh` of a timeout that has left it */
	struct places places;
	struct schedule schedule;
	struct timer_filing *filings; /* the schedule; `place` of the k-th is the list's k-th */
	struct memory memory;         /* the reserved memory of `filings` */
	struct loop_counts counts;
	atomic_u64 refused;   /* calls that were refused, counted by the threads that made them */
	uint64_t due_ns;      /* deadline of the timeout whose callback is running, or UINT64_MAX */
	uint64_t turn_thread; /* thread that makes the current turn, or made the last one */
	uint32_t clock_kind;  /* an enum timerhub_clock, from the config */
	uint64_t slow_ns;     /* from which duration on a callback is slow; UINT64_MAX: never */
	/*
	 * What the loop's thread does, if the loop is observable: on the hub's board or on its own,
	 * or `gone_cell` when a callback has closed the loop. Else NULL.
	 */
	struct board_cell *cell;
	struct board_cell gone_cell;
	uint64_t read_ns;    /* when an observable loop last read its clock in this turn */
	struct board *board; /* where other processes see the counts; NULL: not observable */
	int board_fd;        /* the board's memfd */
};
_Static_assert(offsetof(struct timerhub_loop, front) == 0, "the inline calls cast the loop");

/*
 * Gives an observable loop a new board in a forked child, because the old one is shared with the
 * parent. Returns 0 or a negative errno.
 */
int loop_renew_board(struct timerhub_loop *loop);

/*
 * Shows the loop on its board, which timerhub-top(1) reads, when a turn ends: copies its counts
 * there, and when it must turn next, and marks its thread as TIMERHUB_AWAY, which means outside any
 * call.
 */
void loop_show(const struct timerhub_loop *loop);

/*
 * Writes to the board when the loop must turn next. If it must turn at once, that is the time that
 * it last read.
 */
void loop_show_due(const struct timerhub_loop *loop);

/* Frees a loop that has no timeouts any more. It may have been opened only in part. */
void loop_free(struct timerhub_loop *loop);

/*
 * Returns the present time on the loop's clock. If a manual hub stands at UINT64_MAX, it returns
 * one nanosecond less, because UINT64_MAX as a deadline would mean that the timeout is not set.
 */
static inline uint64_t loop_read_ns(const struct timerhub_loop *loop)
{
	return (loop->unquiet & LOOP_HAS_HUB) != 0
	               ? u64_min(timerhub_now(loop->wake.hub), UINT64_MAX - 1)
	               : clock_now_ns(&loop->clock);
}

#endif
