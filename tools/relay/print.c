/* SPDX-License-Identifier: MIT */
/* Prints the replies of Redis functions as text or as JSON. */
#include <inttypes.h>
#include <string.h>

#include <when.h>

#include "tool.h"

void print_text(const char *text, size_t len, bool json)
{
	if (json)
		(void)putchar('"');
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte >= ' ' && byte < 127 && byte != '"' && byte != '\\')
			(void)putchar(byte);
		else
			(void)printf(json ? "\\u%04x" : "\\x%02x", byte);
	}
	if (json)
		(void)putchar('"');
}

void print_string(const char *text)
{
	print_text(text, strlen(text), true);
}

static void print_value(const struct reply *reply, bool json)
{
	if (reply_type(reply) == REPLY_INTEGER)
		(void)printf("%" PRId64, reply_integer(reply));
	else
		print_text(reply_text(reply), reply_len(reply), json);
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

void print_stat(const struct reply *reply, bool json)
{
	const char *name, *value;

	if (json)
		(void)printf("{");
	for (size_t at = 0; stat_next(reply, &at, &name, &value);) {
		if (json && at > 2)
			(void)printf(", ");
		print_text(name, strlen(name), json);
		(void)printf(json ? ": " : " ");
		/* numbers are texts of digits */
		if (json && *value && value[strspn(value, "0123456789")] == '\0')
			(void)printf("%s", value);
		else
			print_value(reply_at(reply, at), json);
		if (!json)
			(void)printf("\n");
	}
	if (json)
		(void)printf("}\n");
}

/* A column or field. As text, the first of a line has no name. */
static void print_field(const char *name, const struct reply *value, bool first, bool json)
{
	if (!json && print_time(name, value))
		return;
	if (json && !first)
		(void)printf(", ");
	else if (!json && !first)
		(void)printf(" ");
	if (json || !first) {
		print_text(name, strlen(name), json);
		(void)printf(json ? ": " : " ");
	}
	print_value(value, json);
}

static void print_rows(const struct reply *reply, const char *const *names, size_t columns,
                       bool json)
{
	if (json)
		(void)printf("[");
	for (size_t i = 1; i + columns <= reply_count(reply); i += columns) {
		if (json)
			(void)printf(i > 1 ? ",\n {" : "{");
		for (size_t j = 0; j < columns; j++)
			print_field(names[j], reply_at(reply, i + j), j == 0, json);
		(void)printf(json ? "}" : "\n");
	}
	if (json)
		(void)printf("]\n");
}

void print_peek(const struct reply *reply, bool json)
{
	static const char *const names[] = { "where", "due", "attempts", "put", "data", "entry" };

	print_rows(reply, names, sizeof(names) / sizeof(names[0]), json);
}

void print_list(const struct reply *reply, bool json)
{
	static const char *const names[] = { "id", "due", "attempts", "put", "bytes" };

	print_rows(reply, names, sizeof(names) / sizeof(names[0]), json);
}

void print_entries(const struct reply *reply, bool json)
{
	if (json)
		(void)printf("[");
	for (size_t i = 0; i < reply_count(reply); i++) {
		const struct reply *entry = reply_at(reply, i), *fields = reply_at(entry, 1);

		if (json)
			(void)printf(i > 0 ? ",\n {" : "{");
		print_field("entry", reply_at(entry, 0), true, json);
		for (size_t j = 0; j + 1 < reply_count(fields); j += 2)
			print_field(reply_text(reply_at(fields, j)), reply_at(fields, j + 1), false,
			            json);
		(void)printf(json ? "}" : "\n");
	}
	if (json)
		(void)printf("]\n");
}
