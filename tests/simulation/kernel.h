/* SPDX-License-Identifier: MIT */
/*
 * The simulated kernel has clocks, timerfd, futex, eventfd, poll, memory, threads and io_uring. The
 * linker redirects the library's system calls to the simulated kernel (-Wl,--wrap). The simulated
 * kernel replaces no part of lib/. Each system call is one step, may block or wake actors, and may
 * fail. A system call that is not simulated ends the run with a failure.
 */
#ifndef SIMULATION_KERNEL_H
#define SIMULATION_KERNEL_H

#include <time.h>

#include "memory_models.h"
#include "scheduler.h"

/* A simulated eventfd, of the owner or of a queue. */
struct bell {
	bool open;
	uint64_t count;
	uint64_t edges; /* number of writes, for edge-triggered pollers */
	/* vector clock that the eventfd's lock carries from a thread to the next */
	struct memory_view view;
};

struct kernel {
	struct dice dice;
	/*
	 * With the probability 1 / fail_one_in, a wait returns EINTR or ends early. If fail_one_in
	 * is 0, no wait ends early.
	 */
	uint32_t fail_one_in;
	/*
	 * With the probability 1 / refuse_one_in, kernel_denies() refuses a call. If refuse_one_in
	 * is 0, kernel_denies() refuses no call.
	 */
	uint32_t refuse_one_in;
	/*
	 * Number of requests for memory, descriptors or threads until one request fails. If
	 * refuse_after is 0, no request fails.
	 */
	unsigned refuse_after;
	bool ring_refused; /* true if the simulated kernel refuses to create an io_uring */
	unsigned cpus;
	unsigned regions, bells, threads, rings; /* numbers of objects that the library holds */
	/* the owner thread, which the library created */
	struct actor *owner;
	/* true if the owner is blocked in ppoll() or io_uring_enter() */
	bool owner_sleeps;
	uint64_t owner_read_ns; /* the hub's clock at the owner's last reading */
	/* the owner's largest reading of the clock since its last sleep */
	uint64_t owner_latest_ns;
	/* the owner's reading of the clock when the owner began to spin */
	uint64_t owner_spin_ns;
	/* number of the owner's pauses (`relaxes`) at its last reading of the clock */
	uint64_t owner_relaxes;
	uint64_t spin_max_ns; /* the longest time that the owner may spin */
	/* random numbers for the lateness of the owner's sleeps */
	struct dice late_dice;
	uint64_t late_ns; /* lateness of most of the owner's sleeps, or 0 */
	/* end of the owner's sleep, computed from the hub's clock when the sleep began */
	uint64_t owner_until_ns;
	bool wipes_on_fork; /* the hub's page is zeroed in a forked child (MADV_WIPEONFORK) */
	bool owner_is_open; /* the hub is open: further timerfds are not its owner's */
	bool forked;     /* this is a forked child, which must not touch the parent's descriptors */
	clockid_t clock; /* the hub's clock */
	uint64_t ahead_ns; /* the hub's clock minus CLOCK_MONOTONIC, modulo 2^64 */
};

extern struct kernel kernel;

/* Begin a run. `dice` choose the settings of the simulated kernel. */
void kernel_begin(struct dice dice);

/*
 * Returns whether the current request for memory, a descriptor or a thread must fail. Each call
 * decrements refuse_after.
 */
bool kernel_refuses(void);
/* Returns whether the current wait must end early, as by a signal. */
bool kernel_interrupts(void);
/*
 * Returns whether the current call must fail. Frequent calls would soon use up refuse_after, so
 * they use kernel_denies() instead of kernel_refuses().
 */
bool kernel_denies(void);

/*
 * Block the owner until an actor calls scheduler_wake() with the argument `on`. The owner also
 * continues after `timeout_ns`, or when the timerfd expires. If `timeout_ns` is UINT64_MAX, the
 * sleep has no timeout.
 */
void kernel_owner_sleeps(const void *on, uint64_t timeout_ns);

/*
 * Zero the memory that the library marked with MADV_WIPEONFORK. The child of a fork() calls this
 * function first.
 */
void kernel_forked(void);

/* Returns the present time on the clock of a hub with an owner thread. */
uint64_t kernel_clock_ns(void);
/*
 * Set the hub's clock to `now_ns`. If the hub's clock is the wall clock, a timerfd with
 * TFD_TIMER_CANCEL_ON_SET is signalled. If the hub's clock is CLOCK_BOOTTIME, the new time means
 * that the machine was suspended.
 */
void kernel_set_clock(uint64_t now_ns);

/* The timerfds have the descriptors from TIMERFD_FD on, which is the owner's, open or not. */
#define TIMERFD_FD 1900
#define TIMERFDS_MAX 4
void timerfd_begin(void);
static inline bool timerfd_is(int fd)
{
	return fd >= TIMERFD_FD && fd < TIMERFD_FD + TIMERFDS_MAX;
}
bool timerfd_readable(int fd);
uint64_t timerfd_edges(int fd);
const void *timerfd_waited(int fd); /* for scheduler_block() */
/*
 * Return the time at which the timerfd expires: timerfd_at_ns() by CLOCK_MONOTONIC,
 * timerfd_at_clock_ns() by the timerfd's clock. UINT64_MAX means never.
 */
uint64_t timerfd_at_ns(int fd);
uint64_t timerfd_at_clock_ns(int fd);
/* If the timerfd is due, make it readable. */
void timerfd_look(int fd);
void timerfd_close(int fd);

/* Returns the open eventfd with the descriptor `fd`. If `fd` is not open, the run fails. */
struct bell *kernel_bell(int fd);
bool kernel_readable(int fd);

/* Read an eventfd with read(2), as a program may do before it drains the queue. */
void kernel_read(int fd);
/*
 * Wait like epoll_wait(2), at most until `until_ns`. kernel_poll_level() waits until the descriptor
 * is readable. kernel_poll_edge() waits until its number of writes differs from `edges`.
 */
void kernel_poll_level(int fd, uint64_t until_ns);
void kernel_poll_edge(int fd, uint64_t edges, uint64_t until_ns);

enum poller_kind {
	POLLER_LEVEL,
	POLLER_EDGE,      /* EPOLLET: an edge is reported if the descriptor is still readable */
	POLLER_ONESHOT,   /* poller_arm() looks at the level; then one edge is reported */
	POLLER_MULTISHOT, /* the level at first, then each edge */
	POLLER_KINDS
};

/* Who polls one descriptor, an eventfd or a timerfd, by level or by edges. */
struct poller {
	enum poller_kind kind;
	int fd;
	bool pending, armed;
	uint64_t edges; /* of the descriptor, of which the poller knows */
};

void poller_begin(struct poller *poller, enum poller_kind kind, int fd);
void poller_arm(struct poller *poller);
/* Wait at most until `until_ns`, or until a signal. Returns whether the descriptor was reported. */
bool poller_wait(struct poller *poller, uint64_t until_ns);

/* Called when the descriptor `fd` was signalled. If the ring polls `fd`, posts a completion. */
void ring_notice(int fd);
/* Begin a run without a ring, and remove the ring of an earlier run. */
void ring_begin(void);

#endif
