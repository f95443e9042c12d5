/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes a queue, and asks its servers for their counters. A close first makes waiting
 * takes return. No other thread may be in another call then, nor begin one.
 */
#define _GNU_SOURCE
#include "relay/relay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/options.h"
#include "relay/error_reply.h"
#include "relay/functions.h"
#include "relay/url_file.h"

#define TIMEOUT_DEFAULT_NS (5 * NS_PER_S)
#define HORIZON_DEFAULT_NS (10 * NS_PER_S)
#define HORIZON_MAX_NS (600 * NS_PER_S)
#define GRACE_DEFAULT_NS (100 * NS_PER_MS)
#define GRACE_MIN_NS NS_PER_MS
#define GRACE_MAX_NS (10 * NS_PER_S)
#define BATCH_DEFAULT 128u
#define BATCH_MAX 1000u
#define REPLICAS_MAX 100u
/*
 * How often a close wakes the threads that wait in take, because a thread may begin to wait just
 * after a wake-up.
 */
#define CLOSE_LOOK_NS NS_PER_MS
/* How long threads in timerhub_relay_take() still wait for a server after a stop or close. */
#define READS_END_NS NS_PER_S
/* How often an open checks whether its time is over. */
#define OPEN_LOOK_NS (20 * NS_PER_MS)
/* How long an open that could succeed waits for the first answers of the other servers. */
#define OTHERS_NS (1500 * NS_PER_MS)
/*
 * How long a new put waits for the reply to an earlier one, to share a command with others. It is
 * more than a round trip within a machine, and much less than between two.
 */
#define HOLD_NS (200 * NS_PER_US)

/* ---- config ---- */

static int read_config(struct timerhub_relay_config *ret_known,
                       const struct timerhub_relay_config *config)
{
	struct timerhub_relay_config known = { .size = sizeof(known) };
	int result = options_read(&known, sizeof(known), sizeof(known), config);

	if (result < 0)
		return result;
	if (known.timeout_ns == 0)
		known.timeout_ns = TIMEOUT_DEFAULT_NS;
	if (known.horizon_ns == 0)
		known.horizon_ns = HORIZON_DEFAULT_NS;
	if (known.grace_ns == 0)
		known.grace_ns = GRACE_DEFAULT_NS;
	if (known.batch == 0)
		known.batch = BATCH_DEFAULT;
	if ((known.flags & ~(TIMERHUB_RELAY_SERVE | TIMERHUB_RELAY_NO_SERVE)) != 0 ||
	    known.flags == (TIMERHUB_RELAY_SERVE | TIMERHUB_RELAY_NO_SERVE) ||
	    known.replicas > REPLICAS_MAX || known.batch > BATCH_MAX ||
	    known.grace_ns < GRACE_MIN_NS || known.grace_ns > GRACE_MAX_NS ||
	    known.horizon_ns < known.grace_ns || known.horizon_ns > HORIZON_MAX_NS)
		return -EINVAL;
	*ret_known = known;
	return 0;
}

/* ---- open ---- */

static int name_ourselves(struct timerhub_relay *relay, const char *consumer)
{
	char host[TIMERHUB_RELAY_ID_BYTES / 2];

	if (consumer && (consumer[0] == '\0' || strlen(consumer) >= SHARED_CONSUMER_BYTES))
		return -EINVAL;
	if (gethostname(host, sizeof(host)) < 0)
		(void)snprintf(host, sizeof(host), "host");
	host[sizeof(host) - 1] = '\0';
	for (uint32_t i = 0; i < relay->shared.shard_count; i++) {
		struct shard *shard = &relay->shards[i];

		/*
		 * A relay has another name on each shard, so that its rank is not the same on all
		 * of them.
		 */
		(void)snprintf(shard->client.name, sizeof(shard->client.name),
		               "%.28s-%d-%016" PRIx64, host, getpid(), relay->seed + i);
		(void)snprintf(shard->client.holder, sizeof(shard->client.holder),
		               FUNCTIONS_OWN "-%016" PRIx64, relay->seed);
		shard->client.epoch = 1;
		shard->pipeline.must_recover = consumer != NULL;
	}
	(void)snprintf(relay->shared.consumer, sizeof(relay->shared.consumer), "%s",
	               consumer ? consumer : relay->shards[0].client.name);
	return 0;
}

