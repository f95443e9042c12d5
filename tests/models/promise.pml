/* SPDX-License-Identifier: MIT */
/*
 * A model of the owner's promise, as of 2026-11-26: which caller wakes the owner, and when the
 * owner may sleep. A design note: the simulation runs the code itself.
 *
 * Two callers each arm a timer, with one of two deadlines. A canceller may cancel one of the
 * callers' timers before the owner has seen the timer. A third timer was armed earlier. The owner
 * and the clock are processes too.
 *
 * Each thread's stores go through a store buffer, in order (TSO). A seq_cst store and a system call
 * each wait until the thread's buffer is empty. The inbox is only a flag for each caller. A signal
 * may end the owner's first sleep too early (EINTR). With -DGATHERS the owner coalesces a burst of
 * timers, and does not spin. No system call of the model is refused.
 *
 * Models:
 *   lib/owner/promise.c       promise_begin_pass() promise_make() promise_woken()
 *                             promise_wants_wake() promise_record_wake()
 *   lib/hub/submit.c hub_submit() hub_wake()
 *   lib/owner/owner.c         owner_pass() owner_run_passes() owner_expire() owner_gather()
 *   lib/owner/owner_thread.c  owner_sleep() owner_spin() owner_main()
 *   lib/owner/sleeper_poll.c  poll_sleep()
 *   lib/owner/sleeper_uring.c uring_sleep() uring_reap()
 *
 * Laws:
 *   never_late   the owner does not sleep or spin beyond the deadline of an armed timer
 *                The law holds for a timer if its arming call has returned, the owner has not seen
 *                the timer, and no wake is pending.
 *   in_order     while the owner has not seen an earlier timer, no later timer expires
 *                The law holds if the call that armed the earlier timer returned before that
 *                timer's deadline (law 5).
 *
 *   true
 *   true -DGATHERS
 *   bug CALLER_NO_BARRIER     never_late   caller reads the promise before its push is visible
 *   bug OWNER_NO_BARRIER      never_late   early second look
 *                                          The owner looks at the inbox again before the raised
 *                                          promise is visible.
 *   bug PASS_NO_BARRIER       never_late   early look
 *                                          The owner looks at the inbox before the new pass number
 *                                          is visible.
 *   bug NO_SECOND_LOOK        never_late   no second look after a raise (trap 5)
 *   bug LOOK_BEFORE_RAISE     never_late   owner looks again, then raises its promise
 *   bug WAKE_IF_ASLEEP        never_late   caller wakes the owner only if it is asleep
 *   bug CLAIM_BEFORE_WAKE     never_late   caller records its wake, then sends it
 *   bug WAKE_BY_DEADLINE      never_late   recorded by promise
 *                                          A caller that wakes the owner records the promise that
 *                                          it read. The caller does not record the pass number.
 *   bug RECORD_CURRENT_PASS   never_late   recorded too late
 *                                          After the wake, a caller reads the pass number again,
 *                                          and records the wake for this pass.
 *   bug RECORD_GOES_BACK      never_late   older record wins
 *                                          A late record of an older pass replaces the record of a
 *                                          newer pass.
 *   bug CALLER_LOWERS_PROMISE never_late   caller lowers the owner's promise (trap 4)
 *   bug BELL_CLEARED_LATE     never_late   owner looks, then clears the bell
 *   bug GATHERS_UNTOLD        never_late   -DGATHERS owner sleeps longer than it promises
 *   bug CLOCK_AFTER_INBOX     in_order     owner empties the inbox, then reads the clock
 */
#define NEVER 9
/* The clock stops at this time, so a later deadline stays in the future. */
#define LAST 2
/*
 * SPIN stands for the time timerhub_config.spin_ns. The owner wakes this much time before the next
 * deadline, and then spins until the deadline.
 */
#ifdef GATHERS
#define SPIN 0
#else
#define SPIN 1
#endif
#define GATHER 2
/* Before the pass with this number, a sleep may be interrupted by a signal. */
#define EINTR_BEFORE 3

#define AWAKE 0
#define ASLEEP 1
#define SPINNING 2

byte now;
byte look_by = 2;
byte pass = 1;
byte woken;
bool bell;
bool entry[2];     /* for each caller: whether its entry is in the inbox */
byte deadline[2];  /* for each caller: the deadline in its timer's pair */
bool unseen[2];    /* true if the caller's timer is armed, and the owner has not seen the timer */
bool returned[2];  /* true if the call that arms the timer has returned */
bool in_time[2];   /* true if the call that arms the timer returned before the deadline */
/* the schedule: deadlines of the two callers' timers and of the third timer */
byte filed[3];
byte mode = AWAKE;
byte until;

bool never_late = true;
bool in_order = true;

/*
 * The store buffers. owner_what[] has the variables of the owner's buffered stores, PASS or
 * LOOK_BY. caller_entry[] has the callers' buffered stores.
 */
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

/* owner_store() is called inside an atomic step, and appends a store to the owner's buffer. */
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

/*
 * The law never_late is checked when the owner begins to sleep or to spin, and when a caller
 * returns.
 */
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
 * The caller's call returns. leave() resets the values that are not needed any more, so that equal
 * states become one. The timer's deadline is needed only until the owner has seen the entry.
 * leave() is called inside an atomic step.
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
			/*
			 * Reset values that are not needed any more, so that equal states become
			 * one.
			 */
			deadline[k] = (returned[k] -> 0 : deadline[k]);
			returned[k] = false;
			in_time[k] = false
		:: else
		fi
	}
}

/*
 * True if caller k's timer must expire before a timer with the deadline `at`, but the owner has not
 * seen caller k's timer.
 */
#define PASSED_OVER(k, at) (unseen[k] && returned[k] && in_time[k] && deadline[k] < at)

/*
 * Expire the timers that are due by `time`. `next` becomes the earliest deadline of the other
 * timers.
 */
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
		/*
		 * No other thread can see the owner's steps up to its store into the buffer, so
		 * they are one atomic step.
		 */
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
			:: number < EINTR_BEFORE /* a signal ends the sleep (EINTR) */
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
		 * The two callers are alike, except that the owner takes the first caller's entry
		 * first. Three of the four combinations of their deadlines therefore suffice. In
		 * the interesting case, the owner misses the entry with the earlier deadline, and
		 * sees the other entry.
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
