/* SPDX-License-Identifier: MIT */
/* Prints the readings of timerhub-top for scripts, as one JSON object on one line. */
#ifndef TOP_JSON_H
#define TOP_JSON_H

#include <stdio.h>

#include "latest_readings.h"

/* Prints the latest readings, with rates since the readings before if there are any. */
void json_print(FILE *out, const struct watch *watch);

/* Writes "NAME":"TEXT". The text has only printable ASCII. */
void json_text(FILE *out, const char *name, const char *text);

/* Writes a comma and "NAME":VALUE. */
void json_number(FILE *out, const char *name, uint64_t value);

#endif
