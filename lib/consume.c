/* SPDX-License-Identifier: MIT */
/*
 * Drain, wait, dispatch: how expiries reach their consumers. Any thread.
 *
 * A handle from the outbox is a hint; delivering is the compare-and-swap of the state word from
 * pending to free (periodic: to armed; kept: to idle). The thread that wins it delivers; cancel and
 * re-arm compete for the same word. The slot of a delivered one-shot goes straight to the free
 * list. A thread that dispatches says in a cell which timer's callback it runs, for
 * timerhub_cancel_sync(); it gives the cell back also when an exception, or the end of the thread,
 * unwinds it out of a callback.
 *
 * Labels: [armed], [life] see submit.c.
 */
#include <errno.h>
#include <limits.h>

#include "check.h"
#include "cpu.h"
#include "hub.h"
#include "probe.h"

/* How long a waiter on a stopped queue sleeps until the owner has made room in its outbox. */
#define STOPPED_NAP_NS 50000

/* Handles taken from the outbox at once, so that their memory can be fetched side by side. */
#define CONSUME_BATCH 32

/* What a delivery needs to know of the timer, read before the CAS that makes it true. */
struct delivery {
	struct timer_hot *hot;
	uint64_t word; /* pending or parked */
	uint64_t identity;
	uint64_t interval_ns; /* 0: one-shot */
	uint64_t now_ns;      /* the clock, where it decides: see deliver() */
	struct timerhub_event event;
};

/* False if the handle's timer has no expiry to deliver. */
static bool delivery_read(struct timerhub_queue *queue, uint64_t handle, struct delivery *delivery)
{
	const struct timer_cold *cold = &queue->hub->arena.cold[handle_slot(handle)];

	delivery->identity = u64_load_relaxed(&delivery->hot->identity);
	if (!timer_is(delivery->word, delivery->identity, handle) ||
	    !word_undelivered(delivery->word))
		return false;
	delivery->interval_ns = u64_load_relaxed(&cold->interval_ns);
	delivery->event = (struct timerhub_event){
		.data = u64_load_relaxed(&cold->data),
		.timer = handle,
		.expires_ns = timer_deadline_ns(delivery->word, delivery->identity),
		.count = 1,
		.fn = (timerhub_fn *)(uintptr_t)u64_load_relaxed(&cold->fn),
		.queue = queue,
	};
	return true;
}

/*
 * The word of a periodic timer has been changed from `before` to `rearmed`. False if the slot's
 * life is another by now: then the handle's was cancelled, before or after, and is not to be
 * returned. If it was before, what was hit is made what it was.
 */
static bool deliver_confirm(struct timerhub *hub, const struct delivery *delivery, uint64_t before,
                            uint64_t rearmed, bool submit)
{
	uint32_t slot = handle_slot(delivery->event.timer);
	bool hit = hub_hit(delivery->hot, delivery->event.timer);

	if (!hit && hub_undo(hub, slot, before, rearmed))
		return false;
	if (submit)
		hub_submit(hub, slot, rearmed, !word_in_inbox(before));
	return hit;
}

/*
 * Deliver a periodic timer, from pending or parked to armed for its first period that is not due.
 * The owner has it filed for a period no later, unless it is parked or the clock was set back
 * since. False if the word changed meanwhile, or was a later life's.
 */
static bool deliver_periodic(struct timerhub *hub, struct delivery *delivery)
{
	const struct timer_period *period = &hub->arena.periods[handle_slot(delivery->event.timer)];
	uint64_t base_ns = period_base_ns(period, delivery->identity);
	uint64_t next_ns = period_next_ns(base_ns, delivery->interval_ns, delivery->now_ns);
	uint64_t before = delivery->word;
	uint64_t rearmed = word_rearmed(before, ticks_from_ns(next_ns));
	bool submit = hub->clock.goes_back || word_phase(before) == TIMER_PARKED;

	if (submit)
		rearmed |= WORD_INBOX;
	delivery->event.count = period_count(base_ns, delivery->interval_ns,
	                                     delivery->event.expires_ns, delivery->now_ns);
	test_point(TEST_POINT_CONSUME_BEFORE_REARM);
	if (!u64_cas_seq_cst(&delivery->hot->word, &delivery->word, rearmed))
		return false;
	return deliver_confirm(hub, delivery, before, rearmed, submit);
}

