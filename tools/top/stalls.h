/* SPDX-License-Identifier: MIT */
/* Prints a line when events or a due loop have waited for too long, and when that ends. */
#ifndef TOP_STALLS_H
#define TOP_STALLS_H

#include <signal.h>

#include "latest_readings.h"

/*
 * Watches until the process ends or `*stop` is set. Returns 0, or -1 if standard output cannot be
 * written or there is no memory.
 */
int stalls_run(struct watch *watch, uint64_t threshold_ns, bool json,
               const volatile sig_atomic_t *stop);

#endif
