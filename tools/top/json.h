/* SPDX-License-Identifier: MIT */
/* Prints the readings of timerhub-top for scripts, as one JSON object on one line. */
#ifndef TOP_JSON_H
#define TOP_JSON_H

#include <stdio.h>

#include "reading.h"
#include "target.h"

/*
 * Print the reading `now` of each hub, with the rates since the reading `before`. now[i] and
 * before[i] belong to the target's hub i. If `before` is NULL, no rates are printed. If
 * before[i].at_ns is 0, no rates of hub i are printed.
 */
void json_print(FILE *out, const struct target *target, const struct reading *now,
                const struct reading *before);

#endif
