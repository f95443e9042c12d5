/* SPDX-License-Identifier: MIT */
/* The live view, on a terminal. Only screen.c uses curses. */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <signal.h>

#include "watch.h"

/*
 * Show the watch and read it again in each interval. Returns 0 when the user quits or `*stop` is
 * set. Returns -1 when no hub is left, with the reason in the target's `refusal`. Returns -1 with
 * an empty `refusal` if the terminal is unknown.
 */
int screen_run(struct watch *watch, uint64_t interval_ns, const volatile sig_atomic_t *stop);

#endif
