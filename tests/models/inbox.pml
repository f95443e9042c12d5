/* SPDX-License-Identifier: MIT */
/*
 * The inbox: coalescing by flags in the state word, cells with laps, slots that live again.
 *
 * Three callers, each with one of arm, re-arm and cancel on two slots, and the owner, which may
 * look at any slot that is filed before it sleeps. A cancel tells the owner nothing; with -DSLACK,
 * where the word does not say when the slot is filed, it does.
 *
 * A thread stopped for ever at any instruction is one that is not scheduled any more, so the laws
 * are asked of every reachable state, not of the end. There are no store buffers: every store here
 * is a locked instruction, or one of the owner's that it follows with a locked one before it
 * matters (a cell emptied: then the slot's word; the promise: promise.pml has that). A walk along
 * filled cells is one step: what was filled once is not empty again for that place. A caller may be
 * held up before its walk, while others move the tail and the owner empties the cell. Left out:
 * time (every deadline lies ahead, so that only a wake ends a sleep), the recording of wakes
 * (promise.pml), lanes (each is a ring like this one, and the second look asks all of them),
 * batches, timer_undo() (word.pml); and a fourth caller, which could be misled by a claim that is
 * confirmed without a look at the cell (tests/traps/test_callers.c).
 *
 * Models:
 *   lib/timer.c  timer_arm() timer_rearm() word_cancelled() timer_cancel() timer_look()
 *                timer_unfile() timer_true_ns()
 *   lib/timer.h  timer_pushed() timer_look_by_ns()
 *   lib/hub.c    hub_submit() hub_push()
 *   lib/inbox.c  lane_push() lane_advance_tail() inbox_begin() lane_take() inbox_empty()
 *   lib/inbox.h  inbox_holds()
 *   lib/owner.c  owner_empty_inbox() owner_look_at() owner_refile() owner_pass()
 *   lib/word.h   word_covers() word_armed_there() word_armed() word_rearmed() word_unfiled()
 *                word_looked_at()
 *
 * Laws:
 *   never_late   no armed timer, except one that a thread is at work on, is due before the end of
 *                a sleep that no wake has ended
 *   always_room  a push finds a cell
 *
 *   true
 *   true -DSLACK
 *   bug CLAIM_TRUSTED        never_late   arm trusts a mere claim of a former life (trap 3, and
 *                                         what lib/ did before 1e7c3c4)
 *   bug FLAG_OUTSIDE_WORD    never_late   "in the inbox" is a word of its own (trap 3)
 *   bug COVERED_IN_INBOX     never_late   an arm takes the filing over, though the slot is in the
 *                                         inbox
 *   bug COVERED_EARLIER      never_late   an arm takes the filing over, though it is for later
 *   bug LOOKED_UNFILED       never_late   the owner's look files no free slot, and does not say so
 *   bug REST_UNFILED         never_late   nor does the owner that rests: a plain removal
 *   bug FREE_BEFORE_PUSH     never_late   -DSLACK cancel frees the slot, then pushes it,
 *                                         having said so
 *   bug NO_RELOAD            never_late   after the push, the deadline is not read again (trap 2)
 *   bug COALESCED_ASLEEP     never_late   a caller that finds the slot claimed asks for no wake
 *   bug FLAG_AFTER_STATE     never_late   the owner reads the state, then clears the flag
 *   bug RESERVE_THEN_PUBLISH never_late   a ring with holes: the tail first, then the cell (trap 1)
 *   bug NO_LAP               never_late   an empty cell looks the same in every lap
 *   bug TAIL_LEFT            never_late   -DSLACK a full line leaves the tail where it is
 *   bug LOOK_ENDS_AT_TAIL    never_late   a look does not go past the line of the tail
 *   bug NO_SECOND_LOOK       never_late   the promise is raised, and that is that (trap 5)
 *   bug NO_COALESCING        always_room  every submission pushes
 *   bug EMPTIED_LATE         always_room  the word says that it is out, then the cell is emptied
 */
