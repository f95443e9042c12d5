/* SPDX-License-Identifier: MIT */
/* Writes the statistics of any number of hubs as families of OpenMetrics. */
#ifndef TIMERHUB_STATS_TEXT_H
#define TIMERHUB_STATS_TEXT_H

#include <timerhub.h>

#include "metrics/openmetrics.h"

/* The statistics of a hub, and the labels that identify the hub. */
struct labelled_stats {
	struct timerhub_stats stats;
	const char *labels; /* labels as text, see openmetrics.h */
};

/* Add the families of all statistics. The caller may add families, then calls metrics_end(). */
void stats_metrics_add(struct text *text, const struct labelled_stats *hubs, size_t count);

#endif
