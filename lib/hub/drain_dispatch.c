/* SPDX-License-Identifier: MIT */
/*
 * How consumers get events: timerhub_drain() and timerhub_dispatch(). wait_stop.c has the calls
 * that block. Any thread can call them.
 *
 * Each call takes timer handles from the queue's outbox. For each, timer_deliver() decides whether
 * the timer still has an event to deliver. The slot of a one-shot that was delivered is freed at
 * once. A thread that dispatches writes into a cell of its own whose callback it runs, because
 * timerhub_cancel_sync() waits for the end of that callback.
 *
 * deliver() gives timer_deliver() one reading of the clock for all its decisions, because the clock
 * may be set back between two readings.
 *
 * queue_retire() frees the slots of timers only after it has counted their events. Otherwise
 * timerhub_stats() could find a timer neither live nor delivered, and would count it as cancelled.
 *
 * A dispatch calls no timer's callback twice. If a timer whose event it has taken expires again,
 * the new event comes behind the position `end` in the outbox, where the dispatch stops.
 *
 * A dispatch first tries queue->cell, and searches for the thread's cell only if that is not
 * it. queue_find_cell() stores a thread's cell in queue->cell if the thread has just taken the
 * cell, or if no thread has stored one there. If it always did, threads that dispatch a queue in
 * turn would write to the queue each time. The queue of a loop keeps the loop's cell.
 */
#include <errno.h>

#include "base/cpu.h"
#include "base/probe.h"
#include "base/test_point.h"
#include "base/thread.h"
#include "hub/hub.h"
#include "queue/thread_cells.h"

/* How many handles are taken at once. Their cache misses then overlap. */
#define CONSUME_BATCH 32

/*
 * Delivers a handle's event, or returns false if it has none any more. If *ret_ended is true, the
 * caller must free the timer's slot. Inlining saves 12 instructions an event.
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
		/*
		 * timer_deliver() needs the time only if the clock can be set back, or if the timer
		 * is periodic.
		 */
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

/* Prefetches the memory of the timers that are about to be delivered. */
CPU_FETCHES void prefetch_timers(const struct timerhub *hub, const uint64_t *handles,
                                 unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		__builtin_prefetch(&hub->arena.timers.pairs[handle_slot(handles[i])], 1);
		__builtin_prefetch(&hub->arena.timers.cold[handle_slot(handles[i])], 1);
	}
}

/* Counts the events that were delivered, and frees the slots of timers that have ended. */
static void queue_retire(struct timerhub_queue *queue, unsigned taken, unsigned delivered,
                         uint64_t overruns, const uint32_t *retired, unsigned retired_count)
{
	/* Relaxed is enough for the four counters, because they are only shown in statistics. */
	if (delivered > 0)
		(void)u64_fetch_add_relaxed(&queue->counts->delivered, delivered);
	if (taken > delivered)
		(void)u64_fetch_add_relaxed(&queue->counts->passed_over, taken - delivered);
	if (retired_count > 0)
		(void)u64_fetch_add_relaxed(&queue->counts->retired, retired_count);
	if (overruns > 0)
		(void)u64_fetch_add_relaxed(&queue->counts->overruns, overruns);
	/*
	 * Free the slots after counting. Otherwise timerhub_stats() could find a timer neither live
	 * nor delivered, and would count it as cancelled.
	 */
	if (retired_count > 0)
		arena_put_many(&queue->hub->arena, cpu_current(), retired, retired_count);
}

/*
 * Counts how late events were taken. A dispatch reads the clock only once, for its first events, so
 * the others seem a little less late than they are.
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

		/*
		 * Count the events that follow in the same bucket of the histogram, so that one
		 * addition is enough for all of them.
		 */
		for (run = 1; i + run < count; run++)
			if (board_bucket(*now_ns, events[i + run].expires_ns) != bucket)
				break;
		/* Relaxed, because this number is only shown in statistics. */
		(void)u64_fetch_add_relaxed(&deliveries->lateness[bucket], run);
	}
}

