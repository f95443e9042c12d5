/* SPDX-License-Identifier: MIT */
/* What timerhub_relay_check() finds, in words for the tool. */
#ifndef RELAY_CHECK_H
#define RELAY_CHECK_H

#include <timerhub_relay.h>

/*
 * Returns a text about one of the faults in `faults`. Begin with index 0 and count up, until the
 * function returns NULL.
 */
const char *check_fault_text(uint64_t faults, unsigned index);

#endif
