/* SPDX-License-Identifier: MIT */
/*
 * Implements the calendar of the next heartbeats. See send_calendar.h. The load generator's only
 * thread calls these functions. Invariant: a client is in at most one slot, and no slot before the
 * cursor has a client.
 */
#include "send_calendar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

int calendar_init(struct calendar *calendar, uint32_t clients, uint64_t reach_ns, uint64_t now_ns)
{
	/*
	 * If the cursor were more than reach_ns behind the clock, a heartbeat would be sent too
	 * early.
	 */
	calendar->slots = (uint32_t)(2 * reach_ns / MS + 2);
	calendar->cursor_ms = now_ns / MS;
	calendar->heads = malloc(calendar->slots * sizeof(*calendar->heads));
	calendar->nexts = malloc(clients * sizeof(*calendar->nexts));
	if (calendar->heads == NULL || calendar->nexts == NULL)
		return -ENOMEM;
	memset(calendar->heads, 0xff, calendar->slots * sizeof(*calendar->heads));
	return 0;
}

void calendar_fini(struct calendar *calendar)
{
	free(calendar->heads);
	free(calendar->nexts);
}

void calendar_insert(struct calendar *calendar, uint32_t client, uint64_t due_ns)
{
	const uint64_t due_ms = due_ns / MS;
	uint32_t *head = &calendar->heads[due_ms % calendar->slots];

	calendar->nexts[client] = *head;
	*head = client;
}

uint32_t calendar_take(struct calendar *calendar, uint64_t now_ns)
{
	while (calendar->cursor_ms < now_ns / MS) {
		uint32_t *head = &calendar->heads[calendar->cursor_ms % calendar->slots];
		const uint32_t client = *head;
		if (client != CALENDAR_NONE) {
			*head = calendar->nexts[client];
			return client;
		}
		calendar->cursor_ms++;
	}
	return CALENDAR_NONE;
}
