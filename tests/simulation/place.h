/* SPDX-License-Identifier: MIT */
/* A place in the source. */
#ifndef SIMULATION_PLACE_H
#define SIMULATION_PLACE_H

struct place {
	const char *file;
	int line;
};

#endif
