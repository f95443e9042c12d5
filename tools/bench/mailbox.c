/* SPDX-License-Identifier: MIT */
/*
 * Implements the mailbox. See mailbox.h. Callers append to one list under the mutex. The loop's
 * thread swaps it with a second, whose requests it makes without the mutex. A request's delay
 * counts from the time that the loop has cached.
 */
#include "mailbox.h"

#include <pthread.h>
#include <stdlib.h>

#define MAILBOX_START 4096

enum request_kind { REQUEST_ARM, REQUEST_REARM, REQUEST_CANCEL };

struct request {
	uint64_t delay_ns;
	uint32_t timer;
	enum request_kind kind;
};

struct request_list {
	struct request *requests;
	size_t count, room;
};

static const struct subject *inner;
static struct subject wrapped;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct request_list filling, emptying; /* the mutex protects `filling` */
static struct subject_counts counts;          /* the mutex protects `counts` */

static void mailbox_put(struct request request)
{
	bool wake;

	(void)pthread_mutex_lock(&mutex);
	if (filling.count == filling.room) {
		filling.room = filling.room > 0 ? filling.room * 2 : MAILBOX_START;
		filling.requests = realloc(filling.requests, filling.room * sizeof(request));
		if (!filling.requests)
			subject_fail("mailbox", 0);
	}
	filling.requests[filling.count] = request;
	wake = filling.count++ == 0;
	counts.submit_wakes += wake;
	(void)pthread_mutex_unlock(&mutex);
	if (wake)
		inner->wake();
}

static int mailbox_arm(uint32_t timer, uint64_t delay_ns)
{
	mailbox_put((struct request){ delay_ns, timer, REQUEST_ARM });
	return 0;
}

static int mailbox_rearm(uint32_t timer, uint64_t delay_ns)
{
	mailbox_put((struct request){ delay_ns, timer, REQUEST_REARM });
	return 0;
}

static void mailbox_cancel(uint32_t timer)
{
	mailbox_put((struct request){ 0, timer, REQUEST_CANCEL });
}

static void mailbox_tick(void)
{
}

static void mailbox_counts(struct subject_counts *ret_counts)
{
	(void)pthread_mutex_lock(&mutex);
	*ret_counts = counts;
	(void)pthread_mutex_unlock(&mutex);
}

const struct subject *mailbox_wrap(const struct subject *subject)
{
	inner = subject;
	wrapped = *subject;
	wrapped.arm = mailbox_arm;
	wrapped.rearm = mailbox_rearm;
	wrapped.cancel = mailbox_cancel;
	wrapped.tick = mailbox_tick;
	wrapped.within = NULL;
	wrapped.counts = mailbox_counts;
	return &wrapped;
}

static void request_apply(const struct request *request)
{
	switch (request->kind) {
	case REQUEST_ARM:
		subject_must(inner->arm(request->timer, request->delay_ns));
		break;
	case REQUEST_REARM:
		subject_must(inner->rearm(request->timer, request->delay_ns));
		break;
	case REQUEST_CANCEL:
		inner->cancel(request->timer);
		break;
	}
}

void mailbox_apply(void)
{
	struct request_list list;

	(void)pthread_mutex_lock(&mutex);
	list = filling;
	filling = emptying;
	filling.count = 0;
	counts.owner_wakeups++;
	if (list.count > counts.inbox_max)
		counts.inbox_max = list.count;
	(void)pthread_mutex_unlock(&mutex);
	inner->tick();
	for (size_t i = 0; i < list.count; i++)
		request_apply(&list.requests[i]);
	emptying = list;
}
