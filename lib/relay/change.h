/* SPDX-License-Identifier: MIT */
/*
 * A change of a task as a request, for the calls that wait (change.c) and those that don't.
 * change_read() returns 0, -EINVAL, -EMSGSIZE or -ERANGE.
 */
#ifndef RELAY_CHANGE_H
#define RELAY_CHANGE_H

#include "relay/relay.h"

/* Makes a request that points into `change`. Writes an id to `made` if a put has none. */
int change_read(struct timerhub_relay *relay, const struct timerhub_relay_change *change,
                struct request *request, char made[TIMERHUB_RELAY_ID_BYTES]);

/* Returns whether the caller does not have the task any more. */
bool change_ends_delivery(const struct request *request, int result);

#endif
