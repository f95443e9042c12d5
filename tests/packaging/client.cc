/* SPDX-License-Identifier: MIT */
/* Compiles client.c as C++17, and uses timerhub.hpp. */
#include "client.c"

#include <timerhub.hpp>

static_assert(timerhub::delay(std::chrono::milliseconds(1)).ns() == 1000000);
