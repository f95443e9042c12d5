/* SPDX-License-Identifier: MIT */
/* See hub.h. */
#include "hub.h"

#include <dirent.h>
#include <inttypes.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOWDOWN 8
#elif __has_feature(address_sanitizer)
#define SLOWDOWN 3
#endif
#endif
#if !defined(SLOWDOWN) && defined(__SANITIZE_THREAD__)
#define SLOWDOWN 8
#elif !defined(SLOWDOWN) && defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 3
#endif
#if !defined(SLOWDOWN)
#define SLOWDOWN 1
#endif

#define EXIT_SKIPPED 77     /* what meson takes for "skipped" */
#define KERNEL_PF_EXITING 4 /* among a thread's flags in /proc */

/* A fork with threads alive, and threads in the child, are what some of these tests are about. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static struct {
	Suite *suite;
	const char *only; /* run the tests whose name contains this */
	uint64_t seed;
	unsigned length;
} program = { .length = 1 };

void expect_failed(const char *file, int line, const char *what)
{
	ck_abort_msg("%s:%d: expected %s", file, line, what);
	abort();
}

void expect_cmp_failed(const char *file, int line, const char *what, int64_t left, int64_t right)
{
	ck_abort_msg("%s:%d: expected %s: %" PRId64 ", %" PRId64, file, line, what, left, right);
	abort();
}

static void number_from_env(const char *name, uint64_t *number)
{
	const char *text = getenv(name);

	if (text && *text)
		*number = strtoull(text, NULL, 0);
}

void tests_begin(const char *name, int argc, char **argv)
{
	uint64_t numbers[2] = { clock_now_ns(), 1 };
	unsigned given = 0;

	number_from_env("TIMERHUB_TEST_SEED", &numbers[0]);
	number_from_env("TIMERHUB_TEST_LENGTH", &numbers[1]);
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] < '0' || argv[i][0] > '9')
			program.only = argv[i];
		else if (given < 2)
			numbers[given++] = strtoull(argv[i], NULL, 0);
	}
	program.seed = numbers[0];
	program.length = numbers[1] ? (unsigned)numbers[1] : 1;
	program.suite = suite_create(name);
	printf("%s: TIMERHUB_TEST_SEED=0x%" PRIx64 " TIMERHUB_TEST_LENGTH=%u\n", name, program.seed,
	       program.length);
	fflush(stdout);
}

void tests_add(const TTest *test, int limit_s)
{
	tests_add_loop(test, limit_s, 1);
}

void tests_add_loop(const TTest *test, int limit_s, int count)
{
	TCase *tcase;

	if (program.only && !strstr(test->name, program.only))
		return;
	tcase = tcase_create(test->name);
	tcase_set_timeout(tcase, (double)limit_s * program.length);
	tcase_add_loop_test(tcase, test, 0, count);
	suite_add_tcase(program.suite, tcase);
}

