/* SPDX-License-Identifier: MIT */
/*
 * Checks that a run of the simulation keeps the laws. The oracle has an array of all timers that
 * ever existed. Each worker informs the oracle when a call begins and when the call returns. The
 * oracle uses no internals of the library. Calls of different workers overlap. Each call therefore
 * has two stamps from one counter, one for its begin and one for its return. The oracle concludes
 * something from the order of two calls only if the first call returned before the second call
 * began.
 */
#ifndef SIMULATION_ORACLE_H
#define SIMULATION_ORACLE_H

#include <timerhub.h>

#include "races.h"
#include "scheduler.h"

#define LIVES_MAX 8192
#define WRITES_MAX 12
#define AHEAD_MAX 8
#define LOOPS_MAX 2
#define QUEUES_MAX (3 + LOOPS_MAX) /* each loop on the hub has one of its own */
#define ORDER_EVENTS 8
#define EVENTS_MAX 40  /* largest number of events that one call takes */
#define CALLED_MAX 128 /* largest number of timers that one dispatch or turn calls */
#define NEVER UINT64_MAX
#define STAMP_NONE UINT64_MAX
/* The largest deadline that the library permits for a timer, in ns. */
#define DEADLINE_MAX_NS ((UINT64_C(1) << 63) - 128)

enum life_state {
	LIFE_ARMING,
	LIFE_LIVE,
	LIFE_DELIVERED,
	LIFE_CANCELLED,
	LIFE_DROPPED,
	LIFE_REFUSED
};

/* A write: the deadline that one call, an arm or a re-arm, gave to a timer. */
struct write {
	/*
	 * The deadline is in the range from first_ns to last_ns. The oracle does not know exactly
	 * which clock reading the library added to a relative deadline. For a periodic timer,
	 * first_ns is exactly the next deadline.
	 */
	uint64_t first_ns, last_ns;
	unsigned thread; /* the calling thread, and that thread's epoch when the call began */
	int32_t epoch;
	uint64_t switches; /* value of scheduler.switches when the call began */
	/* the timer is kept, and a delivery that overlapped the call may have ended the write */
	bool maybe;
	/* stamps of the call's begin and return; during the call, end is STAMP_NONE */
	uint64_t begin, end;
	/*
	 * For a periodic or kept timer: stamp at which a later write replaced this write, or
	 * STAMP_NONE.
	 */
	uint64_t closed;
};

/*
 * An event of a periodic timer that was returned out of order. One consumer returned the event
 * while a second consumer still held an earlier period of the timer.
 */
struct ahead {
	uint64_t expires_ns, count;
};

/* The oracle's record of one timer. The record is kept after the timer's end. */
struct life {
	timerhub_timer handle; /* the handle, stored by the call that arms the timer */
	uint64_t interval_ns, slack_ns;
	struct write writes[WRITES_MAX];
	unsigned writes_count;
	unsigned queue, queue_life;
	timerhub_fn *fn;
	bool has_fn, wants_handle;
	bool kept;
	/* true if two calls on the timer have overlapped, and one of them may be in progress */
	bool crowded;
	uint64_t arm_begin; /* stamp at which the arming call began */
	enum life_state state;
	/* the timer's index in oracle.active while its state is ARMING or LIVE */
	unsigned index;
	unsigned calls;              /* number of calls on the timer that have not returned yet */
	uint8_t callers[ACTORS_MAX]; /* the same, for each actor */
	bool must;                   /* true if the timer's event must be in its queue */
	uint64_t must_since;         /* stamp at which the field `must` became true */
	/* true if a call in progress may still use the slot of the dropped timer */
	bool lingers;
	/*
	 * True if the timer was re-armed when it was due, or if the clock was set back. If `loose`
	 * is true, the timer's event may come at the queue position of an earlier expiry.
	 */
	bool loose;
	/* stamp at which the timer may have been due, before the clock was set back; or 0 */
	uint64_t was_due;
	bool silent;                 /* true if no callback of the timer may run any more */
	uint64_t settled_ns;         /* time when the last call on the timer returned */
	uint64_t armed;              /* stamp at which the arming call returned */
	uint64_t end_begin, end_end; /* stamps of the call that ended the timer */
	uint64_t missed; /* stamp at which a call first returned -ENOENT; or STAMP_NONE */
	/* stamps of the write whose deadline was delivered */
	uint64_t matched_begin, matched_end;
	uint64_t matched_ns; /* the last delivered deadline */
	struct ahead ahead[AHEAD_MAX];
	unsigned ahead_count;
	bool ahead_lost;         /* true if the next deadline to be delivered is not known */
	uint64_t taken;          /* periodic or kept timer: stamp of the last delivery */
	struct plain data;       /* the timer's data points at this member */
	struct memory_view view; /* view of the lock by which a program guards the handle */
	/* the actor that armed the timer; it has the handle before the arm returns */
	const struct actor *armer;
	/* true if the arm or a delivery has given out the handle, so all actors may have it */
	bool told;
	bool freed;   /* true if the timer's data has been freed */
	bool by_hand; /* true if some of the timer's events were drained and not dispatched */
};

