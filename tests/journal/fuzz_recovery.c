/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer on recovery: any bytes as one or two segments, the first with zeros ahead or without.
 * It must end, leak nothing, and what it accepts it must accept again. Built with clang's
 * -fsanitize=fuzzer it fuzzes; else main() below runs it over random damage to good segments.
 */
#include <errno.h>
#include <replay.h>
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "record.h"
#include "sim_disk.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static struct sim_disk *disk;

static int recover(uint32_t *ret_tasks, enum replay_mode mode)
{
	struct replay replay = {
		.log = { .disk = &disk->disk, .segment_bytes = 4096, .file = -1 },
	};
	int result = replay_run(&replay, mode);

	*ret_tasks = replay.tasks.count;
	replay_fini(&replay);
	return result;
}

/* Checksums mended, so that what is fuzzed is not only whether they match. */
static void mend(uint8_t *bytes, size_t count)
{
	struct segment_header header = { FORMAT_VERSION, 7, 1, 1, 1, 1 };
	uint64_t sequence = 0;

	if (count < SEGMENT_HEADER_BYTES)
		return;
	segment_header_encode(bytes, &header);
	for (size_t at = SEGMENT_HEADER_BYTES; at + RECORD_HEADER_BYTES <= count;) {
		uint32_t length = (uint32_t)bytes[at + 8];
		uint32_t crc;

		memset(bytes + at + 9, 0, 3);
		bytes[at + 12] = (uint8_t)(1 + bytes[at + 12] % RECORD_DROP);
		memset(bytes + at + 13, 0, 3);
		if (bytes[at + 12] != RECORD_PUT && bytes[at + 12] != RECORD_COPY)
			length = bytes[at + 8] = 0;
		if (at + record_bytes(length) > count)
			return;
		memset(bytes + at + RECORD_HEADER_BYTES + length, 0,
		       record_bytes(length) - RECORD_HEADER_BYTES - length);
		crc = crc32c(0, bytes + at + RECORD_HEADER_BYTES, length);
		for (unsigned i = 0; i < 4; i++)
			bytes[at + 4 + i] = (uint8_t)(crc >> 8 * i);
		sequence++;
		at += record_seal(bytes + at, 7, sequence, sequence - 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	uint8_t copy[SIM_FILE_BYTES] = { 0 };
	uint32_t tasks, again;
	size_t ahead;

	if (count == 0 || count > SIM_FILE_BYTES / 2)
		return 0;
	ahead = (bytes[0] & 4) != 0 ? SIM_FILE_BYTES / 2 : 0;
	disk = calloc(1, sizeof(*disk));
	expect(disk);
	sim_open(disk, 1);
	memcpy(copy, bytes + 1, count - 1);
	if ((bytes[0] & 1) != 0)
		mend(copy, count - 1);
	sim_plant(disk, "0000000000000001.seg", copy, count - 1 + ahead);
	if ((bytes[0] & 2) != 0)
		sim_plant(disk, "0000000000000002.seg", copy, (count - 1) / 2);
	(void)recover(&tasks, REPLAY_SALVAGE);
	if (recover(&tasks, REPLAY_OPEN) == 0) {
		expect_eq(recover(&again, REPLAY_OPEN), 0);
		expect_eq(tasks, again);
	}
	sim_close(disk);
	free(disk);
	return 0;
}

#if !defined(FUZZING)
START_TEST(recovery_survives_any_bytes)
{
	struct dice dice = dice_new(1);

	for (unsigned round = 0; round < scaled(20000); round++) {
		uint8_t bytes[2000];
		size_t count = 1 + (size_t)dice_below(&dice, sizeof(bytes));

		for (size_t i = 0; i < count; i++)
			bytes[i] = dice_one_in(&dice, 2) ? 0 : (uint8_t)dice_roll(&dice);
		bytes[0] = (uint8_t)dice_roll(&dice);
		(void)LLVMFuzzerTestOneInput(bytes, count);
	}
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("fuzz", argc, argv);
	tests_add(recovery_survives_any_bytes, 120);
	return tests_run();
}
#endif
