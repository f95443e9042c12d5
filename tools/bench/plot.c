/* SPDX-License-Identifier: MIT */
/*
 * See plot.h. There are three kinds of plot: cost against the number of timers (a file for each
 * workload), throughput against threads, and the distribution of lateness. Each is a gnuplot script
 * that contains its data. The script is kept beside the SVG, so the plot can be drawn again.
 */
#include "plot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A curve with fewer points is not drawn. */
#define POINTS_MIN 2

enum axis { AXIS_TIMERS, AXIS_THREADS };

struct chart {
	const char *suffix; /* suffix of the file name */
	const char *value;
	const char *y_label;
	enum axis x_axis;
	double scale; /* factor from the value's unit to the label's */
};

static const struct chart cost_by_timers = {
	"cost", "cpu_ns_per_op", "CPU time an operation, ns", AXIS_TIMERS, 1,
};
static const struct chart rate_by_threads = {
	"threads", "ns_per_op", "million operations a second", AXIS_THREADS, 1e3,
};

static bool gnuplot_there(void)
{
	FILE *gnuplot = popen("command -v gnuplot >/dev/null", "r");

	return gnuplot && pclose(gnuplot) == 0;
}

static FILE *script_open(const char *dir, const char *name, const char *suffix, char *path,
                         size_t path_bytes)
{
	FILE *script;

	(void)snprintf(path, path_bytes, "%s/%s-%s.gnuplot", dir, name, suffix);
	script = fopen(path, "we");
	if (!script) {
		(void)fprintf(stderr, "timerhub-bench: %s: %s\n", path, strerror(errno));
		return NULL;
	}
	(void)fprintf(script,
	              "set terminal svg size 800,500 dynamic background 'white'\n"
	              "set output '%s/%s-%s.svg'\n"
	              "set key outside right\nset grid\nset style data linespoints\n",
	              dir, name, suffix);
	return script;
}

static bool script_run(FILE *script, const char *path)
{
	char command[600];

	(void)fclose(script);
	(void)snprintf(command, sizeof(command), "gnuplot '%s'", path);
	return system(command) == 0;
}

static unsigned cell_x(const struct cell *cell, enum axis axis)
{
	return axis == AXIS_TIMERS ? cell->timers : cell->threads;
}

/*
 * Returns whether the cell belongs to the curve of this workload and subject at the value `other`
 * of the axis that is not drawn.
 */
static bool on_curve(const struct cell *cell, const struct workload *workload,
                     const struct subject *subject, enum axis axis, unsigned other)
{
	return cell->rounds > 0 && cell->workload == workload && cell->subject == subject &&
	       (axis == AXIS_TIMERS ? cell->threads : cell->timers) == other;
}

static unsigned curve_points(const struct table *table, const struct workload *workload,
                             const struct subject *subject, enum axis axis, unsigned other)
{
	unsigned points = 0;

	for (unsigned i = 0; i < table->count; i++)
		points += on_curve(&table->cells[i], workload, subject, axis, other);
	return points;
}

static void curve_write(FILE *script, const struct table *table, const struct workload *workload,
                        const struct subject *subject, const struct chart *chart, unsigned other)
{
	struct spread spread;

	for (unsigned i = 0; i < table->count; i++) {
		const struct cell *cell = &table->cells[i];

		if (!on_curve(cell, workload, subject, chart->x_axis, other) ||
		    !cell_spread(cell, chart->value, &spread))
			continue;
		(void)fprintf(script, "%u %g\n", cell_x(cell, chart->x_axis),
		              chart->x_axis == AXIS_THREADS ? chart->scale / spread.median
		                                            : chart->scale * spread.median);
	}
	(void)fprintf(script, "e\n");
}

/* Returns the most frequent value, among the workload's cells, of the axis that is not drawn. */
static unsigned common_other(const struct table *table, const struct workload *workload,
                             enum axis axis)
{
	unsigned best = 0, best_count = 0;

	for (unsigned i = 0; i < table->count; i++) {
		const struct cell *cell = &table->cells[i];
		unsigned other = axis == AXIS_TIMERS ? cell->threads : cell->timers;
		unsigned count = 0;

		if (cell->workload != workload || cell->rounds == 0)
			continue;
		for (unsigned k = 0; k < table->count; k++)
			count += on_curve(&table->cells[k], workload, cell->subject, axis, other);
		if (count > best_count) {
			best = other;
			best_count = count;
		}
	}
	return best_count >= POINTS_MIN ? best : 0;
}

