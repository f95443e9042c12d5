/* SPDX-License-Identifier: MIT */
/*
 * The driver interface: the calls that a workload makes on a timer service. Each subject has one
 * file. Each measurement is a process of its own with one open subject. So subjects keep their
 * state in static variables, and calls need no context.
 *
 * Timers have numbers, 0 to setup.timers - 1, and one more for driver_settle(). A subject stores
 * the same things as its users: embedded records, or an array of handles. Delays count from the
 * time that tick() last cached, as in an event loop that reads the clock once a turn. A subject
 * whose API reads the clock itself does so.
 *
 * A subject that is not CAN_ANY_THREAD belongs to the thread that calls run(). With setup.cross
 * other threads reach it through mailbox.h, and it calls mailbox_apply() when it is woken.
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
#define CAN_RUN_APART (1u << 11)   /* a program of its own, see subject_go.c */
#define CAN_PUT_DURABLY (1u << 12) /* arm() returns when the task is on stable storage */
#define CAN_RECOVER (1u << 13)
#define CAN_BATCH (1u << 14) /* measured in batches */
#define CAN_SERVE (1u << 15) /* measured as the timers of a server */
#define LOOP_EACH (1u << 16) /* a server has one for each of its threads, which share nothing */
#define CAN_FINISH_DURABLY (1u << 17) /* and finish() */

#define CAN_HOLD_RECORDS (1u << 18) /* measured as the timers of one event loop */

#define DURABLE_BYTES 100       /* bytes of data in a durable task */
#define PEER_TIMERS_MAX 4000000 /* for services that take long at 10^7 */
#define BATCH_MAX 64            /* timers in one call of a ..._many */

struct subject_setup {
	uint32_t timers;  /* number of timers in use */
	uint32_t spare;   /* additional live timers: numbers armed again before they expired */
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
	uint64_t other_cpu_ns;  /* of a server process of the subject */
};

struct subject {
	const char *name;
	const char *how;       /* its use, in one line */
	unsigned can;          /* CAN_… */
	uint32_t timers_max;   /* more take too long to arm, or do not fit; 0: no limit */
	uint32_t handle_bytes; /* stored by the caller for each timer, beside its memory */
	bool batches;          /* measured in batches only */
	bool alone;            /* one thread does the work of any number of threads */
	bool (*there)(void);   /* is it available here? NULL: always */
	void (*open)(const struct subject_setup *setup);
	void (*close)(void); /* or NULL: the measurement's process ends without it */
	void (*tick)(void);  /* cache the time for this thread's next delays */
	/* These return a negative number if they fail, which ends the measurement. */
	int (*arm)(uint32_t timer, uint64_t delay_ns);
	int (*rearm)(uint32_t timer, uint64_t delay_ns);
	int (*finish)(void);            /* take a durable task that is due, and acknowledge it */
	int (*flush)(void);             /* wait for changes that arm() has only begun; or NULL */
	void (*cancel)(uint32_t timer); /* also after its expiry */
	/* At most BATCH_MAX at once; NULL if there are no such calls. */
	int (*rearm_many)(const uint32_t *timers, unsigned count, uint64_t delay_ns);
	int (*arm_many)(const uint32_t *timers, const uint64_t *delays_ns, unsigned count);
	void (*cancel_many)(const uint32_t *timers, unsigned count);
	void (*run)(bool (*done)(void)); /* deliver until done(), which only expiries change */
	void (*wake)(void);              /* make the loop call mailbox_apply(); any thread */
	void (*within)(void (*body)(void *), void *context); /* in the loop; or NULL */
	void (*counts)(struct subject_counts *ret_counts);   /* with CAN_COUNT_WAKES; or NULL */
};

/* A subject calls it for each expiry, inside run() or on a thread of its own. */
extern void (*subject_expired)(uint32_t timer);

/* NULL-terminated: the subjects of this build. */
extern const struct subject *const subjects[];

const struct subject *subject_find(const char *name);

/*
 * The measurement cannot continue: print the reason, and end the process. `error` is an errno value
 * or 0.
 */
__attribute__((noreturn)) void subject_fail(const char *what, int error);

/* Ends the measurement if arm or rearm failed. */
static inline void subject_must(int result)
{
	if (result < 0)
		subject_fail("a timer was refused", -result);
}

/*
 * Returns zeroed memory for `count` records, with all pages present, so that no measurement
 * includes page faults.
 */
void *subject_allocate(uint64_t count, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
