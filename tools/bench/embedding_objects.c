/* SPDX-License-Identifier: MIT */
/* Allocates the records that contain timers. See embedding_objects.h. */
#include "embedding_objects.h"

struct records records;

void records_open(const struct subject_setup *setup, uint32_t bytes)
{
	if (setup->records && bytes > RECORD_BYTES - RECORD_TIMER)
		subject_fail("the timer is larger than its record", 0);
	records.stride = setup->records ? RECORD_BYTES : bytes;
	records.base = subject_allocate((uint64_t)setup->timers + setup->spare + 1, records.stride);
	records.timers = records.base + (setup->records ? RECORD_TIMER : 0);
}
