/* SPDX-License-Identifier: MIT */
/*
 * Two copies of the library in one process: the program's shared one, and a static one in a plugin.
 * A callback that one of them has called cancels its own timer by the other, which must not wait
 * for it. Argument: the plugin.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <timerhub.h>
#include <unistd.h>

#define LIMIT_S 20 /* a cancel that waits for its own callback waits for ever */

typedef int dispatch_fn(struct timerhub_queue *queue, unsigned max);
typedef int cancel_fn(struct timerhub *hub, timerhub_timer timer);

static cancel_fn *cancel;
static int results[2];

static void cancel_own_timer(const struct timerhub_event *event)
{
	struct timerhub *hub = timerhub_queue_hub(event->queue);

	for (unsigned i = 0; i < 2; i++)
		results[i] = cancel(hub, event->timer);
}

static int wrong(const char *what)
{
	printf("not so: %s\n", what);
	return 1;
}

/* By a one-shot, which has ended when its callback is called, and by a periodic timer. */
static int cancels_inside(dispatch_fn *dispatch)
{
	struct timerhub_config config = { .size = sizeof(config), .flags = TIMERHUB_MANUAL };
	struct timerhub_queue *queue;
	struct timerhub *hub;
	int bad = 0;

	if (timerhub_open(&hub, &config) < 0 || timerhub_queue_open(hub, &queue, NULL) < 0)
		return wrong("a hub and a queue");
	for (uint64_t interval_ns = 0; interval_ns < 2; interval_ns++) {
		struct timerhub_spec spec = { .size = sizeof(spec),
			                      .expires_ns = 1,
			                      .interval_ns = interval_ns,
			                      .fn = cancel_own_timer };

		if (timerhub_arm(queue, &spec, NULL) < 0 ||
		    timerhub_advance(hub, timerhub_now(hub) + 1000, NULL) < 0 ||
		    dispatch(queue, 1) != 1)
			bad = wrong("a timer comes");
		if (results[0] != (interval_ns > 0 ? 0 : -ENOENT) || results[1] != -ENOENT)
			bad = wrong("a callback cancels its own timer");
	}
	timerhub_close(hub);
	return bad;
}

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	dispatch_fn **dispatch;
	cancel_fn **cancel_sync;

	if (!plugin)
		return wrong(dlerror());
	dispatch = dlsym(plugin, "plugin_dispatch");
	cancel_sync = dlsym(plugin, "plugin_cancel_sync");
	if (!dispatch || !cancel_sync)
		return wrong(dlerror());
	if (*dispatch == timerhub_dispatch || *cancel_sync == timerhub_cancel_sync)
		return wrong("the plugin has a copy of its own");
	alarm(LIMIT_S);
	cancel = *cancel_sync;
	if (cancels_inside(timerhub_dispatch))
		return 1;
	cancel = timerhub_cancel_sync;
	return cancels_inside(*dispatch);
}
