/* SPDX-License-Identifier: MIT */
/*
 * A wall clock of the program's own, which a test may set, in place of the machine's: the linker
 * replaces the calls that read it or wait for it (wall_clock_dep).
 */
#ifndef TIMERHUB_TESTS_WALL_CLOCK_H
#define TIMERHUB_TESTS_WALL_CLOCK_H

#include <stdint.h>

/*
 * To `ahead_ns` ahead of the kernel's, modulo 2^64. Signals the timerfd that was opened last on it,
 * as the kernel would. Any thread.
 */
void wall_clock_set(uint64_t ahead_ns);

#endif
