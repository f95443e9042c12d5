/* SPDX-License-Identifier: MIT */
/* Prints one reading of all hubs as OpenMetrics text, for Prometheus. */
#ifndef TOP_METRICS_H
#define TOP_METRICS_H

#include <stdio.h>

#include "latest_readings.h"

/* Prints the latest readings. Returns -1 if memory is short. */
int metrics_print(FILE *out, const struct watch *watch);

/* Prints the families about threads, slow callbacks and what waits; metrics_print() calls it. */
void who_metrics_print(FILE *out, const struct watch *watch);

#endif
