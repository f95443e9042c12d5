/* SPDX-License-Identifier: MIT */
/*
 * Tells queues that events wait in them: first come first told, soon (law 13), and counts how late
 * each event then is. The owner's alone.
 */
#ifndef TIMERHUB_TELLER_H
#define TIMERHUB_TELLER_H

#include "base/board.h"
#include "base/clock.h"
#include "queue/queue.h"

/* Slots that the owner takes, at most, between an expiry and telling its queue. */
#ifndef TELLER_UNTOLD_MAX
#define TELLER_UNTOLD_MAX 1024
#endif

struct teller {
	const struct clock *clock;
	struct board_owner *counts;
	/* Queues with events not yet published, first come first told, and where the next goes. */
	struct timerhub_queue *unpublished, **unpublished_end;
	unsigned untold_taken; /* slots taken since the first event of these queues */
	uint64_t told;         /* events told so far */
};

void teller_init(struct teller *teller, const struct clock *clock, struct board_owner *counts);

/* Does an event wait to be told? */
static inline bool teller_has_untold(const struct teller *teller)
{
	return teller->unpublished != NULL;
}

/* An event was put into the queue's outbox. May tell all. */
void teller_put(struct teller *teller, struct timerhub_queue *queue, uint64_t deadline_ns);

/* So many events, told before, were put back: consumers may have found the outbox empty. */
void teller_put_back(struct teller *teller, struct timerhub_queue *queue, unsigned count);

/* Tell all queues in which events wait to be told. */
void teller_tell(struct teller *teller);

/* A slot was taken and is done with. May tell all. */
static inline void teller_took_slot(struct teller *teller)
{
	if (teller_has_untold(teller) && ++teller->untold_taken == TELLER_UNTOLD_MAX)
		teller_tell(teller);
}

#endif
