/* SPDX-License-Identifier: MIT */
/*
 * A wall clock of the program's own, which a test may set without touching the machine's. The
 * linker replaces the calls that read it or wait for it (wall_clock_dep).
 */
#ifndef TIMERHUB_TESTS_WALL_CLOCK_H
#define TIMERHUB_TESTS_WALL_CLOCK_H

#include <stdint.h>

/*
 * Sets the wall clock to `ahead_ns` ahead of the kernel's, modulo 2^64. Like the kernel, it then
 * signals the timerfd that was opened on it last. Any thread may call it.
 */
void wall_clock_set(uint64_t ahead_ns);

#endif
