/* SPDX-License-Identifier: MIT */
/*
 * Drain, wait, dispatch: how expiries reach their consumers. Any thread.
 *
 * A handle from the outbox is a hint; timer.c decides whether it is delivered (timer_deliver()).
 * The slot of a delivered one-shot goes straight to the free list. A thread that dispatches says in
 * a cell which timer's callback it runs, for timerhub_cancel_sync(); it gives the cell back also
 * when an exception, or the end of the thread, unwinds it out of a callback.
 */
#include <errno.h>

#include "base/cpu.h"
#include "base/probe.h"
#include "base/test_point.h"
#include "hub/hub.h"

/* How long a waiter on a stopped queue sleeps until the owner has made room in its outbox. */
#define STOPPED_NAP_NS 50000

/* Handles taken from the outbox at once, so that their memory can be fetched side by side. */
#define CONSUME_BATCH 32

/*
 * Deliver the handle's timer into `event`. False if it is no longer pending. Inline in both of its
 * callers: 12 instructions an event. `*ret_ended`: the timer's life is over, its slot is the
 * caller's to free.
 */
static inline __attribute__((always_inline)) bool deliver(struct timerhub_queue *queue,
                                                          uint64_t handle,
                                                          struct timerhub_event *event,
                                                          bool *ret_ended)
{
	struct timerhub *hub = queue->hub;
	const struct timers *timers = &hub->arena.timers;
	struct timer_view view;
	struct timer_outcome outcome;
	uint64_t count = 1;

	view.pair = timer_guess(&timers->pairs[handle_slot(handle)]);
	do {
		uint64_t now_ns = 0;

		if (!timer_view_expiry(timers, handle, &view))
			return false;
		test_point(TEST_POINT_CONSUME_BEFORE_CAS);
		/* Read once: the wall clock may be set back between two readings. */
		if (hub->clock.goes_back || view.interval_ns > 0)
			now_ns = clock_now_ns(&hub->clock);
		outcome = timer_deliver(timers, &view, now_ns, hub->clock.goes_back, &count);
		if (outcome.left != TIMER_NOTHING)
			hub_submit(hub, handle_slot(handle), outcome.left, view.after);
		if (outcome.result == TIMER_GIVEN_BACK)
			return false;
	} while (outcome.result != TIMER_DELIVERED);
	*event = (struct timerhub_event){
		.data = view.data,
		.timer = view.handle,
		.expires_ns = view.pair.deadline_ns,
		.count = count,
		.fn = (timerhub_fn *)(uintptr_t)view.fn,
		.queue = queue,
	};
	probe3(deliver, event->timer, event->expires_ns, event->count);
	*ret_ended = view.interval_ns == 0 && !state_kept(view.pair.state);
	return true;
}

CPU_FETCHES void prefetch_timers(const struct timerhub *hub, const uint64_t *handles,
                                 unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		__builtin_prefetch(&hub->arena.timers.pairs[handle_slot(handles[i])], 1);
		__builtin_prefetch(&hub->arena.timers.cold[handle_slot(handles[i])], 1);
	}
}

/* Count what was taken and delivered, and free the slots of the timers that it has ended. */
static void queue_retire(struct timerhub_queue *queue, unsigned taken, unsigned delivered,
                         uint64_t overruns, const uint32_t *retired, unsigned retired_count)
{
	/* Relaxed: numbers to read. The line is the consumers' own. */
	if (delivered > 0)
		(void)u64_fetch_add_relaxed(&queue->counts->delivered, delivered);
	if (taken > delivered)
		(void)u64_fetch_add_relaxed(&queue->counts->passed_over, taken - delivered);
	if (retired_count > 0)
		(void)u64_fetch_add_relaxed(&queue->counts->retired, retired_count);
	if (overruns > 0)
		(void)u64_fetch_add_relaxed(&queue->counts->overruns, overruns);
	/* Last, so that a thread that sees the slots free sees the counts too. */
	if (retired_count > 0)
		arena_put_many(&queue->hub->arena, cpu_current(), retired, retired_count, false);
}

/* Deliver one batch of the outbox. Adds the events to `events`; false if the outbox was empty. */
static bool queue_take_batch(struct timerhub_queue *queue, struct timerhub_event *events,
                             unsigned max, unsigned *count)
{
	uint64_t handles[CONSUME_BATCH];
	uint32_t retired[CONSUME_BATCH];
	unsigned room = max - *count < CONSUME_BATCH ? max - *count : CONSUME_BATCH;
	unsigned taken = outbox_take(&queue->outbox, handles, room);
	unsigned delivered = 0, retired_count = 0;
	uint64_t overruns = 0;

	prefetch_timers(queue->hub, handles, taken);
	for (unsigned i = 0; i < taken; i++) {
		struct timerhub_event *event = &events[*count + delivered];
		bool ended;

		if (!deliver(queue, handles[i], event, &ended))
			continue;
		delivered++;
		overruns += event->count - 1;
		if (ended)
			retired[retired_count++] = handle_slot(handles[i]);
	}
	queue_retire(queue, taken, delivered, overruns, retired, retired_count);
	*count += delivered;
	return taken > 0;
}

