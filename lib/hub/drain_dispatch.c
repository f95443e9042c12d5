/* SPDX-License-Identifier: MIT */
/*
 * Drain, wait and dispatch, for any thread; timer_deliver() decides about each handle. A delivered
 * one-shot's slot goes straight to a free stack. A dispatching thread's cell tells
 * timerhub_cancel_sync() whose callback runs.
 */
#include <errno.h>

#include "base/cpu.h"
#include "base/futex.h"
#include "base/probe.h"
#include "base/test_point.h"
#include "hub/hub.h"

/* how often a waiter on a stopped queue looks whether the compaction is over */
#define STOPPED_NAP_NS 50000

/* handles taken at once, so that their cache misses overlap */
#define CONSUME_BATCH 32

/*
 * False: no longer pending. With `*ret_ended` the caller frees the slot. Inlining saves 12
 * instructions an event.
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
		/* once: the wall clock may be set back between two readings */
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

/* And frees the slots of ended timers. */
static void queue_retire(struct timerhub_queue *queue, unsigned taken, unsigned delivered,
                         uint64_t overruns, const uint32_t *retired, unsigned retired_count)
{
	/* Relaxed: only shown, and only consumers write. */
	if (delivered > 0)
		(void)u64_fetch_add_relaxed(&queue->counts->delivered, delivered);
	if (taken > delivered)
		(void)u64_fetch_add_relaxed(&queue->counts->passed_over, taken - delivered);
	if (retired_count > 0)
		(void)u64_fetch_add_relaxed(&queue->counts->retired, retired_count);
	if (overruns > 0)
		(void)u64_fetch_add_relaxed(&queue->counts->overruns, overruns);
	/* last: who sees a slot free sees the counts */
	if (retired_count > 0)
		arena_put_many(&queue->hub->arena, cpu_current(), retired, retired_count);
}

/*
 * How late events were taken, by one reading of the clock for the call; `*now_ns` is 0 before it:
 * later events of a long dispatch count as less late. A batch mostly has
 * one bucket, so a run of them is one addition.
 */
static void queue_count_lateness(const struct timerhub_queue *queue,
                                 const struct timerhub_event *events, unsigned count,
                                 uint64_t *now_ns)
{
	struct board_deliveries *deliveries =
		&queue->hub->board->deliveries[cpu_current() % BOARD_DELIVERIES_MAX];

	if (*now_ns == 0)
		*now_ns = clock_now_ns(&queue->hub->clock);
	for (unsigned i = 0, run; i < count; i += run) {
		unsigned bucket = board_bucket(*now_ns, events[i].expires_ns);

		for (run = 1; i + run < count; run++)
			if (board_bucket(*now_ns, events[i + run].expires_ns) != bucket)
				break;
		/* Relaxed: only shown. */
		(void)u64_fetch_add_relaxed(&deliveries->lateness[bucket], run);
	}
}

/* False: the outbox was empty. */
static bool queue_take_batch(struct timerhub_queue *queue, struct timerhub_event *events,
                             unsigned max, unsigned *count, uint64_t *now_ns)
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
	if (delivered > 0)
		queue_count_lateness(queue, &events[*count], delivered, now_ns);
	queue_retire(queue, taken, delivered, overruns, retired, retired_count);
	*count += delivered;
	return taken > 0;
}

/* Of an empty queue. False: it has an event now. */
static bool queue_clear(struct timerhub_queue *queue)
{
	/* where a fork zeroes no page, only this look keeps a child off the parent's eventfd */
	if (!hub_alive(queue->hub))
		return true;
	notifier_clear(&queue->notifier);
	return outbox_count(&queue->outbox) == 0;
}

/* The fd becomes readable if a handle is left, else unreadable. */
static void queue_leave(struct timerhub_queue *queue)
{
	uint64_t left = outbox_count(&queue->outbox);

	if (left == 0 && !queue_clear(queue))
		left = 1; /* outbox has at least one handle */
	if (left > 0)
		notifier_signal_again(&queue->notifier);
}