#define SLOTS 2
#define CELLS 2
#define CALLERS 3
#define NEVER 3

/* A state word: phase 1 bit, flags, deadline, tag. */
#define FREE 0
#define ARMED 1
#define PHASE(w) ((w) & 1)
#define INBOX 2
#define PUSHED 4
#define FLAGS (INBOX | PUSHED)
#define DEADLINE(w) (((w) >> 3) & 3)
#define TAG(w) ((w) >> 5)
#define NEXT_TAG(w) ((TAG(w) + 1) & 7)
#define WORD(phase, deadline, tag) ((phase) | ((deadline) << 3) | ((tag) << 5))

#define UNFILED(w) ((w) | WORD(0, NEVER, 0))
#ifdef LOOKED_UNFILED
#define SEEN(w) (w)
#else
#define SEEN(w) (PHASE(w) == FREE -> UNFILED(w) : (w))
#endif
#ifdef FLAG_OUTSIDE_WORD
#define IN_INBOX(slot, w) apart[slot]
#elif defined(COVERED_IN_INBOX)
#define IN_INBOX(slot, w) false
#else
#define IN_INBOX(slot, w) ((w) & FLAGS)
#endif
#ifdef COVERED_EARLIER
#define COVERS(slot, w, deadline) (!IN_INBOX(slot, w) && DEADLINE(w) < NEVER)
#else
#define COVERS(slot, w, deadline) (!IN_INBOX(slot, w) && DEADLINE(w) <= (deadline))
#endif

/* A cell: slot 1 bit, filled, lap. INBOX_LINE is 1. */
#define FILLED 2
#ifdef NO_LAP
#define EMPTY(place) 0
#else
#define EMPTY(place) (((place) / CELLS) << 2)
#endif

#define ARM 0
#define REARM 1
#define CANCEL 2

byte word[SLOTS];
byte life[SLOTS]; /* the identity's generation */
bool is_free[SLOTS];
byte cell[CELLS];
byte tail = 1; /* so that laps change soon */
byte look_by = 1;
bool bell;
bool asleep;
byte filed[SLOTS];
byte until;
byte work[CALLERS]; /* the timer that a caller is at work on: 1 + slot + SLOTS * life */
bool apart[SLOTS];  /* FLAG_OUTSIDE_WORD */

bool never_late = true;
bool always_room = true;

#define TIMER(slot, life) (1 + (slot) + SLOTS * (life))
#define AT_WORK(slot) (work[0] == TIMER(slot, life[slot]) || \
	work[1] == TIMER(slot, life[slot]) || work[2] == TIMER(slot, life[slot]))
#define LATE(slot) (PHASE(word[slot]) == ARMED && DEADLINE(word[slot]) < until && !AT_WORK(slot))

/* To be asked whenever the owner has gone to sleep or a caller has returned: what else happens
 * cannot make it false. */
inline check_late()
{
	never_late = !(asleep && !bell && (LATE(0) || LATE(1)));
	assert(never_late)
}

inline cell_init(i)
{
	/* Places before the tail have been filled and emptied. */
	cell[i] = (i < tail -> EMPTY(CELLS) : EMPTY(0))
}

