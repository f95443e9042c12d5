/* SPDX-License-Identifier: MIT */
/* Open, close, ask. One thread opens, one closes; see relay.h for what is in between. */
#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "answer.h"
#include "cancellation.h"
#include "flag.h"
#include "options.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define TIMEOUT_DEFAULT_NS (5 * NS_PER_S)
#define HORIZON_DEFAULT_NS (10 * NS_PER_S)
#define HORIZON_MAX_NS (600 * NS_PER_S)
#define GRACE_DEFAULT_NS (100 * NS_PER_MS)
#define GRACE_MIN_NS NS_PER_MS
#define GRACE_MAX_NS (10 * NS_PER_S)
#define BATCH_DEFAULT 128u
#define BATCH_MAX 1000u
#define REPLICAS_MAX 100u
#define CLOSE_LOOK_NS NS_PER_MS
/* Longer than a round trip within one machine, short beside one between two. */
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
	if ((known.flags & ~TIMERHUB_RELAY_SERVE) != 0 || known.replicas > REPLICAS_MAX ||
	    known.batch > BATCH_MAX || known.grace_ns < GRACE_MIN_NS ||
	    known.grace_ns > GRACE_MAX_NS || known.horizon_ns < known.grace_ns ||
	    known.horizon_ns > HORIZON_MAX_NS)
		return -EINVAL;
	*ret_known = known;
	return 0;
}

/* ---- open ---- */

static int name_ourselves(struct timerhub_relay *relay, const char *consumer)
{
	char host[TIMERHUB_RELAY_ID_BYTES / 2];

	if (getrandom(&relay->seed, sizeof(relay->seed), 0) != (ssize_t)sizeof(relay->seed))
		return -errno;
	if (consumer && (consumer[0] == '\0' || strlen(consumer) >= RELAY_CONSUMER_BYTES))
		return -EINVAL;
	if (gethostname(host, sizeof(host)) < 0)
		(void)snprintf(host, sizeof(host), "host");
	host[sizeof(host) - 1] = '\0';
	for (uint32_t i = 0; i < relay->shard_count; i++) {
		struct shard *shard = &relay->shards[i];

		/* Another name for each: then other relays lead in other shards. */
		(void)snprintf(shard->name, sizeof(shard->name), "%.28s-%d-%016" PRIx64, host,
		               getpid(), relay->seed + i);
		shard->random = (relay->seed + i) | 1;
		shard->must_recover = consumer != NULL;
	}
	(void)snprintf(relay->consumer, sizeof(relay->consumer), "%s",
	               consumer ? consumer : relay->shards[0].name);
	return 0;
}

static void init_shard(struct timerhub_relay *relay, struct shard *shard,
                       const struct address *address, const struct keys *keys)
{
	*shard = (struct shard){
		.relay = relay,
		.index = relay->shard_count,
		.address = *address,
		.keys = *keys,
		.wait = { .kind = REQUEST_WAIT },
		.look = { .kind = REQUEST_LOOK },
		.leave = { .kind = REQUEST_LEAVE },
		.recover = { .kind = REQUEST_RECOVER },
	};
	seat_init(&shard->seat, relay->grace_us);
}

/* A shard for each address. */
static int make_shards(struct timerhub_relay *relay, const char *queue, const char *redis)
{
	struct keys keys;
	int result = keys_init(&keys, queue);

	if (result < 0)
		return result;
	relay->shards = calloc(KEYS_SHARDS_MAX, sizeof(*relay->shards));
	if (!relay->shards)
		return -ENOMEM;
	do {
		struct address address;

		result = address_read(&address, &redis);
		if (result == 0 && relay->shard_count == KEYS_SHARDS_MAX)
			result = -EINVAL;
		if (result < 0)
			return result;
		init_shard(relay, &relay->shards[relay->shard_count], &address, &keys);
		relay->shard_count++;
	} while (redis);
	return 0;
}

/* The first connection: its failure is open's. */
static int connect_first(struct shard *shard)
{
	uint64_t begin_ns = nap_now_ns();
	uint64_t now_ns = begin_ns;

	while (!link_open(shard, &shard->command, now_ns)) {
		struct pollfd fds[2];

		if (answer_is_final(shard->why) || now_ns - begin_ns >= shard->relay->timeout_ns)
			return shard->why;
		nap_sleep(shard->nap, fds, 0, shard->command.retry_ns);
		now_ns = nap_now_ns();
	}
	return 0;
}

