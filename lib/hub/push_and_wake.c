/* SPDX-License-Identifier: MIT */
/*
 * The work that a decision of timer.c leaves: a push, and a wake if needed. Each thread pushes for
 * itself and decides by its own deadline, because any other may be stopped for ever. Lock-free and
 * signal-safe but for hub_wait_pass().
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
	bell_ring_counted(hub->bell, &hub->living->bells, &hub->rings);
	(void)u64_fetch_add_relaxed(&hub->board->callers.submit_wakes,
	                            1); /* addition is cheap compared with the system call */
	promise_record_wake(&hub->promise, pass);
}

/* Model: tests/models/promise.pml. */
void hub_submit(struct timerhub *hub, uint32_t slot, enum timer_left left, struct pair pair)
{
	uint64_t look_by_ns = timer_instant_ns(&hub->arena.timers, slot, pair), pass;
	bool many = false;

	test_point(TEST_POINT_SUBMIT_BEFORE_PUSH);
	if (left == TIMER_PUSH)
		many = inbox_push(&hub->inbox, cpu_current(), slot);
	else if (!inbox_waits(&hub->inbox, slot))
		many = inbox_push_again(&hub->inbox, cpu_current(), slot);
	test_point(TEST_POINT_SUBMIT_AFTER_PUSH);
	if (promise_wants_wake(&hub->promise, many ? 0 : look_by_ns, &pass))
		hub_wake(hub, pass);
}

int hub_cancel(struct timerhub *hub, timerhub_timer timer, uint32_t queue)
{
	int result = timer_cancel(&hub->arena.timers, timer, queue);

	if (result == 0) {
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
	/* shows this thread's earlier stores to the next hub_try_enter() */
	advancing = u32_fetch_add_acq_rel(&hub->advancing, 0); /* [advance] */
	/* [advance]: if the pass has ended, all that it has written */
	while (advancing % 2 != 0 && u32_load_acquire(&hub->advancing) == advancing)
		futex_wait(&hub->advancing, advancing, HUB_CLOSE_POLL_NS);
}
