/* SPDX-License-Identifier: MIT */
/*
 * timerhub_loop.h as the simulation includes it. Its only instruction reads the thread pointer, to
 * tell one thread from another. All actors of a run share that pointer, because they are coroutines
 * on one thread. So the instruction is replaced by the number of the current actor, in lib/ and in
 * the inline calls.
 */
#ifndef SIMULATION_LOOP_HEADER_H
#define SIMULATION_LOOP_HEADER_H

#include <timerhub.h>

void *simulation_thread(void);

#define __asm__(...) thread = (uint64_t)(uintptr_t)simulation_thread()
#include <timerhub_loop.h>
#undef __asm__

#endif
