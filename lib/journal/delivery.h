/* SPDX-License-Identifier: MIT */
/*
 * Delivers the next task, sets and ends leases, and checks whether a worker's answer is still
 * valid. The caller of each function in delivery.h holds the journal's lock.
 */
#ifndef JOURNAL_DELIVERY_H
#define JOURNAL_DELIVERY_H

#include "journal/state.h"

/*
 * Put a task into the agenda for delivery at its due time. If the task has been delivered
 * attempts_max times, park the task, and do not put it into the agenda.
 */
void delivery_let_come(struct timerhub_journal *journal, struct task *task);

/* Find every task whose lease has ended, and call delivery_let_come() for the task. */
void delivery_end_leases(struct timerhub_journal *journal);

/*
 * Returns whether a task is due for delivery. After timerhub_journal_stop(), returns false for a
 * task that was not due at the stop.
 */
bool delivery_is_due(struct timerhub_journal *journal);

/* Deliver the first task of the agenda, which must be due. Returns 0 or -ENOMEM. */
int delivery_make(struct timerhub_journal *journal, struct timerhub_journal_task *ret_task);

/*
 * Find a delivery that may change its task, and store it in `*ret_held`. Returns 0 if no change of
 * the task is in flight. If a change of the task is in flight, stores its batch in `*ret_batch` and
 * returns 1. If the delivery may not change the task, delivery_find() ends the delivery and returns
 * -ENOENT or -ESTALE. The manual page of timerhub_journal_done() explains these two errors.
 */
int delivery_find(struct timerhub_journal *journal, uint64_t id, uint64_t delivery,
                  struct delivery **ret_held, uint32_t *ret_batch);

/*
 * Returns 1 if a change of the task is in flight, and stores the change's batch in `*ret_batch`.
 * Returns 0 if no change of the task is in flight. Returns -ENOENT if `task` is NULL.
 */
int delivery_in_flight(const struct task *task, uint32_t *ret_batch);

/*
 * Begin a new lease of a delivered task. Even if the old lease has ended, the worker that has the
 * delivery keeps the task.
 */
void delivery_prolong(struct timerhub_journal *journal, struct task *task, uint64_t lease_ns);

/*
 * Wake every thread that waits in timerhub_journal_take(), and release the lock. Each woken thread
 * checks whether timerhub_journal_take() must return.
 */
void delivery_wake_takers(struct timerhub_journal *journal);

#endif
