/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes recovery: one or two segments of arbitrary bytes, the first perhaps with zeros at its end.
 * It must end and leak nothing, and a second recovery must accept what the first has left. Without
 * libFuzzer, main() damages good segments at random.
 */
#include <errno.h>
#include <journal/replay.h>
#include <stdlib.h>
#include <string.h>

#include "journal/little.h"
#include "journal/record.h"
#include "journal/watermark.h"
#include "sim_disk.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static struct sim_disk *disk;

static int recover(uint32_t *ret_tasks, enum replay_mode mode)
{
	struct replay replay;
	int result;

	replay_init(&replay, &disk->disk, 4096);
	result = replay_run(&replay, mode);
	*ret_tasks = replay.tasks.count;
	replay_fini(&replay);
	return result;
}

/* With type, lengths and flags in the bounds of record_encode(). */
static struct record tame(const uint8_t *at)
{
	struct record record = {
		.type = (enum record_type)(1 + at[12] % (RECORD_TYPE_END - 1)),
		.id = at[32] % 32u,
		.due_ns = little_get64(at + 40),
		.attempts = at[48],
		.data = at + RECORD_HEADER_BYTES,
		.key = at + RECORD_HEADER_BYTES,
	};

	if (record.type == RECORD_PUT || record.type == RECORD_COPY) {
		record.data_len = at[8];
		record.key_len = at[13] % 32u;
		record.interval_ns = at[14] % 4u;
	}
	if (record.type == RECORD_COPY && at[15] % 2 == 1)
		record.flags = RECORD_PARKED;
	if (record.type != RECORD_TAKE && record.type != RECORD_COPY &&
	    record.type != RECORD_CLOSE && record.type != RECORD_DROP && at[15] % 4 == 3)
		record.flags = RECORD_MORE;
	if (record.type == RECORD_PARK || record.flags == RECORD_PARKED)
		record.reason = at[52];
	return record;
}

/* So that damaged records reach the code behind the checks. */
static void mend(uint8_t *bytes, size_t count)
{
	struct segment_header header = { FORMAT_VERSION, 7, 1, 1, 1, 1 };
	uint8_t encoded[RECORD_HEADER_BYTES + 8 + 2 * 256];
	uint64_t sequence = 0;

	if (count < SEGMENT_HEADER_BYTES)
		return;
	segment_header_encode(bytes, &header);
	for (size_t at = SEGMENT_HEADER_BYTES; at + RECORD_HEADER_BYTES <= count;) {
		struct record record = tame(bytes + at);

		if (at + record_size(&record) > count)
			return;
		record.body_crc = record_body_crc(&record);
		record_encode(encoded, &record);
		memcpy(bytes + at, encoded, record_size(&record));
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
	/* Also write a watermark file with any contents. */
	if ((bytes[0] & 8) != 0)
		sim_plant(disk, WATERMARK_NAME, copy,
		          count - 1 < WATERMARK_BYTES ? count - 1 : WATERMARK_BYTES);
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
