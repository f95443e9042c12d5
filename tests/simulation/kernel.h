/* SPDX-License-Identifier: MIT */
/*
 * The kernel as the library sees it in the simulation: clocks, timerfd, futex, eventfd, poll,
 * memory, threads, io_uring. The library is linked so that its calls come here (-Wl,--wrap);
 * nothing of lib/ is replaced. Each call is one step; it blocks and wakes actors, and fails when
 * told to. A call that is not simulated ends the run.
 */
#ifndef SIMULATION_KERNEL_H
#define SIMULATION_KERNEL_H

#include <time.h>

#include "memory.h"
#include "scheduler.h"

/* An eventfd. */
struct bell {
	bool open;
	uint64_t count;
	uint64_t edges;          /* writes so far: what an edge-triggered poller is told of */
	struct memory_view view; /* of its lock */
};

struct wiped {
	void *base;
	size_t bytes;
};

struct kernel {
	struct dice dice;
	uint32_t fail_one_in;   /* EINTR and spurious returns; 0: never */
	uint32_t refuse_one_in; /* waits that the kernel refuses; 0: never */
	unsigned refuse_after;  /* the so manieth reservation from now fails; 0: none */
	bool ring_refused;      /* there is no io_uring here */
	unsigned cpus;
	unsigned regions, bells, threads, rings; /* in use */
	struct actor *owner;                     /* the thread that the library created */
	bool owner_sleeps;                       /* it is in a wait that it chose itself */
	uint64_t owner_read_ns;                  /* the hub's clock when it last looked at one */
	uint64_t owner_latest_ns;                /* its latest reading since it last slept */
	uint64_t owner_spin_ns;                  /* its reading when it began to spin */
	uint64_t owner_relaxes;                  /* how often it had let time pass by then */
	uint64_t spin_max_ns;                    /* the longest that it may spin */
	struct dice late_dice;                   /* of the ends of its sleeps alone */
	uint64_t late_ns;           /* how late most of its sleeps end; 0: none is late */
	uint64_t owner_until_ns;    /* what it wants to sleep until, by the clock of then */
	struct wiped wiped_on_fork; /* what a forked child finds zeroed */
	clockid_t clock;            /* the hub's */
	uint64_t ahead_ns;          /* of CLOCK_MONOTONIC, modulo 2^64 */
};

extern struct kernel kernel;

/* The knobs are set to what `dice` say. */
void kernel_begin(struct dice dice);

/* Should this reservation fail? Counts refuse_after down. */
bool kernel_refuses(void);
/* Is this wait cut short? */
bool kernel_interrupts(void);
/* Is this call, one of those made all the time, refused? */
bool kernel_denies(void);

/*
 * The owner's wait: blocks on `on` for so long (UINT64_MAX: for ever) from now on, or until the
 * timerfd goes off.
 */
void kernel_owner_sleeps(const void *on, uint64_t timeout_ns);

/* This process is a child that was forked just now: of all actors only the current one is in it. */
void kernel_forked(void);

/* The hub's clock, of a hub that is not moved by hand. */
uint64_t kernel_clock_ns(void);
/* Set it: the wall clock is told, and of the other so long a time has been slept through. */
void kernel_set_clock(uint64_t now_ns);

/* The timerfd, of which there is one. */
#define TIMERFD_FD 1900
void timerfd_begin(void);
bool timerfd_readable(void);
/* When it goes off, by CLOCK_MONOTONIC, or by its own clock; UINT64_MAX: never. */
uint64_t timerfd_at_ns(void);
uint64_t timerfd_at_clock_ns(void);
/* Let it go off, if it is to by now. */
void timerfd_look(void);
void timerfd_close(void);

/* The eventfd of this number; it must be open. */
struct bell *kernel_bell(int fd);
bool kernel_readable(int fd);

/* As read(2) by the caller's own hand. */
void kernel_read(int fd);
/* As epoll_wait(2): until readable, or edges is no longer this; or until that instant. */
void kernel_poll_level(int fd, uint64_t until_ns);
void kernel_poll_edge(int fd, uint64_t edges, uint64_t until_ns);

/* The descriptor became readable: rings that poll it post a completion. */
void ring_notice(int fd);
/* Nothing must be left of the ring that an earlier run abandoned. */
void ring_begin(void);

#endif
