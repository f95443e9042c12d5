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

#include "cancellation.h"
#include "flag.h"

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
/* A caller's option struct may be as large as this; a later version's will not be larger. */
#define OPTIONS_MAX_BYTES 4096u
#define CLOSE_LOOK_NS NS_PER_MS

/* ---- config ---- */

static int read_options(struct timerhub_relay_config *known,
                        const struct timerhub_relay_config *config)
{
	const unsigned char *bytes = (const unsigned char *)config;

	if (!config)
		return 0;
	if (config->size < sizeof(*known))
		return -EINVAL;
	if (config->size > OPTIONS_MAX_BYTES)
		return -E2BIG;
	for (size_t i = sizeof(*known); i < config->size; i++)
		if (bytes[i] != 0)
			return -E2BIG;
	*known = *config;
	return 0;
}

static int read_config(struct timerhub_relay_config *ret_known,
                       const struct timerhub_relay_config *config)
{
	struct timerhub_relay_config known = { .size = sizeof(known) };
	int result = read_options(&known, config);

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
	if ((known.flags & ~TIMERHUB_RELAY_SERVE) != 0 || known.reserved != 0 ||
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
	relay->random = relay->seed | 1;
	if (gethostname(host, sizeof(host)) < 0)
		(void)snprintf(host, sizeof(host), "host");
	host[sizeof(host) - 1] = '\0';
	(void)snprintf(relay->name, sizeof(relay->name), "%.28s-%d-%016" PRIx64, host, getpid(),
	               relay->seed);
	if (consumer && (consumer[0] == '\0' || strlen(consumer) >= RELAY_CONSUMER_BYTES))
		return -EINVAL;
	(void)snprintf(relay->consumer, sizeof(relay->consumer), "%s",
	               consumer ? consumer : relay->name);
	relay->must_recover = consumer != NULL;
	return 0;
}

static int read_address(struct timerhub_relay *relay, const char *redis)
{
	int result = address_read(&relay->address, &redis);

	if (result < 0)
		return result;
	return redis ? -EOPNOTSUPP : 0;
}

/* Nothing that another try would cure. */
static bool is_final(int error)
{
	return error == -EACCES || error == -EOPNOTSUPP || error == -EINVAL || error == -EBADMSG ||
	       error == -ENOMEM || error == -EPROTO;
}

/* The first connection: its failure is open's. */
static int connect_first(struct timerhub_relay *relay)
{
	uint64_t begin_ns = nap_now_ns(relay->nap);
	uint64_t now_ns = begin_ns;

	while (!link_open(relay, &relay->command, now_ns)) {
		struct pollfd fds[2];

		if (is_final(relay->why) || now_ns - begin_ns >= relay->timeout_ns)
			return relay->why;
		nap_sleep(relay->nap, fds, 0, relay->command.retry_ns);
		now_ns = nap_now_ns(relay->nap);
	}
	return 0;
}

static int open_parts(struct timerhub_relay *relay)
{
	int result = life_open(&relay->life);

	if (result == 0)
		result = nap_open(&relay->nap);
	if (result == 0) {
		relay->ready_fd = flag_open();
		result = relay->ready_fd < 0 ? relay->ready_fd : 0;
	}
	if (result == 0)
		result = connect_first(relay);
	return result == 0 ? relay_start(relay) : result;
}

/* What open has made so far; fine on a relay opened halfway, and in a forked child. */
static void free_relay(struct timerhub_relay *relay)
{
	wire_close(relay->command.wire);
	wire_close(relay->taker.wire);
	wire_close(relay->bells.wire);
	deliveries_fini(&relay->deliveries);
	nap_close(relay->nap);
	if (relay->ready_fd >= 0)
		(void)close(relay->ready_fd);
	lock_fini(&relay->lock);
	life_close(&relay->life);
	free(relay);
}

int timerhub_relay_open(struct timerhub_relay **ret_relay, const char *queue,
                        const struct timerhub_relay_config *config)
{
	CANCELLATION_HELD;
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
	relay->ready_fd = -1;
	relay->serves = (known.flags & TIMERHUB_RELAY_SERVE) != 0;
	relay->timeout_ns = known.timeout_ns;
	relay->horizon_us = known.horizon_ns / NS_PER_US;
	relay->grace_us = known.grace_ns / NS_PER_US;
	relay->batch = known.batch;
	relay->look.kind = REQUEST_LOOK;
	relay->leave.kind = REQUEST_LEAVE;
	relay->recover.kind = REQUEST_RECOVER;
	seat_init(&relay->seat, relay->grace_us);
	result = keys_init(&relay->keys, queue);
	if (result == 0)
		result = read_address(relay, known.redis);
	if (result == 0)
		result = name_ourselves(relay, known.consumer);
	if (result == 0)
		result = open_parts(relay);
	if (result < 0) {
		free_relay(relay);
		return result;
	}
	*ret_relay = relay;
	return 0;
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
		relay_stop(relay);
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

int timerhub_relay_stats(struct timerhub_relay *relay, struct timerhub_relay_stats *ret_stats)
{
	CANCELLATION_HELD;
	struct timerhub_relay_stats queue = { .due = 0 };
	struct request request = { .kind = REQUEST_STAT, .stats = &queue };
	struct timerhub_relay_stats *stats = &queue;
	int result = relay_check(relay);

	if (result < 0)
		return result;
	if (!ret_stats)
		return -EINVAL;
	result = relay_ask(relay, &request);
	if (result < 0)
		return result;
	lock_take(&relay->lock);
	*ret_stats = relay->stats;
	lock_give(&relay->lock);
	/* The part that is the server's. */
	memcpy(ret_stats, stats, offsetof(struct timerhub_relay_stats, put));
	return 0;
}
