/* SPDX-License-Identifier: MIT */
/* Implements the histogram of durations. See histogram.h. */
#include "histogram.h"

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
	into->count += from->count;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

static double bucket_ns(unsigned bucket)
{
	unsigned shift = bucket >> HISTOGRAM_SUB_BITS;
	uint64_t low = bucket & ((1u << HISTOGRAM_SUB_BITS) - 1);

	if (shift == 0)
		return (double)low;
	return (double)((low + (1u << HISTOGRAM_SUB_BITS)) << (shift - 1));
}

double histogram_quantile_ns(const struct histogram *histogram, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)histogram->count);
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen > wanted)
			return bucket_ns(i);
	}
	return (double)histogram->max_ns;
}
