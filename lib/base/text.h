/* SPDX-License-Identifier: MIT */
/*
 * Writes a text piece by piece into a caller's buffer. As with snprintf(3), what does not fit is
 * left out but counted, so the caller learns how large a buffer it needs. stdio is not used,
 * because it depends on the locale and can't be called in a signal handler.
 */
#ifndef TIMERHUB_TEXT_H
#define TIMERHUB_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
	char *buffer;
	size_t bytes;
	size_t length; /* the whole text's length, even if the buffer is smaller */
};

/* Adds one character to the text. */
static inline void text_add_char(struct text *text, char character)
{
	if (text->length < text->bytes)
		text->buffer[text->length] = character;
	text->length++;
}

/* Adds a string to the text. */
static inline void text_add(struct text *text, const char *string)
{
	while (*string)
		text_add_char(text, *string++);
}

/*
 * Adds number / 10^decimals to the text as an exact decimal number. `decimals` is how many digits
 * come after the point, at most 19.
 */
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

/*
 * Ends the text with a zero byte. If the text does not fit into the buffer, the buffer's last byte
 * is used for that.
 */
static inline void text_end(struct text *text)
{
	if (text->bytes > 0)
		text->buffer[text->length < text->bytes ? text->length : text->bytes - 1] = '\0';
}

#endif
