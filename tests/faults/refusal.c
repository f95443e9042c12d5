/* SPDX-License-Identifier: MIT */
#include "refusal.h"

#include "fault_suite.h"
#include "refuse_calls.h"

#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RANGES_MAX 64

/* By it refusals_close() wakes the watching thread: containers allow it, and no test makes it. */
#define LAST_CALL SYS_getpgid

static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan {
	int call;
	int error;
	unsigned to_let_pass;
	unsigned to_refuse;
	unsigned refused;
	unsigned number; /* number of this plan; each call of refuse() makes a new plan */
} plan = { .call = -1 };

static atomic_int notify_fd = -1;
static atomic_bool watching;
static atomic_bool over;
static pthread_t watcher;

/*
 * The code whose calls count. A sanitizer's runtime is left out: it ends the process at a refusal.
 */
static struct {
	uintptr_t begin;
	uintptr_t end;
} ranges[RANGES_MAX];
static unsigned ranges_count;

static int note_ranges(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (!strstr(info->dlpi_name, "/libc.so") && !strstr(info->dlpi_name, "/liburing") &&
	    !strstr(info->dlpi_name, "/libtimerhub"))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		expect_cmp(ranges_count, <, RANGES_MAX);
		ranges[ranges_count].begin = info->dlpi_addr + segment->p_vaddr;
		ranges[ranges_count].end = ranges[ranges_count].begin + segment->p_memsz;
		ranges_count++;
	}
	return 0;
}

static bool counts(const struct seccomp_data *data)
{
	if (data->nr != plan.call)
		return false;
	for (unsigned i = 0; i < ranges_count; i++)
		if (data->instruction_pointer >= ranges[i].begin &&
		    data->instruction_pointer < ranges[i].end)
			return true;
	return false;
}

/* 0 lets the call pass. Under plan_lock. */
static int judge(const struct seccomp_data *data)
{
	if (!counts(data))
		return 0;
	if (plan.to_let_pass > 0) {
		plan.to_let_pass--;
		return 0;
	}
	if (plan.to_refuse == 0)
		return 0;
	if (plan.to_refuse != REFUSE_ALWAYS)
		plan.to_refuse--;
	plan.refused++;
	return plan.error;
}

/*
 * Returns false if the caller no longer waits: a signal, or the end of its thread's io_uring, has
 * interrupted the call, which comes again and counts then.
 */
static bool answer(const struct seccomp_notif *request, struct seccomp_notif_resp *response,
                   int error)
{
	memset(response, 0, sizeof(*response));
	response->id = request->id;
	response->error = -error;
	if (error == 0)
		response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	return seccomp_notify_respond(atomic_load(&notify_fd), response) == 0;
}

/* Counts first, so that a caller who has his answer is counted. */
static void judge_and_answer(const struct seccomp_notif *request,
                             struct seccomp_notif_resp *response)
{
	struct plan before;
	int error;

	pthread_mutex_lock(&plan_lock);
	before = plan;
	error = judge(&request->data);
	pthread_mutex_unlock(&plan_lock);
	if (answer(request, response, error)) {
		faults_count(error != 0);
		return;
	}
	pthread_mutex_lock(&plan_lock);
	if (plan.number == before.number)
		plan = before;
	pthread_mutex_unlock(&plan_lock);
}

static void *watch(void *arg)
{
	struct seccomp_notif *request = NULL;
	struct seccomp_notif_resp *response = NULL;
	bool ended = false;

	(void)arg;
	atomic_store(&watching, true);
	while (atomic_load(&notify_fd) < 0)
		sleep_ns(50 * US);
	expect_eq(seccomp_notify_alloc(&request, &response), 0);
	while (!ended) {
		memset(request, 0, sizeof(*request));
		/* an error: the caller was interrupted or has ended */
		if (seccomp_notify_receive(atomic_load(&notify_fd), request) != 0)
			continue;
		if (atomic_load(&over))
			ended = answer(request, response, ECANCELED);
		else
			judge_and_answer(request, response);
	}
	seccomp_notify_free(request, response);
	return NULL;
}

bool refusals_open(const int *calls, unsigned count)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int result = 0;

	expect(filter);
	expect_eq(dl_iterate_phdr(note_ranges, NULL), 0);
	expect_cmp(ranges_count, >, 0);
	thread_start(&watcher, watch, NULL);
	/* AddressSanitizer starts a thread under a lock that the thread needs */
	while (!atomic_load(&watching))
		sleep_ns(50 * US);
	for (unsigned i = 0; i < count && result == 0; i++)
		result = seccomp_rule_add(filter, SCMP_ACT_NOTIFY, calls[i], 0);
	if (result == 0)
		result = seccomp_rule_add(filter, SCMP_ACT_NOTIFY, LAST_CALL, 0);
	if (result == 0)
		result = seccomp_load(filter);
	if (result == 0)
		atomic_store(&notify_fd, seccomp_notify_fd(filter));
	else
		faults_skip("seccomp notifications", strerror(-result));
	seccomp_release(filter);
	return result == 0;
}

void refusals_close(void)
{
	atomic_store(&over, true);
	expect_eq(syscall(LAST_CALL, 0), -1);
	expect_eq(errno, ECANCELED);
	/* first: a sanitizer may make such a call in the join, and nobody would answer */
	expect_eq(close(atomic_load(&notify_fd)), 0);
	thread_join(watcher);
}

void refuse(int call, int error, unsigned k, unsigned times)
{
	pthread_mutex_lock(&plan_lock);
	plan = (struct plan){ .call = call,
		              .error = error,
		              .to_let_pass = k - 1,
		              .to_refuse = times,
		              .number = plan.number + 1 };
	pthread_mutex_unlock(&plan_lock);
}

unsigned refuse_no_more(void)
{
	unsigned count;

	pthread_mutex_lock(&plan_lock);
	plan.to_refuse = 0;
	plan.number++;
	count = plan.refused;
	pthread_mutex_unlock(&plan_lock);
	return count;
}

unsigned refused(void)
{
	unsigned count;

	pthread_mutex_lock(&plan_lock);
	count = plan.refused;
	pthread_mutex_unlock(&plan_lock);
	return count;
}

void deny_everywhere(int call, int error)
{
	refuse_calls(call, error);
	faults_count(1);
}
