/* SPDX-License-Identifier: MIT */
/*
 * A small program that uses the journal, compiled as C11 and as C++17. The program puts a task into
 * a journal in the current directory. It closes the journal, opens it again, and takes the task.
 * The program calls no function of timerhub.h.
 */
#include <stdio.h>
#include <timerhub_journal.h>

static int task_is_put(void)
{
	struct timerhub_journal *journal;

	if (timerhub_journal_open(&journal, ".", NULL) < 0)
		return 0;
	const int put = timerhub_journal_put(journal, 0, 0, "order", 6, NULL);
	timerhub_journal_close(journal);
	return put == 0;
}

static int task_comes(void)
{
	struct timerhub_journal *journal;
	struct timerhub_journal_task task;

	if (timerhub_journal_open(&journal, ".", NULL) < 0)
		return 0;
	const int good = timerhub_journal_take(journal, &task, UINT64_MAX) == 1 &&
	                 task.data_len == 6 && timerhub_journal_done(journal, &task) == 0;
	timerhub_journal_close(journal);
	return good;
}

int main(void)
{
	const int good = task_is_put() && task_comes();

	puts(good ? "good" : "failed");
	return good ? 0 : 1;
}
