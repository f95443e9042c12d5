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
	 * True while the thread that takes this delivery asks Redis whether its lease still holds,
	 * that is, whether no other worker may get the task. The thread has released the relay's
	 * lock, so deliveries_drop() must not free the delivery.
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
	 * Deliveries that could not be handed out, because Redis did not answer whether their lease
	 * still holds. They are offered again when it can be asked once more.
	 */
	struct delivery *aside;
	struct delivery *buckets[DELIVERY_BUCKETS]; /* hash table of held deliveries, by entry */
};

/*
 * Says when a reply with deliveries was asked for and when it was read. Times of Redis's clock are
 * converted to the local clock by an anchor: one moment of which the times on both clocks are
 * known.
 */
struct arrival {
	uint64_t sent_ns;
	uint64_t now_ns;
	uint64_t anchor_ns;
	uint64_t anchor_us; /* on Redis's clock */
	/*
	 * If a delivery is older than this when it is taken, Redis is asked first whether its lease
	 * still holds.
	 */
	uint64_t trust_ns;
};

/*
 * Adds the deliveries in a reply to XREADGROUP to the table. Those that it already has, and entries
 * that other programs have written, are left out. Returns how many it has added. After -ENOMEM the
 * rest comes again when the leases are over.
 */
int deliveries_read(struct deliveries *all, const struct reply *reply, uint32_t shard,
                    const struct arrival *arrival);

/*
 * Takes the first of the deliveries that were read from Redis in advance, for a caller, who holds
 * it from then on. Returns NULL if there is none.
 */
struct delivery *deliveries_take(struct deliveries *all);

/*
 * Takes a delivery back from its caller, because Redis has not confirmed that the task's lease
 * still holds. Callers can take the delivery again at `until_ns` or later.
 */
void deliveries_set_aside(struct deliveries *all, struct delivery *one, uint64_t until_ns);

/*
 * Moves deliveries of server `shard` that deliveries_set_aside() has put aside to the head of the
 * list from which callers take. Begins with the delivery that was put aside last, and stops at one
 * whose `until_ns` has not come. Returns that `until_ns`, or UINT64_MAX if no delivery of the
 * server is put aside any more.
 */
uint64_t deliveries_bring_back(struct deliveries *all, uint32_t shard, uint64_t now_ns);

/*
 * Removes and returns the last delivery of server `shard` that no caller has taken, or returns NULL
 * if there is none. The caller must free the delivery.
 */
struct delivery *deliveries_take_last(struct deliveries *all, uint32_t shard);

/*
 * Frees a delivery that a caller has taken, and its data. Returns false if there is none with this
 * stream entry and task id, or while the taker is asking Redis whether the lease still holds.
 */
bool deliveries_drop(struct deliveries *all, const char *entry, const char *id);

void deliveries_fini(struct deliveries *all);

#endif
