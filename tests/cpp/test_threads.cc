/* SPDX-License-Identifier: MIT */
/*
 * Tests timerhub.hpp with several threads. Some threads dispatch the events of one queue, while
 * other threads arm, move and destroy timers. The callables use objects. The program frees each of
 * these objects as soon as the header permits. If the header permitted a free too early,
 * AddressSanitizer or ThreadSanitizer would report an error.
 */
#include <timerhub.hpp>

#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "expect.hpp"
#include "uring_allowed.h"

using namespace std::chrono_literals;

namespace
{

/* Skips the test where the kernel grants no more io_urings. */
void open(timerhub::hub &hub, timerhub::queue &queue)
{
	const std::error_code error = hub.open();

	if (uring_ran_out(-error.value())) {
		std::printf("skipped: io_uring: %s\n", error.message().c_str());
		std::exit(EXIT_SKIPPED);
	}
	expect(!error && !queue.open(hub));
}

/* A hub with one queue, and threads that dispatch the queue's events until they are stopped. */
class crew
{
      public:
	explicit crew(unsigned count)
	{
		open(hub, queue);
		for (unsigned i = 0; i < count; i++)
			threads_.emplace_back([this] { run(); });
	}

	~crew()
	{
		stopping_ = true;
		for (std::thread &thread : threads_)
			thread.join();
	}

	crew(const crew &) = delete;
	crew &operator=(const crew &) = delete;

	timerhub::hub hub;
	timerhub::queue queue;
	std::atomic<unsigned> thrown{ 0 }; /* number of callables that have thrown an exception */

      private:
	void run()
	{
		pollfd ready{};

		ready.fd = queue.fd();
		ready.events = POLLIN;
		while (!stopping_) {
			if (poll(&ready, 1, 10) > 0)
				turn();
		}
	}

	void turn()
	{
#if defined(__cpp_exceptions)
		try {
			expect(!queue.dispatch(8));
		} catch (const int) {
			thrown++;
		}
#else
		expect(!queue.dispatch(8));
#endif
	}

	std::atomic<bool> stopping_{ false };
	std::vector<std::thread> threads_;
};

template <class Condition> void await(Condition condition)
{
	while (!condition())
		std::this_thread::sleep_for(50us);
}

/* ---- one callback and one destroyer ---- */

/*
 * While one thread is in the callback, another thread may call the callback for the timer's next
 * period.
 */
struct shared {
	std::atomic<unsigned> started{ 0 };
	std::atomic<bool> destroying{ false };
	/*
	 * The flags are not atomic. The timer's destructor must order the callbacks' writes of the
	 * flags before the destroyer's reads.
	 */
	std::array<bool, 2> finished{};

	void callback()
	{
		const unsigned self = started++;

		if (self >= finished.size())
			return;
		await([this] { return destroying.load(); });
		std::this_thread::sleep_for(20ms);
		finished[self] = true;
	}
};

/* Destroys a timer while `inside` calls of its callback run, which the destructor awaits. */
template <class Callable>
void destructor_waits(crew &crew, shared &shared, unsigned inside, Callable callable)
{
	auto timer = std::make_unique<timerhub::timer>();

	expect(!timer->arm_every(crew.queue, 1ms, callable));
	await([&shared, inside] { return shared.started >= inside; });
	shared.destroying = true;
	timer.reset();
	for (unsigned i = 0; i < shared.finished.size() && i < shared.started; i++)
		expect(shared.finished[i]);
}

TEST(destructor_waits_for_the_callback_on_another_thread)
{
	crew crew(2);

	for (unsigned i = 0; i < 3 * length; i++) {
		shared small, large;

		destructor_waits(crew, small, 1 + i % 2, [at = &small] { at->callback(); });
		destructor_waits(crew, large, 1 + i % 2,
		                 [at = &large, guard = std::vector<int>(9, 7)] {
					 at->callback();
					 expect(guard.at(8) == 7);
				 });
	}
}

/* The last call destroys the callable, before cancel() returns. */
TEST(cancelled_callable_is_gone)
{
	crew crew(2);

	for (unsigned i = 0; i < 200 * length; i++) {
		auto token = std::make_shared<int>(7);
		std::atomic<unsigned> calls{ 0 };
		timerhub::timer timer;

		expect(!timer.arm_every(crew.queue, 10us, [token, &calls] {
			expect(*token == 7);
			calls++;
		}));
		await([&calls] { return calls > 2; });
		expect(!timer.cancel() && token.use_count() == 1);
	}
}

/* ---- many ---- */

std::atomic<int> sessions;
std::atomic<unsigned> session_calls;

/* The callback reads `numbers`, which the destructor frees, and re-arms the timer. */
struct session {
	explicit session(std::uint64_t seed) : numbers(64, seed)
	{
		sessions++;
	}

