/* SPDX-License-Identifier: MIT */
/*
 * A model of all changes of a timer's pair. A caller arms, re-arms or cancels the timer. The owner
 * looks at the slot, and expires the timer. Before a sleep, the owner may correct the schedule
 * entry. This correction is named rest. A consumer delivers the timer. The model also reuses the
 * slot.
 *
 * One slot has two timers, one after the other. One process, the changer, re-arms or cancels a
 * timer. A second process, the armer, re-arms or cancels a timer, and then arms the slot again. The
 * other processes are the owner, the clock, and two consumers. If two timers are periodic, there is
 * only one consumer. A process loads each half of the pair in a step of its own. A compare-and-swap
 * of the pair compares both halves.
 *
 * With -DINTERVAL=n both timers are periodic. With -DNO_ARMER the slot has only one timer. With
 * -DREARMERS there are two changers and one consumer, and a changer only re-arms. With two
 * changers, a push can stay claimed while the timer expires and is re-armed again. With -DNO_REARM
 * a changer only cancels. With -DKEPT=3 both timers are kept. With -DKEPT=2 only the second timer
 * is kept. With -DBACK the clock is set back once. With -DTO_NEVER a re-arm may set the deadline
 * NEVER. With -DSLACK the first timer has a slack of 2, and the second timer has a slack of 1 or
 * none.
 *
 * The model leaves out these parts:
 *
 * - The flag PUSHED is left out, and the inbox is only a count of entries. A thread that claims a
 *   push always pushes. inbox.pml models the inbox and the flag.
 * - Wakes of the owner are left out, and promise.pml models them. In timer.pml the owner may rest
 *   whenever another thread works.
 * - The outbox's cells and the notifier are left out, and notifier.pml models them.
 * - A timer whose queue is closed is left out, and queue_close.pml models it.
 * - timer_move() is left out, since it makes the same change as one turn of timer_rearm()'s loop.
 *
 * The pair of a periodic timer counts the owner's looks at the slot, with 2 bits. In this model
 * other pairs have no such counter, because only the delivery of a periodic timer needs it. The
 * timer's consumer may load the state of one pair and the deadline of a later pair. It may read the
 * clock before the later pair is due. If the owner looked at the slot between the stores of these
 * two pairs, the counters differ. The consumer's compare-and-swap then fails. If the owner did not
 * look, the slot's push is still claimed. The owner will then look at the slot later.
 *
 * Models:
 *   lib/timer/timer.c timer_arm() timer_rearm() pair_cancelled() timer_cancel() timer_read()
 *                     timer_look() timer_unschedule() timer_expire()
 *                     timer_true_ns() timer_deliver_periodic() timer_give_back()
 *   lib/timer/timer.h timer_guess() timer_snapshot() timer_change() timer_move()
 *                     timer_instant_ns() timer_next_period_ns() timer_view_expiry()
 *                     timer_deliver_one_shot() timer_deliver()
 *   lib/timer/pair.h  state_is_of() state_undelivered() pair_with_phase() pair_unscheduled()
 *                     pair_covers() pair_armed() pair_rearmed() pair_claimed() pair_looked_at()
 *                     pair_delivered() period_count() period_next_ns() timer_slacken_ns()
 *
 * Laws:
 *   exactly_once   a call that delivers, cancels or re-arms a timer finds the timer live
 *                  Each timer ends exactly once.
 *   never_early    a delivered timer is due by the clock that the consumer read (laws 1 and 4)
 *   exact          an event has the deadline that was asked for
 *                  The next deadline of a periodic timer is its last deadline plus a multiple of
 *                  the interval.
 *   own_data       a delivery or a walk returns the data that the timer's armer gave
 *   honest         a call returns -ENOENT only for a timer that has ended (law 3)
 *   idle_told      a re-arm returns whether the kept timer was idle
 *                  When no thread has a step left, only idle timers have the phase IDLE.
 *   scheduled      while no push is claimed, an armed slot is scheduled no later than its instant
 *                  A free slot without a claim is scheduled no later than its deadline.
 *   not_lost       when all threads have come to rest, no live timer is due
 *   freed_once     no slot is freed twice
 *
 *   true
 *   true -DINTERVAL=2
 *   true -DINTERVAL=1 -DNO_ARMER -DREARMERS
 *   true -DINTERVAL=1 -DNO_ARMER -DBACK
 *   true -DTO_NEVER -DNO_REARM
 *   true -DINTERVAL=2 -DNO_ARMER -DTO_NEVER
 *   true -DSLACK
 *   true -DLOOKER -DNO_REARM -DNO_CHANGER
 *   true -DKEPT=3
 *   true -DKEPT=3 -DNO_ARMER -DBACK
 *   true -DKEPT=2 -DNO_REARM
 *   bug NO_GENERATION       exactly_once   a change does not compare the handle's generation
 *   bug ONE_GENERATION      own_data       arm begins no new generation
 *   bug CANCEL_BY_STORE     scheduled      cancel decides, then stores the pair
 *   bug CANCEL_HALF         scheduled      cancel compares only the state
 *   bug CANCEL_SCHEDULED    scheduled      cancel of an expired timer leaves its deadline
 *   bug CANCEL_BARE         scheduled      -DSLACK cancel leaves the deadline without the slack
 *   bug FREED_TWICE         freed_once     cancel frees the slot even if it lost the race
 *   bug LOST_IS_DEAD        honest         a lost compare-and-swap counts as the timer's end
 *   bug REARM_HALF          scheduled      -DINTERVAL=2 re-arm compares only the state
 *   bug REARM_UNCLAIMED     scheduled      re-arm to an earlier deadline claims no push
 *   bug REARM_PENDING_LAZY  scheduled      re-arm of an expired timer to later claims no push
 *   bug DATA_AFTER_PAIR     own_data       arm publishes the pair before the caller's data
 *   bug ARMED_BY_STORE      scheduled      arm decides, then stores the pair
 *   bug ARMED_HALF          scheduled      arm compares only the state
 *   bug ARM_DECIDES_ONCE    scheduled      arm that lost to the owner keeps its decision
 *   bug COVERS_EARLIER      scheduled      arm takes over a schedule entry that is too late
 *   bug COVERS_CLAIMED      scheduled      arm takes the entry over while a push is claimed
 *   bug LOOKED_SCHEDULED    scheduled      look at a free slot leaves the deadline
 *                                          When the owner looks at a free slot, it removes the
 *                                          slot's schedule entry, but leaves the deadline in the
 *                                          pair.
 *   bug TAKEN_SCHEDULED     scheduled      expiry of a free slot leaves the deadline
 *                                          When a free slot is due, the owner removes the slot's
 *                                          schedule entry, but leaves the deadline in the pair.
 *   bug REST_SCHEDULED      scheduled      rest at a free slot leaves the deadline
 *                                          Before a sleep, the owner removes the schedule entry of
 *                                          a free slot, but leaves the deadline in the pair.
 *   bug UNSCHEDULE_BY_STORE not_lost       owner finds a slot free, then stores the pair
 *   bug EXPIRE_BY_STORE     never_early    owner decides to expire, then stores the pair
 *   bug EXPIRE_HALF         never_early    owner that expires compares only the state
 *   bug EXPIRE_GIVES_UP     scheduled      owner does not repeat a lost compare-and-swap
 *   bug EXPIRE_UNSEEN       never_early    owner expires by the entry, not by the pair
 *   bug EXPIRE_TORN         scheduled      -DSLACK owner expires by two halves of two pairs
 *   bug REST_TORN           scheduled      -DSLACK owner rests by two halves of two pairs
 *   bug REST_DROPS_PERIOD   scheduled      -DINTERVAL=2 rest unschedules an expired timer
 *   bug DELIVER_BY_STORE    never_early    delivery decides, then stores the pair
 *   bug DELIVER_HALF        exact          delivery compares only the state
 *   bug DELIVERED_SCHEDULED scheduled      delivery of a one-shot leaves the deadline
 *   bug PERIOD_FROM_NOW     exact          -DINTERVAL=2 next period counts from now
 *                                          The next deadline is the time of the delivery plus the
 *                                          interval.
 *   bug PERIODS_TORN        never_early    -DINTERVAL=1 -DNO_ARMER -DREARMERS undue periods
 *                                          A delivery computes the number of periods since the
 *                                          deadline that it has loaded. It does not check that
 *                                          this deadline is due.
 *   bug LOOK_UNCOUNTED      scheduled      -DINTERVAL=1 -DNO_ARMER -DREARMERS look uncounted
 *                                          The owner looks at the slot without incrementing the
 *                                          pair's counter.
 *   bug OVERDUE_UNCLAIMED   scheduled      -DINTERVAL=2 no claim for overdue
 *                                          A consumer delivers an overdue timer without pushing the
 *                                          slot into the inbox.
 *   bug OVERDUE_BY_STORE    not_lost       -DINTERVAL=2 overdue by a store
 *                                          The owner stores the phase OVERDUE in the pair without a
 *                                          compare-and-swap.
 *   bug OVERDUE_DROPPED     not_lost       -DINTERVAL=2 overdue skipped
 *                                          A consumer skips the handle of an overdue timer.
 *   bug BACK_UNTOLD         scheduled      -DINTERVAL=1 -DNO_ARMER -DBACK no claim
 *                                          The consumer of a period pushes the slot only if the
 *                                          timer is overdue. After the clock was set back, the next
 *                                          deadline may be earlier than the slot's schedule entry.
 *                                          The consumer must then push the slot too.
 *   bug BACK_UNCLAIMED      scheduled      -DKEPT=3 -DNO_ARMER -DBACK no claim
 *                                          A consumer returns a timer to ARMED, because the clock
 *                                          was set back, and claims no push.
 *   bug KEPT_ENDS           idle_told      -DKEPT=3 delivery of a kept timer ends the timer
 *   bug IDLE_DELIVERED      exactly_once   -DKEPT=3 a second handle of one expiry is delivered
 *   bug IDLE_UNCLAIMED      scheduled      -DKEPT=3 re-arm of an idle timer claims no push
 *   bug IDLE_ARMED          idle_told      -DKEPT=3 a delivered kept timer is ARMED with NEVER
 *   bug LOOKED_ONCE         own_data       -DLOOKER -DNO_REARM -DNO_CHANGER no confirm
 *                                          timerhub_each() shows a timer without a check that its
 *                                          pair is unchanged.
 */
