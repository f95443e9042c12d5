/* SPDX-License-Identifier: MIT */
/* Finds results in the table, and computes medians of the rounds. See results.h. */
#include "results.h"

#include <stdlib.h>
#include <string.h>

void table_add(struct table *table, const struct workload *workload, const struct subject *subject,
               uint32_t timers, unsigned threads)
{
	struct cell cell = {
		.workload = workload, .subject = subject, .timers = timers, .threads = threads
	};

	if (table->count == table->room) {
		table->room = table->room > 0 ? table->room * 2 : 64;
		table->cells = realloc(table->cells, table->room * sizeof(cell));
		if (!table->cells)
			subject_fail("table", 0);
	}
	table->cells[table->count++] = cell;
}

const struct cell *table_find(const struct table *table, const char *workload, const char *subject,
                              uint32_t timers, unsigned threads)
{
	for (unsigned i = 0; i < table->count; i++) {
		const struct cell *cell = &table->cells[i];

		if (cell->rounds > 0 && strcmp(cell->workload->name, workload) == 0 &&
		    strcmp(cell->subject->name, subject) == 0 && cell->timers == timers &&
		    cell->threads == threads)
			return cell;
	}
	return NULL;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

bool cell_spread(const struct cell *cell, const char *value, struct spread *ret_spread)
{
	double values[ROUNDS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < cell->rounds; i++)
		if (result_value(&cell->results[i], value, &values[count]))
			count++;
	if (count == 0)
		return false;
	qsort(values, count, sizeof(values[0]), compare_doubles);
	*ret_spread = (struct spread){
		.median = (values[(count - 1) / 2] + values[count / 2]) / 2,
		.min = values[0],
		.max = values[count - 1],
	};
	return true;
}
