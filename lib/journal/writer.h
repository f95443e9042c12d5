/* SPDX-License-Identifier: MIT */
/* Writing: requests gather, and the thread that leads brings them to the disk. See writer.c. */
#ifndef JOURNAL_WRITER_H
#define JOURNAL_WRITER_H

#include "journal/state.h"

/*
 * Make a request: let it gather, and lead if no thread does. The lock is not held. 0, and the
 * number of its batch; or why not, and which change is refused. -EAGAIN: it would have to wait, and
 * may not.
 */
int writer_make(struct timerhub_journal *journal, struct request *request, bool may_wait,
                unsigned *ret_index, uint32_t *ret_number);

/*
 * Wait until the batch of that number is finished; the calling thread may be asked to lead. The
 * lock is not held.
 */
void writer_await(struct timerhub_journal *journal, uint32_t number);

/*
 * Have the keeper write, within some milliseconds, records that no caller waits for. Returns
 * whether it must be woken: then ticket_wake(&journal->work, 1), unlocked. The lock is held.
 */
bool writer_remind(struct timerhub_journal *journal);

/* As writer_remind(), but now; not if a thread writes: that one looks before it leaves. */
bool writer_kick(struct timerhub_journal *journal);

/* Is there something to write? The lock is held. */
bool writer_must_write(struct timerhub_journal *journal);

/* If no thread leads, the calling one does: then writer_lead(), unlocked. The lock is held. */
bool writer_may_lead(struct timerhub_journal *journal);

/*
 * Write out what has gathered. Then a waiting caller leads, or the keeper has what is left.
 * `keeper`: this is the keeper, which compacts too. The lock is not held.
 */
void writer_lead(struct timerhub_journal *journal, bool keeper);

/* Write what has gathered, and compact a little. Was there anything? Where no thread is: tests. */
bool writer_pass(struct timerhub_journal *journal);

#endif
