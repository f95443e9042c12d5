/* SPDX-License-Identifier: MIT */
/*
 * Two models, as of 2026-11-27. A design note: test_look_timing.c, wire_test.py and lives_test.py
 * run the code.
 *
 * With -DLATE: commands that reach Redis after their caller gave up. One caller cancels a task, or
 * has taken it and ends it. Its connection may be lost twice. After a loss it sends its command
 * again, and it may repeat its call; the old commands arrive at any time, in any order. Another
 * program meanwhile puts, moves, takes and ends the task. The model leaves out the inaccuracy of
 * `until`, and a stop between the confirmation of a delivery and its return from take.
 *
 * Without -DLATE: which relays a put wakes, and which relay polls when a task becomes due. There
 * are relays, two producers, and a Redis server that runs one script after another. At most one of
 * these four faults happens:
 *
 * - A relay dies. Its connection is closed or stays half-open.
 * - A relay leaves.
 * - A relay's subscriptions are cut.
 * - All keys in Redis are deleted.
 *
 * Each relay has two connections. A poll, its answer and the wake-up messages may be on their way
 * for any number of steps. Messages of different connections may overtake each other. The clock of
 * Redis advances only when no message is on its way and no relay has a poll to make. The model
 * therefore shows the effect of the order of steps, and not of their duration. The model leaves out
 * leases, jumps of a clock, and the death of a second relay.
 *
 * Models:
 *   lib/relay/timerhub.lua find_seats() ring_seats() ring() insert() promote() sit() ladder()
 *                          promise() look() leave()
 *   lib/relay/look_timing.c look_timing_due_ns() look_timing_sent() look_timing_answered()
 *                           look_timing_rung() look_timing_ladder_us()
 *   lib/relay/scheduler.c      subscribe() listen() look() confirm() scheduler_answered()
 *   lib/relay/pipeline.c       the fence; request.c: until, done; take.c: the confirmation
 *
 * Laws:
 *   final_call    a call that has returned changes nothing any more, nor does what it sent before
 *   own_delivery  done ends only the delivery that its caller has
 *   ended_stays   no ended or moved task is handed out
 *   never_late    a task is promoted at its time
 *                 If the first relay has died and no other relay has noticed, the task may be late.
 *   one_grace     after a death, a task is promoted at most one grace late
 *   first_stays   a relay of rank 0 that keeps its promise keeps its rank
 *
 *   true
 *   true -DRELAYS=2 -DBATCH=1
 *   true -DLATE
 *   bug NO_FENCE          final_call    -DLATE only `until` refuses an old command
 *   bug FENCE_LAST        final_call    -DLATE the repeated command is sent before the fence
 *   bug NO_UNTIL          final_call    -DLATE a cancel that its caller gave up is executed
 *   bug DONE_BY_ID        own_delivery  -DLATE done names no entry
 *   bug NO_CONFIRM        ended_stays   -DLATE take hands out an entry whose lease is over
 *   bug PUBLISH_FIRST     never_late    put publishes, then inserts the task
 *   bug ANSWER_OVERWRITES never_late    answer replaces a time set by a message
 *   bug LOOK_FIRST        never_late    -DRELAYS=2 relay polls, then subscribes
 *   bug ABSENT_IS_ZERO    never_late    a missing promise counts as promise of time 0
 *   bug LEAVE_SILENT      never_late    a relay that leaves does not wake the next relay
 *   bug NO_COMMON_BELL    never_late    put does not publish if no relay has a seat
 *   bug NO_LOOK_AFTER_CUT never_late    relay subscribes again, does not poll
 *   bug ONE_SEAT          one_grace     put stops at the first seat that hears its message
 *   bug NO_LADDER         one_grace     relay of rank 1 sleeps without a bound
 *   bug NOT_CLAMPED       first_stays   -DRELAYS=2 -DBATCH=1 a promise may be in the past
 *   bug RUNG_IN_THE_PAST  first_stays   a put with a past time promises that time
 */
#ifndef RELAYS
#define RELAYS 3
#endif
#ifndef BATCH
#define BATCH 2
#endif
#define TASKS 2
#define HORIZON 3
#define GRACE 1
/* The clock of Redis stops at this time. */
#define LAST 5
#define NEVER 15
#define COMMON 3 /* stands for the rank in a message to all relays */

