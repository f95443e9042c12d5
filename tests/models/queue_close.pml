/* SPDX-License-Identifier: MIT */
/*
 * A model of timerhub_queue_close(). Other threads make calls on the queue and its timers at the
 * same time.
 *
 * The queue has two timers, and both are due. The closer closes the queue. The owner may be
 * anywhere in a pass. A worker loops over timerhub_wait(). A caller cancels or re-arms one of the
 * timers. Another caller, the armer, arms the first free slot at any time. The armer arms on
 * another queue. With -DLATE the armer arms on the closing queue, which the contract forbids. The
 * armer may be in the middle of timerhub_arm(). The values that timerhub_arm() reads from the queue
 * do not change.
 *
 * The closer's stores of "closing" and "gone" go through a store buffer. With -DINSIDE_NO_BARRIER
 * the worker's store of "inside" goes through a store buffer too. No other store in this model
 * needs a store buffer. Each of these stores is a locked instruction or a system call, or no other
 * thread reads the stored variable.
 *
 * The model leaves out these parts:
 *
 * - The schedule is left out. The owner reads every slot's pair, and expires each due slot.
 * - The inbox, the queue's eventfd and the owner's sleep are left out. The eventfd that wakes the
 *   owner (the bell) is modelled.
 * - The record of a timer is left out. A thread reads the timer's queue together with the pair.
 *   timer.pml models the separate loads of pair and record.
 * - The closer wakes the worker once, and this one wake must suffice. The closer in lib/ wakes the
 *   worker every millisecond until the worker has left.
 * - timerhub_close() is left out, because it ends the owner first. After the owner's end,
 *   timerhub_close() races only with waiters, and the waiters get -ESHUTDOWN as in this model.
 *
 * Models:
 *   lib/hub/open_queue.c     timerhub_queue_close() queue_send_waiters_away() queue_drop_timers()
 *                            queue_drop_timer() queue_drop_late_expiries() queue_free()
 *   lib/hub/open.c           hub_try_enter() hub_leave() timerhub_advance()
 *   lib/owner/owner_thread.c owner_wait_pass()
 *   lib/owner/owner.c        owner_begin_pass() owner_expire_slot() owner_deliver() owner_drop()
 *                            owner_put()
 *   lib/queue/publisher.c    publisher_publish() publisher_tell()
 *   lib/hub/push_and_wake.c hub_wait_pass() hub_cancel()
 *   lib/timer/timer.c        timer_cancel() timer_rearm() timer_arm() timer_expire() timer_drop()
 *   lib/hub/drain_dispatch.c timerhub_wait() queue_wait() queue_block() queue_verdict()
 *                            deliver()
 *
 * Laws:
 *   untouched     no thread accesses the queue after the closer has freed it
 *   all_gone      after the close, no timer of the queue is live
 *   others_live   no timer of another queue is dropped
 *   none_kept     when all threads rest, no expired timer of the queue holds a slot
 *   freed_once    no slot is freed twice
 *   closes        the close returns, and the worker's wait ends
 *
 *   true
 *   true -DMANUAL
 *   true -DLATE
 *   bug NO_PASS           untouched     closer does not wait for the owner's pass
 *   bug NO_PASS           untouched     -DMANUAL closer does not wait for timerhub_advance()
 *   bug PASS_BEFORE_DROP  untouched     closer reads the pass, then drops the timers
 *   bug PASS_KEPT_OPEN    untouched     owner publishes events in the pass after their expiry
 *   bug INSIDE_LATE       untouched     waiter checks for a close, then counts itself
 *   bug INSIDE_NO_BARRIER untouched     waiter checks before its count is visible
 *   bug CLOSER_NO_BARRIER closes        closer counts waiters before "closing" is visible
 *   bug DROPS_OTHERS      others_live   closer does not compare the timer's queue
 *   bug DROPS_ONCE        all_gone      closer does not repeat a lost compare-and-swap
 *   bug DROPS_BY_STORE    freed_once    closer decides to drop a timer, then stores
 *   bug NO_BELL           closes        closer waits for a pass without waking the owner
 *   bug RINGS_FIRST       closes        closer wakes the owner, then reads the pass
 *   bug NO_WAKE           closes        closer waits for waiters without waking them
 *   bug WAKE_FIRST        closes        closer wakes the waiters, then sets "closing"
 *   bug VERDICT_EARLY     closes        waiter reads "closing" before the eventcount
 *   bug PASS_UNTOLD       closes        owner wakes closers, then numbers the pass
 *   bug GONE_UNSAID       untouched     -DLATE "gone" not set before the wait
 *                                       In an earlier version of lib/, the closer did not set
 *                                       "gone" before it waited for the pass.
 *   bug LATE_LEFT         none_kept     -DLATE late expiries stay in the outbox
 *                                       In an earlier version of lib/, the owner could put an event
 *                                       into the outbox after the closer's walk over the slots. The
 *                                       event stayed in the outbox.
 *   bug GONE_NO_BARRIER   untouched     -DLATE closer reads the pass before "gone" is visible
 *   bug GONE_AFTER_PASS   untouched     -DLATE closer sets "gone" after the wait
 *   bug LATE_BEFORE_PASS  none_kept     -DLATE late expiries dropped too soon
 *                                       The closer takes late expiries out of the outbox before it
 *                                       waits for the pass.
 *   bug LATE_UNSEEN       untouched     -DLATE owner does not check whether the queue is gone
 *   bug LATE_KEPT         none_kept     -DLATE owner drops only the handle of a late expiry
 *   bug LATE_BY_STORE     freed_once    -DLATE owner finds a timer pending, then stores
 */
