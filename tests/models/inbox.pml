/* SPDX-License-Identifier: MIT */
/*
 * A model of the inbox. Flags in a slot's pair join several submissions into one entry. The model
 * also has the laps of cells, and reuses slots.
 *
 * Two callers use two slots. The first caller makes two calls, and the second caller makes one
 * call. Each call is an arm, a re-arm or a cancel. Before the owner sleeps, it may correct the
 * schedule entry of any scheduled slot. The inline function rest() models this correction. With
 * -DONE_SLOT there is only one slot. The first caller makes three calls. The second caller makes
 * two calls, and does not cancel. With one slot, a caller that is delayed before or after its push
 * can meet a later claim of the slot.
 *
 * Spin also searches the runs in which a thread is stopped for ever at some step. The laws are
 * therefore checked in every reachable state, not only at the end. The model has no store buffers.
 * Every store of a caller is a locked instruction. Two stores of the owner are not locked. The
 * first store empties a cell, and a locked change of the slot's pair follows it. The second store
 * writes the promise. promise.pml models this store with a store buffer. In the model, a caller
 * walks along filled cells in one step. Separate steps would find the same cells filled, because a
 * filled place never becomes free again. An emptied cell serves a new place in the next lap. Before
 * the walk a caller may be delayed, while other callers move the tail and the owner empties the
 * cell. The confirmation of a push is one step. It either changes the pair by a compare-and-swap,
 * or loads the pair and finds no change necessary.
 *
 * The model leaves out these parts:
 *
 * - Time does not pass. Every deadline is in the future, so only a wake ends the owner's sleep.
 * - The record of wakes is left out, and promise.pml models it.
 * - The inbox has one lane and no batches. In lib/ each lane is such a ring. When the owner looks
 *   at the inbox again, it reads all lanes.
 * - No timer has slack, and a thread loads both halves of a pair in one step. timer.pml models
 *   slack and separate loads.
 *
 * A slot has one entry in the inbox for each claim. A claim lasts until the owner looks at the
 * slot. After that, another thread can claim the slot. While a claim lasts, only an armer may claim
 * again, and only if the first claim is not confirmed. If an armer claims again, the armer and the
 * delayed first claimant both push the slot. The inbox then gets one entry more.
 *
 * Models:
 *   lib/timer/timer.c timer_arm() timer_rearm() pair_cancelled() timer_cancel()
 *                     timer_confirm_push() timer_look() timer_unschedule() timer_true_ns()
 *   lib/timer/timer.h timer_submit() timer_look_by_ns()
 *   lib/hub/push_and_wake.c hub_submit() hub_push()
 *   lib/owner/inbox.c lane_push() lane_advance_tail() inbox_begin() lane_take() inbox_empty()
 *   lib/owner/owner.c owner_empty_inbox() owner_look_at() owner_refile() owner_pass()
 *   lib/timer/pair.h  states_share_look() pair_covers() pair_armed() pair_rearmed() pair_claimed()
 *                     pair_unscheduled() pair_looked_at()
 *
 * Laws:
 *   never_late    the owner does not sleep beyond the deadline of an armed timer
 *                 The owner may sleep longer while a wake is pending, or while a thread is inside a
 *                 call on the timer.
 *   always_room   a push finds an empty cell
 *   once_inside   a slot has at most one entry in the inbox or one claim for a push
 *                 Each armer that found a delayed claimant may add one entry.
 *
 *   true
 *   true -DONE_SLOT
 *   bug CLAIM_TRUSTED        never_late    arm trusts the claim of an earlier timer
 *                                          An earlier version of lib/ did this (trap 3).
 *   bug FLAG_OUTSIDE_PAIR    never_late    "in the inbox" is no flag of the pair (trap 3)
 *   bug PUSHED_FIRST         never_late    the claim also sets PUSHED
 *   bug LOOK_UNCOUNTED       never_late    -DONE_SLOT look does not change the counter
 *                                          The owner looks at the slot without incrementing the
 *                                          pair's counter. A delayed claimant then confirms a later
 *                                          claim.
 *   bug CONFIRMED_ANYWAY     never_late    -DONE_SLOT confirmation ignores the counter
 *   bug CONFIRMED_ASLEEP     never_late    caller of a confirmed push sends no wake
 *                                          A caller does not wake the owner if another caller has
 *                                          already confirmed the push.
 *   bug COVERED_IN_INBOX     never_late    arm takes over the entry of a slot in the inbox
 *   bug COVERED_EARLIER      never_late    arm takes over an entry that is too late
 *   bug LOOKED_SCHEDULED     never_late    look at a free slot leaves the deadline
 *                                          When the owner looks at a free slot, it removes the
 *                                          slot's schedule entry, but leaves the deadline in the
 *                                          pair.
 *   bug REST_SCHEDULED       never_late    rest at a free slot leaves the deadline
 *   bug NO_RELOAD            never_late    the pair is not read again after the push (trap 2)
 *   bug COALESCED_ASLEEP     never_late    caller without a push sends no wake
 *                                          A caller that finds the slot claimed does not wake the
 *                                          owner.
 *   bug FLAG_AFTER_STATE     never_late    owner reads the pair, then clears the flags
 *   bug RESERVE_THEN_PUBLISH never_late    a ring with holes
 *                                          A caller first moves the tail, and then fills the cell
 *                                          (trap 1).
 *   bug NO_LAP               never_late    an empty cell has one value in every lap
 *   bug TAIL_LEFT            never_late    -DONE_SLOT a full line does not move the tail
 *   bug LOOK_ENDS_AT_TAIL    never_late    owner does not look beyond the tail
 *   bug NO_SECOND_LOOK       never_late    owner raises its promise, does not look again (trap 5)
 *   bug NO_COALESCING        once_inside   every submission pushes
 *   bug EMPTIED_LATE         always_room   -DONE_SLOT owner looks, then empties the cell
 *                                          The owner clears the pair's flags first, so the slot has
 *                                          left the inbox. The cell is still full until the owner
 *                                          empties it in a later step.
 */
