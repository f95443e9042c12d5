/* SPDX-License-Identifier: MIT */
/*
 * Tasks that Redis has given us: first in the hand, until a caller takes them, then held, until
 * they are acknowledged, given back or released; however long that takes, since a taker may still
 * read the data when the lease is over. Memory only; the caller has the lock.
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
	struct delivery *next; /* in the hand, or in a bucket of the held */
	uint64_t begin_ns;     /* when it came */
	uint32_t shard;        /* where it came from */
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
	struct delivery *buckets[DELIVERY_BUCKETS]; /* held, by entry; ids tell shards apart */
};

/*
 * Put the entries of a reply to XREADGROUP into the hand, but those that are there, or held.
 * Returns how many; -ENOMEM: the rest comes again after its lease. Foreign entries are left to the
 * sweep.
 */
int deliveries_read(struct deliveries *all, const struct reply *reply, uint32_t shard,
                    uint64_t now_ns);

/* Take the first out of the hand, into the held. NULL: empty. */
struct delivery *deliveries_take(struct deliveries *all);

/* Forget one that is held, and its data. False: there is none such. */
bool deliveries_drop(struct deliveries *all, const char *entry, const char *id);

/* Forget what came into the hand before that time: its lease is over, and no taker has it. */
void deliveries_expire(struct deliveries *all, uint64_t before_ns);

void deliveries_fini(struct deliveries *all);

#endif