#define NEVER 15
#define IDLED 14 /* value of asked[] for a kept timer that must be idle */
#define CANCELLED 13
#ifndef INTERVAL
#define INTERVAL 0
#endif
/*
 * BEGIN and LAST are the clock's first and last time. FIRST is the first deadline. MOVED and
 * MOVED_BY_ARMER are the deadlines of re-arms.
 */
#if INTERVAL > 0
#define BEGIN 0
#define FIRST 1
#define MOVED 2
#define MOVED_BY_ARMER (MOVED + INTERVAL)
#ifdef REARMERS
#define LAST MOVED_BY_ARMER
#else
/* the second period becomes due, so an undelivered first period is OVERDUE */
#define LAST (FIRST + INTERVAL)
#endif
#elif defined(SLACK)
#define BEGIN 1
#define FIRST 2
#define MOVED 1
#define MOVED_BY_ARMER 5
#define LAST 4
#else
#define BEGIN 1
#define FIRST 2
#define MOVED 1
#define MOVED_BY_ARMER 4
#define LAST 3
#endif
#define OUTBOX 5

/*
 * The state half of the pair has the phase, flags, the generation, and the counter of the owner's
 * looks.
 */
#define FREE 0
#define ARMED 1
#define PENDING 2
#define OVERDUE 3
#define IDLE 4
#define PHASE(x) ((x) & 7)
#define CLAIMED 8
#define HAS_SLACK 16
#define GENERATION(x) (((x) >> 5) & 3)
#define LOOKS(x) ((x) & (3 << 7))
#if INTERVAL > 0 && !defined(LOOK_UNCOUNTED)
#define LOOKED_AT(x) (((x) & ~(CLAIMED | LOOKS(x))) | LOOKS((x) + (1 << 7)))
#else
#define LOOKED_AT(x) ((x) & ~CLAIMED)
#endif
#define STATE(phase, generation) ((phase) | ((generation) << 5))
#define WITH_PHASE(x, phase) (((x) & ~7) | (phase))
#define IS_UNDELIVERED(x) (PHASE(x) == PENDING || PHASE(x) == OVERDUE)
#ifdef NO_GENERATION
#define IS_OF(x, handle) (PHASE(x) != FREE)
#else
#define IS_OF(x, handle) (PHASE(x) != FREE && GENERATION(x) == (handle))
#endif
#ifndef KEPT
#define IS_KEPT(handle) false
#elif KEPT == 2
#define IS_KEPT(handle) ((handle) == 2)
#else
#define IS_KEPT(handle) true
#endif