#define SLOTS 2

/*
 * A pair has a phase, a flag "due", and a generation. A timer of the first generation is on the
 * closing queue. A timer of the second generation is on another queue, except with -DLATE.
 */
#define FREE 0
#define ARMED 1
#define PENDING 2
#define PHASE(w) ((w) & 3)
#define DUE 4
#define LIFE(w) ((w) >> 3)
#ifdef LATE
#define OTHERS(w) false
#else
#define OTHERS(w) (LIFE(w) > 1)
#endif
#define PAIR(phase, life) ((phase) | DUE | ((life) << 3))
#define IS_DUE(w) (PHASE(w) == ARMED && ((w) & DUE))

byte pair[SLOTS];
bool is_free[SLOTS];
byte outbox[2 * SLOTS]; /* the handles in the outbox; each timer expires at most once */
#define HANDLE(slot, life) ((slot) | ((life) << 1))
#define SLOT_OF(handle) ((handle) & 1)
#define LIFE_OF(handle) ((handle) >> 1)
byte put, tail, head;

bool gone; /* true if the closer has freed the queue */
/* The queue's entry in the hub's table of queues: the queue, QUEUE_GONE, or empty. */
#define THERE 0
#define GONE 1
#define NOTHING 2
byte place;
bool gone_buffer;
bool closing, closing_buffer;
byte inside;
bool inside_buffer;
byte waiters, ticket;
bool waiter_blocked;

byte passes_begun;
byte pass_waiters;
bool closer_blocked;
bool advancing; /* with -DMANUAL: true if a thread is inside timerhub_advance() */
bool bell;
bool worker_out, closer_out;

bool untouched = true;
bool all_gone = true;
bool none_kept = true;
bool others_live = true;
bool freed_once = true;
bool closes = true;

proctype memory()
{
end:
	do
	:: atomic { closing_buffer -> closing = true; closing_buffer = false }
	:: atomic { gone_buffer -> place = GONE; gone_buffer = false }
#ifdef INSIDE_NO_BARRIER
	:: atomic { inside_buffer -> inside++; inside_buffer = false }
#endif
	od
}

/* touch() is called inside an atomic step, when a thread accesses the queue. */
inline touch()
{
	untouched = !gone;
	assert(untouched)
}

inline put_free(slot)
{
	freed_once = !is_free[slot];
	assert(freed_once);
	is_free[slot] = true
}

/* ---- owner ---- */

inline wake_closer()
{
	if
	:: pass_waiters > 0 -> closer_blocked = false
	:: else
	fi
}

inline begin_pass()
{
#ifdef MANUAL
	atomic { !advancing -> advancing = true }
#elif defined(PASS_UNTOLD)
	wake_closer();
	passes_begun++
#else
	passes_begun++;
	wake_closer()
#endif
}

inline end_pass()
{
#ifdef MANUAL
	advancing = false
#else
	skip
#endif
}

