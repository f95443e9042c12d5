/* SPDX-License-Identifier: MIT */
/*
 * The common part of the programs of `faults`. A program counts the injected faults over all its
 * tests, each of which has its own process, and prints the number. The program prints which faults
 * it could not inject, and the reason.
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

/*
 * Expects that the owner, whose sleep is refused, makes a pass only now and then, and does not loop
 * without a pause.
 */
void owner_only_naps(struct timerhub *hub);

#endif
