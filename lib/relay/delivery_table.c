/* SPDX-License-Identifier: MIT */
/*
 * Keeps the tasks that Redis has delivered to this process, until a caller has taken and answered
 * them (delivery_table.h). The tests of take, done and retry in tests/relay/test_calls.c also test
 * this table.
 *
 * lease_begin_ns(): If somebody has set Redis's clock, the time in an entry's id may lie in the
 * future here. The lease then counts from the time at which the read was sent.
 *
 * read_periods(): The field `every` of a periodic task is its interval in us. If the task was
 * retried, an @ and a time follow: when the task was due before the first retry. The field `due`
 * has the time of the retry, from which no periods are counted.
 *
 * deliveries_bring_back() puts each delivery at the front of the list that callers take from. It
 * begins with the delivery that was set aside last, so that all keep their order. It stops at a
 * delivery whose time has not come; those that were set aside earlier then wait too.
 */
#include "relay/delivery_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"
#include "relay/wire.h"

#define ENTRY_FIELDS 8u
#define PERIODIC_FIELDS 10u
#define US_PER_MS UINT64_C(1000)
#define DRIFT 1024 /* clocks differ in speed by less than 1 in DRIFT */

static struct delivery **bucket_of(struct deliveries *all, const char *entry)
{
	uint32_t hash = 2166136261u; /* initial value of the FNV-1a hash */

	for (; *entry; entry++)
		hash = (hash ^ (unsigned char)*entry) * 16777619u;
	return &all->buckets[hash % DELIVERY_BUCKETS];
}

static bool is_it(const struct delivery *one, const char *entry, const char *id)
{
	return strcmp(one->entry, entry) == 0 && strcmp(one->id, id) == 0;
}

/*
 * Finds a delivery that a caller has taken. Returns the address of the pointer to it, or of the
 * NULL at the end of its hash bucket.
 */
static struct delivery **find(struct deliveries *all, const char *entry, const char *id)
{
	struct delivery **at = bucket_of(all, entry);

	while (*at && !is_it(*at, entry, id))
		at = &(*at)->next;
	return at;
}

static bool is_known(struct deliveries *all, const char *entry, const char *id)
{
	for (const struct delivery *one = all->first; one; one = one->next)
		if (is_it(one, entry, id))
			return true;
	for (const struct delivery *one = all->aside; one; one = one->next)
		if (is_it(one, entry, id))
			return true;
	return *find(all, entry, id) != NULL;
}

/* ---- from Redis ---- */

/*
 * Returns whether timerhub.lua has written the entry, which then has the fields `id`, `due`, `n`
 * and `data`, and for a periodic task `every`.
 */
static bool is_ours(const struct reply *entry)
{
	const struct reply *fields = reply_at(entry, 1), *id = reply_at(fields, 1);

	return (reply_count(fields) == ENTRY_FIELDS ||
	        (reply_count(fields) == PERIODIC_FIELDS && reply_is(fields, 8, "every"))) &&
	       reply_is(fields, 0, "id") && reply_is(fields, 2, "due") &&
	       reply_is(fields, 4, "n") && reply_is(fields, 6, "data") &&
	       reply_len(id) < TIMERHUB_RELAY_ID_BYTES && strlen(reply_text(id)) == reply_len(id) &&
	       reply_len(reply_at(entry, 0)) < TIMERHUB_RELAY_DELIVERY_BYTES;
}

/*
 * Returns the earliest time, on the local clock, at which the lease of an entry can have begun. The
 * lease begins after Redis has added the entry, and after the read was sent.
 */
static uint64_t lease_begin_ns(const char *entry, const struct arrival *arrival)
{
	/* An entry's id begins with the time in ms at which Redis added the entry. */
	uint64_t added_us = strtoull(entry, NULL, 10) * US_PER_MS;
	int64_t since_ns = (int64_t)((added_us - arrival->anchor_us) * NS_PER_US);
	int64_t drift_ns = (since_ns < 0 ? -since_ns : since_ns) / DRIFT;
	uint64_t added_ns = arrival->anchor_ns + (uint64_t)(since_ns - drift_ns);

	return added_ns > arrival->sent_ns && added_ns <= arrival->now_ns ? added_ns
	                                                                  : arrival->sent_ns;
}

/*
 * Reads a periodic task's field `every`, and adds to one->periods how many periods have passed on
 * Redis's clock.
 */
static void read_periods(struct delivery *one, const char *every, const struct arrival *arrival)
{
	uint64_t now_us = arrival->anchor_us + (arrival->now_ns - arrival->anchor_ns) / NS_PER_US;
	uint64_t base_us = one->due_us;
	char *end;

	one->interval_us = strtoull(every, &end, 10);
	/*
	 * If the task was retried, the field also has an @ and the time at which the task was due
	 * before its first retry.
	 */
	if (*end == '@')
		base_us = strtoull(end + 1, NULL, 10);
	if (one->interval_us > 0 && now_us > base_us)
		one->periods += (now_us - base_us) / one->interval_us;
}

