/* SPDX-License-Identifier: MIT */
/* See console.h. Tested by tests/tools/test_help_and_version.py. */
#define _GNU_SOURCE
#include "console.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define WORK_QUIET_NS (2 * NS_PER_S)
#define WORK_STEP_NS (NS_PER_S / 5)
/* one less than the common width of a terminal: a line that wraps cannot be cleared */
#define WORK_COLUMNS 79

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

/* The usage is the help's first line, with the lines behind it that stand under it. */
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

/* Returns how many words the option takes, or 0 if there is none such, or its value is wrong. */
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

/* ---- long work ---- */

static struct {
	const char *name; /* name of the work, or NULL if no progress is shown */
	uint64_t begun_ns;
	uint64_t shown_ns; /* time of the last write of the progress line */
	bool is_shown;
} work;

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void console_work_begin(const char *name)
{
	work.name = isatty(STDERR_FILENO) ? name : NULL;
	work.begun_ns = now_ns();
	work.shown_ns = 0;
}

static bool work_is_due(uint64_t at_ns)
{
	return at_ns - work.begun_ns >= WORK_QUIET_NS && at_ns - work.shown_ns >= WORK_STEP_NS;
}

void console_work(const char *format, ...)
{
	uint64_t at_ns = work.name ? now_ns() : 0;
	char told[WORK_COLUMNS + 1], line[2 * WORK_COLUMNS];
	va_list arguments;

	if (!work.name || !work_is_due(at_ns))
		return;
	work.shown_ns = at_ns;
	work.is_shown = true;
	va_start(arguments, format);
	(void)vsnprintf(told, sizeof(told), format, arguments);
	va_end(arguments);
	(void)snprintf(line, sizeof(line), "%s %s: %" PRIu64 " s, %s", console_tool, work.name,
	               (at_ns - work.begun_ns) / NS_PER_S, told);
	(void)fprintf(stderr, "\r%-*.*s", WORK_COLUMNS, WORK_COLUMNS, line);
}

void console_work_end(void)
{
	if (work.is_shown)
		(void)fprintf(stderr, "\r%*s\r", WORK_COLUMNS, "");
	work.is_shown = false;
	work.name = NULL;
}
