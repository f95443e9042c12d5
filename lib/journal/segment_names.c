/* SPDX-License-Identifier: MIT */
/* Only names are read here; replay.c reads what is in the files. */
#include "journal/segment_names.h"

#include <stdlib.h>
#include <string.h>

#include "journal/reader.h"
#include "journal/record.h"
#include "journal/watermark.h"

#define NAME_DIGITS 16

/* Is it a segment's, and of which number? */
static bool segment_names_parse(const char *name, uint64_t *ret_number)
{
	char expected[DISK_NAME_MAX];
	char *end;

	if (strlen(name) != NAME_DIGITS + 4)
		return false;
	*ret_number = strtoull(name, &end, 16);
	segment_name(expected, *ret_number);
	return strcmp(name, expected) == 0 && *ret_number < RECORD_NUMBER_END;
}

static int segment_names_add(void *context, const char *name)
{
	struct log *log = context;
	uint64_t number;

	return segment_names_parse(name, &number) ? log_add_segment(log, number, 0) : 0;
}

static int segment_names_compare(const void *a, const void *b)
{
	uint64_t left = ((const struct segment *)a)->number;
	uint64_t right = ((const struct segment *)b)->number;

	return left < right ? -1 : left > right;
}

int segment_names_list(struct log *log)
{
	int result = log->disk->ops->list(log->disk, segment_names_add, log);

	if (result == 0 && log->count > 0)
		qsort(log->segments, log->count, sizeof(*log->segments), segment_names_compare);
	return result;
}

void segment_names_forget_before(struct log *log, uint64_t oldest)
{
	uint32_t gone = 0;

	while (gone < log->count && log->segments[gone].number < oldest)
		gone++;
	log->count -= gone;
	memmove(log->segments, log->segments + gone, log->count * sizeof(*log->segments));
}

struct leftovers {
	struct disk *disk;
	uint64_t oldest;
};

static int segment_names_remove_leftover(void *context, const char *name)
{
	struct leftovers *leftovers = context;
	uint64_t number;

	if (strcmp(name, LOG_NEW_NAME) == 0 ||
	    (segment_names_parse(name, &number) && number < leftovers->oldest))
		return leftovers->disk->ops->unlink(leftovers->disk, name);
	return 0;
}

int segment_names_clean_up(const struct log *log)
{
	struct leftovers leftovers = { .disk = log->disk, .oldest = log->segments[0].number };

	return log->disk->ops->list(log->disk, segment_names_remove_leftover, &leftovers);
}

static int segment_names_found(void *context, const char *name)
{
	uint64_t number;

	(void)context;
	return segment_names_parse(name, &number) ? 1 : 0;
}

int segment_names_find_journal(struct disk *disk)
{
	uint64_t marked;
	bool has_watermark;
	int result = watermark_read(disk, &has_watermark, &marked);

	if (result < 0 || has_watermark)
		return result < 0 ? result : 1;
	return disk->ops->list(disk, segment_names_found, NULL);
}
