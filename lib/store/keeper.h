/* SPDX-License-Identifier: MIT */
/*
 * The store's own thread. It makes the changes of submits, for which nobody waits, and checkpoints.
 */
#ifndef TIMERHUB_STORE_KEEPER_H
#define TIMERHUB_STORE_KEEPER_H

#include "store/store.h"

int keeper_start(struct timerhub_store *store);

/* Ends the thread, which makes the submitted changes first. */
void keeper_stop(struct timerhub_store *store);

#endif
