/* SPDX-License-Identifier: MIT */
/*
 * The publisher lets consumers see events, several at a time, because each signal costs a system
 * call (publisher.h). Its list has exactly the queues with events that are not published yet.
 * tests/unit/test_owner.c tests how many slots the owner may handle before it publishes.
 */
#include "queue/publisher.h"

#include "base/bits.h"
#include "base/invariant.h"
#include "base/probe.h"

void publisher_init(struct publisher *publisher, const struct clock *clock,
                    struct board_owner *counts)
{
	*publisher = (struct publisher){ .clock = clock, .counts = counts };
	publisher->unpublished_end = &publisher->unpublished;
}

/*
 * Counts the lateness of a queue's events that are about to be published. Call it before consumers
 * are woken, because their run time must not count as lateness.
 */
static void publisher_count(struct publisher *publisher, struct timerhub_queue *queue)
{
	uint64_t now_ns = clock_now_ns(publisher->clock);

	for (unsigned i = 0; i < queue->unpublished; i++) {
		unsigned bucket = board_bucket(now_ns, queue->deadlines_ns[i]);

		u64_count(&publisher->counts->lateness[bucket], 1);
	}
	u64_count(&publisher->counts->expired, queue->unpublished);
	/*
	 * Note when an empty queue gets events. Store the time before they are published, because a
	 * thread that gets one may ask for the statistics at once.
	 */
	if (notifier_is_idle(&queue->notifier))
		u64_store_relaxed(&queue->counts->filled_ns, now_ns); /* relaxed: only shown */
	publisher->told += queue->unpublished;
}

void publisher_publish(struct publisher *publisher, struct timerhub_queue *queue, unsigned count)
{
	probe2(publish, queue, count);
	u64_count(&queue->counts->put, count);
	outbox_publish(&queue->outbox);
	if (notifier_signal(&queue->notifier, count))
		u64_count(&publisher->counts->queue_signals, 1);
}

void publisher_tell(struct publisher *publisher)
{
	struct timerhub_queue *next;

	for (struct timerhub_queue *queue = publisher->unpublished; queue; queue = next) {
		next = queue->next_unpublished;
		publisher_count(publisher, queue);
		publisher_publish(publisher, queue, queue->unpublished);
		queue->unpublished = 0;
	}
	publisher->unpublished = NULL;
	publisher->unpublished_end = &publisher->unpublished;
	publisher->untold_taken = 0;
}

void publisher_put(struct publisher *publisher, struct timerhub_queue *queue, uint64_t deadline_ns)
{
	if (queue->unpublished == 0) {
		queue->next_unpublished = NULL;
		*publisher->unpublished_end = queue;
		publisher->unpublished_end = &queue->next_unpublished;
	}
	queue->deadlines_ns[queue->unpublished++] = deadline_ns;
	if (queue->unpublished >= PUBLISHER_BATCH) {
		invariant(queue->unpublished == PUBLISHER_BATCH); /* or `deadlines_ns` is overrun */
		publisher_tell(publisher);
	}
}
