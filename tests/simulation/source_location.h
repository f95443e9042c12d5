/* SPDX-License-Identifier: MIT */
/* Names one line of a source file. */
#ifndef SIMULATION_SOURCE_LOCATION_H
#define SIMULATION_SOURCE_LOCATION_H

struct source_location {
	const char *file;
	int line;
};

#endif
