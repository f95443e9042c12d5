/* SPDX-License-Identifier: MIT */
/* A store in a folder of its own, and a plain connection to the same database. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <sqlite3.h>
#include <stdint.h>
#include <timerhub_store.h>

extern struct timerhub_store *store;
extern sqlite3 *plain; /* autocommit, opened by sql_open() */
extern char database[96];

/*
 * Names the database, for a child that is forked before anybody opens it. fixture_begin() does it
 * otherwise.
 */
void fixture_name(void);
/* NULL: the defaults */
void fixture_begin(const struct timerhub_store_config *config);
void fixture_end(void);
/* A test of a store with the defaults. */
#define STORE_TEST_LOOP(test_name, limit, times)                                                   \
	static void test_name##_body(int _i);                                                      \
	TEST_LOOP(test_name, limit, times)                                                         \
	{                                                                                          \
		fixture_begin(NULL);                                                               \
		test_name##_body(_i);                                                              \
		fixture_end();                                                                     \
	}                                                                                          \
	static void test_name##_body(int _i CK_ATTRIBUTE_UNUSED)
#define STORE_TEST(test_name, limit) STORE_TEST_LOOP(test_name, limit, 1)

/* Opens one more handle of the same database. */
struct timerhub_store *fixture_open(const struct timerhub_store_config *config);

/* Opens a connection to the database that waits up to 20 s for others. */
sqlite3 *sql_open(void);
/* Run SQL, which must succeed: sql_on() on the given connection, sql() on `plain`. */
void sql_on(sqlite3 *db, const char *text);
void sql(const char *text);
/* The first column of the first row, -1 if there is none. */
int64_t sql_number(const char *text);
/* The same as text; "" if there is none. The next call overwrites it. */
const char *sql_text(const char *text);

uint64_t put_in(uint64_t delay_ns, const char *key, const char *data);
/* Takes and returns one task, which must arrive. */
struct timerhub_store_task take_one(void);
/* Nothing is due. */
void take_none(void);

#endif
