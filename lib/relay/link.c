/* SPDX-License-Identifier: MIT */
/*
 * Decides when a lost connection is opened again. The wait gets longer with each failure (link.h).
 */
#include "relay/link.h"

#include <errno.h>

#define BACKOFF_FIRST_NS (10 * NS_PER_MS)
#define BACKOFF_MAX_NS (5000 * NS_PER_MS)
#define STEP_MIN_NS (1000 * NS_PER_MS)
#define STEP_ROUNDS 4u
#define BACKOFF_REFUSED_NS (400 * NS_PER_MS)

void link_init(struct link *link, uint64_t seed)
{
	*link = (struct link){ .answer_by_ns = LINK_NEVER, .random = seed | 1 };
}

bool link_is_due(const struct link *link, uint64_t now_ns)
{
	return !link->wire && now_ns >= link->retry_ns;
}

void link_set(struct link *link, struct wire *wire)
{
	link->wire = wire;
	link->answer_by_ns = LINK_NEVER;
}

void link_close(struct link *link)
{
	struct wire *wire = link->wire;

	/*
	 * Forget the wire first, because a child that is forked during the close must not close the
	 * wire again.
	 */
	link_set(link, NULL);
	wire_close(wire);
}

void link_lose(struct link *link, int error, uint64_t now_ns)
{
	link_close(link);
	link_back_off(link, error, now_ns);
}

uint64_t link_step_ns(const struct link *link, uint64_t timeout_ns)
{
	uint64_t step_ns = STEP_MIN_NS * (1 + link->backoff_ns / BACKOFF_FIRST_NS) +
	                   STEP_ROUNDS * link->round_ns;

	if (step_ns > timeout_ns / 4)
		step_ns = timeout_ns / 4;
	return step_ns > STEP_MIN_NS ? step_ns : STEP_MIN_NS;
}

static uint64_t dice(struct link *link)
{
	/* A xorshift64 generator is random enough to spread the reconnects of many clients. */
	link->random ^= link->random << 13;
	link->random ^= link->random >> 7;
	link->random ^= link->random << 17;
	return link->random;
}

void link_back_off(struct link *link, int error, uint64_t now_ns)
{
	bool is_cheap = error == -ECONNREFUSED || error == -EROFS;
	uint64_t most_ns = is_cheap ? BACKOFF_REFUSED_NS : BACKOFF_MAX_NS;
	uint64_t wait_ns = link->backoff_ns ? 2 * link->backoff_ns : BACKOFF_FIRST_NS;

	link->backoff_ns = wait_ns < most_ns ? wait_ns : most_ns;
	link->retry_ns = now_ns + link->backoff_ns / 2 + dice(link) % (link->backoff_ns / 2);
}
