/* SPDX-License-Identifier: MIT */
/*
 * Checks the library's laws without looking into the library. It keeps an array of all timers that
 * were ever armed, and each worker tells it when a call begins and when it returns. Both moments
 * get a stamp from one counter. A call is before another only if it had returned when the other
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
#define QUEUES_MAX 3
#define ORDER_EVENTS 8
#define EVENTS_MAX 40 /* largest number of events that one call takes */
#define NEVER UINT64_MAX
#define STAMP_NONE UINT64_MAX
/* the library's largest, in ns */
#define DEADLINE_MAX_NS ((UINT64_C(1) << 63) - 128)

enum life_state {
	LIFE_ARMING,
	LIFE_LIVE,
	LIFE_DELIVERED,
	LIFE_CANCELLED,
	LIFE_DROPPED,
	LIFE_REFUSED
};

/* The deadline that one arm or re-arm gave. */
struct write {
	/*
	 * the deadline is in this range: a relative one counts from a clock reading that the oracle
	 * does not know; first_ns is the exact next deadline of a periodic timer
	 */
	uint64_t first_ns, last_ns;
	unsigned thread; /* the calling thread, and that thread's epoch when the call began */
	int32_t epoch;
	uint64_t switches; /* value of scheduler.switches when the call began */
	/* kept: a delivery that overlapped the call may have ended it */
	bool maybe;
	/* end is STAMP_NONE during the call */
	uint64_t begin, end;
	uint64_t closed; /* stamp at which a re-arm or delivery ended the deadline, or STAMP_NONE */
};

/* A period that one drain has returned before another drain returned the period before it. */
struct ahead {
	uint64_t expires_ns, count;
};

/* Kept after its end. */
struct life {
	timerhub_timer handle; /* the handle, stored by the call that arms the timer */
	uint64_t interval_ns, slack_ns;
	struct write writes[WRITES_MAX];
	unsigned writes_count;
	unsigned queue, queue_life;
	timerhub_fn *fn;
	bool has_fn, wants_handle;
	bool kept;
	/* two calls have overlapped, and one may be in progress */
	bool crowded;
	uint64_t arm_begin; /* stamp at which the arming call began */
	enum life_state state;
	/* the timer's index in oracle.active while `state` is LIFE_ARMING or LIFE_LIVE */
	unsigned index;
	unsigned calls;              /* number of calls on the timer that have not returned yet */
	uint8_t callers[ACTORS_MAX]; /* the same, for each actor */
	bool must;                   /* true if the timer's event must be in its queue */
	uint64_t must_since;         /* stamp at which the field `must` became true */
	/* a call in progress may still use the dropped timer's slot */
	bool lingers;
	/* the next event may come out of order: re-armed when due, or the clock was set back */
	bool loose;
	/* when it may have been due before the clock was set back; 0: not */
	uint64_t was_due;
	bool silent;                 /* true if no callback of the timer may run any more */
	uint64_t settled_ns;         /* time when the last call on the timer returned */
	uint64_t armed;              /* stamp at which the arming call returned */
	uint64_t end_begin, end_end; /* stamps of the call that ended the timer */
	uint64_t missed; /* stamp at which a call first returned -ENOENT; or STAMP_NONE */
	/* of the delivered write */
	uint64_t matched_begin, matched_end;
	uint64_t matched_ns; /* the last delivered deadline */
	struct ahead ahead[AHEAD_MAX];
	unsigned ahead_count;
	bool ahead_lost;         /* true if the next deadline to be delivered is not known */
	uint64_t taken;          /* periodic or kept timer: stamp of the last delivery */
	struct plain data;       /* the timer's data points at this member */
	struct memory_view view; /* view of the lock by which a program guards the handle */
	/* has the handle before the arm returns */
	const struct actor *armer;
	/* the arm or a delivery has returned the handle, so every worker may use it */
	bool told;
	bool freed;   /* true if the timer's data has been freed */
	bool by_hand; /* true if some of the timer's events were drained and not dispatched */
};

/* A drain, dispatch or wait in progress. */
struct taking {
	unsigned queue;
	uint64_t begin;
	/* of the clock during the call */
	uint64_t earliest_ns, latest_ns;
	const struct actor *actor;
	uint64_t owner_runs;
	uint64_t edges; /* number of writes to the queue's eventfd before the call */
	bool owner_slept;
	bool crowded; /* true if another call that takes events from the queue overlaps this call */
	bool by_hand; /* the call returns events to the worker, instead of calling callbacks */
	unsigned called[EVENTS_MAX], calls; /* the timers whose callbacks the call has called */
	bool may_leave; /* the dispatch has called a timer that may expire again */
	struct taking *next;
};

