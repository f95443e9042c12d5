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
 * So many slots after the first unpublished event, the owner publishes all events, so that none
 * waits long.
 */
#ifndef PUBLISHER_UNTOLD_MAX
#define PUBLISHER_UNTOLD_MAX 1024
#endif

struct publisher {
	const struct clock *clock;
	struct board_owner *counts;
	/*
	 * The queues that have unpublished events, in the order of their first, and the list's end.
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

/* Notes that an event was put into the queue's outbox, and publishes all events if many wait. */
void publisher_put(struct publisher *publisher, struct timerhub_queue *queue, uint64_t deadline_ns);

/* Publishes `count` events of a queue and signals its consumers, but does not count lateness. */
void publisher_publish(struct publisher *publisher, struct timerhub_queue *queue, unsigned count);

/* Publishes all events that consumers cannot see yet, and signals the consumers of their queues. */
void publisher_tell(struct publisher *publisher);

/*
 * Counts a slot that the owner has handled. After PUBLISHER_UNTOLD_MAX of them, publishes all
 * events.
 */
static inline void publisher_took_slot(struct publisher *publisher)
{
	if (publisher_has_untold(publisher) && ++publisher->untold_taken == PUBLISHER_UNTOLD_MAX)
		publisher_tell(publisher);
}

#endif
