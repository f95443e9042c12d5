/* SPDX-License-Identifier: MIT */
/*
 * The state word, and the identity beside it: expire, cancel, re-arm, deliver, recycle.
 *
 * One slot that lives twice; the changer, which re-arms or cancels; the armer, which does so and
 * then arms the slot again; the owner; two consumers; the clock. An instant is a number of half
 * ticks. The word holds whole ticks, so a periodic timer with an odd first deadline or an odd
 * interval has a phase that only the base of its periods knows.
 *
 * With -DINTERVAL=n timers are periodic. With -DNO_ARMER there is one life, and with -DREARMERS two
 * changers of it, so that one expiry can have two handles. With -DKEPT=3 timers are kept: a
 * delivery makes them idle until a re-arm; with -DKEPT=2 only the second life is kept. With -DBACK
 * the clock is once set back. With -DTO_NEVER a re-arm may be to a deadline of never.
 *
 * Left out: the ring (the slot is in it or not: inbox.pml), wakes (the owner comes by itself:
 * promise.pml), the outbox's cells and the notifier (notifier.pml), slack.
 * A consumer of a one-shot reads word, identity and data in one step: if the word has changed in
 * between, the compare-and-swap fails. A consumer of a periodic timer reads the word first and the
 * rest later. The owner, which writes the base itself, reads the word and the base in one step.
 *
 * The tag has as many values as in lib/, too many to come round here. With -DTAGS=1 -DNO_REARM it
 * has one only, so that a word comes back all the time, and timer_same_life() and timer_undo() must
 * make up for it. They do so for one-shots that are cancelled and delivered: a thread that has
 * freed a slot owns it. The undo of a re-arm, or of a periodic delivery, may come too late (after
 * eight steps of the tag, to the very same deadline, between two instructions); what is promised
 * then is that no cancelled timer is returned. Until a cancel is undone, -ENOENT is told of a timer
 * that lives on. A delivery that has made a later life idle undoes that, unless that life is over
 * by then.
 *
 * Models:
 *   lib/timer.c   timer_arm() timer_rearm() timer_cancel() timer_confirm_or_undo() timer_undo()
 *                 word_is_as_left() word_cancelled() timer_read() timer_unchanged() timer_look()
 *                 timer_unfile() timer_expire() timer_true_ns() timer_next_period_ns()
 *                 timer_deliver_periodic() timer_give_back() timer_deliver_other()
 *   lib/timer.h   timer_pushed() timer_move() timer_view_expiry() timer_deliver_one_shot()
 *                 timer_deliver() timer_same_life() timer_waits() period_base_ns()
 *   lib/word.h    timer_is() word_covers() word_armed_there() word_armed() word_touched()
 *                 word_unfiled() word_looked_at() word_rearmed() word_moved() word_with_phase()
 *                 word_idles() word_idle() word_undelivered() word_restored() word_fresh()
 *                 word_without_fresh() period_due_by() period_count() period_next_ns()
 *
 * Laws:
 *   exactly_once  a thread that delivers, cancels or re-arms a timer finds it alive, and each life
 *                 has one end
 *   never_early   what is delivered is due by the clock that the consumer read (laws 1 and 4)
 *   in_phase      the deadline that is told is the one asked for, in ticks, and the count is that
 *                 of the periods passed; at rest the word and the base say what was asked
 *   own_data      what is delivered, or shown, is what its armer gave
 *   honest        -ENOENT is told of dead timers only (law 3)
 *   idle_told     a re-arm tells whether the timer had idled; at rest the word says so
 *   not_lost      when all has come to rest, no timer alive is due, and those to come are filed
 *   once_inside   a slot whose push is confirmed is pushed no more
 *   freed_once    no slot is put back twice
 *
 *   true
 *   true -DINTERVAL=3
 *   true -DINTERVAL=3 -DNO_ARMER -DREARMERS
 *   true -DINTERVAL=1 -DNO_ARMER -DBACK
 *   true -DTO_NEVER
 *   true -DINTERVAL=3 -DNO_ARMER -DTO_NEVER
 *   true -DTAGS=1 -DNO_REARM
 *   true -DLOOKER -DNO_REARM -DNO_CHANGER
 *   true -DKEPT=3
 *   true -DKEPT=3 -DBACK
 *   true -DKEPT=2 -DTAGS=1 -DNO_REARM
 *   true -DKEPT=3 -DTAGS=1 -DNO_REARM
 *   bug NO_HIT             not_lost      -DTAGS=1 -DNO_REARM cancel trusts its compare-and-swap
 *   bug UNDONE_UNTOLD      not_lost      -DTAGS=1 -DNO_REARM what is undone is not pushed
 *   bug NO_LATER_LIFE      own_data      -DTAGS=1 -DNO_REARM delivery trusts its own
 *   bug EXPIRES_UNREAD     not_lost      -DTAGS=1 -DNO_REARM the owner trusts its own
 *   bug LOOKED_ONCE        own_data      -DLOOKER -DNO_REARM -DNO_CHANGER there is no second look
 *   bug KEPT_ENDS          idle_told     -DKEPT=3 the delivery of a kept timer ends it
 *   bug IDLE_DELIVERED     exactly_once  -DKEPT=3 a second handle of one expiry is delivered too
 *   bug IDLE_UNPUSHED      not_lost      -DKEPT=3 a re-arm of an idle timer claims no push
 *   bug IDLE_BY_PHASE      idle_told     -DKEPT=3 what is delivered keeps its deadline
 *   bug IDLE_RESTORED      idle_told     -DKEPT=3 -DTAGS=1 -DNO_REARM the undo makes an idle timer
 *                                       an armed one
 *   bug KEPT_LATER_LIFE    exactly_once  -DKEPT=2 -DTAGS=1 -DNO_REARM a later life that is kept is
 *                                       delivered as a one-shot
 *   bug NO_GENERATION      exactly_once  the handle's generation is not compared
 *   bug NO_TAG             exactly_once  the tag does not move on with a new life
 *   bug NO_TAG_LOOK        in_phase      -DINTERVAL=3 -DREARMED_ALIKE nor with the owner's look,
 *                                       nor with a re-arm
 *   bug REARMED_ALIKE      in_phase      -DINTERVAL=3 -DNO_TAG_LOOK nor with a re-arm
 *   bug CANCEL_BY_STORE    not_lost      cancel decides, then stores
 *   bug DELIVER_BY_STORE   not_lost      delivery decides, then stores
 *   bug IDENTITY_AFTER_WORD not_lost     arm publishes the word before the generation
 *   bug DATA_AFTER_WORD    own_data      arm publishes the word before what the caller gave
 *   bug REARM_PENDING_LAZY not_lost      an expired timer moved later is not put into the inbox
 *   bug EXPIRE_GIVES_UP    not_lost      the owner's lost compare-and-swap is not tried again
 *   bug EXPIRE_BY_STORE    never_early   the owner decides, then stores
 *   bug EXPIRE_UNSEEN      never_early   the owner goes by the instant that it filed
 *   bug LOST_IS_DEAD       honest        a lost compare-and-swap is taken for the timer's end
 *   bug PUSHED_ANYWAY      once_inside   arm does not go by the push that is confirmed
 *   bug FREED_TWICE        freed_once    cancel frees the slot even if it lost the race
 *   bug CANCEL_UNFILED     not_lost      a cancel of an expired timer leaves its deadline
 *   bug DELIVERED_UNFILED  not_lost      a delivery leaves the deadline
 *   bug LOOKED_UNFILED     not_lost      the owner's look files no free slot, and does not say so
 *   bug TAKEN_UNFILED      not_lost      nor does the owner that finds a free slot due
 *   bug REST_UNFILED       not_lost      nor does the owner that rests
 *   bug PUT_BACK_ONCE      not_lost      -DTAGS=1 -DNO_REARM the owner does not try again to put
 *                                        back a later life whose claim is confirmed meanwhile
 *   bug UNFILE_BY_STORE    not_lost      the owner decides that a slot is free, then stores
 *   bug COVERS_EARLIER     not_lost      an earlier deadline takes the filing over
 *   bug REST_DROPS_PERIOD  not_lost      -DINTERVAL=3 rest files an expired timer nowhere
 *   bug PARKED_NOT_PUSHED  not_lost      -DINTERVAL=3 a parked one, delivered, is not refiled
 *   bug PARK_BY_STORE      not_lost      -DINTERVAL=3 the owner parks without comparing
 *   bug PARKED_GIVES_UP    not_lost      -DINTERVAL=3 a delivery that finds it parked gives up
 *   bug BACK_UNTOLD        not_lost      -DINTERVAL=1 -DNO_ARMER -DBACK the owner is not told of a
 *                                       delivery, though its clock may be set back
 *   bug ONE_CELL           in_phase      -DINTERVAL=3 armer and owner share one cell for the base
 *   bug LIFE_UNREAD        in_phase      -DINTERVAL=3 the moved base is taken, of whatever life
 *   bug BASE_UNSTORED      in_phase      -DINTERVAL=3 the owner looks, and stores no base
 *   bug STORED_ALWAYS      in_phase      -DINTERVAL=3 the owner stores the base at each look
 *   bug IDENTITY_LATE      in_phase      -DINTERVAL=3 the owner reads the life after its look
 *   bug FRESH_LEFT         not_lost      -DINTERVAL=3 the owner's look leaves the word fresh
 *   bug FRESH_EXPIRES      in_phase      -DINTERVAL=3 a fresh word becomes pending
 *   bug FRESH_UNPUSHED     not_lost      -DINTERVAL=3 a re-arm to later claims no push
 *   bug BASE_BEFORE_WORD   in_phase      -DINTERVAL=3 a delivery reads the base before the word
 */
