/* SPDX-License-Identifier: MIT */
/* Curves as SVG files. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include "table.h"

/*
 * Write all plots for which there are results into the directory. If a plot cannot be written,
 * prints the reason and returns false.
 */
bool plot_all(const struct table *table, const char *dir);

#endif
