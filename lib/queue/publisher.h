/* SPDX-License-Identifier: MIT */
/*
 * Between the owner's expiries and the queues' consumers. The owner puts events into the outboxes,
 * and the publisher decides when consumers may see them: often enough that no event waits long
 * behind others, whatever other queues hold, and seldom enough that a burst costs few signals. It
 * also counts how late they are. To tell a queue is to publish its events and to signal them. Only
 * the owner calls it.
 */
#ifndef TIMERHUB_PUBLISHER_H
#define TIMERHUB_PUBLISHER_H

#include "base/clock.h"
#include "base/counter_board.h"
#include "queue/queue.h"

/* An expiry is published at the latest when the owner has taken so many slots after it. */
#ifndef PUBLISHER_UNTOLD_MAX
#define PUBLISHER_UNTOLD_MAX 1024
#endif

struct publisher {
	const struct clock *clock;
	struct board_owner *counts;
	/*
	 * The queues with unpublished events, in the order of their first ones, and the list's end.
	 */
	struct timerhub_queue *unpublished, **unpublished_end;
	unsigned untold_taken; /* how many slots were taken since the first unpublished event */
	uint64_t told;         /* how many events were published so far */
};

void publisher_init(struct publisher *publisher, const struct clock *clock,
                    struct board_owner *counts);

/* Tells whether any queue has events that consumers cannot see yet. */
static inline bool publisher_has_untold(const struct publisher *publisher)
{
	return publisher->unpublished != NULL;
}

/* Notes that an event was put into a queue's outbox. This can publish all queues' events. */
void publisher_put(struct publisher *publisher, struct timerhub_queue *queue, uint64_t deadline_ns);

/* Publishes and signals `count` events of one queue, and does not count their lateness. */
void publisher_publish(struct publisher *publisher, struct timerhub_queue *queue, unsigned count);

/* Publishes and signals the events of all queues. */
void publisher_tell(struct publisher *publisher);

/* Notes that the owner has taken a slot and dealt with it. This can publish all queues' events. */
static inline void publisher_took_slot(struct publisher *publisher)
{
	if (publisher_has_untold(publisher) && ++publisher->untold_taken == PUBLISHER_UNTOLD_MAX)
		publisher_tell(publisher);
}

#endif
