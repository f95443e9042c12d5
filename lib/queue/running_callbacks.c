/* SPDX-License-Identifier: MIT */
/*
 * Lets a thread that cancels a timer, the canceller, wait until the timer's callback runs on no
 * other thread.
 *
 * A thread that dispatches events first stores the handle of a timer in its cell, and then delivers
 * the timer's event by a compare-and-swap of the timer's pair. The release of the swap publishes
 * what is in the cell, and later changes of the pair keep it visible, because they are
 * read-modify-writes too. So a canceller that has seen the pair after the delivery finds the handle
 * in the cell. Before its first delivery, the thread also raises `end` above the index of its cell,
 * so such a canceller sees that too.
 *
 * callback_is_ours() may also find a cell that an ended thread has left behind, if the ended thread
 * had the same thread_self(). That does no harm, because no callback runs there.
 *
 * It is tested by tests/service/test_cancel_sync.c.
 *
 * Labels: [callback-cell] callback_free → callback_claim: the thread that had the cell has
 *         made its last store in it.
 *         [callback-end] callback_end, callback_consider, callback_begin, callback_free →
 *         callback_wait: what the callback did. The canceller may free what the callback used.
 *         [callback-ended] callback_wake → callback_wait: `now` has changed.
 */
#include "queue/running_callbacks.h"

#include "base/futex.h"
#include "base/test_point.h"

/* How long to sleep at a time where it can happen that nobody wakes the sleeper. */
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
	 * Each CPU begins at its own index, so that CPUs do not compete for a cell. The index is
	 * low, because a canceller searches all cells below `end`.
	 */
	for (uint32_t i = cpu % CALLBACKS_MAX;; i = (i + 1) % CALLBACKS_MAX) {
		struct callback *callback = &callbacks->cells[i];

		if (callback_claim(callbacks, i))
			return callback;
		/* If the next cell is the one that was tried first, sleep before another round. */
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
	/*
	 * Release: when callback_wait() finds this value, its thread sees everything that the
	 * previous callback of this thread has written. [callback-end]
	 */
	u64_store_release(&callback->now, handle << NOW_SHIFT);
}

void callback_begin(struct callback *callback, uint64_t handle)
{
	/*
	 * Release: when callback_wait() finds this value, its thread sees everything that the
	 * previous callback of this thread has written. [callback-end]
	 */
	u64_store_release(&callback->now, handle << NOW_SHIFT | NOW_RUNNING);
}

void callback_wake(struct callback *callback)
{
	/*
	 * Release: when callback_wait() finds the new count, it also finds the new callback->now.
	 * [callback-ended]
	 */
	(void)u32_fetch_add_release(&callback->ended, 1);
	futex_wake(&callback->ended, UINT32_MAX);
}

/* ---- the canceller ---- */

/*
 * Tells whether `now` is about the timer with this handle. The handle's top two bits are lost in
 * `now`, but timers that differ only in these never have events at the same time.
 */
static bool now_is_of(uint64_t now, uint64_t handle)
{
	return now != 0 && (now | NOW_FLAGS) == (handle << NOW_SHIFT | NOW_FLAGS);
}

/*
 * Each thread that dispatches events has a struct callback. Returns true if this one is the calling
 * thread's.
 */
static bool callback_is_ours(const struct callback *callback)
{
	/* Relaxed is enough: only this thread stores its own number, and it sees its own stores. */
	return u64_load_relaxed(&callback->thread) == thread_self();
}

bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle)
{
	/*
	 * Relaxed is enough: this thread itself has raised `end` above the index of its own cell.
	 */
	uint64_t end = u64_load_relaxed(&callbacks->end);

	for (uint64_t i = 0; i < end; i++) {
		const struct callback *callback = &callbacks->cells[i];
		/*
		 * Relaxed is enough, because the result depends only on what this thread itself has
		 * stored.
		 */
		uint64_t now = u64_load_relaxed(&callback->now);

		if (callback_is_ours(callback) && now_is_of(now, handle) &&
		    (now & NOW_RUNNING) != 0)
			return true;
	}
	return false;
}

/*
 * Waits until the thread that owns this cell no longer tries to deliver the timer's event. If
 * `running` is true, it also waits until the timer's callback has ended on that thread.
 */
static void callback_wait(struct callback *callback, uint64_t handle, bool running)
{
	for (;;) {
		/*
		 * Acquire: if this is the new count, the load of callback->now below finds the new
		 * value, too. [callback-ended]
		 */
		uint32_t ended = u32_load_acquire(&callback->ended);
		/*
		 * Acquire: if the timer's handle is gone, this thread sees everything that the
		 * callback has written. [callback-end]
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
	/*
	 * No cell from index `end` on was ever used. Relaxed is enough: a thread raises `end` first
	 * and then takes the timer's event, and the caller has seen with acquire order that the
	 * event is taken.
	 */
	uint64_t end = u64_load_relaxed(&callbacks->end);

	for (uint64_t i = 0; i < end; i++)
		/*
		 * The calling thread's own callback is left out, because it can't end before this
		 * call returns.
		 */
		if (!callback_is_ours(&callbacks->cells[i]))
			callback_wait(&callbacks->cells[i], handle, running);
}
