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

void print_pairs(const struct reply *reply, size_t from, bool json)
{
	if (json)
		(void)printf("{");
	for (size_t i = from; i + 1 < reply_count(reply); i += 2) {
		const struct reply *name = reply_at(reply, i), *value = reply_at(reply, i + 1);
		const char *text = reply_text(value);

		if (json && i > from)
			(void)printf(", ");
		print_text(reply_text(name), reply_len(name), json);
		(void)printf(json ? ": " : " ");
		/* timerhub_stat returns its numbers as texts of digits */
		if (json && *text && strspn(text, "0123456789") == reply_len(value))
			(void)printf("%s", text);
		else
			print_value(value, json);
		if (!json)
			(void)printf("\n");
	}
	if (json)
		(void)printf("}\n");
}

void print_rows(const struct reply *reply, size_t from, const char *const *names, size_t columns,
                bool json)
{
	if (json)
		(void)printf("[");
	for (size_t i = from; i + columns <= reply_count(reply); i += columns) {
		if (json)
			(void)printf(i > from ? ",\n {" : "{");
		for (size_t j = 0; j < columns; j++) {
			const struct reply *value = reply_at(reply, i + j);

			if (!json && print_time(names[j], value))
				continue;
			if (json)
				(void)printf(j > 0 ? ", \"%s\": " : "\"%s\": ", names[j]);
			else if (j > 0)
				(void)printf(" %s ", names[j]);
			print_value(value, json);
		}
		(void)printf(json ? "}" : "\n");
	}
	if (json)
		(void)printf("]\n");
}

void print_entries(const struct reply *reply, bool json)
{
	if (json)
		(void)printf("[");
	for (size_t i = 0; i < reply_count(reply); i++) {
		const struct reply *entry = reply_at(reply, i), *fields = reply_at(entry, 1);

		(void)printf(json ? (i > 0 ? ",\n {\"entry\": \"%s\"" : "{\"entry\": \"%s\"")
		                  : "%s",
		             reply_text(reply_at(entry, 0)));
		for (size_t j = 0; j + 1 < reply_count(fields); j += 2) {
			const struct reply *value = reply_at(fields, j + 1);

			if (!json && print_time(reply_text(reply_at(fields, j)), value))
				continue;
			(void)printf(json ? ", " : " ");
			print_text(reply_text(reply_at(fields, j)), reply_len(reply_at(fields, j)),
			           json);
			(void)printf(json ? ": " : " ");
			print_text(reply_text(value), reply_len(value), json);
		}
		(void)printf(json ? "}" : "\n");
	}
	if (json)
		(void)printf("]\n");
}
