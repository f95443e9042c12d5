/* SPDX-License-Identifier: MIT */
/*
 * A hook between any two atomic steps of a test's own copy of a library file (-include, see
 * meson.build).
 */
#ifndef UNIT_STEP_HOOK_H
#define UNIT_STEP_HOOK_H

extern void (*step_hook)(void);
#define ATOMIC_STEP() (step_hook ? step_hook() : (void)0)

#endif
