/* SPDX-License-Identifier: MIT */
/*
 * A model of how the owner informs consumers of events, by the outbox, the signalled flag, the
 * eventfd and the futex.
 *
 * The owner publishes one event and then two. Each of two consumers has a kind, takes one event a
 * call, and may leave after any call.
 *
 * LEVEL polls the eventfd as poll(2) does. EDGE is notified of writes to the eventfd (EPOLLET) and
 * takes one event each time. READER reads the eventfd before it drains. WAIT calls timerhub_wait().
 * Each thread's stores go through a buffer, in order (TSO). A seq_cst store waits until the buffer
 * is empty, and so do locked instructions and system calls.
 *
 * Models:
 *   lib/queue/notifier.c notifier_signal() notifier_signal_again() notifier_clear()
 *                        notifier_ring() notifier_wake() notifier_wait_enter()
 *                        notifier_wait_leave()
 *   lib/base/bell.c      bell_ring() bell_clear()
 *   lib/queue/outbox.c   outbox_publish() outbox_take() outbox_count() outbox_exhausted()
 *                        outbox_compact()
 *   lib/owner/owner.c    owner_put()
 *   lib/queue/publisher.c publisher_publish()
 *   lib/hub/drain_dispatch.c queue_take() queue_take_batch() queue_clear() queue_leave()
 *                        queue_wait()
 *                        queue_block() queue_verdict() queue_stopped() timerhub_interrupt()
 *                        timerhub_queue_stop()
 *
 * Laws:
 *   not_lost   when all threads have come to rest and events are left, the eventfd is readable and
 *              no consumer is blocked
 *   fd_tells   a call that found the queue empty leaves the eventfd unreadable, unless a thread is
 *              about to write it, or has written it since (law 9)
 *   fd_quiet   when all threads have come to rest, a further call that finds no event makes the
 *              eventfd unreadable
 *   home       when all threads have come to rest, no consumer is blocked on a stopped queue
 *   handed_out a wait that ends because the queue is stopped leaves no event published before
 *
 *   true -DFIRST=LEVEL -DSECOND=LEVEL -DTHRICE
 *   true -DFIRST=LEVEL -DSECOND=EDGE
 *   true -DFIRST=LEVEL -DSECOND=WAIT
 *   true -DFIRST=LEVEL -DSECOND=READER
 *   true -DFIRST=WAIT -DSECOND=WAIT -DINTERRUPT
 *   true -DFIRST=WAIT -DSECOND=WAIT -DSTOP
 *   true -DFIRST=LEVEL -DSECOND=LEVEL -DCOMPACT
 *   true -DFIRST=WAIT -DSECOND=NOBODY -DSTOP -DCOMPACT
 *   bug OWNER_NO_BARRIER    not_lost  the flag is found set before the events are visible
 *   bug CONSUMER_NO_BARRIER not_lost  the second look comes before the cleared flag is visible
 *   bug CLEAR_AFTER_LOOK    not_lost  the flag is cleared after the second look
 *   bug NO_SECOND_LOOK      not_lost  no second look
 *   bug FLAG_BEFORE_FD      not_lost  -DTHRICE the flag is cleared, then the eventfd: this removes
 *                                     the late ring for events already taken
 *   bug NO_SIGNAL_AGAIN     not_lost  a call that leaves events does not signal again
 *   bug AGAIN_RINGS_FIRST   not_lost  -DTHRICE that call writes the eventfd, then sets the flag
 *   bug COUNT_BEFORE_RING   fd_quiet  a ring is counted before the write, and not noted as begun
 *   bug COUNT_AFTER_RING    fd_tells  a ring is counted after the write, and not noted as begun
 *   bug CLEARED_MIDWAY      fd_tells  -DTHRICE a clear counts begun rings as done
 *   bug CLEARED_BEFORE_READ fd_tells  a clear is counted before the read
 *   bug TICKET_AFTER_LOOK   not_lost  -DSECOND=WAIT the eventcount is read after the look
 *   bug WAITER_AFTER_LOOK   not_lost  -DSECOND=WAIT the waiter is counted after the look
 *   bug NO_TICKET           not_lost  -DSECOND=WAIT a consumer about to block does not compare the
 *                                     eventcount
 *   bug WAITER_NO_BARRIER   not_lost  -DSECOND=WAIT the waiter looks before its count is visible
 *   bug STOP_NO_TICKET      home       -DFIRST=WAIT -DSECOND=WAIT -DSTOP a stop wakes no waiter
 *   bug STOP_UNSEEN         home       -DFIRST=WAIT -DSECOND=WAIT -DSTOP a waiter about to block
 *                                      does not check for a stop
 *   bug STOP_NO_LOOK        handed_out -DFIRST=WAIT -DSECOND=WAIT -DSTOP a waiter checks for a stop
 *                                      after it found the queue empty, and does not look again
 *   bug COMPACTING_UNSEEN  handed_out -DFIRST=WAIT -DSECOND=NOBODY -DSTOP -DCOMPACT an empty outbox
 *                                     counts as exhausted
 *   bug COMPACTING_LATE    handed_out -DFIRST=WAIT -DSECOND=NOBODY -DSTOP -DCOMPACT the owner sets
 *                                     "compacting" after it has moved the head
 *   bug WAKES_ONE           not_lost  -DFIRST=WAIT -DSECOND=WAIT one wake for two events
 */
