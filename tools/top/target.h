/* SPDX-License-Identifier: MIT */
/*
 * Describes the watched process, the boards of its hubs, and its threads. The tool finds the boards
 * through /proc and maps them read-only. The tool checks all data of the watched process before it
 * uses the data.
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

/* A hub of the watched process, or a loop. */
struct hub {
	const struct board *board;
	struct board_header about; /* checked copy of the header: printable, times by our clock */
	int fd;                    /* number of the board's descriptor in the watched process */
	ino_t inode;
	dev_t device;
	uint64_t ahead_ns; /* how far its clock is ahead of the tool's, in another time namespace */
};

static inline bool is_loop(const struct board_header *about)
{
	return about->kind == BOARD_LOOP;
}

/* Returns the time on the clock of the hub or loop, or 0 if the program itself gives the time. */
uint64_t hub_clock_ns(const struct hub *hub);

struct target {
	pid_t pid;
	int proc; /* descriptor of /proc/PID, never of a later process with this PID */
	char command[BOARD_TEXT_BYTES];
	uint64_t ahead_ns[2]; /* how far its CLOCK_MONOTONIC and CLOCK_BOOTTIME are ahead of ours */
	uint64_t found_ns;    /* time of the last search for new hubs */
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
 * Forgets closed hubs and finds new ones: at once if one was closed, else every few seconds.
 * Returns -1 if no hub is left, with the reason in `refusal`.
 */
int target_refresh(struct target *target);

bool target_alive(const struct target *target);

/* What the kernel tells of a thread, to whoever may read the process's /proc. */
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
 * Looks at the thread that its process calls `tid`. `proc` is the process's folder in /proc.
 * Returns false if there is no such thread, or if it may not be looked at.
 */
bool thread_look(int proc, int tid, struct thread *ret_thread);

/* What a cell of a board says that a thread does. */
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
 * Reads the cells of all boards. Threads that have ended are left out. `before` is the result of
 * the reading before, or NULL. The threads inside callbacks come first, the longest of them first.
 */
void runnings_take(struct runnings *ret_now, const struct runnings *before,
                   const struct target *target);

/*
 * Returns the row of the thread that takes the events of the queue at this address, or that turns
 * the loop at this address. Prefers a thread inside a callback, then the one that came last.
 * Returns NULL if no thread is known.
 */
const struct running *running_at(const struct runnings *runnings, uint64_t address);

/* ---- files of /proc ---- */

/* Reads the beginning of a file. Returns false, and stores "", if there is nothing to read. */
bool proc_read(int folder, const char *path, char *text, size_t bytes);

/* Opens a folder. Returns NULL, and sets errno, on failure. */
DIR *proc_folder(int folder, const char *path);

/*
 * Returns the last number in the line `name` of /proc/PID/status, which is that of the innermost
 * PID namespace. Returns `without` if there is no such line, as before Linux 4.1.
 */
uint32_t proc_inner_number(const char *status, const char *name, uint32_t without);

/* Makes a text printable ASCII, as a control character must not reach a terminal or a script. */
void make_printable(char *text, size_t bytes);

/*
 * Returns `now` minus `before`, or 0 if the difference is negative, because the process changes its
 * counters while they are read, or writes anything into them.
 */
static inline uint64_t reading_more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

#endif
