/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of memory accesses without a timer service. "touch" only touches the records of
 * connections.
 *
 * "floor" shows the least cost of a re-arm. A re-arm picks one of N handles in an array. The re-arm
 * changes this handle's 64-byte record with a load and a compare-and-swap.
 */
#include "clocks.h"
#include "subject.h"

#include <stdatomic.h>

struct record {
	_Alignas(64) _Atomic(uint64_t) word;
};

static uint64_t *handles;
static struct record *records;

static void floor_open(const struct subject_setup *setup)
{
	handles = subject_allocate(setup->timers + 1, sizeof(*handles));
	records = subject_allocate(setup->timers + 1, sizeof(*records));
}

static int floor_arm(uint32_t timer, uint64_t delay_ns)
{
	handles[timer] = timer;
	atomic_store_explicit(&records[timer].word, subject_cached_ns + delay_ns,
	                      memory_order_relaxed);
	return 0;
}

static int floor_rearm(uint32_t timer, uint64_t delay_ns)
{
	_Atomic(uint64_t) *word = &records[handles[timer]].word;
	uint64_t before = atomic_load_explicit(word, memory_order_relaxed);

	while (!atomic_compare_exchange_weak(word, &before, subject_cached_ns + delay_ns)) {
	}
	return 0;
}

SUBJECT(floor, "floor",
        "a load and a compare-and-swap on a 64-byte record named by a random handle",
        CAN_REARM | CAN_ANY_THREAD | CAN_CROSS | CAN_BATCH, .handle_bytes = sizeof(uint64_t),
        .open = floor_open, .tick = subject_cache_now, .arm = floor_arm, .rearm = floor_rearm)

static void touch_open(const struct subject_setup *setup)
{
	(void)setup;
}

static int touch_arm(uint32_t timer, uint64_t delay_ns)
{
	(void)timer;
	(void)delay_ns;
	return 0;
}

static void touch_cancel(uint32_t timer)
{
	(void)timer;
}

SUBJECT(touch, "touch", "no timers: the loop only touches the records",
        CAN_REARM | CAN_CANCEL | ONE_LOOP, .open = touch_open, .tick = subject_cache_now,
        .arm = touch_arm, .rearm = touch_arm, .cancel = touch_cancel)
