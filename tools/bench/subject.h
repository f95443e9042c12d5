/* SPDX-License-Identifier: MIT */
/*
 * The driver interface: what a workload can ask of a timer service. One file per subject; one
 * subject is open per process (each measurement is a process of its own), so subjects keep their
 * state in static variables and calls need no context.
 *
 * Timers are named by number, 0 to setup.timers - 1, and one more that driver_settle() uses. A
 * subject keeps what its users would keep: embedded records, or an array of handles. Delays count
 * from the time that tick() last cached, as in an event loop that reads the clock once a turn; a
 * subject whose API reads the clock itself does so.
 *
 * Threads. A subject that is not CAN_ANY_THREAD belongs to the thread that calls run(); with
 * setup.cross others reach it through mailbox.h, and it calls mailbox_apply() when woken.
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAN_REARM (1u << 0)      /* re-arm by one fixed timeout */
#define CAN_CANCEL (1u << 1)     /* arm and cancel, by one fixed timeout */
#define CAN_EXPIRE (1u << 2)     /* arm any delay, and deliver */
#define CAN_CROSS (1u << 3)      /* called from several threads, itself or through the mailbox */
#define CAN_ANY_THREAD (1u << 4) /* its own calls may be made from any thread */
#define CAN_PUSH_TAKE (1u << 5)  /* worth showing as a delay queue */
#define CAN_BE_LATE (1u << 6)    /* worth showing in the lateness table */
#define CAN_COUNT_WAKES (1u << 7)
#define CAN_OPEN_LARGE (1u << 8)   /* reserves its memory at open */
#define CAN_SERVE_ITSELF (1u << 9) /* calls back on a thread of its own; needs no consumer */
#define HAS_OWNER (1u << 10)       /* applies what it is told on a thread of its own */
#define CAN_RUN_APART (1u << 11)   /* a program of its own, see subject_go.c */
#define CAN_PUT_DURABLY (1u << 12) /* arm() returns when the task is on stable storage */
#define CAN_RECOVER (1u << 13)
#define CAN_BATCH (1u << 14) /* worth showing by the batch */
#define CAN_SERVE (1u << 15) /* worth showing as the timers of a server */
#define LOOP_EACH (1u << 16) /* a server has one for each of its threads, and they share nothing */
#define CAN_FINISH_DURABLY (1u << 17) /* and finish() */

#define CAN_HOLD_RECORDS (1u << 18) /* worth showing as the timers of one event loop */

#define DURABLE_BYTES 100       /* of data in a durable task */
#define PEER_TIMERS_MAX 4000000 /* of services that take long at 10^7 */
#define BATCH_MAX 64            /* timers in one call of a ..._many */

struct subject_setup {
	uint32_t timers;  /* how many numbers are used */
	uint32_t spare;   /* so many more may live: numbers armed again before they expired */
	bool cross;       /* several threads arm, and one thread is in run() */
	bool epoll;       /* the consumer polls with epoll, where it has a choice */
	bool delay_queue; /* the consumer may take from the structure itself */
	bool bare;        /* opened to be closed: no timer is armed */
	bool records;     /* each timer is in the record of a connection, see records.h */
};

struct subject_counts {
	uint64_t owner_wakeups; /* times that the owner slept and woke */
	uint64_t submit_wakes;  /* times that an arm, re-arm or cancel woke it */
	uint64_t inbox_max;     /* most requests found waiting at once; 0: has no inbox */
	uint64_t syncs;         /* of a log; 0: it does not tell */
	uint64_t other_cpu_ns;  /* of a process that serves us */
};

struct subject {
	const char *name;
	const char *how;       /* how it is driven, in a line */
	unsigned can;          /* CAN_… */
	uint32_t timers_max;   /* more take too long to set up, or do not fit; 0: no limit */
	uint32_t handle_bytes; /* what the caller has to keep for each timer; not its memory */
	bool batches;          /* worth showing only where there are batches */
	bool alone;            /* one thread does the work of any number of them */
	bool (*there)(void);   /* can it run here? NULL: always */
	void (*open)(const struct subject_setup *setup);
	void (*close)(void); /* or NULL: a measurement's process ends without it */
	void (*tick)(void);  /* cache the time for this thread's next delays */
	/* These return a negative number if they fail, which ends the measurement. */
	int (*arm)(uint32_t timer, uint64_t delay_ns);
	int (*rearm)(uint32_t timer, uint64_t delay_ns);
	int (*finish)(void);            /* take a durable task that is due, and acknowledge it */
	int (*flush)(void);             /* wait for what arm() has only begun; or NULL */
	void (*cancel)(uint32_t timer); /* one that has expired too */
	/* At most BATCH_MAX at once; NULL if it has no such calls. */
	int (*rearm_many)(const uint32_t *timers, unsigned count, uint64_t delay_ns);
	int (*arm_many)(const uint32_t *timers, const uint64_t *delays_ns, unsigned count);
	void (*cancel_many)(const uint32_t *timers, unsigned count);
	void (*run)(bool (*done)(void)); /* deliver until done(), which expiries alone change */
	void (*wake)(void);              /* make the loop call mailbox_apply(); from any thread */
	void (*within)(void (*body)(void *), void *context); /* call it inside the loop, or NULL */
	void (*counts)(struct subject_counts *ret_counts);   /* with CAN_COUNT_WAKES; or NULL */
};

/* What a subject calls for each expiry, from within run() or on a thread of its own. */
extern void (*subject_expired)(uint32_t timer);

/* NULL-terminated: those that this build has. */
extern const struct subject *const subjects[];

const struct subject *subject_find(const char *name);

/* The measurement can't go on: say why, and end the process. `error` is an errno value or 0. */
__attribute__((noreturn)) void subject_fail(const char *what, int error);

/* What arm and rearm return goes through this. */
static inline void subject_must(int result)
{
	if (result < 0)
		subject_fail("a timer was refused", -result);
}

/* Zeroed memory for `count` records, touched, so that no measurement pays for its first touch. */
void *subject_allocate(uint64_t count, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
