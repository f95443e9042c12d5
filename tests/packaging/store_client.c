/* SPDX-License-Identifier: MIT */
/*
 * A small program that uses the store, compiled as C11 and as C++17. It puts a task into a database
 * in the current directory, closes the store, opens it again and takes the task. It calls no
 * function of timerhub.h.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <timerhub_store.h>

static int task_is_put(void)
{
	struct timerhub_store *store;
	struct timerhub_store_put put = { sizeof(put), 0, 0, 0, NULL, "order", 6 };

	if (timerhub_store_open(&store, "tasks.db", NULL) < 0)
		return 0;
	const int result = timerhub_store_put(store, &put, NULL);
	timerhub_store_close(store);
	return result == 0;
}

static int task_comes(void)
{
	struct timerhub_store *store;
	struct timerhub_store_task task;

	if (timerhub_store_open(&store, "tasks.db", NULL) < 0)
		return 0;
	const int good = timerhub_store_take(store, &task, 1, UINT64_MAX) == 1 &&
	                 task.data_len == 6 && timerhub_store_done(store, &task) == 0;
	timerhub_store_close(store);
	return good;
}

int main(void)
{
	const int good = task_is_put() && task_comes();

	puts(good ? "good" : "failed");
	return good ? 0 : 1;
}
