/* SPDX-License-Identifier: MIT */
/*
 * Computes when a relay must next call timerhub_look, the Redis function that moves due tasks into
 * the stream of ready tasks. A call of timerhub_look is a "look". A "bell" is a published message
 * by which a put asks for an earlier look. timerhub.lua gives each relay a "rank". The relay of
 * rank 0 looks first. A relay of a higher rank looks only if the lower ranks are late. Replies and
 * bell messages come on two connections, in any order. Each reply and each bell message may change
 * the time of the next look. All functions of look_timing.h are pure, and none fails.
 *
 * The anchor is the last answered call of timerhub_look. The relay knows the local time at which it
 * sent this call. The reply has the time on Redis's clock at which the call ran. If the next call
 * must run at the time T on Redis's clock, the relay computes T minus the anchor's time on Redis's
 * clock. The relay sends the next call at this distance after the anchor's local time. If both
 * calls take equally long to reach the server, the time on the network cancels out.
 */
#ifndef RELAY_LOOK_TIMING_H
#define RELAY_LOOK_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Delay that a relay adds to the computed time of a call of timerhub_look. A call of timerhub_look
 * that arrives too early moves no task and must be repeated.
 */
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

/*
 * Returns the failover delay of a rank. The delay of rank 1 is the grace, and the delay doubles
 * with each rank.
 */
uint64_t look_timing_ladder_us(uint64_t rank, uint64_t grace_us);

#endif
