/* SPDX-License-Identifier: MIT */
/*
 * See seat.h. Tested by tests/relay/test_seat.c, with a thousand relays in virtual time. Model:
 * tests/models/relay.pml.
 */
#include "relay/seat.h"

#include <errno.h>
#include <stdlib.h>

#define NS_PER_US UINT64_C(1000)
/* This value equals PUT_OFF_US in timerhub.lua. */
#define PUT_OFF_US UINT64_C(300000000)
/* A message on the common channel wakes all relays. The relay of rank r looks r ms later. */
#define SPREAD_US UINT64_C(1000)
/*
 * The longest sleep of a relay. Only a change of Redis's clock can make the computed wait longer.
 */
#define SLEEP_MAX_US (UINT64_C(3600) * 1000000)

void seat_init(struct seat *seat, uint64_t grace_us)
{
	*seat = (struct seat){ .grace_us = grace_us, .bell_ns = SEAT_NEVER };
}

uint64_t seat_due_ns(const struct seat *seat)
{
	return seat->asking ? SEAT_NEVER : seat->target_ns;
}

void seat_sent(struct seat *seat, uint64_t now_ns)
{
	seat->asking = true;
	seat->asked_ns = now_ns;
	seat->bell_ns = SEAT_NEVER;
}

uint64_t seat_ladder_us(uint64_t rank, uint64_t grace_us)
{
	uint64_t most_us = PUT_OFF_US + rank * grace_us;
	uint64_t steps_us = grace_us;

	if (rank == 0)
		return 0;
	for (uint64_t i = 1; i < rank && steps_us < most_us; i++)
		steps_us *= 2;
	return steps_us < most_us ? steps_us : most_us;
}

/* Returns when to send a look so that it arrives `ahead_us` after the anchor's look. */
static uint64_t sending_ns(const struct seat *seat, uint64_t ahead_us)
{
	if (ahead_us > SLEEP_MAX_US)
		ahead_us = SLEEP_MAX_US;
	return seat->sent_ns + ahead_us * NS_PER_US + SEAT_MARGIN_NS;
}

void seat_answered(struct seat *seat, const struct seat_answer *answer)
{
	uint64_t target_ns;

	seat->asking = false;
	seat->is_anchored = true;
	seat->sent_ns = seat->asked_ns;
	seat->ran_us = answer->now_us;
	seat->rank = answer->rank;
	target_ns = answer->more ? 0 : sending_ns(seat, answer->wait_us);
	/*
	 * A bell that came after the look was sent may belong to a put that the look did not see.
	 */
	seat->target_ns = target_ns < seat->bell_ns ? target_ns : seat->bell_ns;
}

void seat_rung(struct seat *seat, const struct seat_bell *bell, uint64_t now_ns)
{
	uint64_t due_us = bell->due_us, at_ns = now_ns;

	if (!bell->is_common)
		seat->rank = bell->rank;
	/*
	 * A bell comes on the common channel only if no relay of the first ranks listens. So a
	 * relay that gets such a bell does not wait for its failover delay.
	 */
	due_us += bell->is_common ? seat->rank * SPREAD_US
	                          : seat_ladder_us(seat->rank, seat->grace_us);
	if (seat->is_anchored && due_us > seat->ran_us)
		at_ns = sending_ns(seat, due_us - seat->ran_us);
	if (at_ns < seat->bell_ns)
		seat->bell_ns = at_ns;
	if (at_ns < seat->target_ns)
		seat->target_ns = at_ns;
}

void seat_put_off(struct seat *seat, uint64_t until_ns)
{
	seat->asking = false;
	seat->target_ns = until_ns;
}

bool seat_read_bell(struct seat_bell *ret_bell, const char *text)
{
	struct seat_bell bell = { .is_common = true };
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
