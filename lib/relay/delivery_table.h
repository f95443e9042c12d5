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
	/* Next delivery in the list of prefetched deliveries, or in a bucket of held deliveries. */
	struct delivery *next;
	uint64_t ask_ns;   /* from this time on the lease may be over, so the taker asks Redis */
	uint64_t aside_ns; /* if the delivery is set aside: when it may be offered again */
	uint32_t shard;    /* index of the server that sent the delivery */
	/*
	 * The taker of this delivery has released the relay's lock and is asking Redis whether the
	 * lease still holds. Until it has the answer, deliveries_drop() must not free the delivery.
	 */
	bool confirming;
	uint64_t due_us;
	uint64_t attempts;
	uint64_t interval_us; /* interval of a periodic task, or 0 */
	/*
	 * how many periods the delivery stands for: 1, plus those that passed while nobody took the
	 * task
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
	 * Deliveries that were set aside because their taker asked the server whether their lease
	 * still holds, and got no answer. They are prefetched again when the connection is open
	 * again.
	 */
	struct delivery *aside;
	struct delivery *buckets[DELIVERY_BUCKETS]; /* hash table of held deliveries, by entry */
};

/*
 * When a reply with deliveries was asked for and read, and the anchor: one moment on both clocks,
 * by which times of Redis are converted.
 */
struct arrival {
	uint64_t sent_ns;
	uint64_t now_ns;
	uint64_t anchor_ns;
	uint64_t anchor_us; /* on Redis's clock */
	/* From this age on, the taker of a delivery asks Redis whether its lease still holds. */
	uint64_t trust_ns;
};

/*
 * Adds the deliveries in the reply to an XREADGROUP, except those that are known already and
 * entries of other programs, which a relay removes. Returns how many it has added, or -ENOMEM; then
 * the rest comes again after its lease.
 */
int deliveries_read(struct deliveries *all, const struct reply *reply, uint32_t shard,
                    const struct arrival *arrival);

/*
 * Makes the first prefetched delivery a held one, and returns it, or returns NULL if none is
 * prefetched.
 */
struct delivery *deliveries_take(struct deliveries *all);

/*
 * Sets a held delivery aside, because its taker could not confirm it. It is offered again at
 * `until_ns` at the earliest.
 */
void deliveries_set_aside(struct deliveries *all, struct delivery *one, uint64_t until_ns);

/*
 * Prefetches again the deliveries of a server that were set aside and may be offered by now; they
 * become the first ones. Returns when to call it again, or UINT64_MAX if none of that server is
 * left.
 */
uint64_t deliveries_bring_back(struct deliveries *all, uint32_t shard, uint64_t now_ns);

/*
 * Removes from the table the last delivery of a server that no caller has taken, and returns it to
 * be freed, or NULL if there is none.
 */
struct delivery *deliveries_take_last(struct deliveries *all, uint32_t shard);

/*
 * Frees a held delivery and its data. Returns false if none has this entry and id, or if its taker
 * is asking Redis just now.
 */
bool deliveries_drop(struct deliveries *all, const char *entry, const char *id);

void deliveries_fini(struct deliveries *all);

#endif