/* Instants, in half ticks. */
#define NEVER 15
#define IDLED 14 /* what is asked of a kept timer that idles */
#ifndef INTERVAL
#define INTERVAL 0
#endif
#define LIVES 2
/* How far the clock goes, by ticks; the first deadline, and what the callers move it to. */
#define LAST 4
#define TICK 2
#if INTERVAL == 0
#define BEGIN 2
#define FIRST 3
#define MOVED 2
#define MOVED_BY_ARMER 6
#else
#define BEGIN 0
#define FIRST 1
#define MOVED 2
#define MOVED_BY_ARMER 4
#endif
#define OUTBOX 6

/* A state word: phase, flags, deadline in ticks, freshness, tag. */
#define FREE 0
#define ARMED 1
#define PENDING 2
#define PARKED 3
#define PHASE(x) ((x) & 3)
#define INBOX 4
#define PUSHED 8
#define FLAGS (INBOX | PUSHED)
#define DEADLINE_BITS (15 << 4)
#define TICKS(x) (((x) >> 4) & 7)
#define TICKS_NEVER 7
#define FRESH (1 << 7)
#define IS_FRESH(x) ((x) & FRESH)
#define TAG(x) ((x) >> 8)
#ifndef TAGS
#define TAGS 8
#endif
#define TICKS_FROM(instant) ((instant) == NEVER -> TICKS_NEVER : ((instant) + 1) >> 1)
#define DUE(x) (2 * TICKS(x))
#define COMES(x, time) (TICKS(x) == TICKS_NEVER || DUE(x) > (time))
#define WORD(phase, ticks, tag) ((phase) | ((ticks) << 4) | ((tag) << 8))
#define TOUCHED(x) (((x) & 255) | (NEXT_TAG(x) << 8))
#define NEXT_TAG(x) ((TAG(x) + 1) % TAGS)
#define WITH_PHASE(x, phase) (((x) & ~3) | (phase))
#define NEVER_WORD (TICKS_NEVER << 4)
#define UNFILED(x) (((x) & ~(3 | DEADLINE_BITS)) | NEVER_WORD)
#ifdef LOOKED_UNFILED
#define SEEN(x) (x)
#else
#define SEEN(x) (PHASE(x) == FREE -> UNFILED(x) : (x))
#endif
#define LOOKED_AT(x) (TOUCHED(SEEN(x)) & ~(FLAGS | FRESH))
#define WITH_TICKS(x, ticks) (((x) & ~(3 | DEADLINE_BITS)) | ((ticks) << 4) | ARMED)
/* word_rearmed() to the deadline that the word has, fresh or not. */
#define ARMED_AGAIN(x, before) (((x) & ~(3 | DEADLINE_BITS)) | ((before) & DEADLINE_BITS) | ARMED)
#if INTERVAL == 0
#define REARMED(x, ticks) WITH_TICKS(x, ticks)
#else
#define REARMED(x, ticks) (WITH_TICKS(x, ticks) | ((ticks) == TICKS_NEVER -> 0 : FRESH))
#endif

