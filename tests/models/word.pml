/* SPDX-License-Identifier: MIT */
/*
 * The state word: expire, cancel, re-arm, deliver, recycle.
 *
 * One slot that lives twice; one caller who re-arms or cancels, one who does so and then arms the
 * slot anew; the owner; two consumers; the clock.
 *
 * Left out: the ring (the slot is in it or not: inbox.pml), wakes (the owner comes by itself:
 * promise.pml), the outbox's cells and the notifier (notifier.pml), nanoseconds below the word's
 * unit, slack. Word and aux word are read at once: a later aux word could only make a handle look
 * stale, and then the compare-and-swap would have failed.
 *
 * The tag has as many values as in lib/, too many to come round here. With -DTAGS=1 -DNO_REARM it
 * has one only, so that a word comes back all the time, and hub_hit() and hub_undo() must make up
 * for it. They do so for one-shots that are cancelled and delivered: who has freed a slot has it
 * for himself. Who has re-armed a later life, or a periodic one's delivery that has, may be too
 * late to make that good (eight steps of the tag, to the very same deadline, between two
 * instructions); what is promised then is that no cancelled timer is returned.
 *
 * Models:
 *   lib/submit.c  hub_arm_slot() hub_rearm() hub_cancel() hub_push() hub_undo()
 *                 word_maybe_filed()
 *   lib/hub.h     hub_hit()
 *   lib/owner.c   owner_look_at() owner_expire_slot() owner_file_next_period() owner_deliver()
 *   lib/consume.c delivery_read() deliver() deliver_one_shot() deliver_periodic() deliver_rearm()
 *                 deliver_confirm() deliver_later_life() word_was_parked()
 *   lib/timer.h   timer_is() word_armed() word_looked_at() word_rearmed() word_with_phase()
 *
 * Laws:
 *   exactly_once  who delivers, cancels or re-arms a timer finds it alive, and there is one end
 *   never_early   what is delivered is due, at the deadline last asked for (laws 1 and 4)
 *   own_data      what is delivered is what its armer gave
 *   honest        -ENOENT is told of dead timers only (law 3)
 *   not_lost      when all has come to rest, no timer alive is due, and those to come are filed
 *   once_inside   a slot whose push is confirmed is pushed no more
 *   freed_once    no slot is put back twice
 *
 *   true
 *   true -DINTERVAL=1
 *   true -DTAGS=1 -DNO_REARM
 *   bug NO_HIT             not_lost      -DTAGS=1 -DNO_REARM cancel trusts its compare-and-swap
 *   bug UNDONE_UNTOLD      not_lost      -DTAGS=1 -DNO_REARM what is made good is not pushed
 *   bug NO_LATER_LIFE      own_data      -DTAGS=1 -DNO_REARM delivery trusts its own
 *   bug EXPIRES_UNREAD     not_lost      -DTAGS=1 -DNO_REARM the owner trusts its own
 *   bug NO_GENERATION      own_data      the handle's generation is not compared
 *   bug NO_TAG             exactly_once  the tag does not move on with a new life
 *   bug NO_TAG_LOOK        not_lost      -DINTERVAL=1 nor with the owner's look
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
 *   bug PARKED_NOT_PUSHED  not_lost      -DINTERVAL=1 a parked one, delivered, is not refiled
 *   bug PARK_BY_STORE      not_lost      -DINTERVAL=1 the owner parks without comparing
 *   bug PARKED_GIVES_UP    not_lost      -DINTERVAL=1 a delivery that finds it parked gives up
 */
#define LAST 2
#define NEVER 7
#ifndef INTERVAL
#define INTERVAL 0
#endif
#define LIVES 2
/* The first deadline, and what the two callers move it to. */
#if INTERVAL == 0
#define FIRST 2
#define MOVED 1
#define MOVED_BY_ARMER 3
#else
#define FIRST 1
#define MOVED 1
#define MOVED_BY_ARMER 0
#endif
#define OUTBOX 6

/* A state word: phase, flags, deadline, tag. */
#define FREE 0
#define ARMED 1
#define PENDING 2
#define PARKED 3
#define PHASE(w) ((w) & 3)
#define INBOX 4
#define PUSHED 8
#define FLAGS (INBOX | PUSHED)
#define DEADLINE(w) (((w) >> 4) & 7)
#define TAG(w) ((w) >> 7)
#ifndef TAGS
#define TAGS 8
#endif
#define NEXT_TAG(w) ((TAG(w) + 1) % TAGS)
#define WORD(phase, deadline, tag) ((phase) | ((deadline) << 4) | ((tag) << 7))
#define NEXT_PERIOD(w, time) \
	(DEADLINE(w) + (((time) - DEADLINE(w)) / INTERVAL + 1) * INTERVAL)
