/* SPDX-License-Identifier: MIT */
/*
 * A model of how the owner informs consumers of events. The owner uses the outbox, the flag
 * "signalled", the eventfd and the futex.
 *
 * The owner publishes one event and then two events. There are two consumers. Each consumer is of
 * one of the four kinds below. It takes one event in each call, and may leave after any call.
 *
 * A LEVEL consumer polls the eventfd as poll(2) does. An EDGE consumer is notified of writes to the
 * eventfd (EPOLLET), and takes one event after each notification. A READER reads the eventfd before
 * it drains the queue. A WAIT consumer calls timerhub_wait(). Each thread's stores go through a
 * store buffer, in order (TSO). A seq_cst store, a locked instruction and a system call each wait
 * until the thread's buffer is empty.
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
 *   not_lost     at rest with events left, the eventfd is readable and no consumer is blocked
 *   fd_tells     a call that finds the queue empty leaves the eventfd unreadable (law 9)
 *                The law permits a readable eventfd in two cases. In the first case, another thread
 *                was about to write the eventfd when the call began to clear the eventfd. In the
 *                second case, another thread wrote the eventfd later.
 *   fd_quiet     at rest, another call that finds no event makes the eventfd unreadable
 *   home         at rest, no consumer is blocked on a stopped queue
 *   handed_out   a wait that ends because of a stop leaves no event from before the stop
 *
 *   true -DFIRST=LEVEL -DSECOND=LEVEL -DTHRICE
 *   true -DFIRST=LEVEL -DSECOND=EDGE
 *   true -DFIRST=LEVEL -DSECOND=WAIT
 *   true -DFIRST=LEVEL -DSECOND=READER
 *   true -DFIRST=WAIT -DSECOND=WAIT -DINTERRUPT
 *   true -DFIRST=WAIT -DSECOND=WAIT -DSTOP
 *   true -DFIRST=LEVEL -DSECOND=LEVEL -DCOMPACT
 *   true -DFIRST=WAIT -DSECOND=NOBODY -DSTOP -DCOMPACT
 *   bug OWNER_NO_BARRIER    not_lost     owner reads the flag before its events are visible
 *   bug CONSUMER_NO_BARRIER not_lost     consumer looks before the cleared flag is visible
 *   bug CLEAR_AFTER_LOOK    not_lost     consumer clears the flag after the second look
 *   bug NO_SECOND_LOOK      not_lost     consumer does not look again after it cleared the flag
 *   bug FLAG_BEFORE_FD      not_lost     -DTHRICE flag, then eventfd
 *                                        A consumer clears the flag, and then reads the eventfd.
 *                                        The read of the eventfd may consume a later write, and
 *                                        then the flag stays set although the eventfd is empty.
 *   bug NO_SIGNAL_AGAIN     not_lost     consumer that leaves events does not signal again
 *   bug AGAIN_RINGS_FIRST   not_lost     -DTHRICE eventfd, then flag
 *                                        If a consumer leaves events in the outbox, it writes the
 *                                        eventfd, and then sets the flag.
 *   bug COUNT_BEFORE_RING   fd_quiet     write counted too early
 *                                        A thread counts its write of the eventfd as finished
 *                                        (`rings`) before it makes the write.
 *   bug COUNT_AFTER_RING    fd_tells     write counted too late
 *                                        A thread increments `rings` after its write of the
 *                                        eventfd. It does not increment `midway` before the write.
 *   bug CLEARED_MIDWAY      fd_tells     -DTHRICE clear counts begun writes as done
 *   bug CLEARED_BEFORE_READ fd_tells     clear is recorded before the read
 *   bug TICKET_AFTER_LOOK   not_lost     -DSECOND=WAIT waiter looks, then reads the eventcount
 *   bug WAITER_AFTER_LOOK   not_lost     -DSECOND=WAIT waiter looks, then counts itself
 *   bug NO_TICKET           not_lost     -DSECOND=WAIT eventcount unused
 *                                        The owner publishes events, but does not increment the
 *                                        eventcount. A waiter that is about to block misses the
 *                                        events.
 *   bug WAITER_NO_BARRIER   not_lost     -DSECOND=WAIT early look
 *                                        A waiter looks at the outbox before its increment of
 *                                        `waiters` is visible.
 *   bug STOP_NO_TICKET      home         -DFIRST=WAIT -DSECOND=WAIT -DSTOP stop wakes no waiter
 *   bug STOP_UNSEEN         home         -DFIRST=WAIT -DSECOND=WAIT -DSTOP no check
 *                                        A waiter that is about to block does not check for a stop.
 *   bug STOP_NO_LOOK        handed_out   -DFIRST=WAIT -DSECOND=WAIT -DSTOP one look
 *                                        A waiter that sees the stop after it found the queue empty
 *                                        does not look at the outbox again.
 *   bug COMPACTING_UNSEEN   handed_out   -DFIRST=WAIT -DSECOND=NOBODY -DSTOP -DCOMPACT at once
 *                                        A waiter finds the outbox empty while the owner is
 *                                        compacting the outbox, and concludes that no event is
 *                                        left.
 *   bug COMPACTING_LATE     handed_out   -DFIRST=WAIT -DSECOND=NOBODY -DSTOP -DCOMPACT too late
 *                                        The owner sets "compacting" after it has moved the head.
 *   bug WAKES_ONE           not_lost     -DFIRST=WAIT -DSECOND=WAIT one wake for two
 *                                        The owner wakes only one waiter for two events.
 */
