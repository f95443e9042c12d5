/* SPDX-License-Identifier: MIT */
/*
 * A program of faults: counts what it injects, over all its tests (each a process of its own), and
 * prints the number; says what it could not inject, and why.
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include "rig.h"

void faults_begin(const char *name, int argc, char **argv);
int faults_run(void);

void faults_count(unsigned count);
void faults_skip(const char *what, const char *reason);

/* Waits until the owner sleeps, with nothing to do, and expects that it goes on sleeping. */
void owner_rests(struct timerhub *hub);

/* The owner, not let sleep, may look every now and then, but does not turn in circles. */
void owner_only_naps(struct timerhub *hub);

#endif
