/* SPDX-License-Identifier: MIT */
/*
 * The work that a decision of timer.c leaves: to push the slot into the inbox, and to wake the
 * owner if it would look there too late. Each thread pushes for itself and judges by its own
 * deadline, because any other thread that wants the same may be stopped for ever. It takes no lock
 * and can be called in a signal handler.
 */
#include "hub/hub.h"

#include "base/bell.h"
#include "base/cpu.h"
#include "base/probe.h"
#include "base/test_point.h"

/* Wakes the owner in this pass. */
static void hub_wake(struct timerhub *hub, uint64_t pass)
{
	probe1(wake, hub);
	bell_ring_counted(hub->bell, &hub->living->bells, &hub->rings);
	/* A shared counter is cheap here, compared with the system call. */
	(void)u64_fetch_add_relaxed(&hub->board->callers.submit_wakes, 1);
	promise_record_wake(&hub->promise, pass);
}

/* tests/models/promise.pml is a model of the order of these steps. */
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
