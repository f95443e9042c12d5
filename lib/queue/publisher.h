/* SPDX-License-Identifier: MIT */
/*
 * Publishes the events of queues and signals their consumers, in the order in which the queues got
 * their first event, and soon (law 13 of tests/README.md). Also counts how late each event is. Only
 * the owner uses it.
 */
#ifndef TIMERHUB_PUBLISHER_H
#define TIMERHUB_PUBLISHER_H

#include "base/board.h"
#include "base/clock.h"
#include "queue/queue.h"

/* The most slots that the owner takes between an expiry and its publication. */
#ifndef PUBLISHER_UNTOLD_MAX
#define PUBLISHER_UNTOLD_MAX 1024
#endif

struct publisher {
	const struct clock *clock;
	struct board_owner *counts;
	/* The queues with unpublished events, in the order of their first, and the list's end. */
	struct timerhub_queue *unpublished, **unpublished_end;
	unsigned untold_taken; /* slots taken since the first of their events expired */
	uint64_t told;         /* events published so far */
};

void publisher_init(struct publisher *publisher, const struct clock *clock,
                    struct board_owner *counts);

/* Returns whether there is an unpublished event. */
static inline bool publisher_has_untold(const struct publisher *publisher)
{
	return publisher->unpublished != NULL;
}

/* Call it after an event was put into the queue's outbox. The call may publish all events. */
void publisher_put(struct publisher *publisher, struct timerhub_queue *queue, uint64_t deadline_ns);

/* Publish `count` handles that were put into the queue's outbox, and signal the consumers. */
void publisher_publish(struct publisher *publisher, struct timerhub_queue *queue, unsigned count);

/* Publish the events of all queues, and signal their consumers. */
void publisher_tell(struct publisher *publisher);

/* Call it after the owner has taken and processed a slot. The call may publish all events. */
static inline void publisher_took_slot(struct publisher *publisher)
{
	if (publisher_has_untold(publisher) && ++publisher->untold_taken == PUBLISHER_UNTOLD_MAX)
		publisher_tell(publisher);
}

#endif
