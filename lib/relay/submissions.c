/* SPDX-License-Identifier: MIT */
/*
 * Keeps the changes that nobody waits for, from timerhub_relay_submit() until the program takes
 * their results by timerhub_relay_completions() (submissions.h). The lists have a lock of their
 * own, because a change can be completed while the relay's lock is held. Tested by
 * tests/relay/test_calls.c.
 */
#include "relay/submissions.h"

#include <stdlib.h>

#include "base/bell.h"
#include "base/invariant.h"

bool submissions_reserve(struct submissions *all, struct submitted *first, unsigned count)
{
	bool fits;

	lock_take(&all->lock);
	fits = all->count + count <= SUBMISSIONS_MAX;
	for (struct submitted *one = fits ? first : NULL; one; one = one->next) {
		one->before = NULL;
		one->after = all->all;
		if (all->all)
			all->all->before = one;
		all->all = one;
		all->count++;
	}
	lock_give(&all->lock);
	return fits;
}

void submissions_complete(struct request *request)
{
	struct submitted *one = (struct submitted *)(void *)request;
	struct submissions *all = one->submissions;

	lock_take(&all->lock);
	one->next = NULL;
	if (all->last)
		all->last->next = one;
	else
		all->first = one;
	all->last = one;
	if (all->fd_plus_one > 0)
		bell_ring(all->fd_plus_one - 1);
	lock_give(&all->lock);
}

static void unlink_one(struct submissions *all, struct submitted *one)
{
	invariant(all->count > 0 && (one->before ? one->before->after : all->all) == one);
	if (one->before)
		one->before->after = one->after;
	else
		all->all = one->after;
	if (one->after)
		one->after->before = one->before;
	all->count--;
}

struct submitted *submissions_take(struct submissions *all)
{
	struct submitted *one;

	lock_take(&all->lock);
	one = all->first;
	if (one) {
		all->first = one->next;
		if (!all->first)
			all->last = NULL;
		unlink_one(all, one);
	}
	if (!all->first && all->fd_plus_one > 0)
		bell_clear(all->fd_plus_one - 1);
	lock_give(&all->lock);
	return one;
}

int submissions_fd(struct submissions *all)
{
	int fd;

	lock_take(&all->lock);
	fd = all->fd_plus_one - 1;
	if (fd < 0) {
		fd = bell_open();
		all->fd_plus_one = fd < 0 ? 0 : fd + 1;
		if (fd >= 0 && all->first)
			bell_ring(fd);
	}
	lock_give(&all->lock);
	return fd;
}

void submissions_fini(struct submissions *all, bool is_copy)
{
	/* An epoll instance would go on reporting the descriptor if a forked child has it too. */
	if (all->fd_plus_one > 0 && !is_copy)
		bell_clear(all->fd_plus_one - 1);
	if (all->fd_plus_one > 0)
		bell_close(all->fd_plus_one - 1);
	while (!is_copy && all->all) {
		struct submitted *one = all->all;

		unlink_one(all, one);
		free(one);
	}
	lock_fini(&all->lock);
}
