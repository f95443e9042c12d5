/* SPDX-License-Identifier: MIT */
/*
 * The owner's thread: how it starts, how it sleeps between its passes (owner.c), and how it ends.
 *
 * A sleep should end exactly when a timer is due, but a thread that the kernel wakes runs some
 * microseconds later. So the owner asks to be woken that much earlier (early_wake.h), and spins for
 * the rest. If the kernel refuses io_uring, at the start or at any time later, the owner sleeps in
 * ppoll(2) instead. It runs on the CPUs and with the priority of the process's main thread,
 * whichever thread has opened the hub.
 *
 * owner_share_cpus() first tries to allow all CPUs, because that also allows the CPUs that are
 * added to the cpuset later. It copies the CPUs of the main thread only if the result differs from
 * them.
 *
 * owner_share_policy() does what the kernel does for a new thread. If the thread that starts it has
 * SCHED_RESET_ON_FORK, a real-time policy becomes SCHED_OTHER, and a negative nice value becomes 0.
 * A thread with SCHED_DEADLINE can start others only with this flag. The function makes system
 * calls, because musl's sched_getscheduler() and sched_setscheduler() always fail.
 *
 * It is tested by tests/faults/test_sleeping.c and tests/service/test_denied.c.
 *
 * Labels: [started] owner_main → owner_start: start_result, the tid and the sleeper.
 *         [pass] owner_begin_pass → owner_wait_pass: the previous pass has ended; owner_wait_pass →
 *         owner_begin_pass: a queue is gone. A load cannot have release order, so owner_wait_pass()
 *         reads the number by adding 0.
 */
#define _GNU_SOURCE
#include "owner/owner.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/cpu.h"
#include "base/futex.h"
#include "base/thread.h"

/*
 * If so many sleeps in a row have failed in io_uring, the owner sleeps in ppoll(2) for the rest of
 * its life.
 */
#define OWNER_SLEEP_FAILURES_MAX 3
/*
 * If the kernel won't tell the owner when the wall clock is set, it reads the clock at least this
 * often.
 */
#define OWNER_ALARM_REFUSED_NS NS_PER_S

/*
 * How long before an expiry the owner prefetches the memory that it will touch. Several cache
 * misses of 0.1 us each fit into this time. Much earlier would be wrong, because it would take the
 * cache lines away from a consumer that still works with them.
 */
#define OWNER_FETCH_NS 1000

/* The owner is busy if its next sleep is shorter than this: see owner_show_ahead(). */
#define OWNER_SHOW_NS 2000000

#define OWNER_CPUS_MAX 32768u /* several times as many as any kernel is built for */
#define LONG_BITS (8 * (unsigned)sizeof(long))
/*
 * The longest timeout that is given to the kernel. The kernel adds its clock to a timeout, and the
 * sum must not overflow.
 */
#define OWNER_SLEEP_MAX_NS ((uint64_t)1 << 62)

/* ---- sleeping ---- */

/* Lets the owner sleep in ppoll(2) instead of io_uring from now on. */
static void owner_use_poll(struct owner *owner)
{
	owner->sleeper.ops->close(&owner->sleeper);
	sleeper_open_poll(&owner->sleeper, owner->world.bell, owner->sleeper.deadline_fd);
	(void)owner->sleeper.ops->start(&owner->sleeper);
	u64_store_relaxed(&owner->counts->sleeper,
	                  TIMERHUB_SLEEPER_POLL); /* relaxed: only for show */
}

/*
 * Sleeps once in ppoll(2), because io_uring has failed with `error`. After a permanent error (a
 * seccomp filter, say) or OWNER_SLEEP_FAILURES_MAX failures in a row, every later sleep uses
 * ppoll(2).
 */
static void owner_sleep_otherwise(struct owner *owner, uint64_t timeout_ns, int error)
{
	struct sleeper otherwise;
	bool transient = error == -EAGAIN || error == -EBUSY || error == -ENOMEM || error == -EINTR;

	if (!transient || ++owner->sleep_failures >= OWNER_SLEEP_FAILURES_MAX)
		owner_use_poll(owner);
	sleeper_open_poll(&otherwise, owner->world.bell, owner->sleeper.deadline_fd);
	(void)otherwise.ops->start(&otherwise);
	(void)otherwise.ops->sleep(&otherwise, timeout_ns);
}

/*
 * Tells whether the owner must stop spinning: a caller has woken it for an earlier timer, a thread
 * waits in owner_wait_pass(), or the owner's thread must end.
 */
static bool owner_wanted(const struct owner *owner)
{
	/* Relaxed is enough: if one of these is out of date, the owner spins once more. */
	return promise_woken(owner->world.promise) || u32_load_relaxed(&owner->pass_waiters) > 0 ||
	       u32_load_relaxed(&owner->stop) != 0;
}

