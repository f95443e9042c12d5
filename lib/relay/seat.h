/* SPDX-License-Identifier: MIT */
/*
 * When a relay looks next: decided by the answers of its looks and by the bells that it hears,
 * which come on two connections in any order. Pure: times are arguments, no call fails. The
 * functions of Redis decide which relay is first (timerhub.lua, sit and promise); here is what a
 * relay makes of it.
 *
 * The anchor of a seat is the last look that was answered: when it was sent here, and when it ran
 * there. To arrive at a time of Redis's clock, a look is sent as much later than that one as the
 * time is later than when that one ran. The way there is in both and falls out.
 */
#ifndef RELAY_SEAT_H
#define RELAY_SEAT_H

#include <stdbool.h>
#include <stdint.h>

/* A look that arrives a moment early moves nothing, and costs another one. */
#define SEAT_MARGIN_NS UINT64_C(50000)

#define SEAT_NEVER UINT64_MAX

struct seat {
	uint64_t grace_us;
	bool is_anchored;
	uint64_t sent_ns;   /* here: the anchor */
	uint64_t ran_us;    /* there */
	uint64_t asked_ns;  /* when the look on its way was sent */
	bool asking;        /* a look is on its way */
	uint64_t target_ns; /* look then */
	uint64_t bell_ns; /* the earliest that bells have asked for since the last look was sent */
	uint64_t rank;    /* as last told */
};

/* What a look was answered. */
struct seat_answer {
	uint64_t now_us;  /* when it ran */
	uint64_t wait_us; /* from then */
	uint64_t rank;
	bool more; /* look again at once */
};

/* A message of the bell: "DUE" or "DUE PLACE". */
struct seat_bell {
	uint64_t due_us;
	bool is_common; /* no place: relays with a seat ignore it */
	uint64_t place;
};

void seat_init(struct seat *seat, uint64_t grace_us);

/* When the next look is to be sent; SEAT_NEVER while one is on its way. */
uint64_t seat_due_ns(const struct seat *seat);

void seat_sent(struct seat *seat, uint64_t now_ns);
void seat_answered(struct seat *seat, const struct seat_answer *answer);
void seat_rung(struct seat *seat, const struct seat_bell *bell, uint64_t now_ns);

/* A look has failed, or its connection is lost: the next one is sent then. */
void seat_put_off(struct seat *seat, uint64_t until_ns);

/* False: the text is no bell. */
bool seat_read_bell(struct seat_bell *ret_bell, const char *text);

/* What a relay of that rank leaves to those before it. */
uint64_t seat_ladder_us(uint64_t rank, uint64_t grace_us);

#endif
