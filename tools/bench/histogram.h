/* SPDX-License-Identifier: MIT */
/*
 * A histogram counts durations in ns. Each power of two has 64 buckets, so a bucket is less than 2
 * % wide.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SUB_BITS 6
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
	uint64_t count;
	uint64_t max_ns;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t ns)
{
	unsigned shift;

	if (ns < 1u << HISTOGRAM_SUB_BITS)
		return (unsigned)ns;
	shift = 63u - (unsigned)__builtin_clzll(ns) - HISTOGRAM_SUB_BITS;
	return ((shift + 1) << HISTOGRAM_SUB_BITS) +
	       (unsigned)((ns >> shift) & ((1u << HISTOGRAM_SUB_BITS) - 1));
}

static inline void histogram_add(struct histogram *histogram, uint64_t ns)
{
	histogram->count++;
	histogram->buckets[histogram_bucket(ns)]++;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * Returns a quantile of the counted durations. If `share` is 0.99, 99 % of the durations are
 * shorter than the quantile. The result is the lower bound of the bucket that contains the
 * quantile.
 */
double histogram_quantile_ns(const struct histogram *histogram, double share);

#endif
