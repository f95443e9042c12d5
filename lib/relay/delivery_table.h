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
	/*
	 * The next delivery: in the list of those that no caller has taken, or in a hash bucket of
	 * those that callers hold.
	 */
	struct delivery *next;
	uint64_t ask_ns;   /* from this time on the lease may be over, so the taker asks Redis */
	uint64_t aside_ns; /* if the delivery is set aside: when it may be offered again */
	uint32_t shard;    /* index of the server that sent the delivery */
	/*
	 * True while the taker asks Redis, without the relay's lock, whether this delivery's lease
	 * still holds. deliveries_drop() must not free the delivery then.
	 */
	bool confirming;
	uint64_t due_us;
	uint64_t attempts;
	uint64_t interval_us; /* interval of a periodic task, or 0 */
	/*
	 * How many periods of a periodic task this delivery stands for: 1, plus those that passed
	 * while nobody took it.
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
	 * Deliveries that could not be handed out, because Redis did not say whether their lease
	 * still holds. They are offered again when Redis can be asked.
	 */
	struct delivery *aside;
	struct delivery *buckets[DELIVERY_BUCKETS]; /* hash table of held deliveries, by entry */
};

/*
 * What deliveries_read() needs to compute the age of deliveries. The anchor is one moment as both
 * clocks showed it: anchor_ns on the local clock, anchor_us on Redis's clock.
 */
struct arrival {
	uint64_t sent_ns;   /* when the reply was asked for */
	uint64_t now_ns;    /* when the reply was read */
	uint64_t anchor_ns; /* the anchor on the local clock */
	uint64_t anchor_us; /* the anchor on Redis's clock */
	/*
	 * The longest age at which a delivery is given to a worker without asking Redis whether its
	 * lease still holds.
	 */
	uint64_t trust_ns;
};

/*
 * Adds the deliveries in a reply to XREADGROUP, except known ones and entries of other programs.
 * Returns how many it has added, or -ENOMEM. After -ENOMEM, Redis sends the missing deliveries
 * again when their leases end.
 */
int deliveries_read(struct deliveries *all, const struct reply *reply, uint32_t shard,
                    const struct arrival *arrival);

/*
 * Hands out the first prefetched delivery (read from Redis before a caller asked for it), and puts
 * it into the table of deliveries that callers hold. Returns NULL if none is prefetched.
 */
struct delivery *deliveries_take(struct deliveries *all);

/*
 * Takes a delivery back from its caller, because Redis has not confirmed that the task's lease
 * still holds. Callers can take the delivery again at `until_ns` or later.
 */
void deliveries_set_aside(struct deliveries *all, struct delivery *one, uint64_t until_ns);

/*
 * Lets callers take the set-aside deliveries of server `shard` again. Returns when to call this
 * again, or UINT64_MAX if none is left.
 */
uint64_t deliveries_bring_back(struct deliveries *all, uint32_t shard, uint64_t now_ns);

/*
 * Removes and returns an untaken delivery of server `shard`: the one that callers would get last.
 * Returns NULL if there is none. The caller must free the delivery.
 */
struct delivery *deliveries_take_last(struct deliveries *all, uint32_t shard);

/*
 * Frees a delivery that a caller holds. `entry` is the id of its stream entry, and `id` that of its
 * task. Returns false if callers hold no such delivery, or if its `confirming` is true.
 */
bool deliveries_drop(struct deliveries *all, const char *entry, const char *id);

void deliveries_fini(struct deliveries *all);

#endif
