/* SPDX-License-Identifier: MIT */
/* Compiles store_client.c as C++17. */
#include "store_client.c"