inline expire(slot)
{
	w = pair[slot];
	do
	:: IS_DUE(w) ->
		atomic {
			if
			:: pair[slot] == w -> pair[slot] = PAIR(PENDING, LIFE(w)); break
			:: else -> w = pair[slot]
			fi
		}
	:: else -> goto next
	od;
	/* Models owner_deliver(). */
#ifdef LATE_UNSEEN
	if
	:: OTHERS(w) -> goto next
	:: else
	fi;
#else
	if
	:: OTHERS(w) -> goto next
	:: !OTHERS(w) && place != THERE -> goto drop
	:: else
	fi;
#endif
	atomic { touch(); outbox[put] = HANDLE(slot, LIFE(w)); put++; goto next }
drop:
	/* Models owner_drop(). */
#ifndef LATE_KEPT
	w = pair[slot];
	do
	:: PHASE(w) != PENDING -> break
	:: else ->
		atomic {
			if
#ifdef LATE_BY_STORE
			:: true ->
#else
			:: pair[slot] == w ->
#endif
				pair[slot] = PAIR(FREE, LIFE(w));
				put_free(slot);
				break
			:: else -> w = pair[slot]
			fi
		}
	od;
#endif
next:
	w = 0
}

inline publish()
{
	if
	:: tail != put ->
		atomic { touch(); tail = put }
		atomic {
			touch();
			if
			:: waiters > 0 -> ticket++
			:: else -> goto told
			fi
		}
		waiter_blocked = false;
told:
		atomic { touch() }
	:: else
	fi
}

proctype owner()
{
	byte w;

	do
	::
		begin_pass();
#ifdef PASS_KEPT_OPEN
		publish();
#endif
		expire(0);
		expire(1);
#ifndef PASS_KEPT_OPEN
		publish();
#endif
		end_pass();
end:
		atomic {
			if
			:: bell -> bell = false
			:: IS_DUE(pair[0]) || IS_DUE(pair[1])
			fi
		}
	od
}

/* ---- callers ---- */

/*
 * The phase DROPPED marks the closer's calls of change(). A planted fault can thus affect these
 * calls and leave all other calls correct. For DROPPED, change() stores FREE.
 */
#define DROPPED 3
#ifdef DROPS_BY_STORE
#define STORES(to) (to == DROPPED)
#else
#define STORES(to) false
#endif
#ifdef DROPS_ONCE
#define LOST_RACE w = (to == DROPPED -> PAIR(FREE, 1) : pair[slot])
#else
#define LOST_RACE w = pair[slot]
#endif
#ifdef DROPS_OTHERS
#define NOT_MINE false
#else
#define NOT_MINE OTHERS(w)
#endif

/*
 * Models hub_cancel() and timer_rearm(). Also models how timerhub_queue_close() ends a timer. If
 * `spare` is true, the pair stays unchanged.
 */
inline change(slot, spare, to)
{
	w = pair[slot];
	do
	:: PHASE(w) == FREE || spare -> goto changed
	:: else ->
		atomic {
			if
			:: pair[slot] == w || STORES(to) ->
				others_live = !OTHERS(w);
				assert(others_live);
				pair[slot] = PAIR((to == ARMED -> ARMED : FREE), LIFE(w));
				pair[slot] = (to == ARMED -> pair[slot] & ~DUE : pair[slot]);
				break
			:: else -> LOST_RACE
			fi
		}
	od;
	if
	:: to != ARMED -> atomic { put_free(slot) }
	:: else
	fi;
changed:
	w = 0
}

proctype caller()
{
	byte w;

	if
	:: change(0, OTHERS(w), FREE)
	:: change(0, OTHERS(w), ARMED)
	fi
}

proctype armer()
{
endfull:
	if
	:: atomic { is_free[0] -> is_free[0] = false }
		pair[0] = PAIR(ARMED, 2)
	:: atomic { is_free[1] -> is_free[1] = false }
		pair[1] = PAIR(ARMED, 2)
	fi
}

/* ---- worker ---- */

/* Models outbox_take() of one handle, and timer_deliver_one_shot(). */
inline queue_take()
{
	do
	:: atomic {
		touch();
		if
		:: head < tail -> handle = outbox[head]; slot = SLOT_OF(handle); head++
		:: else -> break
		fi }
		w = pair[slot];
		if
		:: PHASE(w) == PENDING && LIFE(w) == LIFE_OF(handle) ->
			atomic {
				if
				:: pair[slot] == w -> pair[slot] = PAIR(FREE, LIFE(w)); got = true
				:: else
				fi
			}
			if
			:: got -> atomic { put_free(slot) }; break
			:: else
			fi
		:: else
		fi;
	od;
	atomic { w = 0; slot = 0; handle = 0 }
}

inline queue_block()
{
	atomic { touch(); waiters++ }
#ifdef VERDICT_EARLY
	verdict = closing;
#endif
	atomic { touch(); number = ticket }
	atomic { touch(); nothing = (head >= tail) }
#ifndef VERDICT_EARLY
	verdict = closing;
#endif
	if
	:: nothing && !verdict ->
		atomic {
			touch();
			if
			:: ticket == number -> waiter_blocked = true
			:: else
			fi
		}
endwait:
		!waiter_blocked
	:: else
	fi;
	atomic { touch(); waiters--; number = 0; nothing = false; verdict = false }
}