#define LEVEL 0
#define EDGE 1
#define WAIT 2
#define READER 3
#define NOBODY 4 /* takes no event */
#ifndef FIRST
#define FIRST LEVEL
#endif
#ifndef SECOND
#define SECOND LEVEL
#endif

byte head, tail;
bool compacting; /* in the library's code this is a bit of the tail */
byte put_back;   /* tail after the owner publishes the removed handles; else 0 */
bool signalled;
/*
 * In the library one variable has these three: rings done, rings begun and not done, and the count
 * at the last clear.
 */
byte rings, midway, cleared;
#ifdef CLEARED_MIDWAY
byte cleared_midway;
#define NONE_MIDWAY (midway == cleared_midway)
#else
#define NONE_MIDWAY (midway == 0)
#endif
byte fd;
byte waiters, ticket;
byte interrupts;
bool stopped;
byte stop_tail; /* events published when the queue was stopped */

/*
 * The kernel's state: consumers not yet notified of the last write, and consumers asleep on the
 * futex.
 */
bool edge[2];
bool blocked[2];

/* Threads that have set the flag and have not written the eventfd yet. */
byte ringing;
/* Whether there was such a thread, or a write, since the consumer began to clear. */
bool told[2] = true;

/*
 * The store buffers of the owner's tail and of the consumers' stores. Only planted faults leave a
 * value in them. A value of 0 means an empty buffer.
 */
byte tail_buffer;
bool signalled_buffer[2];
bool waiters_buffer[2];

#define EMPTY (head >= tail)
/* outbox_exhausted() */
#ifdef STOP_NO_LOOK
#define EXHAUSTED true
#elif defined(COMPACTING_UNSEEN)
#define EXHAUSTED EMPTY
#else
#define EXHAUSTED (EMPTY && !compacting)
#endif

bool not_lost = true;
bool fd_tells = true;
bool fd_quiet = true;
bool home = true;
bool handed_out = true;

#if defined(OWNER_NO_BARRIER) || defined(CONSUMER_NO_BARRIER) || defined(WAITER_NO_BARRIER)
#define BUFFERS
proctype memory()
{
end:
	do
	:: atomic { tail_buffer > 0 -> tail = tail_buffer; tail_buffer = 0 }
	:: atomic { signalled_buffer[0] -> signalled = false; signalled_buffer[0] = false }
	:: atomic { signalled_buffer[1] -> signalled = false; signalled_buffer[1] = false }
	:: atomic { waiters_buffer[0] -> waiters++; waiters_buffer[0] = false }
	:: atomic { waiters_buffer[1] -> waiters++; waiters_buffer[1] = false }
	od
}
#endif

#define DRAINED (!signalled_buffer[me] && !waiters_buffer[me])

/* notifier_ring(); the calling thread has counted itself in `ringing`. */
inline ring()
{
#ifdef COUNT_BEFORE_RING
	rings++;
#elif !defined(COUNT_AFTER_RING)
	midway++;
#endif
	atomic {
		fd = 1;
		edge[0] = (FIRST == EDGE);
		edge[1] = (SECOND == EDGE);
		told[0] = true;
		told[1] = true;
		ringing--
	}
#ifdef COUNT_AFTER_RING
	rings++
#elif !defined(COUNT_BEFORE_RING)
	atomic { rings++; midway-- }
#else
	skip
#endif
}

