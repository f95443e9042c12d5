/* SPDX-License-Identifier: MIT */
/*
 * The state word and the aux word beside it: expire, cancel, re-arm, deliver, recycle.
 *
 * One slot that lives twice; one caller who re-arms or cancels, one who does so and then arms the
 * slot anew; the owner; two consumers; the clock.
 *
 * A deadline is a unit in the state word and, if it lies half a unit earlier, a note of that in the
 * aux word. One-shots have such deadlines, and with -DINTERVAL=1 (of half a unit) periodic timers,
 * that live once, with -DAGAIN so that one may be delivered by two at a time; with -DINTERVAL=2
 * periodic ones live twice, and have whole units. With -DLOWS=2 one-shots move on and on, and every
 * second unit looks alike to the aux word; with -DLOWS=1 periodic timers, and every one does (with
 * -DNO_CHANGER long enough to expire twice, and left alone). With -DKEPT=3 one-shots are kept: they
 * idle once they are delivered, until they are re-armed; with -DKEPT=2 that of the second life is.
 *
 * Left out: the ring (the slot is in it or not: inbox.pml), wakes (the owner comes by itself:
 * promise.pml), the outbox's cells and the notifier (notifier.pml), slack, clocks that go back.
 * Word and aux word are read at once but where a consumer reads them of a periodic timer with
 * halves: if the word has changed in between, the compare-and-swap fails, or the owner is told to
 * look anew. Where no deadline has a half nobody compares the aux word, and the count of moves in
 * it stands still. Not promised, and out of reach of the clock here: if two consumers deliver one
 * expiry, of which one holds a handle from before a re-arm, the next period may be told rounded up
 * to the unit, and the phase with it (with -DAGAIN and LAST 5 Spin shows how).
 *
 * The tag has as many values as in lib/, too many to come round here. With -DTAGS=1 -DNO_REARM it
 * has one only, so that a word comes back all the time, and hub_hit() and hub_undo() must make up
 * for it. They do so for one-shots that are cancelled and delivered: who has freed a slot has it
 * for himself. Who has re-armed a later life, or a periodic one's delivery that has, may be too
 * late to make that good (eight steps of the tag, to the very same deadline, between two
 * instructions); what is promised then is that no cancelled timer is returned. A delivery that has
 * made a later life idle makes it good, unless that life is over by then.
 *
 * Models:
 *   lib/submit.c  hub_arm_slot() timerhub_rearm() hub_rearmed_other() hub_rearm() hub_cancel()
 *                 hub_look() hub_push() hub_undo() hot_forget_residue() word_maybe_filed()
 *   lib/hub.h     hub_hit()
 *   lib/owner.c   owner_look_at() owner_expire_slot() owner_file_next_period() owner_deliver()
 *   lib/consume.c delivery_read() deliver() deliver_one_shot() deliver_periodic() deliver_rearm()
 *                 delivery_change_aux() delivery_write_aux() deliver_confirm()
 *                 deliver_later_life() word_was_parked()
 *   lib/timer.h   timer_is() word_armed() word_touched() word_looked_at() word_rearmed()
 *                 word_moved() word_with_phase() word_idles() word_idle() word_undelivered()
 *                 word_restored() aux_make() aux_speaks_of() aux_rounded()
 *                 aux_touched() aux_forgotten() aux_next() aux_ahead() aux_arrived()
 *                 timer_deadline_ns()
 *
 * Laws:
 *   exactly_once  who delivers, cancels or re-arms a timer finds it alive, and there is one end
 *   never_early   what is delivered is due, at the deadline last asked for (laws 1 and 4)
 *   in_phase      the deadline told is the one asked for, to the half unit, unless read while a
 *                 re-arm was under way; at rest it reads so
 *   own_data      what is delivered, or shown, is what its armer gave
 *   honest        -ENOENT is told of dead timers only (law 3)
 *   idle_told     a re-arm tells whether the timer had idled; at rest the word says so
 *   not_lost      when all has come to rest, no timer alive is due, and those to come are filed
 *   once_inside   a slot whose push is confirmed is pushed no more
 *   freed_once    no slot is put back twice
 *
 *   true
 *   true -DINTERVAL=2
 *   true -DINTERVAL=1
 *   true -DINTERVAL=1 -DAGAIN -DCOUNTS=8
 *   true -DINTERVAL=1 -DAGAIN -DCOUNTS=8 -DLOWS=1
 *   true -DINTERVAL=1 -DLOWS=1 -DNO_CHANGER
 *   true -DLOWS=2
 *   true -DTAGS=1 -DNO_REARM
 *   true -DLOOKER -DNO_REARM -DNO_CHANGER
 *   true -DKEPT=3
 *   true -DKEPT=2 -DTAGS=1 -DNO_REARM
 *   true -DKEPT=3 -DTAGS=1 -DNO_REARM
 *   bug NO_HIT             not_lost      -DTAGS=1 -DNO_REARM cancel trusts its compare-and-swap
 *   bug UNDONE_UNTOLD      not_lost      -DTAGS=1 -DNO_REARM what is made good is not pushed
 *   bug NO_LATER_LIFE      own_data      -DTAGS=1 -DNO_REARM delivery trusts its own
 *   bug EXPIRES_UNREAD     not_lost      -DTAGS=1 -DNO_REARM the owner trusts its own
 *   bug LOOKED_ONCE        own_data      -DLOOKER -DNO_REARM -DNO_CHANGER there is no second look
 *   bug KEPT_ENDS          idle_told     -DKEPT=3 a kept timer that is delivered is no more
 *   bug IDLE_DELIVERED     exactly_once  -DKEPT=3 a second handle of one expiry is delivered too
 *   bug IDLE_UNPUSHED      not_lost      -DKEPT=3 a re-arm of an idle timer claims no push
 *   bug IDLE_BY_PHASE      idle_told     -DKEPT=3 what is delivered keeps its deadline
 *   bug IDLE_LEFT_KNOWN    never_early   -DKEPT=3 a re-arm of an idle timer forgets no half
 *   bug IDLE_RESTORED      idle_told     -DKEPT=3 -DTAGS=1 -DNO_REARM an idle timer is made good as
 *                                       an armed one
 *   bug KEPT_LATER_LIFE    exactly_once  -DKEPT=2 -DTAGS=1 -DNO_REARM a later life that is kept is
 *                                       delivered as a one-shot
 *   bug NO_GENERATION      exactly_once  the handle's generation is not compared
 *   bug NO_TAG             exactly_once  the tag does not move on with a new life
 *   bug NO_TAG_LOOK        not_lost      -DINTERVAL=2 -DREARMED_ALIKE nor with the owner's look,
 *                                       nor with a re-arm
 *   bug CANCEL_BY_STORE    exactly_once  cancel decides, then stores
 *   bug DELIVER_BY_STORE   not_lost      delivery decides, then stores
 *   bug AUX_AFTER_WORD     not_lost      arm publishes the word before the generation
 *   bug DATA_AFTER_WORD    own_data      arm publishes the word before what the caller gave
 *   bug REARM_PENDING_LAZY not_lost      an expired timer moved later is not put into the inbox
 *   bug EXPIRE_GIVES_UP    not_lost      the owner's lost compare-and-swap is not tried again
 *   bug EXPIRE_BY_STORE    never_early   the owner decides, then stores
 *   bug EXPIRE_UNSEEN      never_early   the owner goes by the instant that it filed
 *   bug LOST_IS_DEAD       honest        a lost compare-and-swap is taken for the timer's end
 *   bug PUSHED_ANYWAY      once_inside   arm does not go by the push that is confirmed
 *   bug FREED_TWICE        freed_once    cancel frees the slot even if it lost the race
 *   bug PARKED_NOT_PUSHED  not_lost      -DINTERVAL=2 a parked one, delivered, is not refiled
 *   bug PARK_BY_STORE      not_lost      -DINTERVAL=2 the owner parks without comparing
 *   bug PARKED_GIVES_UP    not_lost      -DINTERVAL=2 a delivery that finds it parked gives up
 *   bug REARMED_ALIKE      never_early   a re-arm within the unit leaves the word as it was
 *   bug PLAIN_IN_UNIT      never_early   so does a plain one, beside another that has forgotten
 *   bug LEFT_UNSEEN        never_early   -DLOWS=2 a plain one leaves the half whatever it speaks of
 *   bug NO_TOUCH           never_early   -DINTERVAL=1 the next half is written, no touch before
 *   bug MOVES_ANEW         never_early   -DINTERVAL=1 the count of moves is taken from the aux word
 *                                       as it is when written, not as the deadline was read
 *   bug FORGOTTEN_ALIKE    never_early   -DINTERVAL=1 a re-arm with nothing to forget moves nothing
 *   bug NEXT_AT_ONCE       never_early   -DINTERVAL=1 -DAGAIN -DCOUNTS=8 -DLOWS=1 the next half is
 *                                       written at once, though it speaks of this unit too
 *   bug NOT_ARRIVED        in_phase      -DINTERVAL=1 -DLOWS=1 -DNO_CHANGER the owner expires it
 *                                       while the half is still ahead
 *   bug NEXT_ALIKE         in_phase      -DINTERVAL=1 -DAGAIN -DCOUNTS=8 nor does a delivery
 *   bug PUT_BACK_ROUNDED   in_phase      -DINTERVAL=1 -DAGAIN -DCOUNTS=8 who loses puts none back
 */