/*
 * Spins until `until_ns`, and returns true then. Returns false as soon as owner_wanted() is true.
 * Returns false if `until_ns` is more than `ahead_ns` away, which is too long to spin.
 */
static bool owner_spin(struct owner *owner, uint64_t until_ns, uint64_t ahead_ns)
{
	uint64_t now_ns = clock_now_ns(owner->world.clock);

	while (now_ns < until_ns && until_ns - now_ns <= ahead_ns && !owner_wanted(owner)) {
		cpu_relax();
		now_ns = clock_now_ns(owner->world.clock);
	}
	return now_ns >= until_ns;
}

/*
 * Sets the timerfd to expire at `at_ns`. Stores in *timeout_ns how long the owner may sleep at
 * most, UINT64_MAX for no limit. Returns false if the owner must not sleep, because the wall clock
 * was set.
 */
static bool owner_set_deadline_fd(struct owner *owner, uint64_t at_ns, uint64_t *timeout_ns)
{
	int result = deadline_fd_set(&owner->deadline_fd, at_ns);
	uint64_t now_ns;

	if (result == -ECANCELED) {
		u64_count(&owner->counts->clock_jumps, 1);
		return false;
	}
	/*
	 * If the kernel refuses to set the timerfd, the owner wakes at intervals to read the clock.
	 * It does not poll the timerfd then, because that would stay readable once it has expired.
	 * The timeout counts from now, because the attempt to set the timerfd may have taken long.
	 */
	*timeout_ns = UINT64_MAX;
	owner->sleeper.deadline_fd = result < 0 ? -1 : owner->deadline_fd.fd;
	if (result == 0)
		return true;
	now_ns = clock_now_ns(owner->world.clock);
	*timeout_ns = at_ns > now_ns ? u64_min(at_ns - now_ns, OWNER_ALARM_REFUSED_NS) : 0;
	return true;
}

/*
 * Sleeps until `until_ns`, or until a caller wakes the owner. Returns false if the owner must not
 * sleep, because the clock was set.
 */
static bool owner_sleep_for(struct owner *owner, uint64_t until_ns, uint64_t now_ns)
{
	uint64_t timeout_ns = UINT64_MAX;
	int result;

	if (until_ns != UINT64_MAX)
		timeout_ns = u64_min(until_ns - now_ns, OWNER_SLEEP_MAX_NS);
	if (owner->deadline_fd.fd >= 0 && !owner_set_deadline_fd(owner, until_ns, &timeout_ns))
		return false;
	result = owner->sleeper.ops->sleep(&owner->sleeper, timeout_ns);
	if (result < 0)
		owner_sleep_otherwise(owner, timeout_ns, result);
	else
		owner->sleep_failures = 0;
	u64_count(&owner->counts->wakeups, 1);
	return true;
}

/*
 * Sleeps until `until_ns`, or until a caller wakes the owner. After a full sleep, the owner records
 * how late the kernel has woken it (early_wake.h).
 */
static void owner_sleep_until(struct owner *owner, uint64_t until_ns, uint64_t now_ns)
{
	if (!owner_sleep_for(owner, until_ns, now_ns))
		return;
	now_ns = clock_now_ns(owner->world.clock);
	if (now_ns >= until_ns)
		early_wake_learn(&owner->early_wake, now_ns - until_ns);
}

/*
 * Publishes for timerhub-top how many timers are due soon. Counts them at most once a second, or,
 * if the owner is busy, once in ten seconds. Returns true if it has counted them.
 */
static bool owner_show_ahead(struct owner *owner, uint64_t until_ns, uint64_t now_ns)
{
	/* Relaxed: only the owner writes it. */
	uint64_t old_ns = now_ns - u64_load_relaxed(&owner->counts->ahead_at_ns);
	bool is_busy = until_ns < now_ns || until_ns - now_ns < OWNER_SHOW_NS;
	uint64_t counts[AHEAD_RANGES];

	if (old_ns < AHEAD_EVERY_NS || (is_busy && old_ns < 10 * AHEAD_EVERY_NS))
		return false;
	schedule_ahead(&owner->schedule, now_ns, counts);
	board_show_ahead(owner->counts, now_ns, counts);
	return true;
}

/*
 * Sleeps until `until_ns`, or until a caller wakes the owner. The kernel wakes threads late, so the
 * owner asks to be woken a little early, and spins for the rest of the time.
 */
