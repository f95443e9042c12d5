/* SPDX-License-Identifier: MIT */
/*
 * Tests: tests/unit/test_sleeper.c, tests/service/test_denied.c.
 *
 * Labels: [started] owner_main → owner_start: start_result, the tid and the sleeper.
 *         [pass] owner_begin_pass → owner_wait_pass: the previous pass has ended; owner_wait_pass →
 *         owner_begin_pass: a queue is gone.
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

/* so many sleeps in a row that fail in io_uring: only ppoll from then on */
#define OWNER_SLEEP_FAILURES_MAX 3
/* how often the clock is read where the kernel does not tell its changes */
#define OWNER_ALARM_REFUSED_NS 1000000000u

/*
 * so long before an expiry its cache lines are fetched from the CPUs of the caller and consumer,
 * several misses of 0.1 us; much earlier they would be taken from a consumer at work
 */
#define OWNER_FETCH_NS 1000

#define OWNER_CPUS_MAX 32768u /* several times what any kernel is built for */
#define LONG_BITS (8 * (unsigned)sizeof(long))
#define OWNER_SLEEP_MAX_NS ((uint64_t)1 << 62) /* kernel adds its clock to it, and may wrap */

/* ---- sleeping ---- */

static void owner_use_poll(struct owner *owner)
{
	owner->sleeper.ops->close(&owner->sleeper);
	sleeper_open_poll(&owner->sleeper, owner->world.bell, owner->sleeper.deadline_fd);
	(void)owner->sleeper.ops->start(&owner->sleeper);
	u64_store_relaxed(&owner->counts->sleeper, TIMERHUB_SLEEPER_POLL); /* relaxed: only shown */
}

/*
 * In ppoll once, because io_uring has returned `error` (perhaps of a new seccomp filter); for good
 * if that is permanent or repeats.
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

/* By a caller, by a closer that waits for a pass, or to end. */
static bool owner_wanted(const struct owner *owner)
{
	/* Relaxed: a stale value costs one more spin. */
	return promise_woken(owner->world.promise) || u32_load_relaxed(&owner->pass_waiters) > 0 ||
	       u32_load_relaxed(&owner->stop) != 0;
}

/* False: wanted, or the clock was set back. */
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
 * The timerfd ends the next sleep, in place of the timeout. False: the clock was set, a timer may
 * be due, and a pass must follow.
 */
static bool owner_set_deadline_fd(struct owner *owner, uint64_t at_ns, uint64_t now_ns,
                                  uint64_t *timeout_ns)
{
	int result = deadline_fd_set(&owner->deadline_fd, at_ns, now_ns);

	if (result == -ECANCELED) {
		u64_count(&owner->counts->clock_jumps, 1);
		return false;
	}
	/*
	 * refused: the clock is read at intervals, and the timerfd not polled, since an expired one
	 * stays readable
	 */
	*timeout_ns = result < 0 ? u64_min(*timeout_ns, OWNER_ALARM_REFUSED_NS) : UINT64_MAX;
	owner->sleeper.deadline_fd = result < 0 ? -1 : owner->deadline_fd.fd;
	return true;
}

/* False: it did not sleep. */
static bool owner_sleep_for(struct owner *owner, uint64_t until_ns, uint64_t now_ns)
{
	uint64_t timeout_ns = UINT64_MAX;
	int result;

	if (until_ns != UINT64_MAX)
		timeout_ns = u64_min(until_ns - now_ns, OWNER_SLEEP_MAX_NS);
	if (owner->deadline_fd.fd >= 0 &&
	    !owner_set_deadline_fd(owner, until_ns, now_ns, &timeout_ns))
		return false;
	result = owner->sleeper.ops->sleep(&owner->sleeper, timeout_ns);
	if (result < 0)
		owner_sleep_otherwise(owner, timeout_ns, result);
	else
		owner->sleep_failures = 0;
	u64_count(&owner->counts->wakeups, 1);
	return true;
}

/* And learns the margin from a sleep that lasted. */
static void owner_sleep_until(struct owner *owner, uint64_t until_ns, uint64_t now_ns)
{
	if (!owner_sleep_for(owner, until_ns, now_ns))
		return;
	now_ns = clock_now_ns(owner->world.clock);
	if (now_ns >= until_ns)
		early_wake_learn(&owner->early_wake, now_ns - until_ns);
}

