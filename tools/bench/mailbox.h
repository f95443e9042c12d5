/* SPDX-License-Identifier: MIT */
/*
 * The usual way to call a loop that belongs to one thread: a list of requests under a mutex, and
 * the loop's own wake-up (uv_async_send, ev_async_send, an eventfd …) if the list was empty.
 */
#ifndef BENCH_MAILBOX_H
#define BENCH_MAILBOX_H

#include "subject.h"

/* Returns a subject with the same timers, whose arm, rearm and cancel any thread may call. */
const struct subject *mailbox_wrap(const struct subject *subject);

/* Pass all requests to the subject. The loop's thread calls this when it is woken. */
void mailbox_apply(void);

#endif
