/* SPDX-License-Identifier: MIT */
/*
 * Adds, removes, sets and stops timeouts, and returns a timeout's deadline. Only the loop's thread
 * calls these functions. The inline functions of timerhub_loop.h handle the frequent cases of set,
 * set_at and stop. In the rare cases, the inline functions call the functions of this file.
 * Programs without inline calls always use this file. Tested by tests/unit/test_loop.c and
 * tests/service/test_loop.c.
 */
#include <errno.h>

#include "loop/fresh_timeouts.h"

/*
 * Macros of timerhub_loop.h replace three names of functions by inline calls. Undefine the macros,
 * because this file defines the functions.
 */
#undef timerhub_timeout_set
#undef timerhub_timeout_set_at
#undef timerhub_timeout_stop

static uint64_t loop_owner(const struct timerhub_loop *loop)
{
	return (uint64_t)(uintptr_t)loop ^ loop_thread();
}

/*
 * Check that the calling thread may use this timeout with this loop. Returns 0, -EINVAL or -EPERM.
 */
static int timeout_check(const struct timerhub_loop *loop, const struct timerhub_timeout *timeout)
{
	/*
	 * Check the timeout before the loop is used. If the timeout was not added, the loop may be
	 * freed.
	 */
	if (!loop || !timeout || timeout->owner == 0)
		return -EINVAL;
	if (timeout->owner == loop_owner(loop))
		return 0;
	return loop->thread == loop_thread() ? -EINVAL : -EPERM;
}

int timerhub_timeout_add(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                         timerhub_timeout_fn *fn)
{
	if (!loop || !timeout || !fn)
		return -EINVAL;
	if (loop->thread != loop_thread())
		return -EPERM;
	if (timeout->owner != 0)
		return -EEXIST;
	if (!places_take(&loop->places, timeout, fn))
		return -EAGAIN;
	timeout->deadline_ns = UINT64_MAX;
	timeout->owner = loop_owner(loop);
	return 0;
}

int timerhub_timeout_remove(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	int result = timeout_check(loop, timeout);

	if (result < 0)
		return result;
	fresh_forget(loop, timeout);
	places_put(&loop->places, timeout);
	*timeout = (struct timerhub_timeout){ .owner = 0 };
	return 0;
}

int timerhub_timeout_set(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                         uint64_t delay_ns)
{
	int result = timeout_check(loop, timeout);
	struct timerhub_loop_front *front;

	if (result < 0)
		return result;
	front = &loop->front;
	if (delay_ns > front->delay_max_ns)
		return -ERANGE;
	if (timeout->fresh == 0) {
		if (front->fresh_count == TIMERHUB_LOOP_FRESH_MAX)
			fresh_move_on(loop, loop_read_ns(loop));
		front->fresh[front->fresh_count++] = timeout;
		timeout->fresh = (uint8_t)front->fresh_count;
	}
	timeout->deadline_ns = front->base_ns + delay_ns;
	return 0;
}

int timerhub_timeout_set_at(struct timerhub_loop *loop, struct timerhub_timeout *timeout,
                            uint64_t deadline_ns)
{
	int result = timeout_check(loop, timeout);

	if (result < 0)
		return result;
	if (deadline_ns == UINT64_MAX)
		return -ERANGE;
	fresh_forget(loop, timeout);
	timeout->deadline_ns = deadline_ns;
	if (deadline_ns < timeout->filed_ns || loop->front.turning)
		fresh_list(loop, timeout);
	return 0;
}

int timerhub_timeout_stop(struct timerhub_loop *loop, struct timerhub_timeout *timeout)
{
	int result = timeout_check(loop, timeout);

	if (result < 0)
		return result;
	result = timeout->deadline_ns != UINT64_MAX;
	timeout->deadline_ns = UINT64_MAX;
	return result;
}

int timerhub_timeout_is_set(const struct timerhub_timeout *timeout)
{
	return timerhub_timeout_deadline(timeout) != UINT64_MAX;
}

uint64_t timerhub_timeout_deadline(const struct timerhub_timeout *timeout)
{
	return timeout && timeout->owner != 0 ? timeout->deadline_ns : UINT64_MAX;
}
