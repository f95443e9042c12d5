/* SPDX-License-Identifier: MIT */
/*
 * The program `confine` runs a command with fewer rights than the user has. One option runs the
 * command with a container's capabilities and system call filter. Other options set the user, the
 * limit of locked memory or the processors (see usage()). The exit status is the status of the
 * command. If the machine does not permit the options, the exit status is 125.
 *
 * The system call filter refuses calls with the same errors as the default profile of a container
 * engine. The filter lists the refused calls and allows all others. A container engine's profile
 * lists the allowed calls and refuses all others.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define EXIT_CANNOT_CONFINE 125
#define EXIT_CANNOT_RUN 126

/* The capabilities that a container engine gives to a container's superuser by default. */
static const unsigned container_capabilities[] = {
	CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FSETID,           CAP_FOWNER,     CAP_MKNOD,
	CAP_SETGID, CAP_SETUID,       CAP_SETFCAP,          CAP_SETPCAP,    CAP_NET_RAW,
	CAP_KILL,   CAP_SYS_CHROOT,   CAP_NET_BIND_SERVICE, CAP_AUDIT_WRITE
};

/*
 * System calls that a container engine's default profile refuses in a container. Some of these
 * calls need a capability that a container lacks.
 */
static const int container_refuses[] = {
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(acct),
	SCMP_SYS(add_key),
	SCMP_SYS(bpf),
	SCMP_SYS(clock_adjtime),
	SCMP_SYS(clock_settime),
	SCMP_SYS(delete_module),
	SCMP_SYS(fanotify_init),
	SCMP_SYS(finit_module),
	SCMP_SYS(fsconfig),
	SCMP_SYS(fsmount),
	SCMP_SYS(fsopen),
	SCMP_SYS(fspick),
	SCMP_SYS(get_mempolicy),
	SCMP_SYS(init_module),
	SCMP_SYS(ioperm),
	SCMP_SYS(iopl),
	SCMP_SYS(kcmp),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(kexec_load),
	SCMP_SYS(keyctl),
	SCMP_SYS(lookup_dcookie),
	SCMP_SYS(mbind),
	SCMP_SYS(mount),
	SCMP_SYS(mount_setattr),
	SCMP_SYS(move_mount),
	SCMP_SYS(move_pages),
	SCMP_SYS(nfsservctl),
	SCMP_SYS(open_tree),
	SCMP_SYS(open_by_handle_at),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(pivot_root),
	SCMP_SYS(quotactl),
	SCMP_SYS(reboot),
	SCMP_SYS(request_key),
	SCMP_SYS(set_mempolicy),
	SCMP_SYS(setdomainname),
	SCMP_SYS(sethostname),
	SCMP_SYS(setns),
	SCMP_SYS(settimeofday),
	SCMP_SYS(swapoff),
	SCMP_SYS(swapon),
	SCMP_SYS(syslog),
	SCMP_SYS(umount2),
	SCMP_SYS(unshare),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(vhangup),
};

/*
 * A container engine's default profile allows personality(2) with these two bits. It also allows
 * personality(0xffffffff), which returns the current personality.
 */
#define PERSONALITIES UINT32_C(0x20008)
/* Of the permitted arguments of personality(2), only 0xffffffff has this bit. */
#define PERSONALITY_ASKED UINT32_C(0x80000000)

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

static void usage(void)
{
	fputs("Usage: confine [--container] [--no-breakpoints] [--user ID] [--memlock BYTES]\n"
	      "               [--processors N] COMMAND [ARGUMENT]...\n"
	      "  --container     refuse what the default profile of a container engine refuses\n"
	      "  --no-breakpoints  take a debugger's breakpoints in registers, and never stop "
	      "there\n"
	      "  --user ID       as this user and group; needs the superuser\n"
	      "  --memlock BYTES limit the memory that may be locked, the superuser's too\n"
	      "  --processors N  on the first N processors that this process may use\n",
	      stderr);
}

_Noreturn static void cannot_confine(const char *what, int error)
{
	fprintf(stderr, "confine: %s: %s\n", what, strerror(error));
	exit(EXIT_CANNOT_CONFINE);
}

