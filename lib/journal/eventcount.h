/* SPDX-License-Identifier: MIT */
/*
 * A number that threads wait for: futex(2) under it. Instead of condition variables, which some C
 * libraries have lost wake-ups with. Any thread. Cannot fail and leaves errno alone.
 */
#ifndef JOURNAL_TICKET_H
#define JOURNAL_TICKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ticket {
	_Atomic(uint32_t) number;
};

uint32_t ticket_number(struct ticket *ticket);

/* A thread that then finds the number sees what was written before. Wakes no thread. */
void ticket_set(struct ticket *ticket, uint32_t number);

/* Wake so many of the threads that wait. */
void ticket_wake(struct ticket *ticket, unsigned count);

/*
 * Block while the number is `number`, up to `timeout_ns` (UINT64_MAX: for ever). May return for no
 * reason: look again.
 */
void ticket_wait(struct ticket *ticket, uint32_t number, uint64_t timeout_ns);

#endif
