/* SPDX-License-Identifier: MIT */
/* Prints the replies of Redis functions as text or as JSON. */
#include <inttypes.h>
#include <string.h>

#include <when.h>

#include "tool.h"

/* The one with --json, or the other. */
static void put(const char *json, const char *text)
{
	(void)fputs(options.json ? json : text, stdout);
}

static void print_text(const char *text, size_t len)
{
	put("\"", "");
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte >= ' ' && byte < 127 && byte != '"' && byte != '\\')
			(void)putchar(byte);
		else
			(void)printf(options.json ? "\\u%04x" : "\\x%02x", byte);
	}
	put("\"", "");
}

void print_string(const char *text)
{
	print_text(text, strlen(text));
}

static void print_value(const struct reply *reply)
{
	if (reply_type(reply) == REPLY_INTEGER)
		(void)printf("%" PRId64, reply_integer(reply));
	else
		print_text(reply_text(reply), reply_len(reply));
}

/* Print the time of a field `due` or `put` as text. False if it is another field, or no time. */
static bool print_time(const char *name, const struct reply *value)
{
	const bool is_due = strcmp(name, "due") == 0;
	uint64_t us = 0;

	if (!is_due && strcmp(name, "put") != 0)
		return false;
	if (reply_type(value) == REPLY_INTEGER)
		us = (uint64_t)reply_integer(value);
	else if (!console_number(reply_text(value), &us))
		return false;
	if (us == UINT64_MAX && is_due) /* -1 in the reply */
		when_print(name, WHEN_NEVER);
	else if (us < WHEN_NEVER / 1000)
		when_print(name, us * 1000);
	else
		return false;
	return true;
}

void print_stat(const struct reply *reply)
{
	const char *name, *value;

	put("{", "");
	for (size_t at = 0; stat_next(reply, &at, &name, &value);) {
		if (at > 2)
			put(", ", "");
		print_string(name);
		put(": ", " ");
		/* numbers are texts of digits */
		if (options.json && *value && value[strspn(value, "0123456789")] == '\0')
			(void)printf("%s", value);
		else
			print_value(reply_at(reply, at));
		put("", "\n");
	}
	put("}\n", "");
}

/* A column or field. As text, the first of a line has no name. */
static void print_field(const char *name, const struct reply *value, bool first)
{
	if (!options.json && print_time(name, value))
		return;
	if (!first)
		put(", ", " ");
	if (options.json || !first) {
		print_string(name);
		put(": ", " ");
	}
	print_value(value);
}

static void print_rows(const struct reply *reply, const char *const *names, size_t columns)
{
	put("[", "");
	for (size_t i = 1; i + columns <= reply_count(reply); i += columns) {
		put(i > 1 ? ",\n {" : "{", "");
		for (size_t j = 0; j < columns; j++)
			print_field(names[j], reply_at(reply, i + j), j == 0);
		put("}", "\n");
	}
	put("]\n", "");
}

void print_peek(const struct reply *reply)
{
	static const char *const names[] = { "where", "due", "attempts", "put", "data", "entry" };

	print_rows(reply, names, sizeof(names) / sizeof(names[0]));
}

void print_list(const struct reply *reply)
{
	static const char *const names[] = { "id", "due", "attempts", "put", "bytes" };

	print_rows(reply, names, sizeof(names) / sizeof(names[0]));
}

void print_entries(const struct reply *reply)
{
	put("[", "");
	for (size_t i = 0; i < reply_count(reply); i++) {
		const struct reply *entry = reply_at(reply, i), *fields = reply_at(entry, 1);

		put(i > 0 ? ",\n {" : "{", "");
		print_field("entry", reply_at(entry, 0), true);
		for (size_t j = 0; j + 1 < reply_count(fields); j += 2)
			print_field(reply_text(reply_at(fields, j)), reply_at(fields, j + 1),
			            false);
		put("}", "\n");
	}
	put("]\n", "");
}
