/* SPDX-License-Identifier: MIT */
/*
 * Changes that nobody waits for. Each is copied into one piece of memory with its request, whose
 * end moves it to the list of completions, on the shard's thread. Tested by
 * tests/relay/test_calls.c.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/invariant.h"
#include "relay/change.h"

#define IN_FLIGHT_MAX 1024u

struct submitted {
	struct request request;
	struct submitted *before, *after; /* all that are not taken yet */
	struct submitted *next;           /* completions */
	struct timerhub_relay *relay;
	uint64_t tag;
	uint32_t index;
	char id[TIMERHUB_RELAY_ID_BYTES];
	char delivery[TIMERHUB_RELAY_DELIVERY_BYTES];
	char data[];
};
_Static_assert(offsetof(struct submitted, request) == 0, "complete() casts the request");

/* The relay's lock may be held, so the completions have a lock of their own. */
static void complete(struct request *request)
{
	struct submitted *one = (struct submitted *)(void *)request;
	struct submissions *all = &one->relay->submissions;

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

static int copy_change(struct timerhub_relay *relay, const struct timerhub_relay_change *change,
                       struct submitted **ret_one)
{
	size_t size = change->op == TIMERHUB_RELAY_PUT && change->data ? change->data_len : 0;
	struct submitted *one;
	int result;

	if (size > REQUEST_DATA_MAX)
		return -EMSGSIZE;
	one = calloc(1, sizeof(*one) + size);
	if (!one)
		return -ENOMEM;
	result = change_read(relay, change, &one->request, one->id);
	if (result < 0) {
		free(one);
		return result;
	}
	one->relay = relay;
	if (one->request.id != one->id)
		memcpy(one->id, one->request.id, strlen(one->request.id) + 1);
	one->request.id = one->id;
	if (one->request.delivery) {
		memcpy(one->delivery, one->request.delivery, strlen(one->request.delivery) + 1);
		one->request.delivery = one->delivery;
	}
	if (size > 0) {
		memcpy(one->data, change->data, size);
		one->request.data = one->data;
	}
	one->request.completed = complete;
	*ret_one = one;
	return 0;
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

/* Returns the copies as a list by `next`, or an error, after which there is none. */
static int copy_all(struct timerhub_relay *relay, const struct timerhub_relay_change *changes,
                    unsigned count, uint64_t tag, struct submitted **ret_first)
{
	struct submitted *first = NULL, **end = &first;

	for (unsigned i = 0; i < count; i++) {
		int result = copy_change(relay, &changes[i], end);

		if (result < 0) {
			*end = NULL;
			while (first) {
				struct submitted *next = first->next;

				free(first);
				first = next;
			}
			return result;
		}
		(*end)->tag = tag;
		(*end)->index = i;
		end = &(*end)->next;
	}
	*ret_first = first;
	return 0;
}

/* False: there is no room for so many. */
static bool reserve(struct submissions *all, struct submitted *first, unsigned count)
{
	bool fits;

	lock_take(&all->lock);
	fits = all->count + count <= IN_FLIGHT_MAX;
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

int timerhub_relay_submit(struct timerhub_relay *relay, const struct timerhub_relay_change *changes,
                          unsigned count, uint64_t tag)
{
	CANCELLATION_HELD;
	struct submitted *first = NULL, *next;
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if (!changes && count > 0)
		return -EINVAL;
	if (count > IN_FLIGHT_MAX)
		return -E2BIG;
	result = copy_all(relay, changes, count, tag, &first);
	if (result < 0)
		return result;
	if (!reserve(&relay->submissions, first, count)) {
		for (; first; first = next) {
			next = first->next;
			free(first);
		}
		return -EAGAIN;
	}
	lock_take(&relay->shared.lock);
	for (; first; first = next) {
		next = first->next;
		mailbox_post(&relay_shard_of(relay, first->id)->mailbox, &first->request);
	}
	lock_give(&relay->shared.lock);
	return 0;
}

/* Takes one completion, or returns NULL. */
static struct submitted *take_one(struct submissions *all)
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

int timerhub_relay_completions(struct timerhub_relay *relay, struct timerhub_relay_completion *ret,
                               unsigned max)
{
	CANCELLATION_HELD;
	struct submitted *one;
	unsigned count = 0;
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	if ((!ret && max > 0) || max > INT_MAX)
		return -EINVAL;
	while (count < max && (one = take_one(&relay->submissions))) {
		ret[count] = (struct timerhub_relay_completion){
			.tag = one->tag,
			.index = one->index,
			.result = one->request.result,
		};
		memcpy(ret[count].id, one->id, sizeof(one->id));
		if (change_ends_delivery(&one->request, one->request.result)) {
			lock_take(&relay->shared.lock);
			(void)deliveries_drop(&relay->shared.deliveries, one->delivery, one->id);
			lock_give(&relay->shared.lock);
		}
		free(one);
		count++;
	}
	return (int)count;
}

int timerhub_relay_completion_fd(struct timerhub_relay *relay)
{
	CANCELLATION_HELD;
	struct submissions *all;
	int result = relay_may_call(relay);

	if (result < 0)
		return result;
	all = &relay->submissions;
	lock_take(&all->lock);
	if (all->fd_plus_one == 0) {
		int fd = bell_open();

		if (fd >= 0 && all->first)
			bell_ring(fd);
		all->fd_plus_one = fd >= 0 ? fd + 1 : 0;
		result = fd;
	} else {
		result = all->fd_plus_one - 1;
	}
	lock_give(&all->lock);
	return result;
}

void submissions_fini(struct submissions *all, bool is_copy)
{
	if (all->fd_plus_one > 0)
		bell_close(all->fd_plus_one - 1);
	while (!is_copy && all->all) {
		struct submitted *one = all->all;

		unlink_one(all, one);
		free(one);
	}
	lock_fini(&all->lock);
}
