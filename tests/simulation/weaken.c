/* SPDX-License-Identifier: MIT */
#include "weaken.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "memory_models.h"
#include "redirect_atomics.h"
#include "scheduler.h"

#define EAGER_LOADS 12

static struct {
	char file[64];
	int line, order;
	uint64_t times;
	bool made; /* true if the access in progress is the weakened access */
	/* weaken_stale_one_in() returns 2 for the loads that weaken.h lists */
	bool eager;
	/* by thread: for so many of its next loads weaken_stale_one_in() returns 2 */
	unsigned left[MEMORY_THREADS];
} weaker;

bool weaken_asked;

int weaken_order_here(int order)
{
	const char *name;

	weaker.made = false;
	if (simulation_line.line != weaker.line || memory.peeking)
		return order;
	name = strrchr(simulation_line.file, '/');
	if (strcmp(name ? name + 1 : simulation_line.file, weaker.file) != 0 ||
	    order == memory_order_relaxed)
		return order;
	weaker.times++;
	weaker.made = true;
	weaken_seen();
	return weaker.order;
}

bool weaken_made(void)
{
	return weaker.made;
}

void weaken_seen(void)
{
	weaker.left[scheduler_self()] = EAGER_LOADS;
}

uint32_t weaken_stale_one_in(bool weak)
{
	unsigned *left = &weaker.left[scheduler_self()];

	if (!weaker.eager || (!weak && *left == 0))
		return memory.stale_one_in;
	*left -= *left > 0;
	return 2;
}

void weaken_begin(void)
{
	weaker.eager = weaken_asked && dice_one_in(&memory.dice, 2);
	memset(weaker.left, 0, sizeof(weaker.left));
}

bool weaken_parse(const char *what)
{
	static const struct {
		const char *name;
		int order;
	} orders[] = {
		{ "relaxed", memory_order_relaxed }, { "acquire", memory_order_acquire },
		{ "release", memory_order_release }, { "acq_rel", memory_order_acq_rel },
		{ "seq_cst", memory_order_seq_cst }, { "load", WEAKEN_LOAD },
	};
	char name[16];

	if (sscanf(what, "%63[^:]:%d:%15s", weaker.file, &weaker.line, name) != 3)
		return false;
	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (strcmp(name, orders[i].name) == 0) {
			weaker.order = orders[i].order;
			weaken_asked = true;
			return true;
		}
	return false;
}

uint64_t weaken_times(void)
{
	return weaker.times;
}
