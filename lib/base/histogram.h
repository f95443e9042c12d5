/* SPDX-License-Identifier: MIT */
/* The buckets of the histograms in the statistics of all libraries. */
#ifndef TIMERHUB_HISTOGRAM_H
#define TIMERHUB_HISTOGRAM_H

#include <timerhub.h>

#include "base/bits.h"

_Static_assert(TIMERHUB_LATENESS_BUCKETS == 64, "a number of 64 bits has so many highest bits");

/*
 * Returns the bucket of a histogram that counts this number. Bucket i counts numbers from 2^i to
 * 2^(i+1) - 1, and the first bucket also 0.
 */
static inline unsigned histogram_bucket(uint64_t number)
{
	return number > 0 ? bits_highest(number) : 0;
}

#endif
