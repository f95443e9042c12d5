/* SPDX-License-Identifier: MIT */
/*
 * Decides which task is delivered next, how long its lease lasts, and whether a worker's answer is
 * still valid. The caller of each function holds the lock.
 */
#ifndef JOURNAL_DELIVERY_POLICY_H
#define JOURNAL_DELIVERY_POLICY_H

#include "journal/state.h"

/* Schedule a task for delivery at its due time, or park it after too many attempts. */
void delivery_let_come(struct timerhub_journal *journal, struct task *task);

/* Make every task whose lease has ended deliverable again. */
void delivery_end_leases(struct timerhub_journal *journal);

/* Returns whether a task is due. After a stop, only tasks that were due at the stop count. */
bool delivery_is_due(struct timerhub_journal *journal);

/* Deliver the first task, which must be due. Returns 0 or -ENOMEM. */
int delivery_make(struct timerhub_journal *journal, struct timerhub_task *ret_task);

/*
 * Find a delivery that may change its task. Returns 0 if no change of the task is in flight, or 1
 * if the batch `*ret_batch` has a change of the task. If the delivery may not change the task, ends
 * the delivery and returns -ENOENT or -ESTALE, with the meaning of timerhub_journal_done().
 */
int delivery_find(struct timerhub_journal *journal, uint64_t id, uint64_t delivery,
                  struct delivery **ret_held, uint32_t *ret_batch);

/*
 * Returns 1 if a change of the task is in flight, and stores the change's batch in `*ret_batch`.
 * Returns 0 if no change is in flight. Returns -ENOENT if there is no such task.
 */
int delivery_in_flight(const struct task *task, uint32_t *ret_batch);

/* Begin a new lease of a delivered task. The worker keeps the task even if the lease had ended. */
void delivery_prolong(struct timerhub_journal *journal, struct task *task, uint64_t lease_ns);

/*
 * Wake every thread that waits in take. Each woken taker checks whether it must return. Releases
 * the lock.
 */
void delivery_wake_takers(struct timerhub_journal *journal);

#endif
