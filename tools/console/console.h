/* SPDX-License-Identifier: MIT */
/*
 * What all tools share: help, options, exit statuses and colours. Each tool defines console_tool,
 * its name, and console_help.
 */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The exit statuses of the tools. ANSWERED means that only --help or --version was asked for, and
 * becomes exit status 0.
 */
enum status { ANSWERED = -1, GOOD = 0, DAMAGED = 1, REFUSED = 1, WRONG_USE = 2, FAILED = 3 };

extern const char console_tool[];
/*
 * The tool's help. It has at most 24 lines of 80 columns, which
 * tests/tools/test_help_and_version.py checks.
 */
extern const char console_help[];

/*
 * Must be called before the tool opens anything. If a standard stream is closed, it occupies the
 * stream's descriptor number. So what the tool prints cannot get into a file or a connection that
 * would have got this number. Reading or writing the stream still fails.
 */
void console_begin(void);

/*
 * If `word` is --help, -h, --version or -V, prints the answer and returns true. Otherwise returns
 * false.
 */
bool console_answer(const char *word);

/*
 * An option of a tool. It is a flag, or has a value, which is a text or a number up to `max`. Only
 * one of `flag`, `text` and `number` is not NULL.
 */
struct console_option {
	const char *name;
	bool *flag;
	const char **text;
	uint64_t *number, max;
	const char *command; /* the only command that has this option; NULL: all have it */
	bool is_given;
};

/*
 * Reads options from words[*at] on, up to the first word that does not begin with two dashes, or up
 * to and including "--". *at is then the index of the next word. The value of an option is the next
 * word, or comes after a '='. Returns GOOD, or ANSWERED after --help or --version, or WRONG_USE,
 * with the reason printed.
 */
enum status console_options(struct console_option *options, unsigned count, char **words, int *at);

/*
 * Returns the tool's exit status: `status`, or `failed` if standard output could not be written. In
 * that case it also prints the error.
 */
int console_end(enum status status, enum status failed);

/*
 * Prints the usage, and after it what is wrong with the arguments, because users read the last line
 * first. `word` is the wrong argument, or NULL. Returns WRONG_USE.
 */
enum status misused(const char *reason, const char *word);

/* Reads an unsigned decimal number. Returns false if the text is anything else. */
bool console_number(const char *text, uint64_t *ret_number);

/*
 * Reads all of standard input, but at most 1 MiB and one byte. A task can have 1 MiB of data, so
 * the further byte shows that there is too much. Returns NULL and sets errno if the input cannot be
 * read.
 */
const char *console_input(size_t *ret_length);

enum console_colour { CONSOLE_PLAIN, CONSOLE_GOOD, CONSOLE_BAD };

/*
 * Returns the escape sequence that switches a terminal to a colour. Returns "" if `stream` is no
 * terminal, or a dumb one, or if the variable NO_COLOR is set.
 */
const char *console_colour(FILE *stream, enum console_colour colour);

#endif
