/* SPDX-License-Identifier: MIT */
/*
 * A dispatching thread stores a handle in its cell, then delivers it by a CAS whose release
 * publishes the store; later changes of the pair are read-modify-writes, which keep it visible. So
 * a canceller that reads the pair after the CAS finds the handle in the cell. Tested by
 * tests/service/test_cancel_sync.c.
 *
 * Labels: [callback-cell] callbacks_leave → callback_claim: the cell is free again.
 *         [callback-end] callback_end → callback_wait: what the callback did.
 *         [callback-ended] callback_end → callback_wait: `now` has changed.
 */
#include "queue/running_callbacks.h"

#include "base/futex.h"
#include "base/test_point.h"
#include "base/thread_self.h"

#ifndef CALLBACKS_MAX
#define CALLBACKS_MAX 16384
#endif

#define NOW_RUNNING ((uint64_t)1) /* callback runs, or soon will */
#define NOW_WAITED ((uint64_t)2)  /* by a canceller that waits for its end */
#define NOW_FLAGS (NOW_RUNNING | NOW_WAITED)
#define NOW_SHIFT 2

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

static bool callback_claim(struct callback *callback)
{
	uint64_t none = 0;

	/* Relaxed: a hint. [callback-cell]: the CAS acquires the free cell. */
	return u64_load_relaxed(&callback->thread) == 0 &&
	       u64_cas_acquire(&callback->thread, &none, thread_self());
}

struct callback *callbacks_enter(struct callbacks *callbacks, unsigned cpu)
{
	/* Low indexes, since a canceller searches all below `end`; different CPUs begin apart. */
	for (uint32_t i = cpu % CALLBACKS_MAX;; i = (i + 1) % CALLBACKS_MAX) {
		struct callback *callback = &callbacks->cells[i];

		if (callback_claim(callback)) {
			/* visible to a canceller by the delivery's CAS */
			u64_raise(&callbacks->end, i + 1);
			return callback;
		}
		/* all are taken: wait until one is left */
		if ((i + 1) % CALLBACKS_MAX == cpu % CALLBACKS_MAX)
			futex_wait(&callback->ended, u32_load_relaxed(&callback->ended),
			           CALLBACK_NAP_NS);
	}
}

void callbacks_leave(struct callback *callback)
{
	u64_store_release(&callback->now, 0);    /* [callback-end] */
	u64_store_release(&callback->thread, 0); /* [callback-cell] */
}

void callback_consider(struct callback *callback, uint64_t handle)
{
	/* Release: who sees this handle knows that the last callback has ended. */
	u64_store_release(&callback->now, handle << NOW_SHIFT); /* [callback-end] */
}

void callback_begin(struct callback *callback, uint64_t handle)
{
	u64_store_release(&callback->now, handle << NOW_SHIFT | NOW_RUNNING); /* [callback-end] */
}

void callback_end(struct callback *callback)
{
	/* [callback-end]: all writes of the callback */
	if ((u64_exchange_release(&callback->now, 0) & NOW_WAITED) == 0)
		return;
	(void)u32_fetch_add_release(&callback->ended, 1); /* [callback-ended] */
	futex_wake(&callback->ended, UINT32_MAX);
}

/* ---- the canceller ---- */

/*
 * Without the generation's top two bits: timers that differ only in these are never in cells at
 * once.
 */
static bool now_is_of(uint64_t now, uint64_t handle)
{
	return now != 0 && (now | NOW_FLAGS) == (handle << NOW_SHIFT | NOW_FLAGS);
}

/*
 * True too of a cell that an ended thread with the same number has never left, because its stack
 * was not unwound: no callback runs in that one any more.
 */
static bool callback_is_ours(const struct callback *callback)
{
	/* Relaxed: only this thread stores its number, and it sees its own stores. */
	return u64_load_relaxed(&callback->thread) == thread_self();
}

bool callbacks_inside(const struct callbacks *callbacks, uint64_t handle)
{
	uint64_t end = u64_load_relaxed(&callbacks->end); /* its own cells are below */

	for (uint64_t i = 0; i < end; i++) {
		const struct callback *callback = &callbacks->cells[i];
		/* relaxed: only its own stores matter */
		uint64_t now = u64_load_relaxed(&callback->now);

		if (callback_is_ours(callback) && now_is_of(now, handle) &&
		    (now & NOW_RUNNING) != 0)
			return true;
	}
	return false;
}

/* Until the handle was delivered or skipped and, if `running`, its callback has ended. */
static void callback_wait(struct callback *callback, uint64_t handle, bool running)
{
	for (;;) {
		uint32_t ended = u32_load_acquire(&callback->ended); /* [callback-ended] */
		uint64_t now = u64_load_acquire(&callback->now);     /* [callback-end] */

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
	uint64_t end = u64_load_relaxed(&callbacks->end); /* relaxed: see callbacks_enter() */

	for (uint64_t i = 0; i < end; i++)
		/* not the caller's own, which can't end while it waits */
		if (!callback_is_ours(&callbacks->cells[i]))
			callback_wait(&callbacks->cells[i], handle, running);
}
