/* SPDX-License-Identifier: MIT */
/* Prints one reading of all hubs as OpenMetrics text, for Prometheus. */
#ifndef TOP_METRICS_H
#define TOP_METRICS_H

#include <stdio.h>

#include "reading.h"
#include "target.h"

/* Print the readings. readings[i] belongs to the target's hub i. Returns -1 if memory is short. */
int metrics_print(FILE *out, const struct target *target, const struct reading *readings);

#endif
