/* SPDX-License-Identifier: MIT */
/* What timerhub_relay_check() finds, in words for the tool. */
#ifndef RELAY_CHECK_H
#define RELAY_CHECK_H

#include <timerhub_relay.h>

/* Returns the text of fault number `index` among those in `faults`, or NULL. */
const char *check_fault_text(uint64_t faults, unsigned index);

#endif
