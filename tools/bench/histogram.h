/* SPDX-License-Identifier: MIT */
/* Counts durations. Each power of two ns has 64 buckets, so a bucket is less than 2 % wide. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SUB_BITS 6
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

struct histogram {
	uint64_t count, max_ns;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

static inline void histogram_add(struct histogram *histogram, uint64_t ns)
{
	unsigned shift = 0;

	if (ns >= 1u << HISTOGRAM_SUB_BITS)
		shift = 64u - (unsigned)__builtin_clzll(ns) - HISTOGRAM_SUB_BITS;
	histogram->buckets[shift == 0 ? ns
	                              : ((uint64_t)(shift - 1) << HISTOGRAM_SUB_BITS) +
	                                        (ns >> (shift - 1))]++;
	histogram->count++;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

static inline void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
	into->count += from->count;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

/* Returns the duration below which this share of the durations is, by the bucket's lower bound. */
static inline double histogram_quantile_ns(const struct histogram *histogram, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)histogram->count), seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		unsigned shift = i >> HISTOGRAM_SUB_BITS;

		seen += histogram->buckets[i];
		if (seen > wanted)
			return (double)(shift == 0 ? (uint64_t)i
			                           : (uint64_t)(i -
			                                        ((shift - 1) << HISTOGRAM_SUB_BITS))
			                                     << (shift - 1));
	}
	return (double)histogram->max_ns;
}

#endif