/* futex_wake(), after the ticket was changed, wakes one or both of two sleepers. */
inline wake(count)
{
	atomic {
		if
		:: count > 1 -> blocked[0] = false; blocked[1] = false
		:: count == 1 && blocked[0] -> blocked[0] = false
		:: count == 1 && blocked[1] -> blocked[1] = false
		:: count == 1 && !blocked[0] && !blocked[1]
		fi
	}
}

/* publisher_publish(): outbox_publish(), notifier_signal(). */
inline publish(count)
{
#ifdef OWNER_NO_BARRIER
	tail_buffer = put;
#else
	atomic { tail = put; compacting = false; put_back = 0 }
#endif
	if
	:: !signalled ->
		atomic {
			tail_buffer == 0 ->
			if
			:: !signalled -> signalled = true; ringing++
			:: else -> goto signalled_already
			fi
		}
		ring()
	:: else
	fi;
signalled_already:
	if
	:: waiters > 0 ->
#ifndef NO_TICKET
		atomic { tail_buffer == 0 -> ticket++ }
#endif
#ifdef WAKES_ONE
		wake(1)
#else
		wake(count)
#endif
	:: else
	fi
#ifdef BUFFERS
	; /* The buffer drains before its next step or later. */
	tail_buffer == 0
#endif
}

proctype owner()
{
	byte put, back;

#ifdef THRICE
	put++;
	publish(1);
#endif
	put++;
	publish(1);
#if !defined(INTERRUPT) && !defined(COMPACT) && !defined(STOP)
	put = put + 2;
	publish(2);
#endif
#ifdef COMPACT
#ifndef STOP
	put++;
	publish(1);
#endif
	/* If there is no room for the next event, owner_put() calls outbox_compact(). */
#ifndef COMPACTING_LATE
	compacting = true;
#endif
	atomic {
		back = put - head;
		head = put;
		put = put + back;
		put_back = put;
		stop_tail = (stopped -> put : stop_tail)
	}
#ifdef COMPACTING_LATE
	compacting = true;
#endif
	if
	:: back > 0 -> publish(back)
	:: else
	fi;
	put++;
	publish(1);
#endif
	skip
}

inline clear_flag()
{
	if
#ifdef CONSUMER_NO_BARRIER
	:: signalled -> signalled_buffer[me] = true
#else
	:: signalled -> signalled = false
#endif
	:: else
	fi
}

/* notifier_clear() */
inline clear()
{
#ifdef CLEAR_AFTER_LOOK
	nothing = EMPTY;
#endif
#ifdef FLAG_BEFORE_FD
	told[me] = (ringing > 0);
	clear_flag();
#endif
	atomic {
#ifndef FLAG_BEFORE_FD
		told[me] = (ringing > 0);
#endif
		seen = rings;
#ifdef CLEARED_MIDWAY
		half = midway;
#endif
		if
		:: seen == cleared && NONE_MIDWAY -> seen = 0; goto unrung
		:: else
		fi
	}
#ifdef CLEARED_BEFORE_READ
	cleared = seen;
#endif
	atomic { DRAINED -> fd = 0 }
	atomic {
#ifndef CLEARED_BEFORE_READ
		cleared = seen;
#endif
#ifdef CLEARED_MIDWAY
		cleared_midway = half;
		half = 0;
#endif
		seen = 0
	}
unrung:
#ifdef FLAG_BEFORE_FD
	skip
#else
	clear_flag()
#endif
}

/*
 * The second look of queue_clear(), in an atomic. The look reads head and tail in one step. The
 * head only grows, and an older head would make the outbox seem less empty.
 */
inline look()
{
#ifdef NO_SECOND_LOOK
	nothing = true
#elif !defined(CLEAR_AFTER_LOOK)
	nothing = EMPTY
#else
	skip
#endif
}

/* A call that left no event ends here. */
inline check_fd()
{
	fd_tells = (fd == 0 || told[me]);
	assert(fd_tells)
}

