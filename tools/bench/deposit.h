/* SPDX-License-Identifier: MIT */
/* Writes the files of a journal as if many tasks had been put, but without a sync for each task. */
#ifndef BENCH_DEPOSIT_H
#define BENCH_DEPOSIT_H

#include <stdint.h>

void deposit_open(const char *folder);

/* Add a task, due on CLOCK_REALTIME. Ids begin at 1. Without a key, key_len is 0. */
void deposit_put(uint64_t due_ns, const void *key, uint32_t key_len, const void *data,
                 uint32_t data_bytes);

/* Sync all files. */
void deposit_close(void);

#endif
