/* SPDX-License-Identifier: MIT */
/*
 * The memory of timers that users embed in their objects. Without setup.records the timers follow
 * each other in memory. With it each timer is in a record of 256 bytes, which stands for a
 * connection, and of which a workload touches another cache line. A subject that embeds no timers
 * has records too then.
 */
#ifndef BENCH_RECORDS_H
#define BENCH_RECORDS_H

#include "subject.h"

#define RECORD_BYTES 256
#define RECORD_TIMER 64 /* offset of the timer in its record */

extern struct records {
	unsigned char *base, *timers; /* addresses of the first record and of the first timer */
	uint64_t stride;
} records;

/* Allocates setup->timers + setup->spare + 1 timers of `bytes` bytes. */
void records_open(const struct subject_setup *setup, uint32_t bytes);

static inline void *records_timer(uint32_t timer)
{
	return records.timers + timer * records.stride;
}

/* Returns the number of the timer at this address. */
static inline uint32_t records_number(const void *timer)
{
	uint64_t bytes = (uint64_t)((const unsigned char *)timer - records.timers);

	return (uint32_t)(bytes / records.stride);
}

/* Counts a message in the record of the timer's connection. */
static inline void records_touch(uint32_t timer)
{
	uint64_t *messages = (uint64_t *)(void *)(records.base + timer * RECORD_BYTES);

	(*messages)++;
}

#endif
