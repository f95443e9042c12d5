/* SPDX-License-Identifier: MIT */
/* timerhub-journal: see its manual page. Tested by tests/journal/tool_test.py. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <journal/reader.h>
#include <journal/replay.h>
#include <journal/segment_names.h>
#include <when.h>

#include "progress.h"
#include "repair.h"
#include "task_commands.h"

const char console_tool[] = "timerhub-journal";
const char console_help[] =
	"usage: timerhub-journal check|repair|dump|stat|list DIR, show|cancel DIR TASK,\n"
	"       move|revive DIR TASK WHEN, backup DIR TO\n"
	"  check   print the first damage, or the number of torn bytes at the end\n"
	"  repair  replace a damaged journal by a new journal with all readable tasks;\n"
	"          keep the damaged files as *.bad\n"
	"  dump    print every record, one record a line\n"
	"  stat    print the numbers of tasks, bytes, segments and records\n"
	"  list    print every live task, one task a line, the first due task first\n"
	"  show    print a task's data\n"
	"  cancel, move, revive: change a task; no other process may use the journal\n"
	"  backup  write a copy of the journal to the empty directory TO; other processes\n"
	"          may use the journal during the copy\n"
	"TASK is the id of a task, or =KEY in the form that the command \"list\" prints.\n"
	"WHEN is a delay (90s, 1.5h; us, ms, s, m, h, d), a date (2027-01-31T12:00:00Z),\n"
	"@SECONDS since 1970, or never.\n"
	"Options, anywhere: --help, -h, --version, -V, and --ns: list and dump print\n"
	"nanoseconds in place of dates.\n"
	"Exit status: 0 done, and no damage; 1 damaged, or no such task; 2 wrong usage;\n"
	"3 a file could not be read or written, or the journal is in use.\n";

static enum status no_journal(const char *dir)
{
	(void)fprintf(stderr, "timerhub-journal: %s: not a journal\n", dir);
	return FAILED;
}

/* ---- check ---- */

static void print_verdict(enum console_colour colour, const char *word)
{
	(void)printf("%s%s%s: ", console_colour(stdout, colour), word,
	             console_colour(stdout, CONSOLE_PLAIN));
}

static void print_fault(const struct replay *replay)
{
	char name[DISK_NAME_MAX];

	segment_name(name, replay->fault_segment);
	print_verdict(CONSOLE_BAD, "damaged");
	(void)printf("%s at offset %" PRIu64 ": %s\n", name, replay->fault_offset, replay->fault);
}

static enum status check(struct disk *disk, char **arguments)
{
	const char *dir = arguments[0];
	struct replay replay;
	enum status status = GOOD;
	int result;

	replay_init(&replay, disk, 0);
	result = replay_run(&replay, REPLAY_VERIFY);
	console_work_end();
	if (result == 0) {
		print_verdict(CONSOLE_GOOD, "whole");
		(void)printf("%" PRIu32 " segments, %" PRIu64 " records, %" PRIu32 " tasks live\n",
		             replay.log.count, replay.records, replay.tasks.count);
		if (replay.torn_bytes > 0)
			(void)printf("torn: %" PRIu64
			             " bytes at the end, which the next open cuts\n",
			             replay.torn_bytes);
	} else if (result == -EBADMSG) {
		print_fault(&replay);
		status = DAMAGED;
	} else {
		status = tool_complain(dir, result);
	}
	replay_fini(&replay);
	return status;
}

/* ---- dump ---- */

static const char *type_name(enum record_type type)
{
	static const char *const names[RECORD_TYPE_END] = {
		[RECORD_PUT] = "put",   [RECORD_MOVE] = "move",   [RECORD_CANCEL] = "cancel",
		[RECORD_DONE] = "done", [RECORD_RETRY] = "retry", [RECORD_TAKE] = "take",
		[RECORD_COPY] = "copy", [RECORD_CLOSE] = "close", [RECORD_DROP] = "drop",
		[RECORD_PARK] = "park", [RECORD_RENEW] = "renew",
	};

	return names[type];
}

