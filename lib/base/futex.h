/* SPDX-License-Identifier: MIT */
/* futex(2) on a private word. errno stays; no cancellation point. */
#ifndef TIMERHUB_FUTEX_H
#define TIMERHUB_FUTEX_H

#include "base/atomic.h"

/*
 * While *word == value, at most `timeout_ns` (UINT64_MAX: no limit). Look again: it may return
 * early.
 */
void futex_wait(const atomic_u32 *word, uint32_t value, uint64_t timeout_ns);

void futex_wake(const atomic_u32 *word, unsigned count);

#endif
