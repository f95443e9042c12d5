/* SPDX-License-Identifier: MIT */
/* Manual hubs, whose clock the test moves, with a queue or a loop; a callable that is counted. */
#ifndef TESTS_CPP_RIG_HPP
#define TESTS_CPP_RIG_HPP

#include <timerhub.hpp>

#include <chrono>

#include "expect.hpp"

struct clockwork {
	timerhub::hub hub;

	explicit clockwork(unsigned timers_max)
	{
		timerhub_config config{};

		config.flags = TIMERHUB_MANUAL;
		config.timers_max = timers_max;
		expect(!hub.open(config));
	}

	/* Moves the clock, and calls nothing. */
	void pass(timerhub::delay to)
	{
		expect(!hub.advance(at(to)));
	}

	static timerhub::time_point at(timerhub::delay since_start)
	{
		return timerhub::time_point(std::chrono::nanoseconds(since_start.ns()));
	}
};

struct queue_rig : clockwork {
	timerhub::queue queue;

	explicit queue_rig(unsigned timers_max = 64) : clockwork(timers_max)
	{
		expect(!queue.open(hub));
	}

	const timerhub::queue &place() const
	{
		return queue;
	}

	/* Moves the clock, calls what is due, and returns how many that were. */
	unsigned go(timerhub::delay to)
	{
		unsigned count = 0;

		pass(to);
		expect(!queue.dispatch(1000, &count));
		return count;
	}

	unsigned live() const
	{
		timerhub::hub_stats stats{};

		expect(!hub.stats(stats));
		return static_cast<unsigned>(stats.live);
	}
};

struct loop_rig : clockwork {
	timerhub::loop loop;

	explicit loop_rig(unsigned timeouts_max = 0) : clockwork(64)
	{
		timerhub_loop_config config{};

		config.timeouts_max = timeouts_max;
		expect(!loop.open(hub, config));
	}

	const timerhub::loop &place() const
	{
		return loop;
	}

	/* Returns how many callables the turn has called. */
	unsigned turn()
	{
		unsigned count = 0;

		expect(!loop.turn(&count));
		return count;
	}

	/* The first turn schedules what was set before it. */
	unsigned go(timerhub::delay to)
	{
		const unsigned before = turn();

		pass(to);
		return before + turn();
	}

	unsigned live() const
	{
		timerhub::loop_stats stats{};

		expect(!loop.stats(stats));
		return static_cast<unsigned>(stats.added);
	}
};

/* A hub with a thread of its own, and a queue. */
struct threaded_rig {
	timerhub::hub hub;
	timerhub::queue queue;

	threaded_rig()
	{
		timerhub_config config{};

		config.sleeper = TIMERHUB_SLEEPER_POLL;
		expect(!hub.open(config) && !queue.open(hub));
	}
};

/* A callable that is larger than the data of a timer and counts its living copies. */
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

inline int plain_calls;

inline void plain_function()
{
	plain_calls++;
}

#endif
