/* SPDX-License-Identifier: MIT */
/*
 * What timerhub-top knows of the process that it watches: its hubs and loops, with the counter
 * boards (shared memory) in which they count, and its threads. The tool finds the boards through
 * /proc and maps them read-only. It checks all data of the process before it uses them.
 */
#ifndef TOP_TARGET_H
#define TOP_TARGET_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "board/counter_board.h"
#include "function_names.h"

#define PROC_STATUS_BYTES 4096 /* room for /proc/PID/status */
#define TARGET_HUBS_MAX 256
#define TARGET_TEXT_BYTES 160
#define THREAD_TEXT_BYTES 32
#define RUNNING_MAX 512 /* largest number of threads that are shown */

/*
 * A hub or a loop of the watched process. Both have a counter board, and the tool treats them
 * alike.
 */
struct hub {
	const struct board *board;
	struct board_header about; /* checked copy of the board's header, with printable texts */
	int fd;                    /* number of the board's descriptor in the watched process */
	ino_t inode;
	dev_t device;
};

static inline bool is_loop(const struct board_header *about)
{
	return about->kind == BOARD_LOOP;
}

/*
 * Returns the present time on the clock of a hub or loop. Returns 0 if it is manual, because then
 * only the program knows its time.
 */
uint64_t hub_clock_ns(const struct hub *hub);

struct target {
	pid_t pid;
	int proc; /* descriptor of /proc/PID, never of a later process with this PID */
	char command[BOARD_TEXT_BYTES];
	uint64_t found_ns; /* time of the last search for new hubs */
	unsigned hub_count;
	struct hub hubs[TARGET_HUBS_MAX]; /* hubs in the order in which they were opened */
	char refusal[TARGET_TEXT_BYTES];  /* reason why no hub can be watched, as a message */
};

/*
 * Open the process `pid` and find its hubs. Returns 0, or -1 with the reason in `refusal`. If
 * target_open() fails, target_close() must still be called.
 */
int target_open(struct target *target, pid_t pid);
void target_close(struct target *target);

/*
 * Forgets hubs and loops that were closed, and finds new ones. New ones are searched for if one was
 * closed, and otherwise every few seconds. Returns -1 if there is none, with the reason in
 * target->refusal.
 */
int target_refresh(struct target *target);

bool target_alive(const struct target *target);

/* What /proc tells about a thread to whoever may read it. */
struct thread {
	int tid; /* the number that the process itself sees */
	char name[THREAD_TEXT_BYTES];
	char state;         /* as in proc(5): R runs or waits for a CPU, S and D sleep, T stopped */
	bool has_waited_ns; /* false if the kernel does not keep waited_ns */
	uint64_t at_ns;     /* when the thread was looked at, by CLOCK_MONOTONIC */
	uint64_t ran_ns;    /* how long it has run on a CPU */
	uint64_t waited_ns; /* how long it has waited for a CPU, in waits that have ended */
	uint64_t sleeps;    /* how often it has gone to sleep of its own accord */
	char wchan[THREAD_TEXT_BYTES];   /* the kernel function in which it sleeps; "": not known */
	char syscall[THREAD_TEXT_BYTES]; /* the system call in which it sleeps; "": not known */
};

/*
 * Reads the state of a thread from /proc. `proc` is the folder of the process, and `tid` is the
 * thread's number as the process itself sees it. Returns false if there is no such thread, or if
 * the tool may not look at it.
 */
bool thread_look(int proc, int tid, struct thread *ret_thread);

/*
 * What a thread is doing in the library. The thread writes that into its cell on a counter board,
 * and the rest comes from /proc.
 */
struct running {
	uint64_t serial; /* of the hub or loop on whose board the cell stands */
	struct cell_reading cell;
	uint64_t queue;  /* address of the queue that it dispatches, or of its loop's; 0: none */
	uint64_t for_ns; /* since when the cell says so; 0 if the time is the program's own */
	struct name function; /* of the callback; the caller of runnings_take() stores it */
	struct thread thread; /* at this reading */
	struct thread before; /* at the reading before; tid 0: the thread was not looked at then */
};

struct runnings {
	unsigned count;
	struct running rows[RUNNING_MAX];
};

/*
 * Finds out what the threads of the process are doing in the library. Threads that have ended are
 * left out. `before` is the result of the last such call, or NULL. Threads inside callbacks come
 * first, and among them the one whose callback has been running longest.
 */
void runnings_take(struct runnings *ret_now, const struct runnings *before,
                   const struct target *target);

/*
 * Returns the thread that dispatches the queue or turns the loop at this address, or NULL if none
 * is known. If there are several, a thread that is in a callback is preferred, and otherwise the
 * one that was there last.
 */
const struct running *running_at(const struct runnings *runnings, uint64_t address);

/* ---- files of /proc ---- */

/*
 * Reads the beginning of a file into `text`. If there is nothing to read, stores "" and returns
 * false.
 */
bool proc_read(int folder, const char *path, char *text, size_t bytes);

/* Opens a folder. Returns NULL, and sets errno, on failure. */
DIR *proc_folder(int folder, const char *path);

/*
 * Returns the last number in the line `name` of /proc/PID/status, which is that of the innermost
 * PID namespace. Returns `without` if there is no such line, as before Linux 4.1.
 */
uint32_t proc_inner_number(const char *status, const char *name, uint32_t without);

/*
 * Replaces all characters that are not printable ASCII, because control characters must not reach a
 * terminal or a script.
 */
void make_printable(char *text, size_t bytes);

/*
 * Returns by how much a counter has grown, or 0 if it seems to have fallen. That can happen,
 * because the process changes its counters while they are read, and could write anything there.
 */
static inline uint64_t reading_more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

#endif
