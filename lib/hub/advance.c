/* SPDX-License-Identifier: MIT */
/*
 * A manual hub has no owner thread. Whoever calls timerhub_advance() does the owner's work in it,
 * one thread at a time: `advancing` is odd while somebody does. And who must know that the owner's
 * pass has ended, in a manual hub or in another, waits for it here. It is tested by tests/service/
 * and tests/unit/test_hub_model.c.
 *
 * Labels: [advance] hub_leave → hub_try_enter, hub_wait_pass: carries all that a pass has written;
 *         hub_wait_pass → hub_try_enter: carries that a queue is gone.
 */
#include <errno.h>

#include "base/bell.h"
#include "base/futex.h"
#include "base/invariant.h"
#include "hub/hub.h"

/* Begins to advance a manual hub. Returns false if another thread is advancing it. */
static bool hub_try_enter(struct timerhub *hub)
{
	uint32_t advancing = u32_load_relaxed(&hub->advancing);

	/* [advance] From here on, this thread sees all that the previous pass has written. */
	return advancing % 2 == 0 && u32_cas_acquire(&hub->advancing, &advancing, advancing + 1);
}

/* Ends the advance that hub_try_enter() has begun. */
static void hub_leave(struct timerhub *hub)
{
	/* [advance] Whoever advances next, or waits for this pass, sees all that it has written. */
	uint32_t before = u32_fetch_add_release(&hub->advancing, 1);

	invariant(before % 2 == 1);
}

int timerhub_advance(struct timerhub *hub, uint64_t now_ns, uint64_t *ret_next_ns)
{
	uint64_t next_ns;
	bool moved;

	if (!hub || !hub->clock.manual)
		return -EINVAL;
	if (!hub_alive(hub))
		return -EOWNERDEAD;
	if (!hub_try_enter(hub))
		return -EBUSY;
	moved = clock_set(&hub->clock, now_ns);
	if (moved) {
		/*
		 * The bell is cleared before the pass gets its number, so that a ring which is
		 * meant for a later pass is not lost.
		 */
		bell_clear_counted(hub->bell, &hub->living->bells, &hub->rings);
		next_ns = owner_run_passes(&hub->owner);
	}
	hub_leave(hub);
	if (!moved)
		return -EINVAL;
	if (ret_next_ns)
		*ret_next_ns = next_ns;
	return 0;
}

int timerhub_wake_fd(const struct timerhub *hub)
{
	return hub && hub->clock.manual ? hub->bell : -EINVAL;
}

void hub_wait_pass(struct timerhub *hub)
{
	uint32_t advancing;

	if (!hub->clock.manual) {
		owner_wait_pass(&hub->owner);
		return;
	}
	/* [advance]: the next pass sees what this thread has stored before. */
	advancing = u32_fetch_add_acq_rel(&hub->advancing, 0);
	/* [advance]: when the pass has ended, this thread sees all that it has written. */
	while (advancing % 2 != 0 && u32_load_acquire(&hub->advancing) == advancing)
		futex_wait(&hub->advancing, advancing, HUB_CLOSE_POLL_NS);
}