static void dump_record(const struct reader *reader, uint64_t offset, const struct record *record)
{
	(void)printf("%016" PRIx64 " %8" PRIu64 " seq %" PRIu64 " %-6s", reader->header.number,
	             offset, record->sequence, type_name(record->type));
	if (record->type == RECORD_DROP)
		(void)printf(" before %016" PRIx64, record->id);
	else if (record->type != RECORD_CLOSE)
		(void)printf(" id %" PRIu64, record->id);
	if (record->type == RECORD_PUT || record->type == RECORD_COPY ||
	    record->type == RECORD_MOVE || record->type == RECORD_RETRY ||
	    record->type == RECORD_PARK || record->type == RECORD_RENEW)
		when_print("due", record->due_ns);
	if (record->attempts > 0)
		(void)printf(" attempts %" PRIu32, record->attempts);
	if (record->interval_ns > 0)
		when_print_delay("interval", record->interval_ns);
	if (record->reason > 0)
		(void)printf(" reason %" PRIu32, record->reason);
	if (record->key_len > 0)
		tool_print_key(" key ", record->key, record->key_len);
	if ((record->flags & RECORD_PARKED) != 0)
		(void)printf(" parked");
	if ((record->flags & RECORD_MORE) != 0)
		(void)printf(" more");
	if (record->data_len > 0)
		(void)printf(" data %" PRIu32, record->data_len);
	(void)printf("\n");
}

static void dump_bytes(const struct reader *reader, uint64_t from, uint64_t to, const char *what)
{
	if (from < to)
		(void)printf("%016" PRIx64 " %8" PRIu64 " %" PRIu64 " bytes are %s\n",
		             reader->header.number, from, to - from, what);
}

/* Skip bytes up to the next good record: 1; up to the end of the segment: 0. */
static int dump_bad(struct reader *reader, uint64_t sequence)
{
	uint64_t from = reader->offset, zeros_from;
	int result = reader_search(reader, sequence + 1, 0);

	if (result == 1)
		dump_bytes(reader, from, reader->offset, "no good record");
	if (result != 0)
		return result;
	result = reader_find_zeros(reader, &zeros_from);
	if (result < 0)
		return result;
	dump_bytes(reader, from, zeros_from, "no good record");
	dump_bytes(reader, zeros_from, reader->end, "zeros to the end");
	reader->offset = reader->end;
	return 0;
}

static int dump_records(struct reader *reader)
{
	uint64_t sequence = 0;

	for (;;) {
		uint64_t offset = reader->offset;
		struct record record;
		int result = reader_next(reader, &record);

		if (result == 0)
			return 0;
		if (result == 1) {
			sequence = record.sequence;
			dump_record(reader, offset, &record);
			continue;
		}
		if (result != -EBADMSG)
			return result;
		result = dump_bad(reader, sequence);
		if (result <= 0)
			return result;
	}
}

/* By the files' names, since the headers may be damaged. */
static enum status dump(struct disk *disk, char **arguments)
{
	const char *dir = arguments[0];
	struct replay replay;
	int result;

	replay_init(&replay, disk, 0);
	result = replay_run(&replay, REPLAY_SALVAGE);
	console_work_end();
	for (uint32_t i = 0; result == 0 && i < replay.log.count; i++) {
		uint64_t number = replay.log.segments[i].number;
		struct reader reader;

		result = reader_open(&reader, disk, number, false, true);
		if (result == 0)
			result = dump_records(&reader);
		if (result == -EBADMSG || result == -EOPNOTSUPP) {
			(void)printf("%016" PRIx64 "        0 has no good header\n", number);
			result = 0;
		}
		reader_close(&reader);
	}
	replay_fini(&replay);
	return result < 0 ? tool_complain(dir, result) : GOOD;
}

/* ---- stat ---- */

