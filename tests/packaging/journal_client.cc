/* SPDX-License-Identifier: MIT */
/* The same source compiled as C++17. */
#include "journal_client.c"
