/* SPDX-License-Identifier: MIT */
/*
 * struct timerhub_loop with all its parts, and the functions that the files of this folder call in
 * each other. README.md explains how a timeout goes through these parts. It also explains the words
 * of this folder: a place is an index of the loop's table, which a timeout has as long as it is
 * added. A timeout is fresh if it was set by a delay since the loop last read its clock. The list
 * has the places that may be scheduled too late.
 */
#ifndef TIMERHUB_LOOP_INSIDE_H
#define TIMERHUB_LOOP_INSIDE_H

#include <timerhub_loop.h>

#include <errno.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/fork_check.h"
#include "board/counter_board.h"
#include "loop/timeout_table.h"
#include "loop/wake.h"
#include "schedule/schedule.h"

/* The counters that only timerhub_loop_stats() reads. */
struct loop_counts {
	uint64_t callbacks;
	uint64_t empty_wakes;
	uint64_t turn_max_ns;
	uint64_t lateness[TIMERHUB_LATENESS_BUCKETS];
};

/*
 * Reasons why timerhub_loop_turn() cannot return right after it has read the clock. The field
 * `unquiet` has a bit for each.
 */
enum loop_unquiet {
	LOOP_STIRRED = 1,   /* the schedule was changed since next_ns was computed */
	LOOP_MUST_TURN = 2, /* the queue has more events, or the wall clock was set: do not block */
	LOOP_HAS_HUB = 4,   /* only a dispatch can find out whether the queue has events */
	LOOP_HAS_NO_CLOCK = 8, /* the program gives the time; a turn can still return early */
	LOOP_IS_SHOWN = 16     /* each turn copies the counters to the board */
};

struct timerhub_loop {
	struct timerhub_loop_front front; /* the first member, because the inline calls use it */
	/* A turn without work reads only this cache line and the first 64 bytes of `front`. */
	_Alignas(CACHE_LINE_BYTES)
		uint64_t next_ns; /* when the first schedule entry comes up, or earlier */
	uint64_t turn_ns;         /* when the loop last read its clock, or the time it was given */
	/*
	 * Before this time, timerhub_loop_turn() and timerhub_loop_settle() have nothing to do, and
	 * return as soon as they have read the clock. 0 means that this time is not known.
	 */
	uint64_t quiet_ns;
	uint64_t turns;
	uint32_t unquiet;    /* bits of enum loop_unquiet */
	uint32_t idle_count; /* front.fresh_count while nothing is fresh: 0; 64 or 65 if is_exact */
	struct clock clock;  /* the clock of a loop that has no hub */
	struct fork_check fork_check;
	uint32_t listed_count; /* how many places are in the list, each at most once */
	uint32_t first;        /* the place that loop_rest() must check again, or SLOT_NONE */
	bool is_manual;        /* timerhub_loop_advance() gives the time */
	bool is_exact;         /* the program gives the time, to the loop or its hub */
	bool is_locked;        /* any thread may use the loop, under a lock of the program */
	bool is_closed;        /* a callback has closed the loop; the end of the turn frees it */
	bool is_dispatching;   /* the turn is calling callbacks of the queue */
	struct wake wake;
	struct timerhub_timeout gone; /* stands in `fresh` for a timeout that was taken out of it */
	struct places places;
	struct schedule schedule;
	struct timer_filing *filings; /* the schedule; the members `place` are the list */
	struct memory memory;         /* the memory of `filings` */
	struct loop_counts counts;
	atomic_u64 refused; /* how many calls were refused; the refused threads count it */
	uint64_t due_ns;    /* deadline of the timeout whose callback is running; else UINT64_MAX */
	uint64_t turn_thread; /* which thread makes the current turn, or made the last one */
	uint32_t clock_kind;  /* an enum timerhub_clock, from the config */
	uint64_t slow_ns;     /* a callback that takes this long is slow; UINT64_MAX: none is */
	/*
	 * The cell in which the loop's thread shows other processes what it is doing; NULL if the
	 * loop is not observable. It is gone_cell after a callback has closed the loop, because the
	 * shared memory with the other cell may be unmapped then.
	 */
	struct board_cell *cell;
	struct board_cell gone_cell;
	uint64_t read_ns;    /* when an observable loop last read its clock in this turn */
	struct board *board; /* where other processes see the counters; NULL: not observable */
	int board_fd;        /* the memfd of the board */
};
_Static_assert(offsetof(struct timerhub_loop, front) == 0, "the inline calls cast the loop");

/*
 * Gives an observable loop a new counter board in a forked child, because the child shares the old
 * one with its parent. Returns 0 or a negative errno.
 */
int loop_renew_board(struct timerhub_loop *loop);

/*
 * Copies the counters of an observable loop into the shared memory that timerhub-top(1) reads, and
 * shows timerhub-top(1) that the loop's thread is outside any call (TIMERHUB_AWAY).
 */
void loop_show(const struct timerhub_loop *loop);

/* Publishes the time at which the loop's next turn is due, for timerhub-top(1). */
void loop_show_due(const struct timerhub_loop *loop);

/*
 * Frees a loop, from which all timeouts have been removed. It also frees one whose open has failed
 * halfway.
 */
void loop_free(struct timerhub_loop *loop);

/*
 * Returns the present time on the loop's clock. It is at most UINT64_MAX - 1, because a deadline of
 * UINT64_MAX would mean that the timeout is not set.
 */
static inline uint64_t loop_read_ns(const struct timerhub_loop *loop)
{
	return (loop->unquiet & LOOP_HAS_HUB) != 0
	               ? u64_min(timerhub_now(loop->wake.hub), UINT64_MAX - 1)
	               : clock_now_ns(&loop->clock);
}

#endif
