/* SPDX-License-Identifier: MIT */
/*
 * A subject is a timer service that the benchmark measures; a workload calls it through struct
 * subject. Each measurement has a process with one open subject. Therefore a subject keeps its
 * state in static variables, and its calls need no context.
 *
 * Timers have the numbers 0 to setup.timers - 1; driver_settle() uses setup.timers. A subject
 * stores timers as users of the service do, in embedded records or as an array of handles. Delays
 * count from the time that tick() last cached, as in a loop that reads the clock once a turn. If
 * each call of the service reads the clock, tick() caches no time.
 *
 * A subject without CAN_ANY_THREAD belongs to the thread that calls run(). If setup.cross is set,
 * other threads call it through mailbox.h, and its loop calls mailbox_apply() when woken.
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAN_REARM (1u << 0)           /* the subject can re-arm, with one fixed timeout */
#define CAN_CANCEL (1u << 1)          /* the subject can arm and cancel, with one fixed timeout */
#define CAN_EXPIRE (1u << 2)          /* the subject can arm with any delay, and deliver expiries */
#define CAN_CROSS (1u << 3)           /* several threads call the subject, or its mailbox */
#define CAN_ANY_THREAD (1u << 4)      /* any thread may call the subject directly */
#define CAN_PUSH_TAKE (1u << 5)       /* the subject is measured as a delay queue */
#define CAN_BE_LATE (1u << 6)         /* the subject is measured in the workload "lateness" */
#define CAN_COUNT_WAKES (1u << 7)     /* the subject has counts() */
#define CAN_OPEN_LARGE (1u << 8)      /* the subject reserves its memory at open */
#define CAN_SERVE_ITSELF (1u << 9)    /* the subject calls back on its own thread */
#define HAS_OWNER (1u << 10)          /* the subject applies calls on its own thread */
#define CAN_WAIT (1u << 11)           /* the subject has wait(), so wakes of its loop are counted */
#define CAN_PUT_DURABLY (1u << 12)    /* arm() returns when the task is on stable storage */
#define CAN_KEEP_MANY (1u << 13)      /* the subject is the store, for workloads that call it */
#define CAN_BATCH (1u << 14)          /* the subject is measured in the workloads "batch-…" */
#define CAN_SERVE (1u << 15)          /* the subject is measured in the workload "server" */
#define LOOP_EACH (1u << 16)          /* each thread of a server has its own loop */
#define CAN_FINISH_DURABLY (1u << 17) /* finish() returns when the acknowledgement is stable */

#define CAN_HOLD_RECORDS (1u << 18) /* the subject is measured as the timers of one event loop */
#define CAN_SHARE_FILE (1u << 19)   /* several processes use the same tasks */

#define ALL_CALLS (CAN_REARM | CAN_CANCEL | CAN_EXPIRE)
#define ONE_LOOP (CAN_SERVE | LOOP_EACH | CAN_HOLD_RECORDS)

#define DURABLE_BYTES 100       /* bytes of data in a durable task */
#define PEER_TIMERS_MAX 4000000 /* largest timers_max of services that are slow with 10^7 timers */
#define BATCH_MAX 64            /* largest number of timers in one call of ..._many() */

struct subject_setup {
	uint32_t timers; /* number of timers in use */
	uint32_t spare;  /* number of additional timers, which are armed again before they expire */
	unsigned threads; /* number of threads that put durable tasks, or 0 */
	bool cross;       /* several threads make calls, and one thread is in run() */
	bool epoll;       /* the consumer polls with epoll, if the service allows this */
	bool delay_queue; /* consumers may take timers from the heap, without an owner */
	bool bare;        /* the subject is opened and closed without arming a timer */
	bool records;     /* each timer is in the record of a connection, see embedding_objects.h */
};

struct subject_counts {
	uint64_t owner_wakeups; /* number of the owner's sleeps that ended */
	uint64_t submit_wakes;  /* number of arms, re-arms and cancels that woke the owner */
	uint64_t inbox_max;     /* largest number of requests in the inbox, or 0 if none */
	uint64_t syncs;         /* number of syncs of the log, or 0 if unknown */
	uint64_t other_cpu_ns;  /* CPU time of the subject's server process */
};

struct histogram;
struct workload;
struct run;
struct result;