/* A call in progress that takes events from a queue: drain, dispatch or wait. */
struct taking {
	unsigned queue;
	uint64_t begin;
	/* smallest and largest value of the clock during the call */
	uint64_t earliest_ns, latest_ns;
	const struct actor *actor;
	uint64_t owner_runs;
	uint64_t edges; /* number of writes to the queue's eventfd before the call */
	bool owner_slept;
	bool crowded; /* true if another call that takes events from the queue overlaps this call */
	bool by_hand; /* the call returns events to the worker, instead of calling callbacks */
	unsigned called[CALLED_MAX], calls; /* the timers whose callbacks the call has called */
	bool may_leave; /* the dispatch has called a timer that may expire again */
	struct taking *next;
};

/* A call of timerhub_each() in progress, which shows all live timers. */
struct walk {
	uint64_t begin;        /* stamp at which the walk began */
	bool shown[LIVES_MAX]; /* whether each timer was shown; indexed by timerhub_event.data */
};

struct oracle_queue {
	const struct timerhub_queue *queue;
	struct taking *takings;
	bool sole_consumer, closing;
	unsigned life;        /* number of queues that were closed at this index */
	uint64_t last_taking; /* stamp at which the last call that takes events began */
	unsigned due;         /* number of a timer whose event must be in the queue */
	struct {
		uint64_t expires_ns, settled_ns;
	} order[ORDER_EVENTS]; /* the last events that the queue's only consumer took */
	unsigned order_count;
};

struct oracle {
	struct life lives[LIVES_MAX]; /* all timers ever armed; indexed by timerhub_event.data */
	unsigned lives_count;
	struct life *active[LIVES_MAX];
	unsigned active_count, arming_count;
	unsigned lingering;
	/* largest number of slots in use since the last time that no arm was in progress */
	unsigned occupancy_peak;
	unsigned capacity;
	unsigned alarms;       /* number of timers by which loops wake, which no walk shows */
	uint64_t alarms_armed; /* of those too whose loop was refused */
	/* longest time that the owner may be late when it coalesces a burst */
	uint64_t gather_ns;
	unsigned calls; /* number of arms, re-arms, cancels and queries in progress */
	uint64_t stamp;
	uint64_t clock_set; /* stamp at which the clock was last set */
	struct oracle_queue queues[QUEUES_MAX];
	uint64_t armed, delivered, retired, cancelled, dropped, overruns;
	const struct timerhub *manual_hub; /* the hub of the run if it is manual; or NULL */
	/*
	 * If false, each arm synchronizes with all earlier calls that freed a slot. If true, an arm
	 * may be refused although a slot is free.
	 */
	bool apart;
	struct memory_view places_view;
	/*
	 * The actor that expires timers: the owner thread, or the actor that advances the manual
	 * hub.
	 */
	const struct actor *mover;
	bool mover_sleeps;
	unsigned advancing; /* number of workers that are inside timerhub_advance() now */
	uint64_t advances;  /* number of all calls of timerhub_advance() by workers */
	/*
	 * Number of workers that are inside timerhub_stats() now, and an upper bound of the number
	 * of live timers during their calls.
	 */
	unsigned counting, live_most;
};