	~session()
	{
		timer.cancel();
		for (std::uint64_t &number : numbers)
			number = 0;
		sessions--;
	}

	session(const session &) = delete;
	session &operator=(const session &) = delete;

	void come()
	{
		std::uint64_t sum = 0;

		for (const std::uint64_t number : numbers)
			sum += number;
		expect(sum == 64 * numbers[0] && sum != 0);
		session_calls.fetch_add(1, std::memory_order_relaxed);
		timer.expires_after(20us);
	}

	std::vector<std::uint64_t> numbers;
	/* `timer` is the last member, so its destructor runs first and cancels the timer */
	timerhub::timer timer;
};

using random = std::minstd_rand;

std::unique_ptr<session> begin(crew &crew, random &dice)
{
	auto made = std::make_unique<session>(dice());
	session *const at = made.get();
	const auto delay = std::chrono::microseconds(dice() % 100);

	switch (dice() % 4) {
	case 0:
		expect(!at->timer.arm_after(crew.queue, delay, [at] { at->come(); }));
		break;
	case 1:
		expect(!at->timer.arm_every(crew.queue, delay + 1us, [at] { at->come(); }));
		break;
	case 2:
		expect(!at->timer.arm_after(
			crew.queue, delay,
			[at, guard = std::make_unique<int>(7)](timerhub::expiry expiry) {
				at->come();
				expect(*guard == 7 && expiry.count == 1);
			}));
		break;
	default:
		expect(!at->timer.arm_every(crew.queue, delay + 1us,
		                            [at, guard = std::make_unique<int>(7)] {
						    at->come();
						    expect(*guard == 7);
					    }));
		break;
	}
	return made;
}

void leave_by_exception([[maybe_unused]] bool really)
{
#if defined(__cpp_exceptions)
	if (really)
		throw 1;
#endif
}

/* The session deletes itself in its callback, which may throw afterwards. */
void begin_alone(crew &crew, random &dice)
{
	session *const alone = new session(dice());
	const bool throws = dice() % 4 == 0;

	expect(!alone->timer.arm_after(crew.queue, std::chrono::microseconds(dice() % 100),
	                               [alone, throws, guard = std::make_unique<int>(7)] {
					       delete alone;
					       expect(*guard == 7);
					       leave_by_exception(throws);
				       }));
}

void churn(crew &crew, unsigned seed)
{
	std::vector<std::unique_ptr<session>> mine(32);
	random dice(seed);

	while (session_calls < 100000 * length) {
		std::unique_ptr<session> &one = mine[dice() % mine.size()];

		if (!one || dice() % 4 == 0)
			one = begin(crew, dice);
		else if (dice() % 2 == 0)
			one->timer.expires_after(std::chrono::microseconds(dice() % 50));
		else
			one->timer.expires_never();
		if (dice() % 8 == 0)
			begin_alone(crew, dice);
		if (dice() % 32 == 0)
			std::this_thread::yield();
	}
}

TEST(sessions_come_and_go_while_callbacks_run)
{
	crew crew(3);
	std::vector<std::thread> threads;

	for (unsigned i = 1; i <= 2; i++)
		threads.emplace_back([&crew, i] { churn(crew, i); });
	for (std::thread &thread : threads)
		thread.join();
	/* some sessions delete themselves after the threads have ended */
	await([] { return sessions == 0; });
#if defined(__cpp_exceptions)
	expect(crew.thrown > 0);
#endif
}

} // namespace
