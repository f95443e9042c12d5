/* SPDX-License-Identifier: MIT */
/*
 * What is left to do after timer.c has changed a timer: to put the timer's slot into the inbox, and
 * to wake the owner if it would look there too late. Each thread does this for its own change, even
 * if another thread has begun the same, because that other thread may be stopped for ever. It takes
 * no lock and can be called in a signal handler.
 */
#include "hub/hub.h"

#include "base/bell.h"
#include "base/cpu.h"
#include "base/probe.h"
#include "base/test_point.h"

/*
 * Wakes the owner, and records the number of its present round of work, `pass`, so that no other
 * thread wakes it in the same round.
 */
static void hub_wake(struct timerhub *hub, uint64_t pass)
{
	probe1(wake, hub);
	bell_ring_counted(hub->bell, &hub->living->bells, &hub->rings);
	/* All threads share this counter, which costs little beside the system call. */
	(void)u64_fetch_add_relaxed(&hub->board->callers.submit_wakes, 1);
	promise_record_wake(&hub->promise, pass);
}

/*
 * Push the slot into the inbox first, and check only then whether the owner must be woken.
 * promise.c explains why no wake-up is lost in this order.
 */
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
