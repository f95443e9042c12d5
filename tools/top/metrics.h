/* SPDX-License-Identifier: MIT */
/* The output for Prometheus: one reading of all hubs as OpenMetrics text. */
#ifndef TOP_METRICS_H
#define TOP_METRICS_H

#include <stdio.h>

#include "reading.h"
#include "target.h"

/* Reading i is of the target's hub i. Returns -1 if memory is short. */
int metrics_print(FILE *out, const struct target *target, const struct reading *readings);

#endif
