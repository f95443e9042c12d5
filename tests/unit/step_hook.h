/* SPDX-License-Identifier: MIT */
/*
 * Defines a hook that is called between any two atomic steps. A test that compiles its own copy of
 * a library file lets the compiler include step_hook.h first.
 */
#ifndef UNIT_STEP_HOOK_H
#define UNIT_STEP_HOOK_H

extern void (*step_hook)(void);
#define ATOMIC_STEP() (step_hook ? step_hook() : (void)0)

#endif