/* Deliver one event to a thread that will call its callback. False if the outbox was empty. */
static bool queue_take_one(struct timerhub_queue *queue, struct timerhub_event *event,
                           struct callback *callback)
{
	bool ended = false, delivered = false;
	unsigned taken = 0;
	uint64_t handle;
	uint32_t slot = SLOT_NONE;

	while (!delivered && outbox_take(&queue->outbox, &handle, 1) > 0) {
		taken++;
		slot = handle_slot(handle);
		callback_consider(callback, handle);
		delivered = deliver(queue, handle, event, &ended);
	}
	queue_retire(queue, taken, delivered ? 1 : 0, delivered ? event->count - 1 : 0, &slot,
	             ended ? 1 : 0);
	return delivered;
}

/*
 * The outbox was found empty: make the fd say so. False if there is something after all.
 * Model: tests/models/notifier.pml.
 */
static bool queue_clear(struct timerhub_queue *queue)
{
	test_point(TEST_POINT_CONSUME_BEFORE_CLEAR);
	notifier_clear(&queue->notifier);
	test_point(TEST_POINT_CONSUME_AFTER_CLEAR);
	return outbox_empty(&queue->outbox);
}

/* We stop although there may be more: make the fd say which. */
static void queue_leave(struct timerhub_queue *queue)
{
	uint64_t left = outbox_count(&queue->outbox);

	if (left == 0 && !queue_clear(queue))
		left = 1; /* at least */
	if (left > 0)
		notifier_signal_again(&queue->notifier);
}

static unsigned queue_take(struct timerhub_queue *queue, struct timerhub_event *events,
                           unsigned max)
{
	unsigned count = 0;

	do {
		while (count < max && queue_take_batch(queue, events, max, &count)) {
		}
	} while (count < max && !queue_clear(queue));
	if (count == max)
		queue_leave(queue);
	return count;
}

static int queue_check(const struct timerhub_queue *queue, const void *events, unsigned max)
{
	if (!queue || (!events && max > 0) || max > INT32_MAX)
		return -EINVAL;
	return hub_alive(queue->hub) ? 0 : -EOWNERDEAD;
}

int timerhub_drain(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max)
{
	int result = queue_check(queue, events, max);

	if (result < 0 || max == 0)
		return result;
	return (int)queue_take(queue, events, max);
}

/* One call of timerhub_dispatch(). */
struct dispatching {
	struct timerhub_queue *queue;
	struct callback *callback; /* this thread's cell; NULL before the first event */
	unsigned count;            /* events taken so far */
	bool running;              /* inside a callback */
	bool cleared;              /* the queue was found empty, and the fd says so */
};

/* Deliver one event and call its callback. False if the outbox was empty. */
static bool queue_dispatch_one(struct dispatching *dispatching)
{
	struct timerhub_queue *queue = dispatching->queue;
	struct timerhub_event event;

	if (!dispatching->callback) {
		if (outbox_empty(&queue->outbox))
			return false;
		dispatching->callback = callbacks_enter(&queue->hub->callbacks, cpu_current());
	}
	if (!queue_take_one(queue, &event, dispatching->callback))
		return false;
	dispatching->count++;
	if (!event.fn)
		return true;
	test_point(TEST_POINT_DISPATCH_BEFORE_BEGIN);
	callback_begin(dispatching->callback, event.timer);
	dispatching->running = true;
	event.fn(&event);
	dispatching->running = false;
	callback_end(dispatching->callback);
	return true;
}

/* Is there to be no next event? In a child that a callback has forked they are the parent's. */
static bool dispatching_is_over(const struct dispatching *dispatching, unsigned max)
{
	return dispatching->count >= max || !hub_alive(dispatching->queue->hub);
}

/*
 * The end of a dispatch: it returns, or a callback is left by an exception or by the end of its
 * thread (which glibc turns into an exception), and the stack is unwound.
 */
static void dispatching_end(struct dispatching *dispatching)
{
	if (dispatching->running)
		callback_end(dispatching->callback);
	if (dispatching->callback)
		callbacks_leave(dispatching->callback);
	/* In a child that the callback has forked the fd is the parent's. */
	if (!dispatching->cleared && hub_alive(dispatching->queue->hub))
		queue_leave(dispatching->queue);
}

/* Built with -fexceptions, so that unwinding runs the cleanup. */
static unsigned queue_dispatch(struct timerhub_queue *queue, unsigned max)
{
	__attribute__((cleanup(dispatching_end))) struct dispatching dispatching = {
		.queue = queue,
	};

	/* One at a time: a callback may cancel what would come next. */
	do {
		while (!dispatching_is_over(&dispatching, max) &&
		       queue_dispatch_one(&dispatching)) {
		}
		dispatching.cleared = !dispatching_is_over(&dispatching, max) && queue_clear(queue);
	} while (!dispatching.cleared && !dispatching_is_over(&dispatching, max));
	return dispatching.count;
}

