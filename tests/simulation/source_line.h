/* SPDX-License-Identifier: MIT */
/* A line of the source, with its file. */
#ifndef SIMULATION_SOURCE_LINE_H
#define SIMULATION_SOURCE_LINE_H

struct source_line {
	const char *file;
	int line;
};

#endif
