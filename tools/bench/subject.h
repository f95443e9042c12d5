/* SPDX-License-Identifier: MIT */
/*
 * The driver interface: the calls that a workload makes on a timer service. Each subject has one
 * file. Each measurement has a process of its own, with one open subject. So a subject keeps its
 * state in static variables, and its calls need no context.
 *
 * Timers have the numbers 0 to setup.timers - 1. The number setup.timers is used by
 * driver_settle(). A subject stores timers as its users do, in embedded records or as an array of
 * handles. Delays count from the time that tick() last cached, as in an event loop that reads the
 * clock once a turn. If a subject's API reads the clock in each call, the subject does so too.
 *
 * A subject that is not CAN_ANY_THREAD belongs to the thread that calls run(). With setup.cross,
 * other threads reach the subject through mailbox.h. When the subject is woken, it calls
 * mailbox_apply().
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAN_REARM (1u << 0)      /* re-arm with one fixed timeout */
#define CAN_CANCEL (1u << 1)     /* arm and cancel, with one fixed timeout */
#define CAN_EXPIRE (1u << 2)     /* arm with any delay, and deliver */
#define CAN_CROSS (1u << 3)      /* called by several threads, directly or through the mailbox */
#define CAN_ANY_THREAD (1u << 4) /* any thread may make its calls */
#define CAN_PUSH_TAKE (1u << 5)  /* measured as a delay queue */
#define CAN_BE_LATE (1u << 6)    /* in the lateness table */
#define CAN_COUNT_WAKES (1u << 7)
#define CAN_OPEN_LARGE (1u << 8)   /* reserves its memory at open */
#define CAN_SERVE_ITSELF (1u << 9) /* calls back on a thread of its own, without a consumer */
#define HAS_OWNER (1u << 10)       /* applies calls on a thread of its own */
#define CAN_WAIT (1u << 11)        /* its loop's wakes are counted, see wait() */
#define CAN_PUT_DURABLY (1u << 12) /* arm() returns when the task is on stable storage */
#define CAN_RECOVER (1u << 13)
#define CAN_BATCH (1u << 14) /* measured in batches */
#define CAN_SERVE (1u << 15) /* measured as the timers of a server */
#define LOOP_EACH (1u << 16) /* a server has a loop for each thread, and the loops share nothing */
#define CAN_FINISH_DURABLY (1u << 17) /* finish() returns when its change is stable */

#define CAN_HOLD_RECORDS (1u << 18) /* measured as the timers of one event loop */

#define ALL_CALLS (CAN_REARM | CAN_CANCEL | CAN_EXPIRE)
#define ONE_LOOP (CAN_SERVE | LOOP_EACH | CAN_HOLD_RECORDS)

#define DURABLE_BYTES 100       /* bytes of data in a durable task */
#define PEER_TIMERS_MAX 4000000 /* limit for services that are slow with 10^7 timers */
#define BATCH_MAX 64            /* timers in one call of a ..._many */

struct subject_setup {
	uint32_t timers;  /* number of timers in use */
	uint32_t spare;   /* number of additional live timers, armed again before they expired */
	bool cross;       /* several threads arm, and one thread is in run() */
	bool epoll;       /* the consumer polls with epoll, where it has a choice */
	bool delay_queue; /* the consumer may take from the data structure itself */
	bool bare;        /* opened and closed without arming a timer */
	bool records;     /* each timer is in the record of a connection, see records.h */
};

struct subject_counts {
	uint64_t owner_wakeups; /* number of the owner's sleeps that ended */
	uint64_t submit_wakes;  /* number of arms, re-arms and cancels that woke it */
	uint64_t inbox_max;     /* most requests that waited at once; 0: no inbox */
	uint64_t syncs;         /* syncs of a log; 0: unknown */
	uint64_t other_cpu_ns;  /* CPU time of the subject's server process */
};

struct workload;
struct run;
struct result;