/* Instants, in halves of the word's unit: an odd one is known to the nanosecond by the aux word. */
#define NEVER 15
#ifndef INTERVAL
#define INTERVAL 0
#endif
#define LIVES 2
/* How the clock goes on; the first deadline, and what the two callers move it to. */
#if INTERVAL == 0 && defined(LOWS)
#define LAST 5
#define TICK 1
#define FIRST 1
#define MOVED 4
#define MOVED_BY_ARMER 6
#elif INTERVAL == 0
#define LAST 3
#define TICK 1
#define FIRST 3
#define MOVED 2
#define MOVED_BY_ARMER 4
#elif INTERVAL == 1
#define TICK 1
#ifdef AGAIN
#define LAST 4
#define FIRST 3
#define BEGIN FIRST
#else
#define LAST 3
#define FIRST 2
#endif
#define MOVED 4
#else
#define LAST 4
#define TICK 2
#define FIRST 2
#define MOVED 2
#define MOVED_BY_ARMER 0
#endif
#define OUTBOX 6

/* A state word: phase, flags, deadline in units, tag. */
#define FREE 0
#define ARMED 1
#define PENDING 2
#define PARKED 3
#define PHASE(x) ((x) & 3)
#define INBOX 4
#define PUSHED 8
#define FLAGS (INBOX | PUSHED)
#define UNITS(x) (((x) >> 4) & 7)
#define TAG(x) ((x) >> 7)
#ifndef TAGS
#define TAGS 8
#endif
#define UNITS_FROM(instant) (((instant) + 1) >> 1)
#define WORD(phase, units, tag) ((phase) | ((units) << 4) | ((tag) << 7))
#define TOUCHED(x) (((x) & 127) | (NEXT_TAG(x) << 7))
#define NEXT_TAG(x) ((TAG(x) + 1) % TAGS)
#define WITH_PHASE(x, phase) (((x) & ~3) | (phase))
#define REARMED(x, units) (((x) & ~(3 | 7 << 4)) | ((units) << 4) | ARMED)