/*
 * Returns the instant of a deadline with slack. The instant is the time from the deadline to
 * deadline + slack that has the most trailing zero bits.
 */
#define SLACKENED(at, slack) \
	((at) == NEVER || (slack) == 0 -> (at) : \
	 ((slack) == 1 || (at) % 4 != 2 -> ((at) + 1) & ~1 : (at) + 2))
#ifdef SLACK
#define INSTANT(x, at) ((x) & HAS_SLACK -> SLACKENED(at, slack) : (at))
#define FIRST_STATE (STATE(ARMED, 1) | HAS_SLACK)
#else
#define INSTANT(x, at) (at)
#define FIRST_STATE STATE(ARMED, 1)
#endif

#if defined(COVERS_EARLIER)
#define COVERS(x, at, goal) (!((x) & CLAIMED) && (at) < NEVER)
#elif defined(COVERS_CLAIMED)
#define COVERS(x, at, goal) ((at) <= (goal))
#else
#define COVERS(x, at, goal) (!((x) & CLAIMED) && (at) <= (goal))
#endif

#if INTERVAL > 0
#define COUNT(at, time) (((time) - (at)) / INTERVAL + 1)
#ifdef PERIOD_FROM_NOW
#define NEXT(at, time) ((time) + INTERVAL)
#else
#define NEXT(at, time) ((at) + COUNT(at, time) * INTERVAL)
#endif
#endif

