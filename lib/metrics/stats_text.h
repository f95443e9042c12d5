/* SPDX-License-Identifier: MIT */
/*
 * Writes the statistics of any number of hubs as families of OpenMetrics, of which each has the
 * samples of all hubs. timerhub_stats_metrics() writes those of one hub, and timerhub-top of many.
 */
#ifndef TIMERHUB_STATS_TEXT_H
#define TIMERHUB_STATS_TEXT_H

#include <timerhub.h>

#include "metrics/openmetrics.h"

/* The statistics of a hub, with the labels that tell it from others. */
struct labelled_stats {
	struct timerhub_stats stats;
	const char *labels; /* the labels as metrics_add_label() writes them, or "" */
};

/*
 * Adds the families of all statistics of hubs. The caller may then add families of his own, and
 * calls metrics_end() at the end.
 */
void stats_metrics_add(struct text *text, const struct labelled_stats *hubs, size_t count);

#endif
