/* SPDX-License-Identifier: MIT */
/*
 * Records the lateness of timers. See lateness_timers.h. Only one thread at a time makes callbacks.
 */
#include "lateness_timers.h"

#include "clocks.h"
#include "randoms.h"

static struct histogram late;
static uint64_t *deadlines_ns;
static uint32_t first_timer, timers_count;
static uint32_t recorded, early;
static uint64_t earliest_ns; /* largest time by which a timer was early */

void late_arm(const struct subject *subject, uint32_t first, uint32_t count, uint64_t from_ns,
              uint64_t to_ns, uint64_t seed)
{
	struct randoms randoms = randoms_from(seed);

	deadlines_ns = subject_allocate(count, sizeof(*deadlines_ns));
	first_timer = first;
	timers_count = count;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t delay_ns = randoms_between(&randoms, from_ns, to_ns);

		/* for each: a loop counts a delay from the next reading of its clock */
		deadlines_ns[i] = now_ns() + delay_ns;
		subject->tick();
		subject_must(subject->arm(first + i, delay_ns));
	}
}

void late_record(uint32_t timer)
{
	uint64_t now = now_ns(), deadline_ns;

	if (timer - first_timer >= timers_count)
		return;
	deadline_ns = deadlines_ns[timer - first_timer];
	if (now < deadline_ns) {
		early++;
		if (deadline_ns - now > earliest_ns)
			earliest_ns = deadline_ns - now;
	}
	histogram_add(&late, now < deadline_ns ? 0 : now - deadline_ns);
	__atomic_store_n(&recorded, recorded + 1, __ATOMIC_RELEASE);
}

uint32_t late_count(void)
{
	return __atomic_load_n(&recorded, __ATOMIC_ACQUIRE);
}

void late_add(struct result *result, const double *percents)
{
	result_add_percentiles(result, &late, "us", percents);
	result_add(result, "max_us", (double)late.max_ns * 1e-3);
	result_add(result, "early", early);
	result_add(result, "earliest_us", (double)earliest_ns * 1e-3);
}
