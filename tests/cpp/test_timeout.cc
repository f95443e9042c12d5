/* SPDX-License-Identifier: MIT */
/*
 * Tests timerhub::loop and timerhub::timeout on manual hubs, in virtual time. A session is an
 * object that has timeouts as members, and the tests destroy it at any point. Other tests cover
 * callables that throw, all errors, and every method of the two classes. The program is built a
 * second time with -fno-exceptions -fno-rtti.
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
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "expect.hpp"
#include "heap.hpp"

using namespace std::chrono_literals;
using std::errc;

namespace
{

/* ---- a loop with a manual hub ---- */

struct rig {
	timerhub::hub hub;
	timerhub::loop loop;

	explicit rig(unsigned timeouts_max = 0)
	{
		timerhub_config config{};
		timerhub_loop_config of_loop{};

		config.flags = TIMERHUB_MANUAL;
		of_loop.timeouts_max = timeouts_max;
		expect(!hub.open(config));
		expect(!loop.open(hub, of_loop));
	}

	/* Moves the clock of the hub, and makes no turn of the loop. */
	void pass(timerhub::delay to)
	{
		expect(!hub.advance(at(to)));
	}

	/* Makes one turn of the loop. Returns the number of callables that the turn has called. */
	unsigned turn()
	{
		unsigned count = 0;

		expect(!loop.turn(&count));
		return count;
	}

	/*
	 * Turns the loop, moves the clock, and turns the loop again. The first turn is necessary,
	 * because a turn schedules the timeouts that were set before it.
	 */
	unsigned go(timerhub::delay to)
	{
		const unsigned before = turn();

		pass(to);
		return before + turn();
	}

	static timerhub::time_point at(timerhub::delay since_start)
	{
		return timerhub::time_point(std::chrono::nanoseconds(since_start.ns()));
	}
};

/* A callable that is larger than 8 bytes and counts its living copies. */
struct counted {
	int *calls;
	int *living;

	counted(int *calls_at, int *living_at) noexcept : calls(calls_at), living(living_at)
	{
		++*living;
	}

	counted(const counted &other) noexcept : counted(other.calls, other.living)
	{
	}

	counted &operator=(const counted &) = delete;

	~counted()
	{
		--*living;
	}

	void operator()() const
	{
		++*calls;
	}
};

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

void timeout_comes_at_its_deadline()
{
	rig rig;
	int calls = 0;
	timerhub::timeout<> timeout;

	expect(!timeout.add(rig.loop, [&calls] { calls++; }));
	expect(!timeout.is_set() && timeout.expires() == timeout.expires().max());
	expect(!timeout.set(30s) && timeout.is_set());
	expect(timeout.expires() == rig.at(30s));
	expect(rig.go(30s - 64ns) == 0);
	expect(rig.go(30s) == 1 && calls == 1 && !timeout.is_set());
	expect(rig.go(1h) == 0);
}