/*
 * The word had come back while we were held up: what we took is a later life's expiry, and its
 * slot is ours. Deliver that one, if it is a one-shot of this queue, not kept.
 */
static bool deliver_later_life(struct timerhub_queue *queue, struct delivery *delivery,
                               uint32_t slot)
{
	const struct timer_cold *cold = &queue->hub->arena.cold[slot];
	uint64_t queue_slack = u64_load_relaxed(&cold->queue_slack);
	uint64_t identity = u64_load_relaxed(&delivery->hot->identity);
	uint64_t handle = handle_make(identity_generation(identity), slot);

	return queue_slack_queue(queue_slack) == queue->index && !identity_periodic(identity) &&
	       !handle_kept(handle) && delivery_read(queue, handle, delivery);
}

/* From pending to free, or if the timer is kept to idle. False if the word changed meanwhile. */
static bool deliver_one_shot(struct timerhub_queue *queue, struct delivery *delivery)
{
	uint32_t slot = handle_slot(delivery->event.timer);
	bool kept = handle_kept(delivery->event.timer);
	uint64_t before = delivery->word;
	uint64_t after = kept ? word_idle(before) : word_with_phase(before, TIMER_FREE);

	if (!u64_cas_seq_cst(&delivery->hot->word, &delivery->word, after))
		return false;
	if (hub_hit(delivery->hot, delivery->event.timer))
		return true;
	delivery->word = before;
	if (!kept && deliver_later_life(queue, delivery, slot))
		return true;
	(void)hub_undo(queue->hub, slot, before, after);
	return false; /* and the handle is found stale */
}

/* Has the clock been set back since the timer expired, so that its deadline is yet to come? */
static bool delivery_too_early(const struct timerhub *hub, const struct delivery *delivery)
{
	return hub->clock.goes_back && delivery->event.expires_ns > delivery->now_ns;
}

/*
 * From pending back to armed, with the deadline and the base that it has. False if the word changed
 * meanwhile.
 */
static bool deliver_back(struct timerhub *hub, struct delivery *delivery)
{
	uint32_t slot = handle_slot(delivery->event.timer);
	uint64_t before = delivery->word;
	uint64_t rearmed = word_rearmed(before, word_deadline(before)) | WORD_INBOX;

	if (!u64_cas_seq_cst(&delivery->hot->word, &delivery->word, rearmed))
		return false;
	if (hub_hit(delivery->hot, delivery->event.timer) || !hub_undo(hub, slot, before, rearmed))
		hub_submit(hub, slot, rearmed, !word_in_inbox(before));
	return true;
}

/*
 * Deliver the handle's timer into `event`. False if it is no longer pending. Inline in both of its
 * callers: 12 instructions an event. `*ret_ended`: the timer's life is over, its slot is the
 * caller's to free.
 *
 * Model: tests/models/word.pml.
 */
static inline __attribute__((always_inline)) bool deliver(struct timerhub_queue *queue,
                                                          uint64_t handle,
                                                          struct timerhub_event *event,
                                                          bool *ret_ended)
{
	struct timerhub *hub = queue->hub;
	struct delivery delivery = { .hot = &hub->arena.hot[handle_slot(handle)] };
	bool delivered = false;

	delivery.word = u64_load_acquire(&delivery.hot->word); /* [armed] */
	while (!delivered) {
		if (!delivery_read(queue, handle, &delivery))
			return false;
		test_point(TEST_POINT_CONSUME_BEFORE_CAS);
		/* Once, for a clock that goes back must not do so between two readings. */
		if (hub->clock.goes_back || delivery.interval_ns > 0)
			delivery.now_ns = clock_now_ns(&hub->clock);
		if (delivery_too_early(hub, &delivery)) {
			if (deliver_back(hub, &delivery))
				return false;
			continue;
		}
		if (delivery.interval_ns > 0)
			delivered = deliver_periodic(hub, &delivery);
		else
			delivered = deliver_one_shot(queue, &delivery);
	}
	*event = delivery.event;
	probe3(deliver, event->timer, event->expires_ns, event->count);
	*ret_ended = delivery.interval_ns == 0 && !handle_kept(event->timer);
	return true;
}