struct subject {
	const char *name;
	const char *how;       /* one line that says how the service is used */
	unsigned can;          /* CAN_… and other flags of this file */
	uint32_t timers_max;   /* largest number of timers, or 0 if unlimited */
	uint32_t handle_bytes; /* bytes that the caller stores for each timer as a handle */
	bool batches;          /* the subject is measured only with batches of calls */
	bool alone;            /* one thread makes the calls, in place of the run's threads */
	/*
	 * there() returns whether the service is available. If the member is NULL, the service is
	 * always available.
	 */
	bool (*there)(void);
	void (*open)(const struct subject_setup *setup);
	void (*close)(void); /* NULL: the process ends without a close */
	void (*tick)(void);  /* cache the time. A deadline is the cached time plus the delay. */
	/*
	 * arm(), rearm(), finish() and flush() return a negative number if they fail. A failure
	 * ends the measurement.
	 */
	int (*arm)(uint32_t timer, uint64_t delay_ns);
	int (*rearm)(uint32_t timer, uint64_t delay_ns);
	int (*finish)(void);     /* take a due durable task, and acknowledge the task */
	int (*flush)(void);      /* wait until all armed tasks are durable; or NULL */
	struct histogram *waits; /* until armed tasks are durable. NULL: the calls of arm() */
	void (*cancel)(uint32_t timer); /* cancel the timer, which may have expired */
	/*
	 * Each of the next three calls handles up to BATCH_MAX timers at once. The members are NULL
	 * if the service has no such calls.
	 */
	int (*rearm_many)(const uint32_t *timers, unsigned count, uint64_t delay_ns);
	int (*arm_many)(const uint32_t *timers, const uint64_t *delays_ns, unsigned count);
	void (*cancel_many)(const uint32_t *timers, unsigned count);
	void (*run)(bool (*done)(void)); /* deliver expiries until done() returns true */
	/* Wake the loop, which then calls mailbox_apply(). Any thread may call wake(). */
	void (*wake)(void);
	void (*within)(void (*body)(void *), void *context); /* call body() in the loop; or NULL */
	void (*counts)(struct subject_counts *ret_counts);   /* NULL without CAN_COUNT_WAKES */
	/*
	 * Sleep as the loop does, but wake at until_ns at the latest. Returns true if a timer of
	 * the loop ended the sleep.
	 */
	bool (*wait)(uint64_t until_ns);
	/*
	 * Measure the workload in a separate program. If measure is NULL, the workload measures the
	 * calls above.
	 */
	void (*measure)(const struct workload *workload, const struct run *run,
	                struct result *result);
};

/*
 * SUBJECT(identifier, name, how, can, members...) defines a subject. CALLS(...) initializes the
 * members `open`, `tick`, `arm`, `rearm`, `cancel` and `run`. Most subjects have these members.
 */
#define SUBJECT(identifier, its_name, says, flags, ...)                                            \
	const struct subject subject_##identifier = {                                              \
		.name = its_name, .how = says, .can = flags, __VA_ARGS__                           \
	};
#define CALLS(opens, ticks, arms, rearms, cancels, runs)                                           \
	.open = opens, .tick = ticks, .arm = arms, .rearm = rearms, .cancel = cancels, .run = runs

/* A subject calls this function for each expiry, inside run() or on a thread of its own. */
extern void (*subject_expired)(uint32_t timer);

/* The subjects of this build. The array ends with NULL. */
extern const struct subject *subjects[];

const struct subject *subject_find(const char *name);

/*
 * Print the reason why the measurement cannot continue, and end the process. `error` is an errno
 * value or 0.
 */
__attribute__((noreturn)) void subject_fail(const char *what, int error);

/* If the result of arm or rearm is negative, end the measurement. */
static inline void subject_must(int result)
{
	if (result < 0)
		subject_fail("a timer was refused", -result);
}

/* The time that this thread cached last. A deadline is the cached time plus the delay. */
extern __thread uint64_t subject_cached_ns;

/* Cache the time of CLOCK_MONOTONIC. */
void subject_cache_now(void);

/*
 * Returns an epoll descriptor that polls `fd` for reading. If `fd` is negative, the epoll
 * descriptor polls nothing.
 */
int subject_epoll(int fd);

/* Wait until `fd` is readable or until_ns has come. Returns whether `fd` is readable. */
bool subject_poll(int fd, uint64_t until_ns);

/*
 * Returns whether the kernel allows SCHED_FIFO for threads. If the kernel refuses, the first call
 * prints the reason.
 */
bool subject_fifo_there(void);

/*
 * Set the policy of a thread to SCHED_FIFO. `thread` is a thread id, or 0 for the calling thread.
 */
void subject_fifo(int thread);

/*
 * Returns zeroed memory for `count` records of `bytes` bytes. All pages are present, so that no
 * measurement includes page faults.
 */
void *subject_allocate(uint64_t count, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
