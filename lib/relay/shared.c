/* SPDX-License-Identifier: MIT */
/*
 * Wakes callers that wait for a task, and tells the daemon when a server fails or serves again
 * (shared.h). Tested by tests/relay/test_calls.c.
 */
#include "relay/shared.h"

#include "base/bell.h"

void shared_show_prefetched(struct shared *shared)
{
	if (shared->deliveries.prefetched == 0)
		return;
	bell_ring(shared->ready_fd);
	if (shared->waiting > 0)
		eventcount_advance(&shared->takers, shared->deliveries.prefetched);
}

void shared_wake_takers(struct shared *shared)
{
	eventcount_advance(&shared->takers, UINT32_MAX);
}

void shared_tell(const struct shared *shared, uint32_t shard, int error)
{
	if (shared->watcher.tell)
		shared->watcher.tell(shared->watcher.arg, shard, error);
}
