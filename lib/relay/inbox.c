/* SPDX-License-Identifier: MIT */
/* See inbox.h. Tested by tests/relay/test_calls.c. */
#include "inbox.h"

/* The lock is held. */
void inbox_wake(struct inbox *inbox)
{
	inbox->news = true;
	if (inbox->idle) {
		inbox->idle = false;
		nap_wake(inbox->nap);
	}
}

int inbox_ask(struct inbox *inbox, struct request *request)
{
	struct shared *shared = inbox->shared;

	request->deadline_ns = nap_now_ns() + shared->timeout_ns;
	lock_take(&shared->lock);
	requests_append(&inbox->gathered, request);
	if (request->kind != REQUEST_PUT || !inbox->holds)
		inbox_wake(inbox);
	lock_give(&shared->lock);
	while (ticket_number(&request->finished) == 0)
		ticket_wait(&request->finished, 0, UINT64_MAX);
	return request->result;
}

uint64_t inbox_begin(struct inbox *inbox, int why, uint64_t now_ns)
{
	uint64_t next_ns;

	lock_take(&inbox->shared->lock);
	inbox->news = inbox->idle = false;
	requests_expire(&inbox->gathered, why, now_ns);
	next_ns = requests_deadline_ns(&inbox->gathered, UINT64_MAX);
	lock_give(&inbox->shared->lock);
	return next_ns;
}

uint64_t inbox_take(struct inbox *inbox, struct requests *taken, uint64_t put_sent_ns,
                    uint64_t now_ns)
{
	struct requests held = { .first = NULL };
	struct request *request;
	uint64_t until_ns;

	lock_take(&inbox->shared->lock);
	until_ns = put_sent_ns > 0 ? put_sent_ns + inbox->shared->hold_ns : now_ns;
	while ((request = requests_take(&inbox->gathered)))
		requests_append(request->kind == REQUEST_PUT && until_ns > now_ns ? &held : taken,
		                request);
	inbox->gathered = held;
	inbox->holds = held.first != NULL;
	lock_give(&inbox->shared->lock);
	return held.first ? until_ns : UINT64_MAX;
}

void inbox_put_back(struct inbox *inbox, struct requests *back)
{
	struct request *request;

	lock_take(&inbox->shared->lock);
	for (request = back->first; request; request = request->next)
		inbox->shared->stats.in_doubt += request->in_doubt;
	while ((request = requests_take(&inbox->gathered)))
		requests_append(back, request);
	inbox->gathered = *back;
	inbox->holds = false;
	lock_give(&inbox->shared->lock);
}

bool inbox_end(struct inbox *inbox, bool *ret_closing)
{
	bool idle;

	lock_take(&inbox->shared->lock);
	*ret_closing = inbox->shared->closing;
	idle = inbox->idle = !inbox->news;
	lock_give(&inbox->shared->lock);
	return idle;
}