extern struct oracle oracle;

void oracle_begin(unsigned capacity);

/* Returns the present time on the hub's clock. */
uint64_t oracle_now_ns(void);
uint64_t oracle_stamp(void);
bool oracle_full(void);

/*
 * Informs the oracle that a caller begins to arm a timer. `first_ns` is the timer's smallest
 * possible deadline. The array must have room for another timer, see oracle_full().
 */
struct life *oracle_arm_begin(unsigned queue, const struct timerhub_spec *spec, uint64_t first_ns);
/*
 * Informs the oracle that a caller has armed a timer, or that the arm was refused. The deadline may
 * be up to `later_ns` later than `first_ns` of oracle_arm_begin(). If the deadline was absolute,
 * `later_ns` is 0.
 */
void oracle_arm_end(struct life *life, int result, uint64_t later_ns);

/*
 * Informs the oracle that a re-arm, cancel or query of a timer begins. The timer may already have
 * ended. If the handle is of no timer, `life` is NULL.
 */
void oracle_call_begin(struct life *life);
struct write *oracle_rearm_begin(struct life *life, uint64_t first_ns);
void oracle_rearm_end(struct life *life, uint64_t begin, int result, uint64_t later_ns);
/* Returns whether the timer is kept, and has no deadline that may still be delivered. */
bool oracle_idles(const struct life *life);
/* Returns true if the oracle does not know the state of the kept timer, idle or not idle. */
bool oracle_unsure(const struct life *life);
void oracle_cancel_end(struct life *life, uint64_t begin, int result);
void oracle_remaining_end(struct life *life, uint64_t begin, uint64_t begin_ns, int result,
                          uint64_t remaining_ns);

/* Inform the oracle that a call of timerhub_each() begins, shows a timer, and returns. */
void oracle_walk_begin(struct walk *walk);
void oracle_shown(struct walk *walk, const struct timerhub_event *timer, uint64_t interval_ns);
void oracle_walk_end(const struct walk *walk);

/* Returns whether the current actor may already have this timer's handle. */
bool oracle_knows(const struct life *life);
/* Informs the oracle that no callback of the timer may run from now on. */
void oracle_silenced(struct life *life);

void oracle_take_begin(struct taking *taking, unsigned queue);
void oracle_taken(struct taking *taking, const struct timerhub_event *event);
/*
 * Informs the oracle that a wait has reported a stopped and empty queue. Fails if a timer that was
 * due before the wait began must still be in the queue.
 */
void oracle_shut_down(const struct taking *taking);
/*
 * Informs the oracle that a consumer's call returns. If `empty` is true, the call found no more
 * events in the queue.
 */
void oracle_take_end(struct taking *taking, bool empty);
/* Returns whether the actor that expires timers (the mover) sleeps because no work is left. */
bool oracle_mover_sleeps(void);

/* Returns whether a consumer may hold events of this queue. */
bool oracle_taking(unsigned queue);

/*
 * Informs the oracle that a worker begins to close a queue. Returns the stamp at which the close
 * began.
 */
uint64_t oracle_drop_begin(unsigned queue);
void oracle_drop_end(unsigned queue, uint64_t begin);

/*
 * Check the laws at a moment when no actor can run. Due timers must be in their queues, and the
 * owner must not sleep beyond the next deadline. Returns the queues that must have events, a bit
 * for each index.
 */
unsigned oracle_quiet(void);

/*
 * Returns the earliest deadline in the future, in virtual time. Returns NEVER if no timer has a
 * deadline in the future.
 */
uint64_t oracle_next_ns(void);

/* Informs the oracle that the hub's clock was set. `before_ns` is the clock's old value. */
void oracle_clock_set(uint64_t before_ns);

/*
 * Check the counters while no call is in progress. In the oracle's array, armed = delivered +
 * cancelled + live + dropped must hold. `stats` must have the same counts.
 */
void oracle_conserve(const struct timerhub_stats *stats);

#endif
