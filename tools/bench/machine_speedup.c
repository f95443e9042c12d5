/* SPDX-License-Identifier: MIT */
/*
 * Measures how much faster the machine computes with several threads than with one. The kernel's
 * cores may be threads of one core of a virtual machine's host, or shared with other programs.
 */
#include "machine_speedup.h"

#include <stdio.h>

#include "clocks.h"
#include "randoms.h"
#include "thread_team.h"

#define COMPUTE_NS (50 * NS_PER_MS)

static uint64_t computed; /* sum of the results, so that the compiler keeps the computation */

static unsigned topology(unsigned cpu, const char *name)
{
	unsigned value = cpu;
	char path[96];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/%s", cpu, name);
	file = fopen(path, "re");
	if (file && fscanf(file, "%u", &value) != 1)
		value = cpu;
	if (file)
		(void)fclose(file);
	return value;
}

static void compute(unsigned member, void *context)
{
	uint64_t *rounds = context, until_ns = now_ns() + COMPUTE_NS;
	struct randoms randoms = randoms_from(member);

	do
		for (unsigned i = 0; i < 10000; i++)
			(void)randoms_next(&randoms);
	while (__atomic_add_fetch(rounds, 1, __ATOMIC_RELAXED) > 0 && now_ns() < until_ns);
	__atomic_fetch_add(&computed, randoms.state, __ATOMIC_RELAXED);
}

/* Returns the number of different values in `numbers`. */
static unsigned different(const unsigned *numbers, unsigned count)
{
	unsigned found = 0;

	for (unsigned i = 0, before; i < count; i++) {
		for (before = 0; before < i && numbers[before] != numbers[i];)
			before++;
		found += before == i;
	}
	return found;
}

struct machine machine_measure(unsigned members)
{
	unsigned cpus[TEAM_MAX], cores[TEAM_MAX];
	uint64_t rounds[2] = { 0 };

	for (unsigned i = 0; i < members; i++) {
		cpus[i] = team_cpu(i);
		cores[i] = topology(cpus[i], "physical_package_id") << 16 |
		           topology(cpus[i], "core_id");
	}
	(void)team_run(1, compute, &rounds[0]);
	(void)team_run(members, compute, &rounds[1]);
	return (struct machine){ .cpus = different(cpus, members),
		                 .cores = different(cores, members),
		                 .speed = (double)rounds[1] / (double)rounds[0] };
}
