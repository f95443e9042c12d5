/* SPDX-License-Identifier: MIT */
/* What timerhub_relay_check() finds, in words for the tool. */
#ifndef RELAY_CHECK_H
#define RELAY_CHECK_H

#include <timerhub_relay.h>

/*
 * Describes one of the faults whose bits are set in `faults`: the first for index 0, the second for
 * index 1, and so on. Returns NULL if `faults` has no more.
 */
const char *check_fault_text(uint64_t faults, unsigned index);

#endif