/* A timerhub_each() in progress. */
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
	/* most slots in use since no arm was in progress */
	unsigned occupancy_peak;
	unsigned capacity;
	/* how late a coalescing owner may be */
	uint64_t gather_ns;
	unsigned calls; /* number of arms, re-arms, cancels and queries in progress */
	uint64_t stamp;
	uint64_t owner_read; /* stamp of the owner's last reading of the clock */
	uint64_t clock_set;  /* stamp at which the clock was last set */
	struct oracle_queue queues[QUEUES_MAX];
	uint64_t armed, delivered, retired, cancelled, dropped, overruns;
	const struct timerhub *manual_hub; /* the hub of the run if it is manual; or NULL */
	/* arms do not synchronize with calls that free slots, and may fail while a slot is free */
	bool apart;
	struct memory_view places_view;
	/* the actor that expires timers: the owner thread, or the one that advances a manual hub */
	const struct actor *mover;
	bool mover_sleeps;
	unsigned advancing; /* number of workers that are inside timerhub_advance() now */
	uint64_t advances;  /* number of all calls of timerhub_advance() by workers */
	/* number of workers inside timerhub_stats(); the most timers that can be live meanwhile */
	unsigned counting, live_most;
};

extern struct oracle oracle;

void oracle_begin(unsigned capacity);

uint64_t oracle_now_ns(void);
uint64_t oracle_stamp(void);
bool oracle_full(void);

/* `first_ns` is the smallest possible deadline. There must be room, see oracle_full(). */
struct life *oracle_arm_begin(unsigned queue, const struct timerhub_spec *spec, uint64_t first_ns);
/* The arm has returned `result`. The deadline is at most `later_ns` after `first_ns`. */
void oracle_arm_end(struct life *life, int result, uint64_t later_ns);

/* A re-arm, cancel or query begins. The timer may have ended; NULL if no timer has the handle. */
void oracle_call_begin(struct life *life);
struct write *oracle_rearm_begin(struct life *life, uint64_t first_ns);
void oracle_rearm_end(struct life *life, uint64_t begin, int result, uint64_t later_ns);
/* Returns whether a timer with TIMERHUB_KEEP has no deadline that may still be delivered. */
bool oracle_idles(const struct life *life);
/* Returns true if the oracle can't tell whether a timer with TIMERHUB_KEEP has a deadline. */
bool oracle_unsure(const struct life *life);
void oracle_cancel_end(struct life *life, uint64_t begin, int result);
void oracle_remaining_end(struct life *life, uint64_t begin, uint64_t begin_ns, int result,
                          uint64_t remaining_ns);

void oracle_walk_begin(struct walk *walk);
void oracle_shown(struct walk *walk, const struct timerhub_event *timer, uint64_t interval_ns);
void oracle_walk_end(const struct walk *walk);

/* Returns whether the current actor can have got the timer's handle. */
bool oracle_knows(const struct life *life);
/* From now on no callback of it may run. */
void oracle_silenced(struct life *life);

void oracle_take_begin(struct taking *taking, unsigned queue);
void oracle_taken(struct taking *taking, const struct timerhub_event *event);
/* A wait reported a stopped, empty queue. Fails if an event had to be there before the wait. */
void oracle_shut_down(const struct taking *taking);
/* A drain, dispatch or wait has ended. `empty`: the call found no further event. */
void oracle_take_end(struct taking *taking, bool empty);
/* For lack of work. */
bool oracle_mover_sleeps(void);

/* Returns whether a drain, dispatch or wait in progress may hold events of the queue. */
bool oracle_taking(unsigned queue);

/* Returns the stamp at which the close began. */
uint64_t oracle_drop_begin(unsigned queue);
void oracle_drop_end(unsigned queue, uint64_t begin);

/*
 * When no actor can run, every due timer has its event in its queue, and the owner does not sleep
 * beyond a deadline. Returns the queues that must have events, as bits.
 */
unsigned oracle_quiet(void);

/*
 * When the owner reads its clock. If it spins, it has not missed a timer that was armed for an
 * earlier time.
 */
void oracle_owner_reads(bool spins);

/* Returns when the next timer is due, in the simulation's virtual time, or NEVER. */
uint64_t oracle_next_ns(void);

/* From `before_ns`. */
void oracle_clock_set(uint64_t before_ns);

/* Without a call in progress: armed = delivered + cancelled + live + dropped, as in `stats`. */
void oracle_conserve(const struct timerhub_stats *stats);

#endif
