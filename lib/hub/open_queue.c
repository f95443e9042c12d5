/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes queues.
 *
 * Closing a queue has these steps. First the threads that wait on it are made to return -ESHUTDOWN.
 * Then its timers are cancelled one by one. Then the queue is marked as gone, and the close waits
 * until the owner has finished its present round of work (its pass). With that, the owner has
 * dropped every pointer to the queue. Nothing refers to the queue any more, and it can be freed.
 *
 * A program may wrongly arm a timer for a queue that it is closing, after queue_drop_timers() has
 * passed the timer's slot. If the timer expires before the queue is marked as gone, its handle is
 * left in the outbox. Then queue_drop_late_expiries() frees the slot, because nobody else would. If
 * the timer expires when a new queue has got the index, the owner puts its event into the new
 * queue, perhaps before queue_announce() has set the queue's counters.
 *
 * timerhub_queue_close() may load the queue's pointer relaxed, even if another thread has opened
 * the queue. The program has passed the queue from that thread to this one, so this thread sees
 * what the opener had stored.
 *
 * queue_free() reads the eventfd before it closes it. A forked child may have a copy of the
 * eventfd. If that stayed readable, an epoll instance of the program would go on reporting it after
 * the close.
 *
 * queue_free() may store `closing` relaxed. It is 1 already, unless the open of the queue has
 * failed or this is a forked child. In both cases nobody waits on the queue.
 *
 * Labels: [queue] hub_add_queue → owner_put_expiry, owner_fetch_next: whoever loads a queue's
 *         pointer also sees the queue's fields.
 *         [index] timerhub_queue_close → hub_add_queue: a new queue sees the final counters of the
 *         closed queue that had its index.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/futex.h"
#include "base/invariant.h"
#include "base/options.h"
#include "hub/hub.h"

/*
 * Shows a new queue on the counter board. The counters go on from the previous queue with this
 * index, and the outbox is empty, so `put` becomes the number of handles taken.
 */
static void queue_announce(struct timerhub_queue *queue)
{
	struct board_queue *counts = queue->counts;

	u64_raise(&queue->hub->board->callers.queues_end, queue->index + 1);
	/*
	 * Set `put` to `delivered` plus `passed_over`, because nobody will take the handles of the
	 * closed queue. Do it by an addition, because a store would undo an increment that the
	 * owner makes at the same time.
	 */
	(void)u64_fetch_add_relaxed(&counts->put, u64_load_relaxed(&counts->delivered) +
	                                                  u64_load_relaxed(&counts->passed_over) -
	                                                  u64_load_relaxed(&counts->put));
	u64_store_relaxed(&counts->address, (uint64_t)(uintptr_t)queue);
	u64_store_relaxed(&counts->fd_plus_one, (uint64_t)queue->notifier.fd + 1);
}

/*
 * Gives a queue an index, and makes it known to the owner. Returns 0, or -ENOSPC if no index is
 * free.
 */
static int hub_add_queue(struct timerhub *hub, struct timerhub_queue *queue)
{
	for (uint32_t i = 0; i < OWNER_QUEUES_MAX; i++) {
		void *none = NULL;

		if (ptr_load_relaxed(&hub->queues[i]) != NULL) /* relaxed: only a hint */
			continue;
		queue->index = i;
		queue->counts = &hub->board->queues[i];
		queue->notifier.ticket = &hub->living->tickets[i];
		/*
		 * Relaxed, because other threads use the queue only after they have got its pointer
		 * from this thread, and then they see this store too.
		 */
		u64_raise(&hub->queues_end, i + 1);
		/*
		 * Acquire: this thread sees the final counters of the closed queue that had this
		 * index. [index] Release: the owner, which finds the queue here, sees its fields.
		 * [queue]
		 */
		if (ptr_cas_acq_rel(&hub->queues[i], &none, queue)) {
			queue_announce(queue);
			notifier_begin(&queue->notifier);
			return 0;
		}
	}
	return -ENOSPC;
}

/*
 * The structs of the last 64 closed queues, kept because a thread between two calls of
 * timerhub_wait() must still get -ESHUTDOWN from its next call.
 */
#define GRAVES 64
static atomic_ptr graves[GRAVES];
static atomic_u32 graves_dug;

/*
 * Frees all memory of a queue except its struct, which stays in `graves` for a while. It also frees
 * a queue whose open has failed halfway.
 */