/* The deadline with its fresh bit, as word_covers() compares it. */
#define RAW_TICKS(x) (((x) & DEADLINE_BITS) >> 4)
#ifdef COVERS_EARLIER
#define COVERS(x, ticks) (!((x) & FLAGS) && TICKS(x) < TICKS_NEVER)
#else
#define COVERS(x, ticks) (!((x) & FLAGS) && RAW_TICKS(x) <= (ticks))
#endif
#ifdef CANCEL_UNFILED
#define CANCELLED(x) WITH_PHASE(x, FREE)
#else
#define CANCELLED(x) (PHASE(x) == ARMED -> WITH_PHASE(x, FREE) : UNFILED(x))
#endif
#ifdef DELIVERED_UNFILED
#define DELIVERED(x) WITH_PHASE(x, FREE)
#else
#define DELIVERED(x) UNFILED(x)
#endif

/* Parked, for never: a kept timer that has been delivered. */
#define IDLE (PARKED | TICKS_NEVER << 4)
#ifdef IDLE_BY_PHASE
#define IDLES(x) (PHASE(x) == PARKED && TICKS(x) == TICKS_NEVER)
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
	(IDLES(before) -> MADE_IDLE(x) | INBOX : ARMED_AGAIN(x, before) | INBOX)
#else
#define RESTORED(x, before) (ARMED_AGAIN(x, before) | INBOX)
#endif

