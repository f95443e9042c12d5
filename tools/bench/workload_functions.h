/* SPDX-License-Identifier: MIT */
/* Declares the functions that measure workloads. workload.c lists the workloads. */
#ifndef BENCH_WORKLOAD_FUNCTIONS_H
#define BENCH_WORKLOAD_FUNCTIONS_H

#include "workload.h"

typedef void workload_measure(const struct run *run, struct result *result);

workload_measure refresh_measure, neighbours_measure, churn_measure, request_measure;
workload_measure batch_rearm_measure, batch_churn_measure, server_measure;
workload_measure loop_refresh_measure, loop_request_measure, loop_request_later_measure;
workload_measure one_message_measure, busy_measure, tail_measure, cross_measure;
workload_measure burst_measure, stream_measure, loop_expire_measure, push_take_measure;
workload_measure lateness_measure, memory_measure, idle_measure, wakes_measure, open_measure;
workload_measure beat_measure, beat_cancel_measure, beat_late_measure, loop_beat_measure;
workload_measure durable_measure, cycle_measure, durable_4_measure, cycle_4_measure;
workload_measure notice_measure, waiting_measure;

#endif