/* Parked, for never: a kept timer that has been delivered. */
#define UNITS_NEVER 7
#define IDLE (PARKED | UNITS_NEVER << 4)
#ifdef IDLE_BY_PHASE
#define IDLES(x) (PHASE(x) == PARKED && UNITS(x) == UNITS_NEVER)
#define MADE_IDLE(x) ((x) | PARKED)
#else
#define IDLES(x) (((x) & IDLE) == IDLE)
#define MADE_IDLE(x) ((x) | IDLE)
#endif
#ifndef KEPT
#define IS_KEPT(life) false
#elif KEPT == 2
#define IS_KEPT(life) ((life) == 2)
#else
#define IS_KEPT(life) true
#endif
#if defined(KEPT) && !defined(IDLE_RESTORED)
#define RESTORED(x, before) \
	(IDLES(before) -> MADE_IDLE(x) | INBOX : REARMED(x, UNITS(before)) | INBOX)
#else
#define RESTORED(x, before) (REARMED(x, UNITS(before)) | INBOX)
#endif

#define WAS_PARKED(before, now) \
	(PHASE(now) == PARKED && ((now) & ~(3 | INBOX)) == ((before) & ~(3 | INBOX)))

/* An aux word: the life, the moves of a periodic timer, and the unit that the deadline lies half a
 * unit before the end of (0: none). */
