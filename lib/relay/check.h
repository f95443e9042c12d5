/* SPDX-License-Identifier: MIT */
/* What timerhub_relay_check() finds, in words for the tool. */
#ifndef RELAY_CHECK_H
#define RELAY_CHECK_H

#include <timerhub_relay.h>

/*
 * Returns the text of the fault that is number `index` among those set in `faults`, or NULL if
 * there are not so many.
 */
const char *check_fault_text(uint64_t faults, unsigned index);

#endif