proctype caller(byte me; byte what)
{
	byte w, n, slot, deadline, place, seen;
	bool push, submit;

	/* The word loaded, for a handle that a caller has. */
endnone:
	atomic {
		if
		:: what == ARM && is_free[0] -> slot = 0
		:: what == ARM && is_free[1] -> slot = 1
		:: what != ARM && PHASE(word[0]) == ARMED -> slot = 0
		:: what != ARM && PHASE(word[1]) == ARMED -> slot = 1
		fi;
		w = word[slot];
		if
		:: what == ARM -> is_free[slot] = false; life[slot]++
		:: else
		fi;
		work[me] = TIMER(slot, life[slot]);
		if
		:: what != CANCEL -> deadline = 0
		:: what != CANCEL -> deadline = 2
		:: what == CANCEL -> deadline = DEADLINE(w)
		fi
	}
	do
	:: atomic {
		if
		:: what != ARM && PHASE(w) == FREE -> goto done
		:: what != ARM && TIMER(slot, life[slot]) != work[me] -> goto done
		:: else
		fi;
		if
		:: what == ARM && COVERS(slot, w, deadline) ->
			n = WORD(ARMED, deadline, NEXT_TAG(w));
			submit = false;
			push = false
		:: what == ARM && !COVERS(slot, w, deadline) ->
			n = WORD(ARMED, deadline, NEXT_TAG(w)) | (w & PUSHED);
			submit = true;
#ifdef CLAIM_TRUSTED
			n = n | (w & INBOX);
			push = !(w & INBOX)
#else
			push = !(w & PUSHED)
#endif
		:: what == REARM ->
			n = WORD(ARMED, deadline, TAG(w)) | (w & FLAGS);
			submit = deadline < DEADLINE(w);
			push = submit && !(w & INBOX)
		:: else ->
			n = WORD(FREE, deadline, TAG(w)) | (w & FLAGS);
#ifdef SLACK
			submit = !(w & INBOX);
#endif
			push = submit
		fi;
#ifdef NO_COALESCING
		push = submit;
#endif
#ifdef COALESCED_ASLEEP
		submit = push;
#endif
#ifndef FLAG_OUTSIDE_WORD
		if
		:: submit -> n = n | INBOX
		:: else
		fi;
#endif
		if
		:: word[slot] == w -> word[slot] = n; break
		:: else -> w = word[slot]
		fi }
	od;
#ifdef FLAG_OUTSIDE_WORD
	atomic {
		push = submit && !apart[slot];
		if
		:: submit -> apart[slot] = true
		:: else
		fi
	}
#endif
	if
	:: !submit -> goto put
	:: else
	fi;
#ifdef FREE_BEFORE_PUSH
	is_free[slot] = (what == CANCEL);
	if
	:: what == CANCEL && word[slot] == n -> word[slot] = n | PUSHED
	:: else
	fi;
#endif
	if
	:: !push -> w = n; goto wake
	:: else
	fi;
#ifdef RESERVE_THEN_PUBLISH
	atomic { place = tail; tail = tail + 1 }
	atomic {
		always_room = (cell[place % CELLS] == EMPTY(place));
		assert(always_room);
		cell[place % CELLS] = EMPTY(place) | FILLED | slot
	}
#else
	place = tail;
	do
	:: atomic {
		do
		:: seen = cell[place % CELLS];
#ifndef NO_LAP
		   always_room = ((seen >> 2) >= place / CELLS);
		   assert(always_room);
#endif
		   if
		   :: seen == EMPTY(place) -> break
		   :: else -> place++
		   fi;
#ifndef TAIL_LEFT
		   /* lane_advance_tail(): move it on, or go on where others have moved it. */
		   if
		   :: place > tail -> tail = place
		   :: else -> place = tail
		   fi
#endif
		od }
	   atomic {
		if
		:: cell[place % CELLS] == seen -> cell[place % CELLS] = seen | FILLED | slot; break
		:: else
		fi }
	od;
#endif
	/* If the entry is there, confirm; or else learn what the word is now, and confirm that. */
	w = n;
	do
	:: atomic {
		if
		:: cell[place % CELLS] != (EMPTY(place) | FILLED | slot) -> break
		:: else
		fi
	   }
	   atomic {
		if
		:: word[slot] == n -> word[slot] = n | PUSHED; break
		:: else
		fi;
#ifdef NO_RELOAD
		break
#else
		n = word[slot];
		w = n;
		if
		:: !(n & INBOX) || (n & PUSHED) -> break
		:: else
		fi
#endif
	   }
	od;
	place = 0;
	seen = 0;
wake:
	atomic {
		if
		:: PHASE(w) == ARMED && DEADLINE(w) < look_by -> skip
		:: else -> goto put
		fi
	}
	bell = true;
put:
	atomic {
		if
		:: what == CANCEL -> is_free[slot] = true
		:: else
		fi;
done:
		work[me] = 0;
		w = 0; n = 0; slot = 0; deadline = 0; place = 0; seen = 0;
		push = false; submit = false;
		check_late()
	}
}

