/* SPDX-License-Identifier: MIT */
/* A change of a task as a request, for the calls that wait (change.c) and those that don't. */
#ifndef RELAY_CHANGE_H
#define RELAY_CHANGE_H

#include "relay/relay.h"

/*
 * Checks a change, and makes its request, which points to the change's id, data and task. The id of
 * a put without one is stored in `made`. Returns 0, -EINVAL, -EMSGSIZE or -ERANGE.
 */
int change_read(struct timerhub_relay *relay, const struct timerhub_relay_change *change,
                struct request *request, char made[TIMERHUB_RELAY_ID_BYTES]);

/* Returns whether, after this result of a done, retry or park, the taker no longer has the task. */
bool change_ends_delivery(const struct request *request, int result);

#endif
