/* SPDX-License-Identifier: MIT */
/* Lists the workloads, and stores the values of a result. See workload.h. */
#include "workload.h"

#include <stdio.h>
#include <string.h>

#include "clocks.h"
#include "workload_functions.h"

#define CAN_BEAT (CAN_EXPIRE | CAN_CROSS | CAN_COUNT_WAKES)

/* clang-format off */
const struct workload workloads[] = {
	{ "refresh", "re-arm a random timer to a minute from now",
	  CAN_REARM, { 10000, 100000, 1000000, 10000000 }, { EACH_CPU }, 0, refresh_measure },
	{ "neighbours", "re-arm a random timer whose neighbours other threads re-arm",
	  CAN_REARM | CAN_CROSS, { 10000, 1000000 }, { EACH_CPU }, 0, neighbours_measure },
	{ "churn", "cancel a random timer and arm a new one",
	  CAN_CANCEL, { 10000, 100000, 1000000, 10000000 }, { 1 }, 0, churn_measure },
	{ "request", "arm a timeout, and cancel it 64 arms later",
	  CAN_CANCEL | CAN_CROSS, { 10000 }, { EACH_CPU }, 0, request_measure },
	{ "burst", "deliver a timer, all due within a millisecond",
	  CAN_EXPIRE, { 1000000, 10000000 }, { 1 }, 0, burst_measure },
	{ "stream", "deliver a timer, spread over a second",
	  CAN_EXPIRE, { 1000000, 10000000 }, { 1 }, 0, stream_measure },
	{ "push-and-take", "push an element with a delay of i ns, and take it",
	  CAN_PUSH_TAKE, { 1000000 }, { 1 }, 0, push_take_measure },
	{ "cross", "arm, or cancel half of what was armed, from several threads",
	  CAN_EXPIRE | CAN_CANCEL | CAN_CROSS, { 1000000 }, { EACH_CPU }, 0, cross_measure },
	{ "cross-busy", "arm and cancel from several threads while timers expire",
	  CAN_EXPIRE | CAN_CANCEL | CAN_CROSS, { 4000000 }, { EACH_CPU }, 0, busy_measure },
	{ "tail", "the time of one arm in the workload cross-busy",
	  CAN_EXPIRE | CAN_CANCEL | CAN_CROSS, { 4000000 }, { 2 }, 0, tail_measure },
	{ "lateness", "how late timers come, 10^4 over a second (ns an op: the median)",
	  CAN_BE_LATE, { 10000 }, { 1 }, 9, lateness_measure },
	{ "memory", "resident bytes a timer (times: the first arm of each)",
	  CAN_EXPIRE, { 10, 1000, 1000000, 10000000 }, { 1 }, 1, memory_measure },
	{ "idle", "5 s with all timers a minute away; an operation: an arm of a later one",
	  CAN_EXPIRE | CAN_CROSS | CAN_COUNT_WAKES, { 1000000 }, { 1 }, 1, idle_measure },
	{ "wakes", "arm at random deadlines; the number of wakes of the owner by callers",
	  CAN_EXPIRE | CAN_CROSS | CAN_COUNT_WAKES, { 20000 }, { 1 }, 0, wakes_measure },
	{ "open", "open and close with room for N timers",
	  CAN_OPEN_LARGE, { 10000000 }, { 1 }, 0, open_measure },
	{ "beat", "re-arm connections, which send once a second, by 3 s; no timer expires",
	  CAN_BEAT | CAN_REARM, { 1000, 10000, 100000 }, { 1 }, 1, beat_measure },
	{ "beat-cancel", "10^5 requests a second with a timeout of 30 s, all cancelled in time",
	  CAN_BEAT | CAN_CANCEL, { 10000 }, { 1 }, 1, beat_cancel_measure },
	{ "beat-late", "lateness of 10^4 timers that expire within 6 s, during the workload beat",
	  CAN_BEAT | CAN_REARM, { 100000 }, { 1 }, 0, beat_late_measure },
	{ "batch-rearm",
	  "re-arm 32 random timers to a minute from now; an operation is one of them",
	  CAN_REARM | CAN_BATCH, { 1000000 }, { 1 }, 0, batch_rearm_measure },
	{ "batch-churn", "cancel 32 random timers and arm 32 new ones; an operation is one pair",
	  CAN_CANCEL | CAN_BATCH, { 1000000 }, { 1 }, 0, batch_churn_measure },
	{ "server",
	  "a message: a record, its connection's idle timeout, a request ended, one started",
	  CAN_REARM | CAN_CANCEL | CAN_SERVE, { 1000, 100000 }, { EACH_CPU }, 0, server_measure },
	{ "one-message", "in one loop: a turn with one message, which moves a timeout",
	  CAN_REARM | CAN_HOLD_RECORDS, { 1000 }, { 1 }, 0, one_message_measure },
	{ "loop-refresh",
	  "in one loop: touch a random record, re-arm its timer to a minute from now",
	  CAN_REARM | CAN_HOLD_RECORDS, { 10000, 1000000 }, { 1 }, 0, loop_refresh_measure },
	{ "loop-request",
	  "in one loop: touch a request's record, start its timeout, end it in the same turn",
	  CAN_CANCEL | CAN_HOLD_RECORDS, { 10000 }, { 1 }, 0, loop_request_measure },
	{ "loop-request-later", "in one loop: loop-request whose request ends in the next turn",
	  CAN_CANCEL | CAN_HOLD_RECORDS, { 10000 }, { 1 }, 0, loop_request_later_measure },
	{ "loop-expire",
	  "in one loop: deliver a timer and touch its record, all due within a millisecond",
	  CAN_EXPIRE | CAN_HOLD_RECORDS, { 1000000 }, { 1 }, 0, loop_expire_measure },
	{ "loop-beat", "in one loop: beat; wakes by the loop's timers in 3 s",
	  CAN_WAIT, { 10000 }, { 1 }, 1, loop_beat_measure },
	{ "durable", "put a task that is on disk when the call returns (room for N tasks)",
	  CAN_PUT_DURABLY, { 1000000 }, { 1, 16, 64 }, 0, durable_measure },
	{ "cycle", "put a due task, take it, acknowledge it, all durable (room for N)",
	  CAN_FINISH_DURABLY, { 1000000 }, { 1, 16, 64 }, 0, cycle_measure },
	{ "durable-4", "durable in each of four processes",
	  CAN_PUT_DURABLY | CAN_SHARE_FILE, { 1000000 }, { 1, 16 }, 0, durable_4_measure },
	{ "cycle-4", "cycle in each of four processes, with the same tasks",
	  CAN_FINISH_DURABLY | CAN_SHARE_FILE, { 1000000 }, { 1, 16 }, 0, cycle_4_measure },
	{ "notice", "put a due task from another process while the taker rests, N times",
	  CAN_SHARE_FILE, { 300 }, { 1 }, 0, notice_measure },
	{ "waiting", "put and take beside N waiting tasks, MiB of memory (ns an op: a put)",
	  CAN_KEEP_MANY, { 1000, 10000000 }, { 1 }, 1, waiting_measure },
	{ .name = NULL },
};
/* clang-format on */

