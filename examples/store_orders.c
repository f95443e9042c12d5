/* SPDX-License-Identifier: MIT */
/*
 * A shop whose unpaid orders are dropped after a second. The order and its timeout are committed
 * together, in one SQLite database, and so are the payment and the cancel, and the drop and the
 * timeout's end. So the process may be killed at any moment: the next run goes on, and no order is
 * forgotten, or both paid and dropped.
 *
 * It ends when each order is paid or dropped. If an order was dropped too early, or a payment was
 * lost, the exit status is 1.
 *
 * Usage: store_orders DATABASE [ORDERS]
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <timerhub_store.h>

#define SECOND UINT64_C(1000000000)
#define PAY_WITHIN_NS SECOND
#define LEASE_NS SECOND /* the order of a killed worker comes again after it */

static const char *path;

static void fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "store_orders: %s: %s\n", what, why);
	exit(2);
}

static void sleep_ms(long ms)
{
	const struct timespec nap = { .tv_nsec = ms * 1000000 };

	(void)nanosleep(&nap, NULL);
}

/* ---- the shop's own rows ---- */

/* A connection belongs to one thread. Its commits are on stable storage, by SQLite's default. */
static sqlite3 *shop_open(void)
{
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK)
		fail(path, sqlite3_errmsg(db));
	(void)sqlite3_busy_timeout(db, 10000);
	return db;
}

static void sql(sqlite3 *db, const char *text)
{
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail(text, sqlite3_errmsg(db));
}

/* Runs a statement with a number for its `?`. Returns the first column of its row, or 0. */
static int64_t sql_number(sqlite3 *db, const char *text, int64_t argument)
{
	sqlite3_stmt *statement;
	int64_t number = 0;
	int step;

	if (sqlite3_prepare_v2(db, text, -1, &statement, NULL) != SQLITE_OK)
		fail(text, sqlite3_errmsg(db));
	(void)sqlite3_bind_int64(statement, 1, argument);
	step = sqlite3_step(statement);
	if (step == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	else if (step != SQLITE_DONE)
		fail(text, sqlite3_errmsg(db));
	(void)sqlite3_finalize(statement);
	return number;
}

/*
 * Changes the order's row, and its task in the same transaction. Returns whether both were changed:
 * neither is if the order has another state by now, or if the other thread has the task.
 */
static bool change(struct timerhub_store *store, sqlite3 *db, const char *row, int64_t order,
                   struct timerhub_store_change *task)
{
	int result = -ENOENT;

	sql(db, "BEGIN IMMEDIATE");
	(void)sql_number(db, row, order);
	if (sqlite3_changes(db) == 1)
		result = timerhub_store_commit_in(store, db, task, 1);
	if (result < 0 && result != -ENOENT && result != -EBUSY && result != -ESTALE)
		fail(row, strerror(-result));
	sql(db, result == 0 ? "COMMIT" : "ROLLBACK");
	return result == 0;
}

/* ---- the worker ---- */

static void *drop_orders(void *context)
{
	struct timerhub_store *store = context;
	sqlite3 *db = shop_open();
	struct timerhub_store_task task;
	int count;

	while ((count = timerhub_store_take(store, &task, 1, UINT64_MAX)) == 1) {
		struct timerhub_store_change done = { .op = TIMERHUB_STORE_DONE, .task = &task };

		(void)change(store, db,
		             "UPDATE orders SET state = 'dropped', early = expires_us > "
		             "(julianday('now') - 2440587.5) * 86400e6 + 1000 "
		             "WHERE id = ? AND state = 'open'",
		             strtoll(task.key, NULL, 10), &done);
		timerhub_store_release(store, &task);
	}
	if (count != -ESHUTDOWN)
		fail("take", strerror(-count));
	(void)sqlite3_close(db);
	return NULL;
}

/* ---- the shop ---- */

static void take_order(struct timerhub_store *store, sqlite3 *db, int64_t order)
{
	char key[24];
	struct timerhub_store_change timeout = {
		.op = TIMERHUB_STORE_PUT,
		.when_ns = PAY_WITHIN_NS,
		.key = key,
	};

	(void)snprintf(key, sizeof(key), "%" PRId64, order);
	if (!change(store, db,
	            "INSERT INTO orders(id, state, expires_us) VALUES(?, 'open', "
	            "(julianday('now') - 2440587.5) * 86400e6 + 1e6)",
	            order, &timeout))
		fail("an order", "its timeout exists already");
}

/* A payment that comes when the order was dropped, or is just being dropped, is refused. */
static bool pay(struct timerhub_store *store, sqlite3 *db, int64_t order)
{
	char key[24];
	struct timerhub_store_change cancel = { .op = TIMERHUB_STORE_CANCEL, .key = key };

	(void)snprintf(key, sizeof(key), "%" PRId64, order);
	return change(store, db, "UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'open'",
	              order, &cancel);
}

static void sell(struct timerhub_store *store, sqlite3 *db, int64_t orders)
{
	int64_t next = sql_number(db, "SELECT count(*) FROM orders WHERE ? = 0", 0);

	if (next > 0)
		(void)printf("goes on after order %" PRId64 "\n", next - 1);
	for (; next < orders; next++) {
		take_order(store, db, next);
		if (next >= 20 && next % 4 == 0)
			(void)pay(store, db, next - 20);
		sleep_ms(1);
	}
	while (sql_number(db, "SELECT count(*) FROM orders WHERE ? = 0 AND state = 'open'", 0) > 0)
		sleep_ms(10);
}

static int64_t count_of(sqlite3 *db, const char *state)
{
	static char text[96];

	(void)snprintf(text, sizeof(text), "SELECT count(*) FROM orders WHERE ? = 0 AND %s", state);
	return sql_number(db, text, 0);
}

int main(int argc, char **argv)
{
	const struct timerhub_store_config config = { .size = sizeof(config),
		                                      .queue = "orders",
		                                      .lease_ns = LEASE_NS };
	int64_t orders = argc > 2 ? strtoll(argv[2], NULL, 10) : 1000;
	struct timerhub_store *store;
	int64_t paid, dropped, early;
	pthread_t worker;
	sqlite3 *db;
	int result;

	if (argc < 2 || argc > 3 || orders < 1) {
		(void)fprintf(stderr, "usage: store_orders DATABASE [ORDERS]\n");
		return 2;
	}
	path = argv[1];
	result = timerhub_store_open(&store, path, &config);
	if (result < 0)
		fail(path, strerror(-result));
	db = shop_open();
	sql(db, "CREATE TABLE IF NOT EXISTS orders("
	        "id INTEGER PRIMARY KEY, state TEXT, expires_us INTEGER, early INTEGER DEFAULT 0)");
	result = pthread_create(&worker, NULL, drop_orders, store);
	if (result != 0)
		fail("a thread", strerror(result));
	sell(store, db, orders);
	timerhub_store_stop(store);
	(void)pthread_join(worker, NULL);

	paid = count_of(db, "state = 'paid'");
	dropped = count_of(db, "state = 'dropped'");
	early = count_of(db, "early");
	(void)printf("%" PRId64 " orders: %" PRId64 " paid, %" PRId64 " dropped, %" PRId64
	             " early\n",
	             paid + dropped, paid, dropped, early);
	(void)sqlite3_close(db);
	timerhub_store_close(store);
	return early == 0 && paid + dropped == orders ? 0 : 1;
}
