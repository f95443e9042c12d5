/* SPDX-License-Identifier: MIT */
/*
 * The calls that arm, re-arm and cancel timers, and that look at them. Each checks its arguments,
 * lets timer.c decide what happens to the timer, and does the work that is left. All except
 * timerhub_cancel_sync() take no lock and can be made in a signal handler.
 *
 * The slot of a cancelled timer is free at once, and a new timer may get it while the old one's
 * entry is still in the schedule or in the inbox. To the owner that looks like a timer that has
 * moved.
 *
 * hub_look() checks by a CAS that the timer is still the same, because a plain load could run
 * before the loads in timer_read(). If another queue has got the index of the timer's queue, the
 * timer has ended, and the CAS fails.
 *
 * timerhub_cancel_sync() may be called by two callbacks of one timer that run at once, on two
 * threads. Only one of them cancels the timer, and waits until the other has returned. The other
 * does not wait for this one, because otherwise neither would ever return.
 */
#include <errno.h>

#include "base/cpu.h"
#include "base/options.h"
#include "base/test_point.h"
#include "hub/hub.h"

/* How many timers ahead timerhub_rearm_many() prefetches, so that several cache misses overlap. */
#define SUBMIT_AHEAD 16

/*
 * Prefetches a timer's deadline and state, which the caller is about to change. An invalid handle
 * does no harm, because a prefetch cannot fault.
 */
CPU_FETCHES void hub_fetch(const struct timerhub *hub, timerhub_timer timer)
{
	__builtin_prefetch(&hub->arena.timers.pairs[handle_slot(timer)], 1);
}

/* ---- arm ---- */

/*
 * Computes a deadline from a delay, or from a point in time if flags has TIMERHUB_ABSOLUTE.
 * UINT64_MAX (never) stays UINT64_MAX. Returns 0 or -ERANGE.
 */
static int deadline_from(uint64_t expires_ns, uint32_t flags, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t base_ns = (flags & TIMERHUB_ABSOLUTE) != 0 ? 0 : now_ns;

	if (expires_ns != UINT64_MAX) {
		if (base_ns > TIMER_DEADLINE_MAX_NS || expires_ns > TIMER_DEADLINE_MAX_NS - base_ns)
			return -ERANGE;
		expires_ns += base_ns;
	}
	*ret_ns = expires_ns;
	return 0;
}

/*
 * Returns the present time if the program has given a delay, because the delay begins now. For a
 * point in time (TIMERHUB_ABSOLUTE), returns 0 without reading the clock.
 */
static uint64_t now_if_relative(const struct timerhub *hub, uint32_t flags)
{
	return (flags & TIMERHUB_ABSOLUTE) != 0 ? 0 : clock_now_ns(&hub->clock);
}

/*
 * Checks everything in a spec except its times, which arming_from() checks. Returns 0, -EINVAL, or
 * -E2BIG.
 */
static int spec_check(const struct timerhub_spec *spec)
{
	if (spec->size < sizeof(*spec) ||
	    (spec->flags & ~(TIMERHUB_ABSOLUTE | TIMERHUB_KEEP)) != 0 ||
	    ((spec->flags & TIMERHUB_KEEP) != 0 && spec->interval_ns > 0))
		return -EINVAL;
	return options_check_rest(spec, spec->size, sizeof(*spec));
}

/*
 * Converts a spec, which spec_check() has accepted, to the arguments of timer_arm(), and computes
 * the deadline. Returns 0, or -ERANGE if the deadline or the interval is too long.
 */
static int arming_from(const struct timerhub_queue *queue, const struct timerhub_spec *spec,
                       uint64_t now_ns, struct timer_arming *ret_arming)
{
	if (spec->interval_ns > TIMER_DEADLINE_MAX_NS)
		return -ERANGE;
	*ret_arming = (struct timer_arming){
		.queue = queue->index,
		.interval_ns = spec->interval_ns,
		.slack_ns = spec->slack_ns,
		.data = spec->data,
		.fn = (uint64_t)(uintptr_t)spec->fn,
		.kept = (spec->flags & TIMERHUB_KEEP) != 0,
	};
	return deadline_from(spec->expires_ns, spec->flags, now_ns, &ret_arming->deadline_ns);
}

/* Arms a timer in a slot that the calling thread has taken from the free slots. */
static inline void hub_arm_slot(struct timerhub *hub, uint32_t slot,
                                const struct timer_arming *arming, timerhub_timer *ret_timer)
{
	struct pair pair;
	struct timer_outcome outcome =
		timer_arm(&hub->arena.timers, slot, arming, ret_timer, &pair);

	if (outcome.left != TIMER_NOTHING)
		hub_submit(hub, slot, outcome.left, pair);
}

