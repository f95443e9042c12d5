/* SPDX-License-Identifier: MIT */
/*
 * Carries requests from callers to the thread of a shard, that is, of one server (mailbox.h).
 * Tested by tests/relay/test_calls.c.
 */
#include "relay/mailbox.h"

#include <errno.h>

void mailbox_wake(struct mailbox *mailbox)
{
	mailbox->pending = true;
	if (mailbox->idle) {
		mailbox->idle = false;
		sleeper_wake(mailbox->sleeper);
	}
}

void mailbox_post(struct mailbox *mailbox, struct request *request)
{
	request->deadline_ns = sleeper_now_ns() + mailbox->shared->timeout_ns;
	requests_append(&mailbox->queued, request);
	if (request->kind != REQUEST_PUT || !mailbox->holds)
		mailbox_wake(mailbox);
}

int mailbox_wait(struct request *request)
{
	while (eventcount_number(&request->finished) == 0)
		eventcount_wait(&request->finished, 0, UINT64_MAX);
	return request->result;
}

int mailbox_ask(struct mailbox *mailbox, struct request *request)
{
	lock_take(&mailbox->shared->lock);
	mailbox_post(mailbox, request);
	lock_give(&mailbox->shared->lock);
	return mailbox_wait(request);
}

uint64_t mailbox_begin(struct mailbox *mailbox, int why, uint64_t now_ns)
{
	uint64_t next_ns;

	lock_take(&mailbox->shared->lock);
	mailbox->pending = mailbox->idle = false;
	requests_expire(&mailbox->queued, why, why == -EOPNOTSUPP ? UINT64_MAX : now_ns);
	next_ns = requests_deadline_ns(&mailbox->queued, UINT64_MAX);
	lock_give(&mailbox->shared->lock);
	return next_ns;
}

bool mailbox_expire(struct mailbox *mailbox, int why, uint64_t now_ns)
{
	bool ending;

	lock_take(&mailbox->shared->lock);
	requests_expire(&mailbox->queued, why, now_ns);
	ending = mailbox->shared->ending;
	lock_give(&mailbox->shared->lock);
	return !ending;
}

uint64_t mailbox_take(struct mailbox *mailbox, struct requests *taken, uint64_t put_sent_ns,
                      uint64_t now_ns)
{
	struct requests held = { .first = NULL };
	struct request *request;
	uint64_t until_ns;

	lock_take(&mailbox->shared->lock);
	until_ns = put_sent_ns > 0 ? put_sent_ns + mailbox->shared->hold_ns : now_ns;
	while ((request = requests_take(&mailbox->queued)))
		requests_append(request->kind == REQUEST_PUT && until_ns > now_ns ? &held : taken,
		                request);
	mailbox->queued = held;
	mailbox->holds = held.first != NULL;
	lock_give(&mailbox->shared->lock);
	return held.first ? until_ns : UINT64_MAX;
}

void mailbox_put_back(struct mailbox *mailbox, struct requests *back)
{
	struct request *request;

	lock_take(&mailbox->shared->lock);
	for (request = back->first; request; request = request->next)
		mailbox->shared->stats.in_doubt += request->in_doubt;
	while ((request = requests_take(&mailbox->queued)))
		requests_append(back, request);
	mailbox->queued = *back;
	mailbox->holds = false;
	lock_give(&mailbox->shared->lock);
}

bool mailbox_end(struct mailbox *mailbox, bool *ret_ending)
{
	bool idle;

	lock_take(&mailbox->shared->lock);
	*ret_ending = mailbox->shared->ending;
	idle = mailbox->idle = !mailbox->pending;
	lock_give(&mailbox->shared->lock);
	return idle;
}