#ifdef ONE_SLOT
#define SLOTS 1
#else
#define SLOTS 2
#endif
#define CALLERS 2
#ifdef ONE_SLOT
#define CALLS 3
#else
#define CALLS 2
#endif
#define CELLS (SLOTS + 1) /* a cell for each slot, and a cell for a delayed claimant's entry */
#define BEGIN (CELLS - 1) /* the first place. The next place begins a new lap. */
#define SOON 0
#define LATER 1
#define NEVER 3

/*
 * A pair has a phase of 1 bit, flags, the deadline, and a counter of the owner's looks at the slot.
 */
#define FREE 0
#define ARMED 1
#define PHASE(w) ((w) & 1)
#define CLAIMED 2
#define PUSHED 4
#define FLAGS (CLAIMED | PUSHED)
#define DEADLINE(w) (((w) >> 3) & 3)
#define LOOKS(w) ((w) >> 5)
#define PAIR(phase, deadline, looks) ((phase) | ((deadline) << 3) | ((looks) << 5))

#define UNSCHEDULED(w) ((w) | PAIR(0, NEVER, 0))
#ifdef LOOKED_SCHEDULED
#define SEEN(w) ((w) & ~FLAGS)
#else
#define SEEN(w) (PHASE(w) == FREE -> UNSCHEDULED((w) & ~FLAGS) : (w) & ~FLAGS)
#endif
#ifdef LOOK_UNCOUNTED
#define LOOKED_AT(w) SEEN(w)
#else
#define LOOKED_AT(w) ((SEEN(w) & 31) | ((LOOKS(w) + 1) & 3) << 5)
#endif
#ifdef FLAG_OUTSIDE_PAIR
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

/*
 * Bit 0 of a cell is the slot. Bit 1 is FILLED. The higher bits are the lap. A line of the inbox
 * (INBOX_LINE) has one cell.
 */
#define FILLED 2
#ifdef NO_LAP
#define EMPTY(place) 0
#else
#define EMPTY(place) (((place) / CELLS) << 2)
#endif

#define ARM 0
#define REARM 1
#define CANCEL 2