static void owner_sleep(struct owner *owner, uint64_t until_ns)
{
	uint64_t ahead_ns = u64_max(owner->config.spin_ns, owner->early_wake.ns);
	uint64_t now_ns = clock_now_ns(owner->world.clock), fetch_ns;

	if (owner->world.is_observable && owner_show_ahead(owner, until_ns, now_ns))
		now_ns = clock_now_ns(owner->world.clock);
	if (until_ns == UINT64_MAX) {
		(void)owner_sleep_for(owner, UINT64_MAX, now_ns);
		return;
	}
	if (until_ns > now_ns && until_ns - now_ns > ahead_ns)
		owner_sleep_until(owner, until_ns - ahead_ns, now_ns);
	fetch_ns = u64_min(u64_min(until_ns, ahead_ns), OWNER_FETCH_NS);
	if (ahead_ns > 0 && owner_spin(owner, until_ns - fetch_ns, ahead_ns - fetch_ns)) {
		owner_fetch_next(owner);
		(void)owner_spin(owner, until_ns, ahead_ns);
	}
}

/* ---- the thread ---- */

/* Lets the calling thread run on this CPU only. Returns 0 or a negative errno. */
static int owner_pin(unsigned cpu)
{
	unsigned long cpus[OWNER_CPUS_MAX / LONG_BITS] = { 0 };

	if (cpu >= OWNER_CPUS_MAX)
		return -EINVAL;
	cpus[cpu / LONG_BITS] = 1ul << cpu % LONG_BITS;
	return syscall(SYS_sched_setaffinity, 0, sizeof(cpus), cpus) < 0 ? -errno : 0;
}

struct owner_cpus {
	unsigned long bits[OWNER_CPUS_MAX / LONG_BITS];
	long bytes; /* how many bytes of `bits` the kernel has filled; negative if it refused */
};

static void owner_cpus_get(struct owner_cpus *cpus, pid_t tid)
{
	cpus->bytes = syscall(SYS_sched_getaffinity, tid, sizeof(cpus->bits), cpus->bits);
}

static bool owner_cpus_equal(const struct owner_cpus *a, const struct owner_cpus *b)
{
	return a->bytes == b->bytes && memcmp(a->bits, b->bits, (size_t)a->bytes) == 0;
}

/* Lets the calling thread run on the same CPUs as thread `tid`. */
static void owner_share_cpus(pid_t tid)
{
	struct owner_cpus wanted, own;

	owner_cpus_get(&wanted, tid);
	owner_cpus_get(&own, 0);
	if (wanted.bytes < 0 || owner_cpus_equal(&own, &wanted))
		return;
	memset(own.bits, 0xff, sizeof(own.bits));
	(void)syscall(SYS_sched_setaffinity, 0, wanted.bytes, own.bits);
	owner_cpus_get(&own, 0);
	if (!owner_cpus_equal(&own, &wanted))
		(void)syscall(SYS_sched_setaffinity, 0, wanted.bytes, wanted.bits);
}

/*
 * Gives the calling thread the scheduling policy and nice value that it would have inherited if the
 * thread `tid` had started it.
 */
static void owner_share_policy(pid_t tid)
{
	struct sched_param param = { .sched_priority = 0 };
	long policy = syscall(SYS_sched_getscheduler, tid);
	long weight = syscall(SYS_getpriority, PRIO_PROCESS, tid); /* 20 - nice */
	bool resets = policy >= 0 && (policy & SCHED_RESET_ON_FORK) != 0;

	if (policy < 0 || weight < 0 || syscall(SYS_sched_getparam, tid, &param) < 0)
		return;
	policy &= ~SCHED_RESET_ON_FORK;
	if (policy == SCHED_DEADLINE || (resets && param.sched_priority > 0)) {
		policy = SCHED_OTHER;
		param.sched_priority = 0;
		weight = 20;
	}
	if (resets && weight > 20)
		weight = 20;
	(void)syscall(SYS_sched_setscheduler, 0, policy, &param);
	(void)syscall(SYS_setpriority, PRIO_PROCESS, 0, 20 - weight);
}

/*
 * Gives the owner thread the CPUs and the priority of the process's main thread. Otherwise it would
 * inherit those of the thread that opens the hub: if that thread is pinned to a CPU and has a
 * real-time priority, it could keep the owner from running.
 */
static void owner_be_like_main_thread(const struct owner *owner)
{
	pid_t main_tid = getpid();

	if (owner->opener == main_tid)
		return; /* the owner has inherited all of it */
	owner_share_policy(main_tid);
	if (owner->config.cpu_plus_one == 0)
		owner_share_cpus(main_tid);
}

/*
 * Sets up what the owner sleeps in: an io_uring ring or ppoll(2), as configured. By default it
 * tries the ring, and takes ppoll(2) if the kernel refuses the ring. Returns 0 or a negative errno.
 */
static int owner_open_sleeper(struct owner *owner)
{
	int result = -ENOSYS;

	if (owner->config.sleeper != TIMERHUB_SLEEPER_POLL)
		result = sleeper_open_uring(&owner->sleeper, owner->world.bell,
		                            owner->deadline_fd.fd);
	if (result < 0 && owner->config.sleeper == TIMERHUB_SLEEPER_URING)
		return result;
	if (result < 0)
		sleeper_open_poll(&owner->sleeper, owner->world.bell, owner->deadline_fd.fd);
	u64_store_relaxed(&owner->counts->sleeper,
	                  result < 0 ? TIMERHUB_SLEEPER_POLL : TIMERHUB_SLEEPER_URING);
	return 0;
}

