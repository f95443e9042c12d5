/* SPDX-License-Identifier: MIT */
/*
 * Checks that a run keeps the laws. The oracle has an array of all timers that ever existed, which
 * it searches from end to end. Each worker informs the oracle when a call begins and when it
 * returns. The oracle uses no internals of the library. Calls overlap, so each call has two stamps
 * from one counter, for its begin and its return. The oracle concludes something from the order of
 * two calls only if the first returned before the second began.
 */
#ifndef SIMULATION_ORACLE_H
#define SIMULATION_ORACLE_H

#include <timerhub.h>

#include "races.h"
#include "scheduler.h"

#define LIVES_MAX 8192
#define WRITES_MAX 12
#define AHEAD_MAX 8
#define QUEUES_MAX 3
#define ORDER_EVENTS 8
#define NEVER UINT64_MAX
#define STAMP_NONE UINT64_MAX
/* The largest deadline of a timer. */
#define DEADLINE_MAX_NS ((UINT64_C(1) << 63) - 128)

enum life_state {
	LIFE_ARMING,
	LIFE_LIVE,
	LIFE_DELIVERED,
	LIFE_CANCELLED,
	LIFE_DROPPED,
	LIFE_REFUSED
};

/* A deadline given by a call. */
struct write {
	/*
	 * The deadline is in this range, because the clock reading of a relative deadline is not
	 * known exactly. For a periodic timer, first_ns is exactly the next deadline.
	 */
	uint64_t first_ns, last_ns;
	unsigned thread; /* the thread of the call, and its epoch at the begin */
	int32_t epoch;
	bool maybe;          /* kept timers: an overlapping delivery may follow the write */
	uint64_t begin, end; /* stamps of the call; during the call, end is STAMP_NONE */
	/*
	 * For a periodic or kept timer: stamp from which a later write is in force, or STAMP_NONE.
	 */
	uint64_t closed;
};

/* Periods that one consumer returned before another consumer returned earlier periods. */
struct ahead {
	uint64_t expires_ns, count;
};

/* A timer from its arm to its end. */
struct life {
	timerhub_timer handle; /* the arm stores the handle here */
	uint64_t interval_ns, slack_ns;
	struct write writes[WRITES_MAX];
	unsigned writes_count;
	unsigned queue, queue_life;
	timerhub_fn *fn;
	bool has_fn, wants_handle;
	bool kept;
	bool crowded;       /* calls on the timer overlap, or overlapped at their end */
	uint64_t arm_begin; /* stamp of the arm's begin */
	enum life_state state;
	unsigned index;      /* position in oracle.active while ARMING or LIVE */
	unsigned calls;      /* calls on the timer in progress */
	bool must;           /* the timer's event must be in the queue */
	uint64_t must_since; /* stamp at which `must` was set */
	bool lingers;        /* dropped during a call that may still use the slot */
	/*
	 * The timer was re-armed when due, or the clock was set back. The timer's event may come at
	 * its older position in the queue.
	 */
	bool loose;
	uint64_t was_due;    /* stamp at which the timer was due before the clock went back; or 0 */
	bool silent;         /* no callback of the timer may run */
	uint64_t settled_ns; /* time when the last call on the timer returned */
	uint64_t armed;      /* stamp of the arm's return */
	uint64_t end_begin, end_end; /* stamps of the call that ended the timer */
	uint64_t missed; /* stamp of the first call that returned -ENOENT; or STAMP_NONE */
	uint64_t matched_begin, matched_end; /* stamps of the delivered write */
	uint64_t matched_ns;                 /* the delivered deadline */
	struct ahead ahead[AHEAD_MAX];
	unsigned ahead_count;
	bool ahead_lost;           /* which period comes next is unknown */
	uint64_t taken;            /* periodic timers: stamp of the last delivery */
	struct plain data;         /* the timer's data points at this member */
	struct memory_view view;   /* view of the lock by which a program would guard the handle */
	const struct actor *armer; /* this actor has the handle before the arm returns */
	bool told;    /* the arm or a delivery has returned, so all actors may have the handle */
	bool freed;   /* the timer's data is freed */
	bool by_hand; /* some of its events were drained and not dispatched */
};

/* A call that takes events, in progress. */
struct taking {
	unsigned queue;
	uint64_t begin;
	uint64_t earliest_ns, latest_ns; /* range of the clock during the call */
	const struct actor *actor;
	uint64_t owner_runs, changes;
	bool owner_slept;
	bool crowded; /* another such call on the queue overlaps */
	bool by_hand; /* the call returns events and calls no callback */
	struct taking *next;
};

/* A walk over all timers, in progress. */
struct walk {
	uint64_t begin;        /* stamp of its begin */
	bool shown[LIVES_MAX]; /* indexed by timerhub_event.data */
};

struct oracle_queue {
	const struct timerhub_queue *queue;
	struct taking *takings;
	bool sole_consumer, closing;
	unsigned life;        /* how often the queue's index was opened */
	uint64_t last_taking; /* stamp of its begin */
	unsigned due;         /* a timer whose event must be in the queue */
	struct {
		uint64_t expires_ns, settled_ns;
	} order[ORDER_EVENTS]; /* the last events of a single consumer */
	unsigned order_count;
};