static void queue_free(struct timerhub_queue *queue)
{
	/*
	 * Relaxed is enough: this only shares out the places of `graves`, the array of closed
	 * queues.
	 */
	uint32_t grave = u32_fetch_add_relaxed(&graves_dug, 1) % GRAVES;

	outbox_close(&queue->outbox);
	/* Make the eventfd unreadable before it is closed: see the head of this file. */
	if (queue->notifier.fd >= 0 && hub_alive(queue->hub))
		bell_clear_by(queue->notifier.fd, queue->notifier.bells);
	bell_close(queue->notifier.fd);
	queue->notifier.fd = -1; /* the process may use the number for another file now */
	/*
	 * Relaxed is enough: if this is still 0, the open has failed or this is a forked child, and
	 * then no thread waits on the queue.
	 */
	u32_store_relaxed(&queue->closing, 1);
	free(ptr_exchange_acq_rel(&graves[grave], queue));
}

/* A dummy that stays zero. queue->cell points to it until a thread stores its own cell there. */
static struct board_cell nobodys_cell;

static int queue_open(struct timerhub *hub, struct timerhub_queue *queue)
{
	int result;

	queue->hub = hub;
	ptr_store_relaxed(&queue->cell, &nobodys_cell); /* relaxed: nobody knows the queue yet */
	if (hub->board_fd >= 0) {
		queue->hub_board = hub->board;
		queue->slow_ns = hub->board->header.slow_ns;
	}
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

/*
 * Makes the threads that are blocked in timerhub_wait() return -ESHUTDOWN, and waits until they
 * have left the queue.
 */
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

/* Cancels a timer if it belongs to this queue, and counts it as dropped. */
static void queue_drop_timer(struct timerhub_queue *queue, timerhub_timer timer)
{
	if (hub_cancel(queue->hub, timer, queue->index) == 0)
		(void)u64_fetch_add_relaxed(&queue->hub->board->callers.dropped,
		                            1); /* relaxed: only shown in statistics */
}

/*
 * Cancels all timers of a queue. It looks at every slot of the hub, because there is no list of the
 * timers of a queue.
 */
static void queue_drop_timers(struct timerhub_queue *queue)
{
	struct timerhub *hub = queue->hub;
	uint32_t slot = arena_next_used(&hub->arena, 0);

	for (; slot != SLOT_NONE; slot = arena_next_used(&hub->arena, slot + 1)) {
		/*
		 * The acquire load in timer_last() lets queue_drop_timer() see everything about the
		 * timer whose handle it returns, also its queue.
		 */
		queue_drop_timer(queue, timer_last(&hub->arena.timers, slot));
	}
}

/*
 * Cancels timers that still live after queue_drop_timers(), and whose handles are in the outbox
 * because they have expired. There are such timers only if the program wrongly armed them during
 * the close.
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
		/*
		 * Relaxed is enough: the program has got the queue from the thread that opened it,
		 * so it sees what that thread has stored.
		 */
		invariant(ptr_load_relaxed(&hub->queues[queue->index]) == queue);
		queue_send_waiters_away(queue);
		queue_drop_timers(queue);
		/*
		 * Relaxed is enough, because the owner, which puts events into queues, sees this
		 * store when hub_wait_pass() returns.
		 */
		ptr_store_relaxed(&hub->queues[queue->index], QUEUE_GONE);
		hub_wait_pass(hub);
		queue_drop_late_expiries(queue);
		u64_store_relaxed(&queue->counts->fd_plus_one, 0);
		u64_store_relaxed(&queue->counts->address, 0);
	}
	/*
	 * Release: the thread that opens the next queue with this index sees the final values of
	 * the counters. [index]
	 */
	ptr_store_release(&hub->queues[queue->index], NULL);
	queue_free(queue);
}

void queue_watch(struct timerhub_queue *queue, struct board *loop_board, struct board_cell *cell)
{
	uint64_t slow_ns = loop_board->header.slow_ns;

	queue->loop_board = loop_board;
	ptr_store_relaxed(&queue->cell, cell); /* relaxed: nobody dispatches the queue yet */
	queue->slow_ns = queue->slow_ns == 0 ? slow_ns : u64_min(queue->slow_ns, slow_ns);
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
		/* Relaxed, because all queues were opened before the program closed the hub. */
		struct timerhub_queue *queue = ptr_load_relaxed(&hub->queues[i]);

		/*
		 * In a forked child, `queue` can be QUEUE_GONE, if another thread was closing the
		 * queue at the fork.
		 */
		if (!queue || queue == QUEUE_GONE)
			continue;
		if (hub_alive(hub))
			queue_send_waiters_away(queue);
		queue_free(queue);
	}
}
