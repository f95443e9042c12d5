/* SPDX-License-Identifier: MIT */
/*
 * Declares a wall clock of the program's own, which a test may set. The wall clock of the machine
 * stays unchanged. Some calls read the wall clock, or wait for a time of the wall clock. The linker
 * replaces these calls by functions of wall_clock.c (wall_clock_dep in meson.build).
 */
#ifndef TIMERHUB_TESTS_WALL_CLOCK_H
#define TIMERHUB_TESTS_WALL_CLOCK_H

#include <stdint.h>

/*
 * Sets the program's CLOCK_REALTIME to `ahead_ns` ahead of the kernel's, modulo 2^64. As the kernel
 * would, wall_clock_set() signals the timerfd that was opened last on this clock. Any thread may
 * call wall_clock_set().
 */
void wall_clock_set(uint64_t ahead_ns);

#endif