inline queue_block()
{
#ifdef WAITER_NO_BARRIER
	waiters_buffer[me] = true;
#elif !defined(WAITER_AFTER_LOOK)
	atomic { DRAINED -> waiters++ }
#endif
#ifdef TICKET_AFTER_LOOK
	nothing = EMPTY;
	number = ticket;
#elif defined(WAITER_AFTER_LOOK)
	number = ticket;
	nothing = EMPTY;
	atomic { DRAINED -> waiters++ }
#else
	number = ticket;
	atomic {
		nothing = EMPTY;
		if
		:: !nothing -> goto unblocked
		:: else
		fi
	}
#endif
#ifdef INTERRUPT
	/* queue_verdict() */
	if
	:: interrupts != before -> goto unblocked
	:: else
	fi;
#endif
#if defined(STOP) && !defined(STOP_UNSEEN)
	if
	:: stopped -> goto unblocked
	:: else
	fi;
#endif
	atomic {
		DRAINED ->
		blocked[me] = (nothing && ticket == number);
		number = 0
	}
unblocked:
endwait:
	atomic { !blocked[me] && DRAINED -> waiters--; number = 0; nothing = false }
}

/* Makes calls, and may leave after any of them. */
proctype consumer(byte me; byte kind)
{
	byte seen, half, number, before;
	bool nothing, got;
#ifdef STOP
	bool stopping;
#endif

	goto returned;
endidle:
	atomic {
		if
		:: kind == LEVEL && fd > 0
		:: kind == EDGE && edge[me] -> edge[me] = false
		:: kind == READER && fd > 0 -> fd = 0
		:: kind == WAIT -> before = interrupts
		fi
	}
waiting:
#ifdef INTERRUPT
	/* queue_verdict() */
	if
	:: kind == WAIT && interrupts != before -> goto returned
	:: else
	fi;
#endif
taking:
	/* queue_take() with room for one: outbox_take() */
	atomic {
		if
		:: EMPTY -> goto settling
		:: else -> seen = head
		fi
	}
	atomic {
		DRAINED ->
		if
		:: head == seen -> seen = 0; head++; got = true
		:: else -> seen = 0; goto taking
		fi
	}
	/* queue_leave() */
	if
	:: EMPTY
	:: else -> goto leaving
	fi;
settling:
	clear();
	atomic {
		look();
		if
		:: nothing -> check_fd()
		:: else
		fi;
		/* Clear a value that is not needed, so that equal states become one. */
		told[me] = true;
		if
		:: nothing && (got || kind != WAIT) -> goto returned
		:: nothing && !got && kind == WAIT
		:: !nothing && got -> goto leaving
		:: !nothing && !got -> goto taking
		fi
	}
#ifdef STOP
	/* queue_stopped() */
	stopping = stopped;
	atomic {
		if
		:: stopping && !EXHAUSTED -> goto waiting /* queue_block() naps */
		:: stopping && EXHAUSTED ->
			handed_out = (head >= stop_tail);
			assert(handed_out);
			goto returned
		:: else
		fi
	}
#endif
	queue_block();
	goto waiting;
leaving:
	/* notifier_signal_again() */
#ifdef AGAIN_RINGS_FIRST
	atomic { DRAINED -> ringing++ }
	ring();
	signalled = true;
#elif !defined(NO_SIGNAL_AGAIN)
	atomic { DRAINED -> signalled = true; ringing++ }
	ring();
#endif
returned:
	atomic {
		got = false;
		before = 0;
		nothing = false;
#ifdef STOP
		stopping = false;
#endif
		if
		:: edge[me] = (kind == EDGE) /* leaves */
		:: goto endidle
		fi
	}
}

#ifdef INTERRUPT
proctype interrupter()
{
	interrupts++;
	ticket++;
	wake(2)
}
#endif

#ifdef STOP
proctype stopper()
{
	atomic { stopped = true; stop_tail = (put_back > 0 -> put_back : tail) }
#ifndef STOP_NO_TICKET
	ticket++;
	wake(2)
#endif
}
#endif

#define POLLS(who, kind) (kind == EDGE && !edge[who])

proctype judge()
{
	byte me = 0, seen, half;
	bool nothing;

	timeout;
	home = !stopped || (!blocked[0] && !blocked[1]);
	assert(home);
	not_lost = (EMPTY || (fd > 0 && !blocked[0] && !blocked[1] &&
		!POLLS(0, FIRST) && !POLLS(1, SECOND)));
	assert(not_lost);
	if
	:: EMPTY ->
		clear();
		fd_quiet = (fd == 0);
		assert(fd_quiet)
	:: else
	fi
}

init {
	atomic {
#ifdef BUFFERS
		run memory();
#endif
		run owner();
		run consumer(0, FIRST);
		run consumer(1, SECOND);
#ifdef INTERRUPT
		run interrupter();
#endif
#ifdef STOP
		run stopper();
#endif
		run judge()
	}
}
