/* SPDX-License-Identifier: MIT */
/*
 * The tables of a store in its database: how they are made, their version, and the values of the
 * columns that are the library's own.
 */
#ifndef TIMERHUB_STORE_SCHEMA_H
#define TIMERHUB_STORE_SCHEMA_H

#include <sqlite3.h>
#include <stdint.h>

#define SCHEMA_VERSION 1

/*
 * The column `lease` of a task is its state. All of its values take 8 bytes in the file, as do
 * those of `claim`, because SQLite can then change them in place: a take writes one page, however
 * long the task's data is.
 */
#define LEASE_WAITING "-3000000000000000000"
#define LEASE_BY_DONE "-2000000000000000000" /* the task waits for a period that `done` has set */
#define LEASE_PARKED "-1000000000000000000"
/* a taken task has this plus the end of its lease on CLOCK_BOOTTIME, in us */
#define LEASE_BASE "1000000000000000000"
#define LEASE_BASE_US INT64_C(1000000000000000000)
#define IS_WAITING "lease<" LEASE_PARKED
#define IS_TAKEN "lease>0"

/*
 * The column `claim` has the number of the task's current delivery above 20 bits: 19 count its
 * attempts, and CLAIM_LAST says that its taker allows no more of them. Whatever ends or withdraws a
 * delivery raises the number, so an answer is valid if, and only if, it names the current one.
 */
#define CLAIM_FIRST "281474976710656" /* 2^48 */
#define CLAIM_SHIFT 20
#define CLAIM_DELIVERY 1048576 /* 2^20 */
#define CLAIM_LAST 524288      /* 2^19 */
#define CLAIM_ATTEMPTS 524287
#define CLAIM_NEXT "claim+1048576"       /* the next delivery, whose attempts count on */
#define CLAIM_ANEW "((claim>>20)+1)<<20" /* a next delivery that begins with 0 attempts */

/* The least and the largest time that the table accepts: in 2001 and 2286. */
#define DUE_MIN_US INT64_C(1000000000000000)
#define DUE_MAX_US INT64_C(10000000000000000)

/*
 * Makes the tables in the main database, in a transaction of its own or within the caller's.
 * Returns 0 or a negative errno, which is -EOPNOTSUPP if the tables there belong to a later
 * version.
 */
int schema_install(sqlite3 *db);

#endif
