/* SPDX-License-Identifier: MIT */
/*
 * Lets a thread wait until a word in memory changes, by futex(2). The calls leave errno alone and
 * are no cancellation points.
 */
#ifndef TIMERHUB_FUTEX_H
#define TIMERHUB_FUTEX_H

#include "base/atomic.h"

/*
 * Waits as long as *word is `value`, for at most `timeout_ns`; UINT64_MAX means no limit. It can
 * return early, so the caller must read the word again.
 */
void futex_wait(const atomic_u32 *word, uint32_t value, uint64_t timeout_ns);

/* Wakes up to `count` threads that wait for this word. It can be called in a signal handler. */
void futex_wake(const atomic_u32 *word, unsigned count);

#endif