CPU_FETCHES void prefetch_timers(const struct timerhub *hub, const uint64_t *handles,
                                 unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		__builtin_prefetch(&hub->arena.hot[handle_slot(handles[i])], 1);
		__builtin_prefetch(&hub->arena.cold[handle_slot(handles[i])], 1);
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
		arena_put_many(&queue->hub->arena, cpu_current(), retired, retired_count);
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
static bool queue_settle(struct timerhub_queue *queue)
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

	if (left == 0 && !queue_settle(queue))
		left = 1; /* at least */
	if (left > 0)
		notifier_signal_again(&queue->notifier, left < INT_MAX ? (unsigned)left : INT_MAX);
}

static unsigned queue_take(struct timerhub_queue *queue, struct timerhub_event *events,
                           unsigned max)
{
	unsigned count = 0;

	do {
		while (count < max && queue_take_batch(queue, events, max, &count)) {
		}
	} while (count < max && !queue_settle(queue));
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
	bool settled;              /* the queue was found empty, and the fd says so */
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
	if (!dispatching->settled && hub_alive(dispatching->queue->hub))
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
		dispatching.settled =
			!dispatching_is_over(&dispatching, max) && queue_settle(queue);
	} while (!dispatching.settled && !dispatching_is_over(&dispatching, max));
	return dispatching.count;
}

int timerhub_dispatch(struct timerhub_queue *queue, unsigned max)
{
	int result = queue_check(queue, queue, max);

	if (result < 0 || max == 0)
		return result;
	return (int)queue_dispatch(queue, max);
}

/*
 * As timerhub_cancel(). If the timer was found to be over because its slot lives again, then the
 * cell of the thread that delivered it must be seen: the new life's armer knew of that delivery.
 */
static int hub_cancel_seeing_end(struct timerhub *hub, timerhub_timer timer)
{
	int result = hub_cancel(hub, timer, NULL);

	if (result < 0) /* the generation that was found, or a later one */
		(void)u64_load_acquire(&hub->arena.hot[handle_slot(timer)].identity); /* [life] */
	return result;
}

int timerhub_cancel_sync(struct timerhub *hub, timerhub_timer timer)
{
	bool inside, undecided;
	int result;

	if (!hub)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	if (handle_slot(timer) >= hub->arena.capacity)
		return -ENOENT;
	inside = callbacks_inside(&hub->callbacks, timer);
	/*
	 * A dispatcher that was still deciding what of the slot it delivers may have taken this
	 * timer by mistake and have put it back (see hub_undo()): ask again. Inside a callback of
	 * the timer, -ENOENT says that another caller has cancelled it, and may be waiting for us.
	 */
	do {
		result = hub_cancel_seeing_end(hub, timer);
		undecided = callbacks_wait(&hub->callbacks, timer, result == 0 || !inside);
	} while (undecided && result < 0);
	return result;
}

/* ---- wait ---- */

/* Why a waiter must leave, events or not: 0, or a negative errno. */
static int queue_verdict(const struct timerhub_queue *queue, uint32_t interrupts)
{
	/* Relaxed: before a waiter blocks the ticket carries both, and then it does not. */
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
 * Block until there may be events, or a reason to leave. On a stopped queue only the owner is
 * waited for, which makes room in the outbox, and that shortly: it wakes as many waiters as it puts
 * events back, and those that take them need not come again.
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
		/* The look after it, which then finds all that had expired before the stop. */
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
