/* SPDX-License-Identifier: MIT */
/* The next task, leases, and whether a worker's answer is still valid. Under the journal's lock. */
#ifndef JOURNAL_DELIVERY_H
#define JOURNAL_DELIVERY_H

#include "journal/state.h"

/* For delivery at its due time; after attempts_max deliveries it is parked. */
void delivery_let_come(struct backlog *backlog, struct task *task);

/* Find every task whose lease has ended, and call delivery_let_come() for the task. */
void delivery_end_leases(struct timerhub_journal *journal);

/* After timerhub_journal_stop(), false for what was not due then. */
bool delivery_is_due(struct timerhub_journal *journal);

/* Deliver the first task of the agenda, which must be due. Returns 0 or -ENOMEM. */
int delivery_make(struct timerhub_journal *journal, struct timerhub_journal_task *ret_task);

/*
 * A delivery that may change its task, in `*ret_held`: 0; 1 if a change is in flight, in
 * `*ret_batch`; else -ENOENT or -ESTALE, see timerhub_journal_done(3); `*ret_held` if it is held.
 */
int delivery_find(struct backlog *backlog, uint64_t id, uint64_t delivery,
                  struct delivery **ret_held, uint32_t *ret_batch);

/* 1: in `*ret_batch`; 0: none; -ENOENT: `task` is NULL. */
int delivery_in_flight(const struct task *task, uint32_t *ret_batch);

/* Even if the old one has ended, the worker with the delivery keeps the task. */
void delivery_prolong(struct timerhub_journal *journal, struct task *task, uint64_t lease_ns);

/* All that wait in timerhub_journal_take() look whether to return. Releases the lock. */
void delivery_wake_takers(struct timerhub_journal *journal);

#endif
