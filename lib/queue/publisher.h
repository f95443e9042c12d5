/* SPDX-License-Identifier: MIT */
/*
 * Decides when the events of expired timers become visible. The owner thread puts the events into
 * the outboxes of their queues, and the publisher publishes them and signals the consumers: often
 * enough that no event waits long behind others, whatever other queues hold, and seldom enough that
 * a burst of expiries costs few signals. It also counts how late the events are. Only the owner
 * calls it.
 */
#ifndef TIMERHUB_PUBLISHER_H
#define TIMERHUB_PUBLISHER_H

#include "base/clock.h"
#include "board/counter_board.h"
#include "queue/queue.h"

/*
 * How many slots the owner may handle after the first unpublished event before it publishes the
 * events of all queues, so that none waits long.
 */
#ifndef PUBLISHER_UNTOLD_MAX
#define PUBLISHER_UNTOLD_MAX 1024
#endif

struct publisher {
	const struct clock *clock;
	struct board_owner *counts;
	/*
	 * A list of the queues that have unpublished events, in the order in which each got its
	 * first, and the end of that list.
	 */
	struct timerhub_queue *unpublished, **unpublished_end;
	unsigned untold_taken; /* how many slots were taken since the first unpublished event */
	uint64_t told;         /* how many events were published so far */
};

void publisher_init(struct publisher *publisher, const struct clock *clock,
                    struct board_owner *counts);

/* Tells whether any queue has an event that consumers cannot see yet. */
static inline bool publisher_has_untold(const struct publisher *publisher)
{
	return publisher->unpublished != NULL;
}

/*
 * Notes that the owner has put an event with this deadline into a queue's outbox. If the queue has
 * many unpublished events now, those of all queues are published.
 */
void publisher_put(struct publisher *publisher, struct timerhub_queue *queue, uint64_t deadline_ns);

/*
 * Publishes the next `count` events of a queue and signals its consumers. It does not count how
 * late they are.
 */
void publisher_publish(struct publisher *publisher, struct timerhub_queue *queue, unsigned count);

/* Publishes all events that consumers cannot see yet, and signals the consumers of their queues. */
void publisher_tell(struct publisher *publisher);

/*
 * The owner calls this after each timer that it handles. If an event has waited during
 * PUBLISHER_UNTOLD_MAX such calls, publishes all events.
 */
static inline void publisher_took_slot(struct publisher *publisher)
{
	if (publisher_has_untold(publisher) && ++publisher->untold_taken == PUBLISHER_UNTOLD_MAX)
		publisher_tell(publisher);
}

#endif
