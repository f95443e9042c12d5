/* SPDX-License-Identifier: MIT */
/*
 * The simulated kernel: clocks, timerfd, futex, eventfd, poll, memory, threads, io_uring. The
 * linker redirects the library's calls to it (-Wl,--wrap), and no part of lib/ is replaced. Each
 * system call is one step, blocks and wakes actors, and may fail. A call that is not simulated ends
 * the run.
 */
#ifndef SIMULATION_KERNEL_H
#define SIMULATION_KERNEL_H

#include <time.h>

#include "memory_models.h"
#include "scheduler.h"

/* An eventfd. */
struct bell {
	bool open;
	uint64_t count;
	uint64_t edges;          /* number of writes, for edge-triggered pollers */
	struct memory_view view; /* view of the eventfd's lock */
};

struct wiped {
	void *base;
	size_t bytes;
};

struct kernel {
	struct dice dice;
	/* One call in this number returns EINTR or returns early; 0: no call. */
	uint32_t fail_one_in;
	uint32_t refuse_one_in; /* one wait in this number is refused; 0: no wait */
	/* Number of reservations until one fails; 0: no reservation fails. */
	unsigned refuse_after;
	bool ring_refused; /* the kernel has no io_uring */
	unsigned cpus;
	unsigned regions, bells, threads, rings; /* numbers of objects in use */
	struct actor *owner;                     /* the thread that the library created */
	bool owner_sleeps;                       /* the owner is in a wait of its own choice */
	uint64_t owner_read_ns;                  /* the hub's clock at the owner's last reading */
	uint64_t owner_latest_ns;                /* the largest reading since the last sleep */
	uint64_t owner_spin_ns;                  /* the owner's reading when it began to spin */
	uint64_t owner_relaxes;                  /* number of pauses when the spin began */
	uint64_t spin_max_ns;                    /* the longest permitted spin */
	struct dice late_dice;                   /* only for the ends of the owner's sleeps */
	uint64_t late_ns;           /* lateness of most of the owner's sleeps; 0: none is late */
	uint64_t owner_until_ns;    /* end of the owner's sleep, on the clock as at its begin */
	struct wiped wiped_on_fork; /* memory that a forked child finds zeroed */
	clockid_t clock;            /* the hub's clock */
	uint64_t ahead_ns;          /* the clock minus CLOCK_MONOTONIC, modulo 2^64 */
};

extern struct kernel kernel;

/* Begin a run with settings that are chosen by `dice`. */
void kernel_begin(struct dice dice);

/* Returns whether this reservation of a resource fails. Counts refuse_after down. */
bool kernel_refuses(void);
/* Returns whether this wait ends early. */
bool kernel_interrupts(void);
/* Returns whether this call fails. For calls that are too frequent for refuse_after. */
bool kernel_denies(void);

/*
 * The owner's wait: blocks on `on` for `timeout_ns` (UINT64_MAX: for ever), or until the timerfd
 * expires.
 */
void kernel_owner_sleeps(const void *on, uint64_t timeout_ns);

/* Tells the kernel that this process has just been forked. The child has only the current actor. */
void kernel_forked(void);

/* Returns the clock of a hub with an owner thread. */
uint64_t kernel_clock_ns(void);
/*
 * Set the clock. A timerfd on the wall clock is signalled. If the hub's clock is not the wall
 * clock, the setting means that the machine was suspended.
 */
void kernel_set_clock(uint64_t now_ns);

/* These functions make the calls on the only timerfd. */
#define TIMERFD_FD 1900
void timerfd_begin(void);
bool timerfd_readable(void);
/*
 * Return the time at which the timerfd expires, by CLOCK_MONOTONIC or by its own clock. UINT64_MAX:
 * never.
 */
uint64_t timerfd_at_ns(void);
uint64_t timerfd_at_clock_ns(void);
/* Expire the timerfd if its time has come. */
void timerfd_look(void);
void timerfd_close(void);

/* Returns the eventfd with this number; it must be open. */
struct bell *kernel_bell(int fd);
bool kernel_readable(int fd);

/* read(2) by a caller. */
void kernel_read(int fd);
/*
 * Wait like epoll_wait(2), at most until `until_ns`. The first waits until the descriptor is
 * readable, the second until the descriptor's edges differ from `edges`.
 */
void kernel_poll_level(int fd, uint64_t until_ns);
void kernel_poll_edge(int fd, uint64_t edges, uint64_t until_ns);

/* The descriptor became readable, so rings that poll it post a completion. */
void ring_notice(int fd);
/* Remove the ring of an earlier run. */
void ring_begin(void);

#endif
