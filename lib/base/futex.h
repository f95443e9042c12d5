/* SPDX-License-Identifier: MIT */
/*
 * Block on a 32-bit word until another thread says that it changed: futex(2). Private to the
 * process. Any thread; neither call touches errno or is a cancellation point.
 */
#ifndef TIMERHUB_FUTEX_H
#define TIMERHUB_FUTEX_H

#include "base/atomic.h"

/*
 * Block while *word == value, up to `timeout_ns` (UINT64_MAX: for ever). Returns for any reason,
 * or for none: the caller looks again.
 */
void futex_wait(const atomic_u32 *word, uint32_t value, uint64_t timeout_ns);

/* Wake up to `count` threads blocked on the word. */
void futex_wake(const atomic_u32 *word, unsigned count);

#endif
