/* SPDX-License-Identifier: MIT */
/*
 * Replaces the operator new of a test program by an operator that counts allocations and can refuse
 * them. Only programs with one thread may use the counting operator.
 */
#ifndef TESTS_CPP_HEAP_HPP
#define TESTS_CPP_HEAP_HPP

extern unsigned heap_allocated; /* number of allocations since the program began */
extern bool heap_refuses;       /* if true, all further allocations fail */

#endif
