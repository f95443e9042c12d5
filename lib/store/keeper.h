/* SPDX-License-Identifier: MIT */
/* The store's own thread: it leads for submits, which nobody waits for, and checkpoints. */
#ifndef TIMERHUB_STORE_KEEPER_H
#define TIMERHUB_STORE_KEEPER_H

#include "store/store.h"

int keeper_start(struct timerhub_store *store);

/* It makes the submitted changes first. */
void keeper_stop(struct timerhub_store *store);

#endif
