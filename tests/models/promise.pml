/* SPDX-License-Identifier: MIT */
/*
 * The promise and its passes: which caller wakes the owner, and when the owner may sleep.
 *
 * Two callers, each of which arms a timer with a deadline of any kind; a canceller of one of these
 * before the owner has seen it; a timer that was there before; the owner; the clock.
 *
 * Stores go through a buffer for each thread, first in first out (TSO). A seq_cst store waits until
 * it is empty, and so does a thread that enters the kernel. The inbox is a flag for each caller:
 * inbox.pml has it in full. The first sleep may end for no reason, as a signal ends one (EINTR).
 * With -DGATHERS the owner lets what is filed wait for more (and does not spin). Left out: system
 * calls that are refused.
 *
 * Models:
 *   lib/owner/promise.c       promise_begin_pass() promise_make() promise_woken()
 *                             promise_wants_wake() promise_record_wake()
 *   lib/hub/hub.c             hub_submit() hub_wake()
 *   lib/owner/owner.c         owner_pass() owner_run_passes() owner_expire() owner_gather()
 *   lib/owner/owner_thread.c  owner_sleep() owner_spin() owner_main()
 *   lib/owner/sleeper_poll.c  poll_sleep()
 *   lib/owner/sleeper_uring.c uring_sleep() uring_reap()
 *
 * Laws:
 *   never_late  no armed timer whose arming has returned is due before the end of the owner's sleep
 *               (or spin), is unseen by the owner, and no wake is pending
 *   in_order    no timer expires while one lies unseen that is due earlier and whose arming
 *               returned before that deadline (law 5)
 *
 *   true
 *   true -DGATHERS
 *   bug CALLER_NO_BARRIER     never_late  the push may be seen after the promise was read
 *   bug OWNER_NO_BARRIER      never_late  the raised promise may be seen after the second look
 *   bug PASS_NO_BARRIER       never_late  the pass number may be seen after the look at the inbox
 *   bug NO_SECOND_LOOK        never_late  the promise is raised, and that is that (trap 5)
 *   bug LOOK_BEFORE_RAISE     never_late  the second look comes before the promise is raised
 *   bug WAKE_IF_ASLEEP        never_late  no wake for an owner that is not asleep
 *   bug CLAIM_BEFORE_WAKE     never_late  the wake is recorded, then sent
 *   bug WAKE_BY_DEADLINE      never_late  recorded by the promise found too late, not by pass
 *   bug RECORD_CURRENT_PASS   never_late  recorded by the pass after the wake, not the one before
 *   bug RECORD_GOES_BACK      never_late  a late record of an older pass hides that of a newer one
 *   bug CALLER_LOWERS_PROMISE never_late  the promise is ended on the owner's behalf (trap 4)
 *   bug BELL_CLEARED_LATE     never_late  the bell is cleared after the look, not before
 *   bug GATHERS_UNTOLD        never_late  -DGATHERS it promises one thing, and sleeps for another
 *   bug CLOCK_AFTER_INBOX     in_order    the inbox is emptied, then the clock is read
 */
#define NEVER 9
/* The clock goes so far; a deadline behind that is in the future for ever. */
#define LAST 2
/* The owner wakes so early and spins: owner_config.spin_ns. */
#ifdef GATHERS
#define SPIN 0
#else
#define SPIN 1
#endif
#define GATHER 2
/* A sleep before this pass may be interrupted. */
#define EINTR_BEFORE 3

#define AWAKE 0
#define ASLEEP 1
#define SPINNING 2

byte now;
byte look_by = 2;
byte pass = 1;
byte woken;
bool bell;
bool entry[2];     /* in the inbox */
byte deadline[2];  /* of the callers' timers' pairs */
bool unseen[2];    /* armed, and not yet seen by the owner */
bool returned[2];  /* the arming has returned */
bool in_time[2];   /* and it did so before the deadline */
byte filed[3];     /* the callers' timers, and the old one */
byte mode = AWAKE;
byte until;

bool never_late = true;
bool in_order = true;

