/* SPDX-License-Identifier: MIT */
/* The ways in which timerhub-top shows a watch. */
#ifndef TOP_OUTPUTS_H
#define TOP_OUTPUTS_H

#include <signal.h>

#include "page.h"
#include "watch.h"

enum view {
	VIEW_ONE,      /* one hub or loop */
	VIEW_OVERVIEW, /* a line for each */
	VIEW_WHO,      /* the threads that dispatch or turn loops, slow callbacks and the blame */
};

/*
 * Fills an empty page, of which `columns` and `rows` are set. VIEW_ONE is that of the hub or loop
 * watch->now[index].
 */
void page_fill(struct page *page, const struct watch *watch, enum view view, unsigned index);
void who_fill(struct page *page, const struct watch *watch);

/*
 * Shows the live view on a terminal, and reads the counters again in each interval. Returns 0 when
 * the user quits or `*stop` is set. When no hub is left, it returns -1 with the reason in the
 * target's `refusal`, which is empty if the terminal is unknown.
 */
int screen_run(struct watch *watch, uint64_t interval_ns, const volatile sig_atomic_t *stop);

/* Prints the latest readings as OpenMetrics text. Returns -1 if memory is short. */
int metrics_print(const struct watch *watch);

/*
 * Prints a line when events or a due loop have waited for too long, and when that ends, until the
 * process ends or `*stop` is set. Returns 0, or -1 if standard output cannot be written or there is
 * no memory.
 */
int stalls_run(struct watch *watch, uint64_t threshold_ns, bool json,
               const volatile sig_atomic_t *stop);

#endif
