/* SPDX-License-Identifier: MIT */
/*
 * Runs seeds on all processors. Each attempt is a process of its own, because a failure ends it. If
 * a seed fails, the program leaves out the last operations as long as it still fails, and prints
 * the others together with the command that repeats them.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "report.h"
#include "scheduler.h"
#include "simulated_run.h"
#include "weaken.h"

#define JOBS_MAX 256
/* Processor seconds of one attempt; of 256 seeds. */
#define ATTEMPT_HANG_S 10
#define HANG_S 120

struct options {
	uint64_t first, last; /* the seeds to run */
	unsigned operations, jobs;
	double minutes; /* if > 0, ignore `last`, and run seeds for this number of minutes */
	enum memory_mode memory;
	enum focus focus;
	const char *weaken; /* the access to weaken, in the form of weaken_parse(); or NULL */
	bool replay;
};

/* With the processes that run seeds. */
static struct shared {
	_Atomic(uint64_t) next;     /* the seed that the next free process runs */
	_Atomic(uint64_t) weakened; /* number of times that the weakened access was made */
	/* of each run's last random state and time, summed */
	_Atomic(uint64_t) digest;
	struct {
		uint64_t seed; /* the seed that this process is running */
		char text[REPORT_BYTES];
	} jobs[JOBS_MAX];
} * shared;

void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
long __real_sysconf(int name);

static const char *const focuses[] = { "none", "waits", "late", "clock",
	                               "push", "tiny",  "stop", "full" };

static double seconds(void)
{
	struct timespec now;

	(void)__real_clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Not elapsed time: on a busy machine a process runs seldom. */
static void processor_limit(int limit_s)
{
	const struct itimerval timer = { .it_value = { .tv_sec = limit_s } };

	if (setitimer(ITIMER_PROF, &timer, NULL) < 0)
		perror("simulation");
}

static _Noreturn void usage(void)
{
	fputs("Usage: simulation [--seeds FIRST-LAST] [--operations N] [--jobs N] [--minutes M]\n"
	      "                  [--memory sc|c11] [--focus waits|late|clock|push|tiny|stop|full]\n"
	      "                  [--weaken FILE:LINE:ORDER]\n"
	      "       simulation --seed S [--operations N] [--memory M]\n"
	      "Runs the library under a seeded scheduler. Exits with 1 if a law is broken.\n"
	      "  --minutes M  run seeds from FIRST on for M minutes\n"
	      "  --seed S     run one seed, and print each operation\n"
	      "  --memory M   memory model: sc (loads return the newest store), c11\n"
	      "  --focus F    with c11, make runs of one kind: cancellers that wait for\n"
	      "               callbacks, calls on closing queues, a wall clock that is set,\n"
	      "               frequent pushes into the inbox, one or two slots, a stopped queue,\n"
	      "               an inbox that is not drained\n"
	      "  --weaken W   give the atomic accesses in a line of lib/ a weaker order: relaxed,\n"
	      "               acquire, release, acq_rel, load\n",
	      stderr);
	exit(2);
}

/* ---- one attempt ---- */

static struct plan plan_of(const struct options *options, uint64_t seed)
{
	return (struct plan){ .seed = seed,
		              .operations = options->operations,
		              .memory = options->memory,
		              .focus = options->focus };
}

static bool attempt(const struct plan *plan, bool telling)
{
	int status = 0;
	pid_t pid;

	shared->jobs[0].text[0] = '\0';
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		processor_limit(ATTEMPT_HANG_S);
		report_text = shared->jobs[0].text;
		report_telling = telling;
		if (!telling && !freopen("/dev/null", "w", stderr))
			_exit(EXIT_FAILURE);
		world_run(plan);
		(void)fflush(stdout);
		_exit(EXIT_SUCCESS);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("simulation");
		exit(EXIT_FAILURE);
	}
	return status == 0;
}

static const char *memory_name(enum memory_mode mode)
{
	return mode == MEMORY_SC ? "sc" : "c11";
}

static void tell_failure(const char *program, const struct options *options, uint64_t seed)
{
	struct plan plan = plan_of(options, seed);
	unsigned enough = plan.operations;

	if (attempt(&plan, false)) {
		printf("seed %" PRIu64 " fails only after the seeds before it\n", seed);
		return;
	}
	for (unsigned piece = enough / 2; piece > 0; piece /= 2) {
		plan.operations = enough - piece;
		if (!attempt(&plan, false))
			enough -= piece;
	}
	plan.operations = enough;
	printf("seed %" PRIu64 " fails by its first %u operations:\n", seed, enough);
	(void)attempt(&plan, true);
	printf("To see this again:\n  %s --seed %" PRIu64
	       " --operations %u --memory %s --focus %s%s%s\n",
	       program, seed, enough, memory_name(options->memory), focuses[options->focus],
	       options->weaken ? " --weaken " : "", options->weaken ? options->weaken : "");
}

/* ---- many seeds ---- */

/* Equal for two versions of lib/ whose threads make the same steps. */
static void add_to_digest(uint64_t seed)
{
	struct dice end = dice_seeded(scheduler.dice.state ^ scheduler.now_ns, seed & 0xffff);

	atomic_fetch_add(&shared->digest, dice_roll(&end));
}

