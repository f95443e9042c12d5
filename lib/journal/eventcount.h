/* SPDX-License-Identifier: MIT */
/*
 * A number that threads wait on, by futex(2). It replaces condition variables, which have lost
 * wake-ups in some C libraries. Any thread may call. No call fails, and no call changes errno.
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

/* A thread that reads the new number sees all writes before the set. Wakes no thread. */
void eventcount_set(struct eventcount *eventcount, uint32_t number);

/* Wake at most `count` waiting threads. */
void eventcount_wake(struct eventcount *eventcount, unsigned count);

/*
 * Block while the number is `number`, for at most `timeout_ns` (UINT64_MAX: no limit). The call may
 * return early, so check the number again.
 */
void eventcount_wait(struct eventcount *eventcount, uint32_t number, uint64_t timeout_ns);

#endif
