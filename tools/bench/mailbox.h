/* SPDX-License-Identifier: MIT */
/*
 * The mailbox is the usual way to call a loop that belongs to one thread. A caller appends a
 * request to a list under a mutex. If the list was empty, the caller wakes the loop (uv_async_send,
 * ev_async_send, an eventfd …).
 */
#ifndef BENCH_MAILBOX_H
#define BENCH_MAILBOX_H

#include "subject.h"

/*
 * Returns a subject with the timers of `subject`. Any thread may call arm, rearm and cancel of the
 * returned subject.
 */
const struct subject *mailbox_wrap(const struct subject *subject);

/*
 * Make all requests of the list on the subject. The loop's thread calls this function when it is
 * woken.
 */
void mailbox_apply(void);

#endif