/* The base of a life's periods; the first period whose deadline is in the word's tick or later; how
 * many are over at `time`. */
#ifdef ONE_CELL
#define BASE(life) first
#elif defined(LIFE_UNREAD)
#define BASE(life) (moved_life > 0 -> moved : first)
#else
#define BASE(life) (moved_life == (life) -> moved : first)
#endif
#if INTERVAL > 0
#define EXACT(base, x) \
	((base) > DUE(x) - 2 -> (base) : \
	 (base) + ((DUE(x) - 2 - (base)) / INTERVAL + 1) * INTERVAL)
#define COUNT(exact, time) ((exact) > (time) -> 1 : ((time) - (exact)) / INTERVAL + 1)
#define NEXT(base, x, time) (EXACT(base, x) + COUNT(EXACT(base, x), time) * INTERVAL)
#endif

#ifdef NO_GENERATION
#define TIMER_IS(x, life, handle) (PHASE(x) != FREE)
#define HIT(handle) true
#else
#define HIT(handle) (identity == (handle))
#define TIMER_IS(x, life, handle) (PHASE(x) != FREE && (life) == (handle))
#endif

short word;
byte identity;
byte data;
byte first;      /* the armer's */
byte moved;      /* the owner's, like the next */
byte moved_life;
bool is_free;
byte in_ring;
byte filed;
byte outbox[OUTBOX];
byte outbox_count;
byte now = BEGIN;
byte known = 1; /* the newest handle that has been told */

/* What the laws say of each life. */
bool alive[LIVES + 1];
byte asked[LIVES + 1];

byte undoing; /* threads that have changed a life that was not meant, and are about to undo that */

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
	never_early = (asked[handle] <= time);
	assert(never_early);
	in_phase = (TICKS_FROM(asked[handle]) == TICKS(w));
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
		:: word != n && (word & INBOX) && !(word & PUSHED) && in_ring > 0 ->
			word = word | PUSHED
		:: else
		fi;
		n = 0
	}
}

