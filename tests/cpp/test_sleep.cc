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
#include <type_traits>

#include "coroutine.hpp"
#include "heap.hpp"
#include "rig.hpp"

using namespace std::chrono_literals;
using std::errc;

namespace
{

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

/* ---- loops and queues ---- */

template <class Rig> void resumes_when_the_delay_has_passed()
{
	Rig rig;
	seen of;
	const task one = sleeps(rig.place(), 10ms, 2, of);

	expect(rig.go(10ms - 1ns) == 0 && of.wakes == 0 && rig.live() == 1);
	expect(rig.go(10ms) == 1 && of.wakes == 1 && !of.last);
	expect(rig.go(20ms - 1ns) == 0 && of.wakes == 1);
	expect(rig.go(20ms) == 1 && of.wakes == 2 && !of.last);
	expect(one.done() && of.ends == 1 && rig.live() == 0);
}

TEST(a_turn_or_a_dispatch_resumes_when_the_delay_has_passed)
{
	resumes_when_the_delay_has_passed<loop_rig>();
	resumes_when_the_delay_has_passed<queue_rig>();
}

template <class Rig> void tells_why_it_cannot_sleep()
{
	Rig rig(1);
	std::remove_cv_t<std::remove_reference_t<decltype(rig.place())>> closed;
	seen first, second, third, fourth;

	expect(sleeps(rig.place(), std::chrono::hours::max(), 1, first).done());
	expect(first.last == errc::result_out_of_range && rig.live() == 0);
	expect(sleeps(closed, 1ms, 1, second).done() && second.last == errc::invalid_argument);
	const task one = sleeps(rig.place(), 1ms, 1, third);
	expect(sleeps(rig.place(), 1ms, 1, fourth).done());
	expect(fourth.last == errc::resource_unavailable_try_again && !one.done());
}

TEST(what_cannot_sleep_tells_why)
{
	queue_rig full(1);
	loop_rig loops;
	std::stop_source stop;
	seen first, second, third;

	tells_why_it_cannot_sleep<loop_rig>();
	tells_why_it_cannot_sleep<queue_rig>();
	const task one = sleeps(full.queue, 1ms, 1, first);
	const task two = sleeps_until_stopped(full.queue, 1ms, stop.get_token(), second);
	expect(two.done() && second.last == errc::resource_unavailable_try_again);
	stop.request_stop();
	expect(loops.turn() == 0);
	std::thread([&] { expect(sleeps(loops.loop, 1ms, 1, third).done()); }).join();
	expect(third.last == errc::operation_not_permitted);
}

template <class Rig, class Begin> void destroying_cancels(Begin begin)
{
	Rig rig(1);
	seen of;

	for (int i = 1; i <= 10; i++) {
		task one = begin(rig, of);

		expect(rig.live() == 1);
		if (i % 2 == 0) /* it is due, but nobody has resumed it yet */
			rig.pass(i * 1s);
		one.destroy();
		expect(rig.live() == 0 && of.ends == i);
	}
	expect(rig.go(1h) == 0 && of.wakes == 0);
}

TEST(destroying_a_sleeper_cancels)
{
	std::stop_source stop;

	destroying_cancels<loop_rig>(
		[](loop_rig &rig, seen &of) { return sleeps(rig.loop, 1ms, 1, of); });
	destroying_cancels<queue_rig>(
		[](queue_rig &rig, seen &of) { return sleeps(rig.queue, 1ms, 1, of); });
	destroying_cancels<queue_rig>([&stop](queue_rig &rig, seen &of) {
		return sleeps_until_stopped(rig.queue, 1ms, stop.get_token(), of);
	});
	stop.request_stop();
}

task sleeps_and_destroys(const timerhub::loop &on, timerhub::delay after,
                         std::optional<task> &other)
{
	expect(!co_await sleep_for(on, after));
	other.reset();
}

TEST(a_resumed_coroutine_destroys_one_that_is_due_as_well)
{
	loop_rig rig;
	std::optional<task> first, second;
	seen of;

	first.emplace(sleeps_and_destroys(rig.loop, 1ms, second));
	second.emplace(sleeps(rig.loop, 1ms + 1ns, 1, of));
	expect(rig.go(1s) == 1);
	expect(first->done() && of.wakes == 0 && of.ends == 1 && rig.live() == 0);
}

task sleeps_and_closes(timerhub::hub &hub, timerhub::loop &loop)
{
	expect(!co_await sleep_for(loop, 1ms));
	loop.close();
	hub.close();
}

TEST(a_resumed_coroutine_may_close_loop_and_hub)
{
	loop_rig rig;
	const task one = sleeps_and_closes(rig.hub, rig.loop);

	expect(rig.go(1ms) == 1 && one.done() && !rig.loop.native());
}

TEST(what_is_closed_resumes_nobody)
{
	loop_rig turns;
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps(rig.queue, 1ms, 1, of), three = sleeps(turns.loop, 1ms, 1, of);
	const task two = sleeps_until_stopped(rig.queue, 1ms, stop.get_token(), of);

	rig.queue.close();
	stop.request_stop();
	turns.loop.close();
	expect(of.wakes == 0 && !one.done() && !two.done() && !three.done());
}

/* ---- stops ---- */

TEST(a_stop_ends_a_sleep_in_the_next_dispatch)
{
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps_until_stopped(rig.queue, 1h, stop.get_token(), of);

	expect(rig.go(1s) == 0);
	stop.request_stop();
	expect(of.wakes == 0); /* not on the thread that requests the stop */
	expect(rig.go(1s) == 1 && one.done() && of.last == errc::operation_canceled);
	expect(rig.live() == 0);
	/* nobody sleeps after a stop */
	expect(sleeps_until_stopped(rig.queue, 1h, stop.get_token(), of).done() && of.ends == 2);
	expect(of.last == errc::operation_canceled && rig.live() == 0);
}

TEST(without_a_stop_the_sleep_lasts_its_time)
{
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps_until_stopped(rig.queue, 10ms, stop.get_token(), of);
	const task two = sleeps_until_stopped(rig.queue, 10ms, std::stop_token(), of);

	expect(rig.go(10ms - 1ns) == 0 && rig.go(10ms) == 2 && !of.last);
	expect(one.done() && two.done() && rig.live() == 0);
	stop.request_stop();
	expect(rig.go(1h) == 0 && of.wakes == 2);
}

TEST(a_stop_beside_the_expiry_resumes_once)
{
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps_until_stopped(rig.queue, 10ms, stop.get_token(), of);

	rig.pass(10ms);
	stop.request_stop();
	expect(rig.go(10ms) == 1 && rig.go(1h) == 0);
	expect(of.wakes == 1 && one.done() && of.last == errc::operation_canceled);
}

/* ---- memory and exceptions ---- */

TEST(a_sleep_allocates_nothing)
{
	loop_rig turns;
	queue_rig rig;
	std::stop_source stop;
	seen of;
	const task one = sleeps(turns.loop, 1ms, 5, of);
	const task two = sleeps(rig.queue, 1ms, 5, of);
	const unsigned before = heap_allocated;

	for (int i = 1; i <= 5; i++)
		expect(turns.go(i * 1ms) == 1 && rig.go(i * 1ms) == 1);
	expect(heap_allocated == before && one.done() && two.done());
	const task three = sleeps_until_stopped(rig.queue, 1ms, stop.get_token(), of);
	expect(heap_allocated == before + 1); /* the frame */
	stop.request_stop();
	expect(rig.go(5ms) == 1 && heap_allocated == before + 1 && three.done());
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

TEST(an_exception_leaves_the_turn_or_the_dispatch)
{
	loop_rig turns;
	queue_rig rig;
	const task one = sleeps_and_throws(turns.loop), two = sleeps_and_throws(rig.queue);
	seen of;
	const task three = sleeps(turns.loop, 2ms, 1, of);

	expect(thrown_by([&turns] { turns.go(1ms); }) == 7 && one.done());
	expect(thrown_by([&rig] { rig.go(1ms); }) == 7 && two.done());
	expect(turns.go(2ms) == 1 && three.done());
}
#endif

} // namespace