/*
 * Sets the owner thread's name, CPUs and priority, and prepares io_uring or ppoll(2) for its
 * sleeps. The thread calls it first. Returns 0 or a negative errno.
 */
static int owner_begin_thread(struct owner *owner)
{
	int result = 0;

	/* The kernel cuts a name that is longer than 15 bytes. */
	(void)prctl(PR_SET_NAME, owner->config.thread_name, 0, 0, 0);
	owner_be_like_main_thread(owner);
	if (owner->config.cpu_plus_one > 0)
		result = owner_pin(owner->config.cpu_plus_one - 1);
	if (result == 0)
		result = owner_open_sleeper(owner);
	if (result < 0)
		return result;
	result = owner->sleeper.ops->start(&owner->sleeper);
	if (result < 0 && owner->config.sleeper == TIMERHUB_SLEEPER_AUTO) {
		owner_use_poll(owner);
		result = 0;
	}
	return result;
}

static void *owner_main(void *argument)
{
	struct owner *owner = argument;
	int result;

	thread_begin();
	result = owner_begin_thread(owner);
	owner->tid = (int)syscall(SYS_gettid);
	owner->start_result = result;
	/*
	 * Release: when owner_start() finds this 1, it also sees start_result and tid, and may use
	 * the sleeper. [started]
	 */
	u32_store_release(&owner->started, 1);
	futex_wake(&owner->started, 1);
	if (result < 0)
		return NULL;
	/* Relaxed is enough, because owner_stop() stores `stop` before it wakes the owner. */
	while (u32_load_relaxed(&owner->stop) == 0)
		owner_sleep(owner, owner_run_passes(owner));
	return NULL;
}

/*
 * Closes the owner's io_uring ring and its timerfd, if it has them. The owner's thread must have
 * ended, or must not have been started.
 */
static void owner_close_sleep(struct owner *owner)
{
	if (owner->sleeper.ops)
		owner->sleeper.ops->close(&owner->sleeper);
	deadline_fd_close(&owner->deadline_fd);
}

int owner_start(struct owner *owner, const struct timerhub_config *config)
{
	int result = 0;

	owner->config = *config;
	owner->opener = (int)syscall(SYS_gettid); /* glibc has gettid() only since 2.30 */
	/*
	 * `gathers` allows the owner to delay timers a little, so that several expire at once. It
	 * is off if the program has set spin_ns, because such a program wants punctual timers.
	 */
	owner->gathers = config->spin_ns == 0;
	deadline_fd_init(&owner->deadline_fd, owner->world.clock);
	if (clock_needs_deadline_fd(owner->world.clock))
		result = deadline_fd_create(&owner->deadline_fd);
	if (result == 0)
		result = thread_create(&owner->thread, owner_main, owner);
	if (result < 0) {
		owner_close_sleep(owner);
		return result;
	}
	owner->running = true;
	/*
	 * Acquire: after the 1, this thread may read start_result and tid, and use the sleeper.
	 * [started]
	 */
	while (u32_load_acquire(&owner->started) == 0)
		futex_wait(&owner->started, 0, UINT64_MAX);
	if (owner->start_result < 0) {
		result = owner->start_result;
		owner_stop(owner, true);
	}
	return result;
}

int owner_tid(const struct owner *owner)
{
	return owner->running ? owner->tid : 0;
}

void owner_stop(struct owner *owner, bool alive)
{
	if (!owner->running)
		return;
	if (alive) {
		u32_store_relaxed(&owner->stop, 1);
		bell_ring(owner->world.bell);
		(void)pthread_join(owner->thread, NULL);
	}
	owner->running = false;
	owner_close_sleep(owner);
}

void owner_wait_pass(struct owner *owner)
{
	/*
	 * Load the number by adding 0, because only then can the load be a release: the next pass
	 * of the owner sees that the caller has taken its queue out of the hub's list. [pass]
	 */
	uint32_t begun = u32_fetch_add_release(&owner->passes_begun, 0);

	(void)u32_fetch_add_relaxed(&owner->pass_waiters, 1);
	bell_ring(owner->world.bell);
	/*
	 * Acquire: when the owner has begun another pass, it no longer uses the caller's queue, so
	 * the caller may free it. [pass]
	 */
	while (u32_load_acquire(&owner->passes_begun) == begun)
		futex_wait(&owner->passes_begun, begun, UINT64_MAX);
	(void)u32_fetch_add_relaxed(&owner->pass_waiters, UINT32_MAX);
}