/* timer_undo(), if we were `wrong`; if not, the life that we hit has ended since, as it may. */
#define UNEXPIRED(x, left) \
	(PHASE(left) == ARMED && PHASE(x) == PENDING -> WITH_PHASE(x, ARMED) : (x))
#define AS_LEFT(x, left) \
	(PHASE(left) == FREE -> \
	 PHASE(x) == FREE && (RAW_TICKS(x) == RAW_TICKS(left) || TICKS(x) == TICKS_NEVER) : \
	 !((UNEXPIRED(x, left) ^ (left)) & ~FLAGS) || \
	 (((left) & INBOX) && UNEXPIRED(x, left) == LOOKED_AT(left)))
inline undo(before)
{
	atomic {
		if
		:: !AS_LEFT(word, n) ->
#ifdef KEPT
			/* A timer that we made idle may be cancelled by then. */
			exactly_once = (!wrong || (IDLES(n) && !alive[identity]));
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
			n = ARMED_AGAIN(word, before) | (word & FLAGS);
#else
			push = !(word & PUSHED);
			n = RESTORED(word, before) |
			    (IS_FRESH(n) && !IS_FRESH(word) -> FRESH : 0);
#endif
			word = n
		fi;
		wrong = false;
		handle = 0;
		before = 0;
		n = (push -> n : 0)
	}
}

/* timer_unfile(): what need not be said of a free slot, or may be said of it. */
#define UNFILED_ANYHOW(x) (((x) & INBOX) || TICKS(x) == TICKS_NEVER)
#ifdef UNFILE_BY_STORE
#define MAY_UNFILE true
#else
#define MAY_UNFILE (word == w)
#endif

#define LATER(x) (TICKS(x) < TICKS_FROM(deadline))

inline change(to)
{
	atomic {
		if
		:: handle = 1
		:: known > 1 -> handle = known
		fi;
		if
#ifndef NO_REARM
		:: deadline = to
#endif
#ifdef TO_NEVER
		:: deadline = NEVER
#endif
		:: deadline = 0 /* cancel */
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
		:: HIT(handle) && PHASE(w) == ARMED && LATER(w)
		:: else -> w = 0; goto anyhow
		fi
	}
	atomic {
		if
		:: word == w ->
			n = WITH_TICKS(w, TICKS_FROM(deadline));
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
		:: !TIMER_IS(w, identity, handle) ->
			honest = !alive[handle] || undoing > 0;
			assert(honest);
			goto missed
		:: else
		fi }
	   atomic {
		if
#ifdef CANCEL_BY_STORE
		:: word == w || deadline == 0 ->
#else
		:: word == w ->
#endif
			if
			:: deadline == 0 ->
				n = CANCELLED(w);
				push = (PHASE(w) == PENDING && INTERVAL > 0)
			:: else ->
#ifdef REARMED_ALIKE
				n = REARMED(w, TICKS_FROM(deadline));
#else
				n = REARMED(TOUCHED(w), TICKS_FROM(deadline));
#endif
#if defined(REARM_PENDING_LAZY)
				push = TICKS(n) < TICKS(w)
#elif defined(IDLE_UNPUSHED)
				push = !IDLES(w) && (PHASE(w) != ARMED || TICKS(n) < TICKS(w))
#elif INTERVAL > 0 && !defined(FRESH_UNPUSHED)
				push = true
#else
				push = (PHASE(w) != ARMED || TICKS(n) < TICKS(w))
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
					     IDLES(w) == (asked[handle] == IDLED));
				assert(idle_told);
#endif
				asked[handle] = (INTERVAL == 0 || deadline == NEVER ->
						 deadline : 2 * TICKS_FROM(deadline));
				alive[handle] = (deadline > 0)
#if INTERVAL == 0
			:: else -> wrong = true; undoing++
#endif
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
		w = 0;
		n = 0;
		handle = 0;
		deadline = 0;
		push = false;
		wrong = false
	}
}

proctype changer(byte to)
{
	short w, n;
	byte handle, deadline;
	bool push, wrong;

	change(to);
	to = 0
}

