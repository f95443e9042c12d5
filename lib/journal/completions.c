/* SPDX-License-Identifier: MIT */
/*
 * See completions.h. The leader adds, any thread takes. A ring that comes when the list has been
 * emptied makes the fd readable for nothing; the next take clears it.
 */
#include "journal/completions.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

void completions_init(struct completions *completions)
{
	*completions = (struct completions){ .fd = -1 };
}

void completions_fini(struct completions *completions)
{
	struct request *next;

	for (struct request *request = completions->first; request; request = next) {
		next = request->next;
		free(request);
	}
	if (completions->fd >= 0)
		(void)close(completions->fd);
	completions_init(completions);
}

int completions_fd(struct completions *completions)
{
	if (completions->fd < 0)
		completions->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return completions->fd < 0 ? -errno : completions->fd;
}

void completions_put(struct completions *completions, struct request *request)
{
	request->next = NULL;
	if (completions->last)
		completions->last->next = request;
	else
		completions->first = request;
	completions->last = request;
}

bool completions_must_ring(struct completions *completions)
{
	if (!completions->first || completions->fd < 0 || completions->rung)
		return false;
	completions->rung = true;
	return true;
}

void completions_ring(const struct completions *completions)
{
	/* It fails only at 2^64 - 2, and then the fd is readable. */
	(void)eventfd_write(completions->fd, 1);
}

struct request *completions_take(struct completions *completions)
{
	struct request *request = completions->first;
	eventfd_t count;

	if (request) {
		completions->first = request->next;
		if (!completions->first)
			completions->last = NULL;
	} else if (completions->fd >= 0) {
		/* If it is not readable yet, it will be for nothing. */
		(void)eventfd_read(completions->fd, &count);
		completions->rung = false;
	}
	return request;
}
