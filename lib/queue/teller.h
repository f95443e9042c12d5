/* SPDX-License-Identifier: MIT */
/*
 * Publishes the events of queues and signals their consumers, in the order in which the queues got
 * their first event, and soon (law 13 of tests/README.md). Also counts how late each event is. Only
 * the owner uses it.
 */
#ifndef TIMERHUB_TELLER_H
#define TIMERHUB_TELLER_H

#include "base/board.h"
#include "base/clock.h"
#include "queue/queue.h"

/* The most slots that the owner takes between an expiry and its publication. */
#ifndef TELLER_UNTOLD_MAX
#define TELLER_UNTOLD_MAX 1024
#endif

struct teller {
	const struct clock *clock;
	struct board_owner *counts;
	/* The queues with unpublished events, in the order of their first, and the list's end. */
	struct timerhub_queue *unpublished, **unpublished_end;
	unsigned untold_taken; /* slots taken since the first of their events expired */
	uint64_t told;         /* events published so far */
};

void teller_init(struct teller *teller, const struct clock *clock, struct board_owner *counts);

/* Is there an unpublished event? */
static inline bool teller_has_untold(const struct teller *teller)
{
	return teller->unpublished != NULL;
}

/* An event was put into the queue's outbox. This may publish all events. */
void teller_put(struct teller *teller, struct timerhub_queue *queue, uint64_t deadline_ns);

/* Compaction put `count` published events back. Consumers may have found the outbox empty. */
void teller_put_back(struct teller *teller, struct timerhub_queue *queue, unsigned count);

/* Publish the events of all queues, and signal their consumers. */
void teller_tell(struct teller *teller);

/* The owner took a slot and has processed it. This may publish all events. */
static inline void teller_took_slot(struct teller *teller)
{
	if (teller_has_untold(teller) && ++teller->untold_taken == TELLER_UNTOLD_MAX)
		teller_tell(teller);
}

#endif
