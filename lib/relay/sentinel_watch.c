/* SPDX-License-Identifier: MIT */
/*
 * Asks a Sentinel again and again which server is the master (sentinel_watch.h). While calls are
 * made, it asks four times a second. After two questions it asks the next Sentinel, because one
 * Sentinel may be cut off from the others together with an old master. While no calls are made,
 * nothing can be lost, so it asks once a second, and stays with the same Sentinel for longer. The
 * first call after such a rest makes it ask at once.
 *
 * It does not subscribe to +switch-master, because the Sentinel that leads a failover publishes
 * that message only when all replicas follow the new master. It names the new master seconds
 * earlier to those who ask. Tested by tests/relay/test_parts.c, in virtual time, and by
 * sentinel_test.py.
 *
 * has_begun_anew() is called when a Sentinel has a lower epoch than an earlier answer had. That
 * Sentinel may be out of date, so its answer is ignored. But if more than half of the Sentinels
 * answer so, somebody has reset their epochs, and the lower epoch counts.
 */
#include "relay/sentinel_watch.h"

#include <errno.h>
#include <string.h>

#include "relay/handshake.h"

#define ASK_NS (250 * NS_PER_MS)
#define TURN_NS (500 * NS_PER_MS)
#define ASK_AT_REST_NS (1000 * NS_PER_MS)
#define TURN_AT_REST_NS (5000 * NS_PER_MS)

void sentinel_watch_init(struct sentinel_watch *watch, struct address *address, uint64_t timeout_ns,
                         uint64_t seed)
{
	*watch = (struct sentinel_watch){ .address = address, .timeout_ns = timeout_ns };
	link_init(&watch->link, seed);
}

static void turn(struct sentinel_watch *watch, uint64_t now_ns)
{
	address_rotate_sentinels(watch->address);
	watch->turned_ns = now_ns;
}

void sentinel_watch_lose(struct sentinel_watch *watch, int why, uint64_t now_ns)
{
	/*
	 * A connection that is closed after an answer is no failure: the next question opens
	 * another one.
	 */
	if (watch->answered)
		watch->link.backoff_ns = 0;
	else
		turn(watch, now_ns);
	if (!watch->answered)
		watch->address->tries++;
	watch->answered = watch->is_half = false;
	link_lose(&watch->link, why, now_ns);
}

static bool open_watch(struct sentinel_watch *watch, uint64_t now_ns)
{
	struct address sentinel;
	struct wire *wire;
	int result;

	if (!link_is_due(&watch->link, now_ns))
		return watch->link.wire != NULL;
	result = address_first_sentinel(&sentinel, watch->address);
	if (result == 0)
		result = wire_open(&wire, &sentinel);
	if (result < 0) {
		sentinel_watch_lose(watch, result, now_ns);
		return false;
	}
	link_set(&watch->link, wire);
	return true;
}

static void take_turn(struct sentinel_watch *watch, uint64_t after_ns, uint64_t now_ns)
{
	if (now_ns < watch->turned_ns + after_ns || !strchr(watch->address->sentinels, '+'))
		return;
	link_close(&watch->link);
	watch->answered = watch->is_half = false;
	turn(watch, now_ns);
}

uint64_t sentinel_watch_pass(struct sentinel_watch *watch, uint64_t used_ns, uint64_t now_ns)
{
	bool is_at_rest = used_ns <= watch->asked_ns;
	uint64_t ask_ns = watch->asked_ns + (is_at_rest ? ASK_AT_REST_NS : ASK_NS);

	if (!watch->address->sentinels[0])
		return LINK_NEVER;
	if (watch->link.answer_by_ns <= now_ns) {
		watch->answered = false;
		sentinel_watch_lose(watch, -EHOSTUNREACH, now_ns);
	}
	if (watch->link.answer_by_ns != LINK_NEVER)
		return watch->link.answer_by_ns;
	if (now_ns < ask_ns)
		return ask_ns;
	take_turn(watch, is_at_rest ? TURN_AT_REST_NS : TURN_NS, now_ns);
	if (!open_watch(watch, now_ns))
		return watch->link.retry_ns;
	handshake_ask_master(watch->link.wire, watch->address);
	watch->link.answer_by_ns = now_ns + link_step_ns(&watch->link, watch->timeout_ns);
	watch->asked_ns = now_ns;
	return watch->link.answer_by_ns;
}

static int compare(const struct sentinel_watch *watch, const struct reply *reply,
                   const struct address *server)
{
	struct address named = *watch->address;
	int result = handshake_read_master(reply, &named);

	if (result < 0)
		return -EPROTO;
	return strcmp(named.host, server->host) == 0 && strcmp(named.port, server->port) == 0
	               ? 0
	               : -EROFS;
}

/* Returns true if most Sentinels now have a lower epoch (configuration number) than before. */
static bool has_begun_anew(struct sentinel_watch *watch)
{
	unsigned count = address_count_sentinels(watch->address);

	if (watch->address->rotations - watch->rotations >= count)
		watch->outdated = 0;
	if (watch->outdated++ == 0)
		watch->rotations = watch->address->rotations;
	return watch->outdated > count / 2;
}

/*
 * Returns 0 if a Sentinel's answer names the server in use, else -EROFS. An answer with an old
 * epoch is ignored, because it is out of date.
 */
static int conclude(struct sentinel_watch *watch, uint64_t epoch)
{
	watch->is_half = false;
	watch->link.answer_by_ns = LINK_NEVER;
	if (epoch < watch->address->epoch && !has_begun_anew(watch)) {
		watch->turned_ns = 0;
		return 0;
	}
	watch->outdated = 0;
	watch->address->epoch = epoch;
	return watch->named;
}

static int read_reply(struct sentinel_watch *watch, const struct reply *reply,
                      const struct address *server)
{
	if (watch->is_half)
		return conclude(watch, handshake_read_epoch(reply));
	watch->named = compare(watch, reply, server);
	watch->answered = watch->is_half = watch->named != -EPROTO;
	watch->link.backoff_ns = 0;
	return watch->answered ? 0 : -EPROTO;
}

int sentinel_watch_read(struct sentinel_watch *watch, const struct address *server, uint64_t now_ns)
{
	int filled = wire_fill(watch->link.wire), result = 0, found = 0;
	struct reply *reply;

	while (result == 0 && (found = wire_next(watch->link.wire, &reply)) == 1) {
		watch->link.round_ns = now_ns - watch->asked_ns;
		result = read_reply(watch, reply, server);
		reply_free(reply);
	}
	if (result == 0 && watch->is_half && (found < 0 || filled < 0))
		result = conclude(watch, 0); /* the Sentinel does not say its epoch */
	if (result < 0 || found < 0 || filled < 0)
		sentinel_watch_lose(watch,
		                    result < 0  ? result
		                    : found < 0 ? found
		                                : filled,
		                    now_ns);
	return result;
}
