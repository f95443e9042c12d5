/* SPDX-License-Identifier: MIT */
/*
 * Lets a thread wait until a word in memory changes, by futex(2). The calls leave errno alone and
 * are no cancellation points.
 */
#ifndef TIMERHUB_FUTEX_H
#define TIMERHUB_FUTEX_H

#include "base/atomic.h"

/* Waits while *word is `value`, at most `timeout_ns` (UINT64_MAX: no limit). May return early. */
void futex_wait(const atomic_u32 *word, uint32_t value, uint64_t timeout_ns);

/* Wakes up to `count` threads that wait for this word. Signal handlers may call it. */
void futex_wake(const atomic_u32 *word, unsigned count);

#endif