/*
 * Takes up to CONSUME_BATCH handles from the outbox, and appends their events to `events`, which
 * has *count of them. The handle of a cancelled or re-armed timer has no event. Returns false if
 * the outbox was empty.
 */
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
	if (delivered > 0) {
		queue_count_lateness(queue, &events[*count], delivered, now_ns);
		queue_note_taken(queue, *now_ns);
	}
	queue_retire(queue, taken, delivered, overruns, retired, retired_count);
	*count += delivered;
	return taken > 0;
}

/*
 * Makes the queue's eventfd unreadable, because the queue was found empty. Returns false if the
 * queue has got an event meanwhile.
 */
static bool queue_clear(struct timerhub_queue *queue)
{
	/* A forked child shares the eventfd with its parent, and must not clear it. */
	if (!hub_alive(queue->hub))
		return true;
	notifier_clear(&queue->notifier);
	return outbox_count(&queue->outbox) == 0;
}

/* Leaves the eventfd readable if the queue has more events, and otherwise unreadable. */
static void queue_leave(struct timerhub_queue *queue)
{
	uint64_t left = outbox_count(&queue->outbox);

	if (left == 0 && !queue_clear(queue))
		left = 1; /* at least one event has come meanwhile */
	if (left > 0)
		notifier_signal_again(&queue->notifier);
}

unsigned queue_take(struct timerhub_queue *queue, struct timerhub_event *events, unsigned max)
{
	unsigned count = 0;
	uint64_t now_ns = 0; /* the clock was not read yet */

	do {
		while (count < max && queue_take_batch(queue, events, max, &count, &now_ns)) {
		}
	} while (count < max && !queue_clear(queue));
	if (count == max)
		queue_leave(queue);
	return count;
}

int queue_check(const struct timerhub_queue *queue, const void *events, unsigned max)
{
	if (!queue || (!events && max > 0) || max > INT32_MAX)
		return -EINVAL;
	return hub_alive(queue->hub) ? 0 : -EOWNERDEAD;
}

int queue_result(const struct timerhub_queue *queue, int result)
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

/* The state of one call of timerhub_dispatch(). */
struct dispatching {
	struct timerhub_queue *queue;
	struct callback *callback; /* where timerhub_cancel_sync() looks what this thread runs */
	uint64_t end;              /* position in the outbox at which the call stops */
	uint64_t now_ns; /* when the first event was found; 0: the clock was not read yet */
	unsigned count;  /* how many events were taken so far */
	bool cleared;    /* the queue was found empty, and its eventfd made unreadable */
};

/*
 * The state of a dispatch that timerhub-top(1) can watch. The thread reads the clock after each
 * callback, to find out how long it took.
 */
struct watching {
	struct dispatching dispatching;
	struct board_cell *cell; /* the cell of the loop or of the thread */
	uint64_t read_ns;        /* when the clock was last read */
};

/* Takes the next event, but does not call its callback. Returns false if there is none. */
static inline __attribute__((always_inline)) bool dispatching_take(struct dispatching *dispatching,
                                                                   struct timerhub_event *event)
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
	if (delivered && !ended) /* the timer's next event comes behind the tail */
		dispatching->end = u64_min(dispatching->end, tail);
	queue_retire(queue, taken, delivered ? 1 : 0, delivered ? event->count - 1 : 0, &slot,
	             ended ? 1 : 0);
	return delivered;
}

/* Records a callback that took too long, for the hub, the loop or both. */
static __attribute__((noinline, cold)) void queue_count_slow(const struct timerhub_queue *queue,
                                                             timerhub_fn *fn, uint64_t took_ns,
                                                             uint64_t now_ns)
{
	struct board *boards[] = { queue->hub_board, queue->loop_board };

	if (took_ns > now_ns) /* the wall clock was set back while it ran */
		return;
	for (unsigned i = 0; i < 2; i++)
		if (boards[i] && took_ns >= boards[i]->header.slow_ns)
			slow_table_add(&boards[i]->slow, (uint64_t)(uintptr_t)fn, took_ns, now_ns);
}

