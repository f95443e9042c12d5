/* SPDX-License-Identifier: MIT */
/* A journal's files as many puts would have left them, written without a sync for each. */
#ifndef BENCH_DEPOSIT_H
#define BENCH_DEPOSIT_H

#include <stdint.h>

void deposit_open(const char *folder);

/* A task, due on CLOCK_REALTIME; the first has the id 1, the others follow. */
/* No key: its length is 0. */
void deposit_put(uint64_t due_ns, const void *key, uint32_t key_len, const void *data,
                 uint32_t data_bytes);

/* All are on stable storage. */
void deposit_close(void);

#endif
