/* SPDX-License-Identifier: MIT */
/*
 * Compiled with more warnings than the library itself, as errors: the headers stand in programs
 * that have them all. Calls each template once, since a compiler warns where a template is
 * instantiated.
 */
#include <timerhub.h>
#include <timerhub.hpp>
#include <timerhub_loop.h>
#include <timerhub_relay.h>
#include <timerhub_store.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

using namespace std::chrono_literals;

void every_template(const timerhub::queue &queue, const timerhub::loop &loop);

void every_template(const timerhub::queue &queue, const timerhub::loop &loop)
{
	timerhub::hub hub;
	timerhub::timer timer, other;
	timerhub::timeout<> small;
	timerhub::timeout<std::function<void()>> large;
	timerhub::clock::duration left{};
	timerhub::time_point next;
	const std::function<void(timerhub::expiry)> block = [](timerhub::expiry) {};

	static_cast<void>(timer.arm_after(
		queue, 10ms, [&left] { left = {}; }, 1.5s));
	static_cast<void>(timer.arm_at(queue, timerhub::time_point(1h), block));
	static_cast<void>(timer.arm_every(queue, 1h, [](timerhub::expiry) {}));
	static_cast<void>(timer.arm_never(queue, block));
	static_cast<void>(queue.call_after(0s, [] {}));
	static_cast<void>(timer.remaining(left));
	static_cast<void>(hub.advance(timerhub::time_point(left), &next));
	other = std::move(timer);
	static_cast<void>(small.add(loop, [&left] { left = {}; }));
	static_cast<void>(large.add(loop, [] {}));
}

#if defined(__SIZEOF_INT128__) && !defined(__STRICT_ANSI__)
__extension__ typedef __int128 wide;
template <class Period> using long_delay = std::chrono::duration<wide, Period>;

static_assert(timerhub::delay(long_delay<std::nano>(wide{ 1 } << 64)).ns() > UINT64_MAX / 2);
static_assert(timerhub::delay(long_delay<std::pico>(wide{ 1 } << 64)).ns() > UINT64_MAX / 2);
static_assert(timerhub::delay(long_delay<std::nano>(-(wide{ 1 } << 64))).ns() == 0);
static_assert(timerhub::delay(long_delay<std::milli>(7)).ns() == 7000000);
#endif
