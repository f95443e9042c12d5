/* SPDX-License-Identifier: MIT */
/*
 * Fails to compile if the headers do not leave TIMERHUB_API alone, or if a size or value that
 * timerhub-ffi(7) tells to bindings is another in the headers.
 */
#define TIMERHUB_API extern

#include <timerhub.h>
#include <timerhub_loop.h>
#include <timerhub_relay.h>
#include <timerhub_store.h>

#define TEXT(word) #word
#define TEXT_OF(macro) TEXT(macro)

_Static_assert(sizeof(TEXT_OF(TIMERHUB_API)) == sizeof("extern"), "TIMERHUB_API was redefined");
_Static_assert(sizeof(struct timerhub_event) == 64, "the page says 64 bytes");
_Static_assert(sizeof(struct timerhub_timeout) == 32, "the page says 32 bytes");
_Static_assert(TIMERHUB_ABSOLUTE == 1 && TIMERHUB_KEEP == 2, "flags of struct timerhub_spec");
_Static_assert(TIMERHUB_MANUAL == 1 && TIMERHUB_OBSERVABLE == 2 && TIMERHUB_HUGE_PAGES == 4,
               "flags of struct timerhub_config");
_Static_assert(TIMERHUB_LOOP_MANUAL == 1 && TIMERHUB_LOOP_OBSERVABLE == 2 &&
                       TIMERHUB_LOOP_LOCKED == 4,
               "flags of struct timerhub_loop_config");
_Static_assert(TIMERHUB_CLOCK_MONOTONIC == 0 && TIMERHUB_CLOCK_BOOTTIME == 1 &&
                       TIMERHUB_CLOCK_REALTIME == 2,
               "enum timerhub_clock");