byte pair[SLOTS];
bool is_free[SLOTS];
byte cell[CELLS];
byte tail = BEGIN;
byte look_by = LATER;
bool bell;
bool asleep;
byte filed[SLOTS];
/* for each caller: 1 + the slot of its call in progress, or PAST; 0: no call in progress */
byte work[CALLERS];
bool apart[SLOTS];  /* with -DFLAG_OUTSIDE_PAIR: the slot is in the inbox */

/*
 * For each slot: number of its entries in the inbox plus number of claimants that will push. If an
 * armer claims a slot again, the armer is counted, and the first claimant is not counted any more.
 */
short inside[SLOTS];

bool never_late = true;
bool always_room = true;
bool once_inside = true;

#define PAST 15 /* value of work[]: the caller's timer has ended, and its slot has a new timer */
#define AT_WORK(slot) (work[0] == 1 + (slot) || work[1] == 1 + (slot))
/*
 * Whether a slot has an armed timer that is due before look_by. While the owner sleeps, look_by is
 * the end of its sleep.
 */
#define LATE(slot) (PHASE(pair[slot]) == ARMED && DEADLINE(pair[slot]) < look_by && !AT_WORK(slot))
#ifdef ONE_SLOT
#define ANY_LATE LATE(0)
#else
#define ANY_LATE (LATE(0) || LATE(1))
#endif

/*
 * The law never_late is checked when the owner goes to sleep and when a caller returns. No other
 * step can break never_late.
 */
inline check_late()
{
	never_late = !(asleep && !bell && ANY_LATE);
	assert(never_late)
}

inline cell_init(i)
{
	/*
	 * At the begin, the cells of the places before the tail have been filled and emptied once.
	 */
	cell[i] = (i < tail -> EMPTY(CELLS) : EMPTY(0))
}

proctype caller(byte me; byte calls)
{
	byte what, w, n, slot, deadline, place, seen;
	bool push, submit;

	/* Choose a call and a slot, and load the slot's pair. */
endnone:
	atomic {
		if
		:: is_free[0] -> what = ARM; slot = 0
		:: PHASE(pair[0]) == ARMED -> what = REARM; slot = 0
#ifdef ONE_SLOT
		:: PHASE(pair[0]) == ARMED && me == 0 -> what = CANCEL; slot = 0
#else
		:: PHASE(pair[0]) == ARMED -> what = CANCEL; slot = 0
		:: is_free[1] -> what = ARM; slot = 1
		:: PHASE(pair[1]) == ARMED -> what = REARM; slot = 1
		:: PHASE(pair[1]) == ARMED -> what = CANCEL; slot = 1
#endif
		fi;
		calls--;
		w = pair[slot];
		if
		:: what == ARM ->
			is_free[slot] = false;
			work[1 - me] = (work[1 - me] == 1 + slot -> PAST : work[1 - me])
		:: else
		fi;
		work[me] = 1 + slot;
		if
		:: what != CANCEL -> deadline = SOON
		:: what != CANCEL -> deadline = LATER
		:: what == CANCEL
		fi
	}
	do
	:: atomic {
		if
		:: what != ARM && PHASE(w) == FREE -> goto done
		:: what != ARM && work[me] == PAST -> goto done
		:: else
		fi;
		if
		:: what == ARM && COVERS(slot, w, deadline) ->
			n = PAIR(ARMED, deadline, LOOKS(w));
			submit = false;
			push = false
		:: what == ARM && !COVERS(slot, w, deadline) ->
			n = PAIR(ARMED, deadline, LOOKS(w)) | (w & PUSHED);
			submit = true;
#ifdef CLAIM_TRUSTED
			push = !(w & CLAIMED)
#else
			push = !(w & PUSHED)
#endif
		:: what == REARM ->
			n = PAIR(ARMED, deadline, LOOKS(w)) | (w & FLAGS);
			submit = deadline < DEADLINE(w);
			push = submit && !(w & CLAIMED)
		:: else ->
			n = PAIR(FREE, DEADLINE(w), LOOKS(w)) | (w & FLAGS);
			submit = false;
			push = false
		fi;
#ifdef NO_COALESCING
		push = submit;
#endif
#ifdef COALESCED_ASLEEP
		submit = push;
#endif
#ifndef FLAG_OUTSIDE_PAIR
		if
#ifdef PUSHED_FIRST
		:: submit -> n = n | FLAGS
#else
		:: submit -> n = n | CLAIMED
#endif
		:: else
		fi;
#endif
		if
		:: pair[slot] == w ->
			pair[slot] = n;
#ifndef FLAG_OUTSIDE_PAIR
			/*
			 * If an armer finds a claim, but no confirmed push, the armer pushes too.
			 */
			inside[slot] = inside[slot] +
				(push -> 1 : 0) - (push && what == ARM && (w & CLAIMED) -> 1 : 0);
			once_inside = (inside[slot] <= 1);
			assert(once_inside);
#endif
			break
		:: else -> w = pair[slot]
		fi }
	od;
#ifdef FLAG_OUTSIDE_PAIR
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
		   /*
		    * lane_advance_tail() moves the tail to `place`. If another caller has moved the
		    * tail further, continue from there.
		    */
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
	/* Models timer_confirm_push(). */
	atomic {
#ifdef NO_RELOAD
		w = n;
#endif
		if
#if !defined(CONFIRMED_ANYWAY) && !defined(FLAG_OUTSIDE_PAIR)
		:: LOOKS(pair[slot]) != LOOKS(n) -> w = 0
#endif
		:: else ->
#ifdef CONFIRMED_ASLEEP
			w = (pair[slot] & PUSHED -> 0 : pair[slot]);
#elif !defined(NO_RELOAD)
			w = pair[slot];
#endif
			pair[slot] = (pair[slot] & CLAIMED -> pair[slot] | PUSHED : pair[slot])
		fi
	}
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
		what = 0;
		check_late();
		if
		:: calls > 0 -> goto endnone
		:: else
		fi
	}
}