#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))

/* ==== late delivery (-DLATE) ==== */
#ifdef LATE

#define CALLS 2
#define CONNECTIONS 3 /* of which each but the last may be lost */
#define SENT_MAX 8
#define CHANGES 3     /* of the other program */

#define CANCEL 1
#define DONE 2
#define FENCE 3

/*
 * Redis. `version` names the task's life, its time and its delivery: each put, move and delivery
 * after a lease gives it a new one. 0: there is no task.
 */
byte version = 1, last_version = 1, fence = 1;

/* Commands in the order of their sending; 0: executed, or none. */
byte kind[SENT_MAX], epoch[SENT_MAX], of_call[SENT_MAX];
byte sent;

byte connection = 1;      /* of the caller; its number is its epoch */
byte call;                /* number of the caller's call */
byte what;                /* CANCEL or DONE */
bool is_answered;         /* the reply has not reached the caller yet */
bool returned[CALLS], expired[CALLS];
bool in_lease = true;

bool final_call = true;
bool own_delivery = true;
bool ended_stays = true;

#define SEND(a_kind) kind[sent] = a_kind; epoch[sent] = connection; of_call[sent] = call; sent++

inline send_call()
{
	if
#ifdef FENCE_LAST
	:: connection > 1 -> SEND(what); SEND(FENCE)
#elif !defined(NO_FENCE)
	:: connection > 1 -> SEND(FENCE); SEND(what)
#endif
	:: else -> SEND(what)
	fi
}

#ifdef NO_UNTIL
#define IS_EXPIRED(one) (kind[one] != CANCEL && expired[of_call[one]])
#else
#define IS_EXPIRED(one) expired[of_call[one]]
#endif
#ifdef DONE_BY_ID
#define NAMES_OTHER(one) false
#else
#define NAMES_OTHER(one) (kind[one] == DONE && version != 1)
#endif

/* Redis executes a command, and its reply leaves on the connection, if that is open. */
inline execute(one)
{
	if
	:: kind[one] == FENCE -> fence = MAX(fence, epoch[one])
	:: else ->
		if
		:: epoch[one] >= fence && !IS_EXPIRED(one) && version != 0 && !NAMES_OTHER(one) &&
		   (kind[one] == DONE || !in_lease || version != 1) ->
			final_call = !returned[of_call[one]];
			assert(final_call);
			own_delivery = (kind[one] != DONE || version == 1);
			assert(own_delivery);
			version = 0
		:: else
		fi;
		is_answered = is_answered || epoch[one] == connection
	fi;
	kind[one] = 0;
	epoch[one] = 0;
	of_call[one] = 0
}

/* Bytes of one connection arrive in order; after its loss, in any order, at any time, or never. */
#define IS_FIRST(one, before) (before >= one || kind[before] == 0 || epoch[before] != epoch[one])
#define MAY_ARRIVE(one) (kind[one] != 0 && (epoch[one] != connection || (IS_FIRST(one, 0) && \
	IS_FIRST(one, 1) && IS_FIRST(one, 2) && IS_FIRST(one, 3) && IS_FIRST(one, 4) && \
	IS_FIRST(one, 5) && IS_FIRST(one, 6))))

proctype network()
{
end:
	do
	:: d_step { MAY_ARRIVE(0) -> execute(0) }
	:: d_step { MAY_ARRIVE(1) -> execute(1) }
	:: d_step { MAY_ARRIVE(2) -> execute(2) }
	:: d_step { MAY_ARRIVE(3) -> execute(3) }
	:: d_step { MAY_ARRIVE(4) -> execute(4) }
	:: d_step { MAY_ARRIVE(5) -> execute(5) }
	:: d_step { MAY_ARRIVE(6) -> execute(6) }
	:: d_step { MAY_ARRIVE(7) -> execute(7) }
	od
}

/*
 * Makes one kind of call, and repeats a call in doubt, or never calls again, as a killed program.
 * It may take the delivery that Redis gave it, and be stopped before.
 */