static int add_delivery(struct deliveries *all, const struct reply *entry, uint32_t shard,
                        const struct arrival *arrival)
{
	const struct reply *fields = reply_at(entry, 1), *data = reply_at(fields, 7);
	struct delivery *one = malloc(sizeof(*one) + reply_len(data) + 1);

	if (!one)
		return -ENOMEM;
	*one = (struct delivery){
		.ask_ns =
			lease_begin_ns(reply_text(reply_at(entry, 0)), arrival) + arrival->trust_ns,
		.shard = shard,
		.due_us = (uint64_t)reply_integer_at(fields, 3),
		.attempts = (uint64_t)reply_integer_at(fields, 5),
		.periods = 1,
		.data_len = reply_len(data),
	};
	if (reply_count(fields) == PERIODIC_FIELDS)
		read_periods(one, reply_text(reply_at(fields, 9)), arrival);
	memcpy(one->id, reply_text(reply_at(fields, 1)), reply_len(reply_at(fields, 1)) + 1);
	memcpy(one->entry, reply_text(reply_at(entry, 0)), reply_len(reply_at(entry, 0)) + 1);
	memcpy(one->data, reply_text(data), reply_len(data) + 1);
	invariant(!all->first == !all->last && !all->first == (all->prefetched == 0));
	if (all->last)
		all->last->next = one;
	else
		all->first = one;
	all->last = one;
	all->prefetched++;
	return 0;
}

int deliveries_read(struct deliveries *all, const struct reply *reply, uint32_t shard,
                    const struct arrival *arrival)
{
	const struct reply *entries = reply_at(reply_at(reply, 0), 1);
	int count = 0;

	for (size_t i = 0; i < reply_count(entries); i++) {
		const struct reply *entry = reply_at(entries, i);
		int result;

		if (!is_ours(entry) || is_known(all, reply_text(reply_at(entry, 0)),
		                                reply_text(reply_at(reply_at(entry, 1), 1))))
			continue;
		result = add_delivery(all, entry, shard, arrival);
		if (result < 0)
			return result;
		count++;
	}
	return count;
}

/* ---- to callers ---- */

static struct delivery *take_out(struct deliveries *all)
{
	struct delivery *one = all->first;

	if (!one)
		return NULL;
	invariant(all->prefetched > 0 && (one->next != NULL) == (one != all->last));
	all->first = one->next;
	if (!all->first)
		all->last = NULL;
	all->prefetched--;
	return one;
}

struct delivery *deliveries_take(struct deliveries *all)
{
	struct delivery *one = take_out(all), **bucket;

	if (!one)
		return NULL;
	bucket = bucket_of(all, one->entry);
	one->next = *bucket;
	*bucket = one;
	return one;
}

void deliveries_set_aside(struct deliveries *all, struct delivery *one, uint64_t until_ns)
{
	struct delivery **at = find(all, one->entry, one->id);

	invariant(*at == one); /* it is held */
	*at = one->next;
	one->aside_ns = until_ns;
	one->next = NULL;
	for (at = &all->aside; *at; at = &(*at)->next)
		;
	*at = one;
}

/*
 * Finds the last delivery of a server in a list. Returns the address of the pointer to it, or NULL.
 */
static struct delivery **last_of(struct delivery **list, uint32_t shard)
{
	struct delivery **found = NULL;

	for (struct delivery **at = list; *at; at = &(*at)->next)
		if ((*at)->shard == shard)
			found = at;
	return found;
}

uint64_t deliveries_bring_back(struct deliveries *all, uint32_t shard, uint64_t now_ns)
{
	struct delivery **at;

	while ((at = last_of(&all->aside, shard)) && (*at)->aside_ns <= now_ns) {
		struct delivery *one = *at;

		*at = one->next;
		one->next = all->first;
		all->first = one;
		if (!all->last)
			all->last = one;
		all->prefetched++;
	}
	return at ? (*at)->aside_ns : UINT64_MAX;
}

struct delivery *deliveries_take_last(struct deliveries *all, uint32_t shard)
{
	struct delivery **at = last_of(&all->first, shard), *one;
	bool is_prefetched = at != NULL;

	if (!at)
		at = last_of(&all->aside, shard);
	if (!at)
		return NULL;
	one = *at;
	*at = one->next;
	if (!is_prefetched)
		return one;
	invariant(all->prefetched > 0);
	all->prefetched--;
	all->last = all->first;
	while (all->last && all->last->next)
		all->last = all->last->next;
	return one;
}

bool deliveries_drop(struct deliveries *all, const char *entry, const char *id)
{
	struct delivery **at = find(all, entry, id), *one = *at;

	if (!one || one->confirming)
		return false;
	*at = one->next;
	free(one);
	return true;
}

void deliveries_fini(struct deliveries *all)
{
	struct delivery *one;

	while ((one = take_out(all)))
		free(one);
	while ((one = all->aside)) {
		all->aside = one->next;
		free(one);
	}
	for (unsigned i = 0; i < DELIVERY_BUCKETS; i++)
		while ((one = all->buckets[i])) {
			all->buckets[i] = one->next;
			free(one);
		}
}