/*
 * SAME is the comparison that a compare-and-swap of the pair makes. Some planted faults replace
 * SAME by SAME_STATE, which compares only the state.
 */
#define SAME (state == s && deadline == d)
#define SAME_STATE (state == s)

/* The pair of the slot. */
short state;
byte deadline;

byte data; /* data and slack are the timer's record */
byte slack;
bool is_free;
byte in_ring;
byte filed;
/* true if the owner has taken the slot out of the schedule, and has not finished with it */
bool expiring;
byte outbox[OUTBOX];
byte outbox_count;
byte now = BEGIN;
byte known = 1;  /* the newest handle that a caller may have */
byte working;    /* number of threads, without the owner, that may still change the pair */

/*
 * For each handle: whether the timer must be live, and the deadline that the last call asked for.
 */
bool alive[3];
byte asked[3];

bool exactly_once = true;
bool never_early = true;
bool exact = true;
bool own_data = true;
bool honest = true;
bool idle_told = true;
bool scheduled = true;
bool not_lost = true;
bool freed_once = true;

/* The following functions are called inside an atomic step. */
inline put_free()
{
	freed_once = !is_free;
	assert(freed_once);
	is_free = true
}

inline must_live(handle)
{
	exactly_once = alive[handle];
	assert(exactly_once)
}

inline check_event()
{
	must_live(handle);
	exactly_once = (asked[handle] != IDLED);
	assert(exactly_once);
	never_early = (asked[handle] <= time);
	assert(never_early);
	exact = (asked[handle] == d);
	assert(exact);
	own_data = (event_data == handle);
	assert(own_data)
}

