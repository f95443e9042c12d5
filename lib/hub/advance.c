/* SPDX-License-Identifier: MIT */
/*
 * Implements timerhub_advance(). A manual hub has no owner thread, so the thread that calls
 * timerhub_advance() does the owner's work. Only one thread can do so at a time: `advancing` is odd
 * while one does. hub_wait_pass(), by which a thread waits until the owner has finished its round
 * of work (its pass), is here too. Tested by tests/service/ and tests/simulation.
 *
 * hub_wait_pass() adds 0 to `advancing` instead of loading it. If a timerhub_advance() is already
 * running, the addition finds `advancing` odd, where a load could still return the old, even value.
 * If one begins later, it sees what the thread had stored before the addition.
 *
 * Labels: [advance] hub_leave → hub_try_enter, hub_wait_pass: carries all that a pass has written;
 *         hub_wait_pass → hub_try_enter: carries that a queue is gone.
 */
#include <errno.h>

#include "base/bell.h"
#include "base/futex.h"
#include "base/invariant.h"
#include "hub/hub.h"

/* Begins to advance a manual hub. Returns false if another thread is advancing it at the moment. */
static bool hub_try_enter(struct timerhub *hub)
{
	uint32_t advancing = u32_load_relaxed(&hub->advancing);

	/*
	 * Acquire: this thread then sees everything that the last caller of timerhub_advance() has
	 * written. [advance]
	 */
	return advancing % 2 == 0 && u32_cas_acquire(&hub->advancing, &advancing, advancing + 1);
}

/* Lets other threads call timerhub_advance() for this hub again. */
static void hub_leave(struct timerhub *hub)
{
	/*
	 * Release: a thread that then gets past hub_try_enter() or hub_wait_pass() sees everything
	 * that this thread has written. [advance]
	 */
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
		 * Clear the eventfd before the work. A wake-up that comes during the work then
		 * stays for the next timerhub_advance().
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
	/* Release: the next timerhub_advance() sees what this thread has stored. [advance] */
	advancing = u32_fetch_add_acq_rel(&hub->advancing, 0);
	/*
	 * Acquire: when the other thread's timerhub_advance() has ended, this thread sees
	 * everything that it has written. [advance]
	 */
	while (advancing % 2 != 0 && u32_load_acquire(&hub->advancing) == advancing)
		futex_wait(&hub->advancing, advancing, HUB_CLOSE_POLL_NS);
}
