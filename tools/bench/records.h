/* SPDX-License-Identifier: MIT */
/*
 * Where the subjects keep the timers that their users would embed: one behind the other, or with
 * setup.records each in the record of 256 bytes of its connection, of which a workload touches
 * another cache line. Subjects that embed nothing have records too.
 */
#ifndef BENCH_RECORDS_H
#define BENCH_RECORDS_H

#include "subject.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RECORD_BYTES 256
#define RECORD_TIMER 64 /* where the timer lies in it */

extern struct records {
	unsigned char *base;
	uint64_t stride, offset;
} records;

/* Allocate setup->timers + setup->spare + 1 timers of `bytes` each. */
void records_open(const struct subject_setup *setup, uint32_t bytes);

static inline void *records_timer(uint32_t timer)
{
	return records.base + timer * records.stride + records.offset;
}

/* Returns the number of a timer. */
static inline uint32_t records_number(const void *timer)
{
	uint64_t bytes = (uint64_t)((const unsigned char *)timer - records.base);

	return (uint32_t)((bytes - records.offset) / records.stride);
}

/* Do what a message does to its connection, with setup.records. */
static inline void records_touch(uint32_t timer)
{
	uint64_t *messages = (uint64_t *)(void *)(records.base + timer * RECORD_BYTES);

	(*messages)++;
}

#ifdef __cplusplus
}
#endif

#endif