static unsigned queue_take(struct timerhub_queue *queue, struct timerhub_event *events,
                           unsigned max)
{
	unsigned count = 0;
	uint64_t now_ns = 0; /* not read yet */

	do {
		while (count < max && queue_take_batch(queue, events, max, &count, &now_ns)) {
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

/*
 * -EOWNERDEAD in a child forked inside the call by a signal handler. The rest of such a call works
 * on the child's copy, and what it hands to the kernel is zero there.
 */
static int queue_result(const struct timerhub_queue *queue, int result)
{
	return hub_alive(queue->hub) ? result : -EOWNERDEAD;
}

int timerhub_drain(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max)
{
	int result = queue_check(queue, events, max);

	if (result < 0 || max == 0)
		return result;
	return queue_result(queue, (int)queue_take(queue, events, max));
}

/*
 * One timerhub_dispatch(). A delivered timer may expire again meanwhile: the owner puts that behind
 * all that the call could see at the delivery, and blanks the older handle, so the call takes
 * nothing from there on.
 */
struct dispatching {
	struct timerhub_queue *queue;
	struct callback *callback; /* thread's cell, or NULL before the first event */
	uint64_t end;              /* position in the outbox from which on nothing is taken */
	uint64_t now_ns;           /* clock when the first event was found; 0: not read yet */
	unsigned count;            /* events taken so far */
	bool running;              /* true: the thread is inside a callback */
	bool cleared;              /* true: the queue was found empty, and its fd was cleared */
};

/* Without its callback. False: none to take. */
static bool dispatching_take(struct dispatching *dispatching, struct timerhub_event *event)
{
	struct timerhub_queue *queue = dispatching->queue;
	bool ended = false, delivered = false;
	unsigned taken = 0;
	uint64_t handle, tail = UINT64_MAX;
	uint32_t slot = SLOT_NONE;

	while (!delivered &&
	       outbox_take_before(&queue->outbox, dispatching->end, &handle, 1, &tail) > 0) {
		taken++;
		slot = handle_slot(handle);
		callback_consider(dispatching->callback, handle);
		delivered = deliver(queue, handle, event, &ended);
	}
	if (delivered)
		queue_count_lateness(queue, event, 1, &dispatching->now_ns);
	if (delivered && !ended) /* timer may expire again */
		dispatching->end = u64_min(dispatching->end, tail);
	queue_retire(queue, taken, delivered ? 1 : 0, delivered ? event->count - 1 : 0, &slot,
	             ended ? 1 : 0);
	return delivered;
}

/* With its callback. False: none to take. */
static bool dispatching_call(struct dispatching *dispatching)
{
	struct timerhub_event event;

	if (!dispatching->callback)
		dispatching->callback =
			callbacks_enter(&dispatching->queue->hub->callbacks, cpu_current());
	if (!dispatching_take(dispatching, &event))
		return false;
	dispatching->count++;
	if (!event.fn)
		return true;
	callback_begin(dispatching->callback, event.timer);
	dispatching->running = true;
	event.fn(&event);
	dispatching->running = false;
	callback_end(dispatching->callback);
	return true;
}

/* In a forked child the events are the parent's. */
static bool dispatching_is_over(const struct dispatching *dispatching, unsigned max)
{
	return dispatching->count >= max || !hub_alive(dispatching->queue->hub);
}

/* On return, or when an exception leaves a callback, as glibc's at a thread's end. */
static void dispatching_end(struct dispatching *dispatching)
{
	if (dispatching->running)
		callback_end(dispatching->callback);
	if (dispatching->callback)
		callbacks_leave(dispatching->callback);
	/* not in a child that the callback has forked */
	if (!dispatching->cleared && hub_alive(dispatching->queue->hub))
		queue_leave(dispatching->queue);
}

/*
 * Built with -fexceptions, so that unwinding runs the cleanup. Not inline: fewer registers for an
 * empty queue.
 */
static __attribute__((noinline)) unsigned queue_dispatch(struct timerhub_queue *queue, unsigned max)
{
	__attribute__((cleanup(dispatching_end))) struct dispatching dispatching = {
		.queue = queue,
		.end = UINT64_MAX,
	};

	/* singly: a callback may cancel the next event's timer */
	do {
		while (!dispatching_is_over(&dispatching, max) && dispatching_call(&dispatching)) {
		}
		if (dispatching_is_over(&dispatching, max) || dispatching.end != UINT64_MAX)
			break;
		dispatching.cleared = queue_clear(queue);
	} while (!dispatching.cleared);
	return dispatching.count;
}

int timerhub_dispatch(struct timerhub_queue *queue, unsigned max)
{
	int result = queue_check(queue, queue, max);

	if (result < 0 || max == 0)
		return result;
	if (outbox_count(&queue->outbox) == 0 && queue_clear(queue))
		return queue_result(queue, 0);
	result = (int)queue_dispatch(queue, max);
	return result > 0 ? result : queue_result(queue, result); /* a child's callbacks count */
}

/* ---- wait ---- */

/* 0, or why a waiter must return even if there are events. */
static int queue_verdict(const struct timerhub_queue *queue, uint32_t interrupts)
{
	/*
	 * Relaxed: the ticket carries what was set before it changed; what is set later changes it
	 * again, and futex_wait() does not block.
	 */
	if (u32_load_relaxed(&queue->closing) != 0)
		return -ESHUTDOWN;
	return u32_load_relaxed(&queue->interrupts) != interrupts ? -ECANCELED : 0;
}

/* UINT64_MAX: no limit. */
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
 * Until there may be events, or a reason to return. On a stopped queue only while the owner
 * compacts, and for STOPPED_NAP_NS: it wakes a waiter for each event put back, and nobody wakes
 * more.
 */
static void queue_block(struct timerhub_queue *queue, uint32_t interrupts, uint64_t timeout_ns)
{
	uint32_t ticket = notifier_wait_enter(&queue->notifier);

	test_point(TEST_POINT_WAIT_BEFORE_SLEEP);
	if (outbox_count(&queue->outbox) == 0 && queue_verdict(queue, interrupts) == 0 &&
	    hub_alive(queue->hub) && ticket != 0) {
		if (!queue_stopped(queue))
			futex_wait(queue->notifier.ticket, ticket, timeout_ns);
		else if (!outbox_exhausted(&queue->outbox))
			futex_wait(queue->notifier.ticket, ticket, STOPPED_NAP_NS);
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
			/* this waiter may have been woken for an event that another must take */
			if (outbox_count(&queue->outbox) > 0)
				notifier_wake(&queue->notifier, UINT32_MAX);
			return result;
		}
		count = queue_take(queue, events, max);
		if (count > 0)
			return (int)count;
		if (!hub_alive(queue->hub))
			return -EOWNERDEAD;
		test_point(TEST_POINT_WAIT_FOUND_NOTHING);
		stopped = queue_stopped(queue);
		/* after the load of `stopped`: all events from before the stop */
		if (stopped && outbox_exhausted(&queue->outbox))
			return -ESHUTDOWN;
		timeout_ns = left_ns(until_ns);
		if (timeout_ns == 0 && !stopped)
			return 0;
		queue_block(queue, interrupts, timeout_ns);
	}
}

int timerhub_wait(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max,
                  uint64_t timeout_ns)
{
	uint64_t until_ns;
	int result;

	if (!queue || max == 0)
		return -EINVAL;
	/* before it accesses the hub: a closer waits for counted threads */
	(void)u32_fetch_add_seq_cst(&queue->inside, 1);
	result = u32_load_seq_cst(&queue->closing) != 0 ? -ESHUTDOWN
	                                                : queue_check(queue, events, max);
	if (result == 0) {
		until_ns = timeout_ns == UINT64_MAX
		                   ? UINT64_MAX
		                   : u64_add_saturating(clock_monotonic_ns(), timeout_ns);
		result = queue_result(queue, queue_wait(queue, events, max, until_ns));
	}
	test_point(TEST_POINT_WAIT_HAS_RESULT);
	/* Release: at 0 the closer frees what this wait has accessed. */
	(void)u32_fetch_add_release(&queue->inside, UINT32_MAX);
	return result;
}

void timerhub_interrupt(struct timerhub_queue *queue)
{
	if (!queue || !hub_alive(queue->hub))
		return;
	(void)u32_fetch_add_seq_cst(&queue->interrupts, 1);
	test_point(TEST_POINT_INTERRUPT_HALFWAY);
	notifier_wake(&queue->notifier, UINT32_MAX);
}

void timerhub_queue_stop(struct timerhub_queue *queue)
{
	if (!queue || !hub_alive(queue->hub))
		return;
	u32_store_seq_cst(&queue->stopped, 1);
	test_point(TEST_POINT_INTERRUPT_HALFWAY);
	notifier_wake(&queue->notifier, UINT32_MAX);
}
