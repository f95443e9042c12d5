/* SPDX-License-Identifier: MIT */
/*
 * Text that is added piece by piece to a caller's buffer, as snprintf() does it: pieces that do not
 * fit count all the same. Pure, and without stdio, whose output depends on the locale and which a
 * signal handler may not call.
 */
#ifndef TIMERHUB_TEXT_H
#define TIMERHUB_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
	char *buffer;  /* the caller's */
	size_t bytes;  /* room in it */
	size_t length; /* of the whole text, whatever the room */
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

/* Add number / 10^decimals, exactly, with so many decimals (at most 19). */
static inline void text_add_decimal(struct text *text, uint64_t number, unsigned decimals)
{
	char digits[24]; /* 2^64 - 1 has 20 */
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

static inline void text_add_number(struct text *text, uint64_t number)
{
	text_add_decimal(text, number, 0);
}

/* End the text, or what fits of it, with a NUL. */
static inline void text_end(struct text *text)
{
	if (text->bytes > 0)
		text->buffer[text->length < text->bytes ? text->length : text->bytes - 1] = '\0';
}

#endif
