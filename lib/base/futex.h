/* SPDX-License-Identifier: MIT */
/*
 * Block on a 32-bit word until another thread reports a change of it: futex(2). Private to the
 * process. Any thread. Neither call changes errno, and neither is a cancellation point.
 */
#ifndef TIMERHUB_FUTEX_H
#define TIMERHUB_FUTEX_H

#include "base/atomic.h"

/*
 * Block while *word == value, for at most `timeout_ns` (UINT64_MAX: no limit). May return for no
 * reason, so the caller must check the word again.
 */
void futex_wait(const atomic_u32 *word, uint32_t value, uint64_t timeout_ns);

/* Wake up to `count` threads blocked on the word. */
void futex_wake(const atomic_u32 *word, unsigned count);

#endif
