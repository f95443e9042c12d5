/* SPDX-License-Identifier: MIT */
/*
 * Adds pieces to a caller's buffer; as with snprintf(), the length counts what does not fit. Not
 * stdio, which depends on the locale and is not signal-safe.
 */
#ifndef TIMERHUB_TEXT_H
#define TIMERHUB_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
	char *buffer;
	size_t bytes;
	size_t length; /* of the whole text, even if the buffer is smaller */
};

static inline void text_add_char(struct text *text, char character)
{
	if (text->length < text->bytes)
		text->buffer[text->length] = character;
	text->length++;
}

static inline void text_add(struct text *text, const char *string)
{
	while (*string)
		text_add_char(text, *string++);
}

/* number / 10^decimals, exactly; at most 19 digits after the point. */
static inline void text_add_decimal(struct text *text, uint64_t number, unsigned decimals)
{
	char digits[24];
	unsigned count = 0;

	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0 || count <= decimals);
	while (count > 0) {
		if (count == decimals)
			text_add_char(text, '.');
		text_add_char(text, digits[--count]);
	}
}

/* With a NUL; cut if it does not fit. */
static inline void text_end(struct text *text)
{
	if (text->bytes > 0)
		text->buffer[text->length < text->bytes ? text->length : text->bytes - 1] = '\0';
}

#endif
