/* SPDX-License-Identifier: MIT */
/*
 * The bytes of the file format, and the agenda (the heap of due tasks) against an unsorted array.
 */
#include <errno.h>
#include <harness.h>
#include <journal/agenda.h>
#include <journal/crc32c.h>
#include <journal/record.h>
#include <journal/siphash.h>
#include <stdlib.h>
#include <string.h>

/* By definition: a polynomial division, bit by bit. */
static uint32_t crc_by_bits(const uint8_t *bytes, size_t count)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < count; i++)
		for (int bit = 0; bit < 8; bit++) {
			uint32_t out = (crc ^ (uint32_t)(bytes[i] >> bit)) & 1;

			crc = (crc >> 1) ^ (out ? UINT32_C(0x82f63b78) : 0);
		}
	return ~crc;
}

START_TEST(crc_is_that_of_rfc_3720)
{
	uint8_t bytes[32];

	memset(bytes, 0, sizeof(bytes));
	expect_eq(crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	expect_eq(crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
	expect_eq(crc32c(0, "123456789", 9), 0xe3069283);
}
END_TEST

START_TEST(crc_is_its_definition_in_any_pieces)
{
	struct dice dice = dice_new(1);
	uint8_t bytes[300];

	for (unsigned round = 0; round < scaled(2000); round++) {
		size_t count = (size_t)dice_below(&dice, sizeof(bytes));
		size_t cut = (size_t)dice_below(&dice, count + 1);

		for (size_t i = 0; i < count; i++)
			bytes[i] = (uint8_t)dice_roll(&dice);
		expect_eq(crc32c(0, bytes, count), crc_by_bits(bytes, count));
		expect_eq(crc32c(crc32c(0, bytes, cut), bytes + cut, count - cut),
		          crc32c(0, bytes, count));
		expect_eq(crc32c_before(crc32c(0, bytes, count), bytes + cut, count - cut),
		          crc32c(0, bytes, cut));
	}
}
END_TEST

/* Returns SipHash-c-d of the message, by the definition in the paper. */
static uint64_t sip_by_the_paper(unsigned c, unsigned d, const uint64_t k[2], const uint8_t *m,
                                 size_t b)
{
	uint64_t v0 = k[0] ^ 0x736f6d6570736575, v1 = k[1] ^ 0x646f72616e646f6d;
	uint64_t v2 = k[0] ^ 0x6c7967656e657261, v3 = k[1] ^ 0x7465646279746573;

#define ROTL(x, n) (((x) << (n)) | ((x) >> (64 - (n))))
	for (size_t i = 0; i <= b / 8 + 1; i++) {
		bool last = i == b / 8 + 1;
		uint64_t word = 0;

		for (size_t j = 8 * i; j < 8 * i + 8 && j < b; j++)
			word |= (uint64_t)m[j] << (8 * (j % 8));
		if (i == b / 8)
			word |= (uint64_t)(b % 256) << 56;
		if (last)
			v2 ^= 0xff;
		else
			v3 ^= word;
		for (unsigned round = 0; round < (last ? d : c); round++) {
			v0 += v1, v1 = ROTL(v1, 13), v1 ^= v0, v0 = ROTL(v0, 32);
			v2 += v3, v3 = ROTL(v3, 16), v3 ^= v2;
			v0 += v3, v3 = ROTL(v3, 21), v3 ^= v0;
			v2 += v1, v1 = ROTL(v1, 17), v1 ^= v2, v2 = ROTL(v2, 32);
		}
		if (!last)
			v0 ^= word;
	}
#undef ROTL
	return v0 ^ v1 ^ v2 ^ v3;
}

START_TEST(hash_is_siphash_1_3)
{
	static const uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
	uint8_t bytes[RECORD_KEY_MAX_BYTES];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	/* The expected value is the example for SipHash-2-4 in the paper. */
	expect_eq(sip_by_the_paper(2, 4, key, bytes, 15), 0xa129ca6149be45e5);
	for (size_t count = 0; count <= sizeof(bytes); count++)
		expect_eq(siphash_bytes(key, bytes, count),
		          sip_by_the_paper(1, 3, key, bytes, count));
}
END_TEST

#define SALT 0x1234567

static size_t make_record(uint8_t *to, const char *data)
{
	struct record record = {
		.type = RECORD_PUT,
		.id = 77,
		.due_ns = 1234567890123,
		.interval_ns = 77000,
		.attempts = 3,
		.key = "a key",
		.key_len = 5,
		.data = data,
		.data_len = (uint32_t)strlen(data),
	};

	record.body_crc = record_body_crc(&record);
	record_encode(to, &record);
	return record_seal(to, SALT, 42, 40);
}

START_TEST(record_comes_back_as_it_was)
{
	uint8_t bytes[256];
	size_t size = make_record(bytes, "pay or go"), found;
	struct record record;

	expect_eq(size, RECORD_HEADER_BYTES + 8 + 16);
	expect_eq(record_decode(bytes, size, SALT, &record, &found), RECORD_GOOD);
	expect_eq(found, size);
	expect(record.type == RECORD_PUT && record.id == 77 && record.attempts == 3);
	expect(record.sequence == 42 && record.stable == 40 && record.due_ns == 1234567890123);
	expect(record.interval_ns == 77000);
	expect(record.key_len == 5 && memcmp(record.key, "a key", 5) == 0);
	expect(record.data_len == 9 && memcmp(record.data, "pay or go", 9) == 0);
	expect_eq(record_decode(bytes, size, SALT + 1, &record, &found), RECORD_BAD);
	/* The type and the sequence are little-endian on every machine. */
	expect(bytes[12] == RECORD_PUT && bytes[13] == 5 && bytes[16] == 42 && bytes[23] == 0);
}
END_TEST

START_TEST(record_with_any_bit_flipped_is_bad)
{
	uint8_t bytes[256];
	size_t size = make_record(bytes, "any bit of it"), found;
	struct record record;

	for (size_t bit = 0; bit < size * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		expect_context("bit", bit, 0);
		expect(record_decode(bytes, size, SALT, &record, &found) != RECORD_GOOD);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

START_TEST(record_cut_anywhere_is_not_good)
{
	uint8_t bytes[256];
	size_t size = make_record(bytes, "cut"), found;
	struct record record;

	for (size_t available = 0; available < size; available++) {
		expect_eq(record_decode(bytes, available, SALT, &record, &found), RECORD_SHORT);
		expect_lt(available, found);
	}
}
END_TEST

START_TEST(segment_header_with_any_bit_flipped_is_bad)
{
	struct segment_header header = { FORMAT_VERSION, 5, 7, 6, 8, 9 }, found;
	uint8_t bytes[SEGMENT_HEADER_BYTES];

	segment_header_encode(bytes, &header);
	expect_eq(segment_header_decode(bytes, &found), 0);
	expect(memcmp(&header, &found, sizeof(header)) == 0);
	for (size_t bit = 0; bit < SEGMENT_HEADER_BYTES * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		expect(segment_header_decode(bytes, &found) == -EBADMSG);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	header.version = FORMAT_VERSION + 1;
	segment_header_encode(bytes, &header);
	expect(segment_header_decode(bytes, &found) == -EOPNOTSUPP);
}
END_TEST

#define TASKS 64

static struct task *earliest(struct task *tasks, const uint64_t *times)
{
	struct task *best = NULL;

	for (unsigned i = 0; i < TASKS; i++)
		if (tasks[i].agenda_index != TASK_NOWHERE &&
		    (!best || times[i] < times[best - tasks]))
			best = &tasks[i];
	return best;
}

START_TEST(agenda_is_in_order_of_time_then_id)
{
	struct task *tasks = calloc(TASKS, sizeof(*tasks));
	struct agenda agenda = { .cells = NULL };
	struct dice dice = dice_new(2);
	uint64_t times[TASKS];

	expect_eq(agenda_reserve(&agenda, TASKS), 0);
	for (unsigned i = 0; i < TASKS; i++)
		tasks[i] = (struct task){ .id = i, .agenda_index = TASK_NOWHERE };
	for (unsigned round = 0; round < scaled(200000); round++) {
		unsigned i = (unsigned)dice_below(&dice, TASKS);

		if (tasks[i].agenda_index == TASK_NOWHERE) {
			times[i] = dice_below(&dice, 20);
			agenda_insert(&agenda, &tasks[i], times[i]);
		} else {
			expect_eq(agenda_remove(&agenda, &tasks[i]), times[i]);
		}
		expect(agenda_first(&agenda) == earliest(tasks, times));
	}
	agenda_fini(&agenda);
	free(tasks);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("format", argc, argv);
	tests_add(crc_is_that_of_rfc_3720, 30);
	tests_add(crc_is_its_definition_in_any_pieces, 30);
	tests_add(hash_is_siphash_1_3, 30);
	tests_add(record_comes_back_as_it_was, 30);
	tests_add(record_with_any_bit_flipped_is_bad, 30);
	tests_add(record_cut_anywhere_is_not_good, 30);
	tests_add(segment_header_with_any_bit_flipped_is_bad, 30);
	tests_add(agenda_is_in_order_of_time_then_id, 60);
	return tests_run();
}
