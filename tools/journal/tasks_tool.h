/* SPDX-License-Identifier: MIT */
/* Commands that look at single tasks, or change them; and what all commands share. */
#ifndef JOURNAL_TASKS_TOOL_H
#define JOURNAL_TASKS_TOOL_H

#include <journal/disk.h>

enum { GOOD = 0, DAMAGED = 1, REFUSED = 1, WRONG_USE = 2, FAILED = 3 };

/* Say what failed. Returns FAILED. */
int tool_complain(const char *what, int error);

/* Say in short how the tool is used, and what was wrong with `text`, or all. Returns WRONG_USE. */
int tool_wrong_use(const char *reason, const char *text);

/*
 * Print any bytes as one word: what is no plain character, blanks and backslashes in hexadecimal.
 */
void tool_print_key(const char *before, const void *key, size_t key_len);

/* Commands; `arguments` begin with the directory. They return the exit status. */
int tool_list(struct disk *disk, char **arguments);
int tool_show(struct disk *disk, char **arguments);
int tool_cancel(struct disk *disk, char **arguments);
int tool_move(struct disk *disk, char **arguments);
int tool_revive(struct disk *disk, char **arguments);
int tool_backup(struct disk *disk, char **arguments);

#endif