#ifdef CANCEL_HALF
#define CANCELS SAME_STATE
#elif defined(CANCEL_BY_STORE)
#define CANCELS true
#else
#define CANCELS SAME
#endif
#ifdef REARM_HALF
#define REARMS SAME_STATE
#else
#define REARMS SAME
#endif
#if defined(REARM_UNCLAIMED)
#define SUBMITS (PHASE(s) != ARMED)
#elif defined(REARM_PENDING_LAZY)
#define SUBMITS (PHASE(s) == IDLE || goal < d)
#elif defined(IDLE_UNCLAIMED)
#define SUBMITS (PHASE(s) != IDLE && (PHASE(s) != ARMED || goal < d))
#else
#define SUBMITS (PHASE(s) != ARMED || goal < d)
#endif

/* Models timer_rearm() and timer_cancel(). The handle is one that a caller may have. */
inline change(to)
{
	atomic {
		if
		:: handle = 1
		:: known > 1 -> handle = known
		fi;
		if
#ifndef NO_REARM
		:: goal = to
#endif
#ifdef TO_NEVER
		:: goal = NEVER
#endif
#ifndef REARMERS
		:: goal = CANCELLED
#endif
		fi
	}
	do
	:: atomic {
		s = state;
		if
		:: !IS_OF(s, handle) ->
			honest = !alive[handle];
			assert(honest);
			goto missed
		:: else
		fi
	   }
	   d = deadline;
	   atomic {
		if
		:: goal == CANCELLED && CANCELS ->
			must_live(handle);
			alive[handle] = false;
			asked[handle] = 0;
			state = WITH_PHASE(s, FREE);
#ifdef CANCEL_SCHEDULED
			deadline = INSTANT(s, d);
#elif defined(CANCEL_BARE)
			deadline = (PHASE(s) == ARMED -> d : NEVER);
#else
			deadline = (PHASE(s) == ARMED -> INSTANT(s, d) : NEVER);
#endif
			break
		:: goal != CANCELLED && REARMS ->
			must_live(handle);
			idle_told = ((PHASE(s) == IDLE) == (asked[handle] == IDLED));
			assert(idle_told);
			asked[handle] = goal;
			push = SUBMITS && !(s & CLAIMED);
			state = WITH_PHASE(s, ARMED) | (SUBMITS -> CLAIMED : 0);
			deadline = goal;
			break
#ifdef LOST_IS_DEAD
		:: else ->
			honest = !alive[handle];
			assert(honest);
			goto missed
#else
		:: else
#endif
		fi }
	od;
	atomic { s = 0; d = 0; handle = 0 }
	if
	:: push -> in_ring++
	:: else
	fi;
	if
	:: goal == CANCELLED -> atomic { put_free() }
	:: else
	fi;
	goto changed;
missed:
#ifdef FREED_TWICE
	if
	:: goal == CANCELLED -> atomic { put_free() }
	:: else
	fi;
#endif
	skip;
changed:
	atomic { s = 0; d = 0; handle = 0; goal = 0; push = false }
}

proctype changer(byte to)
{
	short s;
	byte d, handle, goal;
	bool push;

	change(to);
	atomic { to = 0; working-- }
}

#ifndef NO_ARMER
#ifdef ARMED_HALF
#define ARMS SAME_STATE
#elif defined(ARMED_BY_STORE)
#define ARMS true
#else
#define ARMS SAME
#endif