static int open_shards(struct timerhub_relay *relay)
{
	int result = 0;

	for (uint32_t i = 0; i < relay->shard_count && result == 0; i++) {
		result = nap_open(&relay->shards[i].nap);
		if (result == 0)
			result = connect_first(&relay->shards[i]);
	}
	for (uint32_t i = 0; i < relay->shard_count && result == 0; i++)
		result = shard_start(&relay->shards[i]);
	return result;
}

static int open_parts(struct timerhub_relay *relay)
{
	int result = life_open(&relay->life);

	if (result < 0)
		return result;
	relay->ready_fd = flag_open();
	return relay->ready_fd < 0 ? relay->ready_fd : open_shards(relay);
}

/* What open has made so far; fine on a relay opened halfway, and in a forked child. */
static void free_relay(struct timerhub_relay *relay)
{
	for (uint32_t i = 0; i < relay->shard_count; i++) {
		struct shard *shard = &relay->shards[i];

		wire_close(shard->command.wire);
		wire_close(shard->taker.wire);
		wire_close(shard->bells.wire);
		nap_close(shard->nap);
	}
	free(relay->shards);
	deliveries_fini(&relay->deliveries);
	if (relay->ready_fd >= 0)
		(void)close(relay->ready_fd);
	lock_fini(&relay->lock);
	life_close(&relay->life);
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
	lock_init(&relay->lock);
	relay->watcher = *watcher;
	relay->ready_fd = -1;
	relay->serves = (known.flags & TIMERHUB_RELAY_SERVE) != 0;
	relay->timeout_ns = known.timeout_ns;
	relay->horizon_us = known.horizon_ns / NS_PER_US;
	relay->grace_us = known.grace_ns / NS_PER_US;
	relay->batch = known.batch;
	relay->replicas = known.replicas;
	relay->hold_ns = HOLD_NS;
	result = make_shards(relay, queue, known.redis);
	if (result == 0)
		result = name_ourselves(relay, known.consumer);
	if (result == 0)
		result = open_parts(relay);
	if (result < 0) {
		shards_end(relay); /* the shards whose threads run already */
		free_relay(relay);
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

static void send_takers_away(struct timerhub_relay *relay)
{
	lock_take(&relay->lock);
	relay->closing = true;
	flag_raise(relay->ready_fd);
	while (relay->inside > 0) {
		uint32_t number = ticket_number(&relay->takers) + 1;

		ticket_set(&relay->takers, number);
		lock_give(&relay->lock);
		ticket_wake(&relay->takers, UINT32_MAX);
		ticket_wait(&relay->takers, number, CLOSE_LOOK_NS);
		lock_take(&relay->lock);
	}
	lock_give(&relay->lock);
}

void timerhub_relay_close(struct timerhub_relay *relay)
{
	CANCELLATION_HELD;
	if (!relay)
		return;
	if (life_goes_on(&relay->life)) {
		send_takers_away(relay);
		shards_end(relay);
	}
	free_relay(relay);
}

/* ---- ask ---- */

int relay_check(const struct timerhub_relay *relay)
{
	if (!relay)
		return -EINVAL;
	return life_goes_on(&relay->life) ? 0 : -EOWNERDEAD;
}

struct shard *relay_shard_of(struct timerhub_relay *relay, const char *id)
{
	return &relay->shards[keys_shard(id, relay->shard_count)];
}

/* The part of the counters that is the servers'. */
static int ask_shards(struct timerhub_relay *relay, struct timerhub_relay_stats *queue)
{
	uint64_t relays = 0;
	int result = 0;

	for (uint32_t i = 0; i < relay->shard_count && result == 0; i++) {
		struct request request = { .kind = REQUEST_STAT, .stats = queue };

		queue->relays = 0;
		result = shard_ask(&relay->shards[i], &request);
		relays = queue->relays > relays ? queue->relays : relays; /* each is on all */
	}
	queue->relays = relays;
	return result;
}

int timerhub_relay_stats(struct timerhub_relay *relay, struct timerhub_relay_stats *ret_stats)
{
	CANCELLATION_HELD;
	struct timerhub_relay_stats queue = { .due = 0 };
	int result = relay_check(relay);

	if (result < 0)
		return result;
	if (!ret_stats)
		return -EINVAL;
	result = ask_shards(relay, &queue);
	if (result < 0)
		return result;
	lock_take(&relay->lock);
	*ret_stats = relay->stats;
	lock_give(&relay->lock);
	memcpy(ret_stats, &queue, offsetof(struct timerhub_relay_stats, put));
	return 0;
}
