/* SPDX-License-Identifier: MIT */
/* Curves as SVG files. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include "table.h"

/*
 * Write all plots for which there are results into the directory. Returns false, and prints the
 * reason, if that fails.
 */
bool plot_all(const struct table *table, const char *dir);

#endif
