/* SPDX-License-Identifier: MIT */
/*
 * What the laws say of a run: an array of all timers that ever were, told of every call when it
 * begins and when it returns, and searched from end to end. It knows nothing of what is inside the
 * library. Calls overlap, so each carries two stamps of one count, and only what one call strictly
 * before another implies is held against the library.
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
/* The latest deadline that can be kept. */
#define DEADLINE_MAX_NS ((UINT64_C(1) << 63) - 128)

enum life_state {
	LIFE_ARMING,
	LIFE_LIVE,
	LIFE_DELIVERED,
	LIFE_CANCELLED,
	LIFE_DROPPED,
	LIFE_REFUSED
};

/* A deadline that somebody gave. */
struct write {
	/*
	 * It lies in there: the clock that a relative one was added to is known no better. Of a
	 * periodic timer first_ns is the next deadline, to the nanosecond.
	 */
	uint64_t first_ns, last_ns;
	unsigned thread; /* that gave it, and its epoch when it began to */
	int32_t epoch;
	bool maybe;          /* kept: a delivery may have come after it, and of another */
	uint64_t begin, end; /* stamps of the call; end STAMP_NONE while it goes on */
	/* Periodic, kept: stamp from which on a later write rules; or STAMP_NONE. */
	uint64_t closed;
};

/* Periods that were delivered ahead of their turn, by another consumer. */
struct ahead {
	uint64_t expires_ns, count;
};

/* One timer from arm to end. */
struct life {
	timerhub_timer handle; /* arm is given this to write to */
	uint64_t interval_ns, slack_ns;
	struct write writes[WRITES_MAX];
	unsigned writes_count;
	unsigned queue, queue_life;
	timerhub_fn *fn;
	bool has_fn, wants_handle;
	bool kept;
	bool crowded;       /* calls on it overlap, or did when there was last none */
	uint64_t arm_begin; /* stamp */
	enum life_state state;
	unsigned index;      /* in oracle.active, while ARMING or LIVE */
	unsigned calls;      /* in progress on this timer */
	bool must;           /* must be in the queue */
	uint64_t must_since; /* stamp of that */
	bool lingers;        /* dropped while a call on it, which may have the slot, goes on */
	/* Re-armed when due, or the clock was set back: may come at its older place. */
	bool loose;
	uint64_t was_due; /* stamp: it was, by a clock then set back, and may have expired; or 0 */
	bool silent;      /* no callback may run any more */
	uint64_t settled_ns;         /* when the last call on it returned */
	uint64_t armed;              /* stamp of the arm's return */
	uint64_t end_begin, end_end; /* stamps of the call that ended it */
	uint64_t missed; /* stamp at which a call first said that it is no more; or STAMP_NONE */
	uint64_t matched_begin, matched_end; /* of the write that was delivered */
	uint64_t matched_ns;                 /* the deadline that was */
	struct ahead ahead[AHEAD_MAX];
	unsigned ahead_count;
	bool ahead_lost;           /* more than we can keep: no period is expected any more */
	uint64_t taken;            /* periodic: stamp of its last delivery */
	struct plain data;         /* that its data points at */
	struct memory_view view;   /* of the lock that guards the handle in a program */
	const struct actor *armer; /* knows the handle before the arm has returned */
	bool told;    /* the handle is known to all: the arm or a delivery has returned */
	bool freed;   /* the data */
	bool by_hand; /* some of its events were not delivered to a callback */
};

/* A call that takes events, in progress. */
struct taking {
	unsigned queue;
	uint64_t begin;
	uint64_t earliest_ns, latest_ns; /* the clock since it began, where it was set meanwhile */
	const struct actor *actor;
	uint64_t owner_runs, changes;
	bool owner_slept;
	bool crowded; /* another such call went on at some time of this one */
	bool by_hand; /* it returns its events, and calls no callback */
	struct taking *next;
};

/* A walk over all timers, in progress. */
struct walk {
	uint64_t begin;        /* stamp */
	bool shown[LIVES_MAX]; /* by timerhub_event.data */
};

struct oracle_queue {
	const struct timerhub_queue *queue;
	struct taking *takings;
	bool sole_consumer, closing;
	unsigned life;        /* counts openings */
	uint64_t last_taking; /* stamp of its begin */
	unsigned due;         /* a timer that must be in it */
	struct {
		uint64_t expires_ns, settled_ns;
	} order[ORDER_EVENTS]; /* the last events of a sole consumer */
	unsigned order_count;
};

