/* SPDX-License-Identifier: MIT */
/*
 * Tests sleep_for() of C++20 in virtual time and on one thread: when a coroutine is resumed, what
 * it is told, and that it may be destroyed at any point of its sleep. test_sleep_threads.cc has the
 * sleeps that several threads begin, dispatch and stop.
 */
#include <timerhub.hpp>

#include <chrono>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "coroutine.hpp"
#include "expect.hpp"
#include "heap.hpp"

using namespace std::chrono_literals;
using std::errc;

namespace
{

/* A manual hub. */
struct clockwork {
	timerhub::hub hub;

	explicit clockwork(unsigned timers_max)
	{
		timerhub_config config{};

		config.flags = TIMERHUB_MANUAL;
		config.timers_max = timers_max;
		expect(!hub.open(config));
	}

	void pass(timerhub::delay to)
	{
		const auto ns = std::chrono::nanoseconds(to.ns());

		expect(!hub.advance(timerhub::time_point(ns)));
	}
};

struct loop_rig : clockwork {
	timerhub::loop loop;

	explicit loop_rig(unsigned timeouts_max = 0) : clockwork(0)
	{
		timerhub_loop_config config{};

		config.timeouts_max = timeouts_max;
		expect(!loop.open(hub, config));
	}

	/* Moves the clock, and resumes what is due. The first turn takes what was set. */
	unsigned turn(timerhub::delay to)
	{
		unsigned before = 0, count = 0;

		expect(!loop.turn(&before));
		pass(to);
		expect(!loop.turn(&count));
		return before + count;
	}

	std::uint64_t timeouts() const
	{
		timerhub::loop_stats stats{};

		expect(!loop.stats(stats));
		return stats.added;
	}
};

struct queue_rig : clockwork {
	timerhub::queue queue;

	explicit queue_rig(unsigned timers_max = 0) : clockwork(timers_max)
	{
		expect(!queue.open(hub));
	}

	/* Moves the clock, and resumes what is due. */
	unsigned dispatch(timerhub::delay to)
	{
		unsigned count = 0;

		pass(to);
		expect(!queue.dispatch(64, &count));
		return count;
	}

	std::uint64_t timers() const
	{
		timerhub::hub_stats stats{};

		expect(!hub.stats(stats));
		return stats.live;
	}
};

/* What a coroutine has seen. */
struct seen {
	int wakes = 0;
	int ends = 0; /* how many frames have ended */
	std::error_code last;
};

/* A local variable of a coroutine, which its frame destroys. */
struct local {
	seen &of;

