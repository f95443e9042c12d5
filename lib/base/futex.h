/* SPDX-License-Identifier: MIT */
/*
 * Blocks threads on a 32-bit word until another thread reports a change of the word, by futex(2).
 * The word is private to the process. The calls do not change errno, and are not cancellation
 * points.
 */
#ifndef TIMERHUB_FUTEX_H
#define TIMERHUB_FUTEX_H

#include "base/atomic.h"

/*
 * Block while *word == value, for at most `timeout_ns` (UINT64_MAX: no limit). The call may return
 * for no reason, so the caller must check the word again.
 */
void futex_wait(const atomic_u32 *word, uint32_t value, uint64_t timeout_ns);

/* Wake up to `count` threads blocked on the word. */
void futex_wake(const atomic_u32 *word, unsigned count);

#endif