proctype armer()
{
	short s;
	byte d, handle, goal, flags;
	bool push;

	change(MOVED_BY_ARMER);
	working--;
endfull:
	atomic {
		is_free -> is_free = false;
		working++;
		if
		:: goal = FIRST
		:: goal = MOVED
		fi;
		s = state
	}
	atomic {
		d = deadline;
#ifdef ONE_GENERATION
		handle = GENERATION(s);
#else
		handle = GENERATION(s) + 1;
#endif
#ifndef DATA_AFTER_PAIR
		data = 2;
#endif
#ifdef SLACK
		if
		:: slack = 0
		:: slack = 1; flags = HAS_SLACK
		fi;
#endif
		push = !COVERS(s, d, goal)
	}
	do
	:: atomic {
		if
		:: ARMS ->
			state = STATE(ARMED, handle) | LOOKS(s) | flags | (push -> CLAIMED : 0);
			deadline = goal;
			alive[handle] = true;
			asked[handle] = goal;
			known = handle;
			break
		:: else -> s = state
		fi
	   }
	   atomic {
		d = deadline;
#ifndef ARM_DECIDES_ONCE
		push = !COVERS(s, d, goal)
#endif
	   }
	od;
#ifdef DATA_AFTER_PAIR
	data = 2;
#endif
	if
	:: push -> in_ring++
	:: else
	fi;
	atomic { s = 0; d = 0; handle = 0; goal = 0; flags = 0; push = false; working-- }
}
#endif

/* Whether a free slot with this pair needs no schedule entry. */
#define IS_UNSCHEDULED(x, at) (((x) & CLAIMED) || (at) == NEVER)
#ifdef UNSCHEDULE_BY_STORE
#define UNSCHEDULES true
#else
#define UNSCHEDULES SAME
#endif

inline unschedule()
{
	state = WITH_PHASE(s, FREE);
	deadline = NEVER
}

/*
 * Finish the owner's snapshot of the pair. The variable `s` has the state from a first load. No
 * thread except the owner can bring back an earlier state. If a second load returns the same state,
 * the pair still had this state when the deadline was loaded. Without slack the model loads both
 * halves in one step. Two separate loads would give the same snapshots.
 */
inline snapshot()
{
#ifndef SLACK
	atomic { s = state; d = deadline }
#else
	do
	:: d = deadline;
	   atomic {
		if
		:: state == s -> break
		:: else -> s = state
		fi
	   }
	od
#endif
}

/* The time that the owner writes into the slot's schedule entry when it corrects the entry. */
#ifdef REST_DROPS_PERIOD
#define EXPIRED_FILED NEVER
#else
#define EXPIRED_FILED filed
#endif
#define TRUE_AT(x, at) \
	(PHASE(x) == FREE -> NEVER : \
	 (PHASE(x) != ARMED -> EXPIRED_FILED : (INSTANT(x, at) > filed -> INSTANT(x, at) : filed)))
#define MAY_DIFFER (TRUE_AT(state, deadline) != filed || working > 0 || outbox_count > 0)

#ifdef EXPIRE_BY_STORE
#define EXPIRES true
#elif defined(EXPIRE_HALF)
#define EXPIRES SAME_STATE
#else
#define EXPIRES SAME
#endif

