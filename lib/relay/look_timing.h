/* SPDX-License-Identifier: MIT */
/*
 * When a relay must call timerhub_look (a look), which moves due tasks into the stream. A bell is a
 * put's message that asks for an earlier one. timerhub.lua ranks relays: 0 looks first, others only
 * if lower ranks are late. Replies and bells come on two connections, in any order, and each may
 * change the time. Pure; nothing fails. The anchor is the last answered look: when it was sent by
 * the local clock, and when it ran by Redis's. A look for T by Redis's clock is sent as far after
 * the anchor's sending as T is after its run, so that equal network times cancel out.
 */
#ifndef RELAY_LOOK_TIMING_H
#define RELAY_LOOK_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/* added: a look that is too early moves nothing and must be repeated */
#define LOOK_TIMING_MARGIN_NS UINT64_C(50000)

#define LOOK_TIMING_NEVER UINT64_MAX

struct look_timing {
	uint64_t grace_us;
	bool is_anchored;
	uint64_t sent_ns;   /* local time of the anchor, the last answered call of timerhub_look */
	uint64_t ran_us;    /* time of the anchor on Redis's clock */
	uint64_t asked_ns;  /* local time at which the last call of timerhub_look was sent */
	bool asking;        /* a call of timerhub_look is in flight */
	uint64_t target_ns; /* local time at which to call timerhub_look next */
	/* Earliest time that a bell message has asked for since the last call of timerhub_look. */
	uint64_t bell_ns;
	/* The relay's rank, from the last reply to timerhub_look or the last bell message. */
	uint64_t rank;
};

/* The reply to a call of timerhub_look (a look). */
struct look_timing_answer {
	uint64_t now_us;  /* time on Redis's clock at which timerhub_look ran */
	uint64_t wait_us; /* time from now_us to the next call of timerhub_look */
	uint64_t rank;
	bool more; /* there are more due tasks to move, so call timerhub_look again at once */
};

/* The contents of a bell message, whose text is "DUE" or "DUE RANK". */
struct look_timing_bell {
	uint64_t due_us;
	bool is_common; /* the message came on the channel of all relays, and has no rank */
	uint64_t rank;  /* rank of the relay to wake */
};

void look_timing_init(struct look_timing *timing, uint64_t grace_us);

/*
 * Returns when to call timerhub_look next, or LOOK_TIMING_NEVER while a call of timerhub_look is in
 * flight.
 */
uint64_t look_timing_due_ns(const struct look_timing *timing);

void look_timing_sent(struct look_timing *timing, uint64_t now_ns);
void look_timing_answered(struct look_timing *timing, const struct look_timing_answer *answer);
void look_timing_rung(struct look_timing *timing, const struct look_timing_bell *bell,
                      uint64_t now_ns);

/*
 * Set the time of the next call of timerhub_look to `until_ns`, after a call or its connection has
 * failed.
 */
void look_timing_put_off(struct look_timing *timing, uint64_t until_ns);

/* Parse the text of a bell message. Returns false if the text is not of a bell message. */
bool look_timing_read_bell(struct look_timing_bell *ret_bell, const char *text);

/* The grace for rank 1, doubled with each. */
uint64_t look_timing_ladder_us(uint64_t rank, uint64_t grace_us);

#endif