#define AUX(life, moves, known) (((life) << 7) | ((moves) << 3) | (known))
#define LIFE(aux) ((aux) >> 7)
#define MOVES(aux) (((aux) >> 3) & 15)
#ifndef COUNTS
#define COUNTS 16
#endif
#define MORE_MOVES(aux) ((MOVES(aux) + 1) % COUNTS)
#define KNOWN(aux) ((aux) & 7)
#define KNOWN_OF(instant) ((instant) & 1 -> UNITS_FROM(instant) : 0)
/* Of the unit the aux word has a few low bits. */
#ifndef LOWS
#define LOWS 8
#endif
#define LOW(aux) (KNOWN(aux) & 3)
#define SPEAKS_OF(aux, units) (LOW(aux) > 0 && LOW(aux) % LOWS == (units) % LOWS)
/* aux_ahead(): it speaks of an armed word only. */
#define AHEAD 4
#define SPEAKS_NOW(x, aux) (SPEAKS_OF(aux, UNITS(x)) && (!((aux) & AHEAD) || PHASE(x) == ARMED))
#define ARRIVED(aux) AUX(LIFE(aux), MORE_MOVES(aux), LOW(aux))
/* timer_deadline_ns() */
#ifdef KEPT
#define DEADLINE(x, aux) (UNITS(x) == UNITS_NEVER -> NEVER : 2 * UNITS(x) - SPEAKS_NOW(x, aux))
#else
#define DEADLINE(x, aux) (2 * UNITS(x) - SPEAKS_NOW(x, aux))
#endif
#define NEXT_PERIOD(due, time) \
	((due) + (((time) > (due) -> (time) - (due) : 0) / INTERVAL + 1) * INTERVAL)

#ifdef NO_GENERATION
#define TIMER_IS(x, aux, handle) (PHASE(x) != FREE)
#define HIT(handle) true
#else
#define HIT(handle) (LIFE(aux) == (handle))
#define TIMER_IS(x, aux, handle) (PHASE(x) != FREE && LIFE(aux) == (handle))
#endif

short word;
short aux;
byte data;
bool is_free;
byte in_ring;
byte filed;
byte outbox[OUTBOX];
byte outbox_count;
#ifndef BEGIN
#define BEGIN (FIRST - TICK)
#endif
byte now = BEGIN;
byte known = 1; /* the newest handle that has been told */

/* What the laws say of each life. NEVER is asked of a kept one that idles, and of no other. */
bool alive[LIVES + 1];
byte asked[LIVES + 1];

byte undoing; /* who has changed a life that was not meant, and is about to make it good */
byte moving;  /* who has forgotten the half of a deadline, and is about to move it */

bool exactly_once = true;
bool never_early = true;
bool in_phase = true;
bool own_data = true;
bool honest = true;
bool idle_told = true;
bool not_lost = true;
bool once_inside = true;
bool freed_once = true;

/* All of these inside an atomic. */
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

inline check_event(handle)
{
	never_early = (asked[handle] <= now && asked[handle] <= due);
	assert(never_early);
	in_phase = (asked[handle] == due || rough);
	assert(in_phase);
	own_data = (event_data == handle);
	assert(own_data)
}

inline put_inside()
{
	once_inside = !(n & PUSHED);
	assert(once_inside);
	in_ring++
}

/* hub_push(): `n` is what the word was left as. */
inline submit()
{
	atomic { put_inside() }
	atomic {
		if
		:: word == n -> word = n | PUSHED
		:: else
		fi;
		n = 0
	}
}

/* hub_undo(), if we were `wrong`; if not, the life that we hit has ended since, as it may. */
#define THEIRS(x) (FLAGS | (PHASE(x) == FREE -> 31 << 7 : 0))
inline undo(before)
{
	atomic {
		if
		:: (word ^ n) & ~THEIRS(n) ->
#ifdef KEPT
			/* A timer that we made idle may be cancelled by then. */
			exactly_once = (!wrong || (IDLES(n) && !alive[LIFE(aux)]));
			undoing = undoing - wrong;
#else
			exactly_once = !wrong;
#endif
			assert(exactly_once);
			push = push && (n & INBOX)
		:: else ->
			exactly_once = wrong;
			assert(exactly_once);
			undoing--;
#ifdef UNDONE_UNTOLD
			push = false;
			n = REARMED(word, UNITS(before)) | (word & FLAGS);
#else
			push = !(word & PUSHED);
			n = RESTORED(word, before);
#endif
			word = n
		fi;
		wrong = false;
		handle = 0;
		before = 0;
		n = (push -> n : 0)
	}
}

/* Re-arming: what is known of the old deadline's half unit is forgotten, before it moves. */
inline forget()
{
	moving = moving + !begun;
	begun = true;
#if INTERVAL == 0 || defined(FORGOTTEN_ALIKE)
	aux = (HIT(handle) -> aux & ~7 : aux)
#else
		aux = (HIT(handle) -> AUX(LIFE(aux), MORE_MOVES(aux), 0) : aux)
#endif
}

