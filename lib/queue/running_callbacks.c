/* SPDX-License-Identifier: MIT */
/*
 * Lets a thread that cancels a timer wait until the timer's callback runs nowhere else.
 *
 * A thread that dispatches stores a timer's handle in its cell, and only then delivers the timer,
 * by a compare-and-swap of the timer's pair. The swap's release publishes what is in the cell, and
 * later changes of the pair keep it visible because they are read-modify-writes, too. So a
 * canceller that has seen the pair after the delivery finds the handle in the cell.
 *
 * It is tested by tests/service/test_cancel_sync.c.
 *
 * Labels: [callback-cell] callback_free → callback_claim: the cell is free again.
 *         [callback-end] callback_end → callback_wait: what the callback did.
 *         [callback-ended] callback_wake → callback_wait: `now` has changed.
 */
#include "queue/running_callbacks.h"

#include "base/futex.h"
#include "base/test_point.h"

/* How long to sleep where nobody may wake the sleeper. */
#define CALLBACK_NAP_NS 50000

int callbacks_open(struct callbacks *callbacks)
{
	int result = memory_reserve(&callbacks->memory, CALLBACKS_MAX * sizeof(struct callback));

	callbacks->cells = callbacks->memory.base;
	return result;
}

void callbacks_close(struct callbacks *callbacks)
{
	memory_release(&callbacks->memory);
}

/* ---- the dispatching thread ---- */

struct callback *callbacks_enter_elsewhere(struct callbacks *callbacks, unsigned cpu)
{
	/*
	 * Each CPU begins at its own low index: low because a canceller searches all cells below
	 * `end`, and its own so that CPUs do not compete for a cell.
	 */
	for (uint32_t i = cpu % CALLBACKS_MAX;; i = (i + 1) % CALLBACKS_MAX) {
		struct callback *callback = &callbacks->cells[i];

		if (callback_claim(callbacks, i))
			return callback;
		/* All cells are taken, so sleep a little, and begin again. */
		if ((i + 1) % CALLBACKS_MAX == cpu % CALLBACKS_MAX)
			futex_wait(&callback->ended, u32_load_relaxed(&callback->ended),
			           CALLBACK_NAP_NS);
	}
}

void callback_leave(struct callback *callback)
{
	callback_end(callback);
	callback_free(callback);
}

void callback_consider(struct callback *callback, uint64_t handle)
{
	/* [callback-end] A canceller that sees this handle may free what the last callback used. */
	u64_store_release(&callback->now, handle << NOW_SHIFT);
}

void callback_begin(struct callback *callback, uint64_t handle)
{
	/* [callback-end] A canceller that sees this handle may free what the last callback used. */
	u64_store_release(&callback->now, handle << NOW_SHIFT | NOW_RUNNING);
}

void callback_wake(struct callback *callback)
{
	/* [callback-ended] A canceller that sees the new count finds `now` changed. */
	(void)u32_fetch_add_release(&callback->ended, 1);
	futex_wake(&callback->ended, UINT32_MAX);
}

/* ---- the canceller ---- */

/*
 * Tells whether a cell's `now` is about the timer with this handle. The top two bits of the
 * handle's generation do not fit into `now`, which does no harm, because two timers that differ
 * only in these are never in cells at the same time.
 */
static bool now_is_of(uint64_t now, uint64_t handle)
{
	return now != 0 && (now | NOW_FLAGS) == (handle << NOW_SHIFT | NOW_FLAGS);
}

/*
 * Tells whether the calling thread has this cell. It is also true of a cell that an ended thread
 * with the same number has never given back, because it ended without unwinding its stack. No
 * callback runs in such a cell.
 */
static bool callback_is_ours(const struct callback *callback)
{
	/* Relaxed: only this thread stores its number, and it sees its own stores. */
	return u64_load_relaxed(&callback->thread) == thread_self();
}

bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle)
{
	/* Relaxed: the calling thread's own cells are below, because it has raised `end` itself. */
	uint64_t end = u64_load_relaxed(&callbacks->end);

	for (uint64_t i = 0; i < end; i++) {
		const struct callback *callback = &callbacks->cells[i];
		/* Relaxed: only the calling thread's own stores matter. */
		uint64_t now = u64_load_relaxed(&callback->now);

		if (callback_is_ours(callback) && now_is_of(now, handle) &&
		    (now & NOW_RUNNING) != 0)
			return true;
	}
	return false;
}

/*
 * Waits until the cell's thread has delivered the timer, or has found that it cannot, and, if
 * `running`, until the callback has ended.
 */
static void callback_wait(struct callback *callback, uint64_t handle, bool running)
{
	for (;;) {
		/*
		 * [callback-ended] If a callback's end is counted here, `now` shows that end, too.
		 */
		uint32_t ended = u32_load_acquire(&callback->ended);
		/*
		 * [callback-end] If `now` is another one, the caller sees all that the callback
		 * did.
		 */
		uint64_t now = u64_load_acquire(&callback->now);

		if (!now_is_of(now, handle))
			return;
		if ((now & NOW_RUNNING) == 0) {
			test_point(TEST_POINT_CALLBACK_BEFORE_NAP);
			futex_wait(&callback->ended, ended, CALLBACK_NAP_NS);
			continue;
		}
		if (!running)
			return;
		if ((now & NOW_WAITED) != 0 ||
		    u64_cas_relaxed(&callback->now, &now, now | NOW_WAITED))
			futex_wait(&callback->ended, ended, UINT64_MAX);
	}
}

void callbacks_wait(const struct callbacks *callbacks, uint64_t handle, bool running)
{
	/* Relaxed: the caller has seen the CAS that delivered the timer, and so the raised end. */
	uint64_t end = u64_load_relaxed(&callbacks->end);

	for (uint64_t i = 0; i < end; i++)
		/* The caller's own callback is left out, because it cannot end while it waits. */
		if (!callback_is_ours(&callbacks->cells[i]))
			callback_wait(&callbacks->cells[i], handle, running);
}
