/* SPDX-License-Identifier: MIT */
/*
 * The mailbox is the usual way to call a loop that belongs to one thread. A caller appends a
 * request to a list under a mutex. If the list was empty, the caller wakes the loop, such as by
 * uv_async_send or an eventfd.
 */
#ifndef BENCH_MAILBOX_H
#define BENCH_MAILBOX_H

#include "subject.h"

/*
 * Returns a subject (a measured service) that passes its calls on to `subject`, through the
 * mailbox. Any thread may call the members arm(), rearm() and cancel() of the returned subject.
 */
const struct subject *mailbox_wrap(const struct subject *subject);

/*
 * Apply all requests of the list to the subject. When the loop's thread is woken, it calls this
 * function.
 */
void mailbox_apply(void);

#endif
