/* SPDX-License-Identifier: MIT */
/*
 * The idiomatic way into a loop that belongs to one thread: a list of requests under a mutex, and
 * the loop's own wake (uv_async_send, ev_async_send, an eventfd …) when the list was empty.
 */
#ifndef BENCH_MAILBOX_H
#define BENCH_MAILBOX_H

#include "subject.h"

/* A subject with the same timers, whose arm, rearm and cancel may be called from any thread. */
const struct subject *mailbox_wrap(const struct subject *subject);

/* The loop's thread, when woken: hand all requests to the subject. */
void mailbox_apply(void);

#endif