/*
 * Takes the next event and calls its callback. Returns false if there is none. `watching` is NULL
 * if nobody can observe the hub or the loop.
 */
static inline __attribute__((always_inline)) bool dispatching_call(struct dispatching *dispatching,
                                                                   struct watching *watching)
{
	struct timerhub_queue *queue = dispatching->queue;
	struct timerhub_event event;
	timerhub_timer timer;
	unsigned count;
	timerhub_fn *fn;

	if (!dispatching_take(dispatching, &event))
		return false;
	count = ++dispatching->count;
	timer = event.timer;
	fn = event.fn;
	if (!fn)
		return true;
	callback_begin(dispatching->callback, timer);
	if (watching)
		cell_begin(cell_of(&watching->cell), (uint64_t)(uintptr_t)fn, timer, count);
	probe2(callback_begin, event.fn, event.timer);
	fn(&event);
	probe2(callback_end, event.fn, event.timer);
	if (watching) {
		uint64_t now_ns = clock_now_ns(&queue->hub->clock);
		uint64_t took_ns = now_ns - watching->read_ns;

		cell_end(cell_of(&watching->cell), now_ns);
		watching->read_ns = now_ns;
		if (took_ns >= queue->slow_ns)
			queue_count_slow(queue, event.fn, took_ns, now_ns);
	}
	callback_end(dispatching->callback);
	return true;
}

/*
 * Returns true if a dispatch must end, because it has taken `max` events, or because a callback has
 * forked and this is the child.
 */
static bool dispatching_is_over(const struct dispatching *dispatching, unsigned max)
{
	return dispatching->count >= max || !hub_alive(dispatching->queue->hub);
}

/*
 * Ends a dispatch. The attribute cleanup makes sure that this also runs if a callback throws a C++
 * exception, or if its thread ends in it, for example by pthread_exit(3).
 */
static inline __attribute__((always_inline)) void dispatching_end(struct dispatching *dispatching)
{
	callbacks_leave(dispatching->callback);
	/*
	 * If a callback has forked and this is the child (hub_alive() is false), leave the eventfd
	 * alone, because parent and child share it.
	 */
	if (!dispatching->cleared && hub_alive(dispatching->queue->hub))
		queue_leave(dispatching->queue);
}

/*
 * Dispatches a queue, and returns how many events it took. It is inlined, so that the compiler
 * leaves out the code for `watching` in a caller that passes NULL.
 */
static inline __attribute__((always_inline)) unsigned dispatching_run(
	struct dispatching *dispatching, struct watching *watching, unsigned max)
{
	/* Take events one by one, because a callback may cancel the timer of the next event. */
	do {
		while (!dispatching_is_over(dispatching, max) &&
		       dispatching_call(dispatching, watching)) {
		}
		if (dispatching_is_over(dispatching, max) || dispatching->end != UINT64_MAX)
			break;
		dispatching->cleared = queue_clear(dispatching->queue);
	} while (!dispatching->cleared);
	return dispatching->count;
}

/*
 * Dispatches a queue that is not empty. It is kept out of line, because otherwise
 * timerhub_dispatch() would save registers even for an empty queue.
 */
static __attribute__((noinline)) unsigned queue_dispatch(struct timerhub_queue *queue, unsigned max)
{
	__attribute__((cleanup(dispatching_end))) struct dispatching dispatching = {
		.queue = queue,
		.callback = callbacks_enter(&queue->hub->callbacks, cpu_current()),
		.end = UINT64_MAX,
	};

	return dispatching_run(&dispatching, NULL, max);
}

/*
 * Ends a dispatch during which timerhub-top(1) could see what the dispatching thread was doing.
 * Like dispatching_end(), it also runs if a callback throws an exception.
 */
static void watching_end(struct watching *watching)
{
	cell_leave(watching->cell);
	dispatching_end(&watching->dispatching);
}

/*
 * The cell of a thread that dispatches a queue inside a callback, and which callback that is. When
 * the dispatch ends, the cell must show that callback again.
 */
struct suspended {
	struct board_cell *cell;
	struct cell_reading before;
};

