/* SPDX-License-Identifier: MIT */
/*
 * Tests sleep_for() on a queue with a hub that has a thread of its own: threads begin, dispatch and
 * stop sleeps at the same time. A coroutine frees its frame, with the awaiter in it, as soon as it
 * goes on, so that AddressSanitizer or ThreadSanitizer finds whoever still uses the awaiter.
 */
#include <timerhub.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <stop_token>
#include <system_error>
#include <thread>

#include "coroutine.hpp"
#include "rig.hpp"

using namespace std::chrono_literals;

namespace
{

/* Whether the calling thread dispatches the queue. */
thread_local bool dispatches;

/* Two threads that dispatch the queue. */
struct crew : threaded_rig {
	std::array<std::jthread, 2> threads;

	crew()
	{
		for (std::jthread &thread : threads)
			thread = std::jthread([this](std::stop_token stop) {
				dispatches = true;
				expect(!queue.run(stop));
			});
	}

	std::uint64_t timers() const
	{
		timerhub::hub_stats stats{};

		expect(!hub.stats(stats));
		return stats.live;
	}
};

/* Counts down to 0, which await() waits for. */
struct countdown {
	std::atomic<int> left;

	void one() noexcept
	{
		if (--left == 0)
			left.notify_all();
	}

	void await() noexcept
	{
		for (int now = left; now != 0; now = left)
			left.wait(now);
	}
};

detached sleeps(const timerhub::queue &queue, timerhub::delay after, int times, countdown &left)
{
	for (int i = 0; i < times; i++) {
		expect(!co_await sleep_for(queue, after));
		expect(dispatches);
	}
	left.one();
}

/* With no delay at all the coroutine is often resumed before await_suspend() has returned. */
TEST(a_dispatching_thread_resumes)
{
	const int count = 500 * static_cast<int>(length);
	crew crew;
	countdown left{ count };

	for (int i = 0; i < count; i++)
		sleeps(crew.queue, i % 3 * 20us, 20, left);
	left.await();
	expect(crew.timers() == 0);
}

detached sleeps_unless_stopped(const timerhub::queue &queue, timerhub::delay after,
                               std::stop_token stop, countdown &left)
{
	const std::error_code result = co_await sleep_for(queue, after, stop);

	if (result)
		expect(result == std::errc::operation_canceled && stop.stop_requested());
	else
		expect(dispatches);
	left.one();
}

/*
 * The thread that begins the sleep does nothing after it that would order it before the resumed
 * coroutine, so ThreadSanitizer sees every access to the awaiter that comes too late.
 */
TEST(whoever_begins_a_sleep_lets_go_of_it)
{
	crew crew;

	for (unsigned i = 0; i < 500 * length; i++) {
		countdown left{ 1 };

		if (i % 2 == 0)
			sleeps(crew.queue, 0s, 1, left);
		else
			sleeps_unless_stopped(crew.queue, 0s, std::stop_token(), left);
		left.await();
	}
}

/* Without a stop, every coroutine goes on by a dispatch, also if it is due while it begins. */
TEST(a_stoppable_sleep_ends_in_a_dispatch)
{
	const int count = 5000 * static_cast<int>(length);
	crew crew;
	countdown left{ count };
	std::stop_source source;

	for (int i = 0; i < count; i++)
		sleeps_unless_stopped(crew.queue, i % 3 * 10us, source.get_token(), left);
	left.await();
}

/* A stop comes before, while, and after a sleep begins, and beside its expiry. */
TEST(a_stop_beside_all_else_resumes_once)
{
	const int rounds = 500 * static_cast<int>(length), count = 20;
	std::minstd_rand dice(1);
	crew crew;

	for (int i = 0; i < rounds; i++) {
		countdown left{ count };
		std::stop_source source;
		const auto spins = static_cast<unsigned>(dice() % 2000);
		std::atomic<bool> begun{ false };
		std::jthread stopper([&begun, &source, spins] {
			while (!begun)
				continue;
			for (unsigned j = 0; j < spins; j++)
				static_cast<void>(source.stop_requested());
			source.request_stop();
		});

		begun = true;
		for (int j = 0; j < count; j++)
			sleeps_unless_stopped(crew.queue,
			                      j % 4 == 0 ? timerhub::delay(1h)
			                                 : timerhub::delay(j % 4 * 5us),
			                      source.get_token(), left);
		left.await();
	}
	expect(crew.timers() == 0);
}

} // namespace