/* The store buffers: what is to be stored where. */
#define PASS 0
#define LOOK_BY 1
byte owner_count, owner_what[2], owner_value[2];
bool caller_entry[2];

proctype memory()
{
end:
	do
	:: atomic {
		owner_count > 0 ->
		if
		:: owner_what[0] == PASS -> pass = owner_value[0]
		:: else -> look_by = owner_value[0]
		fi;
		owner_what[0] = owner_what[1];
		owner_value[0] = owner_value[1];
		owner_what[1] = 0;
		owner_value[1] = 0;
		owner_count-- }
	:: atomic { caller_entry[0] -> caller_entry[0] = false; entry[0] = true }
	:: atomic { caller_entry[1] -> caller_entry[1] = false; entry[1] = true }
	od
}

/* Inside an atomic. */
inline owner_store(what, value)
{
	owner_count < 2;
	owner_what[owner_count] = what;
	owner_value[owner_count] = value;
	owner_count++
}

#define LATE(k) (unseen[k] && returned[k] && deadline[k] < until)
#define SLEEPS ((mode == ASLEEP && !bell && now + SPIN < until) || \
	(mode == SPINNING && woken != pass && now < until))

/* To be asked whenever the owner begins to sleep or to spin, or a caller returns. */
inline check_late()
{
	never_late = !(SLEEPS && (LATE(0) || LATE(1)));
	assert(never_late)
}

proctype clock()
{
end:
	do
	:: now < LAST -> now++
	od
}

proctype canceller()
{
end:
	if
	:: atomic { entry[0] && unseen[0] -> deadline[0] = NEVER }
	:: atomic { entry[1] && unseen[1] -> deadline[1] = NEVER }
	fi
}

/*
 * The call returns, no later than its last step: what it saw and, if the owner has seen the entry,
 * what it had armed is of no more use, and so not to be told apart. In an atomic.
 */
inline leave()
{
	returned[me] = unseen[me];
	in_time[me] = (unseen[me] && now < deadline[me]);
	deadline[me] = (unseen[me] -> deadline[me] : 0);
	seen_pass = 0;
	seen_look_by = 0;
	check_late();
	goto done
}

proctype caller(byte me)
{
	byte seen_pass, seen_look_by;

	atomic { unseen[me] = true; caller_entry[me] = true }
#ifdef CALLER_NO_BARRIER
	seen_pass = pass;
#else
	atomic { !caller_entry[me] -> seen_pass = pass }
#endif
	atomic {
		seen_look_by = look_by;
		if
		:: deadline[me] >= seen_look_by -> leave()
		:: else
		fi;
#if !defined(CALLER_LOWERS_PROMISE) && !defined(WAKE_BY_DEADLINE)
		seen_look_by = 0
#endif
	}
#ifdef WAKE_IF_ASLEEP
	atomic {
		if
		:: mode == AWAKE -> leave()
		:: else
		fi
	}
#endif
	atomic {
		if
#ifdef WAKE_BY_DEADLINE
		:: woken == seen_look_by + 1 -> leave()
#else
		:: woken == seen_pass -> leave()
#endif
		:: else
		fi
	}
#ifdef CLAIM_BEFORE_WAKE
	woken = seen_pass;
#endif
	atomic { !caller_entry[me] -> bell = true }
#ifdef RECORD_CURRENT_PASS
	seen_pass = pass;
#endif
	atomic {
		if
#ifdef CALLER_LOWERS_PROMISE
		:: look_by == seen_look_by -> look_by = 0
#elif defined(RECORD_GOES_BACK)
		:: true -> woken = seen_pass
#elif defined(WAKE_BY_DEADLINE)
		:: true -> woken = seen_look_by + 1
#else
		:: woken < seen_pass -> woken = seen_pass
#endif
		:: else
		fi;
		leave()
	}
done:
	skip
}

inline take(k)
{
	atomic {
		if
		:: entry[k] ->
			entry[k] = false;
			unseen[k] = false;
			filed[k] = deadline[k];
			/* Of no more use, and so not to be told apart. */
			deadline[k] = (returned[k] -> 0 : deadline[k]);
			returned[k] = false;
			in_time[k] = false
		:: else
		fi
	}
}

