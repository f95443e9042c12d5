/* SPDX-License-Identifier: MIT */
/* Prints readings for scripts, as JSON. man/timerhub-top.1 lists the members of the objects. */
#ifndef TOP_JSON_H
#define TOP_JSON_H

#include "watch.h"

/* Prints the latest readings, with rates since the readings before if there are any. */
void json_print(const struct watch *watch);

/*
 * Begins an object or an array, by its opening bracket. `name` is NULL if it is no member of an
 * object, as for all functions. json_end() with the outermost bracket ends the line.
 */
void json_begin(const char *name, char bracket);
void json_end(char bracket);

/* Adds a text, which must be printable ASCII. */
void json_text(const char *name, const char *text);
void json_number(const char *name, uint64_t value);

/*
 * Adds a member "thread", or without a name an element, with what a thread does. `function` is that
 * of its callback. The times count since running->before if `since_before`, else since the thread
 * began.
 */
void json_thread(const char *name, const struct running *running, const char *function,
                 bool since_before);

#endif