void timeout_is_moved_and_stopped()
{
	rig rig;
	int calls = 0, living = 0;
	bool was_set = false;
	timerhub::timeout<counted> timeout;

	expect(!timeout.add(rig.loop, counted(&calls, &living)));
	expect(living == 1);
	expect(!timeout.set(30s) && rig.go(20s) == 0);
	expect(!timeout.set(30s) && rig.go(49s) == 0);
	expect(!timeout.set_at(rig.at(50s)) && timeout.expires() == rig.at(50s));
	expect(rig.go(50s) == 1 && calls == 1 && living == 1);
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

void callable_sets_its_timeout_again()
{
	rig rig;
	repeated all;

	expect(!all.small.add(rig.loop, [&all] {
		if (++all.calls % 10 != 0)
			expect(!all.small.set(1s));
	}));
	expect(!all.large.add(rig.loop, [&all] {
		if (++all.calls % 10 != 0)
			expect(!all.large.set(1s));
	}));
	expect(!all.small.set(1s));
	for (int i = 1; i <= 20; i++)
		rig.go(i * 1min);
	expect(all.calls == 10 && !all.large.set(1s));
	for (int i = 1; i <= 20; i++)
		rig.go(1h + i * 1min);
	expect(all.calls == 20);
}

void mutable_callable_keeps_its_state()
{
	rig rig;
	int last = 0;
	auto count = [&last, calls = 0]() mutable { last = ++calls; };
	timerhub::timeout<decltype(count)> timeout;

	expect(!timeout.add(rig.loop, count));
	for (int i = 1; i <= 3; i++) {
		expect(!timeout.set(1s));
		expect(rig.go(i * 2s) == 1 && last == i);
	}
}

void callable_that_cannot_be_copied_is_moved_in()
{
	rig rig;
	int sum = 0;
	auto add = [&sum, owned = std::make_unique<int>(5)] { sum += *owned; };
	timerhub::timeout<decltype(add)> timeout;

	expect(!timeout.add(rig.loop, std::move(add)));
	expect(!timeout.set(1s) && rig.go(1s) == 1 && sum == 5);
	expect(!timeout.set(1s) && rig.go(3s) == 1 && sum == 10);
}

int plain_calls;

void plain_function()
{
	plain_calls++;
}

void nothing_allocates()
{
	rig rig;
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
std::unique_ptr<session> doomed(const rig &rig)
{
	auto one = std::make_unique<session>();

	expect(!one->idle.add(rig.loop, [] { expect(false); }));
	expect(!one->request.add(rig.loop, [] { expect(false); }));
	expect(!one->idle.set(1s) && !one->request.set(1s));
	return one;
}

void session_is_destroyed_at_any_time()
{
	rig rig;

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

void session_is_destroyed_in_its_own_callback()
{
	rig rig;
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

/*
 * All timeouts of the test are due in one turn. The callables of `first` and `second` destroy the
 * sessions, whose timeouts are later in the turn.
 */
void session_is_destroyed_in_anothers_callback()
{
	rig rig;
	std::unique_ptr<session> one = doomed(rig), two = doomed(rig);
	timerhub::timeout<> first;
	timerhub::timeout<std::function<void()>> second;

	expect(!first.add(rig.loop, [&one] { one.reset(); }));
	expect(!second.add(rig.loop, [&two] { two.reset(); }));
	expect(!first.set(500ms) && !second.set(600ms));
	expect(rig.go(1h) == 2 && !one && !two);
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

void server_is_destroyed_by_its_timeout()
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

void session_is_destroyed_by_a_timer_of_the_loops_queue()
{
	rig rig;
	std::unique_ptr<session> one = doomed(rig);
	timerhub::timer timer;

	expect(!timer.arm_after(rig.loop.queue(), 1s, [&one] { one.reset(); }));
	expect(rig.go(1h) == 1 && !one);
}

/* A timer of the loop's queue sets a timeout during a turn. The timeout comes in the next turn. */
void timer_of_the_loops_queue_sets_a_timeout()
{
	rig rig;
	int calls = 0;
	timerhub::timeout<> timeout;

	expect(!timeout.add(rig.loop, [&calls] { calls++; }));
	expect(!rig.loop.queue().call_after(1s, [&timeout] { expect(!timeout.set(0s)); }));
	expect(rig.go(1s) == 1 && calls == 0);
	expect(rig.turn() == 1 && calls == 1);
}

void callable_may_own_its_session()
{
	rig rig;
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

/*
 * A callable may capture a shared_ptr to its session, as is usual with asio. The callable lives
 * until remove(), and the shared_ptr keeps the session alive until then.
 */
void capture_of_a_shared_ptr_keeps_its_session()
{
	struct shared : session, std::enable_shared_from_this<shared> {
	};
	rig rig;
	auto kept = std::make_shared<shared>(), freed = std::make_shared<shared>();
	const std::weak_ptr<shared> watch_kept = kept, watch_freed = freed;

	expect(!kept->request.add(rig.loop, [self = kept->shared_from_this()] {}));
	expect(!kept->request.set(1s));
	shared *const at = kept.get();
	kept.reset();
	expect(rig.go(1h) == 1 && !watch_kept.expired());
	expect(!at->request.remove());
	expect(watch_kept.expired());

	/* The header recommends this form, in which the callable captures no shared_ptr. */
	expect(!freed->request.add(rig.loop, [at = freed.get(), &freed] {
		const auto self = at->shared_from_this();

		freed.reset();
		expect(self->data[0] == 7);
	}));
	expect(!freed->request.set(1s));
	expect(rig.go(2h) == 1 && watch_freed.expired());
}

void timeout_is_added_again_in_its_own_callback()
{
	rig rig;
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

void loop_is_closed_in_a_callback()
{
	rig rig, other;
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

void timeouts_outlive_their_loop()
{
	int calls = 0, living = 0;
	timerhub::timeout<counted> large, again;
	timerhub::timeout<> small;

	{
		rig rig;

		expect(!large.add(rig.loop, counted(&calls, &living)) && !large.set(1s));
		expect(!again.add(rig.loop, counted(&calls, &living)) && !again.set(1s));
		expect(!small.add(rig.loop, [] { expect(false); }) && !small.set(1s));
	}
	expect(living == 2 && !large.is_added() && !small.is_set());
	expect(small.set(1s) == errc::invalid_argument);
	expect(small.remove() == errc::invalid_argument);
	rig rig;
	expect(!again.add(rig.loop, counted(&calls, &living)));
	expect(living == 2);
	expect(!again.set(1s) && rig.go(1h) == 1 && calls == 1);
}

#if defined(__cpp_exceptions)
void server_is_destroyed_by_its_timeout_that_throws()
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

void exception_leaves_turn_and_the_next_goes_on()
{
	rig rig;
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

void exception_of_a_copy_adds_nothing()
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
	rig rig;
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

void loop_tells_how_long_to_block()
{
	rig rig;
	timerhub::timeout<> timeout;

	expect(rig.turn() == 0 && rig.loop.timeout() == rig.loop.timeout().max());
	expect(!timeout.add(rig.loop, [] {}) && !timeout.set(8s));
	expect(rig.turn() == 0);
	expect(rig.loop.timeout() > 6s && rig.loop.timeout() <= 8s);
	rig.pass(7s);
	expect(rig.loop.now() == rig.at(0s) && rig.turn() == 0 && rig.loop.now() == rig.at(7s));
	expect(rig.loop.fd() >= 0);
}

void loop_is_moved_while_timeouts_are_set()
{
	rig rig;
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

void loop_without_a_hub_runs()
{
	timerhub::loop loop;
	int calls = 0;
	timerhub::timeout<> timeout;

	expect(!loop.open() && !loop.queue().native());
	expect(!timeout.add(loop, [&calls] { calls++; }) && !timeout.set(2ms));
	while (calls == 0)
		expect(!loop.turn());
	expect(loop.fd() >= 0);
}

void loop_has_the_programs_clock()
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
	expect(!loop.advance(timerhub::time_point(1h)) && loop.now() == timerhub::time_point(1h));
	expect(loop.advance(timerhub::time_point(30min)) == errc::invalid_argument);
	expect(!loop.turn() && calls == 1 && loop.timeout_ms() == -1);
	expect(!loop.stats(stats) && stats.callbacks == 1 && stats.added == 1 && stats.set == 0);
	expect(loop.fd() == -EINVAL);
}

void loop_is_adopted()
{
	timerhub::loop loop;
	timerhub::timeout<> timeout;
	int calls = 0;

	expect(!loop.open());
	std::thread([&] {
		expect(!timeout.add(loop, [&calls] { calls++; }) && !timeout.set(0s));
	}).join();
	expect(loop.turn() == errc::operation_not_permitted);
	expect(!loop.adopt() && !loop.turn() && calls == 1);
}

/* ---- errors ---- */

void errors_are_those_of_the_c_calls()
{
	rig rig(1);
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

void what_does_not_fit_is_refused()
{
	using hours = std::chrono::time_point<timerhub::clock, std::chrono::hours>;
	rig rig; /* the clock is at 0, so every number of ns below UINT64_MAX is a valid delay */
	timerhub::timeout<> timeout;
	const auto refused = errc::result_out_of_range;

	expect(!timeout.add(rig.loop, [] {}));
	expect(timeout.set(std::chrono::hours::max()) == refused);
	expect(timeout.set(std::chrono::duration<double>(1e300)) == refused);
	expect(timeout.set_at(hours(std::chrono::hours::max())) == refused);
	expect(!timeout.is_set());
	expect(!timeout.set(std::chrono::nanoseconds::max()));
	expect(timeout.expires() == timeout.expires().max() && timeout.is_set());
	expect(timerhub_timeout_stop(rig.loop.native(), timeout.native()) == 1);
}

void another_thread_is_refused()
{
	rig rig;
	timerhub::timeout<> timeout, added;

	expect(!added.add(rig.loop, [] {}));
	std::thread([&] {
		expect(timeout.add(rig.loop, [] {}) == errc::operation_not_permitted);
		expect(added.set(1s) == errc::operation_not_permitted);
		expect(added.stop() == errc::operation_not_permitted);
		expect(added.remove() == errc::operation_not_permitted && added.is_added());
		expect(rig.loop.turn() == errc::operation_not_permitted);
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
void destruction_on_another_thread_terminates()
{
	const pid_t child = fork();
	int status = 0;

	expect(child >= 0);
	if (child == 0) {
		rig rig;
		auto one = std::make_unique<session>();

		expect(!one->idle.add(rig.loop, [] {}));
		std::set_terminate(end_as_terminated);
		std::thread([&one] { one.reset(); }).join();
		_exit(0);
	}
	expect(waitpid(child, &status, 0) == child);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == terminated);
}

} // namespace

#define TEST(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const test tests[] = {
	TEST(timeout_comes_at_its_deadline),
	TEST(timeout_is_moved_and_stopped),
	TEST(callable_sets_its_timeout_again),
	TEST(mutable_callable_keeps_its_state),
	TEST(callable_that_cannot_be_copied_is_moved_in),
	TEST(nothing_allocates),
	TEST(session_is_destroyed_at_any_time),
	TEST(session_is_destroyed_in_its_own_callback),
	TEST(session_is_destroyed_in_anothers_callback),
	TEST(server_is_destroyed_by_its_timeout),
	TEST(session_is_destroyed_by_a_timer_of_the_loops_queue),
	TEST(timer_of_the_loops_queue_sets_a_timeout),
	TEST(callable_may_own_its_session),
	TEST(capture_of_a_shared_ptr_keeps_its_session),
	TEST(timeout_is_added_again_in_its_own_callback),
	TEST(loop_is_closed_in_a_callback),
	TEST(timeouts_outlive_their_loop),
#if defined(__cpp_exceptions)
	TEST(server_is_destroyed_by_its_timeout_that_throws),
	TEST(exception_leaves_turn_and_the_next_goes_on),
	TEST(exception_of_a_copy_adds_nothing),
#endif
	TEST(loop_tells_how_long_to_block),
	TEST(loop_is_moved_while_timeouts_are_set),
	TEST(loop_without_a_hub_runs),
	TEST(loop_has_the_programs_clock),
	TEST(loop_is_adopted),
	TEST(errors_are_those_of_the_c_calls),
	TEST(what_does_not_fit_is_refused),
	TEST(another_thread_is_refused),
	TEST(destruction_on_another_thread_terminates),
};

int main(int argc, char **argv)
{
	return tests_run(tests, argc, argv);
}
