/* SPDX-License-Identifier: MIT */
/*
 * Declares the eventcount, a number that threads wait on, by futex(2). The journal uses no
 * condition variables, because some C libraries lose wake-ups of condition variables. Any thread
 * may call the functions of an eventcount. The functions always succeed and leave errno unchanged.
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
 * Set the number and wake no thread. A thread that reads the new number also sees all writes that
 * the setting thread made before eventcount_set().
 */
void eventcount_set(struct eventcount *eventcount, uint32_t number);

/* Wake at most `count` waiting threads. */
void eventcount_wake(struct eventcount *eventcount, unsigned count);

/*
 * Block while the eventcount's number is `number`, for at most `timeout_ns`. With UINT64_MAX there
 * is no limit. eventcount_wait() may return early. The caller must check the number again.
 */
void eventcount_wait(struct eventcount *eventcount, uint32_t number, uint64_t timeout_ns);

#endif