int timerhub_dispatch(struct timerhub_queue *queue, unsigned max)
{
	int result = queue_check(queue, queue, max);

	if (result < 0 || max == 0)
		return result;
	return (int)queue_dispatch(queue, max);
}

/* ---- wait ---- */

/* Why a waiter must leave, events or not: 0, or a negative errno. */
static int queue_verdict(const struct timerhub_queue *queue, uint32_t interrupts)
{
	/*
	 * Relaxed: the waiter has loaded its ticket, which carries what was set before it was moved
	 * on; if either is set after, the waiter does not block.
	 */
	if (u32_load_relaxed(&queue->closing) != 0)
		return -ESHUTDOWN;
	return u32_load_relaxed(&queue->interrupts) != interrupts ? -ECANCELED : 0;
}

/* How much of the timeout is left at this instant; UINT64_MAX for ever. */
static uint64_t left_ns(uint64_t until_ns)
{
	uint64_t now_ns;

	if (until_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = clock_monotonic_ns();
	return now_ns < until_ns ? until_ns - now_ns : 0;
}

static bool queue_stopped(const struct timerhub_queue *queue)
{
	return u32_load_seq_cst(&queue->stopped) != 0;
}

/*
 * Block until there may be events, or a reason to leave. If the queue is stopped, the waiter waits
 * only while the owner compacts the outbox, and naps: the owner wakes as many waiters as it puts
 * events back, and no thread wakes the others.
 */
static void queue_block(struct timerhub_queue *queue, uint32_t interrupts, uint64_t timeout_ns)
{
	uint32_t ticket = notifier_wait_enter(&queue->notifier);

	test_point(TEST_POINT_WAIT_BEFORE_SLEEP);
	if (outbox_empty(&queue->outbox) && queue_verdict(queue, interrupts) == 0) {
		if (!queue_stopped(queue))
			notifier_wait(&queue->notifier, ticket, timeout_ns);
		else if (!outbox_exhausted(&queue->outbox))
			notifier_wait(&queue->notifier, ticket, STOPPED_NAP_NS);
	}
	notifier_wait_leave(&queue->notifier);
}

static int queue_wait(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max,
                      uint64_t until_ns)
{
	uint32_t interrupts = u32_load_seq_cst(&queue->interrupts);

	for (;;) {
		int result = queue_verdict(queue, interrupts);
		uint64_t timeout_ns;
		unsigned count;
		bool stopped;

		if (result < 0) {
			/* What we were woken by may be an event: let another waiter have it. */
			if (!outbox_empty(&queue->outbox))
				notifier_wake_all(&queue->notifier);
			return result;
		}
		count = queue_take(queue, events, max);
		if (count > 0)
			return (int)count;
		test_point(TEST_POINT_WAIT_FOUND_NOTHING);
		stopped = queue_stopped(queue);
		/* We read `stopped` before the outbox, so all that had expired by then is seen. */
		if (stopped && outbox_exhausted(&queue->outbox))
			return -ESHUTDOWN;
		timeout_ns = left_ns(until_ns);
		if (timeout_ns == 0 && !stopped)
			return 0;
		queue_block(queue, interrupts, timeout_ns);
	}
}

/* Model, against the queue's closing: tests/models/close.pml. */
int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max,
                  uint64_t timeout_ns)
{
	uint64_t until_ns;
	int result;

	if (!queue || max == 0)
		return -EINVAL;
	/* Before the first look at the hub: the closer of the queue waits for threads inside. */
	(void)u32_fetch_add_seq_cst(&queue->inside, 1);
	result = u32_load_seq_cst(&queue->closing) != 0 ? -ESHUTDOWN
	                                                : queue_check(queue, events, max);
	if (result == 0) {
		until_ns = timeout_ns == UINT64_MAX
		                   ? UINT64_MAX
		                   : u64_add_saturating(clock_monotonic_ns(), timeout_ns);
		result = queue_wait(queue, events, max, until_ns);
	}
	(void)u32_fetch_add_release(&queue->inside, UINT32_MAX); /* carries all of the wait */
	return result;
}

void timerhub_interrupt(struct timerhub_queue *queue)
{
	if (!queue || !hub_alive(queue->hub))
		return;
	(void)u32_fetch_add_seq_cst(&queue->interrupts, 1);
	test_point(TEST_POINT_INTERRUPT_HALFWAY);
	notifier_wake_all(&queue->notifier);
}

void timerhub_queue_stop(struct timerhub_queue *queue)
{
	if (!queue || !hub_alive(queue->hub))
		return;
	u32_store_seq_cst(&queue->stopped, 1);
	test_point(TEST_POINT_INTERRUPT_HALFWAY);
	notifier_wake_all(&queue->notifier);
}
