/* SPDX-License-Identifier: MIT */
/*
 * Writes Redis commands into a buffer that grows (command_buffer.h). Tested by
 * tests/relay/test_parts.c.
 */
#include "relay/command_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define FIRST_CAPACITY 1024u
#define NUMBER_BYTES 32

void bytes_fini(struct bytes *bytes)
{
	free(bytes->room);
	*bytes = (struct bytes){ .data = NULL };
}

void bytes_consume(struct bytes *bytes, size_t count)
{
	if (count == 0)
		return;
	bytes->data += count;
	bytes->len -= count;
	/* Moving no more bytes than were consumed before costs little for each of those. */
	if (bytes->len <= (size_t)(bytes->data - bytes->room)) {
		memmove(bytes->room, bytes->data, bytes->len);
		bytes->data = bytes->room;
	}
}

static bool has_room(struct bytes *bytes, size_t len)
{
	size_t capacity = bytes->capacity ? bytes->capacity : FIRST_CAPACITY;
	size_t consumed = (size_t)(bytes->data - bytes->room);
	char *room;

	if (bytes->failed || len > SIZE_MAX / 4 - consumed - bytes->len) {
		bytes->failed = true;
		return false;
	}
	while (capacity < consumed + bytes->len + len)
		capacity *= 2;
	if (capacity == bytes->capacity)
		return true;
	room = realloc(bytes->room, capacity);
	if (!room) {
		bytes->failed = true;
		return false;
	}
	bytes->room = room;
	bytes->data = room + consumed;
	bytes->capacity = capacity;
	return true;
}

void bytes_add(struct bytes *bytes, const void *data, size_t len)
{
	if (len == 0 || !has_room(bytes, len))
		return;
	memcpy(bytes->data + bytes->len, data, len);
	bytes->len += len;
}

static void add_header(struct bytes *bytes, char kind, size_t number)
{
	char line[NUMBER_BYTES];
	struct text text = { .buffer = line, .bytes = sizeof(line) };

	text_add_char(&text, kind);
	text_add_decimal(&text, number, 0);
	text_add(&text, "\r\n");
	bytes_add(bytes, line, text.length);
}

void bytes_command(struct bytes *bytes, unsigned words)
{
	static const char asking[] = "*1\r\n$6\r\nASKING\r\n";

	if (bytes->asking)
		bytes_add(bytes, asking, sizeof(asking) - 1);
	add_header(bytes, '*', words);
}

void bytes_joined(struct bytes *bytes, const char *first, const void *second, size_t second_len)
{
	size_t first_len = strlen(first);

	add_header(bytes, '$', first_len + second_len);
	bytes_add(bytes, first, first_len);
	bytes_add(bytes, second, second_len);
	bytes_add(bytes, "\r\n", 2);
}

void bytes_word(struct bytes *bytes, const void *word, size_t len)
{
	bytes_joined(bytes, "", word, len);
}

void bytes_text(struct bytes *bytes, const char *text)
{
	bytes_word(bytes, text, strlen(text));
}

void bytes_number(struct bytes *bytes, uint64_t number)
{
	char digits[NUMBER_BYTES];
	struct text text = { .buffer = digits, .bytes = sizeof(digits) };

	text_add_decimal(&text, number, 0);
	bytes_word(bytes, digits, text.length);
}
