/* SPDX-License-Identifier: MIT */
/* Names one line of a source file. */
#ifndef SIMULATION_SOURCE_LINE_H
#define SIMULATION_SOURCE_LINE_H

struct source_line {
	const char *file;
	int line;
};

#endif
