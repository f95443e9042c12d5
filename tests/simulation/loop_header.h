/* SPDX-License-Identifier: MIT */
/*
 * timerhub_loop.h for the simulation. Its one instruction reads the thread pointer, which all
 * coroutines share, so the current actor takes its place, in lib/ and in the inline calls.
 */
#ifndef SIMULATION_LOOP_HEADER_H
#define SIMULATION_LOOP_HEADER_H

#include <timerhub.h>

void *simulation_thread(void);

#define __asm__(...) thread = (uint64_t)(uintptr_t)simulation_thread()
#include <timerhub_loop.h>
#undef __asm__

#endif