#define WITHOUT_KNOWN(aux) ((aux) & ~7)
#ifdef LEFT_UNSEEN
#define MUST_FORGET(units) false
#else
#define MUST_FORGET(units) SPEAKS_OF(aux, units)
#endif

#ifdef PLAIN_IN_UNIT
#define LATER(x) (UNITS(x) <= UNITS_FROM(deadline))
#else
#define LATER(x) (UNITS(x) < UNITS_FROM(deadline))
#endif

inline change(moved)
{
	atomic {
		if
		:: handle = 1
		:: known > 1 -> handle = known
		fi;
		if
#ifndef NO_REARM
		:: deadline = moved
#endif
#ifndef AGAIN
		:: deadline = 0 /* cancel */
#endif
		fi;
		if
		:: deadline == 0 || INTERVAL > 0 -> goto anyhow
		:: else
		fi
	}
	/* timerhub_rearm(): the plain case */
	atomic {
		w = word;
		if
		:: WITHOUT_KNOWN(aux) == AUX(handle, 0, 0) && !MUST_FORGET(UNITS_FROM(deadline)) &&
		   PHASE(w) == ARMED && LATER(w)
		:: else -> w = 0; goto anyhow
		fi
	}
	atomic {
		if
		:: word == w ->
			n = REARMED(w, UNITS_FROM(deadline));
			word = n;
			goto landed
		:: else -> w = 0
		fi
	}
anyhow:
	do
	:: atomic {
		w = word;
		if
		:: !TIMER_IS(w, aux, handle) ->
			honest = !alive[handle] || undoing > 0;
			assert(honest);
			goto missed
#ifdef IDLE_LEFT_KNOWN
		:: deadline > 0 && TIMER_IS(w, aux, handle) && KNOWN(aux) > 0 && !IDLES(w)
#else
		:: deadline > 0 && TIMER_IS(w, aux, handle) && (INTERVAL == 1 || KNOWN(aux) > 0)
#endif
		:: else -> goto forgotten
		fi }
	   atomic { forget() }
forgotten:
	   atomic {
		if
#ifdef CANCEL_BY_STORE
		:: word == w || deadline == 0 ->
#else
		:: word == w ->
#endif
			if
			:: deadline == 0 ->
				n = WITH_PHASE(w, FREE);
				push = (PHASE(w) == ARMED || (PHASE(w) == PENDING && INTERVAL > 0))
			:: else ->
#ifdef REARMED_ALIKE
				n = REARMED(w, UNITS_FROM(deadline));
#else
				n = REARMED(TOUCHED(w), UNITS_FROM(deadline));
#endif
#if defined(REARM_PENDING_LAZY)
				push = UNITS(n) < UNITS(w)
#elif defined(IDLE_UNPUSHED)
				push = !IDLES(w) && (PHASE(w) != ARMED || UNITS(n) < UNITS(w))
#else
				push = (PHASE(w) != ARMED || UNITS(n) < UNITS(w))
#endif
			fi;
			n = (push -> n | INBOX : n);
			push = push && !(w & INBOX);
			word = n;
landed:
			if
			:: HIT(handle) ->
				must_live(handle);
#ifdef KEPT
				idle_told = (deadline == 0 ||
					     IDLES(w) == (asked[handle] == NEVER));
				assert(idle_told);
#endif
				asked[handle] = deadline;
				alive[handle] = (deadline > 0)
			:: else -> wrong = true; undoing++
			fi;
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
	if
#ifdef NO_HIT
	:: atomic { true -> w = 0; handle = 0; n = (push -> n : 0) }
#else
	:: atomic { HIT(handle) -> w = 0; handle = 0; n = (push -> n : 0) }
	:: else -> undo(w); goto undone
#endif
	fi;
	if
	:: push -> submit()
	:: else
	fi;
	if
	:: deadline == 0 -> atomic { put_free() }
	:: else
	fi;
	goto changed;
undone:
	if
	:: push -> submit()
	:: else
	fi;
	goto changed;
missed:
#ifdef FREED_TWICE
	if
	:: deadline == 0 -> atomic { put_free() }
	:: else
	fi;
#endif
	skip;
changed:
	atomic {
		moving = moving - begun;
		begun = false;
		w = 0;
		n = 0;
		handle = 0;
		deadline = 0;
		push = false;
		wrong = false
	}
}

proctype changer()
{
	short w, n;
	byte handle, deadline;
	bool push, wrong, begun;

	change(MOVED)
}

#if INTERVAL != 1
proctype armer()
{
	short w, n;
	byte handle, deadline;
	bool push, wrong, begun;

	change(MOVED_BY_ARMER);
endfull:
	atomic {
		is_free -> is_free = false;
		handle = LIFE(aux) + 1;
		if
		:: deadline = FIRST
		:: INTERVAL == 0 -> deadline = MOVED
		fi
	}
	/* Nobody reads one of these without the other. */
	atomic {
#ifndef DATA_AFTER_WORD
		data = handle;
#endif
#ifndef AUX_AFTER_WORD
		aux = AUX(handle, 0, KNOWN_OF(deadline));
#endif
		w = word
	}
	do
	:: atomic {
		if
		:: word == w ->
#ifdef NO_TAG
			n = WORD(ARMED, UNITS_FROM(deadline), TAG(w)) | (w & PUSHED) | INBOX;
#else
			n = WORD(ARMED, UNITS_FROM(deadline), NEXT_TAG(w)) | (w & PUSHED) | INBOX;
#endif
			word = n;
			alive[handle] = true;
			asked[handle] = deadline;
			known = handle;
			break
		:: else -> w = word
		fi }
	od;
#ifdef AUX_AFTER_WORD
	aux = AUX(handle, 0, KNOWN_OF(deadline));
#endif
#ifdef DATA_AFTER_WORD
	data = handle;
#endif
	if
#ifdef PUSHED_ANYWAY
	:: true -> submit()
#else
	:: !(w & PUSHED) -> submit()
	:: else
#endif
	fi;
	atomic { w = 0; n = 0; handle = 0; deadline = 0 }
}
#endif

proctype owner()
{
	short w, seen;
	byte time;

end:
	do
	:: atomic {
		/* owner_look_at() */
		in_ring > 0 ->
		in_ring--;
		w = word;
#ifdef NO_TAG_LOOK
		word = w & ~FLAGS;
#else
		word = TOUCHED(w) & ~FLAGS;
#endif
		if
		:: PHASE(w) == FREE -> filed = NEVER
		:: PHASE(w) == ARMED -> filed = DEADLINE(w, aux)
		:: else
		fi;
		w = 0 }
	:: atomic { filed <= now -> filed = NEVER; time = now }
		/* owner_expire_slot() */
again:
		do
		:: atomic {
			w = word;
			seen = aux;
#ifndef EXPIRE_UNSEEN
			if
			:: PHASE(w) == ARMED && DEADLINE(w, seen) > time ->
				filed = DEADLINE(w, seen);
				goto next
			:: else
			fi;
#endif
			if
			:: PHASE(w) == FREE || PHASE(w) == PARKED -> goto next
			:: PHASE(w) == PENDING && INTERVAL == 0 -> goto next
			:: else
			fi;
#ifndef NOT_ARRIVED
			if
			:: PHASE(w) == ARMED && (seen & AHEAD) -> goto arrive
			:: else
			fi
#endif
			}
		   if
		   :: PHASE(w) == PENDING ->
			atomic {
				if
#ifdef PARK_BY_STORE
				:: true -> word = WITH_PHASE(w, PARKED); goto next
#else
				:: word == w -> word = WITH_PHASE(w, PARKED); goto next
#endif
				:: else
				fi
			}
		   :: else ->
			atomic {
				if
#ifdef EXPIRE_BY_STORE
				:: true ->
#else
				:: word == w ->
#endif
					word = WITH_PHASE(w, PENDING);
					break
#ifdef EXPIRE_GIVES_UP
				:: else -> goto next
#else
				:: else
#endif
				fi
			}
		   fi
		od;
		if
#ifdef EXPIRES_UNREAD
		:: atomic { true ->
#else
		:: atomic { HIT(LIFE(seen)) ->
#endif
			outbox[outbox_count] = LIFE(seen);
			outbox_count++;
#if INTERVAL > 0
			filed = NEXT_PERIOD(DEADLINE(w, seen), time);
#endif
			goto next }
		:: else ->
			atomic {
				if
				:: word == WITH_PHASE(w, PENDING) -> word = w
				:: else
				fi;
				goto again
			}
		fi;
next:
		atomic { w = 0; seen = 0; time = 0; goto over }
arrive:
		atomic {
			if
			:: aux == seen -> aux = ARRIVED(seen)
			:: else
			fi;
			goto again
		}
over:
		skip
	od
}

/* Once more, from delivery_read() on: the word has been loaded anew. */
proctype consumer()
{
	short w, n, a, own;
	byte handle, event_data, due, fresh;
	bool push, wrong, rough;

end:
	do
	:: atomic {
		outbox_count > 0 ->
		handle = outbox[0];
		outbox[0] = outbox[1];
		outbox[1] = outbox[2];
		outbox[2] = outbox[3];
		outbox[3] = outbox[4];
		outbox[4] = outbox[5];
		outbox[5] = 0;
		outbox_count-- }
#if INTERVAL == 0
read:
		atomic {
			w = word;
			if
#ifdef IDLE_DELIVERED
			:: !TIMER_IS(w, aux, handle) || PHASE(w) == ARMED -> goto done
#else
			:: !TIMER_IS(w, aux, handle) || PHASE(w) == ARMED || IDLES(w) -> goto done
#endif
			:: else
			fi;
			event_data = data;
			due = DEADLINE(w, aux);
			rough = (moving > 0)
		}
		atomic {
			if
#ifdef DELIVER_BY_STORE
			:: true ->
#else
			:: word == w ->
#endif
#ifdef KEPT
#ifdef KEPT_ENDS
				n = WITH_PHASE(w, FREE);
#else
				n = (IS_KEPT(handle) -> MADE_IDLE(w) : WITH_PHASE(w, FREE));
#endif
				word = n;
				if
				:: IS_KEPT(handle) && HIT(handle) ->
					must_live(handle);
					exactly_once = (asked[handle] != NEVER);
					assert(exactly_once);
					check_event(handle);
					asked[handle] = NEVER;
					goto done
#ifdef KEPT_LATER_LIFE
				:: !HIT(handle) && IS_KEPT(handle) ->
#else
				:: !HIT(handle) && (IS_KEPT(handle) || IS_KEPT(LIFE(aux))) ->
#endif
					wrong = true;
					undoing++
				:: else ->
					n = 0;
					must_live(LIFE(aux));
					exactly_once = !IS_KEPT(LIFE(aux));
					assert(exactly_once);
					alive[LIFE(aux)] = false
				fi
#else
				word = WITH_PHASE(w, FREE);
				must_live(LIFE(aux));
				alive[LIFE(aux)] = false
#endif
			:: else -> goto read
			fi
		}
#ifdef KEPT
		if
		:: wrong ->
			undo(w);
			if
			:: push -> submit()
			:: else
			fi;
			goto done
		:: else
		fi;
#endif
		if
#ifdef NO_LATER_LIFE
		:: true
#else
		:: HIT(handle)
		:: else ->
			/* deliver_later_life() */
			atomic { event_data = data; due = DEADLINE(w, aux); rough = (moving > 0) }
#endif
		fi;
		atomic { check_event(LIFE(aux)); put_free() }
#else
read:
#if INTERVAL == 1
		w = word;
#endif
read_on:
		atomic {
#if INTERVAL != 1
			w = word;
#endif
			a = aux;
			if
			:: !TIMER_IS(w, a, handle) || PHASE(w) == ARMED -> goto done
			:: else
			fi;
			event_data = data;
			due = DEADLINE(w, a);
			rough = (moving > 0);
			fresh = NEXT_PERIOD(due, now);
			/* aux_next() */
			if
			:: INTERVAL % 2 == 0 && KNOWN(a) == 0 -> goto written
			:: else
			fi;
#ifdef NEXT_ALIKE
			own = AUX(LIFE(a), MOVES(a), KNOWN_OF(fresh));
#else
			own = AUX(LIFE(a), MORE_MOVES(a), KNOWN_OF(fresh));
#endif
#ifndef NEXT_AT_ONCE
			if
			:: DEADLINE(w, own) < due -> own = own | AHEAD
			:: else
			fi;
#endif
#ifdef NO_TOUCH
			goto touched
#else
			if
			:: KNOWN(own) > 0
			:: else -> goto touched
			fi
#endif
		}
		/* delivery_write_aux() */
		atomic {
			if
			:: word == w -> word = TOUCHED(w); w = word
			:: else -> w = word; own = 0; goto read_on
			fi
		}
touched:
		atomic {
			if
#ifdef MOVES_ANEW
			:: LIFE(aux) == LIFE(a) ->
				a = aux;
				own = AUX(LIFE(a), MORE_MOVES(a), KNOWN(own));
#else
			:: aux == a ->
#endif
				aux = own
			:: else -> own = 0; goto read
			fi
		}
written:
		do
		:: atomic {
			n = REARMED(w, UNITS_FROM(fresh));
#ifndef PARKED_NOT_PUSHED
			n = (PHASE(w) == PARKED -> n | INBOX : n);
#endif
			if
			:: word == w ->
				word = n;
				push = (n & INBOX) && !(w & INBOX);
				must_live(handle);
				check_event(handle);
				asked[handle] = fresh;
				event_data = 0;
				due = 0;
				rough = false;
				fresh = 0;
				own = (own & AHEAD -> own : 0);
				a = 0;
				break
#ifdef PARKED_GIVES_UP
			:: word != w -> goto done
#else
			:: word != w && WAS_PARKED(w, word) ->
				w = word
			:: word != w && !WAS_PARKED(w, word) ->
				n = 0;
				w = word;
				goto unsaid
#endif
			fi }
		od;
		/* deliver_confirm(): if it has been cancelled since, it is not returned. */
		if
		:: atomic { HIT(handle) -> handle = 0; w = 0; n = (push -> n : 0) }
		:: else -> undo(w)
		fi;
		if
		:: push -> submit()
		:: else
		fi;
		atomic {
			if
			:: own != 0 && aux == own -> aux = ARRIVED(own)
			:: else
			fi;
			goto done
		}
unsaid:
		/* That deadline does not come to be: what was there is put back. */
		atomic {
			if
			:: own == 0 || aux != own
#ifdef PUT_BACK_ROUNDED
			:: own != 0 && aux == own -> aux = a & ~7
#else
			:: own != 0 && aux == own -> aux = a
#endif
			fi;
			a = 0;
			own = 0;
			goto read_on
		}
#endif
done:
		atomic {
			w = 0;
			n = 0;
			handle = 0;
			event_data = 0;
			due = 0;
			fresh = 0;
			rough = false;
			push = false;
#if INTERVAL > 0
			a = 0;
			own = 0
#endif
		}
	od
}

#ifdef LOOKER
/* hub_look(), for timerhub_each(): what is shown is of one life, and its deadline the word's. */
proctype looker()
{
	short w, a;
	byte shown;

again:
	w = word;
	a = aux;
	shown = data;
	atomic {
		if
		:: PHASE(w) == FREE
#ifdef LOOKED_ONCE
		:: PHASE(w) != FREE ->
#else
		:: PHASE(w) != FREE && word == w && HIT(LIFE(a)) ->
#endif
			own_data = (shown == LIFE(a) && UNITS(w) == UNITS_FROM(asked[LIFE(a)]));
			assert(own_data)
#ifndef LOOKED_ONCE
		:: PHASE(w) != FREE && (word != w || !HIT(LIFE(a))) -> goto again
#endif
		fi
	}
}
#endif

proctype clock()
{
end:
	do
	:: now < LAST -> now = now + TICK
	od
}

#define LOST(life) (alive[life] && (asked[life] <= now || filed > asked[life]))
#define UNTOLD(life) (alive[life] && HIT(life) && (asked[life] == NEVER) != IDLES(word))
#define OFF(life) (alive[life] && HIT(life) && asked[life] != DEADLINE(word, aux))

proctype judge()
{
	timeout;
	not_lost = !(LOST(1) || LOST(2));
	assert(not_lost);
#ifdef KEPT
	idle_told = !(UNTOLD(1) || UNTOLD(2));
	assert(idle_told);
#endif
	in_phase = !(OFF(1) || OFF(2));
	assert(in_phase)
}

init {
	atomic {
		word = WORD(ARMED, UNITS_FROM(FIRST), 0);
		aux = AUX(1, 0, KNOWN_OF(FIRST));
		data = 1;
		filed = FIRST;
#if TAGS == 1
		/* Or armed just now, and still filed from a former life. */
		if
		:: true
		:: word = word | FLAGS; in_ring = 1
		fi;
#endif
		alive[1] = true;
		asked[1] = FIRST;
		run owner();
		run clock();
		run consumer();
		run consumer();
#ifndef NO_CHANGER
		run changer();
#endif
#if INTERVAL != 1
		run armer();
#endif
#ifdef LOOKER
		run looker();
#endif
		run judge()
	}
}
