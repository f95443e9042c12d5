/* SPDX-License-Identifier: MIT */
/*
 * A target of libFuzzer that passes arbitrary option structs to the library. The input's bytes
 * become the config of a hub or a queue, a spec, or an array of specs. A struct may claim any size,
 * and its memory has exactly this size. If the struct is valid, the call must succeed, and the
 * library must obey the struct. If the struct is invalid, the call must write no output, and must
 * return the errno of one of the faults.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <timerhub.h>

#include "harness.h"
#include "input.h"

#define UNTOUCHED UINT64_C(0x5ca1ab1e0ddba11)
#define NEVER UINT64_MAX
#define LAST_NS ((UINT64_C(1) << 63) - 128) /* the largest deadline */
#define NOW_MAX_NS (UINT64_C(1) << 62)
#define SIZE_MAX_BYTES 4096 /* largest size that an option struct may have, in bytes */
#define TIMERS_MAX_MAX 67108862u
#define BATCH 8

static void *const untouched = (void *)&untouched;

/* The faults for which the library or the kernel may refuse a struct. */
struct faults {
	bool invalid, too_big, out_of_range;
	/* the config names a processor that the thread may not use; the kernel checks this last */
	bool no_processor;
};

/* Returns true if the library's own checks find no fault. */
static bool well_formed(const struct faults *faults)
{
	return !faults->invalid && !faults->too_big && !faults->out_of_range;
}

static bool faultless(const struct faults *faults)
{
	return well_formed(faults) && !faults->no_processor;
}

static bool faults_tell(const struct faults *faults, int result)
{
	return (result == -EINVAL && (faults->invalid || faults->no_processor)) ||
	       (result == -E2BIG && faults->too_big) || (result == -ERANGE && faults->out_of_range);
}

static uint32_t size_in(const void *options)
{
	uint32_t size;

	memcpy(&size, options, sizeof(size));
	return size;
}

/*
 * Sets in `faults` the faults of a struct's member `size`. Returns true if the struct is large
 * enough for its members to be read.
 */
static bool check_size(const unsigned char *bytes, uint32_t size, uint32_t known_bytes,
                       struct faults *faults)
{
	if (size < known_bytes)
		faults->invalid = true;
	if (size > SIZE_MAX_BYTES)
		faults->too_big = true;
	for (uint32_t i = known_bytes; i < size && size <= SIZE_MAX_BYTES; i++)
		faults->too_big |= bytes[i] != 0;
	return size >= known_bytes;
}

/*
 * Returns memory with `count` structs of the size that the first struct claims. The memory ends
 * with the last struct, so that a read beyond it is found. The caller must free() the memory.
 */
static unsigned char *options_from(struct input *input, unsigned count)
{
	struct input ahead = *input;
	uint32_t size = 0;
	unsigned char *options;

	input_bytes(&ahead, &size, sizeof(size));
	if (size < sizeof(size))
		size = sizeof(size); /* the library may read the member `size` of any struct */
	if (size > 2 * SIZE_MAX_BYTES)
		size = 2 * SIZE_MAX_BYTES;
	options = malloc((size_t)size * count);
	expect(options);
	input_bytes(input, options, (size_t)size * count);
	return options;
}

/* ---- config ---- */

/* Returns whether the kernel lets a thread of this process run on the processor `cpu`. */
static bool cpu_allowed(uint32_t cpu)
{
	cpu_set_t before, one;
	bool allowed;

	if (cpu >= CPU_SETSIZE)
		return false;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	expect_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	allowed = sched_setaffinity(0, sizeof(one), &one) == 0;
	expect_eq(sched_setaffinity(0, sizeof(before), &before), 0);
	return allowed;
}

static struct faults config_faults(const unsigned char *bytes)
{
	struct faults faults = { .invalid = false };
	struct timerhub_config config;

	if (!check_size(bytes, size_in(bytes), sizeof(config), &faults))
		return faults;
	memcpy(&config, bytes, sizeof(config));
	faults.invalid |= (config.flags &
	                   ~(TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE | TIMERHUB_HUGE_PAGES)) != 0;
	faults.invalid |= config.timers_max > TIMERS_MAX_MAX;
	faults.invalid |= config.clock > TIMERHUB_CLOCK_REALTIME;
	faults.invalid |= config.sleeper > TIMERHUB_SLEEPER_POLL;
	if ((config.flags & TIMERHUB_MANUAL) == 0 && config.cpu_plus_one > 0)
		faults.no_processor = !cpu_allowed(config.cpu_plus_one - 1);
	return faults;
}

/*
 * Returns true if `result` is an errno with which the kernel may refuse a valid config. For
 * instance, the kernel may refuse io_uring, and the config may insist on io_uring.
 */
static bool kernel_refuses(const struct timerhub_config *config, int result)
{
	return result == -ENOMEM || result == -EAGAIN || result == -EMFILE || result == -ENFILE ||
	       (config->sleeper == TIMERHUB_SLEEPER_URING &&
	        (result == -EPERM || result == -ENOSYS));
}

