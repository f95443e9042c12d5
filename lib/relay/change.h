/* SPDX-License-Identifier: MIT */
/* A change of a task as a request, for the calls that wait (change.c) and those that don't. */
#ifndef RELAY_CHANGE_H
#define RELAY_CHANGE_H

#include "relay/relay.h"

/*
 * Checks a change and fills in its request, which points into `change`. If a put has no id, one is
 * written to `made`. Returns 0, -EINVAL, -EMSGSIZE or -ERANGE.
 */
int change_read(struct timerhub_relay *relay, const struct timerhub_relay_change *change,
                struct request *request, char made[TIMERHUB_RELAY_ID_BYTES]);

/*
 * Returns true if the request was to finish, retry or park (set aside) a task, and `result` means
 * that the caller no longer has the task.
 */
bool change_ends_delivery(const struct request *request, int result);

#endif
