/* SPDX-License-Identifier: MIT */
/*
 * Tests timerhub.hpp on manual hubs, in virtual time and with one thread. The tests move a timer,
 * destroy it, arm it again, or let its callback throw. Other tests cover times, errors, and every
 * method of the header. With all_tests it is built without exceptions, too.
 */
#include <timerhub.hpp>

#include <fcntl.h>

#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <ratio>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "heap.hpp"
#include "rig.hpp"

using namespace std::chrono_literals;
using std::errc;

namespace
{

/* ---- due timers are called ---- */

TEST(timer_comes_again_after_each_move)
{
	queue_rig rig;
	int calls = 0;
	bool idled = true;
	std::chrono::nanoseconds left{};
	timerhub::timer timer;

	expect(!timer.arm_never(rig.queue, [&calls] { calls++; }));
	const timerhub_timer handle = timer.handle();
	expect(!timer.remaining(left) && left == left.max() && rig.go(24h) == 0);
	expect(!timer.expires_after(20s, &idled) && !idled);
	expect(!timer.remaining(left) && left >= 20s && left < 20s + 64ns);
	for (int i = 1; i <= 3; i++) {
		expect(!timer.expires_at(rig.at(24h + i * 1min), &idled) && idled == (i > 1));
		expect(rig.go(24h + i * 1min - 1us) == 0 && rig.go(24h + i * 1min) == 1);
		expect(!timer.remaining(left) && left == left.max() && calls == i);
	}
	expect(timer.handle() == handle && rig.live() == 1);
	expect(timerhub_cancel(rig.hub.native(), handle) == 0 && rig.live() == 0);
}

TEST(periodic_timer_counts_and_keeps_its_phase)
{
	queue_rig rig;
	timerhub::expiry last{};
	timerhub::timer timer;

	expect(!timer.arm_every(rig.queue, 10ms,
	                        [&last](timerhub::expiry expiry) { last = expiry; }));
	expect(rig.go(10ms) == 1 && last.count == 1 && last.due == rig.at(10ms));
	expect(rig.go(45ms) == 1 && last.count == 3 && last.due == rig.at(20ms));
	expect(!timer.expires_at(rig.at(64ms)));
	expect(rig.go(63ms) == 0);
	expect(rig.go(84ms) == 1 && last.count == 3 && last.due == rig.at(64ms));
	expect(!timer.expires_never());
	expect(rig.go(1h) == 0);
}

TEST(slack_is_passed_on)
{
	queue_rig rig;
	timerhub::timer early, late;
	timerhub::time_point next;

	expect(!early.arm_after(
		rig.queue, 1s, [] {}, 1s));
	expect(!rig.hub.advance(rig.at(1us), &next));
	expect(next > rig.at(1s) && next <= rig.at(2s));
	early.cancel();
	expect(!early.arm_after(rig.queue, 1s, [] {}));
	expect(!rig.hub.advance(rig.at(2us), &next));
	expect(next <= rig.at(1s + 2us));
	expect(early.expires_never() == std::error_code());
	expect(!rig.hub.advance(rig.at(3s), &next));
	expect(next == next.max());
}

/* ---- destroyed and moved ---- */

template <class Callable> void destroyed_timer_is_silent(queue_rig &rig, Callable callable)
{
	{
		timerhub::timer timer;

		expect(!timer.arm_after(rig.queue, 1ms, callable));
	}
	expect(rig.live() == 0);
	{
		timerhub::timer timer;

		expect(!timer.arm_after(rig.queue, 1ms, callable));
		/* the timer expires and is not delivered */
		expect(!rig.hub.advance(rig.hub.now() + 1s));
	}
	expect(rig.go(rig.hub.now().time_since_epoch() + 1s) == 0 && rig.live() == 0);
}

TEST(destroyed_timer_never_calls)
{
	queue_rig rig;
	int calls = 0, living = 0;

	destroyed_timer_is_silent(rig, [&calls] { calls++; });
	destroyed_timer_is_silent(rig, counted(&calls, &living));
	expect(calls == 0 && living == 0);
}

TEST(arming_cancels_what_was_armed)
{
	queue_rig rig;
	int first = 0, second = 0, living = 0;
	timerhub::timer timer;

	expect(!timer.arm_after(rig.queue, 1s, counted(&first, &living)));
	expect(!timer.arm_after(rig.queue, 2s, counted(&second, &living)));
	expect(living == 1 && rig.live() == 1);
	expect(rig.go(3s) == 1 && first == 0 && second == 1);
	expect(!timer.cancel() && living == 0 && rig.live() == 0 && timer.handle() == 0);
	expect(timer.cancel() == errc::no_such_file_or_directory);
	/* Even if arm_after() fails, it must cancel the earlier timer of the object. */
	expect(!timer.arm_after(rig.queue, 1s, counted(&first, &living)));
	expect(timer.arm_after(rig.queue, std::chrono::hours::max(), [] {}) ==
	       errc::result_out_of_range);
	expect(living == 0 && rig.live() == 0 && timer.handle() == 0);
}

TEST(callable_may_come_from_what_arming_destroys)
{
	queue_rig rig;
	int calls = 0;
	timerhub::timer timer;
	const std::function<void()> *inside = nullptr;

	struct first {
		std::function<void()> next;
		const std::function<void()> **inside;

		void operator()() const
		{
			*inside = &next;
		}
	};
	expect(!timer.arm_after(rig.queue, 1s, first{ [&calls] { calls++; }, &inside }));
	expect(rig.go(1s) == 1 && inside);
	expect(!timer.arm_after(rig.queue, 1s, *inside));
	expect(rig.go(3s) == 1 && calls == 1);
}

/* A callable whose last copy runs a function as it is destroyed. */
class last_words
{
      public:
	explicit last_words(std::function<void()> say) : say_(std::move(say))
	{
	}