#define WITH_PHASE(w, phase) (((w) & ~3) | (phase))
#define REARMED(w, deadline) (((w) & ~(3 | 7 << 4)) | ((deadline) << 4) | ARMED)

#define WAS_PARKED(before, now) \
	(PHASE(now) == PARKED && ((now) & ~(3 | INBOX)) == ((before) & ~(3 | INBOX)))

/* An aux word: the life, and the deadline of which it knows more (0: none). */
#define AUX(life, deadline) (((life) << 3) | (deadline))
#define LIFE(aux) ((aux) >> 3)

#ifdef NO_GENERATION
#define TIMER_IS(w, aux, handle) (PHASE(w) != FREE)
#define HIT(handle) true
#else
#define HIT(handle) (LIFE(aux) == (handle))
#define TIMER_IS(w, aux, handle) (PHASE(w) != FREE && LIFE(aux) == (handle))
#endif

short word;
byte aux;
byte data;
bool is_free;
byte in_ring;
byte filed;
byte outbox[OUTBOX];
byte outbox_count;
byte now = FIRST - 1;
byte known = 1; /* the newest handle that has been told */

/* What the laws say of each life. */
bool alive[LIVES + 1];
byte asked[LIVES + 1];

byte undoing; /* who has changed a life that was not meant, and is about to make it good */

bool exactly_once = true;
bool never_early = true;
bool own_data = true;
bool honest = true;
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

inline check_delivery(handle)
{
	must_live(handle);
	never_early = (asked[handle] == DEADLINE(w) && asked[handle] <= now);
	assert(never_early)
}

inline check_data(handle)
{
	own_data = (event_data == handle);
	assert(own_data)
}

/* hub_push(): `n` is what the word was left as. */
inline submit()
{
	atomic { once_inside = !(n & PUSHED); assert(once_inside); in_ring++ }
	atomic {
		if
		:: word == n -> word = n | PUSHED
		:: else
		fi
	}
}

/* hub_undo(), if we were `wrong`; if not, the life that we hit has ended since, as it may. */
#define THEIRS(w) (FLAGS | (PHASE(w) == FREE -> 7 << 7 : 0))
inline undo(before)
{
	atomic {
		if
		:: (word ^ n) & ~THEIRS(n) ->
			exactly_once = !wrong;
			assert(exactly_once);
			push = push && (n & INBOX)
		:: else ->
			exactly_once = wrong;
			assert(exactly_once);
			undoing--;
#ifdef UNDONE_UNTOLD
			push = false;
			n = REARMED(word, DEADLINE(before)) | (word & FLAGS);
#else
			push = !(word & PUSHED);
			n = REARMED(word, DEADLINE(before)) | INBOX;
#endif
			word = n
		fi;
		wrong = false;
		handle = 0;
		before = 0;
		n = (push -> n : 0)
	}
}

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
		:: deadline = 0 /* cancel */
		fi
	}
	do
	:: atomic {
		w = word;
		a = aux;
		if
		:: !TIMER_IS(w, a, handle) ->
			honest = !alive[handle] || undoing > 0;
			assert(honest);
			goto missed
		:: else
		fi;
		if
		:: deadline == 0 ->
			n = WITH_PHASE(w, FREE);
			push = (PHASE(w) == ARMED || (PHASE(w) == PENDING && INTERVAL > 0))
		:: else ->
			/* hot_forget_residue() */
			aux = AUX(LIFE(a), 0);
			n = REARMED(w, deadline);
#ifdef REARM_PENDING_LAZY
			push = deadline < DEADLINE(w)
#else
			push = (PHASE(w) != ARMED || deadline < DEADLINE(w))
#endif
		fi;
		n = (push -> n | INBOX : n);
		push = push && !(w & INBOX);
		a = 0 }
	   atomic {
		if
#ifdef CANCEL_BY_STORE
		:: word == w || deadline == 0 ->
#else
		:: word == w ->
#endif
			word = n;
			if
			:: HIT(handle) ->
				must_live(handle);
				if
				:: deadline == 0 -> alive[handle] = false
				:: else -> asked[handle] = deadline
				fi
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
	atomic { w = 0; n = 0; a = 0; handle = 0; deadline = 0; push = false; wrong = false }
}

proctype changer()
{
	short w, n;
	byte a, handle, deadline;
	bool push, wrong;

	change(MOVED)
}

proctype armer()
{
	short w, n;
	byte a, handle, deadline;
	bool push, wrong;

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
		aux = AUX(handle, deadline);
#endif
	}
	w = word;
	do
	:: atomic {
#ifdef NO_TAG
		n = WORD(ARMED, deadline, TAG(w)) | (w & PUSHED) | INBOX;
#else
		n = WORD(ARMED, deadline, NEXT_TAG(w)) | (w & PUSHED) | INBOX;
#endif
		if
		:: word == w ->
			word = n;
			alive[handle] = true;
			asked[handle] = deadline;
			known = handle;
			break
		:: else -> w = word
		fi }
	od;
