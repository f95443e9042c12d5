/* SPDX-License-Identifier: MIT */
/* Tests that the headers compile as C++ without warnings, and that their calls link and work. */
#include <timerhub.h>
#include <timerhub_loop.h>

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
	       event.data == 42 && event.expires_ns == 1000;
}

static bool expired;

static void on_timeout(timerhub_loop *, timerhub_timeout *)
{
	expired = true;
}

/* Tests the inline calls of the header, and the exported functions of the same names. */
static bool timeout_comes(timerhub *hub)
{
	int (*set)(timerhub_loop *, timerhub_timeout *, uint64_t) = timerhub_timeout_set;
	timerhub_loop *loop = nullptr;
	timerhub_timeout timeout{};
	bool good;

	good = timerhub_loop_open(&loop, hub, nullptr) == 0 &&
	       timerhub_timeout_add(loop, &timeout, on_timeout) == 0 &&
	       timerhub_timeout_set(loop, &timeout, 1000) == 0 &&
	       timerhub_timeout_stop(loop, &timeout) == 1 && set(loop, &timeout, 1000) == 0 &&
	       ::timerhub_timeout_set_at(loop, &timeout, 2000) == 0 &&
	       timerhub_advance(hub, 2000, nullptr) == 0 && timerhub_loop_turn(loop) == 1;
	timerhub_loop_close(loop);
	return good && expired;
}

int main()
{
	timerhub_config config{};
	timerhub *hub = nullptr;
	bool good;

	config.size = sizeof(config);
	config.flags = TIMERHUB_MANUAL;
	good = timerhub_open(&hub, &config) == 0 && timer_comes(hub) && timeout_comes(hub);
	timerhub_close(hub);
	std::puts(good ? timerhub_version() : "failed");
	return good ? 0 : 1;
}
