/* SPDX-License-Identifier: MIT */
/* Lists the processes that timerhub-top can watch. */
#ifndef TOP_PROCESSES_H
#define TOP_PROCESSES_H

#include <stdio.h>

/* Prints a line for each process that can be watched. Returns their number, or -1 without /proc. */
int processes_print(FILE *out);

#endif