	~local()
	{
		of.ends++;
	}
};

template <class Place> task sleeps(const Place &on, timerhub::delay after, int times, seen &of)
{
	const local kept{ of };

	for (int i = 0; i < times; i++) {
		of.last = co_await sleep_for(on, after);
		of.wakes++;
	}
}

task sleeps_until_stopped(const timerhub::queue &on, timerhub::delay after, std::stop_token stop,
                          seen &of)
{
	const local kept{ of };

	of.last = co_await timerhub::sleep_for(on, after, stop);
	of.wakes++;
}

/* ---- loops ---- */

void a_turn_resumes_when_the_delay_has_passed()
{
	loop_rig rig;
	seen of;
	const task one = sleeps(rig.loop, 10ms, 2, of);

	expect(rig.turn(10ms - 1ns) == 0 && of.wakes == 0 && rig.timeouts() == 1);
	expect(rig.turn(10ms) == 1 && of.wakes == 1 && !of.last);
	expect(rig.turn(20ms - 1ns) == 0 && of.wakes == 1);
	expect(rig.turn(20ms) == 1 && of.wakes == 2 && !of.last);
	expect(one.done() && of.ends == 1 && rig.timeouts() == 0);
}

void without_a_delay_the_next_turn_resumes()
{
	loop_rig rig;
	seen of;
	const task one = sleeps(rig.loop, -1s, 3, of);

	for (int i = 0; i < 3; i++) {
		unsigned count;

		expect(of.wakes == i && !rig.loop.turn(&count) && count == 1);
	}
	expect(one.done() && !of.last);
}

void a_loop_that_cannot_sleep_tells_why()
{
	loop_rig rig(1);
	timerhub::loop closed;
	seen first, second, third, fourth;

	expect(sleeps(rig.loop, std::chrono::hours::max(), 1, first).done());
	expect(first.last == errc::result_out_of_range && rig.timeouts() == 0);
	expect(sleeps(closed, 1ms, 1, second).done() && second.last == errc::invalid_argument);
	const task one = sleeps(rig.loop, 1ms, 1, third);
	expect(sleeps(rig.loop, 1ms, 1, fourth).done());
	expect(fourth.last == errc::resource_unavailable_try_again && !one.done());
	std::thread([&rig] {
		seen of;

		expect(sleeps(rig.loop, 1ms, 1, of).done());
		expect(of.last == errc::operation_not_permitted);
	}).join();
}

void destroying_a_sleeper_of_a_loop_cancels()
{
	loop_rig rig(1);
	seen of;

	for (int i = 1; i <= 10; i++) {
		task one = sleeps(rig.loop, 1ms, 1, of);

		expect(rig.timeouts() == 1);
		if (i % 2 == 0) /* it is due, but no turn has found it yet */
			rig.pass(i * 1s);
		one.destroy();
		expect(rig.timeouts() == 0 && of.ends == i);
	}
	expect(rig.turn(1h) == 0 && of.wakes == 0);
}

task sleeps_and_destroys(const timerhub::loop &on, timerhub::delay after,
                         std::optional<task> &other)
{
	expect(!co_await sleep_for(on, after));
	other.reset();
}

void a_resumed_coroutine_destroys_one_that_is_due_as_well()
{
	loop_rig rig;
	std::optional<task> first, second;
	seen of;

	first.emplace(sleeps_and_destroys(rig.loop, 1ms, second));
	second.emplace(sleeps(rig.loop, 1ms + 1ns, 1, of));
	expect(rig.turn(1s) == 1);
	expect(first->done() && of.wakes == 0 && of.ends == 1 && rig.timeouts() == 0);
}

task sleeps_and_closes(timerhub::hub &hub, timerhub::loop &loop)
{
	expect(!co_await sleep_for(loop, 1ms));
	loop.close();
	hub.close();
}

void a_resumed_coroutine_may_close_loop_and_hub()
{
	loop_rig rig;
	const task one = sleeps_and_closes(rig.hub, rig.loop);

	expect(rig.turn(1ms) == 1 && one.done() && !rig.loop.native());
}

void a_closed_loop_resumes_nobody()
{
	loop_rig rig;
	seen of;
	const task one = sleeps(rig.loop, 1ms, 1, of);

	rig.loop.close();
	rig.hub.close();
	expect(of.wakes == 0 && !one.done());
}

/* ---- queues ---- */

void a_dispatch_resumes_when_the_delay_has_passed()
{
	queue_rig rig;
	seen of;
	const task one = sleeps(rig.queue, 10ms, 2, of);

	expect(rig.dispatch(10ms - 1ns) == 0 && of.wakes == 0 && rig.timers() == 1);
	expect(rig.dispatch(10ms) == 1 && of.wakes == 1 && !of.last);
	expect(rig.dispatch(20ms - 1ns) == 0 && rig.dispatch(20ms) == 1 && of.wakes == 2);
	expect(one.done() && of.ends == 1 && !of.last && rig.timers() == 0);
}

void the_queue_of_a_loop_resumes_in_its_turns()
{
	loop_rig rig;
	seen of;
	const task one = sleeps(rig.loop.queue(), 1ms, 1, of);

	expect(rig.turn(1ms - 1ns) == 0 && rig.turn(1ms) == 1 && one.done() && !of.last);
}

void a_queue_that_cannot_sleep_tells_why()
{
	queue_rig rig(1);
	timerhub::queue closed;
	seen first, second, third, fourth;

	expect(sleeps(rig.queue, std::chrono::hours::max(), 1, first).done());
	expect(first.last == errc::result_out_of_range && rig.timers() == 0);
	expect(sleeps(closed, 1ms, 1, second).done() && second.last == errc::invalid_argument);
	const task one = sleeps(rig.queue, 1ms, 1, third);
	expect(sleeps(rig.queue, 1ms, 1, fourth).done());
	expect(fourth.last == errc::resource_unavailable_try_again && !one.done());
	std::stop_source stop;
	const task two = sleeps_until_stopped(rig.queue, 1ms, stop.get_token(), fourth);
	expect(two.done() && fourth.last == errc::resource_unavailable_try_again);
	stop.request_stop();
}

void destroying_a_sleeper_of_a_queue_cancels()
{
	queue_rig rig(1);
	std::stop_source stop;
	seen of;

	for (int i = 1; i <= 20; i++) {
		task one = i <= 10 ? sleeps(rig.queue, 1ms, 1, of)
		                   : sleeps_until_stopped(rig.queue, 1ms, stop.get_token(), of);

		expect(rig.timers() == 1);
		if (i % 2 == 0) /* its event waits in the queue */
			rig.pass(i * 1s);
		one.destroy();
		expect(rig.timers() == 0 && of.ends == i);
	}
	stop.request_stop();
	expect(rig.dispatch(1h) == 0 && of.wakes == 0);
}

void a_closed_queue_resumes_nobody()
{
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps(rig.queue, 1ms, 1, of);
	const task two = sleeps_until_stopped(rig.queue, 1ms, stop.get_token(), of);

	rig.queue.close();
	stop.request_stop();
	expect(of.wakes == 0 && !one.done() && !two.done());
}

/* ---- stops ---- */

void a_stop_ends_a_sleep_in_the_next_dispatch()
{
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps_until_stopped(rig.queue, 1h, stop.get_token(), of);

	expect(rig.dispatch(1s) == 0);
	stop.request_stop();
	expect(of.wakes == 0); /* not on the thread that requests the stop */
	expect(rig.dispatch(1s) == 1 && one.done() && of.last == errc::operation_canceled);
	expect(rig.timers() == 0);
}

void a_stop_before_the_sleep_lets_nobody_sleep()
{
	queue_rig rig;
	std::stop_source stop;
	seen of;

	stop.request_stop();
	expect(sleeps_until_stopped(rig.queue, 1h, stop.get_token(), of).done());
	expect(of.last == errc::operation_canceled && rig.timers() == 0);
}

void without_a_stop_the_sleep_lasts_its_time()
{
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps_until_stopped(rig.queue, 10ms, stop.get_token(), of);
	const task two = sleeps_until_stopped(rig.queue, 10ms, std::stop_token(), of);

	expect(rig.dispatch(10ms - 1ns) == 0 && rig.dispatch(10ms) == 2 && !of.last);
	expect(one.done() && two.done() && rig.timers() == 0);
	stop.request_stop();
	expect(rig.dispatch(1h) == 0 && of.wakes == 2);
}

void a_stop_beside_the_expiry_resumes_once()
{
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps_until_stopped(rig.queue, 10ms, stop.get_token(), of);

	rig.pass(10ms);
	stop.request_stop();
	expect(rig.dispatch(10ms) == 1 && rig.dispatch(1h) == 0);
	expect(of.wakes == 1 && one.done() && of.last == errc::operation_canceled);
}

/* ---- memory and exceptions ---- */

void a_sleep_allocates_nothing()
{
	loop_rig turns;
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps(turns.loop, 1ms, 5, of);
	const task two = sleeps(rig.queue, 1ms, 5, of);
	const unsigned before = heap_allocated;

	for (int i = 1; i <= 5; i++)
		expect(turns.turn(i * 1ms) == 1 && rig.dispatch(i * 1ms) == 1);
	expect(heap_allocated == before && one.done() && two.done());
	const task three = sleeps_until_stopped(rig.queue, 1ms, stop.get_token(), of);
	expect(heap_allocated == before + 1); /* the frame */
	stop.request_stop();
	expect(rig.dispatch(5ms) == 1 && heap_allocated == before + 1 && three.done());
}

#ifdef __cpp_exceptions
template <class Place> task sleeps_and_throws(const Place &on)
{
	expect(!co_await sleep_for(on, 1ms));
	throw 7;
}

template <class Call> int thrown_by(Call call)
{
	try {
		call();
	} catch (int number) {
		return number;
	}
	return 0;
}

void an_exception_leaves_the_turn_or_the_dispatch()
{
	loop_rig turns;
	queue_rig rig;
	const task one = sleeps_and_throws(turns.loop), two = sleeps_and_throws(rig.queue);
	seen of;
	const task three = sleeps(turns.loop, 2ms, 1, of);

	expect(thrown_by([&turns] { turns.turn(1ms); }) == 7 && one.done());
	expect(thrown_by([&rig] { rig.dispatch(1ms); }) == 7 && two.done());
	expect(turns.turn(2ms) == 1 && three.done());
}
#endif

} // namespace