static void hub_lives(struct timerhub *hub, const struct timerhub_config *config)
{
	bool manual = (config->flags & TIMERHUB_MANUAL) != 0;
	struct timerhub_queue *queue = NULL;
	struct timerhub_stats stats;
	timerhub_timer timer = 0;

	expect_eq(timerhub_queue_open(hub, &queue, NULL), 0);
	expect_eq(timerhub_after(queue, NEVER, 0, &timer), 0);
	expect_eq(timerhub_stats(hub, &stats), 0);
	expect_eq(stats.live, 1);
	if (config->sleeper != TIMERHUB_SLEEPER_AUTO && !manual)
		expect_eq(stats.sleeper, config->sleeper);
	expect_eq(timerhub_advance(hub, 1000, NULL), manual ? 0 : -EINVAL);
	if (config->timers_max == 1)
		expect_eq(timerhub_after(queue, NEVER, 0, NULL), -EAGAIN);
	expect_eq(timerhub_cancel(hub, timer), 0);
}

/* Returns a thread name made of the remaining bytes. The caller must free() the name. */
static char *name_from(struct input *input)
{
	size_t count = input->left;
	char *name = calloc(1, count + 1);

	expect(name);
	input_bytes(input, name, count);
	return name;
}

static void fuzz_config(struct input *input)
{
	unsigned char *bytes = options_from(input, 1);
	struct faults faults = config_faults(bytes);
	struct timerhub_config config = { .size = 0 };
	struct timerhub *hub = untouched;
	char *name = name_from(input);
	int result;

	if (size_in(bytes) >= sizeof(config)) {
		memcpy(&config, bytes, sizeof(config));
		config.thread_name = config.thread_name ? name : NULL;
		memcpy(bytes, &config, sizeof(config));
	}
	result = timerhub_open(&hub, (const struct timerhub_config *)(const void *)bytes);
	expect((result < 0) == (hub == untouched));
	if (result < 0) {
		expect(faults_tell(&faults, result) ||
		       (well_formed(&faults) && kernel_refuses(&config, result)));
	} else {
		expect(faultless(&faults));
		expect_eq(result, 0);
		hub_lives(hub, &config);
		timerhub_close(hub);
	}
	free(name);
	free(bytes);
}

static void fuzz_queue_config(struct input *input, struct timerhub *hub)
{
	unsigned char *bytes = options_from(input, 1);
	struct faults faults = { .invalid = false };
	struct timerhub_queue_config config;
	struct timerhub_queue *queue = untouched;
	int result;

	if (check_size(bytes, size_in(bytes), sizeof(config), &faults)) {
		memcpy(&config, bytes, sizeof(config));
		faults.invalid |= config.flags != 0;
	}
	result = timerhub_queue_open(hub, &queue,
	                             (const struct timerhub_queue_config *)(const void *)bytes);
	expect((result < 0) == (queue == untouched));
	if (result < 0)
		expect(faults_tell(&faults, result));
	else
		expect(faultless(&faults));
	if (result == 0)
		timerhub_queue_close(queue);
	free(bytes);
}

/* ---- spec ---- */

/*
 * Stores the deadline that the spec asks for. Returns false if the deadline would be later than the
 * largest deadline.
 */
static bool deadline_of(const struct timerhub_spec *spec, uint64_t now_ns, uint64_t *ret_ns)
{
	*ret_ns = spec->expires_ns;
	if (spec->expires_ns == NEVER)
		return true;
	if (spec->expires_ns > LAST_NS)
		return false;
	if ((spec->flags & TIMERHUB_ABSOLUTE) == 0)
		*ret_ns += now_ns;
	return *ret_ns <= LAST_NS;
}

static void spec_faults(const unsigned char *bytes, uint32_t size, uint64_t now_ns,
                        struct faults *faults)
{
	struct timerhub_spec spec;
	uint64_t deadline_ns;

	if (!check_size(bytes, size, sizeof(spec), faults))
		return;
	memcpy(&spec, bytes, sizeof(spec));
	faults->invalid |= (spec.flags & ~(TIMERHUB_ABSOLUTE | TIMERHUB_KEEP)) != 0;
	faults->invalid |= (spec.flags & TIMERHUB_KEEP) != 0 && spec.interval_ns > 0;
	faults->out_of_range |= spec.interval_ns > LAST_NS;
	faults->out_of_range |= !deadline_of(&spec, now_ns, &deadline_ns);
}

/*
 * Checks that no event comes 1 ns before the deadline, and that the event has come at deadline +
 * slack.
 */
