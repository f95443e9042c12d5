/* SPDX-License-Identifier: MIT */
/*
 * The commands of timerhub-journal that print or change single tasks, and functions for all
 * commands.
 */
#ifndef JOURNAL_TASK_COMMANDS_H
#define JOURNAL_TASK_COMMANDS_H

#include <console.h>
#include <journal/disk.h>

/* Print an error message: `what` and the text of `error`, a negative errno. Returns FAILED. */
int tool_complain(const char *what, int error);

/* Print that the journal is in use, and by which process if that can be seen. Returns FAILED. */
int tool_in_use(const char *dir);

/*
 * Print `before`, and then a key of any bytes as one word. Blanks, backslashes and bytes that are
 * not printable are in hexadecimal.
 */
void tool_print_key(const char *before, const void *key, size_t key_len);

/*
 * Each function tool_NAME() runs the command NAME, and returns the exit status. arguments[0] is the
 * journal's directory.
 */
int tool_list(struct disk *disk, char **arguments);
int tool_show(struct disk *disk, char **arguments);
int tool_cancel(struct disk *disk, char **arguments);
int tool_move(struct disk *disk, char **arguments);
int tool_revive(struct disk *disk, char **arguments);
int tool_backup(struct disk *disk, char **arguments);

#endif
