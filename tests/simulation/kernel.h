/* SPDX-License-Identifier: MIT */
/*
 * The simulated kernel: clocks, timerfd, futex, eventfd, poll, memory, threads and io_uring. The
 * linker redirects the system calls of the library to it (-Wl,--wrap), so no part of lib/ is
 * replaced. Each call is one step of the run, and may block, wake somebody or fail. A system call
 * that is not simulated fails the run.
 */
#ifndef SIMULATION_KERNEL_H
#define SIMULATION_KERNEL_H

#include <time.h>

#include "memory_models.h"
#include "scheduler.h"

struct bell {
	bool open;
	uint64_t count;
	uint64_t edges;          /* number of writes, for edge-triggered pollers */
	struct memory_view view; /* the vector clock that the eventfd's lock passes on */
};

struct kernel {
	struct dice dice;
	/* one wait in so many returns EINTR or ends early; 0: none */
	uint32_t fail_one_in;
	/* one call in so many is refused by kernel_denies(); 0: none */
	uint32_t refuse_one_in;
	uint64_t jumps_told; /* how often the owner's timerfd has told that the clock was set */
	/* requests for memory, descriptors or threads until one fails; 0: none */
	unsigned refuse_after;
	bool ring_counts_iowait; /* the simulated kernel is older than Linux 6.15 */
	bool ring_refused;       /* true if the simulated kernel refuses to create an io_uring */
	unsigned cpus;
	unsigned regions, bells, threads, rings; /* numbers of objects that the library holds */
	/* the owner thread, which the library created */
	struct actor *owner;
	/* in ppoll() or io_uring_enter() */
	bool owner_sleeps;
	uint64_t owner_read_ns; /* the hub's clock at the owner's last reading */
	/* the largest reading since its last sleep */
	uint64_t owner_latest_ns;
	/* its reading when it began to spin */
	uint64_t owner_spin_ns;
	/* its pauses (`relaxes`) at its last reading */
	uint64_t owner_relaxes;
	/* called at each of its readings; `spins`: it has paused since the last */
	void (*owner_reads)(bool spins);
	uint64_t spin_max_ns; /* the longest time that the owner may spin */
	/* for the lateness of its sleeps */
	struct dice late_dice;
	uint64_t late_ns; /* lateness of most of the owner's sleeps, or 0 */
	/* the end of its sleep, by the hub's clock when it began */
	uint64_t owner_until_ns;
	bool wipes_on_fork; /* the hub's page is zeroed in a forked child (MADV_WIPEONFORK) */
	bool forked;     /* this is a forked child, which must not touch the parent's descriptors */
	clockid_t clock; /* the hub's clock */
	uint64_t ahead_ns; /* the hub's clock minus CLOCK_MONOTONIC, modulo 2^64 */
};

extern struct kernel kernel;

void kernel_begin(struct dice dice);

/* Whether this request must fail; counts refuse_after down. */
bool kernel_refuses(void);
/* Returns true, by chance, if the present wait must end early, as if a signal had come. */
bool kernel_interrupts(void);
/* For frequent calls, which would soon use up refuse_after. */
bool kernel_denies(void);

/* Until a scheduler_wake() of `on`, the timeout (UINT64_MAX: none), or the timerfd. */
void kernel_owner_sleeps(const void *on, uint64_t timeout_ns);

/* First in a fork()'s child: zeroes what is marked MADV_WIPEONFORK. */
void kernel_forked(void);

/* Returns the time by the hub's clock. (A manual hub has no clock, only timerhub_advance().) */
uint64_t kernel_clock_ns(void);
/* Sets the hub's clock, as settimeofday(2) would, or for CLOCK_BOOTTIME as a suspend would. */
void kernel_set_clock(uint64_t now_ns);

/* The owner's timerfd, open or not. */
#define TIMERFD_FD 1900
static inline bool timerfd_is(int fd)
{
	return fd == TIMERFD_FD;
}
bool timerfd_readable(void);
/* When it expires, by CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t timerfd_at_ns(void);
/* Returns when the owner meant the timerfd to expire, by the timerfd's own clock. */
uint64_t timerfd_meant_ns(void);
/* Makes the timerfd readable if its time has come. */
void timerfd_look(void);
void timerfd_close(void);
void timerfd_begin(void);

/* Fails unless it is open. */
struct bell *kernel_bell(int fd);
bool kernel_readable(int fd);

/* Reads the eventfd, which resets it to 0, as a program may do before it drains the queue. */
void kernel_read(int fd);
/* Blocks until the eventfd is readable, or until `until_ns`, like epoll_wait(2). */
void kernel_poll_level(int fd, uint64_t until_ns);
/* Blocks until more than `edges` writes were made to `fd`, or until `until_ns`, as with EPOLLET. */
void kernel_poll_edge(int fd, uint64_t edges, uint64_t until_ns);

/* `fd` was signalled: completes the ring's poll of it. */
void ring_notice(int fd);
void ring_begin(void);
struct pollfd;
int ring_ppoll(struct pollfd *fd);

#endif
