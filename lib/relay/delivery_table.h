/* SPDX-License-Identifier: MIT */
/*
 * The table of deliveries that Redis has sent. A delivery is prefetched until a caller takes it,
 * and then held by that caller until he has answered or released it, even after its lease, because
 * he may still read the data. All functions are called under the relay's lock.
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
	/* The next delivery in the list of untaken ones, or in the hash bucket of taken ones. */
	struct delivery *next;
	uint64_t ask_ns;   /* from this time on the lease may be over, so the taker asks Redis */
	uint64_t aside_ns; /* if the delivery is set aside: when it may be offered again */
	uint32_t shard;    /* index of the server that sent the delivery */
	/*
	 * True while the taker asks Redis about the lease, so deliveries_drop() must not free it.
	 */
	bool confirming;
	uint64_t due_us;
	uint64_t attempts;
	uint64_t interval_us; /* interval of a periodic task, or 0 */
	/*
	 * The periods that this delivery stands for: 1, plus those that passed while nobody took
	 * it.
	 */
	uint64_t periods;
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
	 * Deliveries whose lease Redis did not confirm. They are offered again when Redis answers.
	 */
	struct delivery *aside;
	struct delivery *buckets[DELIVERY_BUCKETS]; /* hash table of held deliveries, by entry */
};

/* Times of a reply with deliveries. The anchor converts Redis's times to local ones. */
struct arrival {
	uint64_t sent_ns;   /* when the reply was asked for */
	uint64_t now_ns;    /* when the reply was read */
	uint64_t anchor_ns; /* the anchor on the local clock */
	uint64_t anchor_us; /* the anchor on Redis's clock */
	/* If a taken delivery is older than this, Redis is asked whether its lease still holds. */
	uint64_t trust_ns;
};

/*
 * Adds the new deliveries of a reply. Leaves out what other programs wrote. Returns how many, or
 * -ENOMEM.
 */
int deliveries_read(struct deliveries *all, const struct reply *reply, uint32_t shard,
                    const struct arrival *arrival);

/* Takes the first untaken delivery for a caller, who then holds it, or returns NULL. */
struct delivery *deliveries_take(struct deliveries *all);

/*
 * Takes a delivery back from its caller, because its lease is unconfirmed, and offers it after
 * until_ns.
 */
void deliveries_set_aside(struct deliveries *all, struct delivery *one, uint64_t until_ns);

/*
 * Offers a server's set-aside deliveries again. Returns when the next one may be offered, or
 * UINT64_MAX.
 */
uint64_t deliveries_bring_back(struct deliveries *all, uint32_t shard, uint64_t now_ns);

/* Removes a server's last untaken delivery, which the caller must free, or returns NULL. */
struct delivery *deliveries_take_last(struct deliveries *all, uint32_t shard);

/* Frees a taken delivery. Returns false if it is unknown, or Redis is being asked about it. */
bool deliveries_drop(struct deliveries *all, const char *entry, const char *id);

void deliveries_fini(struct deliveries *all);

#endif
