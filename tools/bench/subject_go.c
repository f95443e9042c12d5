/* SPDX-License-Identifier: MIT */
/*
 * Measures the timers of Go's runtime. A separate Go program (bench.go) runs the same workloads and
 * prints lines of "name value".
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "workload.h"

static void go_read(FILE *output, struct result *result)
{
	char name[24];
	double value;

	while (fscanf(output, "%23s %lf", name, &value) == 2) {
		if (strcmp(name, "ns_per_op") == 0)
			result->ns_per_op = value;
		else if (strcmp(name, "cpu_ns_per_op") == 0)
			result->cpu_ns_per_op = value;
		else
			result_add(result, name, value);
	}
}

static void go_measure(const struct workload *workload, const struct run *run,
                       struct result *result)
{
	char command[512];
	FILE *output;

	(void)snprintf(command, sizeof(command),
	               "exec '%s' -workload %s -timers %u -threads %u -duration %lluns -seed %llu",
	               GO_PROGRAM, workload->name, run->timers, run->threads,
	               (unsigned long long)run->duration_ns, (unsigned long long)run->seed);
	output = popen(command, "r");
	if (!output)
		subject_fail("popen", 0);
	go_read(output, result);
	if (pclose(output) != 0 || result->ns_per_op <= 0)
		subject_fail("the Go program", 0);
}

SUBJECT(go, "go", "time.AfterFunc, Reset and Stop in goroutines of a separate program",
        ALL_CALLS | CAN_CROSS | CAN_ANY_THREAD | CAN_PUSH_TAKE | CAN_BE_LATE | CAN_SERVE |
                CAN_HOLD_RECORDS,
        .timers_max = PEER_TIMERS_MAX, .measure = go_measure)
