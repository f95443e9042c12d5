/* SPDX-License-Identifier: MIT */
/*
 * Shows the live view of timerhub-top on a terminal. Of the files of this tool, only screen.c uses
 * curses.
 */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <signal.h>

#include "latest_readings.h"

/*
 * Show the hubs of `watch`, and read the counters of these hubs again in each interval. Returns 0
 * when the user quits or `*stop` is set. When no hub is left, returns -1 with the reason in the
 * target's `refusal`. If the terminal is unknown, returns -1 with an empty `refusal`.
 */
int screen_run(struct watch *watch, uint64_t interval_ns, const volatile sig_atomic_t *stop);

#endif
