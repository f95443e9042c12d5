/* SPDX-License-Identifier: MIT */
/*
 * Tasks that Redis has given us: first in the hand, until a caller takes them, then held, until
 * they are acknowledged or their lease is over. Memory only; the caller has the lock.
 */
#ifndef RELAY_DELIVERY_H
#define RELAY_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <timerhub_relay.h>

struct reply;

#define DELIVERY_BUCKETS 256u

struct delivery {
	struct delivery *next;    /* in the hand, or in a bucket of the held */
	struct delivery *younger; /* held, in order of begin_ns */
	struct delivery *older;
	uint64_t begin_ns; /* when it came */
	uint64_t due_us;
	uint64_t attempts;
	size_t data_len;
	char id[TIMERHUB_RELAY_ID_BYTES];
	char entry[TIMERHUB_RELAY_DELIVERY_BYTES];
	char data[]; /* and a NUL */
};

struct deliveries {
	struct delivery *first; /* the hand, in order */
	struct delivery *last;
	uint32_t in_hand;
	uint32_t held;
	struct delivery *buckets[DELIVERY_BUCKETS]; /* held, by entry */
	struct delivery *oldest;
	struct delivery *youngest;
};

/*
 * Put the entries of a reply to XREADGROUP into the hand, but those that are there, or held.
 * Returns how many; -ENOMEM: the rest comes again after its lease. Foreign entries are left to the
 * sweep.
 */
int deliveries_read(struct deliveries *all, const struct reply *reply, uint64_t now_ns);

/* Take the first out of the hand, into the held. NULL: empty. */
struct delivery *deliveries_take(struct deliveries *all);

/* Forget one that is held, and its data; fine if there is none such. */
void deliveries_drop(struct deliveries *all, const char *entry);

/* Forget what came before that time, in the hand or held: its lease is over. */
void deliveries_expire(struct deliveries *all, uint64_t before_ns);

void deliveries_fini(struct deliveries *all);

#endif