/* Prepares a shard (a server, with the thread that serves it) for each address in the list. */
static int make_shards(struct timerhub_relay *relay, const char *queue, const char *list)
{
	struct keys keys;
	int result = keys_init(&keys, queue);

	if (result < 0)
		return result;
	if (getrandom(&relay->seed, sizeof(relay->seed), 0) != (ssize_t)sizeof(relay->seed))
		return -errno;
	relay->shards = calloc(KEYS_SHARDS_MAX, sizeof(*relay->shards));
	if (!relay->shards)
		return -ENOMEM;
	do {
		struct address address;
		struct shard *shard;

		result = address_read(&address, &list);
		if (result == 0 && relay->shared.shard_count == KEYS_SHARDS_MAX)
			result = -EINVAL;
		if (result < 0)
			return result;
		address.file = relay->url_file;
		address.index = relay->shared.shard_count;
		address.slot = keys.slot;
		shard = &relay->shards[relay->shared.shard_count];
		shard->client.shard = relay->shared.shard_count++;
		shard->client.keys = keys;
		shard_init(shard, &relay->shared, &address, relay->seed + 4 * shard->client.shard);
	} while (list);
	return 0;
}

static int find_servers(struct timerhub_relay *relay, const char *queue, const char *redis)
{
	const char *list;
	char *text;
	int result = url_file_open(redis, &list, &text);

	if (result == 0 && text) {
		relay->url_file = strdup(redis + 1);
		result = relay->url_file ? 0 : -ENOMEM;
	}
	if (result == 0)
		result = make_shards(relay, queue, list);
	free(text);
	return result;
}

/*
 * Returns true if timerhub_relay_open() need not wait any longer, and stores in *ret_result what it
 * returns. Called with the relay's lock held.
 */
static bool may_end(const struct timerhub_relay *relay, uint64_t passed_ns, int *ret_result)
{
	bool untried = false, connected = false;
	int error = 0;

	for (uint32_t i = 0; i < relay->shared.shard_count; i++) {
		int told = relay->shards[i].told;

		if (told == -EEXIST || told == -EINVAL) {
			*ret_result = told;
			return true;
		}
		untried |= told == SHARD_UNTRIED;
		connected |= told == 0;
		if (told < 0 && (error == 0 || error_reply_is_final(told)))
			error = told;
	}
	*ret_result = connected ? 0 : error;
	if (connected)
		/*
		 * Go on without servers that do not answer, but first wait OTHERS_NS for them,
		 * because one of them may report that the list of servers is wrong.
		 */
		return !untried || passed_ns >= OTHERS_NS;
	return !untried && (error_reply_is_final(error) || passed_ns >= relay->shared.timeout_ns);
}

static int wait_for_servers(struct timerhub_relay *relay)
{
	struct shared *shared = &relay->shared;
	uint64_t begin_ns = sleeper_now_ns();
	uint32_t number;
	int result;

	lock_take(&shared->lock);
	while (!may_end(relay, sleeper_now_ns() - begin_ns, &result)) {
		number = eventcount_number(&shared->tries);
		lock_give(&shared->lock);
		eventcount_wait(&shared->tries, number, OPEN_LOOK_NS);
		lock_take(&shared->lock);
	}
	lock_give(&shared->lock);
	return result;
}

static int open_shards(struct timerhub_relay *relay)
{
	int result = 0;

	for (uint32_t i = 0; i < relay->shared.shard_count && result == 0; i++)
		result = shard_start(&relay->shards[i]);
	return result < 0 ? result : wait_for_servers(relay);
}

static int open_parts(struct timerhub_relay *relay)
{
	int result = fork_check_open(&relay->fork_check, sizeof(uint32_t));

	if (result < 0)
		return result;
	relay->shared.ready_fd = bell_open();
	return relay->shared.ready_fd < 0 ? relay->shared.ready_fd : open_shards(relay);
}

/*
 * Frees an open or half-open relay. In a forked child (`is_copy`), it does not free memory that
 * threads of the parent may have been changing.
 */
static void free_relay(struct timerhub_relay *relay, bool is_copy)
{
	for (uint32_t i = 0; i < relay->shared.shard_count; i++) {
		if (is_copy)
			shard_leave(&relay->shards[i]);
		else
			shard_fini(&relay->shards[i]);
	}
	free(relay->shards);
	free(relay->url_file);
	if (!is_copy)
		deliveries_fini(&relay->shared.deliveries);
	bell_close(relay->shared.ready_fd);
	submissions_fini(&relay->submissions, is_copy);
	lock_fini(&relay->shared.lock);
	fork_check_close(&relay->fork_check);
	free(relay);
}

