/* SPDX-License-Identifier: MIT */
/*
 * Reads options, prints help and errors, and colours text, in the same way for all tools
 * (console.h). Tested by tests/tools/test_help_and_version.py.
 */
#define _GNU_SOURCE
#include "console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void console_begin(void)
{
	int fd;

	do
		fd = open("/", O_PATH | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

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

/*
 * Prints the usage before the reason. The usage is the first line of the help, and the lines after
 * it that are indented to continue it.
 */
enum status misused(const char *reason, const char *word)
{
	static const char margin[] = "       ";
	const char *end = strchr(console_help, '\n');

	while (end && strncmp(end + 1, margin, sizeof(margin) - 1) == 0)
		end = strchr(end + 1, '\n');
	(void)fprintf(stderr, "%.*s%s%s --help says more\n%s: %s%s%s\n",
	              end ? (int)(end + 1 - console_help) : 0, console_help, margin, console_tool,
	              console_tool, reason, word ? " " : "", word ? word : "");
	return WRONG_USE;
}

/*
 * Reads the option words[0], whose value may be words[1]. Returns how many of these words belong to
 * it, or 0 if there is no such option or its value is not valid.
 */
static int read_option(struct console_option *options, unsigned count, char **words)
{
	char *value = strchr(words[0], '=');
	int taken = value ? 1 : 2;

	if (value)
		*value++ = '\0'; /* also keeps a password out of the message */
	else
		value = words[1];
	while (count > 0 && strcmp(words[0], options->name) != 0)
		options++, count--;
	if (count == 0)
		return 0;
	options->is_given = true;
	if (options->flag) {
		*options->flag = true;
		return taken == 2 ? 1 : 0; /* a flag has no value */
	}
	if (value && options->text)
		*options->text = value;
	else if (!value || !console_number(value, options->number) ||
	         *options->number > options->max)
		return 0;
	return taken;
}

enum status console_options(struct console_option *options, unsigned count, char **words, int *at)
{
	while (words[*at] && words[*at][0] == '-') {
		int taken = 0;

		if (console_answer(words[*at]))
			return ANSWERED;
		if (words[*at][1] != '-')
			return GOOD;
		if (strcmp(words[*at], "--") == 0) {
			++*at;
			return GOOD;
		}
		taken = read_option(options, count, words + *at);
		if (taken == 0)
			return misused("there is no such option, or its value is not valid:",
			               words[*at]);
		*at += taken;
	}
	return GOOD;
}

int console_end(enum status status, enum status failed)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status == ANSWERED ? 0 : (int)status;
	(void)fprintf(stderr, "%s: standard output: %s\n", console_tool,
	              strerror(errno > 0 ? errno : EIO));
	return (int)failed;
}

bool console_number(const char *text, uint64_t *ret_number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

const char *console_input(size_t *ret_length)
{
	static char data[(1 << 20) + 1];

	*ret_length = fread(data, 1, sizeof(data), stdin);
	return ferror(stdin) ? NULL : data;
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
