/* SPDX-License-Identifier: MIT */
/* The list of workloads. See bench.h. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

#include "workload_list.h"

const struct workload *const workloads[] = {
	&workload_refresh,
	&workload_neighbours,
	&workload_churn,
	&workload_request,
	&workload_burst,
	&workload_stream,
	&workload_push_take,
	&workload_cross,
	&workload_busy,
	&workload_tail,
	&workload_lateness,
	&workload_memory,
	&workload_idle,
	&workload_wakes,
	&workload_open,
	&workload_beat,
	&workload_beat_cancel,
	&workload_beat_late,
	&workload_batch_rearm,
	&workload_batch_churn,
	&workload_server,
	&workload_loop_refresh,
	&workload_loop_request,
	&workload_loop_request_later,
	&workload_loop_expire,
	&workload_durable,
	&workload_cycle,
	&workload_recover,
	NULL,
};

const struct workload *workload_find(const char *name)
{
	for (unsigned i = 0; workloads[i]; i++)
		if (strcmp(workloads[i]->name, name) == 0)
			return workloads[i];
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
