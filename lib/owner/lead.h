/* SPDX-License-Identifier: MIT */
/*
 * The lead: how much earlier than an instant to ask the kernel to be woken. Pure; the owner's.
 */
#ifndef TIMERHUB_LEAD_H
#define TIMERHUB_LEAD_H

#include <stdint.h>

/* The longest lead, and so the longest spin on its account. */
#define LEAD_MAX_NS 16000
/* How far one sleep moves the lead: seven steps down or one up, so that one in eight is below. */
#ifndef LEAD_UP_NS
#define LEAD_UP_NS 64
#endif
#define LEAD_DOWN_NS (7 * LEAD_UP_NS)

struct lead {
	uint64_t ns; /* 0 at first: nothing is known of the machine */
};

/* A sleep ended so late after the instant that the kernel was asked for. */
void lead_learn(struct lead *lead, uint64_t late_ns);

#endif
