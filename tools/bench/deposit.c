/* SPDX-License-Identifier: MIT */
/* See deposit.h. Uses the journal's own log and records, so the files are real. */
#include "deposit.h"

#include <errno.h>
#include <journal/log.h>
#include <journal/record.h>

#include "subject.h"

#define SEGMENT_BYTES (UINT64_C(16) << 20)
#define BATCH_BYTES (256u << 10)

static struct disk *disk;
static struct log records_log;
static uint8_t batch[BATCH_BYTES];
static size_t used;

static void must(int result)
{
	if (result < 0)
		subject_fail("writing a journal", -result);
}

void deposit_open(const char *folder)
{
	must(disk_real_open(&disk, folder));
	log_init(&records_log, disk, SEGMENT_BYTES);
	must(log_begin_segment(&records_log, 1, 1));
}

static void write_batch(void)
{
	struct log_position position;

	if (used > 0)
		must(log_append(&records_log, batch, used, 0, &position));
	used = 0;
}

void deposit_put(uint64_t due_ns, const void *key, uint32_t key_len, const void *data,
                 uint32_t data_bytes)
{
	struct record record = {
		.type = RECORD_PUT,
		.id = records_log.next_id,
		.due_ns = due_ns,
		.key = key,
		.key_len = key_len,
		.data = data,
		.data_len = data_bytes,
	};
	size_t bytes = record_size(&record);

	if (bytes > BATCH_BYTES)
		subject_fail("deposit_put", EMSGSIZE);
	if (used + bytes > BATCH_BYTES)
		write_batch();
	record.body_crc = record_body_crc(&record);
	record_encode(batch + used, &record);
	used += bytes;
	records_log.next_id++;
}

void deposit_close(void)
{
	write_batch();
	must(log_sync(&records_log));
	log_close(&records_log);
	disk_real_close(disk);
}
