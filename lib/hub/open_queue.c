/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes queues. A closer makes the waiters return -ESHUTDOWN, cancels the queue's timers
 * one by one, and waits for the owner's pass: then nothing refers to the queue.
 *
 * Labels: [queue] hub_add_queue → owner_put_expiry, owner_fetch_next: carries the queue.
 *         [index] timerhub_queue_close → hub_add_queue: carries the counts of the index.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/futex.h"
#include "base/options.h"
#include "hub/hub.h"

/* Only the opener uses the index, and the outbox is empty. */
static void queue_announce(struct timerhub_queue *queue)
{
	struct board_queue *counts = queue->counts;

	u64_raise(&queue->hub->board->callers.queues_end, queue->index + 1);
	/*
	 * An arm during a close, against the contract: the owner may count its event now for the
	 * same index, and a store could lose that.
	 */
	(void)u64_fetch_add_relaxed(&counts->put, u64_load_relaxed(&counts->delivered) +
	                                                  u64_load_relaxed(&counts->passed_over) -
	                                                  u64_load_relaxed(&counts->put));
	u64_store_relaxed(&counts->fd_plus_one, (uint64_t)queue->notifier.fd + 1);
}

static int hub_add_queue(struct timerhub *hub, struct timerhub_queue *queue)
{
	for (uint32_t i = 0; i < OWNER_QUEUES_MAX; i++) {
		void *none = NULL;

		if (ptr_load_relaxed(&hub->queues[i]) != NULL) /* load is only a hint */
			continue;
		queue->index = i;
		queue->counts = &hub->board->queues[i];
		queue->notifier.ticket = &hub->living->tickets[i];
		/* seen by who gets the queue from its opener */
		u64_raise(&hub->queues_end, i + 1);
		if (ptr_cas_acq_rel(&hub->queues[i], &none, queue)) { /* [index] [queue] */
			queue_announce(queue);
			notifier_begin(&queue->notifier);
			return 0;
		}
	}
	return -ENOSPC;
}

/*
 * Closed queues whose structs are freed later: a worker between two waits must get -ESHUTDOWN from
 * the next.
 */
#define GRAVES 64
static atomic_ptr graves[GRAVES];
static atomic_u32 graves_dug;

static void queue_free(struct timerhub_queue *queue)
{
	/* Relaxed: only chooses an element of `graves`. */
	uint32_t grave = u32_fetch_add_relaxed(&graves_dug, 1) % GRAVES;

	outbox_close(&queue->outbox);
	/* else it would go on waking an epoll, if a child of this process has it too */
	if (queue->notifier.fd >= 0 && hub_alive(queue->hub))
		bell_clear_by(queue->notifier.fd, queue->notifier.bells);
	bell_close(queue->notifier.fd);
	queue->notifier.fd = -1; /* process may reuse the fd's number for another file */
	/*
	 * 1 already, unless the open failed or this is a forked child; then nobody waits, so
	 * relaxed
	 */
	u32_store_relaxed(&queue->closing, 1);
	free(ptr_exchange_acq_rel(&graves[grave], queue));
}

static int queue_open(struct timerhub *hub, struct timerhub_queue *queue)
{
	int result;

	queue->hub = hub;
	queue->notifier.bells = &hub->living->bells;
	queue->notifier.fd = bell_open();
	if (queue->notifier.fd < 0)
		return queue->notifier.fd;
	result = outbox_open(&queue->outbox, hub->arena.capacity);
	return result == 0 ? hub_add_queue(hub, queue) : result;
}

static int queue_open_new(struct timerhub *hub, struct timerhub_queue **ret_queue)
{
	struct timerhub_queue *queue = memory_allocate(sizeof(*queue));
	int result;

	if (!queue)
		return -ENOMEM;
	result = queue_open(hub, queue);
	if (result < 0) {
		queue_free(queue);
		return result;
	}
	*ret_queue = queue;
	return 0;
}