proctype owner()
{
	short s;
	byte d, by, time;

end:
	do
	:: atomic {
		/* Models owner_look_at(). */
		in_ring > 0 ->
		in_ring--;
		filed = (PHASE(state) == FREE -> NEVER :
			 (PHASE(state) == ARMED -> INSTANT(state, deadline) : filed));
#ifndef LOOKED_SCHEDULED
		deadline = (PHASE(state) == FREE -> NEVER : deadline);
#endif
		state = LOOKED_AT(state)
	   }
	:: atomic {
		/* Models owner_expire_slot(). */
		filed <= now ->
		by = filed;
		filed = NEVER;
#if INTERVAL > 0
		time = now;
#endif
		expiring = true
	   }
		do
		::
#if defined(SLACK)
		   s = state;
#endif
#ifdef EXPIRE_TORN
		   d = deadline;
#else
		   snapshot();
#endif
		   atomic {
			if
			:: PHASE(s) == FREE &&
#ifdef TAKEN_SCHEDULED
			   true ->
#else
			   IS_UNSCHEDULED(s, d) ->
#endif
				goto next
			:: PHASE(s) == OVERDUE || PHASE(s) == IDLE -> goto next
#ifndef EXPIRE_UNSEEN
			:: PHASE(s) == ARMED && INSTANT(s, d) > by ->
				filed = INSTANT(s, d);
				goto next
#endif
			:: else
			fi
		   }
		   atomic {
			if
			:: PHASE(s) == FREE && UNSCHEDULES -> unschedule(); goto next
#ifdef OVERDUE_BY_STORE
			:: PHASE(s) == PENDING ->
#else
			:: PHASE(s) == PENDING && SAME ->
#endif
				state = WITH_PHASE(s, OVERDUE);
				goto next
			:: PHASE(s) == ARMED && EXPIRES ->
				state = WITH_PHASE(s, PENDING);
				break
#ifdef EXPIRE_GIVES_UP
			:: else -> goto next
#else
			:: else
#endif
			fi
		   }
		od;
		/* Models owner_deliver(). */
		atomic {
			outbox[outbox_count] = GENERATION(s);
			outbox_count++;
#if INTERVAL > 0
			filed = NEXT(d, time)
#endif
		}
next:
		atomic { expiring = false; s = 0; d = 0; by = 0; time = 0 }
	:: atomic { filed < NEVER && MAY_DIFFER -> s = state }
		/* Models owner_refile(). */
		do
		::
#ifdef REST_TORN
		   d = deadline;
#else
		   snapshot();
#endif
		   atomic {
			if
			:: PHASE(s) != FREE -> break
#ifdef REST_SCHEDULED
			:: PHASE(s) == FREE -> break
#else
			:: PHASE(s) == FREE && IS_UNSCHEDULED(s, d) -> break
#endif
			:: else
			fi
		   }
		   atomic {
			if
			:: UNSCHEDULES -> unschedule(); break
			:: else -> s = state
			fi
		   }
		od;
		atomic { filed = TRUE_AT(s, d); s = 0; d = 0 }
	od
}

#ifdef DELIVER_HALF
#define DELIVERS SAME_STATE
#elif defined(DELIVER_BY_STORE)
#define DELIVERS true
#else
#define DELIVERS SAME
#endif

proctype consumer()
{
	short s;
	byte d, handle, event_data, time;
	bool push;

end:
	do
	:: atomic {
		outbox_count > 0 ->
		handle = outbox[0];
		outbox[0] = outbox[1];
		outbox[1] = outbox[2];
		outbox[2] = outbox[3];
		outbox[3] = outbox[4];
		outbox[4] = 0;
		outbox_count--;
		working++ }
read:
		atomic {
			s = state;
			if
			:: !IS_OF(s, handle) || PHASE(s) == ARMED -> goto done
#ifndef IDLE_DELIVERED
			:: PHASE(s) == IDLE -> goto done
#endif
#ifdef OVERDUE_DROPPED
			:: PHASE(s) == OVERDUE -> goto done
#endif
			:: else
			fi
		}
		atomic { d = deadline; event_data = data; time = now }
#ifdef BACK
		if
		:: d > time ->
			/* Models timer_give_back(). */
			atomic {
				if
				:: SAME ->
					must_live(handle);
					push = !(s & CLAIMED);
#ifdef BACK_UNCLAIMED
					push = false;
					state = WITH_PHASE(s, ARMED)
#else
					state = WITH_PHASE(s, ARMED) | CLAIMED
#endif
				:: else -> goto read
				fi
			}
			goto tell
		:: else
		fi;
#endif
#if INTERVAL == 0
		/* Models timer_deliver_one_shot(). */
		atomic {
			if
			:: DELIVERS ->
				check_event();
#ifdef KEPT_ENDS
				alive[handle] = IS_KEPT(handle);
				asked[handle] = (IS_KEPT(handle) -> IDLED : NEVER);
				state = WITH_PHASE(s, FREE);
#elif defined(IDLE_ARMED)
				alive[handle] = IS_KEPT(handle);
				asked[handle] = (IS_KEPT(handle) -> IDLED : NEVER);
				state = WITH_PHASE(s, ARMED);
#else
				alive[handle] = IS_KEPT(handle);
				asked[handle] = (IS_KEPT(handle) -> IDLED : NEVER);
				state = WITH_PHASE(s, (IS_KEPT(handle) -> IDLE : FREE));
#endif
#ifndef DELIVERED_SCHEDULED
				deadline = NEVER
#endif
			:: else -> goto read
			fi
		}
		if
		:: PHASE(s) != FREE && !IS_KEPT(handle) -> atomic { put_free() }
		:: else
		fi;
		goto done;
#else
		/* Models timer_deliver_periodic(). */
#ifndef PERIODS_TORN
		if
		:: d > time -> goto read
		:: else
		fi;
#endif
		atomic {
			if
			:: DELIVERS ->
				check_event();
				exact = (NEXT(d, time) == d + COUNT(d, time) * INTERVAL);
				assert(exact);
				asked[handle] = NEXT(d, time);
#ifdef BACK
#ifdef BACK_UNTOLD
				push = (PHASE(s) == OVERDUE);
#else
				push = true;
#endif
#elif defined(OVERDUE_UNCLAIMED)
				push = false;
#else
				push = (PHASE(s) == OVERDUE);
#endif
				state = WITH_PHASE(s, ARMED) | (push -> CLAIMED : 0);
				deadline = NEXT(d, time);
				push = push && !(s & CLAIMED)
			:: else -> goto read
			fi
		}
#endif
#if defined(BACK) || INTERVAL > 0
tell:
		if
		:: push -> in_ring++
		:: else
		fi;
#endif
done:
		atomic {
			s = 0; d = 0; handle = 0; event_data = 0; time = 0; push = false;
			working--
		}
	od
}