#define TEST(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const test tests[] = {
	TEST(a_turn_resumes_when_the_delay_has_passed),
	TEST(without_a_delay_the_next_turn_resumes),
	TEST(a_loop_that_cannot_sleep_tells_why),
	TEST(destroying_a_sleeper_of_a_loop_cancels),
	TEST(a_resumed_coroutine_destroys_one_that_is_due_as_well),
	TEST(a_resumed_coroutine_may_close_loop_and_hub),
	TEST(a_closed_loop_resumes_nobody),
	TEST(a_dispatch_resumes_when_the_delay_has_passed),
	TEST(the_queue_of_a_loop_resumes_in_its_turns),
	TEST(a_queue_that_cannot_sleep_tells_why),
	TEST(destroying_a_sleeper_of_a_queue_cancels),
	TEST(a_closed_queue_resumes_nobody),
	TEST(a_stop_ends_a_sleep_in_the_next_dispatch),
	TEST(a_stop_before_the_sleep_lets_nobody_sleep),
	TEST(without_a_stop_the_sleep_lasts_its_time),
	TEST(a_stop_beside_the_expiry_resumes_once),
	TEST(a_sleep_allocates_nothing),
#ifdef __cpp_exceptions
	TEST(an_exception_leaves_the_turn_or_the_dispatch),
#endif
};

int main(int argc, char **argv)
{
	return tests_run(tests, argc, argv);
}