int timerhub_queue_open(struct timerhub *hub, struct timerhub_queue **ret_queue,
                        const struct timerhub_queue_config *config)
{
	CANCELLATION_HELD;
	struct timerhub_queue_config known = { .size = sizeof(known) };
	int result;

	if (!hub || !ret_queue)
		return -EINVAL;
	result = options_read(&known, sizeof(known), sizeof(known), config);
	if (result < 0)
		return result;
	if (known.flags != 0)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	result = -EINTR;
	for (unsigned i = 0; i < HUB_OPEN_TRIES && result == -EINTR; i++)
		result = queue_open_new(hub, ret_queue);
	return result;
}

/* And waits for them. */
static void queue_send_waiters_away(struct timerhub_queue *queue)
{
	u32_store_seq_cst(&queue->closing, 1);
	for (;;) {
		uint32_t inside = u32_load_seq_cst(&queue->inside);

		if (inside == 0)
			return;
		notifier_wake(&queue->notifier, UINT32_MAX);
		futex_wait(&queue->inside, inside, HUB_CLOSE_POLL_NS);
	}
}

static void queue_drop_timer(struct timerhub_queue *queue, timerhub_timer timer)
{
	if (hub_cancel(queue->hub, timer, queue->index) == 0)
		(void)u64_fetch_add_relaxed(&queue->hub->board->callers.dropped,
		                            1); /* relaxed: only shown on the board */
}

/* A walk over all slots, as only timerhub_each() makes too. */
static void queue_drop_timers(struct timerhub_queue *queue)
{
	struct timerhub *hub = queue->hub;
	uint32_t slot = arena_next_used(&hub->arena, 0);

	for (; slot != SLOT_NONE; slot = arena_next_used(&hub->arena, slot + 1)) {
		/* with the queue index, which timer_last() carries */
		queue_drop_timer(queue, timer_last(&hub->arena.timers, slot));
	}
}

/*
 * Armed during the close, against the contract, and expired after the walk: it would keep its slot
 * for ever. One that expires after the close the owner drops.
 */
static void queue_drop_late_expiries(struct timerhub_queue *queue)
{
	uint64_t handle;

	while (outbox_take(&queue->outbox, &handle, 1) > 0)
		queue_drop_timer(queue, handle);
}

void timerhub_queue_close(struct timerhub_queue *queue)
{
	CANCELLATION_HELD;
	struct timerhub *hub;

	if (!queue)
		return;
	hub = queue->hub;
	if (hub_alive(hub)) {
		queue_send_waiters_away(queue);
		queue_drop_timers(queue);
		/* Relaxed: hub_wait_pass()'s addition shows it to the owner. */
		ptr_store_relaxed(&hub->queues[queue->index], QUEUE_GONE);
		hub_wait_pass(hub);
		queue_drop_late_expiries(queue);
		u64_store_relaxed(&queue->counts->fd_plus_one, 0);
	}
	/* [index]: the counts stored above */
	ptr_store_release(&hub->queues[queue->index], NULL);
	queue_free(queue);
}

void queue_alarm(const struct timerhub_event *event)
{
	uint64_t *set_ns = event->ptr;

	*set_ns = UINT64_MAX;
}

int timerhub_queue_fd(const struct timerhub_queue *queue)
{
	return queue ? queue->notifier.fd : -EINVAL;
}

struct timerhub *timerhub_queue_hub(const struct timerhub_queue *queue)
{
	return queue ? queue->hub : NULL;
}

void hub_close_queues(struct timerhub *hub)
{
	for (uint32_t i = 0; i < u64_load_relaxed(&hub->queues_end); i++) {
		/* Relaxed: each open is before the hub's close. */
		struct timerhub_queue *queue = ptr_load_relaxed(&hub->queues[i]);

		if (!queue || queue == QUEUE_GONE) /* QUEUE_GONE: the fork interrupted a close */
			continue;
		if (hub_alive(hub))
			queue_send_waiters_away(queue);
		queue_free(queue);
	}
}
