/* SPDX-License-Identifier: MIT */
/*
 * Writes the statistics of any number of hubs as families of OpenMetrics. Each family has the
 * samples of all hubs. timerhub_stats_metrics() uses it for one hub, and timerhub-top for many.
 */
#ifndef TIMERHUB_STATS_TEXT_H
#define TIMERHUB_STATS_TEXT_H

#include <timerhub.h>

#include "metrics/openmetrics.h"

/* The statistics of a hub, with the labels that distinguish it from other hubs. */
struct labelled_stats {
	struct timerhub_stats stats;
	const char *labels; /* a text that metrics_add_label() has written, or "" */
};

/*
 * Adds an OpenMetrics family for each number in the statistics, with a sample for each hub. More
 * families may follow, and then metrics_end().
 */
void stats_metrics_add(struct text *text, const struct labelled_stats *hubs, size_t count);

#endif
