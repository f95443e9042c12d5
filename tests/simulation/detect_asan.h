/* SPDX-License-Identifier: MIT */
/*
 * WITH_ASAN is 1 if the program is built with AddressSanitizer, which gcc and clang tell in
 * different ways.
 */
#ifndef TIMERHUB_SIMULATION_DETECT_ASAN_H
#define TIMERHUB_SIMULATION_DETECT_ASAN_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

#endif
