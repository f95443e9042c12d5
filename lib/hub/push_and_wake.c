/* SPDX-License-Identifier: MIT */
/*
 * Does the work that a decision of timer.c leaves: pushes the slot, then wakes the owner if needed.
 * After one caller has claimed the push, a second caller may move the timer to an earlier time. The
 * second caller wakes the owner but pushes nothing, and the owner may find no entry yet. The
 * claiming thread therefore reads the deadline after its push. All functions except hub_wait_pass()
 * are lock-free and signal-safe.
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
	bell_ring_by(hub->bell, &hub->living->bells);
	(void)u64_fetch_add_relaxed(&hub->board->callers.submit_wakes,
	                            1); /* the addition is cheap compared with the system call */
	test_point(TEST_POINT_WAKE_BEFORE_RECORD);
	promise_record_wake(&hub->promise, pass);
}

/*
 * Push the slot for the claim in `*pair`. Returns the result of timer_confirm_push(), which updates
 * `*pair`.
 */
static bool hub_push(struct timerhub *hub, uint32_t slot, struct pair *pair, bool *ret_many)
{
	test_point(TEST_POINT_SUBMIT_BEFORE_PUSH);
	*ret_many = inbox_push(&hub->inbox, cpu_current(), slot);
	test_point(TEST_POINT_SUBMIT_AFTER_PUSH);
	return timer_confirm_push(&hub->arena.timers.pairs[slot], pair);
}

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

void hub_wait_pass(struct timerhub *hub)
{
	uint32_t advancing;

	if (!hub->clock.manual) {
		owner_wait_pass(&hub->owner);
		return;
	}
	/* The addition of 0 shows this thread's earlier stores to the next hub_try_enter(). */
	advancing = u32_fetch_add_acq_rel(&hub->advancing, 0); /* [advance] */
	/* [advance]: if the pass has ended, this thread sees all that the pass has written. */
	while (advancing % 2 != 0 && u32_load_acquire(&hub->advancing) == advancing)
		futex_wait(&hub->advancing, advancing, HUB_CLOSE_POLL_NS);
}