proctype caller()
{
	if
	:: what = CANCEL
	:: d_step {
		/* take: hands out the delivery, after a confirmation if the lease may be over */
#ifndef NO_CONFIRM
		in_lease || version == 1 ->
#endif
			ended_stays = (version == 1);
			assert(ended_stays);
			what = DONE
	   }
	fi;
	d_step { send_call() }
end:
	do
	:: d_step {
		/* The connection is lost. The call goes on by the next one. */
		!returned[call] && connection < CONNECTIONS ->
			connection++;
			is_answered = false;
			send_call()
	   }
	:: d_step { is_answered && !returned[call] -> returned[call] = true; is_answered = false }
	:: d_step {
		/* The timeout ends, and so does the connection, which has not answered. */
		!returned[call] && connection < CONNECTIONS ->
			returned[call] = true;
			expired[call] = true;
			is_answered = false;
			connection++
	   }
	:: d_step {
		returned[call] && expired[call] && call + 1 < CALLS -> call++; send_call()
	   }
	od
}

/* Another program, whose network is good, and which changes the task whenever it may. */
proctype other()
{
	byte changes;

	do
	:: d_step { in_lease -> in_lease = false }
	:: d_step {
		changes < CHANGES && version == 0 ->
			last_version++;
			version = last_version;
			changes++
	   }
	:: d_step { /* cancels it, or takes it after the lease, and ends it */
		changes < CHANGES && version != 0 && !in_lease -> version = 0; changes++
	   }
	:: d_step { /* moves it, or takes it after the lease */
		changes < CHANGES && version != 0 && !in_lease ->
			last_version++;
			version = last_version;
			changes++
	   }
	:: changes == CHANGES && !in_lease -> break
	od
}

init {
	atomic { run network(); run caller(); run other() }
}

#else

/* ==== notifications ==== */

/*
 * States of a relay. In the state IDLE no poll is in progress. In the states SENT and RAN a poll is
 * in progress. In the state GONE the relay has died or left.
 */
#define IDLE 0
#define SENT 1 /* the poll is on its way to Redis */
#define RAN 2  /* Redis has run the poll, and the answer is on its way */
#define GONE 3

/*
 * The keys in Redis. A relay that broke fewer promises has a lower rank. If two relays broke
 * equally many promises, the relay with the lower index has the lower rank.
 */
byte now;
byte look_by = NEVER;
byte due[TASKS];   /* due time of each task, or NEVER if the task does not exist */
byte since[TASKS]; /* time since which the task exists and is due, or NEVER */
bool seated[RELAYS], hears[RELAYS];
byte broken[RELAYS];

/*
 * The relays' variables. told_time, told_rank and told_more are the values of an answer on its way
 * to the relay.
 */
byte stage[RELAYS], target[RELAYS], rung_for[RELAYS];
byte told_time[RELAYS], told_rank[RELAYS];
bool told_more[RELAYS];
chan bell[RELAYS] = [3] of { byte, byte };

bool never_late = true;
bool one_grace = true;
bool first_stays = true;

#define ORDER(relay) (broken[relay] * RELAYS + relay)
#define BEFORE(one, relay) (seated[one] && ORDER(one) < ORDER(relay))
#if RELAYS == 3
#define RANK(relay) (BEFORE(0, relay) + BEFORE(1, relay) + BEFORE(2, relay))
#else
#define RANK(relay) (BEFORE(0, relay) + BEFORE(1, relay))
#endif
#define LADDER(rank) (rank * GRACE)
#define HEAD MIN(due[0], due[1])

/* ---- Redis: parts of scripts ---- */

/*
 * Publish to the two lowest ranks. A relay without a subscription loses its seat, and the next
 * relay gets its rank. `count` is the number of relays that the message was published to.
 */
inline ring_seats(at)
{
	count = 0;
	do
#ifdef ONE_SEAT
	:: count == 1 -> break
#endif
	:: count < 2 ->
		first = NEVER;
		for (one : 0 .. RELAYS - 1) {
			if
			:: seated[one] && RANK(one) == count -> first = one
			:: else
			fi
		}
		if
		:: first == NEVER -> break
		:: first != NEVER && !hears[first] -> seated[first] = false
		:: first != NEVER && hears[first] ->
			if
			:: stage[first] != GONE -> bell[first]!at, count
			/* if the relay is dead and its connection half-open, the message is lost */
			:: else
			fi;
			count++
		fi
	:: count == 2 -> break
	od;
	first = 0;
	one = 0
}