#ifndef NO_ARMER
proctype armer()
{
	short w, n;
	byte handle, deadline;
	bool push, wrong;

	change(MOVED_BY_ARMER);
endfull:
	atomic {
		is_free -> is_free = false;
		handle = identity + 1;
		if
		:: deadline = FIRST
		:: deadline = MOVED
		fi
	}
	/* No thread reads one of these without the other. */
	atomic {
#ifndef DATA_AFTER_WORD
		data = handle;
#endif
#ifndef IDENTITY_AFTER_WORD
		identity = handle;
#endif
#if INTERVAL > 0
		first = deadline;
#endif
		w = word
	}
	do
	:: atomic {
		if
		:: word == w ->
#ifdef NO_TAG
			n = WORD(ARMED, TICKS_FROM(deadline), TAG(w));
#else
			n = WORD(ARMED, TICKS_FROM(deadline), NEXT_TAG(w));
#endif
			push = !COVERS(w, TICKS_FROM(deadline));
			n = (push -> n | (w & PUSHED) | INBOX : n);
			word = n;
			alive[handle] = true;
			asked[handle] = deadline;
			known = handle;
			break
		:: else -> w = word
		fi }
	od;
#ifdef IDENTITY_AFTER_WORD
	identity = handle;
#endif
#ifdef DATA_AFTER_WORD
	data = handle;
#endif
	if
#ifdef PUSHED_ANYWAY
	:: push -> submit()
#else
	:: push && !(w & PUSHED) -> submit()
#endif
	:: else
	fi;
	atomic { w = 0; n = 0; handle = 0; deadline = 0; push = false }
}
#endif

/*
 * timer_true_ns(), of a slot that is filed; and whether that is to be asked, which the owner may do
 * whenever it makes a difference.
 */
#ifdef REST_DROPS_PERIOD
#define FILED_EXPIRED TICKS_NEVER
#else
#define FILED_EXPIRED filed
#endif
#define TRUE_TICKS(x) \
	(PHASE(x) == FREE || (PHASE(x) == ARMED && IS_FRESH(x)) -> TICKS_NEVER : \
	 (PHASE(x) != ARMED -> FILED_EXPIRED : (TICKS(x) > filed -> TICKS(x) : filed)))
#define DOUBTED(x) (TRUE_TICKS(x) != filed)

proctype owner()
{
	short w;
	byte life, time;

end:
	do
	:: atomic {
		/* owner_look_at() */
		in_ring > 0 ->
		in_ring--;
		w = word;
		life = identity;
#ifdef NO_TAG_LOOK
		word = SEEN(w) & ~(FLAGS | FRESH);
#elif defined(FRESH_LEFT)
		word = TOUCHED(SEEN(w)) & ~FLAGS;
#else
		word = LOOKED_AT(w);
#endif
		if
		:: PHASE(w) == FREE -> filed = TICKS_NEVER
		:: PHASE(w) == ARMED -> filed = TICKS(w)
		:: else
		fi;
#if INTERVAL > 0
		if
#ifdef STORED_ALWAYS
		:: PHASE(w) == ARMED
#else
		:: PHASE(w) == ARMED && IS_FRESH(w)
#endif
		:: else -> goto looked
		fi
	   }
#ifdef IDENTITY_LATE
		life = identity;
#endif
#ifdef ONE_CELL
		first = DUE(w);
#elif !defined(BASE_UNSTORED)
		moved = DUE(w);
		moved_life = life;
#endif
looked:
		atomic {
#endif
		w = 0;
		life = 0
	   }
	:: atomic { filed < TICKS_NEVER && 2 * filed <= now -> filed = TICKS_NEVER; time = now }
		/* owner_expire_slot() */
again:
		do
		:: atomic {
			w = word;
			life = identity;
#if INTERVAL > 0 && !defined(FRESH_EXPIRES)
			if
			:: PHASE(w) == ARMED && IS_FRESH(w) -> goto next
			:: else
			fi;
#endif
#ifndef EXPIRE_UNSEEN
			if
			:: PHASE(w) == ARMED && COMES(w, time) -> filed = TICKS(w); goto next
			:: else
			fi;
#endif
			if
			:: PHASE(w) == PARKED -> goto next
#ifdef TAKEN_UNFILED
			:: PHASE(w) == FREE -> goto next
#else
			:: PHASE(w) == FREE && UNFILED_ANYHOW(w) -> goto next
#endif
			:: else
			fi
			}
		   if
		   :: PHASE(w) == FREE ->
			atomic {
				if
				:: MAY_UNFILE -> word = UNFILED(w); goto next
				:: else
				fi
			}
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
		:: atomic { HIT(life) ->
#endif
			outbox[outbox_count] = life;
			outbox_count++;
#if INTERVAL > 0
			filed = TICKS_FROM(NEXT(BASE(life), w, time));
#endif
			goto next }
		:: else ->
			atomic {
				if
#ifdef PUT_BACK_ONCE
				:: word == WITH_PHASE(w, PENDING) -> word = w
#else
				:: PHASE(word) == PENDING -> word = WITH_PHASE(word, ARMED)
#endif
				:: else
				fi;
				goto again
			}
		fi;
next:
		atomic { w = 0; life = 0; time = 0 }
	:: atomic { filed < TICKS_NEVER && DOUBTED(word) -> w = word }
		/* owner_refile() */
		do
		:: PHASE(w) != FREE -> break
#ifdef REST_UNFILED
		:: PHASE(w) == FREE -> break
#else
		:: PHASE(w) == FREE && UNFILED_ANYHOW(w) -> break
#endif
		:: else ->
			atomic {
				if
				:: MAY_UNFILE -> word = UNFILED(w); break
				:: else -> w = word
				fi
			}
		od;
		atomic {
			filed = TRUE_TICKS(w);
			w = 0
		}
	od
}