/*
 * Takes a free slot and arms a timer in it. Returns 0, or -EAGAIN if no slot is free because
 * timers_max timers are live.
 */
static inline __attribute__((always_inline)) int hub_arm(struct timerhub_queue *queue,
                                                         const struct timer_arming *arming,
                                                         timerhub_timer *ret_timer)
{
	uint32_t slot = arena_take(&queue->hub->arena, cpu_current());

	if (slot == SLOT_NONE)
		return -EAGAIN;
	hub_arm_slot(queue->hub, slot, arming, ret_timer);
	return 0;
}

int timerhub_arm(struct timerhub_queue *queue, const struct timerhub_spec *spec,
                 timerhub_timer *ret_timer)
{
	struct timer_arming arming;
	int result;

	if (!queue || !spec)
		return -EINVAL;
	if (!hub_alive(queue->hub))
		return -EOWNERDEAD;
	result = spec_check(spec);
	if (result == 0)
		result =
			arming_from(queue, spec, now_if_relative(queue->hub, spec->flags), &arming);
	return result < 0 ? result : hub_arm(queue, &arming, ret_timer);
}

static int hub_arm_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                         timerhub_fn *fn, timerhub_timer *ret_timer)
{
	struct timer_arming arming = { .data = data, .fn = (uint64_t)(uintptr_t)fn };
	int result;

	if (!queue)
		return -EINVAL;
	if (!hub_alive(queue->hub))
		return -EOWNERDEAD;
	arming.queue = queue->index;
	result = deadline_from(delay_ns, 0, clock_now_ns(&queue->hub->clock), &arming.deadline_ns);
	return result < 0 ? result : hub_arm(queue, &arming, ret_timer);
}

int timerhub_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data,
                   timerhub_timer *ret_timer)
{
	return hub_arm_after(queue, delay_ns, data, NULL, ret_timer);
}

int timerhub_call(struct timerhub_queue *queue, uint64_t delay_ns, timerhub_fn *fn, void *ptr,
                  timerhub_timer *ret_timer)
{
	return fn ? hub_arm_after(queue, delay_ns, (uint64_t)(uintptr_t)ptr, fn, ret_timer)
	          : -EINVAL;
}

static const struct timerhub_spec *spec_at(const struct timerhub_spec *specs, unsigned index)
{
	return (const struct timerhub_spec *)(const void *)((const char *)specs +
	                                                    (size_t)specs->size * index);
}

static int specs_check(const struct timerhub_queue *queue, const struct timerhub_spec *specs,
                       unsigned count, uint64_t now_ns)
{
	if (count > 1 && specs->size % _Alignof(struct timerhub_spec) != 0)
		return -EINVAL;
	for (unsigned i = 0; i < count; i++) {
		const struct timerhub_spec *spec = spec_at(specs, i);
		struct timer_arming arming;
		/* Check the size first, because spec_check() reads that many bytes. */
		int result = spec->size == specs->size ? spec_check(spec) : -EINVAL;

		if (result == 0)
			result = arming_from(queue, spec, now_ns, &arming);
		if (result < 0)
			return result;
	}
	return 0;
}

int timerhub_arm_many(struct timerhub_queue *queue, const struct timerhub_spec *specs,
                      unsigned count, timerhub_timer *ret_timers)
{
	struct timerhub *hub;
	uint64_t now_ns;
	unsigned taken;
	uint32_t next;
	int result;

	if (!queue || (!specs && count > 0) || count > INT32_MAX)
		return -EINVAL;
	hub = queue->hub;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	if (count == 0)
		return 0;
	now_ns = clock_now_ns(&hub->clock);
	result = specs_check(queue, specs, count, now_ns);
	if (result < 0)
		return result;
	next = arena_take_list(&hub->arena, cpu_current(), count, &taken);
	if (next == SLOT_NONE) {
		/* Relaxed, because this number is only shown in statistics. */
		(void)u64_fetch_add_relaxed(&hub->board->callers.untaken, taken);
		return -EAGAIN;
	}
	for (unsigned i = 0; i < count; i++) {
		struct timer_arming arming = { 0 };
		uint32_t slot = next;

		if (i + 1 < count)
			next = arena_next(&hub->arena, slot);
		/*
		 * arming_from() cannot fail here, because specs_check() has called it with the same
		 * arguments.
		 */
		(void)arming_from(queue, spec_at(specs, i), now_ns, &arming);
		hub_arm_slot(hub, slot, &arming, ret_timers ? &ret_timers[i] : NULL);
	}
	return (int)count;
}

/* ---- re-arm ---- */

