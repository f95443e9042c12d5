/* SPDX-License-Identifier: MIT */
/*
 * The memory of timers that users embed in their objects. Without setup.records the timers follow
 * each other in memory. With setup.records each timer is in a record of 256 bytes, which represents
 * a connection. A workload also accesses another cache line of the record. With setup.records a
 * subject (a measured service) that embeds no timers has records too.
 */
#ifndef BENCH_EMBEDDING_OBJECTS_H
#define BENCH_EMBEDDING_OBJECTS_H

#include "subject.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RECORD_BYTES 256
#define RECORD_TIMER 64 /* offset of the timer in its record */

extern struct records {
	unsigned char *base, *timers; /* addresses of the first record and of the first timer */
	uint64_t stride;
} records;

/* Allocate setup->timers + setup->spare + 1 timers of `bytes` bytes. */
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

/*
 * If the timer is in a connection's record, increment the number of messages that the record
 * contains.
 */
static inline void records_touch(uint32_t timer)
{
	uint64_t *messages = (uint64_t *)(void *)(records.base + timer * RECORD_BYTES);

	(*messages)++;
}

#ifdef __cplusplus
}
#endif

#endif