int relay_open(struct timerhub_relay **ret_relay, const char *queue,
               const struct timerhub_relay_config *config, const struct watcher *watcher)
{
	struct timerhub_relay_config known;
	struct timerhub_relay *relay;
	int result;

	if (!ret_relay || !queue)
		return -EINVAL;
	result = read_config(&known, config);
	if (result < 0)
		return result;
	relay = calloc(1, sizeof(*relay));
	if (!relay)
		return -ENOMEM;
	lock_init(&relay->shared.lock);
	lock_init(&relay->submissions.lock);
	relay->shared.watcher = *watcher;
	relay->shared.ready_fd = -1;
	relay->shared.serves = (known.flags & TIMERHUB_RELAY_SERVE) != 0;
	relay->shared.never_serves = (known.flags & TIMERHUB_RELAY_NO_SERVE) != 0;
	relay->shared.timeout_ns = known.timeout_ns;
	relay->shared.horizon_us = known.horizon_ns / NS_PER_US;
	relay->shared.grace_us = known.grace_ns / NS_PER_US;
	relay->shared.batch = known.batch;
	relay->shared.replicas = known.replicas;
	relay->shared.hold_ns = HOLD_NS;
	relay->shared.reads_end_ns = UINT64_MAX;
	result = find_servers(relay, queue, known.redis);
	if (result == 0)
		result = name_ourselves(relay, known.consumer);
	if (result == 0)
		result = open_parts(relay);
	if (result < 0) {
		/* End the threads of the shards, if open_parts() has started any. */
		shards_end(relay->shards, relay->shared.shard_count);
		free_relay(relay, false);
		return result;
	}
	*ret_relay = relay;
	return 0;
}

int timerhub_relay_open(struct timerhub_relay **ret_relay, const char *queue,
                        const struct timerhub_relay_config *config)
{
	CANCELLATION_HELD;

	return relay_open(ret_relay, queue, config, &(struct watcher){ .tell = NULL });
}

/* ---- close ---- */

void relay_wake_shards(struct timerhub_relay *relay)
{
	for (uint32_t i = 0; i < relay->shared.shard_count; i++)
		mailbox_wake(&relay->shards[i].mailbox);
}

void relay_end_reads(struct timerhub_relay *relay)
{
	if (relay->shared.reads_end_ns == UINT64_MAX)
		relay->shared.reads_end_ns = sleeper_now_ns() + READS_END_NS;
	relay_wake_shards(relay);
}

static void send_takers_away(struct timerhub_relay *relay)
{
	lock_take(&relay->shared.lock);
	relay->shared.closing = true;
	relay_end_reads(relay);
	bell_ring(relay->shared.ready_fd);
	while (relay->inside > 0) {
		uint32_t number;

		shared_wake_takers(&relay->shared);
		number = eventcount_number(&relay->shared.takers);
		lock_give(&relay->shared.lock);
		eventcount_wait(&relay->shared.takers, number, CLOSE_LOOK_NS);
		lock_take(&relay->shared.lock);
	}
	lock_give(&relay->shared.lock);
}

void timerhub_relay_close(struct timerhub_relay *relay)
{
	CANCELLATION_HELD;
	bool is_copy;

	if (!relay)
		return;
	is_copy = !fork_check_goes_on(&relay->fork_check);
	if (!is_copy) {
		send_takers_away(relay);
		shards_end(relay->shards, relay->shared.shard_count);
		/*
		 * Clear the descriptor, because it would go on to wake an epoll set if a child of
		 * this process has it too.
		 */
		bell_clear(relay->shared.ready_fd);
	}
	free_relay(relay, is_copy);
}

/* ---- ask ---- */

int relay_may_call(const struct timerhub_relay *relay)
{
	if (!relay)
		return -EINVAL;
	return fork_check_result(&relay->fork_check);
}

struct shard *relay_shard_of(struct timerhub_relay *relay, const char *id)
{
	return &relay->shards[keys_shard(id, relay->shared.shard_count)];
}

/* Asks every server for its counters, and adds them up. */
static int ask_shards(struct timerhub_relay *relay, struct timerhub_relay_stats *queue)
{
	uint64_t relays = 0;
	int result = 0;

	for (uint32_t i = 0; i < relay->shared.shard_count && result == 0; i++) {
		struct request request = { .kind = REQUEST_STAT, .stats = queue };

		queue->relays = 0;
		result = mailbox_ask(&relay->shards[i].mailbox, &request);
		/*
		 * Each server counts all processes that serve the queue, so take the largest
		 * number, not the sum.
		 */
		relays = queue->relays > relays ? queue->relays : relays;
	}
	queue->relays = relays;
	return result;
}

int timerhub_relay_stats(struct timerhub_relay *relay, struct timerhub_relay_stats *ret_stats)
{
	CANCELLATION_HELD;
	struct timerhub_relay_stats queue = { .waiting = 0 };
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if (!ret_stats)
		return -EINVAL;
	result = ask_shards(relay, &queue);
	if (result < 0)
		return result;
	lock_take(&relay->shared.lock);
	*ret_stats = relay->shared.stats;
	lock_give(&relay->shared.lock);
	memcpy(ret_stats, &queue, offsetof(struct timerhub_relay_stats, put));
	ret_stats->parked_cut = queue.parked_cut;
	ret_stats->paused = queue.paused > 0;
	return 0;
}
