/* SPDX-License-Identifier: MIT */
/*
 * Declares the functions that all programs of the suite `faults` share. A program adds up the
 * faults that its tests have injected, and prints the sum. Each test has a process of its own. A
 * program also prints which faults it could not inject, and the reason.
 */
#ifndef TESTS_FAULT_SUITE_H
#define TESTS_FAULT_SUITE_H

#include "rig.h"

void faults_begin(const char *name, int argc, char **argv);
int faults_run(void);

void faults_count(unsigned count);
void faults_skip(const char *what, const char *reason);

/* Waits until the owner sleeps without work, and expects that the owner stays asleep. */
void owner_rests(struct timerhub *hub);

/* Expects that the owner pauses between its rounds while the kernel refuses its sleep. */
void owner_only_naps(struct timerhub *hub);

#endif
