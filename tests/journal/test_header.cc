/* SPDX-License-Identifier: MIT */
/*
 * Tests that a C++17 program with the journal's header compiles without warnings, links and works.
 */
#include <timerhub_journal.h>

#include <cstdio>
#include <cstdlib>
#include <string>

static bool task_comes(timerhub_journal *journal)
{
	timerhub_journal_task task{};
	uint64_t id = 0;

	return timerhub_journal_put(journal, 0, 0, "data", 4, &id) == 0 &&
	       timerhub_journal_take(journal, &task, UINT64_MAX) == 1 && task.id == id &&
	       std::string(static_cast<const char *>(task.data), task.data_len) == "data" &&
	       timerhub_journal_done(journal, &task) == 0;
}

int main()
{
	char dir[] = "/tmp/journal-XXXXXX";
	timerhub_journal_config config{};
	timerhub_journal *journal = nullptr;
	bool good;

	config.size = sizeof(config);
	good = mkdtemp(dir) && timerhub_journal_open(&journal, dir, &config) == 0 &&
	       task_comes(journal);
	timerhub_journal_stop(journal);
	timerhub_journal_close(journal);
	good = std::system((std::string("rm -r ") + dir).c_str()) == 0 && good;
	std::puts(good ? "good" : "failed");
	return good ? 0 : 1;
}