#define LEVEL 0
#define EDGE 1
#define WAIT 2
#define READER 3
#define NOBODY 4 /* a consumer that takes no event */
#ifndef FIRST
#define FIRST LEVEL
#endif
#ifndef SECOND
#define SECOND LEVEL
#endif

byte head, tail;
bool compacting; /* the owner is compacting the outbox; in lib/ this is one bit of the tail */
/* while the owner compacts the outbox: the tail's value after the compaction; otherwise 0 */
byte put_back;
bool signalled;
/*
 * `rings` is the number of finished writes of the eventfd. `midway` is the number of writes that
 * have begun and are not finished. In lib/ notifier.rings has both numbers. `cleared` is the value
 * of `rings` when a consumer last cleared the eventfd. In lib/ this is notifier.rings_cleared.
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
byte stop_tail; /* number of events that were published before the queue was stopped */

/*
 * The kernel's state. If consumer i has not yet been notified of the last write of the eventfd,
 * edge[i] is true. If consumer i sleeps on the futex, blocked[i] is true.
 */
bool edge[2];
bool blocked[2];

/* Number of threads that have set "signalled" and have not written the eventfd yet. */
byte ringing;
/*
 * told[i] is true in two cases:
 *
 * - A thread has written the eventfd since consumer i began to clear it.
 * - A thread was about to write the eventfd when consumer i began to clear it.
 */
bool told[2] = true;

/*
 * These variables are store buffers. The owner's stores of the tail go through `tail_buffer`. The
 * stores of consumer i go through signalled_buffer[i] and waiters_buffer[i]. Only planted faults
 * leave a value in a buffer. A value of 0 means an empty buffer.
 */
byte tail_buffer;
bool signalled_buffer[2];
bool waiters_buffer[2];

#define EMPTY (head >= tail)
/* Models outbox_exhausted(). */
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

/* Models notifier_ring(). The calling thread has already counted itself in `ringing`. */
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

/*
 * Models futex_wake() after a change of the eventcount `ticket`. Wakes at most `count` of the
 * consumers that sleep on the futex.
 */
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

/* Models publisher_publish(), with outbox_publish() and notifier_signal(). */
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
	; /* publish() ends only after the buffered store of the tail has reached memory */
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
	/* If the outbox has no room for the next event, owner_put() calls outbox_compact(). */
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

/* Models notifier_clear(). */
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
 * Models how queue_clear() checks whether the outbox is empty. look() is called inside an atomic
 * step, so it reads head and tail at once. lib/ loads head and tail one after the other. If the
 * head is older than the tail, the outbox only seems to have more events.
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

/* Checks the law fd_tells at the end of a call that found the queue empty. */
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
	/* Models queue_verdict(). */
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

/* Calls the functions that take events. After each call the consumer may end. */
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
	/* queue_take() with room for one event calls outbox_take() */
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
	/* Models queue_leave(). */
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
		/* Reset a value that is not needed any more, so that equal states become one. */
		told[me] = true;
		if
		:: nothing && (got || kind != WAIT) -> goto returned
		:: nothing && !got && kind == WAIT
		:: !nothing && got -> goto leaving
		:: !nothing && !got -> goto taking
		fi
	}
#ifdef STOP
	/* Models queue_stopped(). */
	stopping = stopped;
	atomic {
		if
		/* in lib/ queue_block() sleeps for a short time before it tries again */
		:: stopping && !EXHAUSTED -> goto waiting
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
	/* Models notifier_signal_again(). */
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
		:: edge[me] = (kind == EDGE) /* the consumer leaves */
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