static void print_number(const char *name, uint64_t number)
{
	(void)printf("%-12s%" PRIu64 "\n", name, number);
}

static enum status stat_journal(struct disk *disk, char **arguments)
{
	const char *dir = arguments[0];
	struct replay replay;
	int result;

	replay_init(&replay, disk, 0);
	result = replay_run(&replay, REPLAY_VERIFY);
	console_work_end();
	if (result == -EBADMSG)
		print_fault(&replay);
	else if (result < 0)
		(void)tool_complain(dir, result);
	if (result == 0) {
		print_number("tasks", replay.tasks.count);
		print_number("data", replay.tasks.data_bytes);
		print_number("live", replay.tasks.live_bytes);
		print_number("disk", replay.log.bytes + replay.torn_bytes + replay.ahead_bytes);
		print_number("torn", replay.torn_bytes);
		print_number("ahead", replay.ahead_bytes);
		print_number("segments", replay.log.count);
		print_number("records", replay.records);
		print_number("sequence", replay.log.sequence);
		print_number("next_id", replay.log.next_id);
		if (replay.agenda.count > 0)
			print_number("first_due", agenda_first_ns(&replay.agenda));
	}
	replay_fini(&replay);
	return result == 0 ? GOOD : result == -EBADMSG ? DAMAGED : FAILED;
}

/* ---- repair ---- */

static enum status repair(struct disk *disk, char **arguments)
{
	const char *dir = arguments[0];
	struct repair_report report;
	int result = repair_run(disk, &report);

	console_work_end();
	if (result == -EBUSY)
		return tool_in_use(dir);
	if (result < 0)
		return tool_complain(dir, result);
	print_verdict(CONSOLE_GOOD, report.was_whole ? "whole" : "repaired");
	if (report.was_whole)
		(void)printf("%" PRIu32 " tasks live; nothing to repair, %" PRIu64
		             " torn bytes cut\n",
		             report.tasks, report.lost_bytes);
	else
		(void)printf("%" PRIu32 " tasks saved, %" PRIu64
		             " bytes could not be read; the old files are *.bad\n",
		             report.tasks, report.lost_bytes);
	return GOOD;
}

struct command {
	const char *name;
	int arguments; /* with the directory */
	enum status (*run)(struct disk *disk, char **arguments);
};

static const struct command commands[] = {
	{ "check", 1, check },        { "repair", 1, repair },  { "dump", 1, dump },
	{ "stat", 1, stat_journal },  { "list", 1, tool_list }, { "show", 2, tool_show },
	{ "cancel", 2, tool_cancel }, { "move", 3, tool_move }, { "revive", 3, tool_revive },
	{ "backup", 2, tool_backup },
};

static enum status run(const struct command *command, char **arguments)
{
	struct disk *disk;
	int result = disk_real_open(&disk, arguments[0]);
	enum status status;

	if (result < 0)
		return tool_complain(arguments[0], result);
	result = segment_names_find_journal(disk);
	progress_begin(disk, command->name);
	if (result == 1)
		status = command->run(disk, arguments);
	else
		status =
			result < 0 ? tool_complain(arguments[0], result) : no_journal(arguments[0]);
	disk_real_close(disk);
	return status;
}

static enum status command_line(int argc, char **argv)
{
	if (argc < 2)
		return misused("the command is missing", NULL);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		if (argc - 2 != commands[i].arguments)
			return misused("wrong number of arguments for", argv[1]);
		return run(&commands[i], argv + 2);
	}
	return misused("there is no command named", argv[1]);
}

int main(int argc, char **argv)
{
	int words = 1;

	console_begin();
	for (int i = 1; i < argc; i++)
		if (console_answer(argv[i]))
			return console_end(GOOD, FAILED);
		else if (strcmp(argv[i], "--ns") == 0)
			when_in_ns = true;
		else
			argv[words++] = argv[i];
	return console_end(command_line(words, argv), FAILED);
}
