/* SPDX-License-Identifier: MIT */
/* The commands that print or change single tasks, and functions that all commands share. */
#ifndef JOURNAL_TASK_COMMANDS_H
#define JOURNAL_TASK_COMMANDS_H

#include <journal/disk.h>

enum { GOOD = 0, DAMAGED = 1, REFUSED = 1, WRONG_USE = 2, FAILED = 3 };

/* Print an error. Returns FAILED. */
int tool_complain(const char *what, int error);

/* Print the short usage, and the error in `text` if it is not NULL. Returns WRONG_USE. */
int tool_wrong_use(const char *reason, const char *text);

/*
 * Print any bytes as one word. Blanks, backslashes and bytes that are not printable are in
 * hexadecimal.
 */
void tool_print_key(const char *before, const void *key, size_t key_len);

/*
 * These functions run a command and return the exit status. `arguments` begin with the directory.
 */
int tool_list(struct disk *disk, char **arguments);
int tool_show(struct disk *disk, char **arguments);
int tool_cancel(struct disk *disk, char **arguments);
int tool_move(struct disk *disk, char **arguments);
int tool_revive(struct disk *disk, char **arguments);
int tool_backup(struct disk *disk, char **arguments);

#endif
