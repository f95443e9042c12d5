/* SPDX-License-Identifier: MIT */
/*
 * A plugin that links the libraries is unloaded while their threads run: the code stays mapped.
 * Arguments: the shared libraries, the core first.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <timerhub.h>

/* ISO C converts no object pointer to a function's. */
static int load(void *library, const char *name, void *ret_function)
{
	void *address = dlsym(library, name);

	memcpy(ret_function, &address, sizeof(address));
	return address ? 0 : -1;
}

static int stays_mapped(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library || dlclose(library) != 0) {
		puts(dlerror());
		return 0;
	}
	return dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL;
}

/* Owner and a waiting call run on after dlclose(). */
static int timer_comes(const char *path)
{
	int (*open_hub)(struct timerhub * *hub, const struct timerhub_config *config);
	int (*open_queue)(struct timerhub * hub, struct timerhub_queue * *queue,
	                  const struct timerhub_queue_config *config);
	int (*after)(struct timerhub_queue * queue, uint64_t delay_ns, uint64_t data,
	             timerhub_timer * timer);
	int (*wait)(struct timerhub_queue * queue, struct timerhub_event * events, unsigned max,
	            uint64_t timeout_ns);
	void (*close_hub)(struct timerhub * hub);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct timerhub_queue *queue;
	struct timerhub_event event;
	struct timerhub *hub;

	if (!library || load(library, "timerhub_open", &open_hub) < 0 ||
	    load(library, "timerhub_queue_open", &open_queue) < 0 ||
	    load(library, "timerhub_after", &after) < 0 ||
	    load(library, "timerhub_wait", &wait) < 0 ||
	    load(library, "timerhub_close", &close_hub) < 0)
		return 0;
	if (open_hub(&hub, NULL) < 0 || open_queue(hub, &queue, NULL) < 0 ||
	    after(queue, 20000000, 1, NULL) < 0 || dlclose(library) != 0 ||
	    wait(queue, &event, 1, UINT64_MAX) != 1)
		return 0;
	close_hub(hub);
	return 1;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!stays_mapped(argv[i])) {
			printf("%s is unmapped by dlclose()\n", argv[i]);
			return 1;
		}
	return argc > 1 && timer_comes(argv[1]) ? 0 : 1;
}
