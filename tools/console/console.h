/* SPDX-License-Identifier: MIT */
/* What all tools share. Each defines its name and its help. */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses. ANSWERED stands for GOOD where --help or --version was all that was asked. */
enum status { ANSWERED = -1, GOOD = 0, DAMAGED = 1, REFUSED = 1, WRONG_USE = 2, FAILED = 3 };

extern const char console_tool[];
/* The help has at most 24 lines of 80 columns. tests/tools/test_help_and_version.py checks this. */
extern const char console_help[];

/*
 * Takes the numbers of standard streams that are closed, before the tool opens anything. To read or
 * to write such a stream fails as before, and what the tool prints gets into no file or connection.
 */
void console_begin(void);

/* Answer --help, -h, --version or -V. False if the word is another. */
bool console_answer(const char *word);

/* An option of a tool: a flag, or one with a value, which is a text or a number up to `max`. */
struct console_option {
	const char *name;
	bool *flag;
	const char **text;
	uint64_t *number, max;
	const char *command; /* the only command that has this option; NULL: all have it */
	bool is_given;
};

/*
 * Reads options, beginning at words[*at], and moves *at behind them. Stops at the first word that
 * does not begin with two dashes, or behind "--". A value is the next word, or stands behind a '='.
 * Returns GOOD, ANSWERED, or WRONG_USE with the reason printed.
 */
enum status console_options(struct console_option *options, unsigned count, char **words, int *at);

/* Returns `status`, or if standard output could not be written, says so and returns `failed`. */
int console_end(enum status status, enum status failed);

/* Print the usage, then the reason, as users see the last line first. `word` may be NULL. */
enum status misused(const char *reason, const char *word);

/* False if the text is not an unsigned number in decimal. */
bool console_number(const char *text, uint64_t *ret_number);

/* Reads standard input to its end, or one byte more than the MiB that a task holds. NULL: errno. */
const char *console_input(size_t *ret_length);

enum console_colour { CONSOLE_PLAIN, CONSOLE_GOOD, CONSOLE_BAD };

/* The escape sequence, or "" on a dumb or no terminal, and with NO_COLOR. */
const char *console_colour(FILE *stream, enum console_colour colour);

#endif