#ifdef AUX_AFTER_WORD
	aux = AUX(handle, deadline);
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
	fi
}

proctype owner()
{
	short w;
	byte a, time;

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
		word = WORD(PHASE(w), DEADLINE(w), NEXT_TAG(w));
#endif
		if
		:: PHASE(w) == FREE -> filed = NEVER
		:: PHASE(w) == ARMED -> filed = DEADLINE(w)
		:: else
		fi;
		w = 0 }
	:: atomic { filed <= now -> filed = NEVER; time = now }
		/* owner_expire_slot() */
again:
		do
		:: atomic {
			w = word;
			a = aux;
#ifndef EXPIRE_UNSEEN
			if
			:: PHASE(w) == ARMED && DEADLINE(w) > time -> filed = DEADLINE(w); goto next
			:: else
			fi;
#endif
			if
			:: PHASE(w) == FREE || PHASE(w) == PARKED -> goto next
			:: PHASE(w) == PENDING && INTERVAL == 0 -> goto next
			:: else
			fi }
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
		:: atomic { HIT(LIFE(a)) ->
#endif
			outbox[outbox_count] = LIFE(a);
			outbox_count++;
#if INTERVAL > 0
			filed = NEXT_PERIOD(w, time);
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
		atomic { w = 0; a = 0; time = 0 }
	od
}

/* Once more, from delivery_read() on: the word has been loaded anew. */
proctype consumer()
{
	short w, n;
	byte handle, a, event_data, fresh;
	bool push, wrong;

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
read:
		atomic {
			w = word;
			a = aux;
			if
			:: !TIMER_IS(w, a, handle) || PHASE(w) == ARMED -> goto done
			:: else -> event_data = data
			fi
		}
#if INTERVAL == 0
		atomic {
			if
#ifdef DELIVER_BY_STORE
			:: true ->
#else
			:: word == w ->
#endif
				word = WITH_PHASE(w, FREE);
				check_delivery(LIFE(aux));
				if
				:: HIT(handle) -> check_data(handle)
				:: else
				fi;
				alive[LIFE(aux)] = false
			:: else -> goto read
			fi
		}
		if
#ifdef NO_LATER_LIFE
		:: true -> atomic { check_data(LIFE(aux)) }
#else
		:: HIT(handle)
		:: else ->
			/* deliver_later_life() */
			atomic { event_data = data; check_data(LIFE(aux)) }
#endif
		fi;
		atomic { put_free() }
#else
		atomic {
			if
			:: aux == a ->
				fresh = NEXT_PERIOD(w, now);
				aux = AUX(LIFE(a), fresh);
				a = 0
			:: else -> goto read
			fi
		}
		do
		:: atomic {
			n = REARMED(w, fresh);
#ifndef PARKED_NOT_PUSHED
			n = (PHASE(w) == PARKED -> n | INBOX : n);
#endif
			if
			:: word == w ->
				word = n;
				push = (n & INBOX) && !(w & INBOX);
				check_delivery(handle);
				check_data(handle);
				asked[handle] = fresh;
				event_data = 0;
				fresh = 0;
				w = 0;
				break
#ifdef PARKED_GIVES_UP
			:: word != w -> goto done
#else
			:: word != w && WAS_PARKED(w, word) ->
				w = word
			:: word != w && !WAS_PARKED(w, word) ->
				n = 0;
				goto unsaid
#endif
			fi }
		od;
		/* deliver_confirm(): if it has been cancelled since, it is not returned. */
		if
		:: atomic { HIT(handle) -> handle = 0; n = (push -> n : 0) }
		:: else -> undo(w)
		fi;
		if
		:: push -> submit()
		:: else
		fi;
		goto done;
unsaid:
		/* The residue of a deadline that does not come to be. */
		atomic {
			if
			:: aux == AUX(handle, fresh) -> aux = AUX(handle, 0)
			:: else
			fi;
			fresh = 0;
			goto read
		}
#endif
done:
		atomic { w = 0; n = 0; handle = 0; a = 0; event_data = 0; fresh = 0; push = false }
	od
}

proctype clock()
{
end:
	do
	:: now < LAST -> now++
	od
}

#define LOST(life) (alive[life] && (asked[life] <= now || filed > asked[life]))

proctype judge()
{
	timeout;
	not_lost = !(LOST(1) || LOST(2));
	assert(not_lost)
}

init {
	atomic {
		word = WORD(ARMED, FIRST, 0);
		aux = AUX(1, FIRST);
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
		run changer();
		run armer();
		run judge()
	}
}