/* Checks the arguments of a re-arm and computes the new deadline. Returns 0 or a negative errno. */
static inline __attribute__((always_inline)) int rearm_check(const struct timerhub *hub,
                                                             uint64_t expires_ns, uint32_t flags,
                                                             uint64_t *ret_ns)
{
	if (!hub || (flags & ~TIMERHUB_ABSOLUTE) != 0)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	return deadline_from(expires_ns, flags, now_if_relative(hub, flags), ret_ns);
}

/* Re-arms a timer in any state, after checking all arguments. */
static __attribute__((noinline)) int hub_rearm(struct timerhub *hub, timerhub_timer timer,
                                               uint64_t expires_ns, uint32_t flags)
{
	struct timer_outcome outcome;
	struct pair pair;
	uint64_t deadline_ns;
	int result = rearm_check(hub, expires_ns, flags, &deadline_ns);

	if (result < 0)
		return result;
	if (handle_slot(timer) >= hub->arena.capacity)
		return -ENOENT;
	outcome = timer_rearm(&hub->arena.timers, timer, deadline_ns, &pair);
	if (outcome.left != TIMER_NOTHING)
		hub_submit(hub, handle_slot(timer), outcome.left, pair);
	return outcome.result;
}

/*
 * Re-arms a timer. In the frequent case, a later deadline for an armed timer, it calls no function,
 * because saving registers on the stack would delay the compare-and-swap.
 */
static inline __attribute__((always_inline)) int hub_move(struct timerhub *hub,
                                                          const struct hub_living *living,
                                                          timerhub_timer timer,
                                                          uint64_t deadline_ns)
{
	/*
	 * In a forked child the capacity is 0, so this test fails, and hub_rearm() returns
	 * -EOWNERDEAD.
	 */
	if (__builtin_expect(handle_slot(timer) < living->capacity, 1) &&
	    __builtin_expect(
		    timer_move(&hub->arena.timers.pairs[handle_slot(timer)], timer, deadline_ns),
		    1))
		return 0;
	return hub_rearm(hub, timer, deadline_ns, TIMERHUB_ABSOLUTE);
}

int timerhub_rearm(struct timerhub *hub, timerhub_timer timer, uint64_t expires_ns, uint32_t flags)
{
	if (!hub || flags != TIMERHUB_ABSOLUTE)
		return hub_rearm(hub, timer, expires_ns, flags);
	if (__builtin_expect(expires_ns > TIMER_DEADLINE_MAX_NS, 0))
		return hub_rearm(hub, timer, expires_ns, TIMERHUB_ABSOLUTE);
	return hub_move(hub, hub->living, timer, expires_ns);
}

int timerhub_rearm_many(struct timerhub *hub, const timerhub_timer *timers, unsigned count,
                        uint64_t expires_ns, uint32_t flags)
{
	uint64_t deadline_ns;
	int live = 0;
	int result = (!timers && count > 0) || count > INT32_MAX
	                     ? -EINVAL
	                     : rearm_check(hub, expires_ns, flags, &deadline_ns);

	if (result < 0)
		return result;
	for (unsigned i = 0; i < count && i < SUBMIT_AHEAD; i++)
		hub_fetch(hub, timers[i]);
	for (unsigned i = 0; i < count; i++) {
		if (i + SUBMIT_AHEAD < count)
			hub_fetch(hub, timers[i + SUBMIT_AHEAD]);
		live += hub_move(hub, hub->living, timers[i], deadline_ns) >= 0;
	}
	return live;
}

/* ---- cancel ---- */

int hub_cancel(struct timerhub *hub, timerhub_timer timer, uint32_t queue)
{
	int result = timer_cancel(&hub->arena.timers, timer, queue);

	if (result == 0)
		arena_put(&hub->arena, cpu_current(), handle_slot(timer));
	return result;
}

/*
 * Handles the rare cases of a cancel: the handle's slot number is invalid, or this is a forked
 * child.
 */
static __attribute__((noinline)) int hub_cancel_checked(struct timerhub *hub, timerhub_timer timer)
{
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	return handle_slot(timer) < hub->arena.capacity ? hub_cancel(hub, timer, TIMER_ANY_QUEUE)
	                                                : -ENOENT;
}

int timerhub_cancel(struct timerhub *hub, timerhub_timer timer)
{
	if (!hub)
		return -EINVAL;
	/*
	 * In a forked child the capacity is 0, so this test fails, and hub_cancel_checked() returns
	 * -EOWNERDEAD.
	 */
	return handle_slot(timer) < hub->living->capacity ? hub_cancel(hub, timer, TIMER_ANY_QUEUE)
	                                                  : hub_cancel_checked(hub, timer);
}

/* How many slots timerhub_cancel_many() frees in one step. */
#define CANCEL_BATCH 32

/*
 * Cancels the first CANCEL_BATCH of the timers, or all if there are fewer. Returns how many of them
 * were live.
 */