static void must(int result, const char *what)
{
	if (result < 0)
		cannot_confine(what, errno);
}

/* ---- capabilities ---- */

#define CAPABILITY_WORDS _LINUX_CAPABILITY_U32S_3

struct capabilities {
	struct __user_cap_data_struct words[CAPABILITY_WORDS];
};

static void capabilities_get(struct capabilities *capabilities)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	must((int)syscall(SYS_capget, &header, capabilities->words), "capget");
}

static void capabilities_set(const struct capabilities *capabilities)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	must((int)syscall(SYS_capset, &header, capabilities->words), "capset");
}

static bool has_capability(unsigned capability)
{
	struct capabilities mine;

	capabilities_get(&mine);
	return mine.words[capability / 32].effective >> capability % 32 & 1;
}

/*
 * Drop a capability from all sets. The bounding set is included, because exec gives the superuser
 * every capability of the bounding set.
 */
static void drop_capability(unsigned capability)
{
	struct capabilities mine;
	unsigned word = capability / 32;
	uint32_t others = ~(UINT32_C(1) << capability % 32);

	must(prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "the bounding set");
	capabilities_get(&mine);
	mine.words[word].effective &= others;
	mine.words[word].permitted &= others;
	mine.words[word].inheritable &= others;
	capabilities_set(&mine);
}

static bool container_keeps(unsigned capability)
{
	for (unsigned i = 0; i < COUNT_OF(container_capabilities); i++)
		if (container_capabilities[i] == capability)
			return true;
	return false;
}

/*
 * Drop the capabilities that a container does not have. A process needs CAP_SETPCAP to drop a
 * capability, and a container has CAP_SETPCAP.
 */
static void capabilities_as_container(void)
{
	for (unsigned capability = 0; capability < 32 * CAPABILITY_WORDS; capability++)
		if (prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1 &&
		    !container_keeps(capability))
			drop_capability(capability);
}

/* ---- filters ---- */

/*
 * Ends the program if a function of libseccomp has failed, and has therefore returned a negative
 * errno.
 */
static void must_filter(int result)
{
	if (result < 0)
		cannot_confine("seccomp", -result);
}

static void refuse(scmp_filter_ctx filter, int call, int error)
{
	/* A negative number means that this machine does not have the system call. */
	if (call >= 0)
		must_filter(seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint32_t)error), call, 0));
}

/*
 * Adds a rule. If the call's first argument satisfies the comparison, the call fails with `error`.
 * If `error` is 0, the call returns 0.
 */
static void answer_if(scmp_filter_ctx filter, int call, uint32_t error, struct scmp_arg_cmp compare)
{
	must_filter(seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(error), call, 1, &compare));
}

/*
 * Adds rules. If the call's first argument has one of `bits` and lacks the bit `but_not`, the call
 * fails with EPERM.
 */
static void refuse_bits(scmp_filter_ctx filter, int call, uint32_t bits, uint32_t but_not)
{
	for (uint32_t bit = 1; bit > 0; bit <<= 1)
		if (bits & bit)
			answer_if(filter, call, EPERM,
			          (struct scmp_arg_cmp){ .op = SCMP_CMP_MASKED_EQ,
			                                 .datum_a = bit | but_not,
			                                 .datum_b = bit });
}

static scmp_filter_ctx filter_begin(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (!filter)
		cannot_confine("seccomp", ENOMEM);
	return filter;
}

/*
 * Installs the filter. Without CAP_SYS_ADMIN, the kernel requires "no new privileges". With
 * CAP_SYS_ADMIN, set-user-ID programs still change the user ID, as they do in a container.
 */
static void filter_end(scmp_filter_ctx filter)
{
	must_filter(seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, !has_capability(CAP_SYS_ADMIN)));
	must_filter(seccomp_load(filter));
	seccomp_release(filter);
}

