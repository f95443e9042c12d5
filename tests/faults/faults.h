/* SPDX-License-Identifier: MIT */
/*
 * A program of faults. It counts the injected faults over all its tests (each a process of its own)
 * and prints the number. It prints which faults it could not inject, and the reason.
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include "rig.h"

void faults_begin(const char *name, int argc, char **argv);
int faults_run(void);

void faults_count(unsigned count);
void faults_skip(const char *what, const char *reason);

/* Waits until the owner sleeps without work, and expects that it stays asleep. */
void owner_rests(struct timerhub *hub);

/* The owner, whose sleep is refused, may look now and then, but must not loop without a pause. */
void owner_only_naps(struct timerhub *hub);

#endif