static void timer_comes(struct timerhub_queue *queue, struct timerhub *hub, timerhub_timer timer,
                        const struct timerhub_spec *spec)
{
	struct timerhub_event event;
	uint64_t now_ns = timerhub_now(hub);
	uint64_t deadline_ns, last_ns, left_ns, periods;
	bool outlives;

	expect(deadline_of(spec, now_ns, &deadline_ns));
	expect_eq(timerhub_remaining(hub, timer, &left_ns), 0);
	if (deadline_ns == NEVER)
		expect_eq(left_ns, NEVER);
	else
		expect_eq(left_ns, deadline_ns > now_ns ? deadline_ns - now_ns : 0);
	last_ns = deadline_ns + spec->slack_ns;
	if (deadline_ns > NOW_MAX_NS || last_ns < deadline_ns || last_ns > NOW_MAX_NS) {
		expect_eq(timerhub_cancel(hub, timer), 0);
		return;
	}
	if (deadline_ns > now_ns) {
		expect_eq(timerhub_advance(hub, deadline_ns - 1, NULL), 0);
		expect_eq(timerhub_drain(queue, &event, 1), 0);
	}
	now_ns = last_ns > now_ns ? last_ns : now_ns;
	expect_eq(timerhub_advance(hub, now_ns, NULL), 0);
	expect_eq(timerhub_drain(queue, &event, 1), 1);
	expect_eq(event.timer, timer);
	expect_eq(event.data, spec->data);
	expect_eq(event.expires_ns, deadline_ns);
	expect_eq((uintptr_t)event.fn, (uintptr_t)spec->fn);
	periods = now_ns - deadline_ns;
	expect_eq(event.count, 1 + (spec->interval_ns > 0 ? periods / spec->interval_ns : 0));
	outlives = spec->interval_ns > 0 || (spec->flags & TIMERHUB_KEEP) != 0;
	expect_eq(timerhub_cancel(hub, timer), outlives ? 0 : -ENOENT);
}

static void fuzz_spec(struct input *input, struct timerhub *hub, struct timerhub_queue *queue)
{
	unsigned char *bytes = options_from(input, 1);
	struct faults faults = { .invalid = false };
	timerhub_timer timer = UNTOUCHED;
	struct timerhub_spec spec;
	int result;

	spec_faults(bytes, size_in(bytes), timerhub_now(hub), &faults);
	result = timerhub_arm(queue, (const struct timerhub_spec *)(const void *)bytes, &timer);
	expect((result < 0) == (timer == UNTOUCHED));
	if (result < 0) {
		expect(faults_tell(&faults, result));
	} else {
		expect(faultless(&faults));
		memcpy(&spec, bytes, sizeof(spec));
		timer_comes(queue, hub, timer, &spec);
	}
	free(bytes);
}

/*
 * Returns the faults of all structs of the array. The size of the first struct is the array's
 * stride. All other structs must claim this size.
 */
static struct faults specs_faults(const unsigned char *bytes, unsigned count, uint64_t now_ns)
{
	struct faults faults = { .invalid = false };
	uint32_t size = size_in(bytes);

	if (count > 1 && size % _Alignof(struct timerhub_spec) != 0)
		faults.invalid = true;
	for (unsigned i = 0; i < count; i++) {
		const unsigned char *spec = bytes + (size_t)size * i;

		spec_faults(spec, size, now_ns, &faults);
		if (faults.invalid || faults.too_big)
			/* the next struct may be outside the memory of the array */
			return faults;
		faults.invalid |= size_in(spec) != size;
	}
	return faults;
}

static void fuzz_specs(struct input *input, struct timerhub *hub, struct timerhub_queue *queue)
{
	unsigned count = 1 + input_byte(input) % BATCH;
	unsigned char *bytes = options_from(input, count);
	struct faults faults = specs_faults(bytes, count, timerhub_now(hub));
	timerhub_timer timers[BATCH];
	int result;

	for (unsigned i = 0; i < count; i++)
		timers[i] = UNTOUCHED;
	result = timerhub_arm_many(queue, (const struct timerhub_spec *)(const void *)bytes, count,
	                           timers);
	for (unsigned i = 0; i < count; i++)
		expect((result < 0) == (timers[i] == UNTOUCHED));
	if (result < 0) {
		expect(faults_tell(&faults, result));
	} else {
		expect(faultless(&faults));
		expect_eq(result, count);
		expect_eq(timerhub_cancel_many(hub, timers, count), count);
	}
	free(bytes);
}

/* ---- all of it ---- */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct timerhub_config config = { .size = sizeof(config),
		                                       .flags = TIMERHUB_MANUAL,
		                                       .timers_max = BATCH };
	struct input input = { bytes, count };
	uint8_t what = input_byte(&input);
	struct timerhub_queue *queue = NULL;
	struct timerhub *hub = NULL;
	uint64_t now_ns;

	if (what % 4 == 0) {
		fuzz_config(&input);
		return 0;
	}
	expect_eq(timerhub_open(&hub, &config), 0);
	expect_eq(timerhub_queue_open(hub, &queue, NULL), 0);
	now_ns = input_ns(&input) % NOW_MAX_NS;
	expect_eq(timerhub_advance(hub, now_ns, NULL), 0);
	if (what % 4 == 1)
		fuzz_queue_config(&input, hub);
	else if (what % 4 == 2)
		fuzz_spec(&input, hub, queue);
	else
		fuzz_specs(&input, hub, queue);
	timerhub_close(hub);
	return 0;
}
