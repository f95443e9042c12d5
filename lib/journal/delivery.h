/* SPDX-License-Identifier: MIT */
/*
 * Decisions about deliveries: which task is next, how long its lease lasts, and whether a worker's
 * answer still counts. The lock is held in all calls.
 */
#ifndef JOURNAL_DELIVERY_H
#define JOURNAL_DELIVERY_H

#include "journal/state.h"

/* Let a task be delivered at its time; or, after too many attempts, park it. */
void delivery_let_come(struct timerhub_journal *journal, struct task *task);

/* Give back every task whose lease is over. */
void delivery_end_leases(struct timerhub_journal *journal);

/* Returns whether a task is due that was due before any stop. */
bool delivery_is_due(struct timerhub_journal *journal);

/* Hand out the first task, which is due. 0 or -ENOMEM. */
int delivery_make(struct timerhub_journal *journal, struct timerhub_task *ret_task);

/*
 * Find a delivery that may change its task. Returns 0 if no change of the task is in flight, or 1
 * if one is, in the batch `*ret_batch`. Returns -ENOENT or -ESTALE as timerhub_journal_done(), and
 * then ends the delivery.
 */
int delivery_find(struct timerhub_journal *journal, uint64_t id, uint64_t delivery,
                  struct delivery **ret_held, uint32_t *ret_batch);

/* 1: a change of the task is in flight, in that batch; 0; -ENOENT: there is no task. */
int delivery_in_flight(const struct task *task, uint32_t *ret_batch);

/* Let the delivery's lease begin again; its task is the worker's though the lease was over. */
void delivery_prolong(struct timerhub_journal *journal, struct task *task, uint64_t lease_ns);

/* Wake every taker that waits; each then looks whether to leave. Gives the lock away. */
void delivery_wake_takers(struct timerhub_journal *journal);

#endif
