/* SPDX-License-Identifier: MIT */
/*
 * Callbacks throw C++ exceptions through timerhub_dispatch(). The event whose callback throws
 * counts as delivered. The next call of the library works as if the callback had returned.
 */
#include <timerhub.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <poll.h>

namespace
{

constexpr unsigned rounds = 20000; /* more rounds than a hub has callback cells */

[[noreturn]] void fail(int line, const char *what)
{
	std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, what);
	std::exit(1);
}

#define expect(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))

struct rig {
	timerhub *hub = nullptr;
	timerhub_queue *queue = nullptr;
	uint64_t now_ns = 0;

	rig()
	{
		timerhub_config config{};

		config.size = sizeof(config);
		config.flags = TIMERHUB_MANUAL;
		config.timers_max = 4;
		expect(timerhub_open(&hub, &config) == 0);
		expect(timerhub_queue_open(hub, &queue, nullptr) == 0);
	}
	~rig()
	{
		timerhub_close(hub);
	}
	rig(const rig &) = delete;
	rig &operator=(const rig &) = delete;

	timerhub_timer arm(timerhub_fn *fn, void *ptr, uint64_t interval_ns = 0, uint32_t flags = 0)
	{
		timerhub_spec spec{};
		timerhub_timer timer = 0;

		spec.size = sizeof(spec);
		spec.flags = flags;
		spec.expires_ns = 1;
		spec.interval_ns = interval_ns;
		spec.ptr = ptr;
		spec.fn = fn;
		expect(timerhub_arm(queue, &spec, &timer) == 0);
		return timer;
	}
	void advance(uint64_t ticks)
	{
		now_ns += 64 * ticks;
		expect(timerhub_advance(hub, now_ns, nullptr) == 0);
	}
	bool readable() const
	{
		pollfd fd = { timerhub_queue_fd(queue), POLLIN, 0 };

		return poll(&fd, 1, 0) == 1;
	}
	struct timerhub_stats stats() const
	{
		struct timerhub_stats stats {
		};

		expect(timerhub_stats(hub, &stats) == 0);
		return stats;
	}
	bool dispatch_throws(unsigned max)
	{
		try {
			(void)timerhub_dispatch(queue, max);
		} catch (const std::runtime_error &error) {
			return error.what() == std::string("out of a callback");
		}
		return false;
	}
};

void throw_it(const timerhub_event *)
{
	throw std::runtime_error("out of a callback");
}

void count(const timerhub_event *event)
{
	++*static_cast<unsigned *>(event->ptr);
}

/* If a callback throws, the events after its event stay in the queue, and the fd stays readable. */
void the_rest_goes_on()
{
	rig rig;
	unsigned counted = 0;

	(void)rig.arm(throw_it, nullptr);
	rig.advance(1);
	(void)rig.arm(count, &counted);
	rig.advance(1);
	expect(rig.dispatch_throws(8));
	expect(counted == 0 && rig.readable());
	expect(rig.stats().delivered == 1 && rig.stats().live == 1);
	expect(timerhub_dispatch(rig.queue, 8) == 1);
	expect(counted == 1 && !rig.readable());
	expect(rig.stats().live == 0);
}

/* After a callback has thrown, no thread may find the throwing thread inside a callback. */
void nobody_is_inside()
{
	rig rig;
	timerhub_timer timer = rig.arm(throw_it, nullptr, 10);
	int result = 1;

	rig.advance(1);
	expect(rig.dispatch_throws(1));
	std::thread([&] { result = timerhub_cancel_sync(rig.hub, timer); }).join();
	expect(result == 0);
	timer = rig.arm(throw_it, nullptr, 10);
	rig.advance(1);
	expect(rig.dispatch_throws(1));
	expect(timerhub_cancel_sync(rig.hub, timer) == 0);
	expect(rig.stats().live == 0);
}

void dispatch_within(const timerhub_event *event)
{
	(void)timerhub_dispatch(event->queue, 1); /* the callback of the second event throws */
}

void dispatch_within_and_catch(const timerhub_event *event)
{
	try {
		(void)timerhub_dispatch(event->queue, 1);
	} catch (const std::runtime_error &) {
		*static_cast<bool *>(event->ptr) = true;
	}
}

void it_passes_through_callbacks()
{
	rig rig;
	bool caught = false;
	timerhub_timer outer = rig.arm(dispatch_within, nullptr, 100);
	timerhub_timer inner;

	rig.advance(1);
	inner = rig.arm(throw_it, nullptr, 100);
	rig.advance(1);
	expect(rig.dispatch_throws(1));
	expect(timerhub_cancel_sync(rig.hub, outer) == 0);
	expect(timerhub_cancel_sync(rig.hub, inner) == 0);
	outer = rig.arm(dispatch_within_and_catch, &caught, 100);
	rig.advance(1);
	inner = rig.arm(throw_it, nullptr, 100);
	rig.advance(1);
	expect(timerhub_dispatch(rig.queue, 1) == 1 && caught);
	expect(timerhub_cancel_sync(rig.hub, outer) == 0);
	expect(timerhub_cancel_sync(rig.hub, inner) == 0);
	expect(!rig.readable());
}

/* The callback destroys the object that its timer's data points at, and then throws. */
struct session {
	rig &owner;
	timerhub_timer timer;
	std::unique_ptr<int> state = std::make_unique<int>(7);

	explicit session(rig &rig_) : owner(rig_), timer(rig_.arm(on_timer, this, 5))
	{
	}
	static void on_timer(const timerhub_event *event)
	{
		std::unique_ptr<session> self(static_cast<session *>(event->ptr));

		expect(*self->state == 7);
		expect(timerhub_cancel_sync(self->owner.hub, self->timer) == 0);
		throw std::runtime_error("out of a callback");
	}
};

void objects_may_go_with_it()
{
	rig rig;

	for (unsigned i = 0; i < rounds; i++) {
		(void)new session(rig);
		rig.advance(10);
		expect(rig.dispatch_throws(2));
		expect(!rig.readable());
	}
	expect(rig.stats().live == 0 && rig.stats().delivered == rounds);
}

} // namespace

int main()
{
	the_rest_goes_on();
	nobody_is_inside();
	it_passes_through_callbacks();
	objects_may_go_with_it();
	std::puts("every exception left the library clean");
	return 0;
}
