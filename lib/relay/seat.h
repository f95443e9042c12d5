/* SPDX-License-Identifier: MIT */
/*
 * Decides when a relay looks next. Replies to looks and bells come on two connections, in any
 * order, and both change the time. The module is pure: times are arguments, and no call fails.
 * timerhub.lua assigns the ranks (sit and promise).
 *
 * The anchor is the last answered look: its local time of sending, and its time of running on
 * Redis's clock. A look for the time T on Redis's clock is sent (T - anchor's Redis time) after the
 * anchor's local time. So the network's latency cancels out.
 */
#ifndef RELAY_SEAT_H
#define RELAY_SEAT_H

#include <stdbool.h>
#include <stdint.h>

/* A look that arrives too early moves nothing and must be repeated. */
#define SEAT_MARGIN_NS UINT64_C(50000)

#define SEAT_NEVER UINT64_MAX

struct seat {
	uint64_t grace_us;
	bool is_anchored;
	uint64_t sent_ns;   /* the anchor's local time */
	uint64_t ran_us;    /* the anchor's time on Redis's clock */
	uint64_t asked_ns;  /* when the look in flight was sent */
	bool asking;        /* a look is in flight */
	uint64_t target_ns; /* send the next look then */
	uint64_t bell_ns;   /* the earliest time asked for by bells since the last look was sent */
	uint64_t rank;      /* from the last look or bell */
};

/* The reply to a look. */
struct seat_answer {
	uint64_t now_us;  /* when the look ran */
	uint64_t wait_us; /* how long to wait after now_us */
	uint64_t rank;
	bool more; /* look again at once */
};

/* A message of the bell: "DUE" or "DUE PLACE". */
struct seat_bell {
	uint64_t due_us;
	bool is_common; /* on the common channel, without a rank */
	uint64_t rank;  /* of the relay that is woken */
};

void seat_init(struct seat *seat, uint64_t grace_us);

/* Returns when to send the next look; SEAT_NEVER while a look is in flight. */
uint64_t seat_due_ns(const struct seat *seat);

void seat_sent(struct seat *seat, uint64_t now_ns);
void seat_answered(struct seat *seat, const struct seat_answer *answer);
void seat_rung(struct seat *seat, const struct seat_bell *bell, uint64_t now_ns);

/* A look or its connection has failed. Send the next look at `until_ns`. */
void seat_put_off(struct seat *seat, uint64_t until_ns);

/* Returns false if the text is no bell. */
bool seat_read_bell(struct seat_bell *ret_bell, const char *text);

/*
 * Returns the failover delay of a rank. The delay of rank 1 is the grace, and each rank doubles it.
 */
uint64_t seat_ladder_us(uint64_t rank, uint64_t grace_us);

#endif