struct subject {
	const char *name;
	const char *how;       /* one line that says how the service is used */
	unsigned can;          /* CAN_… */
	uint32_t timers_max;   /* more timers would take too long or not fit; 0: no limit */
	uint32_t handle_bytes; /* bytes that the caller stores for each timer as a handle */
	bool batches;          /* measured in batches only */
	bool alone;            /* one thread does the work of any number of threads */
	bool (*there)(void);   /* returns whether the service is available; NULL: always */
	void (*open)(const struct subject_setup *setup);
	void (*close)(void); /* NULL: the measurement's process ends without a close */
	void (*tick)(void);  /* cache the time for this thread's next delays */
	/* These return a negative number if they fail, which ends the measurement. */
	int (*arm)(uint32_t timer, uint64_t delay_ns);
	int (*rearm)(uint32_t timer, uint64_t delay_ns);
	int (*finish)(void);            /* take a durable task that is due, and acknowledge it */
	int (*flush)(void);             /* wait for changes that arm() has only begun; or NULL */
	void (*cancel)(uint32_t timer); /* may be called after the timer's expiry */
	/* `count` is at most BATCH_MAX. NULL if the service has no such calls. */
	int (*rearm_many)(const uint32_t *timers, unsigned count, uint64_t delay_ns);
	int (*arm_many)(const uint32_t *timers, const uint64_t *delays_ns, unsigned count);
	void (*cancel_many)(const uint32_t *timers, unsigned count);
	void (*run)(bool (*done)(void)); /* deliver until done(), which only expiries change */
	void (*wake)(void);              /* from any thread: make the loop call mailbox_apply() */
	void (*within)(void (*body)(void *), void *context); /* run inside the loop; or NULL */
	void (*counts)(struct subject_counts *ret_counts);   /* with CAN_COUNT_WAKES; or NULL */
	/* Sleep as the loop does, at most until then. Returns true if its own timers ended it. */
	bool (*wait)(uint64_t until_ns);
	/* A separate program measures itself. NULL: the workload measures the calls above. */
	void (*measure)(const struct workload *workload, const struct run *run,
	                struct result *result);
};

/*
 * Defines a subject: SUBJECT(identifier, name, how, can, members...). CALLS gives it the calls that
 * most subjects have.
 */
#define SUBJECT(identifier, its_name, says, flags, ...)                                            \
	const struct subject subject_##identifier = {                                              \
		.name = its_name, .how = says, .can = flags, __VA_ARGS__                           \
	};
#define CALLS(opens, ticks, arms, rearms, cancels, runs)                                           \
	.open = opens, .tick = ticks, .arm = arms, .rearm = rearms, .cancel = cancels, .run = runs

/* A subject calls this function for each expiry, inside run() or on a thread of its own. */
extern void (*subject_expired)(uint32_t timer);

/* NULL-terminated: the subjects of this build. */
extern const struct subject *subjects[];

const struct subject *subject_find(const char *name);

/*
 * Print the reason why the measurement cannot continue, and end the process. `error` is an errno
 * value or 0.
 */
__attribute__((noreturn)) void subject_fail(const char *what, int error);

/* Ends the measurement if arm or rearm failed. */
static inline void subject_must(int result)
{
	if (result < 0)
		subject_fail("a timer was refused", -result);
}

/* The time that this thread's delays count from, of a subject that caches CLOCK_MONOTONIC. */
extern __thread uint64_t subject_cached_ns;

void subject_cache_now(void);

/* Returns an epoll that polls `fd` for reading. If `fd` is negative, it polls nothing. */
int subject_epoll(int fd);

/* Wait until the descriptor is readable or the time has come. Returns whether it is readable. */
bool subject_poll(int fd, uint64_t until_ns);

/*
 * Returns whether threads may be at SCHED_FIFO. If the kernel refuses, prints the reason the first
 * time.
 */
bool subject_fifo_there(void);

/* Put a thread at SCHED_FIFO. 0: the calling thread. */
void subject_fifo(int thread);

/*
 * Returns zeroed memory for `count` records, with all pages present, so that no measurement
 * includes page faults.
 */
void *subject_allocate(uint64_t count, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
