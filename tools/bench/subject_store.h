/* SPDX-License-Identifier: MIT */
#ifndef BENCH_SUBJECT_STORE_H
#define BENCH_SUBJECT_STORE_H

#include <timerhub_store.h>

/* The path of the database in the folder of this measurement. The folder is made if need be. */
const char *store_path(void);

/* Open the store of this measurement, or end the measurement. */
struct timerhub_store *store_open(void);

#endif
