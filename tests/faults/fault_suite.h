/* SPDX-License-Identifier: MIT */
/*
 * Shared by the suite `faults`. A test prints how many faults it has injected, and which it could
 * not, and why.
 */
#ifndef TESTS_FAULT_SUITE_H
#define TESTS_FAULT_SUITE_H

#include "rig.h"

void faults_count(unsigned count);
void faults_skip(const char *what, const char *reason);

void owner_rests(struct timerhub *hub);

/* The kernel refuses its sleep. */
void owner_only_naps(struct timerhub *hub);

#endif