const struct workload *workload_find(const char *name)
{
	for (const struct workload *workload = workloads; workload->name; workload++)
		if (strcmp(workload->name, name) == 0)
			return workload;
	return NULL;
}

void result_add(struct result *result, const char *name, double value)
{
	struct extra *extra = &result->extras[result->extras_count];

	if (result->extras_count == RESULT_EXTRAS_MAX)
		subject_fail("too many extras", 0);
	(void)snprintf(extra->name, sizeof(extra->name), "%s", name);
	extra->value = value;
	result->extras_count++;
}

bool result_value(const struct result *result, const char *name, double *ret_value)
{
	if (strcmp(name, "ns_per_op") == 0) {
		*ret_value = result->ns_per_op;
		return true;
	}
	if (strcmp(name, "cpu_ns_per_op") == 0) {
		*ret_value = result->cpu_ns_per_op;
		return true;
	}
	for (unsigned i = 0; i < result->extras_count; i++)
		if (strcmp(name, result->extras[i].name) == 0) {
			*ret_value = result->extras[i].value;
			return true;
		}
	return false;
}

void result_add_percentiles(struct result *result, const struct histogram *histogram,
                            const char *unit, const double *percents)
{
	double ns_per_unit = strcmp(unit, "us") == 0 ? NS_PER_US : 1;
	char name[sizeof(result->extras[0].name)];

	for (; *percents > 0; percents++) {
		(void)snprintf(name, sizeof(name), "p%g_%s", *percents, unit);
		result_add(result, name,
		           histogram_quantile_ns(histogram, *percents / 100) / ns_per_unit);
	}
}

struct meter meter_start(void)
{
	return (struct meter){ .cpu_ns = process_cpu_ns(), .start_ns = now_ns() };
}

void meter_stop(const struct meter *meter, struct result *result, uint64_t ops)
{
	result->ns_per_op = (double)(now_ns() - meter->start_ns) / (double)ops;
	result->cpu_ns_per_op = (double)(process_cpu_ns() - meter->cpu_ns) / (double)ops;
}
