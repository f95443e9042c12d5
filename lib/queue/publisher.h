/* SPDX-License-Identifier: MIT */
/* Counts lateness, publishes soon (law 13 of tests/README.md), and signals. Only for the owner. */
#ifndef TIMERHUB_PUBLISHER_H
#define TIMERHUB_PUBLISHER_H

#include "base/clock.h"
#include "base/counter_board.h"
#include "queue/queue.h"

/* The most slots taken between an expiry and its publication. */
#ifndef PUBLISHER_UNTOLD_MAX
#define PUBLISHER_UNTOLD_MAX 1024
#endif

struct publisher {
	const struct clock *clock;
	struct board_owner *counts;
	/* in the order of their first events; the list's end */
	struct timerhub_queue *unpublished, **unpublished_end;
	unsigned untold_taken; /* slots since the first unpublished event */
	uint64_t told;
};

void publisher_init(struct publisher *publisher, const struct clock *clock,
                    struct board_owner *counts);

static inline bool publisher_has_untold(const struct publisher *publisher)
{
	return publisher->unpublished != NULL;
}

/* An event was put; may publish all. */
void publisher_put(struct publisher *publisher, struct timerhub_queue *queue, uint64_t deadline_ns);

void publisher_publish(struct publisher *publisher, struct timerhub_queue *queue, unsigned count);

/* All queues. */
void publisher_tell(struct publisher *publisher);

/* A slot was taken and processed; may publish all. */
static inline void publisher_took_slot(struct publisher *publisher)
{
	if (publisher_has_untold(publisher) && ++publisher->untold_taken == PUBLISHER_UNTOLD_MAX)
		publisher_tell(publisher);
}

#endif