/*
 * Woken early by the longer of spin_ns and the margin, it then spins. Model:
 * tests/models/promise.pml.
 */
static void owner_sleep(struct owner *owner, uint64_t until_ns)
{
	uint64_t ahead_ns = u64_max(owner->config.spin_ns, owner->early_wake.ns);
	uint64_t now_ns = clock_now_ns(owner->world.clock), fetch_ns;

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
	long bytes; /* how many the kernel has filled; negative: it refused */
};

static void owner_cpus_get(struct owner_cpus *cpus, pid_t tid)
{
	cpus->bytes = syscall(SYS_sched_getaffinity, tid, sizeof(cpus->bits), cpus->bits);
}

static bool owner_cpus_equal(const struct owner_cpus *a, const struct owner_cpus *b)
{
	return a->bytes == b->bytes && memcmp(a->bits, b->bits, (size_t)a->bytes) == 0;
}

/*
 * A mask that a thread has set keeps it from CPUs that its cpuset gets later. So the owner sets
 * none that it has already, and first tries all CPUs: if these turn out to be the main thread's,
 * only the cpuset limits both.
 */
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
 * Policy and nice value that a thread started by `tid` would have; the kernel may refuse more than
 * the opener has. System calls, because musl's functions do nothing.
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
	/* SCHED_DEADLINE can start no thread without a reset */
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
 * Not like the opener: a pinned or real-time worker would starve the owner. The kernel knows the
 * main thread's settings even after its end.
 */
static void owner_be_like_main_thread(const struct owner *owner)
{
	pid_t main_tid = getpid();

	if (owner->opener == main_tid)
		return; /* so by inheritance */
	owner_share_policy(main_tid);
	if (owner->config.cpu_plus_one == 0)
		owner_share_cpus(main_tid);
}

static int owner_begin_thread(struct owner *owner)
{
	int result = 0;

	/* cut by the kernel to 15 bytes */
	(void)prctl(PR_SET_NAME, owner->config.thread_name, 0, 0, 0);
	owner_be_like_main_thread(owner);
	if (owner->config.cpu_plus_one > 0)
		result = owner_pin(owner->config.cpu_plus_one - 1);
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
	u32_store_release(&owner->started, 1); /* [started] */
	futex_wake(&owner->started, 1);
	if (result < 0)
		return NULL;
	/* Relaxed: `stop` is stored before the eventfd wakes the owner. */
	while (u32_load_relaxed(&owner->stop) == 0)
		owner_sleep(owner, owner_run_passes(owner));
	return NULL;
}

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

/* After the thread has ended, or could not start. */
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
	owner->opener = (int)syscall(SYS_gettid); /* glibc has gettid() since 2.30 */
	owner->gathers = config->spin_ns == 0;
	deadline_fd_init(&owner->deadline_fd, owner->world.clock);
	if (clock_needs_deadline_fd(owner->world.clock))
		result = deadline_fd_create(&owner->deadline_fd);
	if (result == 0)
		result = owner_open_sleeper(owner);
	if (result == 0)
		result = thread_create(&owner->thread, owner_main, owner);
	if (result < 0) {
		owner_close_sleep(owner);
		return result;
	}
	owner->running = true;
	while (u32_load_acquire(&owner->started) == 0) /* [started] */
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
	 * A closer stores QUEUE_GONE before it calls this, and a pass that begins later must see
	 * it: so a read-modify-write, since a load may run before an earlier store has left the
	 * store buffer.
	 */
	uint32_t begun = u32_fetch_add_release(&owner->passes_begun, 0); /* [pass] */

	(void)u32_fetch_add_relaxed(&owner->pass_waiters, 1);
	bell_ring(owner->world.bell);
	while (u32_load_acquire(&owner->passes_begun) == begun) /* [pass] */
		futex_wait(&owner->passes_begun, begun, UINT64_MAX);
	(void)u32_fetch_add_relaxed(&owner->pass_waiters, UINT32_MAX);
}
