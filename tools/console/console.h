/* SPDX-License-Identifier: MIT */
/*
 * What the tools have in common: how they answer --help and --version, what they end with if their
 * output cannot be written, and colour. Each tool defines its name and its help.
 */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include <stdbool.h>
#include <stdio.h>

extern const char console_tool[];
/* At most 24 lines of 80 columns; tests/tools/test_console.py holds the tools to it. */
extern const char console_help[];

/* Answer --help, -h, --version and -V. Returns false on any other word. */
bool console_answer(const char *word);

/* Write out what standard output still holds. Returns `status`; if that fails says so and returns
 * `failed`. */
int console_end(int status, int failed);

enum console_colour { CONSOLE_PLAIN, CONSOLE_GOOD, CONSOLE_BAD };

/*
 * Returns the sequence that switches to a colour, or "" unless the stream is a terminal. NO_COLOR
 * in the environment, or a dumb terminal, means no colour.
 */
const char *console_colour(FILE *stream, enum console_colour colour);

#endif
