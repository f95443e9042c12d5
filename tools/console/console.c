/* SPDX-License-Identifier: MIT */
/* See console.h. Tested by tests/tools/test_console.py. */
#include "console.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_either(const char *word, const char *name, const char *letter)
{
	return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

bool console_answer(const char *word)
{
	if (is_either(word, "--help", "-h"))
		(void)fputs(console_help, stdout);
	else if (is_either(word, "--version", "-V"))
		(void)printf("%s " TIMERHUB_VERSION "\n", console_tool);
	else
		return false;
	return true;
}

int console_end(int status, int failed)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	(void)fprintf(stderr, "%s: standard output: %s\n", console_tool,
	              strerror(errno > 0 ? errno : EIO));
	return failed;
}

static bool has_colours(FILE *stream)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return isatty(fileno(stream)) && (!none || *none == '\0') && terminal &&
	       strcmp(terminal, "dumb") != 0;
}

const char *console_colour(FILE *stream, enum console_colour colour)
{
	static const char *const sequences[] = {
		[CONSOLE_PLAIN] = "\033[0m",
		[CONSOLE_GOOD] = "\033[32m",
		[CONSOLE_BAD] = "\033[31m",
	};

	return has_colours(stream) ? sequences[colour] : "";
}