	last_words(last_words &&other) noexcept : say_(std::exchange(other.say_, nullptr))
	{
	}

	last_words &operator=(const last_words &) = delete;

	~last_words()
	{
		if (say_)
			say_();
	}

	void operator()() const
	{
	}

      private:
	std::function<void()> say_;
};

TEST(destroyed_callable_may_arm_its_timer)
{
	queue_rig rig;
	int inner = 0, outer = 0;
	timerhub::timer timer;
	const auto arm_again = [&] {
		expect(!timer.arm_after(rig.queue, 2s,
		                        [&rig, &inner] { inner += rig.live() == 1; }));
	};
	const auto ended_by = [&](const std::function<void()> &end) {
		expect(!timer.arm_after(rig.queue, 1s, last_words(arm_again)));
		end();
		/* the timer that was armed last is the one that counts */
		expect(timer.handle() != 0 && rig.live() == 1);
		expect(rig.go(rig.hub.now().time_since_epoch() + 5s) == 1 && outer == 0);
	};

	ended_by([&] { expect(!timer.arm_after(rig.queue, 3s, [&outer] { outer++; })); });
	ended_by([&] {
		expect(!timer.arm_every(rig.queue, 3s,
		                        [&outer, &rig] { outer += rig.live() > 0; }));
	});
	ended_by([&] { expect(!timer.cancel()); });
	ended_by([&] { expect(timer.arm_every(rig.queue, 0s, [] {}) == errc::invalid_argument); });
	ended_by([&] {
		expect(timer.arm_after(rig.queue, std::chrono::hours::max(), [] {}) ==
		       errc::result_out_of_range);
	});
	ended_by([&] { timer = timerhub::timer(); });
	ended_by([&] {
		timerhub::timer other;

		expect(!other.arm_after(rig.queue, 3s, [&outer] { outer++; }));
		timer = std::move(other);
	});
	expect(inner == 7);
	/* the callable of an arm call that fails is destroyed too */
	expect(timer.arm_after(rig.queue, std::chrono::hours::max(), last_words(arm_again)) ==
	       errc::result_out_of_range);
	expect(timer.handle() != 0 && rig.live() == 1);
	expect(!timer.cancel());
	expect(rig.go(rig.hub.now().time_since_epoch() + 5s) == 0 && rig.live() == 0);
}

TEST(destroyed_callable_may_destroy_its_timer)
{
	queue_rig rig;
	const auto ended_by = [&](const std::function<void(timerhub::timer &)> &end) {
		auto timer = std::make_unique<timerhub::timer>();
		timerhub::timer &same = *timer;

		expect(!same.arm_after(rig.queue, 1s, last_words([&timer] { timer.reset(); })));
		end(same);
		expect(!timer && rig.live() == 0);
		expect(rig.go(rig.hub.now().time_since_epoch() + 5s) == 0);
	};
	const auto never = [] { expect(false); };

	ended_by([&](auto &timer) { expect(!timer.arm_after(rig.queue, 2s, never)); });
	ended_by([&](auto &timer) { expect(!timer.arm_after(rig.queue, 2s, last_words([] {}))); });
	ended_by([&](auto &timer) { expect(timer.arm_every(rig.queue, 0s, never).value()); });
	ended_by([&](auto &timer) {
		expect(timer.arm_after(rig.queue, std::chrono::hours::max(), never).value());
	});
	ended_by([](auto &timer) { expect(!timer.cancel()); });
	ended_by([](auto &timer) { timer = timerhub::timer(); });
}

template <class Callable> void moved_timer_still_calls(Callable callable, const int &calls)
{
	queue_rig rig;
	const int before = calls;
	timerhub::timer first;

	expect(!first.arm_after(rig.queue, 1s, callable));
	timerhub::timer second(std::move(first));
	expect(first.handle() == 0 && second.handle() != 0);
	expect(first.expires_after(1s) == errc::no_such_file_or_directory);
	timerhub::timer third;
	expect(!third.arm_after(rig.queue, 1s, [] { expect(false); }));
	third = std::move(second);
	expect(rig.live() == 1);
	std::vector<timerhub::timer> many;
	many.push_back(std::move(third));
	for (int i = 0; i < 20; i++)
		/*
		 * the vector reallocates its memory several times, and each time moves all timers
		 */
		many.emplace_back();
	expect(rig.go(2s) == 1 && calls == before + 1);
	expect(!many.front().expires_after(1s));
	many.front().swap(many.back());
	expect(rig.go(4s) == 1 && calls == before + 2);
	expect(!many.back().expires_after(1s));
	timerhub::timer &self = many.back();
	self = std::move(many.back());
	expect(rig.go(6s) == 1 && calls == before + 3);
}

TEST(timer_is_moved_while_armed)
{
	int calls = 0, living = 0;

	moved_timer_still_calls([&calls] { calls++; }, calls);
	moved_timer_still_calls(counted(&calls, &living), calls);
	expect(living == 0);
}

TEST(hub_and_queue_are_moved_while_timers_are_armed)
{
	queue_rig rig;
	int calls = 0;
	timerhub::timer timer;

	expect(!timer.arm_after(rig.queue, 1s, [&calls] { calls++; }));
	timerhub::hub hub(std::move(rig.hub));
	timerhub::queue queue(std::move(rig.queue));
	expect(!rig.hub.native() && !rig.queue.native());
	rig.hub = std::move(hub);
	rig.queue = std::move(queue);
	timerhub::hub &hub_self = rig.hub;
	timerhub::queue &queue_self = rig.queue;
	hub_self = std::move(rig.hub);
	queue_self = std::move(rig.queue);
	expect(rig.go(2s) == 1 && calls == 1);
	expect(!timer.expires_after(1s) && rig.go(4s) == 1);
	/* A move assignment closes the resources that its left side had before. */
	const int queue_fd = rig.queue.fd(), hub_fd = rig.hub.wake_fd();
	timer.cancel();
	rig.queue = timerhub::queue();
	expect(!rig.queue.native() && fcntl(queue_fd, F_GETFD) < 0);
	rig.hub = timerhub::hub();
	expect(!rig.hub.native() && fcntl(hub_fd, F_GETFD) < 0);
}

TEST(timer_outlives_its_queue)
{
	queue_rig rig;
	int calls = 0, living = 0;
	timerhub::timer timer;
	std::chrono::nanoseconds left{};

	expect(!timer.arm_after(rig.queue, 1s, counted(&calls, &living)));
	rig.queue.close();
	rig.queue.close();
	expect(timer.expires_after(1s) == errc::no_such_file_or_directory);
	expect(timer.remaining(left) == errc::no_such_file_or_directory);
	expect(living == 1);
	expect(timer.cancel() == errc::no_such_file_or_directory);
	expect(living == 0 && calls == 0);
}

/* ---- in callbacks ---- */

struct session {
	std::vector<int> log{ 1, 2, 3 };
	timerhub::timer timer;
};

TEST(timer_is_destroyed_in_its_own_callback)
{
	queue_rig rig;
	int calls = 0, living = 0;
	auto *small = new session;
	auto owned = std::make_unique<session>();
	session *const large = owned.get();

	expect(!small->timer.arm_after(rig.queue, 1s, [small] { delete small; }));
	expect(rig.go(1s) == 1 && rig.live() == 0);

	/*
	 * The callable owns the session, and the session owns the timer of the callable. During the
	 * call, the session and the callable must not be freed.
	 */
	auto callable = [seen = counted(&calls, &living), owned = std::move(owned),
	                 guard = std::vector<int>(100, 7)]() mutable {
		seen();
		owned.reset();
		for (const int value : guard)
			expect(value == 7);
		expect(*seen.living == 2); /* the copy that is called, and the copy on the heap */
	};
	static_assert(!timerhub::is_small_v<decltype(callable)>);
	expect(!large->timer.arm_every(rig.queue, 1s, std::move(callable)));
	expect(living == 2 && rig.live() == 1);
	expect(rig.go(5s) == 1 && calls == 1 && living == 1 && rig.live() == 0);
}

/*
 * The callable of a timer is called again inside its own call, and destroys the timer. The callable
 * itself must be destroyed only when the outer call returns.
 */
TEST(timer_is_destroyed_in_a_nested_callback)
{
	queue_rig rig;
	int calls = 0, living = 0;
	auto *one = new session;

	expect(!one->timer.arm_after(rig.queue, 1s, [&, one, seen = counted(&calls, &living)] {
		seen();
		if (calls == 2) {
			delete one;
			expect(living == 1);
			return;
		}
		expect(!one->timer.expires_after(1s));
		/* calls the callable a second time, inside its first call */
		expect(rig.go(3s) == 1);
		expect(calls == 2 && living == 1);
	}));
	expect(rig.go(1s) == 1 && calls == 2 && living == 0 && rig.live() == 0);
}

TEST(timer_is_armed_moved_and_cancelled_in_its_own_callback)
{
	queue_rig rig;
	int first = 0, second = 0, living = 0;
	timerhub::timer timer, other;

	expect(!timer.arm_after(rig.queue, 1s, [&, seen = counted(&first, &living)] {
		seen();
		expect(!timer.arm_after(rig.queue, 1s, counted(&second, &living)));
		expect(living == 2); /* the new callable, and the old callable, which still runs */
	}));
	expect(rig.go(1s) == 1 && living == 1);
	expect(rig.go(2s + 1us) == 1 && first == 1 && second == 1);

	expect(!timer.arm_after(rig.queue, 1s, [&, seen = counted(&first, &living)] {
		seen();
		other = std::move(timer);
	}));
	expect(rig.go(4s) == 1 && first == 2 && timer.handle() == 0);
	expect(!other.expires_never());

	expect(!timer.arm_every(rig.queue, 1s, [&, seen = counted(&first, &living)] {
		seen();
		expect(!timer.cancel());
		expect(living > 0);
	}));
	expect(rig.go(10s) == 1 && first == 3 && rig.go(20s) == 0);
	other.cancel();
	expect(living == 0 && rig.live() == 0);
}

#if defined(__cpp_exceptions)
TEST(exception_leaves_dispatch_and_everything_goes_on)
{
	queue_rig rig;
	int calls = 0, living = 0;
	timerhub::timer small, large, after;

	expect(!small.arm_after(rig.queue, 1s, [&calls] { throw ++calls; }));
	expect(!large.arm_after(rig.queue, 2s, [&, seen = counted(&calls, &living)] {
		seen();
		large = timerhub::timer(); /* destroys the timer in its own callback */
		throw calls;
	}));
	expect(!after.arm_after(rig.queue, 3s, [&calls] { calls++; }));
	expect(!rig.hub.advance(rig.at(1min)));
	for (int i = 1; i <= 2; i++) {
		try {
			static_cast<void>(rig.queue.dispatch());
			expect(false);
		} catch (const int thrown) {
			expect(thrown == i);
		}
	}
	expect(living == 0 && large.handle() == 0);
	expect(rig.go(1min) == 1 && calls == 3);
	/* the timer is idle after an exception, as after any callback */
	expect(!small.expires_after(1s));
	expect(!small.cancel());
}

TEST(exception_of_a_copy_changes_nothing)
{
	queue_rig rig;
	int calls = 0, living = 0;
	timerhub::timer timer;

	struct thrower : counted {
		using counted::counted;
		thrower(const thrower &other) : counted(other)
		{
			throw 7;
		}
	};
	const thrower callable(&calls, &living);
	expect(!timer.arm_after(rig.queue, 1s, [&calls] { calls += 10; }));
	try {
		static_cast<void>(timer.arm_after(rig.queue, 1s, callable));
		expect(false);
	} catch (const int thrown) {
		expect(thrown == 7);
	}
	expect(rig.live() == 1 && living == 1);
	expect(rig.go(2s) == 1 && calls == 10);
}
#endif

/* ---- callables and memory ---- */

TEST(small_callables_allocate_nothing)
{
	queue_rig rig;
	int calls = 0;
	std::array<timerhub::timer, 4> timers;
	const unsigned before = heap_allocated;
	int *const at = &calls;
	const auto by_pointer = [at](const timerhub::expiry &) { ++*at; };

	static_assert(timerhub::is_small_v<void (*)()>);
	static_assert(timerhub::is_small_v<decltype(by_pointer)>);
	static_assert(!timerhub::is_small_v<std::function<void()>>);
	static_assert(!timerhub::is_small_v<counted>);
	expect(!timers[0].arm_after(rig.queue, 1s, by_pointer));
	expect(!timers[1].arm_after(rig.queue, 1s, plain_function));
	expect(!timers[2].arm_after(rig.queue, 1s, [] { plain_calls += 10; }));
	expect(!timers[3].arm_after(rig.queue, 1s, [half = 5] { plain_calls += 20 * half; }));
	expect(!rig.queue.call_after(1s, by_pointer));
	timerhub_timer cancelled = 0;
	expect(!rig.queue.call_after(1s, by_pointer, &cancelled));
	expect(timerhub_cancel(rig.hub.native(), cancelled) == 0);
	timers[0].swap(timers[1]);
	expect(rig.go(1s) == 5);
	timers = {};
	expect(rig.live() == 0); /* a detached call comes once */
	expect(calls == 2 && plain_calls == 111 && heap_allocated == before);
	expect(!timers[0].arm_after(rig.queue, 1s, [at, one = 1] { *at += one; }));
	expect(rig.go(2s) == 1 && calls == 3 && heap_allocated == before + 1);
}

/* It is stored on the heap even if it is small, since each call of a small one uses a copy. */
TEST(mutable_callable_keeps_its_state)
{
	queue_rig rig;
	static int last;
	timerhub::timer timer;
	auto callable = [count = 0]() mutable { last = ++count; };

	static_assert(!timerhub::is_small_v<decltype(callable)>);
	expect(!timer.arm_every(rig.queue, 1s, callable));
	expect(rig.go(1s) == 1 && rig.go(2s) == 1 && last == 2);
}

/* Trivially copyable as a type, and yet it has no copy constructor. */
struct adds_once {
	int *sum;

