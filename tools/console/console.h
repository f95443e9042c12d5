/* SPDX-License-Identifier: MIT */
/*
 * The common functions of all tools: --help and --version, failed output, colours, and the progress
 * of long work. Each tool defines its name and its help.
 */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

extern const char console_tool[];
/* The help has at most 24 lines of 80 columns. tests/tools/test_help_and_version.py checks this. */
extern const char console_help[];

/*
 * If the word is --help, -h, --version or -V, print the help or the version. Returns whether the
 * function has printed.
 */
bool console_answer(const char *word);

/*
 * Flush standard output. Returns `status`. If some output could not be written, print an error and
 * return `failed`.
 */
int console_end(int status, int failed);

/* exit statuses of the tools with commands */
enum status { GOOD = 0, DAMAGED = 1, REFUSED = 1, WRONG_USE = 2, FAILED = 3 };

/* Print the usage, then the reason, as users see the last line first. `word` may be NULL. */
enum status misused(const char *reason, const char *word);

/* False if the text is not an unsigned number in decimal. */
bool console_number(const char *text, uint64_t *ret_number);

enum console_colour { CONSOLE_PLAIN, CONSOLE_GOOD, CONSOLE_BAD };

/*
 * Returns the escape sequence that switches the stream to a colour. If the stream is not a
 * terminal, or the terminal is dumb, or the environment has NO_COLOR, returns "".
 */
const char *console_colour(FILE *stream, enum console_colour colour);

/*
 * Show the progress of long work. Between console_work_begin() and console_work_end(),
 * console_work() writes a line to standard error. The line appears only on a terminal, after 2 s of
 * work. It changes at most five times a second. console_work_end() clears the line. A tool calls
 * console_work_end() before it prints. Without a call of console_work_begin(), console_work() does
 * nothing.
 */
void console_work_begin(const char *name);
__attribute__((format(printf, 1, 2))) void console_work(const char *format, ...);
void console_work_end(void);

#endif