inline ring_bells(at)
{
	if
#ifdef ABSENT_IS_ZERO
	:: at < (look_by == NEVER -> 0 : look_by) ->
#else
	:: at < look_by ->
#endif
		ring_seats(at);
#ifndef NO_COMMON_BELL
		for (one : 0 .. RELAYS - 1) {
			if
			:: count == 0 && hears[one] && stage[one] != GONE -> bell[one]!at, COMMON
			:: else
			fi
		}
#endif
		count = 0;
		one = 0
	:: else
	fi
}

inline promote()
{
	for (one : 0 .. TASKS - 1) {
		if
		:: due[one] <= now && count < BATCH ->
			due[one] = NEVER;
			since[one] = NEVER;
			count++
		:: else
		fi
	}
	count = 0;
	one = 0
}

inline sit(me)
{
	seated[me] = true;
	if
	:: RANK(me) > 0 &&
	   (look_by == NEVER || now >= look_by + GRACE || look_by > now + HORIZON) ->
		for (one : 0 .. RELAYS - 1) {
			if
			:: BEFORE(one, me) ->
				first_stays = (RANK(one) > 0 || stage[one] == GONE ||
					       look_by == NEVER);
				assert(first_stays);
				is_moved[one] = true
			:: else
			fi
		}
		for (one : 0 .. RELAYS - 1) {
			broken[one] = broken[one] + is_moved[one];
			is_moved[one] = false
		}
		one = 0
	:: else
	fi
}

inline promise(me)
{
	told_rank[me] = RANK(me);
	if
	:: told_rank[me] == 0 ->
		look_by = MIN(HEAD, now + HORIZON);
#ifndef NOT_CLAMPED
		look_by = MAX(look_by, now);
#endif
		told_more[me] = (HEAD <= now);
		told_time[me] = look_by
	:: else ->
#ifdef NO_LADDER
		told_time[me] = now + HORIZON
#else
		told_time[me] = MIN(look_by, now + HORIZON) + LADDER(told_rank[me])
#endif
	fi
}

/* ---- relays ---- */

/* Relay `me` has received a message with `time` and a rank in `place`. */
inline rung(me)
{
	time = time + (place == COMMON -> 0 : LADDER(place));
	rung_for[me] = (stage[me] == IDLE -> NEVER : MIN(rung_for[me], time));
	target[me] = MIN(target[me], time);
	time = 0;
	place = 0
}

inline answered(me)
{
	target[me] = (told_more[me] -> now : told_time[me]);
#ifndef ANSWER_OVERWRITES
	target[me] = MIN(target[me], rung_for[me]);
#endif
	/* Reset values that are not needed any more, so that equal states become one. */
	rung_for[me] = NEVER;
	told_time[me] = 0;
	told_rank[me] = 0;
	told_more[me] = false
}

proctype relay(byte me)
{
	byte time, place, one, count, first;
	bool is_moved[RELAYS];

end:
	do
	:: d_step {
		/* Redis confirms the relay's subscriptions, and the relay polls at once. */
		!hears[me] && stage[me] != GONE ->
			hears[me] = true;
#if !defined(LOOK_FIRST) && !defined(NO_LOOK_AFTER_CUT)
			rung_for[me] = (stage[me] == IDLE -> NEVER : now);
			target[me] = now
#endif
	   }
	:: d_step { stage[me] != GONE && nempty(bell[me]) -> bell[me]?time, place; rung(me) }
	:: d_step {
#ifdef LOOK_FIRST
		stage[me] == IDLE && target[me] <= now ->
#else
		stage[me] == IDLE && target[me] <= now && hears[me] ->
#endif
			stage[me] = SENT;
			target[me] = NEVER;
			rung_for[me] = NEVER
	   }
	:: d_step { stage[me] == SENT -> promote(); sit(me); promise(me); stage[me] = RAN }
	:: d_step { stage[me] == RAN -> answered(me); stage[me] = IDLE }
	:: stage[me] == GONE -> break
	od
}

/* ---- producers ---- */

proctype producer(byte task; byte time)
{
	byte at, one, count, first;

#ifdef PUBLISH_FIRST
	d_step { at = MAX(time, now); ring_bells(at) }
#endif
	d_step {
		at = MAX(time, now);
		due[task] = time;
		since[task] = at;
#ifdef RUNG_IN_THE_PAST
		at = time;
#endif
#ifndef PUBLISH_FIRST
		ring_bells(at);
#endif
		look_by = MIN(look_by, at);
		at = 0
	}
}

