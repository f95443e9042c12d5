/* SPDX-License-Identifier: MIT */
/* For Prometheus and its like: one reading of all hubs as OpenMetrics text. */
#ifndef TOP_METRICS_H
#define TOP_METRICS_H

#include <stdio.h>

#include "reading.h"
#include "target.h"

/* The readings stand side by side with the target's hubs. -1: out of memory. */
int metrics_print(FILE *out, const struct target *target, const struct reading *readings);

#endif