inline look_at(slot)
{
#ifdef FLAG_AFTER_STATE
	w = word[slot];
	atomic {
		word[slot] = SEEN(WORD(PHASE(word[slot]), DEADLINE(word[slot]),
				       NEXT_TAG(word[slot])));
#else
	atomic {
		w = word[slot];
		word[slot] = SEEN(WORD(PHASE(w), DEADLINE(w), NEXT_TAG(w)));
#endif
#ifdef FLAG_OUTSIDE_WORD
		apart[slot] = false;
#endif
		filed[slot] = (PHASE(w) == ARMED -> DEADLINE(w) : NEVER);
		w = 0
	}
}

/* Would it make a difference to look at this slot? */
#define DOUBTED(slot) \
	(PHASE(word[slot]) == FREE || DEADLINE(word[slot]) > filed[slot])

/* owner_refile(), of a slot that is filed. */
inline rest(slot)
{
	w = word[slot];
	do
	:: atomic {
		if
		:: PHASE(w) == ARMED ->
			filed[slot] = (DEADLINE(w) > filed[slot] -> DEADLINE(w) : filed[slot]);
			break
#ifdef REST_UNFILED
		:: PHASE(w) == FREE ->
#else
		:: PHASE(w) == FREE && ((w & INBOX) || DEADLINE(w) == NEVER) ->
			filed[slot] = NEVER;
			break
		:: PHASE(w) == FREE && !(w & INBOX) && DEADLINE(w) < NEVER && word[slot] == w ->
			word[slot] = UNFILED(w);
#endif
			filed[slot] = NEVER;
			break
		:: else -> w = word[slot]
		fi }
	od;
	w = 0
}

proctype owner()
{
	byte head = 1, end, seen, w;

	do
	::
#ifdef LOOK_ENDS_AT_TAIL
		end = tail;
#else
		end = tail + 2;
#endif
		do
		:: atomic {
			if
			:: head < end -> seen = cell[head % CELLS]
			:: else -> break
			fi;
			if
			:: seen & FILLED
			:: else -> break
			fi }
#ifdef EMPTIED_LATE
		   look_at((seen & 1));
#endif
		   atomic { cell[head % CELLS] = EMPTY(head + CELLS); head++ }
#ifndef EMPTIED_LATE
		   look_at((seen & 1))
#endif
		od;
		atomic { end = 0; seen = 0 }
		do
		:: filed[0] < NEVER && DOUBTED(0) -> rest(0)
		:: filed[1] < NEVER && DOUBTED(1) -> rest(1)
		:: break
		od;
		atomic {
			until = (filed[0] < filed[1] -> filed[0] : filed[1]);
			if
			:: until > look_by -> look_by = until
			:: else -> look_by = until; goto sleep
			fi
		}
#ifndef NO_SECOND_LOOK
		if
		:: cell[head % CELLS] & FILLED -> goto again
		:: else
		fi;
#endif
sleep:
		atomic { asleep = true; check_late() }
endsleep:
		atomic { bell -> bell = false; asleep = false }
again:
		skip
	od
}

init {
	byte a, b, c;

	atomic {
		word[0] = WORD(ARMED, 1, 0);
		filed[0] = 1;
		word[1] = WORD(FREE, NEVER, 0);
		is_free[1] = true;
		filed[1] = NEVER;
		cell_init(0);
		cell_init(1);
		run owner();
		/* Callers are alike: their order does not matter. */
		select(a : ARM .. CANCEL);
		select(b : ARM .. CANCEL);
		select(c : ARM .. CANCEL);
		if
		:: a <= b && b <= c -> run caller(0, a); run caller(1, b); run caller(2, c)
		:: else
		fi
	}
}