inline look_at(slot)
{
#ifdef FLAG_AFTER_STATE
	w = pair[slot];
	atomic {
#else
	atomic {
		w = pair[slot];
#endif
		pair[slot] = LOOKED_AT(pair[slot]);
		inside[slot]--;
#ifdef FLAG_OUTSIDE_PAIR
		apart[slot] = false;
#endif
		filed[slot] = (PHASE(w) == ARMED -> DEADLINE(w) : NEVER);
		w = 0
	}
}

/*
 * Whether the owner would change this slot's schedule entry or pair, if it corrected the entry now.
 */
#define DOUBTED(slot) \
	(PHASE(pair[slot]) == FREE || DEADLINE(pair[slot]) > filed[slot])

/* Models owner_refile() for a scheduled slot. */
inline rest(slot)
{
	w = pair[slot];
	do
	:: atomic {
		if
		:: PHASE(w) == ARMED ->
			filed[slot] = (DEADLINE(w) > filed[slot] -> DEADLINE(w) : filed[slot]);
			break
#ifdef REST_SCHEDULED
		:: PHASE(w) == FREE ->
#else
		:: PHASE(w) == FREE && ((w & CLAIMED) || DEADLINE(w) == NEVER) ->
			filed[slot] = NEVER;
			break
		:: PHASE(w) == FREE && !(w & CLAIMED) && DEADLINE(w) < NEVER && pair[slot] == w ->
			pair[slot] = UNSCHEDULED(w);
#endif
			filed[slot] = NEVER;
			break
		:: else -> w = pair[slot]
		fi }
	od;
	w = 0
}

#ifdef ONE_SLOT
#define EARLIEST filed[0]
#else
#define EARLIEST (filed[0] < filed[1] -> filed[0] : filed[1])
#endif

proctype owner()
{
	byte head = BEGIN, end, seen, w;

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
#ifndef ONE_SLOT
		:: filed[1] < NEVER && DOUBTED(1) -> rest(1)
#endif
		:: break
		od;
		atomic {
			if
			:: EARLIEST > look_by -> look_by = EARLIEST
			:: else -> look_by = EARLIEST; goto sleep
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
	atomic {
		pair[0] = PAIR(ARMED, LATER, 0);
		filed[0] = LATER;
		cell_init(0);
		cell_init(1);
#ifndef ONE_SLOT
		pair[1] = PAIR(FREE, NEVER, 0);
		is_free[1] = true;
		filed[1] = NEVER;
		cell_init(2);
#endif
		run owner();
		run caller(0, CALLS);
		run caller(1, CALLS - 1)
	}
}
