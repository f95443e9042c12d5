/* SPDX-License-Identifier: MIT */
/*
 * See hub.h. What a decision of timer.c has left to do is done here: push, then wake the owner if
 * need be. After its push, the claimant decides by the deadline that the pair has *now*: another
 * caller may have made it earlier meanwhile. That caller saw the claim, and woke the owner at most,
 * which may have found nothing yet. Any thread; all but hub_wait_pass() is lock-free and
 * signal-safe.
 *
 * Labels: [advance] hub_leave → hub_try_enter, hub_wait_pass: carries all that a pass has written;
 *         hub_wait_pass → hub_try_enter: carries that a queue is gone.
 */
#include "hub/hub.h"

#include <errno.h>

#include "base/bell.h"
#include "base/cpu.h"
#include "base/futex.h"
#include "base/probe.h"
#include "base/test_point.h"

static void hub_wake(struct timerhub *hub, uint64_t pass)
{
	probe1(wake, hub);
	bell_ring(hub->bell);
	(void)u64_fetch_add_relaxed(&hub->board->callers.submit_wakes,
	                            1); /* next to a system call */
	test_point(TEST_POINT_WAKE_BEFORE_RECORD);
	promise_record_wake(&hub->promise, pass);
}

/*
 * Push the slot for the claim in `*pair`. Returns whether the owner has yet to look at the slot;
 * `*pair` is then of after the push. If it has looked since the claim, it has seen all that the
 * claim was for. Model: tests/models/inbox.pml.
 */
static bool hub_push(struct timerhub *hub, uint32_t slot, struct pair *pair, bool *ret_many)
{
	test_point(TEST_POINT_SUBMIT_BEFORE_PUSH);
	*ret_many = inbox_push(&hub->inbox, cpu_current(), slot);
	test_point(TEST_POINT_SUBMIT_AFTER_PUSH);
	return timer_confirm_push(&hub->arena.timers.pairs[slot], pair);
}

/* Model: tests/models/promise.pml. */
void hub_submit(struct timerhub *hub, uint32_t slot, enum timer_left left, struct pair pair)
{
	uint64_t look_by_ns = UINT64_MAX, pass;
	bool many = false;

	if (left == TIMER_WAKE || hub_push(hub, slot, &pair, &many))
		look_by_ns = timer_look_by_ns(&hub->arena.timers, slot, pair);
	if (promise_wants_wake(&hub->promise, many ? 0 : look_by_ns, &pass))
		hub_wake(hub, pass);
}

int hub_cancel(struct timerhub *hub, timerhub_timer timer, uint32_t queue)
{
	int result = timer_cancel(&hub->arena.timers, timer, queue);

	if (result == 0) {
		test_point(TEST_POINT_CANCEL_BEFORE_FREE);
		arena_put(&hub->arena, cpu_current(), handle_slot(timer));
	}
	return result;
}

/* Model: tests/models/close.pml. */
void hub_wait_pass(struct timerhub *hub)
{
	uint32_t advancing;

	if (!hub->clock.manual) {
		owner_wait_pass(&hub->owner);
		return;
	}
	/*
	 * Changes nothing; but a thread that enters after it, by its own change, sees our stores.
	 */
	advancing = u32_fetch_add_acq_rel(&hub->advancing, 0); /* [advance] */
	/* [advance] */
	while (advancing % 2 != 0 && u32_load_acquire(&hub->advancing) == advancing)
		futex_wait(&hub->advancing, advancing, HUB_CLOSE_POLL_NS);
}
