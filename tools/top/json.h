/* SPDX-License-Identifier: MIT */
/* What scripts read: one JSON object on one line. */
#ifndef TOP_JSON_H
#define TOP_JSON_H

#include <stdio.h>

#include "reading.h"
#include "target.h"

/*
 * The readings stand side by side with the target's hubs. `before` is NULL if there are no rates to
 * tell; nor are there of a hub whose `before` has at_ns 0.
 */
void json_print(FILE *out, const struct target *target, const struct reading *now,
                const struct reading *before);

#endif