struct oracle {
	struct life lives[LIVES_MAX]; /* by timerhub_event.data */
	unsigned lives_count;
	struct life *active[LIVES_MAX];
	unsigned active_count, arming_count;
	unsigned lingering;
	unsigned occupancy_peak; /* since no arm was in progress */
	unsigned capacity;
	uint64_t gather_ns; /* how late the owner may be on purpose, in a crowd */
	unsigned calls;     /* of arm, re-arm, cancel in progress */
	uint64_t stamp;
	uint64_t clock_set; /* stamp of the last time that the clock was */
	struct oracle_queue queues[QUEUES_MAX];
	uint64_t armed, delivered, retired, cancelled, dropped, overruns;
	const struct timerhub *manual_hub; /* whose clock is moved by hand; or NULL */
	/*
	 * What callers know of each other. The next arm knows of every place given back; unless the
	 * callers are `apart`, and then an arm may be refused a place that it does not know of.
	 */
	bool apart;
	struct memory_view places_view;
	/* Who expires: the library's owner, or who moves the manual hub; and whether he sleeps. */
	const struct actor *mover;
	bool mover_sleeps;
	unsigned advancing; /* workers that move the manual hub, and how often they have */
	uint64_t advances;
	/* Callers that ask how many timers live; as many at most, while they do. */
	unsigned counting, live_most;
};

extern struct oracle oracle;

void oracle_begin(unsigned capacity);

/* The hub's clock, as of now. */
uint64_t oracle_now_ns(void);
uint64_t oracle_stamp(void);
bool oracle_full(void);

/* arm: NULL if there is no more room for lives. `first_ns`: the deadline as far as it is known. */
struct life *oracle_arm_begin(unsigned queue, const struct timerhub_spec *spec, uint64_t first_ns);
/* `later_ns`: how much later the deadline may be; 0 when it was absolute. */
void oracle_arm_end(struct life *life, int result, uint64_t later_ns);

/* Any other call on a timer begins. `life` may be over for long, or NULL (not a timer at all). */
void oracle_call_begin(struct life *life);
struct write *oracle_rearm_begin(struct life *life, uint64_t first_ns);
void oracle_rearm_end(struct life *life, uint64_t begin, int result, uint64_t later_ns);
/* Kept, nobody has it in hand, and its last expiry was delivered? */
bool oracle_idles(const struct life *life);
/* Is that not known? */
bool oracle_unsure(const struct life *life);
void oracle_cancel_end(struct life *life, uint64_t begin, int result);
void oracle_remaining_end(struct life *life, uint64_t begin, uint64_t begin_ns, int result,
                          uint64_t remaining_ns);

/* A walk over all timers begins, shows one, and is over. */
void oracle_walk_begin(struct walk *walk);
void oracle_shown(struct walk *walk, const struct timerhub_event *timer, uint64_t interval_ns);
void oracle_walk_end(const struct walk *walk);

/* May the current actor use this timer's handle? */
bool oracle_knows(const struct life *life);
/* It has been said that no callback of the timer runs, nor will. */
void oracle_silenced(struct life *life);

void oracle_take_begin(struct taking *taking, unsigned queue);
void oracle_taken(const struct taking *taking, const struct timerhub_event *event);
/* The queue is stopped, and was found exhausted: what was due before is not in it any more. */
void oracle_shut_down(const struct taking *taking);
/* `empty`: it found the queue empty. */
void oracle_take_end(struct taking *taking, bool empty);
/* Does the owner sleep, of its own will? */
bool oracle_mover_sleeps(void);

/* True while a consumer has, or may have, events of this queue in hand. */
bool oracle_taking(unsigned queue);

/* A queue is being closed: all of its timers are in that call's hands. Returns its stamp. */
uint64_t oracle_drop_begin(unsigned queue);
void oracle_drop_end(unsigned queue, uint64_t begin);

/*
 * Nobody can run. What is due must be in its queue by now, and what is not must not be overslept.
 * Returns, as bits, the queues that have something that must be in them.
 */
unsigned oracle_quiet(void);

/* The earliest instant from now on at which something is due, in virtual time; NEVER. */
uint64_t oracle_next_ns(void);

/* The hub's clock was set; it was this before. */
void oracle_clock_set(uint64_t before_ns);

/* No call is in progress: armed = delivered + cancelled + live + dropped, here and there. */
void oracle_conserve(const struct timerhub_stats *stats);

#endif
