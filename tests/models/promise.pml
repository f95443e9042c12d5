/* SPDX-License-Identifier: MIT */
/*
 * A model of the owner's promise: which caller wakes the owner, and when the owner may sleep.
 *
 * Two callers each arm a timer with any deadline. A canceller may cancel one of these timers before
 * the owner has seen it. A third timer was armed before. The owner and the clock are processes too.
 *
 * Each thread's stores go through a buffer, in order (TSO). A seq_cst store waits until the buffer
 * is empty, and so does a system call. The inbox is a flag for each caller; inbox.pml models it
 * completely. The first sleep may end without a reason, as a signal ends it (EINTR). With -DGATHERS
 * the owner waits for more timers, and does not spin. Refused system calls are left out.
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
 *   never_late  the owner does not sleep (or spin) past the deadline of an armed timer that it has
 *               not seen, if the arming has returned and no wake is pending
 *   in_order    no timer expires while the owner has not seen an earlier one whose arming returned
 *               before its deadline (law 5)
 *
 *   true
 *   true -DGATHERS
 *   bug CALLER_NO_BARRIER     never_late  the promise is read before the push is visible
 *   bug OWNER_NO_BARRIER      never_late  the second look comes before the raised promise is
 *                                         visible
 *   bug PASS_NO_BARRIER       never_late  the look at the inbox comes before the pass number is
 *                                         visible
 *   bug NO_SECOND_LOOK        never_late  no look follows the raise of the promise (trap 5)
 *   bug LOOK_BEFORE_RAISE     never_late  the second look comes before the raise
 *   bug WAKE_IF_ASLEEP        never_late  an owner that is not asleep gets no wake
 *   bug CLAIM_BEFORE_WAKE     never_late  the wake is recorded, then sent
 *   bug WAKE_BY_DEADLINE      never_late  the wake is recorded by the promise found too late, not
 *                                         by pass
 *   bug RECORD_CURRENT_PASS   never_late  the wake is recorded by the pass after it, not the pass
 *                                         before it
 *   bug RECORD_GOES_BACK      never_late  a late record of an older pass hides the record of a
 *                                         newer pass
 *   bug CALLER_LOWERS_PROMISE never_late  the caller lowers the owner's promise (trap 4)
 *   bug BELL_CLEARED_LATE     never_late  the bell is cleared after the look, not before
 *   bug GATHERS_UNTOLD        never_late  -DGATHERS the owner sleeps longer than it promises
 *   bug CLOCK_AFTER_INBOX     in_order    the inbox is emptied, then the clock is read
 */
#define NEVER 9
/* The clock stops here; a later deadline stays in the future. */
#define LAST 2
/* The owner wakes by this earlier and spins: timerhub_config.spin_ns. */
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
bool entry[2];     /* whether the caller's entry is in the inbox */
byte deadline[2];  /* deadlines in the pairs of the callers' timers */
bool unseen[2];    /* the timer is armed and the owner has not seen it */
bool returned[2];  /* the arming call has returned */
bool in_time[2];   /* the arming call returned before the deadline */
byte filed[3];     /* the schedule: deadlines of the callers' timers and of the earlier timer */
byte mode = AWAKE;
byte until;

bool never_late = true;
bool in_order = true;

/* The store buffers: the index of the variable that a store changes. */
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

/* This code is used inside an atomic step. */
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

/* Checked when the owner begins to sleep or to spin, and when a caller returns. */
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
 * The call returns, at its last step or before. Clear the caller's values that are not needed, so
 * that equal states are one. If the owner has seen the entry, this includes the timer's. In an
 * atomic.
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
			/* Clear values that are not needed, so that equal states are one. */
			deadline[k] = (returned[k] -> 0 : deadline[k]);
			returned[k] = false;
			in_time[k] = false
		:: else
		fi
	}
}

/* Whether the owner has not seen a timer that must come before an event with this deadline. */
#define PASSED_OVER(k, at) (unseen[k] && returned[k] && in_time[k] && deadline[k] < at)

/* Expire the timers due by `time`; the others determine `next`. */
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
		/* The steps up to the store into the buffer are visible to this thread only. */
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
		/*
		 * The callers are alike, except that the owner takes the entry of the first caller
		 * first. The interesting case is that the owner misses the earlier deadline and
		 * sees the later deadline.
		 */
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