	explicit adds_once(int *sum_at) : sum(sum_at)
	{
	}

	adds_once(adds_once &&) = default;

	void operator()() const
	{
		*sum += 5;
	}
};

TEST(callable_that_cannot_be_copied_is_moved_in)
{
	queue_rig rig;
	int sum = 0;

	static_assert(timerhub::is_small_v<adds_once>);
	{
		timerhub::timer small;

		expect(!small.arm_after(rig.queue, 1s, adds_once(&sum)));
		expect(!rig.queue.call_after(1s, adds_once(&sum)));
		expect(rig.go(1s) == 2 && sum == 10);
		sum = 0;
	}
	timerhub::timer timer;
	auto owned = std::make_unique<int>(5);

	expect(!timer.arm_after(rig.queue, 1s,
	                        [&sum, owned = std::move(owned)] { sum += *owned; }));
	expect(rig.go(2s) == 1 && sum == 5);
}

/* ---- times ---- */

/* duration of a frame of NTSC video */
using rarely = std::chrono::duration<int, std::ratio<1001, 30000>>;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
using real = std::chrono::duration<double>;

constexpr bool out_of_range(timerhub::delay delay)
{
	return delay.ns() > std::uint64_t{ 1 } << 63;
}

static_assert(timerhub::delay().ns() == 0 && timerhub::delay(-5s).ns() == 0);
static_assert(timerhub::delay(3ns).ns() == 3 && timerhub::delay(2h).ns() == 7200000000000);
static_assert(timerhub::delay(picoseconds(1)).ns() == 1);
static_assert(timerhub::delay(picoseconds(1000)).ns() == 1);
static_assert(timerhub::delay(picoseconds(1001)).ns() == 2);
static_assert(timerhub::delay(rarely(3)).ns() == 100100000);
static_assert(timerhub::delay(rarely(1)).ns() == 33366667); /* rounded up from 33,366,666.67 */
static_assert(timerhub::delay(real(0.1)).ns() == 100000000);
static_assert(timerhub::delay(real(1.5e-9)).ns() == 2);
static_assert(timerhub::delay(real(-1)).ns() == 0);
static_assert(timerhub::delay(std::chrono::duration<float>(0.5f)).ns() == 500000000);
static_assert(timerhub::delay(std::chrono::duration<unsigned char>(200)).ns() == 200000000000);
static_assert(timerhub::delay(std::chrono::nanoseconds::max()).ns() == INT64_MAX);
static_assert(timerhub::delay(std::chrono::duration<std::uint64_t, std::nano>(UINT64_MAX)).ns() ==
              UINT64_MAX - 1);
static_assert(out_of_range(std::chrono::seconds::max()) && out_of_range(10000000h));
static_assert(out_of_range(std::chrono::hours::max()) && !out_of_range(2000000h));
static_assert(out_of_range(real(1e300)) && !out_of_range(real(4e9)));
static_assert(out_of_range(real(std::numeric_limits<double>::infinity())));
static_assert(out_of_range(real(std::numeric_limits<double>::quiet_NaN())));
static_assert(timerhub::deadline(timerhub::time_point(-1ns)).ns() == 0);

TEST(what_does_not_fit_is_refused)
{
	queue_rig rig;
	timerhub::timer timer;
	const auto refused = errc::result_out_of_range;
	const auto nothing = [] {};

	expect(!rig.hub.advance(rig.at(1s)));
	for (const timerhub::delay far :
	     { timerhub::delay(std::chrono::nanoseconds::max()),
	       timerhub::delay(std::chrono::seconds::max()),
	       timerhub::delay(std::chrono::duration<std::uint64_t, std::nano>(UINT64_MAX)),
	       timerhub::delay(real(std::numeric_limits<double>::quiet_NaN())) }) {
		expect(timer.arm_after(rig.queue, far, nothing) == refused);
		expect(timer.arm_every(rig.queue, far, nothing) == refused);
		expect(rig.queue.call_after(far, nothing) == refused);
		expect(!timer.arm_after(rig.queue, 1s, nothing));
		expect(timer.expires_after(far) == refused);
	}
	/* A slack of three days or more is as good as three days, but it must be a slack. */
	for (const timerhub::delay slack :
	     { timerhub::delay(std::chrono::hours::max()),
	       timerhub::delay(std::chrono::duration<std::uint64_t, std::nano>(UINT64_MAX)),
	       timerhub::delay(real(std::numeric_limits<double>::quiet_NaN())),
	       timerhub::delay(real(std::numeric_limits<double>::infinity())) }) {
		expect(timer.arm_after(rig.queue, 1s, nothing, slack) == refused);
		expect(timer.arm_at(rig.queue, rig.at(9s), nothing, slack) == refused);
		expect(timer.arm_every(rig.queue, 1s, nothing, slack) == refused);
		expect(timer.arm_never(rig.queue, nothing, slack) == refused);
		const auto large = [&rig, &timer, slack] {
			(void)&rig, (void)&timer, (void)&slack;
		};
		expect(timer.arm_after(rig.queue, 1s, large, slack) == refused);
		expect(timer.handle() == 0 && rig.live() == 0);
	}
	expect(!timer.arm_after(rig.queue, 1s, nothing, std::chrono::nanoseconds::max()));
	using hours = std::chrono::time_point<timerhub::clock, std::chrono::hours>;
	const hours never(std::chrono::hours::max());
	expect(timer.expires_at(never) == refused);
	expect(timer.expires_at(timerhub::time_point::max()) == refused);
	expect(rig.hub.advance(never) == refused);
	expect(timer.arm_at(rig.queue, never, nothing) == refused);
	/* `last` is the largest time that the hub accepts. */
	const timerhub::time_point last(std::chrono::nanoseconds(INT64_MAX - 127));
	expect(!timer.arm_at(rig.queue, last, nothing) && !timer.expires_at(last));
	expect(timer.expires_at(last + 1ns) == refused);
	/* If the time of a timer is in the past, the timer is due at once. */
	expect(!timer.expires_at(timerhub::time_point(-1h)) && rig.go(1s) == 1);
	expect(!timer.expires_after(-1h) && rig.go(1s) == 1);
	expect(timer.arm_every(rig.queue, 0s, nothing) == errc::invalid_argument);
	expect(timer.arm_every(rig.queue, -1s, nothing) == errc::invalid_argument);
	expect(timer.handle() == 0);
}

TEST(points_of_other_clocks_convert)
{
	using namespace std::chrono;
	const time_point<system_clock, seconds> date(1700000000s);
	const steady_clock::time_point steady(77ns);
	timerhub_config config{};
	timerhub::hub wall, monotonic;

	const auto point = timerhub::clock::from_system(date);
	expect(timerhub::deadline(point).ns() == 1700000000000000000);
	expect(timerhub::clock::to_system(point) == date);
	expect(timerhub::clock::from_steady(steady) == timerhub::time_point(77ns));
	expect(timerhub::clock::to_steady(timerhub::time_point(77ns)) == steady);

	config.clock = TIMERHUB_CLOCK_REALTIME;
	expect(!wall.open(config) && !monotonic.open());
	const auto before = steady_clock::now();
	const auto now = timerhub::clock::to_steady(monotonic.now());
	expect(before <= now && now <= steady_clock::now());
	/*
	 * The test allows a difference of an hour, because the wall clock may be set between the
	 * two readings.
	 */
	const auto difference = timerhub::clock::to_system(wall.now()) - system_clock::now();
	expect(difference > -1h && difference < 1h);
}

/* ---- errors ---- */

TEST(errors_are_those_of_the_c_calls)
{
	queue_rig rig;
	timerhub::timer timer;
	timerhub::queue queue;
	timerhub_config wrong{};
	void (*const null)() = nullptr;
	std::chrono::nanoseconds left{};
	timerhub_event event{};
	unsigned count = 7;
	struct timerhub_stats stats {
	};

	expect(!timerhub::error(0) && !timerhub::error(5));
	expect(timerhub::error(-ESHUTDOWN).value() == ESHUTDOWN);
	expect(timerhub::error(-ENOENT).category() == std::system_category());
	wrong.flags = ~0u;
	timerhub::hub closed;
	expect(closed.open(wrong) == errc::invalid_argument && !closed.native());
	expect(closed.stats(stats) == errc::invalid_argument);
	expect(closed.slow(nullptr, 0, count) == errc::invalid_argument && count == 7);
	expect(rig.hub.slow(nullptr, 0, count) == errc::operation_not_supported);
	expect(closed.advance(rig.at(1s)) == errc::invalid_argument);
	expect(rig.hub.open() == errc::device_or_resource_busy);
	expect(rig.queue.open(rig.hub) == errc::device_or_resource_busy);
	expect(queue.open(closed) == errc::invalid_argument && !queue.native());
	expect(queue.dispatch() == errc::invalid_argument);
	expect(queue.drain(&event, 1, count) == errc::invalid_argument && count == 7);
	expect(queue.fd() == -EINVAL && closed.wake_fd() == -EINVAL);
	expect(closed.owner_tid() == -EINVAL && rig.hub.owner_tid() == -EINVAL);
	expect(timer.arm_after(queue, 1s, [] {}) == errc::invalid_argument);
	expect(timer.arm_after(rig.queue, 1s, null) == errc::invalid_argument);
	expect(rig.queue.call_after(1s, null) == errc::invalid_argument);
	expect(timer.expires_after(1s) == errc::no_such_file_or_directory);
	expect(timer.expires_never() == errc::no_such_file_or_directory);
	expect(timer.remaining(left) == errc::no_such_file_or_directory);
	expect(rig.hub.advance(rig.at(1s)) == std::error_code());
	expect(rig.hub.advance(rig.at(0s)) == errc::invalid_argument);
	expect(rig.queue.wait(&event, 0, count) == errc::invalid_argument);
}

TEST(refusal_leaks_nothing)
{
	queue_rig rig(1);
	int calls = 0, living = 0;
	timerhub::timer timer, extra;
	const counted callable(&calls, &living);

	expect(!timer.arm_after(rig.queue, 1s, callable));
	expect(extra.arm_after(rig.queue, 1s, callable) == errc::resource_unavailable_try_again);
	expect(living == 2 && extra.handle() == 0);
	expect(rig.queue.call_after(1s, [] {}) == errc::resource_unavailable_try_again);
	heap_refuses = true;
	const std::error_code refused = timer.arm_after(rig.queue, 1s, callable);
	heap_refuses = false;
	expect(refused == errc::not_enough_memory);
	expect(timer.handle() == 0 && rig.live() == 0 && living == 1);
	expect(!extra.arm_after(rig.queue, 1s, callable) && living == 2);
	expect(rig.go(1s) == 1 && calls == 1);
}

/* ---- the other calls ---- */

TEST(callables_are_told_while_they_run_and_when_they_were_slow)
{
	struct {
		timerhub::hub hub;
		unsigned inside = 0;
	} watched;
	timerhub_config config{};
	std::array<timerhub_slow_callback, 2> slow{};
	timerhub::queue queue;
	unsigned count = 0;

	config.flags = TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE;
	config.slow_ns = 1000000;
	expect(!watched.hub.open(config) && !queue.open(watched.hub));
	expect(!queue.call_after(1us, [&watched] {
		const auto see = [](const timerhub_running &running) {
			return running.where == TIMERHUB_IN_CALLBACK ? 1 : 0;
		};

		expect(!watched.hub.each_running(see));
		expect(!watched.hub.each_running([&](const timerhub_running &running) {
			watched.inside += running.where == TIMERHUB_IN_CALLBACK;
			return 0;
		}));
		expect(!watched.hub.advance(clockwork::at(3ms)));
	}));
	expect(!watched.hub.advance(clockwork::at(1ms)) && !queue.dispatch());
	expect(watched.inside == 1);
	expect(!watched.hub.slow(slow.data(), 2, count) && count == 1);
	expect(slow[0].longest_ns == 2000000);
}

TEST(numbers_are_drained)
{
	queue_rig rig;
	std::array<timerhub_event, 4> events{};
	unsigned count = 0;

	for (std::uint64_t data = 1; data <= 3; data++)
		expect(timerhub_after(rig.queue.native(), 1000 * data, data, nullptr) == 0);
	expect(!rig.hub.advance(rig.at(1ms)));
	expect(!rig.queue.drain(events.data(), 2, count) && count == 2);
	expect(events[0].data == 1 && events[1].data == 2);
	expect(!rig.queue.wait(events.data(), 4, count) && count == 1 && events[0].data == 3);
	const auto before = std::chrono::steady_clock::now();
	expect(!rig.queue.wait(events.data(), 4, 1ms, count) && count == 0);
	expect(std::chrono::steady_clock::now() - before >= 1ms);
	expect(!rig.queue.wait(events.data(), 4, -1s, count) && count == 0);
	expect(rig.queue.fd() == timerhub_queue_fd(rig.queue.native()));
	expect(rig.hub.wake_fd() == timerhub_wake_fd(rig.hub.native()));
	rig.queue.stop();
	expect(rig.queue.wait(events.data(), 4, count).value() == ESHUTDOWN);
}

} // namespace
