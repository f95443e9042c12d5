/* SPDX-License-Identifier: MIT */
/*
 * See teller.h. The owner calls. Invariant: a queue is in the list if and only if it has
 * unpublished events. tests/unit/test_owner.c counts the slots that the owner takes between an
 * expiry and its publication.
 */
#include "queue/teller.h"

#include "base/bits.h"
#include "base/probe.h"

void teller_init(struct teller *teller, const struct clock *clock, struct board_owner *counts)
{
	teller->clock = clock;
	teller->counts = counts;
	teller->unpublished = NULL;
	teller->unpublished_end = &teller->unpublished;
	teller->untold_taken = 0;
	teller->told = 0;
}

/*
 * Count the queue's unpublished events and their lateness. This comes before the publication, so
 * that the events of a consumer are always counted.
 */
static void teller_count(struct teller *teller, struct timerhub_queue *queue)
{
	uint64_t now_ns = clock_now_ns(teller->clock);

	for (unsigned i = 0; i < queue->untold; i++) {
		uint64_t deadline_ns = queue->deadlines_ns[i];
		/* now_ns is earlier only if the clock was set back during the pass. */
		uint64_t late_ns = now_ns > deadline_ns ? now_ns - deadline_ns : 0;

		u64_count(&teller->counts->lateness[late_ns == 0 ? 0 : bits_highest(late_ns)], 1);
	}
	u64_count(&teller->counts->expired, queue->untold);
	teller->told += queue->untold;
	queue->untold = 0;
}

/* Models: tests/models/notifier.pml, tests/models/close.pml. */
static void teller_publish(struct teller *teller, struct timerhub_queue *queue)
{
	probe2(publish, queue, queue->unpublished);
	teller_count(teller, queue);
	u64_count(&queue->counts->put, queue->unpublished);
	outbox_publish(&queue->outbox);
	if (notifier_signal(&queue->notifier, queue->unpublished))
		u64_count(&teller->counts->queue_signals, 1);
	queue->unpublished = 0;
}

void teller_tell(struct teller *teller)
{
	struct timerhub_queue *next;

	for (struct timerhub_queue *queue = teller->unpublished; queue; queue = next) {
		next = queue->next_unpublished;
		teller_publish(teller, queue);
	}
	teller->unpublished = NULL;
	teller->unpublished_end = &teller->unpublished;
	teller->untold_taken = 0;
}

void teller_put_back(struct teller *teller, struct timerhub_queue *queue, unsigned count)
{
	if (queue->unpublished == 0 && count > 0) {
		queue->next_unpublished = NULL;
		*teller->unpublished_end = queue;
		teller->unpublished_end = &queue->next_unpublished;
	}
	queue->unpublished += count;
}

void teller_put(struct teller *teller, struct timerhub_queue *queue, uint64_t deadline_ns)
{
	teller_put_back(teller, queue, 1);
	queue->deadlines_ns[queue->untold++] = deadline_ns;
	if (queue->unpublished >= TELLER_BATCH)
		teller_tell(teller);
}
