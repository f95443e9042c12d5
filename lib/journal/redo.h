/* SPDX-License-Identifier: MIT */
/* What a good record does to the tasks, at recovery. */
#ifndef JOURNAL_REDO_H
#define JOURNAL_REDO_H

#include "journal/agenda.h"
#include "journal/log.h"
#include "journal/tasks.h"

/* Of a task: not DROP. 0 or -ENOMEM. */
int redo_record(struct tasks *tasks, struct agenda *agenda, const struct record *record,
                const struct log_position *position);

#endif
