/* SPDX-License-Identifier: MIT */
/* The same source as C++17. */
#include "journal_client.c"