/* Is it unseen although an event with this deadline must not come before it? */
#define PASSED_OVER(k, at) (unseen[k] && returned[k] && in_time[k] && deadline[k] < at)

/* Expire what is due by `time`; what remains tells `next`. */
inline expire()
{
	do
	:: next = (filed[0] < filed[1] -> filed[0] : filed[1]);
	   next = (filed[2] < next -> filed[2] : next);
	   if
	   :: next > time -> break
	   :: else
	   fi;
	   in_order = !(PASSED_OVER(0, next) || PASSED_OVER(1, next));
	   assert(in_order);
	   filed[0] = (filed[0] == next -> NEVER : filed[0]);
	   filed[1] = (filed[1] == next -> NEVER : filed[1]);
	   filed[2] = (filed[2] == next -> NEVER : filed[2])
	od
}

proctype owner()
{
	byte number = 1, promised = 2, time, next;
	bool raised;

	do
	::
around:
		atomic {
			until = 0;
			raised = false;
			next = 0;
			number++;
			owner_store(PASS, number)
		}
#ifdef CLOCK_AFTER_INBOX
		owner_count == 0;
#elif defined(PASS_NO_BARRIER)
		time = now;
#else
		atomic { owner_count == 0 -> time = now }
#endif
		take(0);
		/* The rest of this up to the store into the buffer is to itself. */
		atomic {
			take(1);
#ifdef CLOCK_AFTER_INBOX
			time = now;
#endif
#ifdef BELL_CLEARED_LATE
			bell = false;
#endif
			expire();
			until = next;
#ifdef GATHERS
			until = (until < time + GATHER -> time + GATHER : until);
#endif
#ifndef GATHERS_UNTOLD
			next = until;
#endif
			time = 0;
			raised = next > promised;
#ifdef LOOK_BEFORE_RAISE
			if
			:: raised && (entry[0] || entry[1]) -> goto around
			:: else -> raised = false
			fi;
#endif
			if
			:: next != promised -> owner_store(LOOK_BY, next)
			:: else
			fi;
			promised = next;
			next = 0
		}
		atomic {
#ifndef OWNER_NO_BARRIER
			owner_count == 0 ->
#endif
			if
#ifndef NO_SECOND_LOOK
			:: raised && entry[0] -> goto around
			:: raised && !entry[0]
#endif
			:: else -> raised = false; goto sleep
			fi
		}
		atomic {
			raised = false;
			if
			:: entry[1] -> goto around
			:: else
			fi
		}
sleep:
		atomic {
			if
			:: now + SPIN < until -> owner_count == 0; mode = ASLEEP; check_late()
			:: else -> goto spin
			fi
		}
endsleep:
		atomic {
			if
#ifdef BELL_CLEARED_LATE
			:: bell
#else
			:: bell -> bell = false
#endif
#ifndef GATHERS
			:: number < EINTR_BEFORE /* EINTR */
#endif
			:: until != NEVER && until - SPIN <= now
			fi;
			mode = AWAKE;
#ifdef GATHERS
			goto around
#endif
		}
spin:
		atomic {
			if
			:: now < until && now + SPIN >= until -> mode = SPINNING; check_late()
			:: else -> goto around
			fi
		}
endspin:
		atomic { (now >= until || woken == pass) -> mode = AWAKE }
	od
}

init {
	atomic {
		filed[0] = NEVER;
		filed[1] = NEVER;
		filed[2] = 2;
		/* Callers are alike, but that the owner takes the first one's entry first: what
		 * could hurt is that it misses the earlier deadline and sees the later. */
		if
		:: deadline[0] = 1; deadline[1] = 1
		:: deadline[0] = 1; deadline[1] = 3
		:: deadline[0] = 3; deadline[1] = 3
		fi;
		run memory();
		run clock();
		run canceller();
		run owner();
		run caller(0);
		run caller(1)
	}
}
