/* SPDX-License-Identifier: MIT */
/* Commands that print or change single tasks, and functions for all commands. */
#ifndef JOURNAL_TASK_COMMANDS_H
#define JOURNAL_TASK_COMMANDS_H

#include <console.h>
#include <journal/disk.h>

/* Print `what` and the text of a negative errno. Returns FAILED. */
enum status tool_complain(const char *what, int error);

/* Print that the journal is in use, and by which process if that can be seen. Returns FAILED. */
enum status tool_in_use(const char *dir);

/* A key of any bytes, as one word: blanks, backslashes and what is not printable as \xHH. */
void tool_print_key(const char *before, const void *key, size_t key_len);

/* Each returns the exit status. arguments[0]: the directory. */
enum status tool_list(struct disk *disk, char **arguments);
enum status tool_show(struct disk *disk, char **arguments);
enum status tool_cancel(struct disk *disk, char **arguments);
enum status tool_move(struct disk *disk, char **arguments);
enum status tool_revive(struct disk *disk, char **arguments);
enum status tool_backup(struct disk *disk, char **arguments);

#endif
