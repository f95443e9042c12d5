/* SPDX-License-Identifier: MIT */
/* Curves as SVG files. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include "table.h"

/* Into that directory, all that the results suffice for. False, and says why, if it can't. */
bool plot_all(const struct table *table, const char *dir);

#endif
