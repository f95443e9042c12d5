/* SPDX-License-Identifier: MIT */
/* The same source compiled as C++17, with a use of timerhub.hpp. */
#include "client.c"

#include <timerhub.hpp>

static_assert(timerhub::delay(std::chrono::milliseconds(1)).ns() == 1000000);