static int line_width(const struct subject *subject)
{
	return strcmp(subject->name, "timerhub") == 0 ? 3 : 1;
}

static bool chart_draw(const struct table *table, const struct workload *workload,
                       const struct chart *chart, const char *dir)
{
	unsigned other = common_other(table, workload, chart->x_axis);
	char path[512];
	FILE *script;
	bool first = true;

	if (other == 0)
		return true;
	script = script_open(dir, workload->name, chart->suffix, path, sizeof(path));
	if (!script)
		return false;
	(void)fprintf(script, "set title '%s: %s'\nset ylabel '%s'\n", workload->name,
	              workload->what, chart->y_label);
	(void)fprintf(script, chart->x_axis == AXIS_TIMERS
	                              ? "set xlabel 'live timers'\nset logscale xy\nplot "
	                              : "set xlabel 'threads'\nset logscale x 2\n"
	                                "set yrange [0:*]\nplot ");
	for (unsigned i = 0; subjects[i]; i++) {
		if (curve_points(table, workload, subjects[i], chart->x_axis, other) < POINTS_MIN)
			continue;
		(void)fprintf(script, "%s'-' title '%s' lw %d", first ? "" : ", ",
		              subjects[i]->name,
		              strcmp(subjects[i]->name, "timerhub") == 0 ? 3 : 1);
		first = false;
	}
	(void)fprintf(script, "\n");
	for (unsigned i = 0; subjects[i]; i++)
		if (curve_points(table, workload, subjects[i], chart->x_axis, other) >= POINTS_MIN)
			curve_write(script, table, workload, subjects[i], chart, other);
	return script_run(script, path);
}

/* ---- lateness ---- */

static const struct {
	const char *value;
	double percent;
} late_points[] = {
	{ "p10_us", 10 }, { "p50_us", 50 },     { "p90_us", 90 },
	{ "p99_us", 99 }, { "p99.9_us", 99.9 },
};

static void lateness_curve(FILE *script, const struct cell *cell)
{
	struct spread spread;

	for (unsigned i = 0; i < sizeof(late_points) / sizeof(late_points[0]); i++)
		if (cell_spread(cell, late_points[i].value, &spread) && spread.median > 0)
			(void)fprintf(script, "%g %g\n", spread.median, late_points[i].percent);
	(void)fprintf(script, "e\n");
}

static bool is_lateness(const struct cell *cell)
{
	return cell->rounds > 0 && strcmp(cell->workload->name, "lateness") == 0 &&
	       cell->timers == cell->workload->timers[0];
}

static bool lateness_draw(const struct table *table, const char *dir)
{
	unsigned count = 0;
	char path[512];
	FILE *script;

	for (unsigned i = 0; i < table->count; i++)
		count += is_lateness(&table->cells[i]);
	if (count == 0)
		return true;
	script = script_open(dir, "lateness", "distribution", path, sizeof(path));
	if (!script)
		return false;
	(void)fprintf(script, "set title 'lateness of 10^4 timers over a second'\n"
	                      "set xlabel 'late by at most, us'\nset logscale x\n"
	                      "set ylabel 'per cent of timers'\nplot ");
	for (unsigned i = 0, drawn = 0; i < table->count; i++)
		if (is_lateness(&table->cells[i]))
			(void)fprintf(script, "%s'-' title '%s' lw %d", drawn++ > 0 ? ", " : "",
			              table->cells[i].subject->name,
			              line_width(table->cells[i].subject));
	(void)fprintf(script, "\n");
	for (unsigned i = 0; i < table->count; i++)
		if (is_lateness(&table->cells[i]))
			lateness_curve(script, &table->cells[i]);
	return script_run(script, path);
}

bool plot_all(const struct table *table, const char *dir)
{
	bool drawn = true;

	if (!gnuplot_there()) {
		(void)fprintf(stderr, "timerhub-bench: --plot needs gnuplot, which is not here\n");
		return false;
	}
	if (mkdir(dir, 0777) < 0 && errno != EEXIST) {
		(void)fprintf(stderr, "timerhub-bench: %s: %s\n", dir, strerror(errno));
		return false;
	}
	for (unsigned w = 0; workloads[w]; w++) {
		drawn = chart_draw(table, workloads[w], &cost_by_timers, dir) && drawn;
		drawn = chart_draw(table, workloads[w], &rate_by_threads, dir) && drawn;
	}
	return lateness_draw(table, dir) && drawn;
}
