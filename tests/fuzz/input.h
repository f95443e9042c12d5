/* SPDX-License-Identifier: MIT */
/*
 * Reads the bytes of a fuzzer's input from front to back. After the last byte the input has zeros.
 * One or two bytes can encode a large time: a power of two, a power of two minus one, or a small
 * multiple of a power of two.
 */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each target defines this function, which libFuzzer calls for each input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

struct input {
	const uint8_t *bytes;
	size_t left;
};

static inline void input_bytes(struct input *input, void *ret_bytes, size_t count)
{
	size_t given = count < input->left ? count : input->left;

	memset(ret_bytes, 0, count);
	if (given > 0)
		memcpy(ret_bytes, input->bytes, given);
	input->bytes += given;
	input->left -= given;
}

static inline uint8_t input_byte(struct input *input)
{
	uint8_t byte;

	input_bytes(input, &byte, 1);
	return byte;
}

static inline uint64_t input_word(struct input *input)
{
	uint64_t word;

	input_bytes(input, &word, sizeof(word));
	return word;
}

/*
 * Reads a time. Two bits of the time's first byte choose the kind of time, and six bits choose the
 * power of two.
 */
static inline uint64_t input_ns(struct input *input)
{
	uint8_t code = input_byte(input);
	unsigned shift = code & 63;

	switch (code >> 6) {
	case 0:
		return UINT64_C(1) << shift;
	case 1:
		return (UINT64_C(1) << shift) - 1;
	case 2:
		return (uint64_t)input_byte(input) << shift;
	default:
		return shift == 63 ? input_word(input)
		                   : ((uint64_t)input_byte(input) << shift) + input_byte(input);
	}
}

#endif
