/* SPDX-License-Identifier: MIT */
/*
 * Entries that Redis has sent: prefetched, or held by a caller until acknowledged, returned or
 * released, even after the lease, since the data may still be read. Under the relay's lock.
 */
#ifndef RELAY_DELIVERY_TABLE_H
#define RELAY_DELIVERY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <timerhub_relay.h>

struct reply;

#define DELIVERY_BUCKETS 256u

struct delivery {
	/* Next delivery in the list of prefetched deliveries, or in a bucket of held deliveries. */
	struct delivery *next;
	uint64_t ask_ns;   /* from then on the lease may be over, so the taker asks */
	uint64_t aside_ns; /* of a delivery that is set aside: when it may be offered again */
	uint32_t shard;    /* index of the server that sent the delivery */
	/* Its taker asks, without the lock: a late call for this entry must not free it. */
	bool confirming;
	uint64_t due_us;
	uint64_t attempts;
	uint64_t interval_us; /* of a periodic task, or 0 */
	uint64_t periods;     /* for which it stands: 1, and those that have passed untaken */
	size_t data_len;
	char id[TIMERHUB_RELAY_ID_BYTES];
	char entry[TIMERHUB_RELAY_DELIVERY_BYTES];
	char data[]; /* the task's data, with a NUL after data_len bytes */
};

struct deliveries {
	struct delivery *first; /* list of prefetched deliveries, in order of arrival */
	struct delivery *last;
	uint32_t prefetched;
	/*
	 * deliveries that a taker could not confirm, because the server did not answer or refused;
	 * they are prefetched again when its connection is open
	 */
	struct delivery *aside;
	struct delivery *buckets[DELIVERY_BUCKETS]; /* hash table of held deliveries, by entry */
};

/* When a reply with deliveries was asked for and read, and a pair of times on both clocks. */
struct arrival {
	uint64_t sent_ns;
	uint64_t now_ns;
	uint64_t anchor_ns;
	uint64_t anchor_us; /* on Redis's clock */
	uint64_t trust_ns;  /* at this age of a delivery its taker asks whether it still is one */
};

/*
 * Of an XREADGROUP reply, without known ones and those of other programs, which the sweep removes.
 * Returns how many, or -ENOMEM; the rest comes again after its lease.
 */
int deliveries_read(struct deliveries *all, const struct reply *reply, uint32_t shard,
                    const struct arrival *arrival);

/*
 * Move the first prefetched delivery to the held deliveries. Returns the delivery, or NULL if no
 * delivery is prefetched.
 */
struct delivery *deliveries_take(struct deliveries *all);

/* Takes a held delivery back from a taker that could not confirm it, until `until_ns` at least. */
void deliveries_set_aside(struct deliveries *all, struct delivery *one, uint64_t until_ns);

/*
 * Makes the deliveries of a server that were set aside, and whose time has come, the first of the
 * prefetched ones. Returns when to call it again, or UINT64_MAX if none of that server is left.
 */
uint64_t deliveries_bring_back(struct deliveries *all, uint32_t shard, uint64_t now_ns);

/*
 * Takes the last delivery of a server that no caller has taken out of the table; the caller frees
 * it. Returns NULL if there is none.
 */
struct delivery *deliveries_take_last(struct deliveries *all, uint32_t shard);

/* Free a held delivery and its data. False: none has this entry and id, or is being confirmed. */
bool deliveries_drop(struct deliveries *all, const char *entry, const char *id);

void deliveries_fini(struct deliveries *all);

#endif