/* ---- faults, and the clock ---- */

inline forget_relay(me)
{
	stage[me] = GONE;
	target[me] = NEVER;
	rung_for[me] = NEVER;
	told_time[me] = 0;
	told_rank[me] = 0;
	do
	:: nempty(bell[me]) -> bell[me]?_, _
	:: empty(bell[me]) -> break
	od;
	told_more[me] = false
}

proctype misfortune(byte me)
{
	byte one, count, first;

	if
	:: d_step { stage[me] != GONE -> forget_relay(me); hears[me] = false }
	:: d_step { stage[me] != GONE && hears[me] -> forget_relay(me) }
	:: d_step {
		/*
		 * A relay calls the Lua functions look() and leave() by one connection. When Redis
		 * runs leave(), Redis has therefore already run all earlier calls of the relay.
		 */
		stage[me] != SENT && seated[me] ->
			count = RANK(me);
			seated[me] = false;
			hears[me] = false;
			forget_relay(me);
#ifndef LEAVE_SILENT
			if
			:: count < 2 && look_by != NEVER -> ring_seats(look_by)
			:: else
			fi;
#endif
			count = 0
	   }
	:: d_step {
		hears[me] ->
			do
			:: nempty(bell[me]) -> bell[me]?_, _
			:: empty(bell[me]) -> break
			od;
			hears[me] = false
	   }
	:: d_step {
		look_by = NEVER;
		for (one : 0 .. TASKS - 1) {
			due[one] = NEVER;
			since[one] = NEVER
		}
		for (one : 0 .. RELAYS - 1) {
			seated[one] = false;
			broken[one] = 0
		}
		one = 0
	   }
	:: true
	fi
}

/*
 * True if all messages from and to the relay have arrived, and the relay has nothing to send at
 * this time.
 */
#define IS_QUIET(me) (stage[me] == GONE || \
	(stage[me] == IDLE && hears[me] && target[me] > now && empty(bell[me])))
/* Whether this relay is dead and has rank 0. The relay of rank 0 must poll first. */
#define IS_DEAD_FIRST(me) (stage[me] == GONE && seated[me] && RANK(me) == 0)
#if RELAYS == 3
#define ALL_QUIET (IS_QUIET(0) && IS_QUIET(1) && IS_QUIET(2))
#define DEAD_FIRST (IS_DEAD_FIRST(0) || IS_DEAD_FIRST(1) || IS_DEAD_FIRST(2))
#else
#define ALL_QUIET (IS_QUIET(0) && IS_QUIET(1))
#define DEAD_FIRST (IS_DEAD_FIRST(0) || IS_DEAD_FIRST(1))
#endif
#define WAITS_SINCE MIN(since[0], since[1])

proctype clock()
{
end:
	do
	:: d_step {
		now < LAST && ALL_QUIET ->
			one_grace = (WAITS_SINCE + GRACE > now);
			assert(one_grace);
			never_late = (WAITS_SINCE > now || DEAD_FIRST);
			assert(never_late);
			now++
	   }
	od
}

init {
	byte one, other;

	atomic {
		for (one : 0 .. RELAYS - 1) {
			rung_for[one] = NEVER;
#if RELAYS > 2
			/* At the begin of the run all relays have subscribed and have ranks. */
			hears[one] = true;
			seated[one] = true;
			target[one] = HORIZON + LADDER(one)
#endif
		}
#if RELAYS > 2
		look_by = HORIZON;
#endif
		due[0] = NEVER;
		due[1] = NEVER;
		since[0] = NEVER;
		since[1] = NEVER;
		if
		:: one = 0; other = 0
		:: one = 0; other = 2
		:: one = 2; other = 4
		:: one = 4; other = 4
		fi;
		run producer(0, one);
		run producer(1, other);
		if
		:: other = 0
		:: other = 1
		:: other = RELAYS - 1
		fi;
		run misfortune(other);
		for (one : 0 .. RELAYS - 1) {
			run relay(one)
		}
		run clock();
		one = 0;
		other = 0
	}
}
#endif
