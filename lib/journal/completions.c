/* SPDX-License-Identifier: MIT */
/*
 * The leader adds, any thread takes. If another empties the list before the leader writes to the
 * fd, it is readable for nothing until the next take.
 */
#include "journal/completions.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/descriptor.h"

void completions_init(struct completions *completions)
{
	*completions = (struct completions){ .fd = -1 };
}

void completions_leave(const struct completions *completions)
{
	if (completions->fd >= 0)
		(void)close(completions->fd);
}

void completions_fini(struct completions *completions)
{
	struct transaction *next;

	for (struct transaction *transaction = completions->first; transaction;
	     transaction = next) {
		next = transaction->next;
		free(transaction);
	}
	completions_leave(completions);
	completions_init(completions);
}

int completions_fd(struct completions *completions)
{
	int fd = completions->fd;

	if (fd < 0)
		fd = DESCRIPTOR_ABOVE_STDIO(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (fd >= 0)
		completions->fd = fd;
	return fd;
}

void completions_put(struct completions *completions, struct transaction *transaction)
{
	transaction->next = NULL;
	if (completions->last)
		completions->last->next = transaction;
	else
		completions->first = transaction;
	completions->last = transaction;
}

bool completions_must_ring(struct completions *completions)
{
	bool wanted = completions->first || completions->wanted;

	completions->wanted = false;
	if (!wanted || completions->fd < 0 || completions->rung)
		return false;
	completions->rung = true;
	return true;
}

void completions_ring(const struct completions *completions)
{
	/* fails only at the largest count, where it is readable already */
	(void)eventfd_write(completions->fd, 1);
}

struct transaction *completions_take(struct completions *completions)
{
	struct transaction *transaction = completions->first;
	eventfd_t count;

	if (transaction) {
		completions->first = transaction->next;
		if (!completions->first)
			completions->last = NULL;
	} else if (completions->fd >= 0) {
		/* if the leader writes afterwards, it is readable for nothing */
		(void)eventfd_read(completions->fd, &count);
		completions->rung = false;
	}
	return transaction;
}
