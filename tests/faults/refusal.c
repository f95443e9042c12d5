/* SPDX-License-Identifier: MIT */
/* See refusal.h. */
#include "refusal.h"

#include "faults.h"

#include <link.h>
#include <seccomp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RANGES_MAX 64

/* Written while no counted call is under way, or by the watcher. */
static struct {
	atomic_int call;
	atomic_int error;
	atomic_uint to_let_pass;
	atomic_uint to_refuse;
	atomic_uint refused;
} plan = { .call = -1 };

static atomic_int notify_fd = -1;
static atomic_bool over;
static pthread_t watcher;
static int any_call; /* one of those that are watched */

/* Code whose calls count: not a sanitizer's runtime, which would end the process. */
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
	if (data->nr != atomic_load(&plan.call))
		return false;
	for (unsigned i = 0; i < ranges_count; i++)
		if (data->instruction_pointer >= ranges[i].begin &&
		    data->instruction_pointer < ranges[i].end)
			return true;
	return false;
}

/* The errno to answer with, or 0 to let it pass. */
static int judge(const struct seccomp_data *data)
{
	if (!counts(data))
		return 0;
	if (atomic_load(&plan.to_let_pass) > 0) {
		atomic_fetch_sub(&plan.to_let_pass, 1);
		return 0;
	}
	if (atomic_load(&plan.to_refuse) == 0)
		return 0;
	if (atomic_load(&plan.to_refuse) != REFUSE_ALWAYS)
		atomic_fetch_sub(&plan.to_refuse, 1);
	atomic_fetch_add(&plan.refused, 1);
	faults_count(1);
	return atomic_load(&plan.error);
}

static void *watch(void *arg)
{
	struct seccomp_notif *request = NULL;
	struct seccomp_notif_resp *response = NULL;
	bool ended = false;

	(void)arg;
	while (atomic_load(&notify_fd) < 0)
		clock_sleep_ns(50 * US);
	expect_eq(seccomp_notify_alloc(&request, &response), 0);
	while (!ended) {
		memset(request, 0, sizeof(*request));
		/* A caller that was interrupted, or has ended, is not there any more. */
		if (seccomp_notify_receive(atomic_load(&notify_fd), request) != 0)
			continue;
		ended = atomic_load(&over); /* and not before the call that is made after that */
		memset(response, 0, sizeof(*response));
		response->id = request->id;
		response->error = ended ? -ECANCELED : -judge(&request->data);
		if (response->error == 0)
			response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		(void)seccomp_notify_respond(atomic_load(&notify_fd), response);
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
	any_call = calls[0];
	for (unsigned i = 0; i < count && result == 0; i++)
		result = seccomp_rule_add(filter, SCMP_ACT_NOTIFY, calls[i], 0);
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
	/* The watcher looks up, and answers in the kernel's place. */
	expect_eq(syscall(any_call, -1L, -1L, -1L, -1L, -1L, -1L), -1);
	expect_eq(errno, ECANCELED);
	thread_join(watcher);
	expect_eq(close(atomic_load(&notify_fd)), 0);
}

void refuse(int call, int error, unsigned k, unsigned times)
{
	atomic_store(&plan.to_refuse, 0);
	atomic_store(&plan.refused, 0);
	atomic_store(&plan.error, error);
	atomic_store(&plan.call, call);
	atomic_store(&plan.to_let_pass, k - 1);
	atomic_store(&plan.to_refuse, times);
}

unsigned refuse_no_more(void)
{
	atomic_store(&plan.to_refuse, 0);
	return refused();
}

unsigned refused(void)
{
	return atomic_load(&plan.refused);
}

void deny_everywhere(int call, int error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	expect(filter);
	expect_eq(seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1), 0);
	expect_eq(seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint32_t)error), call, 0), 0);
	expect_eq(seccomp_load(filter), 0);
	seccomp_release(filter);
	faults_count(1);
}
