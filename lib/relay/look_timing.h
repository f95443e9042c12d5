/* SPDX-License-Identifier: MIT */
/*
 * Computes when a relay must call timerhub_look, the function in Redis that moves due tasks into
 * the stream. Such a call is a look, and a bell is the message by which a put asks for an earlier
 * one. timerhub.lua ranks the relays: the one of rank 0 looks first, and others only if those of
 * lower ranks are late. Replies and bells come on two connections, in any order, and each may
 * change the time.
 *
 * The anchor is the last answered look: when it was sent by the local clock, and when it ran by
 * Redis's. A look that must run at a time T of Redis is sent as long after the anchor's sending as
 * T is after its run, so that equal times on the network cancel out. The functions are pure, and
 * none can fail.
 */
#ifndef RELAY_LOOK_TIMING_H
#define RELAY_LOOK_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * This much is added to the time of a poll, because a poll that is too early moves nothing and must
 * be repeated.
 */
#define LOOK_TIMING_MARGIN_NS UINT64_C(50000)

#define LOOK_TIMING_NEVER UINT64_MAX

struct look_timing {
	uint64_t grace_us;
	bool is_anchored;
	uint64_t sent_ns;   /* local time of the anchor, the last answered look */
	uint64_t ran_us;    /* time of the anchor on Redis's clock */
	uint64_t asked_ns;  /* local time at which the last look was sent */
	bool asking;        /* a look is in flight */
	uint64_t target_ns; /* local time of the next look */
	/*
	 * Wake-up messages ask for a poll at a certain time. This is the earliest such time, on the
	 * local clock, since the last poll was sent; LOOK_TIMING_NEVER if no message has come.
	 */
	uint64_t bell_ns;
	/*
	 * The rank of this process among all that serve the queue: the one of rank 0 polls first.
	 * Redis tells a process its rank in each reply to a poll and in each wake-up message.
	 */
	uint64_t rank;
};

/* Redis's reply to a poll, which is a call of the Redis function timerhub_look. */
struct look_timing_answer {
	uint64_t now_us;  /* when the look ran, on Redis's clock */
	uint64_t wait_us; /* how long after now_us the next look is due */
	uint64_t rank;
	bool more; /* more tasks are due, so look again at once */
};

/*
 * A wake-up message asks for an earlier poll, for example because a task was put. Its text is "DUE"
 * or "DUE RANK".
 */
struct look_timing_bell {
	uint64_t due_us; /* when to poll, on Redis's clock */
	/* True if Redis sent the message to all relays. Then `rank` is not set. */
	bool is_common;
	uint64_t rank; /* rank of the relay that the message wakes */
};

void look_timing_init(struct look_timing *timing, uint64_t grace_us);

/* Returns when to poll next, or LOOK_TIMING_NEVER while a poll has no reply yet. */
uint64_t look_timing_due_ns(const struct look_timing *timing);

void look_timing_sent(struct look_timing *timing, uint64_t now_ns);
void look_timing_answered(struct look_timing *timing, const struct look_timing_answer *answer);
void look_timing_rung(struct look_timing *timing, const struct look_timing_bell *bell,
                      uint64_t now_ns);

/* Sets the time of the next poll, after a poll or its connection has failed. */
void look_timing_put_off(struct look_timing *timing, uint64_t until_ns);

/*
 * Reads the text of a bell (a wake-up message). Returns false if it does not have the right form.
 */
bool look_timing_read_bell(struct look_timing_bell *ret_bell, const char *text);

/*
 * Returns how much later than rank 0 a process of this rank polls: grace_us for rank 1, twice that
 * for rank 2, four times that for rank 3 and so on, up to about 15 s.
 */
uint64_t look_timing_ladder_us(uint64_t rank, uint64_t grace_us);

#endif