proctype worker()
{
	byte w, slot, handle, number;
	bool got, nothing, verdict;

	do
	::
#ifdef INSIDE_LATE
		if
		:: closing -> break
		:: else -> inside++
		fi;
#elif defined(INSIDE_NO_BARRIER)
		inside_buffer = true;
		if
		:: closing -> atomic { !inside_buffer -> inside-- }; break
		:: else -> !inside_buffer
		fi;
#else
		inside++;
		if
		:: closing -> inside--; break
		:: else
		fi;
#endif
		/* queue_wait() repeats until it has an event or the queue is closing. */
		do
		:: closing -> break
		:: !closing ->
			queue_take();
			if
			:: got -> got = false; break
			:: else
			fi;
			queue_block()
		od;
		atomic { touch(); inside-- }
	od;
	worker_out = true
}

/* ---- closer ---- */

/* Models notifier_wake(). */
inline send_away()
{
#ifndef NO_WAKE
	atomic { !closing_buffer -> ticket++ }
	waiter_blocked = false
#else
	skip
#endif
}

/* Models owner_wait_pass(), after it has read the number of the pass. */
inline wait_pass()
{
	atomic { !gone_buffer -> pass_waiters++ }
#if !defined(NO_BELL) && !defined(RINGS_FIRST)
	bell = true;
#endif
	do
	:: atomic {
		if
		:: passes_begun == begun -> closer_blocked = true
		:: else -> break
		fi }
		!closer_blocked
	od;
	pass_waiters--
}

/* Models queue_drop_late_expiries(). */
inline drop_late()
{
	do
	:: atomic {
		if
		:: head < tail -> handle = outbox[head]; slot = SLOT_OF(handle); head++
		:: else -> break
		fi }
		change(slot, LIFE(w) != LIFE_OF(handle), DROPPED)
	od;
	atomic { slot = 0; handle = 0 }
}

proctype closer()
{
	byte w, begun, slot, handle;

#ifdef WAKE_FIRST
	if
	:: inside > 0 -> send_away()
	:: else
	fi;
#endif
	closing_buffer = true;
#ifndef CLOSER_NO_BARRIER
	!closing_buffer;
#endif
	if
	:: inside > 0 ->
#ifndef WAKE_FIRST
		send_away();
#endif
		inside == 0
	:: else
	fi;
	!closing_buffer; /* locked instructions follow, so the store buffer must be empty */
#ifdef PASS_BEFORE_DROP
	begun = passes_begun;
#endif
	change(0, NOT_MINE, DROPPED);
	change(1, NOT_MINE, DROPPED);
#if !defined(GONE_UNSAID) && !defined(GONE_AFTER_PASS)
	gone_buffer = true;
#endif
#ifdef LATE_BEFORE_PASS
	drop_late();
#endif
#ifdef NO_PASS
	skip;
#elif defined(MANUAL)
	atomic { !gone_buffer && !advancing -> advancing = true }
	advancing = false;
#else
#ifdef RINGS_FIRST
	bell = true;
#endif
#if defined(GONE_NO_BARRIER)
	begun = passes_begun;
#elif !defined(PASS_BEFORE_DROP)
	atomic { !gone_buffer -> begun = passes_begun }
#endif
	wait_pass();
#endif
#ifdef GONE_AFTER_PASS
	place = GONE;
#endif
#if !defined(LATE_LEFT) && !defined(LATE_BEFORE_PASS)
	drop_late();
#endif
	atomic { !gone_buffer -> place = NOTHING }
	atomic {
		gone = true;
		all_gone = !((PHASE(pair[0]) != FREE && LIFE(pair[0]) == 1) ||
			(PHASE(pair[1]) != FREE && LIFE(pair[1]) == 1));
		assert(all_gone);
		closer_out = true
	}
}

proctype judge()
{
	timeout;
	closes = closer_out && worker_out;
	assert(closes);
	none_kept = !((PHASE(pair[0]) == PENDING && !OTHERS(pair[0])) ||
		(PHASE(pair[1]) == PENDING && !OTHERS(pair[1])));
	assert(none_kept)
}

init {
	atomic {
		pair[0] = PAIR(ARMED, 1);
		pair[1] = PAIR(ARMED, 1);
		run memory();
		run owner();
		run worker();
		run caller();
		run armer();
		run closer();
		run judge()
	}
}
