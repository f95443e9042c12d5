/* SPDX-License-Identifier: MIT */
/*
 * A wall clock of the program's own, which tests may set without changing the machine's. The linker
 * redirects the calls that read it and wait for it to wall_clock.c (wall_clock_dep in meson.build).
 */
#ifndef TIMERHUB_TESTS_WALL_CLOCK_H
#define TIMERHUB_TESTS_WALL_CLOCK_H

#include <stdint.h>

/*
 * Set the program's CLOCK_REALTIME to `ahead_ns` ahead of the kernel's, modulo 2^64, and signal the
 * timerfd opened last on it, as the kernel would. Any thread may call this.
 */
void wall_clock_set(uint64_t ahead_ns);

#endif
