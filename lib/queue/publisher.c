/* SPDX-License-Identifier: MIT */
/*
 * See publisher.h. The owner calls. Invariant: a queue is in the list if and only if it has
 * unpublished events. tests/unit/test_owner.c counts the slots that the owner takes between an
 * expiry and its publication.
 */
#include "queue/publisher.h"

#include "base/bits.h"
#include "base/probe.h"

void publisher_init(struct publisher *publisher, const struct clock *clock,
                    struct board_owner *counts)
{
	publisher->clock = clock;
	publisher->counts = counts;
	publisher->unpublished = NULL;
	publisher->unpublished_end = &publisher->unpublished;
	publisher->untold_taken = 0;
	publisher->told = 0;
}

/*
 * Count the queue's unpublished events and their lateness. This comes before the publication, so
 * that the events of a consumer are always counted.
 */
static void publisher_count(struct publisher *publisher, struct timerhub_queue *queue)
{
	uint64_t now_ns = clock_now_ns(publisher->clock);

	for (unsigned i = 0; i < queue->untold; i++) {
		uint64_t deadline_ns = queue->deadlines_ns[i];
		/* now_ns is earlier only if the clock was set back during the pass. */
		uint64_t late_ns = now_ns > deadline_ns ? now_ns - deadline_ns : 0;

		u64_count(&publisher->counts->lateness[late_ns == 0 ? 0 : bits_highest(late_ns)],
		          1);
	}
	u64_count(&publisher->counts->expired, queue->untold);
	publisher->told += queue->untold;
	queue->untold = 0;
}

/* Models: tests/models/notifier.pml, tests/models/close.pml. */
static void publisher_publish(struct publisher *publisher, struct timerhub_queue *queue)
{
	probe2(publish, queue, queue->unpublished);
	publisher_count(publisher, queue);
	u64_count(&queue->counts->put, queue->unpublished);
	outbox_publish(&queue->outbox);
	if (notifier_signal(&queue->notifier, queue->unpublished))
		u64_count(&publisher->counts->queue_signals, 1);
	queue->unpublished = 0;
}

void publisher_tell(struct publisher *publisher)
{
	struct timerhub_queue *next;

	for (struct timerhub_queue *queue = publisher->unpublished; queue; queue = next) {
		next = queue->next_unpublished;
		publisher_publish(publisher, queue);
	}
	publisher->unpublished = NULL;
	publisher->unpublished_end = &publisher->unpublished;
	publisher->untold_taken = 0;
}

void publisher_put_back(struct publisher *publisher, struct timerhub_queue *queue, unsigned count)
{
	if (queue->unpublished == 0 && count > 0) {
		queue->next_unpublished = NULL;
		*publisher->unpublished_end = queue;
		publisher->unpublished_end = &queue->next_unpublished;
	}
	queue->unpublished += count;
}

void publisher_put(struct publisher *publisher, struct timerhub_queue *queue, uint64_t deadline_ns)
{
	publisher_put_back(publisher, queue, 1);
	queue->deadlines_ns[queue->untold++] = deadline_ns;
	if (queue->unpublished >= PUBLISHER_BATCH)
		publisher_tell(publisher);
}
