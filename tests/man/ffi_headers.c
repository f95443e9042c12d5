/* SPDX-License-Identifier: MIT */
/* Fails to compile if the headers do not leave TIMERHUB_API alone, as timerhub-ffi(7) says. */
#define TIMERHUB_API extern

#include <timerhub.h>
#include <timerhub_loop.h>
#include <timerhub_relay.h>
#include <timerhub_store.h>

#define TEXT(word) #word
#define TEXT_OF(macro) TEXT(macro)

_Static_assert(sizeof(TEXT_OF(TIMERHUB_API)) == sizeof("extern"), "TIMERHUB_API was redefined");