static void filter_as_container(void)
{
	scmp_filter_ctx filter = filter_begin();

	for (unsigned i = 0; i < COUNT_OF(container_refuses); i++)
		refuse(filter, container_refuses[i], EPERM);
	refuse_bits(filter, SCMP_SYS(personality), ~(PERSONALITIES | PERSONALITY_ASKED),
	            PERSONALITY_ASKED);
	refuse_bits(filter, SCMP_SYS(clone), NEW_NAMESPACES, 0);
	/* the filter cannot read the flags of clone3, so clone3 is refused completely */
	refuse(filter, SCMP_SYS(clone3), ENOSYS);
	filter_end(filter);
}

/*
 * Makes PTRACE_POKEUSER return 0 without setting a debug register. Breakpoints then never fire, as
 * on some virtual processors.
 */
static void filter_breakpoints(void)
{
	scmp_filter_ctx filter = filter_begin();

	answer_if(filter, SCMP_SYS(ptrace), 0,
	          (struct scmp_arg_cmp){ .op = SCMP_CMP_EQ, .datum_a = PTRACE_POKEUSER });
	filter_end(filter);
}

/* ---- limits ---- */

static void limit_locked_memory(const char *bytes)
{
	struct rlimit limit;

	limit.rlim_cur = strtoul(bytes, NULL, 0);
	limit.rlim_max = limit.rlim_cur;
	must(setrlimit(RLIMIT_MEMLOCK, &limit), "RLIMIT_MEMLOCK");
	if (has_capability(CAP_IPC_LOCK))
		drop_capability(CAP_IPC_LOCK);
}

static void limit_processors(const char *count)
{
	unsigned long left = strtoul(count, NULL, 0);
	cpu_set_t allowed;

	must(sched_getaffinity(0, sizeof(allowed), &allowed), "affinity");
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (left == 0)
			CPU_CLR(cpu, &allowed);
		else if (CPU_ISSET(cpu, &allowed))
			left--;
	must(sched_setaffinity(0, sizeof(allowed), &allowed), "affinity");
}

static void become(const char *id)
{
	unsigned number = (unsigned)strtoul(id, NULL, 0);

	must(setgroups(0, NULL), "groups");
	must(setgid(number), "group");
	must(setuid(number), "user");
}

/* The options of the command line. If an option is not given, its string is NULL. */
struct plan {
	bool container;
	bool no_breakpoints;
	const char *user;
	const char *memlock;
	const char *processors;
};

/*
 * Applies the options. The limits come first, while this process may still set them. The process
 * changes its user id last, because the earlier steps may need the rights of root.
 */
static void confine(const struct plan *plan)
{
	if (plan->processors)
		limit_processors(plan->processors);
	if (plan->memlock)
		limit_locked_memory(plan->memlock);
	if (plan->no_breakpoints)
		filter_breakpoints();
	if (plan->container) {
		filter_as_container();
		if (geteuid() == 0)
			capabilities_as_container();
	}
	if (plan->user)
		become(plan->user);
}

/*
 * Reads the command line into `plan`. Returns false if an option is unknown or the command is
 * missing.
 */
static bool read_options(int argc, char **argv, struct plan *plan)
{
	static const struct option options[] = { { "container", no_argument, NULL, 'c' },
		                                 { "no-breakpoints", no_argument, NULL, 'b' },
		                                 { "user", required_argument, NULL, 'u' },
		                                 { "memlock", required_argument, NULL, 'm' },
		                                 { "processors", required_argument, NULL, 'p' },
		                                 { NULL, 0, NULL, 0 } };
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == 'c')
			plan->container = true;
		else if (option == 'b')
			plan->no_breakpoints = true;
		else if (option == 'u')
			plan->user = optarg;
		else if (option == 'm')
			plan->memlock = optarg;
		else if (option == 'p')
			plan->processors = optarg;
		else
			return false;
	}
	return optind < argc;
}

int main(int argc, char **argv)
{
	struct plan plan = { .container = false };

	if (!read_options(argc, argv, &plan)) {
		usage();
		return EXIT_CANNOT_RUN;
	}
	confine(&plan);
	execvp(argv[optind], argv + optind);
	fprintf(stderr, "confine: %s: %s\n", argv[optind], strerror(errno));
	return EXIT_CANNOT_RUN;
}
