/* SPDX-License-Identifier: MIT */
/* Declares every workload. */
#ifndef BENCH_WORKLOAD_LIST_H
#define BENCH_WORKLOAD_LIST_H

#include "bench.h"

extern const struct workload workload_refresh;
extern const struct workload workload_neighbours;
extern const struct workload workload_churn;
extern const struct workload workload_request;
extern const struct workload workload_burst;
extern const struct workload workload_stream;
extern const struct workload workload_push_take;
extern const struct workload workload_cross;
extern const struct workload workload_busy;
extern const struct workload workload_tail;
extern const struct workload workload_lateness;
extern const struct workload workload_memory;
extern const struct workload workload_idle;
extern const struct workload workload_wakes;
extern const struct workload workload_open;
extern const struct workload workload_beat;
extern const struct workload workload_beat_cancel;
extern const struct workload workload_beat_late;
extern const struct workload workload_batch_rearm;
extern const struct workload workload_batch_churn;
extern const struct workload workload_server;
extern const struct workload workload_loop_refresh;
extern const struct workload workload_loop_request;
extern const struct workload workload_loop_request_later;
extern const struct workload workload_loop_expire;
extern const struct workload workload_durable;
extern const struct workload workload_cycle;
extern const struct workload workload_recover;

#endif
