/* SPDX-License-Identifier: MIT */
/*
 * Makes changes that nobody waits for: timerhub_relay_submit() and timerhub_relay_completions().
 * Each change is copied into memory of its own, together with its request. When the request is
 * finished, the thread of the shard (of the task's server) moves it to the list of completions.
 * Tested by tests/relay/test_calls.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancellation.h"
#include "relay/change.h"

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
	one->submissions = &relay->submissions;
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
	one->request.completed = submissions_complete;
	*ret_one = one;
	return 0;
}

/*
 * Copies all changes into a list that is linked by `next`. If one of them is wrong, there is no
 * list.
 */
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
	if (count > SUBMISSIONS_MAX)
		return -E2BIG;
	result = copy_all(relay, changes, count, tag, &first);
	if (result < 0)
		return result;
	if (!submissions_reserve(&relay->submissions, first, count)) {
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
	while (count < max && (one = submissions_take(&relay->submissions))) {
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
	int result = relay_may_call(relay);

	return result < 0 ? result : submissions_fd(&relay->submissions);
}
