/* SPDX-License-Identifier: MIT */
/* Compiles journal_client.c as C++17. */
#include "journal_client.c"