#ifdef LOOKER
/*
 * Models hub_look(), by which timerhub_each() reads a timer. The pair and the data that hub_look()
 * returns must belong to the same timer.
 */
proctype looker()
{
	short s;
	byte d, shown;

again:
	s = state;
	atomic { d = deadline; shown = data }
	atomic {
		if
		:: PHASE(s) == FREE
#ifdef LOOKED_ONCE
		:: PHASE(s) != FREE ->
#else
		:: PHASE(s) != FREE && !SAME -> goto again
		:: PHASE(s) != FREE && SAME ->
#endif
			own_data = (shown == GENERATION(s) && d == asked[GENERATION(s)]);
			assert(own_data)
		fi
	}
}
#endif

proctype clock()
{
#ifdef BACK
	bool set = false;
#endif
end:
	do
	:: now < LAST -> now++
#ifdef BACK
	:: atomic { now > BEGIN && !set -> set = true; now-- }
#endif
	od
}

#define IS_FILED_LATE \
	(!expiring && !(state & CLAIMED) && \
	 ((PHASE(state) == ARMED && INSTANT(state, deadline) < filed) || \
	  (PHASE(state) == FREE && deadline < filed)))
#define LOST(handle) \
	(alive[handle] && asked[handle] < IDLED && \
	 (INSTANT(state, asked[handle]) <= now || deadline != asked[handle]))
#define UNTOLD(handle) \
	(alive[handle] && (asked[handle] == IDLED) != (PHASE(state) == IDLE))

proctype judge()
{
	if
	:: atomic { IS_FILED_LATE -> scheduled = false; assert(scheduled) }
	:: timeout ->
		not_lost = !(LOST(1) || LOST(2));
		assert(not_lost);
		idle_told = !(UNTOLD(1) || UNTOLD(2));
		assert(idle_told)
	fi
}

init {
	atomic {
		state = FIRST_STATE;
		deadline = FIRST;
		data = 1;
#ifdef SLACK
		slack = 2;
#endif
		filed = INSTANT(FIRST_STATE, FIRST);
		alive[1] = true;
		asked[1] = FIRST;
		run owner();
		run clock();
		run consumer();
#if INTERVAL == 0 || (defined(NO_ARMER) && !defined(REARMERS))
		run consumer();
#endif
#ifndef NO_CHANGER
		working++;
		run changer(MOVED);
#endif
#ifdef REARMERS
		working++;
		run changer(MOVED_BY_ARMER);
#endif
#ifndef NO_ARMER
		working++;
		run armer();
#endif
#ifdef LOOKER
		run looker();
#endif
		run judge()
	}
}
