/* SPDX-License-Identifier: MIT */
/*
 * Computes when a relay must next call timerhub_look, the Redis function that moves due tasks into
 * the stream of ready tasks. A call of timerhub_look is a "look". A "bell" is a published message
 * by which a put asks for an earlier look. Each relay has a "rank": rank 0 looks first, and the
 * higher ranks look only if the lower ranks are late. timerhub.lua assigns the ranks, in its
 * functions sit() and promise(). Replies to looks and bells come on two connections, in any order,
 * and each may change the time of the next look. The module is pure: times are arguments, and no
 * call fails.
 *
 * The anchor is the last answered look: the local time at which it was sent, and the time on
 * Redis's clock at which it ran. A look for the time T on Redis's clock is sent (T - the anchor's
 * time on Redis's clock) after the anchor's local time. Because both looks travel equally long, the
 * network's latency cancels out.
 */
#ifndef RELAY_LOOK_TIMING_H
#define RELAY_LOOK_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A look is sent this long after the computed time, because a look that arrives too early moves no
 * task and must be repeated.
 */
#define LOOK_TIMING_MARGIN_NS UINT64_C(50000)

#define LOOK_TIMING_NEVER UINT64_MAX

struct look_timing {
	uint64_t grace_us;
	bool is_anchored;
	uint64_t sent_ns;   /* local time of the anchor */
	uint64_t ran_us;    /* time of the anchor on Redis's clock */
	uint64_t asked_ns;  /* when the look in flight was sent */
	bool asking;        /* a look is in flight */
	uint64_t target_ns; /* when to send the next look */
	uint64_t bell_ns;   /* the earliest time asked for by a bell since the last look was sent */
	uint64_t rank;      /* the relay's rank, as the last look or bell said */
};

/* The reply to a look. */
struct look_timing_answer {
	uint64_t now_us;  /* time on Redis's clock at which the look ran */
	uint64_t wait_us; /* time from now_us to the next look */
	uint64_t rank;
	bool more; /* there is more to move, so look again at once */
};

/* The contents of a bell: "DUE" or "DUE RANK". */
struct look_timing_bell {
	uint64_t due_us;
	bool is_common; /* the bell came on the channel of all relays, and has no rank */
	uint64_t rank;  /* rank of the relay to wake */
};

void look_timing_init(struct look_timing *timing, uint64_t grace_us);

/* Returns when to send the next look, or SEAT_NEVER while a look is in flight. */
uint64_t look_timing_due_ns(const struct look_timing *timing);

void look_timing_sent(struct look_timing *timing, uint64_t now_ns);
void look_timing_answered(struct look_timing *timing, const struct look_timing_answer *answer);
void look_timing_rung(struct look_timing *timing, const struct look_timing_bell *bell,
                      uint64_t now_ns);

/* After a look or its connection has failed, send the next look at `until_ns`. */
void look_timing_put_off(struct look_timing *timing, uint64_t until_ns);

/* Parse a bell. Returns false if the text is not a bell. */
bool look_timing_read_bell(struct look_timing_bell *ret_bell, const char *text);

/*
 * Returns the failover delay of a rank. The delay of rank 1 is the grace, and each rank doubles it.
 */
uint64_t look_timing_ladder_us(uint64_t rank, uint64_t grace_us);

#endif
