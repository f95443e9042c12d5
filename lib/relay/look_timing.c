/* SPDX-License-Identifier: MIT */
/*
 * Computes when a relay must next call timerhub_look, which moves due tasks into the stream
 * (look_timing.h). tests/relay/test_look_timing.c runs a thousand relays in virtual time.
 *
 * sending_ns(): If the poll is sent `ahead_us` after the last answered poll was sent, both take
 * about the same time on the network. So Redis runs them about `ahead_us` apart.
 *
 * look_timing_rung(): A message to all relays wakes them at the same time. So the relay of rank 3,
 * for example, polls 3 ms after due_us. A message to one relay tells it its rank: rank 0 polls at
 * due_us, and rank 1 only after its failover delay, in case the relay of rank 0 has died.
 */
#include "relay/look_timing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

/*
 * The largest failover delay, to which rank times grace is added. timerhub.lua has the same number.
 */
#define PUT_OFF_US UINT64_C(15000000)
/* A message on the common channel wakes all relays, so the one of rank r polls r ms later. */
#define SPREAD_US UINT64_C(1000)
/* The longest wait for the next poll, in case Redis's clock is changed. */
#define SLEEP_MAX_US (UINT64_C(3600) * 1000000)

void look_timing_init(struct look_timing *timing, uint64_t grace_us)
{
	*timing = (struct look_timing){ .grace_us = grace_us, .bell_ns = LOOK_TIMING_NEVER };
}

uint64_t look_timing_due_ns(const struct look_timing *timing)
{
	return timing->asking ? LOOK_TIMING_NEVER : timing->target_ns;
}

void look_timing_sent(struct look_timing *timing, uint64_t now_ns)
{
	timing->asking = true;
	timing->asked_ns = now_ns;
	timing->bell_ns = LOOK_TIMING_NEVER;
}

uint64_t look_timing_ladder_us(uint64_t rank, uint64_t grace_us)
{
	uint64_t most_us = PUT_OFF_US + rank * grace_us;
	uint64_t steps_us = grace_us;

	if (rank == 0)
		return 0;
	for (uint64_t i = 1; i < rank && steps_us < most_us; i++)
		steps_us *= 2;
	return steps_us < most_us ? steps_us : most_us;
}

/*
 * Returns when to send the next poll, if Redis shall run it `ahead_us` after the last one that it
 * answered.
 */
static uint64_t sending_ns(const struct look_timing *timing, uint64_t ahead_us)
{
	if (ahead_us > SLEEP_MAX_US)
		ahead_us = SLEEP_MAX_US;
	return timing->sent_ns + ahead_us * NS_PER_US + LOOK_TIMING_MARGIN_NS;
}

void look_timing_answered(struct look_timing *timing, const struct look_timing_answer *answer)
{
	uint64_t target_ns;

	timing->asking = false;
	timing->is_anchored = true;
	timing->sent_ns = timing->asked_ns;
	timing->ran_us = answer->now_us;
	timing->rank = answer->rank;
	target_ns = answer->more ? 0 : sending_ns(timing, answer->wait_us);
	/*
	 * A wake-up message that came after this poll was sent may ask for an earlier poll than the
	 * reply does.
	 */
	timing->target_ns = target_ns < timing->bell_ns ? target_ns : timing->bell_ns;
}

void look_timing_rung(struct look_timing *timing, const struct look_timing_bell *bell,
                      uint64_t now_ns)
{
	uint64_t due_us = bell->due_us, at_ns = now_ns;

	if (!bell->is_common)
		timing->rank = bell->rank;
	due_us += bell->is_common ? timing->rank * SPREAD_US
	                          : look_timing_ladder_us(timing->rank, timing->grace_us);
	if (timing->is_anchored && due_us > timing->ran_us)
		at_ns = sending_ns(timing, due_us - timing->ran_us);
	if (at_ns < timing->bell_ns)
		timing->bell_ns = at_ns;
	if (at_ns < timing->target_ns)
		timing->target_ns = at_ns;
}

void look_timing_put_off(struct look_timing *timing, uint64_t until_ns)
{
	timing->asking = false;
	timing->target_ns = until_ns;
}

bool look_timing_read_bell(struct look_timing_bell *ret_bell, const char *text)
{
	struct look_timing_bell bell = { .is_common = true };
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	bell.due_us = strtoull(text, &end, 10);
	if (end[0] == ' ' && (end[1] == '0' || end[1] == '1') && end[2] == '\0') {
		bell.is_common = false;
		bell.rank = (uint64_t)(end[1] - '0');
	} else if (end[0] != '\0') {
		return false;
	}
	*ret_bell = bell;
	return bell.due_us < UINT64_C(1) << 53;
}
