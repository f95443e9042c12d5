/* SPDX-License-Identifier: MIT */
#include "races.h"

#include <string.h>

#include "report.h"
#include "scheduler.h"

void accesses_check(const struct accesses *accesses, const char *what, struct source_location place)
{
	if (view_has(memory_known(), accesses->epochs))
		return;
	for (unsigned i = 0; i < MEMORY_THREADS; i++)
		if (accesses->epochs[i] > memory_known()->epochs[i])
			report_failure(
				"%s:%d: %s races with an access at %s:%d (threads %u and %u)",
				place.file, place.line, what, accesses->places[i].file,
				accesses->places[i].line, scheduler_self(), i);
}

void accesses_note(struct accesses *accesses, struct source_location place)
{
	unsigned self = scheduler_self();

	if (accesses->epochs[self] == memory_known()->epochs[self])
		return;
	accesses->epochs[self] = memory_known()->epochs[self];
	accesses->places[self] = place;
}

/*
 * Here two atomic stores may come in either order: the loss of one is harmless, as the comments
 * there say.
 */
bool races_allowed(struct source_location place)
{
	static const char *const files[] = { "base/bell.c", "notifier.c", "queue/thread_cells.h",
		                             "simulation/memory_models.c" };

	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!place.file || strstr(place.file, files[i]))
			return true;
	return false;
}

/* ---- data that is not atomic ---- */

void plain_read_at(struct plain *plain, struct source_location place)
{
	if (memory.mode == MEMORY_SC)
		return;
	accesses_check(&plain->writes, "a read", place);
	accesses_note(&plain->reads, place);
}

void plain_write_at(struct plain *plain, struct source_location place)
{
	if (memory.mode == MEMORY_SC)
		return;
	accesses_check(&plain->writes, "a write", place);
	accesses_check(&plain->reads, "a write", place);
	accesses_note(&plain->writes, place);
}
