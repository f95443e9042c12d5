/* SPDX-License-Identifier: MIT */
/* A descriptor that is readable while the flag is up: an eventfd, at home here. Any thread. */
#ifndef RELAY_FLAG_H
#define RELAY_FLAG_H

/* A descriptor, to be closed, or a negative errno. The flag is down. */
int flag_open(void);
void flag_raise(int flag);
void flag_lower(int flag);

#endif
