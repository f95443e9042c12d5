/* SPDX-License-Identifier: MIT */
/* The same source as C++17, and the header for C++ alone. */
#include "client.c"

#include <timerhub.hpp>

static_assert(timerhub::delay(std::chrono::milliseconds(1)).ns() == 1000000);