proctype consumer()
{
	short w, n;
	byte handle, event_data, time, base;
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
#if INTERVAL > 0
#ifdef BASE_BEFORE_WORD
		base = BASE(handle);
#endif
		w = word;
#endif
		atomic {
#if INTERVAL == 0
			w = word;
#endif
			if
#ifdef IDLE_DELIVERED
			:: !TIMER_IS(w, identity, handle) || PHASE(w) == ARMED -> goto done
#else
			:: !TIMER_IS(w, identity, handle) || PHASE(w) == ARMED || IDLES(w) ->
				goto done
#endif
			:: else
			fi;
			event_data = data;
#if INTERVAL > 0 && !defined(BASE_BEFORE_WORD)
			base = BASE(handle);
#endif
			time = now;
#ifdef BACK
			if
			:: COMES(w, time) -> goto back
			:: else
			fi
#endif
		}
#if INTERVAL == 0
		atomic {
			if
#ifdef DELIVER_BY_STORE
			:: true ->
#else
			:: word == w ->
#endif
#ifdef KEPT
#ifdef KEPT_ENDS
				n = DELIVERED(w);
#else
				n = (IS_KEPT(handle) -> MADE_IDLE(w) : DELIVERED(w));
#endif
				word = n;
				if
				:: IS_KEPT(handle) && HIT(handle) ->
					must_live(handle);
					exactly_once = (asked[handle] != IDLED);
					assert(exactly_once);
					check_event(handle);
					asked[handle] = IDLED;
					goto done
#ifdef KEPT_LATER_LIFE
				:: !HIT(handle) && IS_KEPT(handle) ->
#else
				:: !HIT(handle) && (IS_KEPT(handle) || IS_KEPT(identity)) ->
#endif
					wrong = true;
					undoing++
				:: else ->
					n = 0;
					must_live(identity);
					exactly_once = !IS_KEPT(identity);
					assert(exactly_once);
					alive[identity] = false
				fi
#else
				word = DELIVERED(w);
				must_live(identity);
				alive[identity] = false
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
			event_data = data
#endif
		fi;
		atomic { check_event(identity); put_free(); goto done }
#else
		/* deliver_periodic() */
		atomic {
			n = WITH_TICKS(w, TICKS_FROM(NEXT(base, w, time)));
#if defined(BACK) && !defined(BACK_UNTOLD)
			n = n | INBOX;
#elif !defined(PARKED_NOT_PUSHED)
			n = (PHASE(w) == PARKED -> n | INBOX : n);
#endif
			if
			:: word == w ->
				word = n;
				push = (n & INBOX) && !(w & INBOX);
				must_live(handle);
				check_event(handle);
				in_phase = (NEXT(base, w, time) == asked[handle] +
					    COUNT(asked[handle], time) * INTERVAL);
				assert(in_phase);
				asked[handle] = NEXT(base, w, time);
				event_data = 0;
				time = 0;
				base = 0
			:: else -> goto again
			fi
		}
		/* deliver_confirm(): if it has been cancelled since, it is not returned. */
		if
		:: atomic { HIT(handle) -> handle = 0; w = 0; n = (push -> n : 0) }
		:: else -> undo(w)
		fi;
		goto tell;
again:
		atomic {
			n = 0;
#ifdef PARKED_GIVES_UP
			goto done
#else
			goto read
#endif
		}
#endif
#if defined(BACK)
back:
		/* deliver_back() */
		atomic {
			n = ARMED_AGAIN(w, w) | INBOX;
			if
			:: word == w ->
				word = n;
				push = !(w & INBOX);
				must_live(identity)
			:: else -> n = 0; goto read
			fi
		}
#endif
#if defined(BACK) || INTERVAL > 0
tell:
		if
		:: push -> submit()
		:: else
		fi;
#endif
done:
		atomic {
			w = 0;
			n = 0;
			handle = 0;
			event_data = 0;
			time = 0;
			base = 0;
			push = false
		}
	od
}

#ifdef LOOKER
/* hub_look(), for timerhub_each(): what is shown is of one life, and its deadline the word's. */
proctype looker()
{
	short w;
	byte life, shown;

again:
	w = word;
	life = identity;
	shown = data;
	atomic {
		if
		:: PHASE(w) == FREE
#ifdef LOOKED_ONCE
		:: PHASE(w) != FREE ->
#else
		:: PHASE(w) != FREE && word == w && HIT(life) ->
#endif
			own_data = (shown == life && TICKS(w) == TICKS_FROM(asked[life]));
			assert(own_data)
#ifndef LOOKED_ONCE
		:: PHASE(w) != FREE && (word != w || !HIT(life)) -> goto again
#endif
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
	:: now < LAST -> now = now + TICK
#ifdef BACK
	:: atomic { now > BEGIN && !set -> set = true; now = now - TICK }
#endif
	od
}

#define TO_COME(life) TICKS_FROM(asked[life])
#define LOST(life) \
	(alive[life] && asked[life] < IDLED && (2 * TO_COME(life) <= now || filed > TO_COME(life)))
#define UNTOLD(life) (alive[life] && HIT(life) && (asked[life] == IDLED) != IDLES(word))
#if INTERVAL == 0
#define OFF(life) (alive[life] && HIT(life) && asked[life] != IDLED && TO_COME(life) != TICKS(word))
#else
#define OFF(life) (alive[life] && HIT(life) && \
	 (TO_COME(life) != TICKS(word) || IS_FRESH(word) || \
	  (asked[life] != NEVER && asked[life] != EXACT(BASE(life), word))))
#endif

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
		word = WORD(ARMED, TICKS_FROM(FIRST), 0);
		identity = 1;
		data = 1;
#if INTERVAL > 0
		first = FIRST;
#endif
		filed = TICKS_FROM(FIRST);
#if TAGS == 1
		/* Or armed just now, and still filed from a former life. */
		if
		:: true
		:: word = word | FLAGS; in_ring = 1
		:: word = word | INBOX; in_ring = 1
		fi;
#endif
		alive[1] = true;
		asked[1] = FIRST;
		run owner();
		run clock();
		run consumer();
		run consumer();
#ifndef NO_CHANGER
		run changer(MOVED);
#endif
#ifdef REARMERS
		run changer(MOVED_BY_ARMER);
#endif
#ifndef NO_ARMER
		run armer();
#endif
#ifdef LOOKER
		run looker();
#endif
		run judge()
	}
}
