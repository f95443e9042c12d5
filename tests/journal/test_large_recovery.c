/* SPDX-License-Identifier: MIT */
/* Recovers a million tasks, in order, within the documented memory. The time is only printed. */
#include <errno.h>
#include <journal/disk.h>
#include <journal/log_append.h>
#include <journal/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <timerhub_journal.h>
#include <unistd.h>

#include <harness.h>

#define DATA_LEN 16
#define KEY_LEN 8
#define CHUNK 4096 /* number of records that the test writes at once */
#define SEGMENT_BYTES (UINT64_C(16) << 20)
/* Documented, without data and key: 80 for struct task, 64 for agenda, tables and allocator. */
#define TASK_BYTES 144
#define FIXED_BYTES (UINT64_C(4) << 20)

static char dir[64];

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	expect(file != NULL);
	expect_eq(fscanf(file, "%*u %lu", &pages), 1);
	(void)fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static size_t encode(uint8_t *to, uint64_t id, struct dice *dice)
{
	uint8_t data[DATA_LEN];
	struct record record = {
		.type = RECORD_PUT,
		.id = id,
		.due_ns = SEC + dice_below(dice, SEC),
		.data = data,
		.data_len = DATA_LEN,
	};

	memcpy(data, &record.id, 8);
	memcpy(data + 8, &record.due_ns, 8);
	record.key = &record.id;
	record.key_len = KEY_LEN;
	record.body_crc = record_body_crc(&record);
	record_encode(to, &record);
	return record_size(&record);
}

/* Without a sync for each. */
static void write_log(unsigned count)
{
	struct disk *disk;
	struct log log;
	uint8_t *bytes = malloc(CHUNK * record_bytes(0, KEY_LEN, DATA_LEN));
	struct dice dice = dice_new(1);
	struct log_position position;
	uint64_t id = 1;

	expect(bytes);
	expect_eq(disk_real_open(&disk, dir), 0);
	log_init(&log, disk, SEGMENT_BYTES);
	expect_eq(log_begin_segment(&log, 1, 1), 0);
	while (id <= count) {
		size_t used = 0;

		for (unsigned i = 0; i < CHUNK && id <= count; i++, id++)
			used += encode(bytes + used, id, &dice);
		expect_eq(log_append(&log, bytes, used, 0, &position), 0);
	}
	expect_eq(log_sync(&log), 0);
	log_close(&log);
	disk_real_close(disk);
	free(bytes);
}

static void check_task(const struct timerhub_journal_task *task, uint64_t *last_due_ns)
{
	expect_eq(task->data_len, DATA_LEN);
	expect(memcmp(task->data, &task->id, 8) == 0);
	expect(memcmp((const uint8_t *)task->data + 8, &task->due_ns, 8) == 0);
	expect_le(*last_due_ns, task->due_ns);
	*last_due_ns = task->due_ns;
}

static double cpu_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static void check_journal(unsigned count, bool exact)
{
	struct timerhub_journal_config config = { .size = sizeof(config), .tasks_max = count };
	uint64_t before = resident_bytes(), after, last_due_ns = 0;
	struct timerhub_journal_stats stats;
	struct timerhub_journal *journal;
	struct timerhub_journal_task task;
	double cpu;

	config.segment_bytes = SEGMENT_BYTES;
	config.lease_ns = HOUR;
	cpu = cpu_s();
	expect_eq(timerhub_journal_open(&journal, dir, &config), 0);
	cpu = cpu_s() - cpu;
	after = resident_bytes();
	expect_eq(timerhub_journal_stats(journal, &stats), 0);
	expect_eq(stats.recovered, count);
	expect(timerhub_journal_put(journal, 0, 0, NULL, 0, NULL) == -EAGAIN);
	for (unsigned i = 0; i < count; i++) {
		expect_eq(timerhub_journal_take(journal, &task, 0), 1);
		check_task(&task, &last_due_ns);
	}
	expect_eq(timerhub_journal_take(journal, &task, 0), 0);
	timerhub_journal_close(journal);
	printf("%u tasks: %.2f s, %.2f of CPU; %.1f bytes each and their data and keys\n", count,
	       (double)stats.recovery_ns / 1e9, cpu,
	       (double)(after - before) / count - DATA_LEN - KEY_LEN);
	if (exact)
		expect_le(after - before,
		          count * (uint64_t)(TASK_BYTES + DATA_LEN + KEY_LEN) + FIXED_BYTES);
}

START_TEST(a_million_tasks_are_found_again_in_little_memory)
{
	unsigned count = scaled(1000000);
	const char *base = getenv("TMPDIR");
	char command[128];

	if (!base || strlen(base) > 30)
		base = "/tmp";
	(void)snprintf(dir, sizeof(dir), "%s/journal-XXXXXX", base);
	expect(mkdtemp(dir) != NULL);
	write_log(count);
	/* not under a sanitizer, which has memory of its own */
	check_journal(count, count >= 1000000);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	expect_eq(system(command), 0);
}
END_TEST

int main(int argc, char **argv)
{
	tests_begin("large_recovery", argc, argv);
	tests_add(a_million_tasks_are_found_again_in_little_memory, 120);
	return tests_run();
}
