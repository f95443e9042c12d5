/* SPDX-License-Identifier: MIT */
/* See link.h. */
#include "link.h"

#include <errno.h>

#define NS_PER_MS UINT64_C(1000000)
#define BACKOFF_FIRST_NS (10 * NS_PER_MS)
#define BACKOFF_MAX_NS (5000 * NS_PER_MS)
#define BACKOFF_REFUSED_NS (400 * NS_PER_MS)

void link_back_off(struct link *link, int error, uint64_t dice, uint64_t now_ns)
{
	uint64_t most_ns = error == -ECONNREFUSED ? BACKOFF_REFUSED_NS : BACKOFF_MAX_NS;
	uint64_t wait_ns = link->backoff_ns ? 2 * link->backoff_ns : BACKOFF_FIRST_NS;

	link->backoff_ns = wait_ns < most_ns ? wait_ns : most_ns;
	link->retry_ns = now_ns + link->backoff_ns / 2 + dice % (link->backoff_ns / 2);
}