struct oracle {
	struct life lives[LIVES_MAX]; /* indexed by timerhub_event.data */
	unsigned lives_count;
	struct life *active[LIVES_MAX];
	unsigned active_count, arming_count;
	unsigned lingering;
	unsigned occupancy_peak; /* largest number of slots in use since no arm was in progress */
	unsigned capacity;
	uint64_t gather_ns; /* how late the owner may be when it coalesces a burst */
	unsigned calls;     /* arms, re-arms and cancels in progress */
	uint64_t stamp;
	uint64_t clock_set; /* stamp of the last setting of the clock */
	struct oracle_queue queues[QUEUES_MAX];
	uint64_t armed, delivered, retired, cancelled, dropped, overruns;
	const struct timerhub *manual_hub; /* the manual hub, or NULL */
	/*
	 * Synchronization between callers. Usually the next arm synchronizes with every free. If
	 * the callers are `apart`, an arm may be refused a slot whose free it does not see.
	 */
	bool apart;
	struct memory_view places_view;
	/* The actor that expires timers: the owner, or the actor that advances the manual hub. */
	const struct actor *mover;
	bool mover_sleeps;
	unsigned advancing; /* workers that advance the manual hub now; number of all advances */
	uint64_t advances;
	/*
	 * Number of callers that count the live timers now, and the largest number of live timers
	 * during their calls.
	 */
	unsigned counting, live_most;
};

extern struct oracle oracle;

void oracle_begin(unsigned capacity);

/* The present time on the hub's clock. */
uint64_t oracle_now_ns(void);
uint64_t oracle_stamp(void);
bool oracle_full(void);

/*
 * Returns NULL if the array has no room for another timer. `first_ns` is the smallest possible
 * deadline.
 */
struct life *oracle_arm_begin(unsigned queue, const struct timerhub_spec *spec, uint64_t first_ns);
/*
 * `later_ns` is how much later than `first_ns` the deadline may be; 0 if the deadline was absolute.
 */
void oracle_arm_end(struct life *life, int result, uint64_t later_ns);

/*
 * A call on a timer, other than its arm, begins. `life` may have ended long ago, or be NULL (no
 * timer).
 */
void oracle_call_begin(struct life *life);
struct write *oracle_rearm_begin(struct life *life, uint64_t first_ns);
void oracle_rearm_end(struct life *life, uint64_t begin, int result, uint64_t later_ns);
/*
 * Returns whether the timer is kept, its last expiry is delivered, and no consumer holds an event
 * of it.
 */
bool oracle_idles(const struct life *life);
/* Returns whether the oracle does not know the timer's state. */
bool oracle_unsure(const struct life *life);
void oracle_cancel_end(struct life *life, uint64_t begin, int result);
void oracle_remaining_end(struct life *life, uint64_t begin, uint64_t begin_ns, int result,
                          uint64_t remaining_ns);

/* A walk over all timers begins, shows a timer, and ends. */
void oracle_walk_begin(struct walk *walk);
void oracle_shown(struct walk *walk, const struct timerhub_event *timer, uint64_t interval_ns);
void oracle_walk_end(const struct walk *walk);

/* Returns whether the current actor may use this timer's handle. */
bool oracle_knows(const struct life *life);
/* A call has returned after which no callback of the timer runs or will run. */
void oracle_silenced(struct life *life);

void oracle_take_begin(struct taking *taking, unsigned queue);
void oracle_taken(const struct taking *taking, const struct timerhub_event *event);
/*
 * The queue is stopped, and a wait found it empty. Timers that were due before are no longer in the
 * queue.
 */
void oracle_shut_down(const struct taking *taking);
/* `empty` says that the call found the queue empty. */
void oracle_take_end(struct taking *taking, bool empty);
/* Returns whether the owner sleeps because no work is left. */
bool oracle_mover_sleeps(void);

/* Returns whether a consumer may hold events of this queue. */
bool oracle_taking(unsigned queue);

/* A queue is being closed, and the call may drop all of its timers. Returns the stamp. */
uint64_t oracle_drop_begin(unsigned queue);
void oracle_drop_end(unsigned queue, uint64_t begin);

/*
 * Check the state in which no actor can run. Due timers must be in their queues, and the owner must
 * not sleep longer than until the next deadline. Returns the queues that must have events, as bits.
 */
unsigned oracle_quiet(void);

/* Returns the next deadline, in virtual time; NEVER if there is none. */
uint64_t oracle_next_ns(void);

/* The hub's clock was set. The earlier value of the clock was `before_ns`. */
void oracle_clock_set(uint64_t before_ns);

/*
 * If no call is in progress, armed = delivered + cancelled + live + dropped must hold, by the array
 * and by `stats`.
 */
void oracle_conserve(const struct timerhub_stats *stats);

#endif