int tests_run(void)
{
	SRunner *runner;
	int failed;

	if (sleeper_asked() == TIMERHUB_SLEEPER_URING && uring_refused()) {
		printf("skipped: io_uring: %s\n", strerror(uring_refused()));
		return EXIT_SKIPPED;
	}
	runner = srunner_create(program.suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

unsigned scaled(unsigned count)
{
	unsigned result = (unsigned)((uint64_t)count * program.length / SLOWDOWN);

	return result ? result : 1;
}

bool sanitized(void)
{
	return SLOWDOWN > 1;
}

struct dice dice_new(uint64_t salt)
{
	struct dice dice = { program.seed + salt * UINT64_C(0xd1342543de82ef95) };

	return dice;
}

/* Steele, Lea, Flood, "Fast splittable pseudorandom number generators": splitmix64. */
uint64_t dice_roll(struct dice *dice)
{
	uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t dice_below(struct dice *dice, uint64_t bound)
{
	return dice_roll(dice) % bound;
}

uint64_t dice_magnitude(struct dice *dice, unsigned bits)
{
	unsigned used = (unsigned)dice_below(dice, bits + 1);

	return used ? dice_roll(dice) >> (64 - used) : 0;
}

uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SEC + (uint64_t)now.tv_nsec;
}

void clock_sleep_ns(uint64_t ns)
{
	uint64_t until_ns = clock_now_ns() + ns;
	struct timespec until = { (time_t)(until_ns / SEC), (long)(until_ns % SEC) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

void until_in_time(bool (*attempt)(uint64_t margin_ns), uint64_t margin_ns)
{
	while (!attempt(margin_ns)) {
		margin_ns *= 2;
		expect_cmp(margin_ns, <, ARRIVES);
	}
}

bool fd_readable(int fd)
{
	return fd_readable_within(fd, 0);
}

bool fd_readable_within(int fd, uint64_t timeout_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	struct timespec timeout = { (time_t)(timeout_ns / SEC), (long)(timeout_ns % SEC) };
	int ready;

	do
		ready = ppoll(&poll_fd, 1, &timeout, NULL);
	while (ready < 0 && errno == EINTR);
	expect(ready >= 0);
	return ready == 1;
}

static unsigned dir_count(const char *path)
{
	DIR *dir = opendir(path);
	unsigned count = 0;

	expect(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

unsigned process_fd_count(void)
{
	return dir_count("/proc/self/fd") - 1; /* the one that is counting */
}

static bool file_first_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	bool found = file && fgets(line, size, file);

	if (file)
		fclose(file);
	line[found ? strcspn(line, "\n") : 0] = '\0';
	return found;
}

/* The field in this place of the thread's stat file, after its name: 0 is its state. */
static bool thread_stat(pid_t tid, unsigned place, char *field, size_t size)
{
	char path[64];
	char line[512];
	const char *at;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	if (!file_first_line(path, line, sizeof(line)))
		return false;
	at = strrchr(line, ')');
	for (unsigned i = 0; at && i <= place; i++)
		at = strchr(at + 1, ' ');
	if (at)
		snprintf(field, size, "%.*s", (int)strcspn(at + 1, " "), at + 1);
	return at;
}

/* Joined, or about to be: the kernel has yet to tidy up after it. */
static bool thread_is_leaving(pid_t tid)
{
	char flags[32];

	return !thread_stat(tid, 6, flags, sizeof(flags)) ||
	       strtoul(flags, NULL, 10) & KERNEL_PF_EXITING;
}

unsigned process_thread_count(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned count = 0;

	expect(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.' && !thread_is_leaving(atoi(entry->d_name));
	closedir(dir);
	return count;
}

static void *do_nothing(void *arg)
{
	return arg;
}

unsigned process_threads_at_rest(void)
{
	pthread_t thread;

	thread_start(&thread, do_nothing, NULL);
	thread_join(thread);
	return process_thread_count();
}

unsigned process_mapping_count(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned count = 0;

	expect(maps);
	for (int c; (c = getc(maps)) != EOF;)
		count += c == '\n';
	fclose(maps);
	return count;
}

uint64_t process_rss_bytes(void)
{
	return thread_status(getpid(), "VmRSS:", 10) * 1024;
}

/*
 * A sanitizer keeps shadow and history of its own beside each page, and takes them when it likes:
 * ThreadSanitizer 5 MB at once, some seconds in. A slot lost for each of a million timers is 64 MB.
 */
void process_rss_is_still(uint64_t before_bytes)
{
	uint64_t noise_bytes = UINT64_C(1) << (sanitized() ? 24 : 20);

	expect_cmp(process_rss_bytes(), <, before_bytes + noise_bytes);
}

void process_settles_at_threads(unsigned count)
{
	uint64_t until_ns = clock_now_ns() + ARRIVES;

	while (process_thread_count() != count && clock_now_ns() < until_ns)
		clock_sleep_ns(MS);
	expect_eq(process_thread_count(), count);
}

static bool thread_is_named(const char *tid, const char *name)
{
	char path[300];
	char comm[32];

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
	return file_first_line(path, comm, sizeof(comm)) && !strcmp(comm, name);
}

pid_t thread_find(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	pid_t found = 0;

	expect(dir);
	for (struct dirent *entry; !found && (entry = readdir(dir));)
		if (thread_is_named(entry->d_name, name))
			found = (pid_t)atoi(entry->d_name);
	closedir(dir);
	return found;
}

uint64_t thread_status(pid_t tid, const char *key, int base)
{
	char line[256];
	uint64_t value = 0;
	bool found = false;
	FILE *file;

	snprintf(line, sizeof(line), "/proc/self/task/%d/status", (int)tid);
	file = fopen(line, "re");
	expect(file);
	while (!found && fgets(line, sizeof(line), file)) {
		found = !strncmp(line, key, strlen(key));
		if (found)
			value = strtoull(line + strlen(key), NULL, base);
	}
	fclose(file);
	expect(found);
	return value;
}

/*
 * Not only about to, nor woken already and waiting for a processor: of one that is not off its
 * processor the kernel says "running" in place of the system call.
 */
bool thread_is_blocked(pid_t tid)
{
	char path[64];
	char line[256];

	if (!thread_stat(tid, 0, line, sizeof(line)) || line[0] != 'S')
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	return !file_first_line(path, line, sizeof(line)) || (line[0] >= '0' && line[0] <= '9');
}

void thread_blocks(pid_t tid)
{
	uint64_t until_ns = clock_now_ns() + ARRIVES;

	while (!thread_is_blocked(tid)) {
		expect(clock_now_ns() < until_ns);
		clock_sleep_ns(100 * US);
	}
}

void thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg)
{
	expect_eq(pthread_create(ret_thread, NULL, run, arg), 0);
}

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZED 1
#elif defined(__has_feature)
#define ADDRESS_SANITIZED __has_feature(address_sanitizer)
#else
#define ADDRESS_SANITIZED 0
#endif
#if ADDRESS_SANITIZED
void __asan_handle_no_return(void);
#endif

void thread_ends_here(void)
{
#if ADDRESS_SANITIZED
	__asan_handle_no_return();
#endif
}

void thread_join(pthread_t thread)
{
	expect_eq(pthread_join(thread, NULL), 0);
}

void thread_pin(unsigned index)
{
	static cpu_set_t allowed; /* before anybody was pinned */
	static unsigned allowed_count;
	cpu_set_t one;
	int cpu = -1;

	if (!allowed_count) {
		expect_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
		allowed_count = (unsigned)CPU_COUNT(&allowed);
	}
	for (unsigned left = index % allowed_count + 1; left; left--)
		do
			cpu++;
		while (!CPU_ISSET((unsigned)cpu, &allowed));
	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	expect_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

void child_ends_well(pid_t child)
{
	int status;
	pid_t ended;

	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	expect_eq(ended, child);
	expect(WIFEXITED(status));
	expect_eq(WEXITSTATUS(status), 0);
}

int uring_refused(void)
{
#ifdef TIMERHUB_WITHOUT_IO_URING
	return ENOSYS;
#else
	struct io_uring_params params = { 0 };
	long fd = syscall(SYS_io_uring_setup, 4, &params);

	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
#endif
}

enum timerhub_sleeper sleeper_asked(void)
{
	const char *name = getenv("TIMERHUB_TEST_SLEEPER");

	if (!name || !strcmp(name, "auto"))
		return TIMERHUB_SLEEPER_AUTO;
	if (!strcmp(name, "poll"))
		return TIMERHUB_SLEEPER_POLL;
	if (!strcmp(name, "uring"))
		return TIMERHUB_SLEEPER_URING;
	fprintf(stderr, "TIMERHUB_TEST_SLEEPER=%s: not uring, poll or auto\n", name);
	exit(EXIT_FAILURE);
}

struct rig rig_open_config(struct timerhub_config config)
{
	struct rig rig = { NULL, NULL };

	config.size = sizeof(config);
	if (!(config.flags & TIMERHUB_MANUAL))
		config.sleeper = sleeper_asked();
	if (getenv("TIMERHUB_TEST_OBSERVABLE"))
		config.flags |= TIMERHUB_OBSERVABLE;
	expect_eq(timerhub_open(&rig.hub, &config), 0);
	rig.queue = queue_open(rig.hub);
	return rig;
}

struct rig rig_open(uint32_t timers_max)
{
	return rig_open_config((struct timerhub_config){ .timers_max = timers_max });
}

struct rig rig_manual(uint32_t timers_max)
{
	return rig_open_config(
		(struct timerhub_config){ .flags = TIMERHUB_MANUAL, .timers_max = timers_max });
}

void rig_close(struct rig *rig)
{
	timerhub_close(rig->hub);
	*rig = (struct rig){ NULL, NULL };
}

struct timerhub_queue *queue_open(struct timerhub *hub)
{
	struct timerhub_queue *queue = NULL;

	expect_eq(timerhub_queue_open(hub, &queue, NULL), 0);
	expect(queue);
	return queue;
}

timerhub_timer arm(struct timerhub_queue *queue, struct timerhub_spec spec)
{
	timerhub_timer timer = 0;

	expect_eq(timerhub_arm(queue, &spec, &timer), 0);
	expect(timer != 0);
	return timer;
}

timerhub_timer arm_after(struct timerhub_queue *queue, uint64_t delay_ns, uint64_t data)
{
	timerhub_timer timer = 0;

	expect_eq(timerhub_after(queue, delay_ns, data, &timer), 0);
	expect(timer != 0);
	return timer;
}

timerhub_timer arm_at(struct timerhub_queue *queue, uint64_t expires_ns, uint64_t data)
{
	return arm(queue, SPEC(.flags = TIMERHUB_ABSOLUTE, .expires_ns = expires_ns, .data = data));
}

uint64_t advance(struct timerhub *hub, uint64_t now_ns)
{
	uint64_t next_ns = 0;

	expect_eq(timerhub_advance(hub, now_ns, &next_ns), 0);
	expect_eq(timerhub_now(hub), now_ns);
	return next_ns;
}

void arm_and_expire(struct rig *rig, uint64_t *now_ns, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		arm_after(rig->queue, 1 + i, i);
	*now_ns += US;
	advance(rig->hub, *now_ns);
}

struct timerhub_event take_one(struct timerhub_queue *queue)
{
	struct timerhub_event event = { 0 };

	expect_eq(timerhub_wait(queue, &event, 1, ARRIVES), 1);
	return event;
}

int take_up_to(struct timerhub_queue *queue, unsigned max)
{
	struct timerhub_event events[64];

	expect_cmp(max, <=, COUNT_OF(events));
	return timerhub_drain(queue, events, max);
}

unsigned drain_all(struct timerhub_queue *queue)
{
	struct timerhub_event events[64];
	unsigned total = 0;
	int count;

	while ((count = timerhub_drain(queue, events, COUNT_OF(events))) > 0)
		total += (unsigned)count;
	expect_eq(count, 0);
	return total;
}

void expect_empty(struct timerhub_queue *queue)
{
	struct timerhub_event event;

	expect_eq(timerhub_drain(queue, &event, 1), 0);
}

struct timerhub_stats stats_of(struct timerhub *hub)
{
	struct timerhub_stats stats;

	expect_eq(timerhub_stats(hub, &stats), 0);
	return stats;
}

static bool owners_are_blocked(void)
{
	DIR *dir = opendir("/proc/self/task");
	bool blocked = true;

	expect(dir);
	for (struct dirent *entry; blocked && (entry = readdir(dir));)
		if (thread_is_named(entry->d_name, "timerhub"))
			blocked = thread_is_blocked(atoi(entry->d_name));
	closedir(dir);
	return blocked;
}

struct timerhub_stats stats_settled(struct timerhub *hub)
{
	uint64_t until_ns = clock_now_ns() + ARRIVES;
	struct timerhub_stats before;
	struct timerhub_stats after;
	bool blocked;

	do {
		expect(clock_now_ns() < until_ns);
		before = stats_of(hub);
		/* That it has not woken proves nothing: it may wait for a processor. */
		blocked = owners_are_blocked();
		clock_sleep_ns(50 * MS);
		blocked = owners_are_blocked() && blocked;
		after = stats_of(hub);
	} while (!blocked || before.owner_wakeups != after.owner_wakeups);
	return after;
}
