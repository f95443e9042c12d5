/* SPDX-License-Identifier: MIT */
/* The output for scripts: one JSON object on one line. */
#ifndef TOP_JSON_H
#define TOP_JSON_H

#include <stdio.h>

#include "reading.h"
#include "target.h"

/*
 * Reading i is of the target's hub i. If `before` is NULL, no rates are printed. If at_ns of a
 * hub's `before` is 0, no rates of this hub are printed.
 */
void json_print(FILE *out, const struct target *target, const struct reading *now,
                const struct reading *before);

#endif
