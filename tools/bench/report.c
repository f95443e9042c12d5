/* SPDX-License-Identifier: MIT */
/* Prints the results as tables and JSON. See report.h. targets.c prints the bars (the targets). */
#include "report.h"

#include <stdio.h>

#include "machine_speedup.h"

/* Print a number with about four digits, such as "12.3", "1234" and "1.2e9". */
static void print_number(double value, int width)
{
	if (value < 0 || value >= 1e9)
		(void)printf("%*.2e", width, value);
	else if (value == (double)(long long)value || value >= 1000)
		(void)printf("%*.0f", width, value);
	else
		(void)printf("%*.*f", width, value < 10 ? 2 : 1, value);
}

/*
 * Print the rate of several threads divided by the rate of one thread, by wall time and by CPU
 * time. The CPU time does not include the time in which other programs use the CPUs. If the ratios
 * by wall time and CPU time differ, the machine is the cause.
 */
static void print_scaling(const struct cell *cell, const struct cell *one, double rate)
{
	struct spread spread, alone;

	(void)printf("  rate_against_1_thread %.2f", rate);
	if (cell_spread(cell, "cpu_ns_per_op", &spread) &&
	    cell_spread(one, "cpu_ns_per_op", &alone) && spread.median > 0)
		(void)printf(" by_cpu_time %.2f", cell->threads * alone.median / spread.median);
}

static void print_cell(const struct table *table, const struct cell *cell)
{
	const struct cell *one =
		table_find(table, cell->workload->name, cell->subject->name, cell->timers, 1);
	struct spread spread, alone;

	(void)printf("  %-16s", cell->subject->name);
	if (!cell_spread(cell, "ns_per_op", &spread)) {
		(void)printf("%10s\n", "failed");
		return;
	}
	print_number(spread.median, 10);
	print_number(spread.min, 10);
	print_number(spread.max, 10);
	(void)cell_spread(cell, "cpu_ns_per_op", &spread);
	print_number(spread.median, 10);
	for (unsigned i = 0; i < cell->results[0].extras_count; i++) {
		const char *name = cell->results[0].extras[i].name;

		if (!cell_spread(cell, name, &spread))
			continue;
		(void)printf("  %s ", name);
		print_number(spread.median, 0);
	}
	if (cell->threads > 1 && one && cell_spread(one, "ns_per_op", &alone) &&
	    cell_spread(cell, "ns_per_op", &spread))
		print_scaling(cell, one, alone.median / spread.median);
	(void)printf("\n");
}

void report_group(const struct table *table, unsigned from, unsigned to)
{
	const struct cell *first = &table->cells[from];

	(void)printf("\n%s: %s\n  %u timers, %u thread%s, median of %u\n", first->workload->name,
	             first->workload->what, first->timers, first->threads,
	             first->threads == 1 ? "" : "s", first->rounds);
	if (first->threads > 1) {
		struct machine machine = machine_measure(first->threads);

		(void)printf("  %u CPUs of %u core%s; without memory the threads are %.2f times as "
		             "fast as one\n",
		             machine.cpus, machine.cores, machine.cores == 1 ? "" : "s",
		             machine.speed);
	}
	(void)printf("  %-16s%10s%10s%10s%10s\n", "", "ns/op", "min", "max", "CPU ns/op");
	for (unsigned i = from; i < to; i++)
		print_cell(table, &table->cells[i]);
	(void)fflush(stdout);
}

void report_json(const struct cell *cell, FILE *out)
{
	struct spread wall, cpu, spread;

	if (!cell_spread(cell, "ns_per_op", &wall) || !cell_spread(cell, "cpu_ns_per_op", &cpu))
		return;
	(void)fprintf(out,
	              "{\"workload\":\"%s\",\"subject\":\"%s\",\"timers\":%u,\"threads\":%u,"
	              "\"ns_per_op\":%.4g,\"cpu_ns_per_op\":%.4g,\"rounds\":%u,"
	              "\"ns_per_op_min\":%.4g,\"ns_per_op_max\":%.4g",
	              cell->workload->name, cell->subject->name, cell->timers, cell->threads,
	              wall.median, cpu.median, cell->rounds, wall.min, wall.max);
	for (unsigned i = 0; i < cell->results[0].extras_count; i++)
		if (cell_spread(cell, cell->results[0].extras[i].name, &spread))
			(void)fprintf(out, ",\"%s\":%.6g", cell->results[0].extras[i].name,
			              spread.median);
	(void)fprintf(out, "}\n");
	(void)fflush(out);
}
