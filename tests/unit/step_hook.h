/* SPDX-License-Identifier: MIT */
/*
 * Defines a hook that is called between any two atomic steps. meson.build compiles a test's own
 * copy of a library file with the option `-include step_hook.h`.
 */
#ifndef UNIT_STEP_HOOK_H
#define UNIT_STEP_HOOK_H

extern void (*step_hook)(void);
#define ATOMIC_STEP() (step_hook ? step_hook() : (void)0)

#endif