/*
 * Runs when a dispatch inside a callback ends. Shows timerhub-top(1) that the thread is running
 * that callback again.
 */
static void suspended_resume(struct suspended *suspended)
{
	struct board_cell *cell = suspended->cell;

	u64_store_release(&cell->queue, suspended->before.queue);
	cell_enter(cell, cell_state(cell), suspended->before.since_ns);
	cell_begin(cell, suspended->before.fn, suspended->before.timer, 0);
}

static unsigned queue_dispatch_watched(struct timerhub_queue *queue, unsigned max);

/*
 * Dispatches a queue inside a callback of another dispatch. `cell` shows timerhub-top(1) what the
 * thread is doing.
 */
static __attribute__((noinline, cold)) unsigned queue_dispatch_inside(struct timerhub_queue *queue,
                                                                      unsigned max,
                                                                      struct board_cell *cell)
{
	__attribute__((cleanup(suspended_resume))) struct suspended suspended = { .cell = cell };

	(void)cell_read(cell, &suspended.before);
	cell_leave(cell);
	return queue_dispatch_watched(queue, max);
}

/*
 * Returns the cell in which the calling thread shows what it is doing. A thread without a cell
 * takes one. Returns NULL if none can be taken.
 */
static __attribute__((noinline)) struct board_cell *queue_find_cell(struct timerhub_queue *queue,
                                                                    uint32_t clock, uint64_t now_ns)
{
	const struct board_cell *last = ptr_load_relaxed(&queue->cell);
	struct board_cell *cell;
	bool taken = false;

	if (!queue->hub_board)
		return NULL;
	cell = thread_cells_find(queue->hub_board, clock, now_ns, &taken);
	if (cell && !queue->loop_board && (taken || u32_load_relaxed(&last->clock) == 0))
		queue_note_cell(queue, cell);
	return cell;
}

/*
 * Dispatches a queue, and shows what the calling thread is doing, in shared memory that
 * timerhub-top(1) reads.
 */
static __attribute__((noinline)) unsigned queue_dispatch_watched(struct timerhub_queue *queue,
                                                                 unsigned max)
{
	uint64_t now_ns = clock_now_ns(&queue->hub->clock);
	uint32_t clock = thread_clock();
	/*
	 * Relaxed is enough, because the check of cell->clock below tells whether this is the
	 * calling thread's cell.
	 */
	struct board_cell *cell = ptr_load_relaxed(&queue->cell);
	uint64_t state;

	if (__builtin_expect(u32_load_relaxed(&cell->clock) != clock, 0)) {
		cell = queue_find_cell(queue, clock, now_ns);
		if (!cell) /* no cell is free, so nobody can see what this thread does */
			return queue_dispatch(queue, max);
	}
	state = cell_state(cell);
	if ((state & CELL_WHERE_MASK) != TIMERHUB_AWAY)
		return queue_dispatch_inside(queue, max, cell);
	u64_store_release(&cell->queue, (uint64_t)(uintptr_t)queue);
	queue_note_taken(queue, now_ns);
	cell_enter(cell, state, now_ns);
	{
		__attribute__((cleanup(watching_end))) struct watching watching = {
			.dispatching = {
				.queue = queue,
				.callback = callbacks_enter(&queue->hub->callbacks, cpu_current()),
				.end = UINT64_MAX,
				.now_ns = now_ns,
			},
			.cell = cell,
			.read_ns = now_ns,
		};

		return dispatching_run(&watching.dispatching, &watching, max);
	}
}

int timerhub_dispatch(struct timerhub_queue *queue, unsigned max)
{
	int result = queue_check(queue, queue, max);

	if (result < 0 || max == 0)
		return result;
	if (outbox_count(&queue->outbox) == 0 && queue_clear(queue))
		return queue_result(queue, 0);
	result = (int)(queue->slow_ns == 0 ? queue_dispatch(queue, max)
	                                   : queue_dispatch_watched(queue, max));
	/*
	 * In a child that a callback has forked, timerhub_dispatch() still returns how many events
	 * it has taken.
	 */
	return result > 0 ? result : queue_result(queue, result);
}
