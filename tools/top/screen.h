/* SPDX-License-Identifier: MIT */
/* The live view, on a terminal. The only home of curses. */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <signal.h>

#include "watch.h"

/*
 * Show the watch, read again each interval, until the user quits or `*stop` is set (0), or nothing
 * is left to watch (-1, and the target's refusal says why). -1 with no refusal: no such terminal.
 */
int screen_run(struct watch *watch, uint64_t interval_ns, const volatile sig_atomic_t *stop);

#endif
