/* SPDX-License-Identifier: MIT */
/* Checks each change of a pair in builds for tests: timer_change() calls timer_check_change(). */
#include "base/invariant.h"
#include "hub_check.h"
#include "timer/timer.h"

bool pair_is_legal(struct pair pair)
{
	uint64_t state = pair.state;
	bool never = pair.deadline_ns == TIMER_NEVER_NS;

	if ((pair.deadline_ns > TIMER_DEADLINE_MAX_NS && !never) ||
	    (state_kept(state) && state_periodic(state)))
		return false;
	switch (state_phase(state)) {
	case TIMER_FREE:
	case TIMER_ARMED:
		return true;
	case TIMER_PENDING:
		return !never;
	case TIMER_OVERDUE:
		return !never && state_periodic(state);
	case TIMER_IDLE:
		return never && state_kept(state);
	}
	return false;
}

static bool phase_may_follow(enum timer_phase before, enum timer_phase after)
{
	static const unsigned char follow[] = {
		[TIMER_FREE] = 1 << TIMER_FREE | 1 << TIMER_ARMED,
		[TIMER_ARMED] = 1 << TIMER_FREE | 1 << TIMER_ARMED | 1 << TIMER_PENDING |
		                1 << TIMER_OVERDUE,
		[TIMER_PENDING] = 1 << TIMER_FREE | 1 << TIMER_ARMED | 1 << TIMER_PENDING |
		                  1 << TIMER_OVERDUE | 1 << TIMER_IDLE,
		[TIMER_OVERDUE] = 1 << TIMER_FREE | 1 << TIMER_ARMED | 1 << TIMER_OVERDUE,
		[TIMER_IDLE] = 1 << TIMER_FREE | 1 << TIMER_ARMED | 1 << TIMER_IDLE,
	};

	return (follow[before] >> after & 1) != 0;
}

/* Aborts on an illegal change. A generation begins if and only if a free slot is armed. */
void timer_check_change(struct pair before, struct pair after)
{
	enum timer_phase from = state_phase(before.state), to = state_phase(after.state);
	bool begins = from == TIMER_FREE && to == TIMER_ARMED;
	uint64_t flags = STATE_KEPT | STATE_SLACK | STATE_PERIODIC;

	invariant(pair_is_legal(before) && pair_is_legal(after));
	invariant(phase_may_follow(from, to));
	invariant(begins == (state_generation(before.state) != state_generation(after.state)));
	invariant(begins || ((before.state ^ after.state) & flags) == 0);
	/* Only the owner's look clears CLAIMED. It does not change the phase. */
	invariant(!state_claimed(before.state) || state_claimed(after.state) || from == to);
}
