/* SPDX-License-Identifier: MIT */
/* The header from C++17: compiles without warnings, links, works. */
#include <timerhub.h>

#include <cstdio>

static bool timer_comes(timerhub *hub)
{
	timerhub_queue *queue = nullptr;
	timerhub_event event{};
	timerhub_spec spec{};

	spec.size = sizeof(spec);
	spec.expires_ns = 1000;
	spec.data = 42;
	return timerhub_queue_open(hub, &queue, nullptr) == 0 &&
	       timerhub_arm(queue, &spec, nullptr) == 0 &&
	       timerhub_advance(hub, 1024, nullptr) == 0 && timerhub_drain(queue, &event, 1) == 1 &&
	       event.data == 42 && event.expires_ns == 1024;
}

int main()
{
	timerhub_config config{};
	timerhub *hub = nullptr;
	bool good;

	config.size = sizeof(config);
	config.flags = TIMERHUB_MANUAL;
	good = timerhub_open(&hub, &config) == 0 && timer_comes(hub);
	timerhub_close(hub);
	std::puts(good ? timerhub_version() : "failed");
	return good ? 0 : 1;
}
