/* SPDX-License-Identifier: MIT */
/*
 * Tests timerhub::loop and timerhub::timeout on manual hubs, in virtual time. A session is an
 * object that has timeouts as members, and the tests destroy it at any point. Other tests cover
 * callables that throw, all errors, and every method of the two classes. With all_tests the program
 * is built without exceptions, too.
 */
#include <timerhub.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "heap.hpp"
#include "rig.hpp"

using namespace std::chrono_literals;
using std::errc;

namespace
{

/*
 * The callable of `idle` is stored inside the timeout, and the callable of `request` on the heap.
 */
struct session {
	timerhub::timeout<> idle;
	timerhub::timeout<std::function<void()>> request;
	std::array<int, 4> data{ 7, 7, 7, 7 };

	session() = default;
	session(const session &) = delete;
	session &operator=(const session &) = delete;

	~session()
	{
		for (const int value : data)
			expect(value == 7);
		data.fill(0);
	}
};

static_assert(sizeof(timerhub::timeout<>) == 48);
static_assert(!std::is_copy_constructible_v<timerhub::timeout<>> &&
              !std::is_move_constructible_v<timerhub::timeout<>> &&
              !std::is_copy_assignable_v<timerhub::timeout<>> &&
              !std::is_move_assignable_v<timerhub::timeout<>>);
static_assert(!std::is_copy_constructible_v<timerhub::timeout<void (*)()>> &&
              !std::is_move_constructible_v<timerhub::timeout<void (*)()>>);
static_assert(!std::is_copy_constructible_v<timerhub::loop> &&
              std::is_nothrow_move_constructible_v<timerhub::loop>);

/* ---- set timeouts are called ---- */

TEST(timeout_is_moved_and_stopped)
{
	loop_rig rig;
	int calls = 0, living = 0;
	bool was_set = false;
	timerhub::timeout<counted> timeout;

	expect(!timeout.add(rig.loop, counted(&calls, &living)));
	expect(living == 1 && !timeout.is_set());
	expect(timeout.expires() == timeout.expires().max());
	expect(!timeout.set(30s) && timeout.is_set() && rig.go(20s) == 0);
	expect(!timeout.set(30s) && rig.go(49s) == 0);
	expect(!timeout.set_at(rig.at(50s)) && timeout.expires() == rig.at(50s));
	expect(rig.go(50s - 64ns) == 0);
	expect(rig.go(50s) == 1 && calls == 1 && living == 1 && !timeout.is_set());
	expect(!timeout.set(1s) && !timeout.stop(&was_set) && was_set);
	expect(!timeout.stop(&was_set) && !was_set && !timeout.stop());
	expect(rig.go(1h) == 0 && calls == 1);
	expect(!timeout.set(-1s) && rig.go(2h) == 1); /* a delay below 0 counts as 0 */
}

struct repeated {
	timerhub::timeout<> small;
	timerhub::timeout<std::function<void()>> large;
	int calls = 0;
};

TEST(mutable_callable_that_cannot_be_copied_keeps_its_state)
{
	loop_rig rig;
	int last = 0;
	auto count = [&last, calls = std::make_unique<int>(0), one = 0]() mutable {
		last = ++*calls * 10 + ++one;
	};
	timerhub::timeout<decltype(count)> timeout;

	expect(!timeout.add(rig.loop, std::move(count)));
	for (int i = 1; i <= 3; i++)
		expect(!timeout.set(1s) && rig.go(i * 2s) == 1 && last == 11 * i);
}

TEST(nothing_allocates)
{
	loop_rig rig;
	int calls = 0, living = 0;
	const unsigned before = heap_allocated;
	timerhub::timeout<> by_reference, function, empty, half;
	timerhub::timeout<counted> large;
	timerhub::timeout<void (*)()> pointer;

	expect(!by_reference.add(rig.loop, [&calls] { calls++; }));
	expect(!function.add(rig.loop, plain_function));
	expect(!empty.add(rig.loop, [] { plain_calls += 10; }));
	expect(!half.add(rig.loop, [number = 5] { plain_calls += 20 * number; }));
	expect(!large.add(rig.loop, counted(&calls, &living)));
	expect(!pointer.add(rig.loop, plain_function));
	for (timerhub::timeout<> *timeout : { &by_reference, &function, &empty, &half })
		expect(!timeout->set(1s));
	expect(!large.set(1s) && !pointer.set(1s));
	plain_calls = 0;
	expect(rig.go(1s) == 6 && calls == 2 && plain_calls == 112);
	expect(!large.remove() && living == 0);
	expect(heap_allocated == before);
}

/* ---- a session is destroyed ---- */

/*
 * Returns a session whose two timeouts are set for a second from now. If one of the callables is
 * called, the test fails.
 */
std::unique_ptr<session> doomed(const loop_rig &rig)
{
	auto one = std::make_unique<session>();

	expect(!one->idle.add(rig.loop, [] { expect(false); }));
	expect(!one->request.add(rig.loop, [] { expect(false); }));
	expect(!one->idle.set(1s) && !one->request.set(1s));
	return one;
}

TEST(session_is_destroyed_at_any_time)
{
	loop_rig rig;

	delete new session;  /* the timeouts of this session were never added to a loop */
	doomed(rig).reset(); /* the timeouts of this session were set in this turn */
	auto filed = doomed(rig);
	expect(rig.turn() == 0);
	filed.reset();
	auto due = doomed(rig);
	expect(rig.turn() == 0);
	rig.pass(1h);
	due.reset();
	auto stopped = doomed(rig);
	expect(!stopped->idle.stop() && !stopped->request.stop());
	stopped.reset();
	expect(rig.go(2h) == 0);
}

TEST(session_is_destroyed_in_its_own_callback)
{
	loop_rig rig;
	auto small = std::make_unique<session>();
	auto *large = new session, *moved = new session;

	expect(!small->idle.add(rig.loop, [&small] {
		small.reset();
		expect(!small); /* the callable and its reference to `small` still exist */
	}));
	expect(!small->request.add(rig.loop, [] { expect(false); }));
	expect(!small->idle.set(1s) && !small->request.set(2s));
	expect(!large->request.add(rig.loop, [large, guard = std::vector<int>(100, 7)] {
		delete large;
		for (const int value : guard)
			expect(value == 7);
	}));
	expect(!large->request.set(1s));
	expect(!moved->request.add(rig.loop, [moved] {
		expect(!moved->request.set(1s)); /* the timeout can be set in its own callable */
		delete moved;
	}));
	expect(!moved->request.set(1s));
	expect(rig.go(1h) == 3 && rig.go(2h) == 0);
}

/* The members are destroyed in the opposite order: the hub after its loop. */
struct server {
	timerhub::hub hub;
	timerhub::loop loop;
	timerhub::timeout<> idle;
	timerhub::timeout<std::function<void()>> request;
};

/* Returns a server whose clock is the machine's, with or without a hub. */
std::unique_ptr<server> serving(bool with_hub)
{
	auto one = std::make_unique<server>();

	expect(!with_hub || !one->hub.open());
	expect(with_hub ? !one->loop.open(one->hub) : !one->loop.open());
	return one;
}

TEST(server_is_destroyed_by_its_timeout)
{
	for (int kind = 0; kind < 4; kind++) {
		std::unique_ptr<server> one = serving(kind % 2 > 0);
		const auto end = [&one] { one.reset(); };

		if (kind < 2)
			expect(!one->idle.add(one->loop, end) && !one->idle.set(0s));
		else
			expect(!one->request.add(one->loop, end) && !one->request.set(0s));
		unsigned count = 0;
		expect(!one->loop.turn(&count) && count == 1 && !one);
	}
}

TEST(callable_may_own_its_session)
{
	loop_rig rig;
	auto owned = std::make_shared<session>();
	session *const at = owned.get();
	const std::weak_ptr<session> watch = owned;

	/*
	 * The callable removes its own timeout, and then holds the last reference to the session
	 * that contains the timeout.
	 */
	expect(!at->request.add(rig.loop, [at, owned = std::move(owned)] {
		expect(!at->request.remove());
		/* the only reference to the session is in the callable's copy on the stack */
		expect(owned.use_count() == 1);
	}));
	expect(!at->request.set(1s) && rig.go(1h) == 1 && watch.expired());

	/*
	 * Outside a callback, remove() destroys the callable. The callable owns the session, so the
	 * timeout is destroyed during its own remove().
	 */
	owned = std::make_shared<session>();
	session *const other = owned.get();
	const std::weak_ptr<session> watch_other = owned;
	expect(!other->request.add(rig.loop, [owned = std::move(owned)] {}));
	expect(!watch_other.expired());
	expect(!other->request.remove());
	expect(watch_other.expired());
}

TEST(timeout_is_added_again_in_its_own_callback)
{
	loop_rig rig;
	int first = 0, second = 0, living = 0;
	repeated all;
	timerhub::loop &loop = rig.loop;
	const auto again = [&all, &loop] {
		expect(!all.small.remove());
		expect(!all.small.add(loop, [&all] { all.calls++; }));
		expect(!all.small.set(1s));
	};

	expect(!all.large.add(loop, [&, seen = counted(&first, &living)] {
		seen();
		expect(all.large.add(loop, [] {}) == errc::file_exists);
		expect(!all.large.remove());
		expect(!all.large.add(loop, counted(&second, &living)));
		/* the timeout has one living callable, and the stack has the other callable */
		expect(!all.large.set(1s) && living == 2);
	}));
	expect(!all.small.add(loop, [&again] { again(); }));
	expect(!all.large.set(1s) && !all.small.set(1s));
	expect(rig.go(1h) == 2 && first == 1 && living == 1);
	expect(rig.go(2h) == 2 && second == 1 && all.calls == 1);
}

TEST(loop_is_closed_in_a_callback)
{
	loop_rig rig, other;
	int calls = 0, living = 0;
	timerhub::timeout<std::function<void()>> closes;
	timerhub::timeout<> after;
	auto outlives = std::make_unique<session>();

	expect(!outlives->request.add(rig.loop, counted(&calls, &living)));
	expect(!after.add(rig.loop, [] { expect(false); }));
	expect(!closes.add(rig.loop, [&, seen = counted(&calls, &living)] {
		rig.loop.close();
		expect(!closes.is_added() && closes.set(1s) == errc::invalid_argument);
		expect(!closes.add(other.loop, counted(&calls, &living)));
		expect(!closes.set(1s));
		expect(*seen.living == 3);
	}));
	expect(!closes.set(1s) && !after.set(2s) && !outlives->request.set(2s));
	expect(rig.loop.turn() == std::error_code());
	rig.pass(1h);
	unsigned count = 0;
	expect(!rig.loop.turn(&count) && count == 1);
	expect(rig.loop.turn() == errc::invalid_argument && !rig.loop.native());
	expect(!rig.loop.queue().native());
	expect(living == 2 && !after.is_set() && !outlives->request.is_added());
	expect(outlives->request.remove() == errc::invalid_argument && living == 1);
	outlives.reset();
	expect(other.go(1h) == 1 && calls == 1);
}

TEST(timeouts_outlive_their_loop)
{
	int calls = 0, living = 0;
	timerhub::timeout<counted> large, again;
	timerhub::timeout<> small;

	{
		loop_rig rig;

		expect(!large.add(rig.loop, counted(&calls, &living)) && !large.set(1s));
		expect(!again.add(rig.loop, counted(&calls, &living)) && !again.set(1s));
		expect(!small.add(rig.loop, [] { expect(false); }) && !small.set(1s));
	}
	expect(living == 2 && !large.is_added() && !small.is_set());
	expect(small.set(1s) == errc::invalid_argument);
	expect(small.remove() == errc::invalid_argument);
	loop_rig rig;
	expect(!again.add(rig.loop, counted(&calls, &living)));
	expect(living == 2);
	expect(!again.set(1s) && rig.go(1h) == 1 && calls == 1);
}

#if defined(__cpp_exceptions)
TEST(server_is_destroyed_by_its_timeout_that_throws)
{
	for (int kind = 0; kind < 2; kind++) {
		std::unique_ptr<server> one = serving(kind > 0);
		bool thrown = false;

		expect(!one->request.add(one->loop, [&one, big = std::vector<int>(100, 7)] {
			one.reset();
			throw big[99];
		}));
		expect(!one->request.set(0s));
		try {
			static_cast<void>(one->loop.turn());
		} catch (const int seven) {
			thrown = seven == 7;
		}
		expect(thrown && !one);
	}
}

TEST(exception_leaves_turn_and_the_next_goes_on)
{
	loop_rig rig;
	int calls = 0, living = 0;
	timerhub::timeout<> small, after;
	auto large = std::make_unique<session>();
	timerhub::timeout<std::function<void()>> kept;

	expect(!small.add(rig.loop, [&calls] { throw ++calls; }));
	expect(!large->request.add(rig.loop, [&, seen = counted(&calls, &living)] {
		seen();
		large.reset(); /* destroys the timeout in its own callback */
		throw calls;
	}));
	expect(!kept.add(rig.loop, [&, seen = counted(&calls, &living)] {
		seen();
		throw calls;
	}));
	expect(!rig.loop.queue().call_after(4s, [&calls] { throw ++calls; }));
	expect(!after.add(rig.loop, [&calls] { calls++; }));
	expect(!small.set(1s) && !large->request.set(2s) && !kept.set(3s) && !after.set(5s));
	expect(rig.turn() == 0);
	rig.pass(1min);
	for (int i = 1; i <= 4; i++) {
		try {
			static_cast<void>(rig.loop.turn());
			expect(false);
		} catch (const int thrown) {
			expect(thrown == i);
		}
		expect(rig.loop.timeout() == 0ns); /* the loop still has due timeouts */
	}
	expect(living == 1 && !large);
	expect(rig.turn() == 1 && calls == 5);
	expect(!kept.set(1s)); /* after the exception, the timeout still has its callable */
	try {
		rig.go(1h);
		expect(false);
	} catch (const int thrown) {
		expect(thrown == 6);
	}
}

/*
 * The turn that an exception has ended must set the descriptor for what the callable has set: a
 * program that polls it asks for nothing else before it sleeps.
 */
TEST(exception_leaves_what_its_callable_has_set)
{
	loop_rig rig;
	timerhub::time_point next;
	timerhub::timeout<> timeout, again;
	const auto throws = [&again] {
		expect(!again.set(10s));
		throw 7;
	};
	const auto turn_throws = [&rig] {
		try {
			static_cast<void>(rig.loop.turn());
			return false;
		} catch (const int) {
			return true;
		}
	};

	expect(!again.add(rig.loop, [] {}) && !timeout.add(rig.loop, [&throws] { throws(); }));
	for (const auto by_the_queue : { false, true }) {
		const auto now = rig.hub.now();

		expect(by_the_queue || !timeout.set(1s));
		for (int i = 0; by_the_queue && i < 2; i++)
			expect(!rig.loop.queue().call_after(1s, [&throws] { throws(); }));
		expect(rig.turn() == 0 && !rig.hub.advance(now + 1s) && turn_throws());
		if (by_the_queue) /* the other event comes in the next turn */
			expect(rig.loop.timeout() == 0ns && turn_throws());
		expect(again.expires() == now + 11s &&
		       rig.loop.due() == timerhub::time_point::max());
		expect(!rig.hub.advance(rig.hub.now(), &next) && next <= now + 11s);
		expect(!rig.hub.advance(now + 11s) && rig.turn() == 1);
	}
}

TEST(exception_of_a_copy_adds_nothing)
{
	struct thrower : counted {
		using counted::counted;
		thrower(thrower &&other) noexcept : counted(other)
		{
		}
		thrower(const thrower &other) : counted(other)
		{
			throw 7;
		}
	};
	loop_rig rig;
	int calls = 0, living = 0;
	const thrower callable(&calls, &living);
	const auto timeout = std::make_unique<timerhub::timeout<thrower>>();

	try {
		static_cast<void>(timeout->add(rig.loop, callable));
		expect(false);
	} catch (const int thrown) {
		expect(thrown == 7);
	}
	expect(!timeout->is_added() && living == 1);
	expect(!timeout->add(rig.loop, thrower(&calls, &living)));
	expect(!timeout->set(1s) && rig.go(1h) == 1 && calls == 1);
}
#endif

/* ---- the loop ---- */

TEST(callable_learns_its_deadline)
{
	loop_rig rig;
	timerhub::time_point due{};
	timerhub::timeout<std::function<void()>> timeout;
	timerhub::loop &loop = rig.loop;

	/* a period without drift, however late its calls are */
	expect(!timeout.add(loop, [&] {
		due = loop.due();
		expect(loop.update() == loop.now());
		expect(!timeout.set_at(due + 1s));
	}));
	expect(!timeout.set_at(rig.at(1s)));
	for (int i = 1; i <= 3; i++)
		expect(rig.go(i * 1s + 300ms) == 1 && due == rig.at(i * 1s));
	expect(loop.due() == timerhub::time_point::max());
	rig.pass(9s);
	expect(loop.now() == rig.at(3s + 300ms) && loop.update() == rig.at(9s));
	expect(loop.now() == rig.at(9s));
	const timerhub::loop none;
	expect(none.due() == timerhub::time_point::max());
	expect(none.update() == timerhub::time_point());
}

TEST(loop_is_moved_while_timeouts_are_set)
{
	loop_rig rig;
	int calls = 0;
	timerhub::timeout<> timeout;

	expect(!timeout.add(rig.loop, [&calls] { calls++; }) && !timeout.set(1s));
	timerhub::loop moved(std::move(rig.loop));
	expect(!rig.loop.native() && !rig.loop.queue().native());
	rig.loop = std::move(moved);
	timerhub::loop &self = rig.loop;
	self = std::move(rig.loop);
	expect(!moved.native() && rig.loop.queue().native());
	expect(rig.go(1s) == 1 && calls == 1);
	rig.loop = timerhub::loop();
	expect(!rig.loop.native() && !timeout.is_added());
}

TEST(loop_has_the_programs_clock)
{
	timerhub_loop_config config = {};
	timerhub::loop loop;
	timerhub::clock::duration block{};
	struct timerhub_loop_stats stats = {};
	int calls = 0;

	config.flags = TIMERHUB_LOOP_MANUAL;
	expect(!loop.open(config));
	timerhub::timeout<> timeout;
	expect(!timeout.add(loop, [&calls] { calls++; }) && !timeout.set(1h));
	expect(!loop.settle(&block) && block > 50min && block <= 1h);
	expect(!loop.settle() && loop.timeout_ms() > 50 * 60 * 1000);
	expect(loop.timeout() > 50min && loop.timeout() <= 1h);
	expect(!loop.advance(timerhub::time_point(1h)) && loop.now() == timerhub::time_point(1h));
	expect(loop.advance(timerhub::time_point(30min)) == errc::invalid_argument);
	expect(!loop.turn() && calls == 1 && loop.timeout_ms() == -1);
	expect(loop.timeout() == loop.timeout().max());
	expect(!loop.stats(stats) && stats.callbacks == 1 && stats.added == 1 && stats.set == 0);
	expect(loop.fd() == -EINVAL);
}

/* ---- errors ---- */

TEST(errors_are_those_of_the_c_calls)
{
	loop_rig rig(1);
	timerhub::hub closed_hub;
	timerhub::loop closed;
	timerhub::timeout<> one, two;
	timerhub::timeout<void (*)()> pointer;
	void (*const null)() = nullptr;
	timerhub_loop_config wrong{};
	unsigned count = 7;

	wrong.flags = ~0u;
	expect(closed.open(wrong) == errc::invalid_argument && !closed.native());
	expect(closed.open(closed_hub) == errc::invalid_argument);
	expect(rig.loop.open() == errc::device_or_resource_busy);
	expect(rig.loop.open(rig.hub) == errc::device_or_resource_busy);
	expect(closed.turn(&count) == errc::invalid_argument && count == 7);
	expect(closed.fd() == -EINVAL && closed.timeout() == closed.timeout().max());
	expect(closed.now() == rig.at(0s) && !closed.queue().native());
	expect(one.add(closed, [] {}) == errc::invalid_argument && !one.is_added());
	for (const auto error : { one.set(1s), one.set_at(rig.at(1s)), one.stop(), one.remove() })
		expect(error == errc::invalid_argument);
	expect(one.add(rig.loop, null) == errc::invalid_argument);
	expect(pointer.add(rig.loop, null) == errc::invalid_argument && !pointer.is_added());
	expect(!one.add(rig.loop, [] {}));
	expect(one.add(rig.loop, [] {}) == errc::file_exists);
	expect(two.add(rig.loop, [] {}) == errc::resource_unavailable_try_again);
	expect(!one.remove() && !two.add(rig.loop, [] {}));
}

TEST(what_does_not_fit_is_refused)
{
	using hours = std::chrono::time_point<timerhub::clock, std::chrono::hours>;
	loop_rig rig; /* at 0, where every number of ns below UINT64_MAX is a valid delay */
	timerhub::timeout<> timeout;
	const auto refused = errc::result_out_of_range;

	expect(!timeout.add(rig.loop, [] {}));
	expect(timeout.set(std::chrono::hours::max()) == refused);
	expect(timeout.set(std::chrono::duration<double>(1e300)) == refused);
	expect(timeout.set_at(hours(std::chrono::hours::max())) == refused);
	for (const auto years :
	     { std::chrono::hours(400 * 8766), std::chrono::hours(584 * 8766) }) {
		expect(timeout.set(years) == refused);
		expect(timeout.set_at(hours(years)) == refused);
	}
	expect(!timeout.is_set());
	expect(!timeout.set(std::chrono::nanoseconds::max()));
	expect(timeout.expires() == timeout.expires().max() && timeout.is_set());
	expect(timerhub_timeout_stop(rig.loop.native(), timeout.native()) == 1);
}

TEST(another_thread_is_refused)
{
	loop_rig rig;
	timerhub::timeout<> added;

	expect(!added.add(rig.loop, [] {}));
	std::thread([&] {
		expect(added.set(1s) == errc::operation_not_permitted);
		expect(added.remove() == errc::operation_not_permitted && added.is_added());
		expect(rig.loop.fd() == -EPERM);
	}).join();
}

constexpr int terminated = 7;

void end_as_terminated()
{
	_exit(terminated);
}

/*
 * On another thread the destructor cannot remove the timeout, so it must end the process. If the
 * process went on, the loop would keep the address of freed memory.
 */
TEST(destruction_on_another_thread_terminates)
{
	const pid_t child = fork();
	int status = 0;

	expect(child >= 0);
	if (child == 0) {
		loop_rig rig;
		auto one = std::make_unique<session>();

		expect(!one->idle.add(rig.loop, [] {}));
		std::set_terminate(end_as_terminated);
		std::thread([&one] { one.reset(); }).join();
		_exit(0);
	}
	expect(waitpid(child, &status, 0) == child);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == terminated);
}

/* Objects with static life end in a child too, on a thread that was not the loop's. */
TEST(destruction_in_a_forked_child_is_allowed)
{
	timerhub::loop loop;
	auto one = std::make_unique<session>();
	int status = 0;

	expect(!loop.open());
	std::thread([&] { expect(!one->idle.add(loop, [] {}) && !one->idle.set(1h)); }).join();
	const pid_t child = fork();
	expect(child >= 0);
	if (child == 0) {
		expect(one->request.add(loop, [] {}) == errc::owner_dead);
		one.reset();
		expect(!loop.adopt() && !loop.turn());
		loop.close();
		_exit(0);
	}
	expect(waitpid(child, &status, 0) == child);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect(!loop.adopt());
}

} // namespace
