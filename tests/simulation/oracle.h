/* SPDX-License-Identifier: MIT */
/*
 * The requirements of the laws on a run. An array contains all timers that ever existed. It is
 * informed of every call at its begin and its return, and searched from end to end. It uses no
 * internals of the library. Calls overlap, so each has two stamps from one counter. The oracle uses
 * only the effects of calls that are strictly before another call.
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
/* The largest deadline. */
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
	 * It is in this range, because the clock reading of a relative deadline is not known
	 * exactly. For a periodic timer, first_ns is exactly the next deadline.
	 */
	uint64_t first_ns, last_ns;
	unsigned thread; /* the thread of the call, and its epoch at the begin */
	int32_t epoch;
	bool maybe;          /* kept: a delivery for another write may follow it */
	uint64_t begin, end; /* stamps of the call; end is STAMP_NONE during it */
	/* Periodic, kept: stamp from which a later write is in force; or STAMP_NONE. */
	uint64_t closed;
};

/* Periods delivered before earlier periods, by another consumer. */
struct ahead {
	uint64_t expires_ns, count;
};

/* One timer from arm to end. */
struct life {
	timerhub_timer handle; /* arm stores it here */
	uint64_t interval_ns, slack_ns;
	struct write writes[WRITES_MAX];
	unsigned writes_count;
	unsigned queue, queue_life;
	timerhub_fn *fn;
	bool has_fn, wants_handle;
	bool kept;
	bool crowded;       /* calls on it overlap, or did at the end of the last call */
	uint64_t arm_begin; /* stamp of the arm's begin */
	enum life_state state;
	unsigned index;      /* position in oracle.active while ARMING or LIVE */
	unsigned calls;      /* calls on it in progress */
	bool must;           /* must be in the queue */
	uint64_t must_since; /* stamp at which `must` was set */
	bool lingers;        /* dropped during a call that may still use the slot */
	/*
	 * It was re-armed when due, or the clock was set back. It may come at its older position.
	 */
	bool loose;
	uint64_t was_due;    /* stamp at which it was due, before the clock went back; or 0 */
	bool silent;         /* no callback may run */
	uint64_t settled_ns; /* when the last call on it returned */
	uint64_t armed;      /* stamp of the arm's return */
	uint64_t end_begin, end_end; /* stamps of the call that ended it */
	uint64_t missed; /* stamp of the first call that returned -ENOENT; or STAMP_NONE */
	uint64_t matched_begin, matched_end; /* of the delivered write */
	uint64_t matched_ns;                 /* its deadline */
	struct ahead ahead[AHEAD_MAX];
	unsigned ahead_count;
	bool ahead_lost;           /* too many to keep: no particular period is expected */
	uint64_t taken;            /* periodic: stamp of its last delivery */
	struct plain data;         /* its data points at this */
	struct memory_view view;   /* of the lock that guards the handle in a program */
	const struct actor *armer; /* it has the handle before the arm returns */
	bool told;    /* all actors may have the handle: the arm or a delivery has returned */
	bool freed;   /* the data is freed */
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
	bool crowded; /* overlaps another such call */
	bool by_hand; /* returns its events, and calls no callback */
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
	unsigned life;        /* number of opens */
	uint64_t last_taking; /* stamp of its begin */
	unsigned due;         /* a timer that must be in the queue */
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
	unsigned occupancy_peak; /* since the last time without an arm in progress */
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
	unsigned advancing; /* workers that advance the manual hub; number of their advances */
	uint64_t advances;
	/*
	 * Callers that count the live timers; the largest number of live timers during their calls.
	 */
	unsigned counting, live_most;
};

extern struct oracle oracle;

void oracle_begin(unsigned capacity);

/* The present time on the hub's clock. */
uint64_t oracle_now_ns(void);
uint64_t oracle_stamp(void);
bool oracle_full(void);

/* NULL if there is no room for another timer. `first_ns` is the smallest possible deadline. */
struct life *oracle_arm_begin(unsigned queue, const struct timerhub_spec *spec, uint64_t first_ns);
/* `later_ns` is how much later the deadline may be; 0 if it was absolute. */
void oracle_arm_end(struct life *life, int result, uint64_t later_ns);

/* Another call on a timer begins. `life` may have ended long ago, or be NULL (no timer). */
void oracle_call_begin(struct life *life);
struct write *oracle_rearm_begin(struct life *life, uint64_t first_ns);
void oracle_rearm_end(struct life *life, uint64_t begin, int result, uint64_t later_ns);
/* Is it kept, held by no consumer, with its last expiry delivered? */
bool oracle_idles(const struct life *life);
/* Is the state unknown? */
bool oracle_unsure(const struct life *life);
void oracle_cancel_end(struct life *life, uint64_t begin, int result);
void oracle_remaining_end(struct life *life, uint64_t begin, uint64_t begin_ns, int result,
                          uint64_t remaining_ns);

/* A walk over all timers begins, shows a timer, and ends. */
void oracle_walk_begin(struct walk *walk);
void oracle_shown(struct walk *walk, const struct timerhub_event *timer, uint64_t interval_ns);
void oracle_walk_end(const struct walk *walk);

/* May the current actor use this timer's handle? */
bool oracle_knows(const struct life *life);
/* A call has returned that ensures that no callback of the timer runs, or will run. */
void oracle_silenced(struct life *life);

void oracle_take_begin(struct taking *taking, unsigned queue);
void oracle_taken(const struct taking *taking, const struct timerhub_event *event);
/* The queue is stopped, and a wait found it empty. Timers due before are not in it. */
void oracle_shut_down(const struct taking *taking);
/* `empty`: the call found the queue empty. */
void oracle_take_end(struct taking *taking, bool empty);
/* Is the owner in a sleep of its own choice? */
bool oracle_mover_sleeps(void);

/* Does a consumer hold, or may it hold, events of this queue? */
bool oracle_taking(unsigned queue);

/* A queue is being closed, and the call may drop all of its timers. Returns the stamp. */
uint64_t oracle_drop_begin(unsigned queue);
void oracle_drop_end(unsigned queue, uint64_t begin);

/*
 * No actor can run. Due timers must be in their queues, and the owner must not sleep past the
 * others. Returns the queues that must have events, as bits.
 */
unsigned oracle_quiet(void);

/* Returns the next deadline, in virtual time; NEVER if there is none. */
uint64_t oracle_next_ns(void);

/* The hub's clock was set. Its earlier value was `before_ns`. */
void oracle_clock_set(uint64_t before_ns);

/*
 * If no call is in progress: armed = delivered + cancelled + live + dropped, in the array and in
 * `stats`.
 */
void oracle_conserve(const struct timerhub_stats *stats);

#endif