static int hub_cancel_some(struct timerhub *hub, const timerhub_timer *timers, unsigned count)
{
	uint32_t dead[CANCEL_BATCH];
	unsigned cancelled = 0;

	count = count < CANCEL_BATCH ? count : CANCEL_BATCH;
	for (unsigned i = 0; i < count; i++) {
		hub_fetch(hub, timers[i]);
		timer_fetch_record(&hub->arena.timers, handle_slot(timers[i]));
	}
	for (unsigned i = 0; i < count; i++)
		if (handle_slot(timers[i]) < hub->arena.capacity &&
		    timer_cancel(&hub->arena.timers, timers[i], TIMER_ANY_QUEUE) == 0)
			dead[cancelled++] = handle_slot(timers[i]);
	if (cancelled > 0)
		arena_put_many(&hub->arena, cpu_current(), dead, cancelled);
	return (int)cancelled;
}

int timerhub_cancel_many(struct timerhub *hub, const timerhub_timer *timers, unsigned count)
{
	int cancelled = 0;

	if (!hub || (!timers && count > 0) || count > INT32_MAX)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	for (unsigned i = 0; i < count; i += CANCEL_BATCH)
		cancelled += hub_cancel_some(hub, timers + i, count - i);
	return cancelled;
}

int timerhub_cancel_sync(struct timerhub *hub, timerhub_timer timer)
{
	bool inside;
	int result;

	if (!hub)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	if (handle_slot(timer) >= hub->arena.capacity)
		return -ENOENT;
	inside = callbacks_inside(&hub->callbacks, timer);
	/*
	 * Cancel before the wait, so that callbacks_wait() finds each thread that has taken the
	 * timer's event (running_callbacks.c).
	 */
	result = hub_cancel(hub, timer, TIMER_ANY_QUEUE);
	/*
	 * Wait for callbacks of the timer on other threads. But do not wait if this thread is
	 * inside such a callback, too, and this call has not cancelled the timer: another call may
	 * have done so, and may wait for this thread.
	 */
	callbacks_wait(&hub->callbacks, timer, result == 0 || !inside);
	return result;
}

/* ---- ask ---- */

int timerhub_remaining(struct timerhub *hub, timerhub_timer timer, uint64_t *ret_ns)
{
	uint64_t deadline_ns, now_ns;

	if (!hub || !ret_ns)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	if (handle_slot(timer) >= hub->arena.capacity ||
	    !timer_deadline(&hub->arena.timers, timer, &deadline_ns))
		return -ENOENT;
	now_ns = clock_now_ns(&hub->clock);
	/*
	 * Even a timer that has expired can have time left, if the wall clock was set back
	 * meanwhile.
	 */
	if (deadline_ns == UINT64_MAX)
		*ret_ns = UINT64_MAX;
	else
		*ret_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	return 0;
}

/*
 * Describes the timer in a slot for timerhub_each(). Returns false if the slot is free, its queue
 * is being closed, or a loop has armed the timer for itself.
 */
static bool hub_look(const struct timerhub *hub, uint32_t slot, struct timerhub_event *event,
                     uint64_t *ret_interval_ns)
{
	const struct timers *timers = &hub->arena.timers;
	struct timer_view view;
	uint32_t queue;

	view.pair = timer_guess(&timers->pairs[slot]);
	do {
		if (!timer_read(timers, slot, &view, &queue))
			return false;
		/*
		 * Relaxed is enough: the queue was opened before the timer was armed, and
		 * timer_guess() has loaded the timer with acquire.
		 */
		event->queue = ptr_load_relaxed(&hub->queues[queue]);
		/*
		 * The CAS stores the old value again. It only checks that the timer has not changed
		 * since timer_read().
		 */
	} while (!timer_change(&timers->pairs[slot], &view.pair, view.pair));
	event->data = view.data;
	event->timer = view.handle;
	event->expires_ns = view.pair.deadline_ns;
	event->count = state_undelivered(view.pair.state) ? 1 : 0;
	event->fn = (timerhub_fn *)(uintptr_t)view.fn;
	*ret_interval_ns = view.interval_ns;
	return event->queue && event->queue != QUEUE_GONE && event->fn != queue_alarm;
}

int timerhub_each(struct timerhub *hub, timerhub_each_fn *fn, void *context)
{
	struct timerhub_event timer = { .reserved = { 0 } };
	uint32_t slot;
	int result = 0;

	if (!hub || !fn)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	slot = arena_next_used(&hub->arena, 0);
	for (; slot != SLOT_NONE && result == 0; slot = arena_next_used(&hub->arena, slot + 1)) {
		uint64_t interval_ns;

		if (hub_look(hub, slot, &timer, &interval_ns))
			result = fn(&timer, interval_ns, context);
	}
	return result;
}
