/* SPDX-License-Identifier: MIT */
/*
 * The memory of timers that users embed in their objects. Without setup.records the timers follow
 * each other in memory. With setup.records each timer is in a record of 256 bytes, which represents
 * a connection. A workload also accesses another cache line of the record. A subject that embeds no
 * timer has records too.
 */
#ifndef BENCH_RECORDS_H
#define BENCH_RECORDS_H

#include "subject.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RECORD_BYTES 256
#define RECORD_TIMER 64 /* offset of the timer in its record */

extern struct records {
	unsigned char *base, *timers; /* the first record, the first timer */
	uint64_t stride;
} records;

/* Allocates setup->timers + setup->spare + 1 timers of `bytes` bytes. */
void records_open(const struct subject_setup *setup, uint32_t bytes);

static inline void *records_timer(uint32_t timer)
{
	return records.timers + timer * records.stride;
}

/* Returns the number of a timer. */
static inline uint32_t records_number(const void *timer)
{
	uint64_t bytes = (uint64_t)((const unsigned char *)timer - records.timers);

	return (uint32_t)(bytes / records.stride);
}

/* Count a message in the record of its connection, if there are records. */
static inline void records_touch(uint32_t timer)
{
	uint64_t *messages = (uint64_t *)(void *)(records.base + timer * RECORD_BYTES);

	(*messages)++;
}

#ifdef __cplusplus
}
#endif

#endif
