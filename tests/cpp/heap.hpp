/* SPDX-License-Identifier: MIT */
/*
 * The operator new of a test program, which counts allocations and can refuse them. Only programs
 * with one thread may use it.
 */
#ifndef TESTS_CPP_HEAP_HPP
#define TESTS_CPP_HEAP_HPP

extern unsigned heap_allocated; /* number of allocations since the program began */
extern bool heap_refuses;       /* set by a test: refuse later allocations */

#endif