static void job_run(const struct options *options, unsigned job)
{
	struct plan plan = plan_of(options, 0);
	double until = seconds() + options->minutes * 60;

	report_text = shared->jobs[job].text;
	for (unsigned count = 0;; count++) {
		plan.seed = atomic_fetch_add(&shared->next, 1);
		if (options->minutes > 0 ? seconds() > until : plan.seed > options->last) {
			atomic_fetch_add(&shared->weakened, weaken_times());
			/* not _exit(): AddressSanitizer checks for leaks */
			exit(EXIT_SUCCESS);
		}
		shared->jobs[job].seed = plan.seed;
		if (count % 256 == 0)
			processor_limit(HANG_S);
		world_run(&plan);
		add_to_digest(plan.seed);
	}
}

static unsigned job_of(const pid_t *pids, unsigned jobs, pid_t pid)
{
	for (unsigned i = 0; i < jobs; i++)
		if (pids[i] == pid)
			return i;
	return jobs;
}

/* Returns the number of the process that failed, or `options->jobs`. */
static unsigned run_jobs(const struct options *options)
{
	pid_t pids[JOBS_MAX];
	unsigned failed = options->jobs;

	for (unsigned i = 0; i < options->jobs; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			job_run(options, i);
	}
	for (unsigned left = options->jobs; left > 0; left--) {
		int status;
		pid_t pid = wait(&status);

		if (status == 0 || failed < options->jobs)
			continue;
		failed = job_of(pids, options->jobs, pid);
		for (unsigned i = 0; i < options->jobs; i++)
			if (i != failed)
				/* still exists, or has just ended */
				(void)kill(pids[i], SIGKILL);
	}
	return failed;
}

static int run_seeds(const char *program, const struct options *options)
{
	double begin = seconds();
	unsigned failed;
	uint64_t count;
	double took;

	atomic_store(&shared->next, options->first);
	failed = run_jobs(options);
	took = seconds() - begin;
	count = atomic_load(&shared->next) - options->first;
	/* each process took one seed more than it ran */
	count -= count < options->jobs ? count : options->jobs;
	printf("%" PRIu64
	       " seeds of %u operations in %.1f s: %.0f seeds a second on %u processors; digest "
	       "%016" PRIx64 "\n",
	       count, options->operations, took, (double)count / took, options->jobs,
	       atomic_load(&shared->digest));
	if (options->weaken && failed == options->jobs)
		printf("the access that was made weaker was made %" PRIu64 " times\n",
		       atomic_load(&shared->weakened));
	if (failed == options->jobs)
		return EXIT_SUCCESS;
	printf("FAILED: %s\n", shared->jobs[failed].text);
	tell_failure(program, options, shared->jobs[failed].seed);
	return EXIT_FAILURE;
}

/* ---- the command line ---- */

static void choose_memory(struct options *options, const char *name)
{
	if (strcmp(name, "c11") == 0)
		options->memory = MEMORY_C11;
	else if (strcmp(name, "sc") != 0)
		usage();
}

static enum focus focus_of(const char *name)
{
	for (unsigned i = 0; i < sizeof(focuses) / sizeof(focuses[0]); i++)
		if (strcmp(name, focuses[i]) == 0)
			return (enum focus)i;
	usage();
}

static void option(struct options *options, const char *name, const char *value)
{
	char *end = NULL;

	if (strcmp(name, "--seeds") == 0) {
		options->first = strtoull(value, &end, 0);
		options->last = *end == '-' ? strtoull(end + 1, &end, 0) : UINT64_MAX;
	} else if (strcmp(name, "--seed") == 0) {
		options->replay = true;
		options->first = strtoull(value, &end, 0);
	} else if (strcmp(name, "--operations") == 0) {
		options->operations = (unsigned)strtoul(value, &end, 0);
	} else if (strcmp(name, "--jobs") == 0) {
		options->jobs = (unsigned)strtoul(value, &end, 0);
	} else if (strcmp(name, "--minutes") == 0) {
		options->minutes = strtod(value, &end);
	} else if (strcmp(name, "--memory") == 0) {
		choose_memory(options, value);
	} else if (strcmp(name, "--focus") == 0) {
		options->focus = focus_of(value);
	} else if (strcmp(name, "--weaken") == 0) {
		if (!weaken_parse(value))
			usage();
		options->weaken = value;
	} else {
		usage();
	}
}

int main(int argc, char **argv)
{
	static struct options options = {
		.first = 1,
		.last = 1000,
		.operations = 1000,
	};
	struct plan plan;

	options.jobs = (unsigned)__real_sysconf(_SC_NPROCESSORS_ONLN);
	options.jobs = options.jobs < JOBS_MAX ? options.jobs : JOBS_MAX;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			usage();
		option(&options, argv[i], argv[i + 1]);
	}
	if (options.operations == 0 || options.operations > OPERATIONS_MAX || options.jobs == 0 ||
	    options.jobs > JOBS_MAX)
		usage();
	shared = __real_mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return EXIT_FAILURE;
	if (!options.replay)
		return run_seeds(argv[0], &options);
	plan = plan_of(&options, options.first);
	return attempt(&plan, true) ? EXIT_SUCCESS : EXIT_FAILURE;
}
