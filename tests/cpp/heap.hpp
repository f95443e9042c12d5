/* SPDX-License-Identifier: MIT */
/* operator new of a test program, counted and refused. One thread. */
#ifndef TESTS_CPP_HEAP_HPP
#define TESTS_CPP_HEAP_HPP

extern unsigned heap_allocated; /* blocks since the program began */
extern bool heap_refuses;       /* set by a test: the next ones are refused */

#endif
