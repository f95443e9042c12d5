/* SPDX-License-Identifier: MIT */
/*
 * A number that threads wait on, by futex(2). The journal uses no condition variables, because some
 * C libraries lose wake-ups of condition variables. Any thread may call. No call fails, and no call
 * changes errno.
 */
#ifndef JOURNAL_EVENTCOUNT_H
#define JOURNAL_EVENTCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct eventcount {
	_Atomic(uint32_t) number;
};

uint32_t eventcount_number(struct eventcount *eventcount);

/*
 * Set the number and wake no thread. A thread that reads the new number sees all writes before the
 * set.
 */
void eventcount_set(struct eventcount *eventcount, uint32_t number);

/* Wake at most `count` waiting threads. */
void eventcount_wake(struct eventcount *eventcount, unsigned count);

/*
 * Block while the number is `number`, for at most `timeout_ns` (UINT64_MAX: no limit). The call may
 * return early, so the caller checks the number again.
 */
void eventcount_wait(struct eventcount *eventcount, uint32_t number, uint64_t timeout_ns);

#endif
