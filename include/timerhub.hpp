/* SPDX-License-Identifier: MIT */
/*
 * timerhub for C++17; the manual is timerhub_hpp(7). Loops, timeouts, hubs, queues and timers are
 * objects that close themselves. Times are those of std::chrono, callbacks are any callables, and
 * errors are std::error_code. The comments here say only what this header adds to timerhub_loop.h
 * and timerhub.h; native() and handle() return the C object. Tested by tests/cpp.
 *
 * Errors. A call's error is empty, or it is the errno of the C call in std::system_category(), and
 * then no output is written. The header throws nothing itself, and compiles with -fno-exceptions
 * and -fno-rtti. An exception that a callable throws leaves dispatch(). One that its constructor
 * throws leaves the call that arms the timer, which then has changed nothing. With -fno-exceptions,
 * and with musl, a callable must not end its thread.
 *
 * Times. A time is rounded up to nanoseconds, and a negative one is taken as 0. One that is above
 * 2^63 ns, or NaN, gives ERANGE. A slack is at most three days: a longer one counts as three days.
 *
 * Memory. A small callable (see is_small_v) is kept in the timer's data, and each expiry calls a
 * copy of it. Any other callable is kept in one block of the heap, and so stays at one address.
 *
 * Threads. Any number of threads may make const calls for an object at once; any other call needs
 * the object for itself. But a callback may move its own timer while another thread cancels or
 * destroys it. A timeout belongs to one thread.
 *
 * When a timer's data may be freed. After cancel() or the destructor, no other thread runs the
 * callable, and none will. If the callback itself cancels or destroys its timer, the callable lives
 * until the callback returns. So declare a timer as the last member of its class, or call cancel()
 * first in the destructor, because the callback may use the other members.
 *
 * The destructor waits for the callback. Do not hold a mutex that the callback locks, and do not
 * let two callbacks destroy each other's timers: they would wait for ever. If several threads
 * dispatch, callbacks of a periodic or moved timer can overlap, and only one of them may destroy
 * it. A hub outlives its queues and timers, and the timers of a closed queue never expire. drain()
 * and wait() call no callback: never call the fn of the events that they return, because no
 * destructor waits for that.
 *
 * Lifetime. Timers and timeouts keep their callable after an expiry. So capture `this`, and not a
 * shared_ptr to the object that contains them, because each would own the other until cancel() or
 * remove(). A callback that may release the last reference to its object begins with `const auto
 * self = shared_from_this();`.
 */
#ifndef TIMERHUB_HPP
#define TIMERHUB_HPP

#if __cplusplus < 201703L
#error "timerhub.hpp needs C++17"
#endif

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <ratio>
#include <system_error>
#include <type_traits>
#include <utility>

#if __cplusplus >= 202002L
#include <version>
#endif
#ifdef __cpp_lib_jthread
#include <stop_token>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#endif

#include "timerhub.h"
#include "timerhub_loop.h"

/*
 * Programs use the names of namespace timerhub_cpp with the prefix timerhub::, as in timerhub::hub.
 * The end of timerhub.hpp defines this prefix.
 */
namespace timerhub_cpp
{

/* Converts the result of a C call to an error, which is empty if the result is not negative. */
inline std::error_code error(int result) noexcept
{
	return result < 0 ? std::error_code(-result, std::system_category()) : std::error_code();
}

/* Stores the count that a call has returned, unless it has failed. */
inline std::error_code counted(int result, unsigned *ret_count) noexcept
{
	if (result >= 0 && ret_count)
		*ret_count = static_cast<unsigned>(result);
	return error(result);
}

/*
 * The clock of time points on a hub's clock. It has no now(), because each hub chooses its clock
 * when it is opened; call that of the hub. Use from_steady() and to_steady() if the hub's clock is
 * TIMERHUB_CLOCK_MONOTONIC, and from_system() and to_system() if it is TIMERHUB_CLOCK_REALTIME.
 * They change only the type, so with another clock the result is wrong.
 */
struct clock {
	using duration = std::chrono::nanoseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<clock>;
	static constexpr bool is_steady = false;

	template <class Duration> using point = std::chrono::time_point<clock, Duration>;
	template <class Duration>
	using steady = std::chrono::time_point<std::chrono::steady_clock, Duration>;
	template <class Duration>
	using system = std::chrono::time_point<std::chrono::system_clock, Duration>;

	template <class Duration>
	static constexpr point<Duration> from_steady(steady<Duration> when)
	{
		return point<Duration>(when.time_since_epoch());
	}

	template <class Duration> static constexpr steady<Duration> to_steady(point<Duration> when)
	{
		return steady<Duration>(when.time_since_epoch());
	}

	template <class Duration>
	static constexpr point<Duration> from_system(system<Duration> when)
	{
		return point<Duration>(when.time_since_epoch());
	}

	template <class Duration> static constexpr system<Duration> to_system(point<Duration> when)
	{
		return system<Duration>(when.time_since_epoch());
	}
};

using time_point = clock::time_point;

namespace detail
{

/*
 * Stands for a time that does not fit into 64 bits. No hub accepts it, so the calls of timerhub.h
 * return -ERANGE for it.
 */
inline constexpr std::uint64_t out_of_range = UINT64_MAX - 1;

/*
 * Multiplies `count` by num / den and rounds up. Returns out_of_range if the result does not fit.
 * The caller has checked that num * den fits into 64 bits.
 */
constexpr std::uint64_t scale(std::uint64_t count, std::uint64_t num, std::uint64_t den) noexcept
{
	const std::uint64_t whole = count / den;
	const std::uint64_t part = (count % den * num + den - 1) / den;

	if (whole > (out_of_range - part) / num)
		return out_of_range;
	return whole * num + part;
}

/* Returns the nanoseconds of a duration, rounded up, or 0 if the duration is negative. */
template <class Rep, class Period>
constexpr std::uint64_t to_ns(const std::chrono::duration<Rep, Period> &distance) noexcept
{
	using ratio = std::ratio_divide<Period, std::nano>;
	constexpr auto num = static_cast<std::uint64_t>(ratio::num);
	constexpr auto den = static_cast<std::uint64_t>(ratio::den);

	static_assert(std::is_arithmetic_v<Rep>, "a duration of integers or floating point");
	static_assert(num <= (out_of_range - den) / den, "a period that is too odd");
	if (distance.count() <= 0)
		return 0;
	if constexpr (std::is_floating_point_v<Rep>) {
		using real = std::common_type_t<Rep, double>;
		constexpr real factor = static_cast<real>(num) / static_cast<real>(den);
		const real count = distance.count();

		/*
		 * A hub rejects a deadline of 2^63 ns or more, so such a count is out of range. The
		 * comparison is false for NaN, so NaN is out of range too.
		 */
		if (!(count < static_cast<real>(out_of_range / 2) / factor))
			return out_of_range;
		const auto whole = static_cast<std::uint64_t>(count * factor);
		return static_cast<real>(whole) < count * factor ? whole + 1 : whole;
	} else {
		if constexpr (sizeof(Rep) >
		              sizeof(std::uint64_t)) { /* __int128 with -std=gnu++17 */
			if (distance.count() > static_cast<Rep>(out_of_range))
				return out_of_range;
		}
		return scale(static_cast<std::uint64_t>(distance.count()), num, den);
	}
}

/* Converts a time of the library to a duration. UINT64_MAX (never) becomes the largest duration. */
constexpr clock::duration from_ns(std::uint64_t ns) noexcept
{
	const auto max = static_cast<std::uint64_t>(clock::duration::max().count());

	return clock::duration(static_cast<clock::rep>(ns < max ? ns : max));
}

} // namespace detail

/* A delay, an interval or a timeout. Any std::chrono::duration converts to a delay. */
class delay
{
      public:
	constexpr delay() noexcept = default;

	template <class Rep, class Period>
	constexpr delay(const std::chrono::duration<Rep, Period> &distance) noexcept
	    : ns_(detail::to_ns(distance))
	{
	}

	/* Returns the delay in ns. If it was out of range, the result is above 2^63. */
	constexpr std::uint64_t ns() const noexcept
	{
		return ns_;
	}

      private:
	std::uint64_t ns_ = 0;
};

/* A point in time on a hub's clock. Any time_point of timerhub::clock converts to a deadline. */
class deadline
{
      public:
	template <class Duration>
	constexpr deadline(const std::chrono::time_point<clock, Duration> &when) noexcept
	    : ns_(detail::to_ns(when.time_since_epoch()))
	{
	}

	/* Returns the deadline in ns. If it was out of range, the result is above 2^63. */
	constexpr std::uint64_t ns() const noexcept
	{
		return ns_;
	}

      private:
	std::uint64_t ns_;
};

/* What a timer's callable is called with, if it takes an argument. */
struct expiry {
	/* The timer's deadline. If the call stands for several periods, that of the first one. */
	time_point due;
	/* How many periods the call stands for; 1 if the timer is not periodic. */
	std::uint64_t count;
};

/*
 * True if a callable of this type is kept in the timer's data, so that arming allocates nothing. It
 * must have at most 8 bytes, be trivially copyable, and be callable when it is const. A mutable
 * lambda is therefore not small: it would lose its state, because each expiry calls a new copy.
 */
template <class Callable>
inline constexpr bool is_small_v =
	sizeof(Callable) <= sizeof(std::uint64_t) && alignof(Callable) <= alignof(std::uint64_t) &&
	std::is_trivially_copyable_v<Callable> &&std::is_trivially_destructible_v<Callable> &&
	(std::is_invocable_v<const Callable &> || std::is_invocable_v<const Callable &, expiry>);

namespace detail
{

template <class Callable> void invoke(Callable &callable, const timerhub_event &event)
{
	if constexpr (std::is_invocable_v<Callable &, expiry>)
		static_cast<void>(
			callable(expiry{ time_point(from_ns(event.expires_ns)), event.count }));
	else
		static_cast<void>(callable());
}

/* ---- a small callable: the timer's data is the bytes of the callable ---- */

template <class Callable> std::uint64_t pack(const Callable &callable) noexcept
{
	std::uint64_t data = 0;

	/* An object of an empty class has no bytes with a value. */
	if constexpr (!std::is_empty_v<Callable>)
		std::memcpy(&data, &callable, sizeof(callable));
	return data;
}

/*
 * Holds a copy of a small callable for one call, on the stack of the calling thread, because no
 * other thread can free it there.
 */
template <class Callable> class unpacked
{
      public:
	explicit unpacked(std::uint64_t data) noexcept
	{
		std::memcpy(bytes_, &data, sizeof(bytes_));
	}

	const Callable &get() const noexcept
	{
		return *std::launder(
			static_cast<const Callable *>(static_cast<const void *>(bytes_)));
	}

      private:
	alignas(Callable) unsigned char bytes_[sizeof(Callable)];
};

/* The function `fn` of a timer with a small callable. */
template <class Callable> void call_small(const timerhub_event *event)
{
	const unpacked<Callable> copy(event->data);

	invoke(copy.get(), *event);
}

/* ---- any other callable: a block on the heap holds the callable ---- */

/*
 * A block on the heap that holds a callable, and counts its users: the timer object and each
 * callback that runs. After timerhub_cancel_sync(), these are the timer object, and callbacks on
 * the calling thread that have not returned. The last user to leave frees the block.
 */
class block
{
      public:
	explicit block(void (*destroy)(block *)) noexcept : destroy_(destroy)
	{
	}

	block(const block &) = delete;
	block &operator=(const block &) = delete;

	/*
	 * Makes the caller a user. Relaxed is enough, because nothing can free the block meanwhile:
	 * either the timer object still uses it, or the thread that cancels the timer waits for the
	 * callback that makes this call.
	 */
	void use() noexcept
	{
		users_.fetch_add(1, std::memory_order_relaxed);
	}

	/*
	 * Ends the caller's use. Acquire and release make all that the users did with the callable
	 * happen before its destruction. What users on other threads did also happens before the
	 * last user calls leave(), because of timerhub_cancel_sync().
	 */
	void leave() noexcept
	{
		if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1)
			destroy_(this);
	}

      protected:
	~block() = default;

      private:
	void (*const destroy_)(block *);
	std::atomic<unsigned> users_{ 1 };
};

template <class Callable> class block_of final : public block
{
      public:
	template <class From>
	explicit block_of(From &&from) : block(destroy), callable(std::forward<From>(from))
	{
	}

	Callable callable;

      private:
	static void destroy(block *self)
	{
		delete static_cast<block_of *>(self);
	}
};

/*
 * Makes the running callback a user of the block as long as it runs, also if the callable throws an
 * exception or its thread ends.
 */
class block_user
{
      public:
	explicit block_user(block &used) noexcept : used_(used)
	{
		used_.use();
	}

	~block_user()
	{
		used_.leave();
	}

	block_user(const block_user &) = delete;
	block_user &operator=(const block_user &) = delete;

      private:
	block &used_;
};

/* The function `fn` of a timer whose callable is in a block. */
template <class Callable> void call_block(const timerhub_event *event)
{
	auto &home = *static_cast<block_of<Callable> *>(event->ptr);
	const block_user user(home);

	invoke(home.callable, *event);
}

/* Fails to compile if an Argument cannot be stored as a Callable. */
template <class Callable, class Argument> constexpr void check_stored() noexcept
{
	static_assert(std::is_constructible_v<Callable, Argument>,
	              "a callable that cannot be copied is passed by std::move");
}

/* Returns false for a null function pointer, which timerhub_call() rejects too. */
template <class Callable> constexpr bool is_callable(const Callable &callable) noexcept
{
	if constexpr (std::is_pointer_v<Callable>)
		return callable != nullptr;
	else
		return static_cast<void>(callable), true;
}

} // namespace detail

#ifdef __cpp_lib_jthread
namespace detail
{

/* An eventfd. signal() makes it readable for good. */
class stop_fd
{
      public:
	stop_fd() noexcept : fd_(open_above_stdio())
	{
	}

	~stop_fd()
	{
		if (fd_ >= 0)
			::close(fd_);
	}

	stop_fd(const stop_fd &) = delete;
	stop_fd &operator=(const stop_fd &) = delete;

	/* It can only fail with a full counter, and then the eventfd is readable already. */
	void signal() const noexcept
	{
		static_cast<void>(::eventfd_write(fd_, 1));
	}

	int fd() const noexcept
	{
		return fd_;
	}

      private:
	/* What the program prints to a closed stderr must not make it readable. */
	static int open_above_stdio() noexcept
	{
		const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		if (fd < 0)
			return -errno;
		if (fd > STDERR_FILENO)
			return fd;
		const int above = open_above_stdio();

		::close(fd);
		return above;
	}

	int fd_;
};

} // namespace detail
#endif

/*
 * A hub is a timer service, and owns a struct timerhub. If a hub is moved, its queues and timers
 * belong to the new object.
 */
class hub
{
      public:
	hub() noexcept = default;

	hub(hub &&other) noexcept : hub_(std::exchange(other.hub_, nullptr))
	{
	}

	hub &operator=(hub &&other) noexcept
	{
		if (this != &other) {
			close();
			hub_ = std::exchange(other.hub_, nullptr);
		}
		return *this;
	}

	~hub()
	{
		close();
	}

	/*
	 * Calls timerhub_open(). If config.size is 0, open() sets it. EBUSY: the hub is already
	 * open.
	 */
	[[nodiscard]] std::error_code open(timerhub_config config = {}) noexcept
	{
		if (hub_)
			return error(-EBUSY);
		if (config.size == 0)
			config.size = sizeof(config);
		return error(timerhub_open(&hub_, &config));
	}

	/*
	 * Calls timerhub_close(). The program must close the hub's queues and timers before the
	 * hub. If the hub is not open, close() does nothing.
	 */
	void close() noexcept
	{
		timerhub_close(std::exchange(hub_, nullptr));
	}

	/* Calls timerhub_now(). The hub must be open. */
	time_point now() const noexcept
	{
		return time_point(detail::from_ns(timerhub_now(hub_)));
	}

	/*
	 * Calls timerhub_advance() of a manual hub. `*ret_next` is the time of the next necessary
	 * call, or time_point::max() for never. `ret_next` may be NULL.
	 */
	std::error_code advance(deadline now, time_point *ret_next = nullptr) const noexcept
	{
		std::uint64_t next_ns = 0;
		int result = -ERANGE;

		if (now.ns() <= static_cast<std::uint64_t>(clock::duration::max().count()))
			result = timerhub_advance(hub_, now.ns(), &next_ns);
		if (result == 0 && ret_next)
			*ret_next = time_point(detail::from_ns(next_ns));
		return error(result);
	}

	/* Calls timerhub_wake_fd(), and returns its result: a descriptor or a negative errno. */
	int wake_fd() const noexcept
	{
		return timerhub_wake_fd(hub_);
	}

	/* Calls timerhub_owner_tid(), and returns its result: a thread id or a negative errno. */
	int owner_tid() const noexcept
	{
		return timerhub_owner_tid(hub_);
	}

	/* Calls timerhub_stats(). */
	std::error_code stats(struct timerhub_stats &ret_stats) const noexcept
	{
		return error(timerhub_stats(hub_, &ret_stats));
	}

	/*
	 * Calls timerhub_each_running(): callable(running) is called for each thread that
	 * dispatches and each observable loop. A result of it other than 0 ends the walk.
	 */
	template <typename Callable> std::error_code each_running(Callable &&callable) const
	{
		using plain = std::remove_reference_t<Callable>;
		const auto visit = [](const timerhub_running *running, void *context) -> int {
			return (**static_cast<plain **>(context))(*running);
		};
		plain *at = std::addressof(callable);

		return error(timerhub_each_running(hub_, visit, &at));
	}

	/* Calls timerhub_slow(): ret_count functions are stored in `ret`. */
	std::error_code slow(timerhub_slow_callback *ret, unsigned max,
	                     unsigned &ret_count) const noexcept
	{
		return counted(timerhub_slow(hub_, ret, max), &ret_count);
	}

	/*
	 * Returns the C object of the hub, for the calls of timerhub.h; nullptr if the hub is not
	 * open.
	 */
	timerhub *native() const noexcept
	{
		return hub_;
	}

      private:
	timerhub *hub_ = nullptr;
};

/*
 * A queue holds expired timers, and owns a struct timerhub_queue. If a queue is moved, its timers
 * belong to the new object.
 */
class queue
{
      public:
	queue() noexcept = default;

	queue(queue &&other) noexcept : queue_(std::exchange(other.queue_, nullptr))
	{
	}

	queue &operator=(queue &&other) noexcept
	{
		if (this != &other) {
			close();
			queue_ = std::exchange(other.queue_, nullptr);
		}
		return *this;
	}

	~queue()
	{
		close();
	}

	/* Calls timerhub_queue_open(). EBUSY: the queue is already open. */
	[[nodiscard]] std::error_code open(const hub &of) noexcept
	{
		return queue_ ? error(-EBUSY)
		              : error(timerhub_queue_open(of.native(), &queue_, nullptr));
	}

	/*
	 * Calls timerhub_queue_close(). A callback of this queue must not close the queue. No other
	 * thread may be inside a call on the queue. To end worker threads, call stop(), and join
	 * the threads before close(). If the queue is not open, close() does nothing.
	 */
	void close() noexcept
	{
		timerhub_queue_close(std::exchange(queue_, nullptr));
	}

	/*
	 * Calls timerhub_queue_fd(), and returns the eventfd or a negative errno. The program may
	 * poll the eventfd, and must not close the eventfd.
	 */
	int fd() const noexcept
	{
		return timerhub_queue_fd(queue_);
	}

	/*
	 * Calls timerhub_dispatch(), which calls up to `max` callables on this thread. `*ret_count`
	 * (may be NULL) is the number of called callables. If a callable throws, the exception
	 * leaves dispatch(). The event of the callable counts as delivered, and later events stay
	 * in the queue.
	 */
	std::error_code dispatch(unsigned max = 64, unsigned *ret_count = nullptr) const
	{
		return counted(timerhub_dispatch(queue_, max), ret_count);
	}

#ifdef __cpp_lib_jthread
	/*
	 * Waits and dispatches until `stop` is requested, for a std::jthread. Several threads may
	 * run one queue, and each is stopped by itself. An exception of a callable leaves run().
	 * Errors are those of dispatch(), eventfd(2) and poll(2).
	 */
	std::error_code run(const std::stop_token &stop) const
	{
		const detail::stop_fd stopped;
		pollfd ready[] = { { fd(), POLLIN, 0 }, { stopped.fd(), POLLIN, 0 } };

		for (const pollfd &polled : ready)
			if (polled.fd < 0)
				return error(polled.fd);
		const std::stop_callback on_stop(stop, [&stopped] { stopped.signal(); });

		while (!stop.stop_requested()) {
			if (::poll(ready, 2, -1) < 0 && errno != EINTR)
				return error(-errno);
			if (const std::error_code result = dispatch())
				return result;
		}
		return std::error_code();
	}
#endif

	/*
	 * Calls timerhub_drain(). Use drain() only for timers that were armed by the calls of
	 * timerhub.h, with a number as their data. Never call the fn of a returned event.
	 */
	std::error_code drain(timerhub_event *events, unsigned max,
	                      unsigned &ret_count) const noexcept
	{
		return counted(timerhub_drain(queue_, events, max), &ret_count);
	}

	/*
	 * Calls timerhub_wait(), which blocks until the queue has an event, or at most for
	 * `timeout`. Use wait() only for timers that were armed by the calls of timerhub.h. If
	 * `timeout` is out of range, the wait has no limit.
	 */
	std::error_code wait(timerhub_event *events, unsigned max,
	                     unsigned &ret_count) const noexcept
	{
		return counted(timerhub_wait(queue_, events, max, UINT64_MAX), &ret_count);
	}

	std::error_code wait(timerhub_event *events, unsigned max, delay timeout,
	                     unsigned &ret_count) const noexcept
	{
		return counted(timerhub_wait(queue_, events, max, timeout.ns()), &ret_count);
	}

	/* Calls timerhub_queue_stop(). From now on wait() does not block. */
	void stop() const noexcept
	{
		timerhub_queue_stop(queue_);
	}

	/* Calls timerhub_interrupt(). Every wait() that blocks now returns ECANCELED. */
	void interrupt() const noexcept
	{
		timerhub_interrupt(queue_);
	}

	/*
	 * Arms a one-shot timer that calls a small callable when the delay `after` has passed. No
	 * object owns the callable. `*ret_timer` (may be NULL) is for the calls of timerhub.h.
	 * Errors are those of timerhub_arm(), and EINVAL for a null function pointer.
	 */
	template <class Callable>
	[[nodiscard]] std::error_code call_after(delay after, Callable &&callable,
	                                         timerhub_timer *ret_timer = nullptr) const noexcept
	{
		using stored = std::decay_t<Callable>;

		static_assert(is_small_v<stored>, "no object would free it; arm a timer");
		detail::check_stored<stored, Callable>();
		return call_small(after, stored(std::forward<Callable>(callable)), ret_timer);
	}

	/*
	 * Returns the C object of the queue, for the calls of timerhub.h; nullptr if the queue is
	 * not open.
	 */
	timerhub_queue *native() const noexcept
	{
		return queue_;
	}

      private:
	/* timerhub_loop_close() closes a loop's queue, so class loop must clear `queue_` */
	friend class loop;

	template <class Callable>
	std::error_code call_small(delay after, const Callable &callable,
	                           timerhub_timer *ret_timer) const noexcept
	{
		timerhub_spec spec{};

		if (!detail::is_callable(callable))
			return error(-EINVAL);
		spec.size = sizeof(spec);
		spec.expires_ns = after.ns();
		spec.data = detail::pack(callable);
		spec.fn = detail::call_small<Callable>;
		return error(timerhub_arm(queue_, &spec, ret_timer));
	}

	timerhub_queue *queue_ = nullptr;
};

/*
 * A timer and its callable, called by a dispatch of its queue after the deadline, with a
 * timerhub::expiry if it takes one. Armed, the timer keeps its slot until it is cancelled or
 * destroyed: after its expiry it is idle (TIMERHUB_KEEP) until expires_after() or expires_at()
 * moves it. So a connection has its timeout as a member, arms it once, and moves it with each
 * message. It may be moved to another object while armed, even inside its callback; the callable
 * keeps its address, and must not run if it refers to the old object. An arm call first cancels
 * what this object armed before, and last destroys its callable; EAGAIN, EINVAL, ERANGE or ENOMEM:
 * not armed. With `slack` it may expire anywhere in [deadline, deadline + slack]. Once the timer
 * can expire, the arm call does not touch the object, which the callback may destroy.
 */
class timer
{
      public:
	timer() noexcept = default;

	timer(timer &&other) noexcept
	{
		swap(other);
	}

	/* Cancel the timer that this object armed before, and take over the timer of `other`. */
	timer &operator=(timer &&other) noexcept
	{
		timer taken(std::move(other));

		taken.swap(*this);
		return *this;
	}

	/* Calls cancel(), which waits until no other thread runs the timer's callable. */
	~timer()
	{
		cancel();
	}

	void swap(timer &other) noexcept
	{
		std::swap(hub_, other.hub_);
		std::swap(handle_, other.handle_);
		std::swap(block_, other.block_);
	}

	/* Arm the timer so that it expires after the delay `after`. */
	template <class Callable>
	[[nodiscard]] std::error_code arm_after(const queue &on, delay after, Callable &&callable,
	                                        delay slack = {})
	{
		return arm(on, spec_of(after.ns(), TIMERHUB_KEEP, slack),
		           std::forward<Callable>(callable));
	}

	/* Arm the timer for a point on the hub's clock. */
	template <class Callable>
	[[nodiscard]] std::error_code arm_at(const queue &on, deadline at, Callable &&callable,
	                                     delay slack = {})
	{
		return arm(on, spec_of(at.ns(), TIMERHUB_KEEP | TIMERHUB_ABSOLUTE, slack),
		           std::forward<Callable>(callable));
	}

	/*
	 * Arm the timer without a deadline. The timer does not expire before a call of
	 * expires_after() or expires_at().
	 */
	template <class Callable>
	[[nodiscard]] std::error_code arm_never(const queue &on, Callable &&callable,
	                                        delay slack = {})
	{
		return arm(on, spec_of(TIMERHUB_NEVER, TIMERHUB_KEEP, slack),
		           std::forward<Callable>(callable));
	}

	/*
	 * Arm a periodic timer. The timer first expires after one interval. expires_after() and
	 * expires_at() start the periods again. If the interval is 0 or negative, arm_every()
	 * returns EINVAL.
	 */
	template <class Callable>
	[[nodiscard]] std::error_code arm_every(const queue &on, delay interval,
	                                        Callable &&callable, delay slack = {})
	{
		timerhub_spec spec = spec_of(interval.ns(), 0, slack);

		spec.interval_ns = interval.ns();
		if (spec.interval_ns == 0) {
			cancel();
			return error(-EINVAL);
		}
		return arm(on, spec, std::forward<Callable>(callable));
	}

	/*
	 * Calls timerhub_rearm(), which moves the timer to `after` from now. An expiry that is not
	 * yet delivered is withdrawn. Thread-safe and lock-free, also in the timer's own callback.
	 * `*ret_idled` (may be NULL) says whether the timer's last expiry had been delivered.
	 * Errors: ENOENT if the timer is not armed or the queue is closed, or ERANGE.
	 */
	std::error_code expires_after(delay after, bool *ret_idled = nullptr) const noexcept
	{
		return rearm(after.ns(), 0, ret_idled);
	}

	/* Like expires_after(), but moves the timer to a point in time on the hub's clock. */
	std::error_code expires_at(deadline at, bool *ret_idled = nullptr) const noexcept
	{
		return rearm(at.ns(), TIMERHUB_ABSOLUTE, ret_idled);
	}

	/*
	 * Like expires_after(), but removes the timer's deadline. The timer stays armed.
	 * expires_never() does not wait for a callback that runs now.
	 */
	std::error_code expires_never(bool *ret_idled = nullptr) const noexcept
	{
		return rearm(TIMERHUB_NEVER, 0, ret_idled);
	}

	/*
	 * Calls timerhub_remaining(). `ret_remaining` becomes the time until the deadline. If the
	 * timer has no deadline or is idle, `ret_remaining` becomes clock::duration::max(). If the
	 * timer is not armed or the queue is closed, remaining() returns ENOENT.
	 */
	std::error_code remaining(clock::duration &ret_remaining) const noexcept
	{
		std::uint64_t ns = 0;
		const int result = handle_ ? timerhub_remaining(hub_, handle_, &ns) : -ENOENT;

		if (result == 0)
			ret_remaining = detail::from_ns(ns);
		return error(result);
	}

	/*
	 * Calls timerhub_cancel_sync(). cancel() blocks while the callback runs on another thread.
	 * After cancel(), even after an error, no other thread runs the callable, and it will not
	 * run again. cancel() also destroys the callable. Inside the timer's own callback, the
	 * callable lives until the callback returns. Errors: EOWNERDEAD, and ENOENT if the timer is
	 * not armed or the queue is closed.
	 */
	std::error_code cancel() noexcept
	{
		const withdrawn before(*this);

		return error(before.result);
	}

	/*
	 * Returns the handle for timerhub_rearm_many() and similar calls, or 0 if the timer is not
	 * armed. Only cancel() may cancel the timer, because the timer object does not notice if a
	 * call of timerhub.h cancels the timer.
	 */
	timerhub_timer handle() const noexcept
	{
		return handle_;
	}

      private:
	/*
	 * Cancels a timer, and then holds its callable. The destructor of the callable may arm,
	 * move or destroy the timer, so it runs when the caller has done with the timer.
	 */
	class withdrawn
	{
	      public:
		explicit withdrawn(timer &from) noexcept
		{
			if (!from.handle_)
				return;
			/*
			 * The callback on another thread may read `handle_`, so change `handle_`
			 * after the wait.
			 */
			result = timerhub_cancel_sync(from.hub_, from.handle_);
			from.handle_ = 0;
			block_ = from.block_;
		}

		~withdrawn()
		{
			if (block_)
				block_->leave();
		}

		withdrawn(const withdrawn &) = delete;
		withdrawn &operator=(const withdrawn &) = delete;

		int result = -ENOENT;

	      private:
		detail::block *block_ = nullptr;
	};

	static timerhub_spec spec_of(std::uint64_t expires_ns, std::uint32_t flags,
	                             delay slack) noexcept
	{
		timerhub_spec spec{};

		spec.size = sizeof(spec);
		spec.flags = flags;
		spec.expires_ns = expires_ns;
		spec.slack_ns = slack.ns();
		return spec;
	}

	/*
	 * Copy or move the argument `callable` before cancel(), because the copy or move may throw.
	 * Also, `callable` may be a reference to the timer's current callable, which cancel() may
	 * destroy.
	 */
	template <class Callable>
	std::error_code arm(const queue &on, timerhub_spec spec, Callable &&callable)
	{
		using stored = std::decay_t<Callable>;

		static_assert(std::is_invocable_v<stored &> ||
		                      std::is_invocable_v<stored &, expiry>,
		              "a callable takes no argument, or a timerhub::expiry");
		detail::check_stored<stored, Callable>();
		if constexpr (is_small_v<stored>) {
			const stored copy(std::forward<Callable>(callable));

			spec.data = detail::pack(copy);
			spec.fn = detail::call_small<stored>;
			const withdrawn before(*this);

			return detail::is_callable(copy) ? begin(on, spec, nullptr)
			                                 : error(-EINVAL);
		} else {
			auto *const home = new (std::nothrow)
				detail::block_of<stored>(std::forward<Callable>(callable));

			spec.ptr = home;
			spec.fn = detail::call_block<stored>;
			const withdrawn before(*this);

			return home ? begin(on, spec, home) : error(-ENOMEM);
		}
	}

	/*
	 * The callback may run on another thread before timerhub_arm() returns, and may read
	 * `hub_`, `block_` and `handle_`. Therefore begin() sets `hub_` and `block_` before it
	 * calls timerhub_arm(). timerhub_arm() sets `handle_` before the callback can run.
	 */
	std::error_code begin(const queue &on, const timerhub_spec &spec,
	                      detail::block *home) noexcept
	{
		hub_ = timerhub_queue_hub(on.native());
		block_ = home;
		const int result = spec.slack_ns <= detail::out_of_range / 2
		                           ? timerhub_arm(on.native(), &spec, &handle_)
		                           : -ERANGE;

		if (result < 0 && home)
			home->leave();
		return error(result);
	}

	std::error_code rearm(std::uint64_t expires_ns, std::uint32_t flags,
	                      bool *ret_idled) const noexcept
	{
		const int result =
			handle_ ? timerhub_rearm(hub_, handle_, expires_ns, flags) : -ENOENT;

		if (result >= 0 && ret_idled)
			*ret_idled = result > 0;
		return error(result);
	}

	/*
	 * Handle of the timer. If `handle_` is 0, the timer is not armed and the other members are
	 * invalid.
	 */
	timerhub_timer handle_ = 0;
	timerhub *hub_ = nullptr; /* the hub of the queue that the timer was armed on */
	/* The heap block that holds the callable; NULL: the callable is small. */
	detail::block *block_ = nullptr;
};

/*
 * A loop holds the timeouts of one event loop, and owns a struct timerhub_loop. The program must
 * call turn() in every turn of its event loop, right before the loop blocks. Timeouts expire only
 * inside turn(). A loop belongs to the thread that first adds, turns, settles or advances, or that
 * called adopt() last; other threads may only call queue(). A loop that is opened with the flag
 * TIMERHUB_LOOP_LOCKED may be used by any thread, one at a time, under a lock of the program.
 *
 * If a loop is moved, its timeouts belong to the new object.
 */
class loop
{
      public:
	loop() noexcept = default;

	loop(loop &&other) noexcept
	    : loop_(std::exchange(other.loop_, nullptr)), queue_(std::move(other.queue_))
	{
	}

	loop &operator=(loop &&other) noexcept
	{
		if (this != &other) {
			close();
			loop_ = std::exchange(other.loop_, nullptr);
			queue_.queue_ = std::exchange(other.queue_.queue_, nullptr);
		}
		return *this;
	}

	~loop()
	{
		close();
	}

	/*
	 * Calls timerhub_loop_open() without a hub. If config.size is 0, open() sets it. EBUSY: the
	 * loop is already open.
	 */
	[[nodiscard]] std::error_code open(timerhub_loop_config config = {}) noexcept
	{
		return open_on(nullptr, config);
	}

	/* Calls timerhub_loop_open() with a hub. If the hub is not open, open() returns EINVAL. */
	[[nodiscard]] std::error_code open(const hub &of, timerhub_loop_config config = {}) noexcept
	{
		return of.native() ? open_on(of.native(), config) : error(-EINVAL);
	}

	/*
	 * Calls timerhub_loop_close(), which removes the loop's timeouts. The timeout objects may
	 * be destroyed afterwards. Close the loop before its hub. The callable of a timeout may
	 * close both, but a callable of the loop's queue must not close the hub. If the loop is not
	 * open, close() does nothing.
	 */
	void close() noexcept
	{
		queue_.queue_ = nullptr; /* timerhub_loop_close() closes the queue */
		timerhub_loop_close(std::exchange(loop_, nullptr));
	}

	/* Calls timerhub_loop_fd(), and returns a descriptor to poll, or a negative errno. */
	int fd() const noexcept
	{
		return timerhub_loop_fd(loop_);
	}

	/*
	 * Calls timerhub_loop_timeout(), and returns how long the program may block. If the result
	 * is 0, the program must not block. If the result is clock::duration::max(), the program
	 * may block until a descriptor is ready.
	 */
	clock::duration timeout() const noexcept
	{
		return detail::from_ns(timerhub_loop_timeout(loop_));
	}

	/*
	 * Calls timerhub_loop_turn(), which calls the callables that are due. `*ret_count` (may be
	 * NULL) is the number of called callables. If a callable throws, the exception leaves
	 * turn(), and the next turn continues with the next callable.
	 */
	std::error_code turn(unsigned *ret_count = nullptr) const
	{
		const int result = timerhub_loop_turn(loop_);

		if (result >= 0 && ret_count)
			*ret_count = static_cast<unsigned>(result);
		return error(result);
	}

	/* The same in ms, for poll() and epoll_wait(): rounded up, and -1 for ever. */
	int timeout_ms() const noexcept
	{
		return timerhub_loop_timeout_ms(loop_);
	}

	/*
	 * Calls timerhub_loop_settle(), for a program that turns after its wait. `*ret_block` (may
	 * be NULL) is what timeout() returns.
	 */
	std::error_code settle(clock::duration *ret_block = nullptr) const noexcept
	{
		std::uint64_t block_ns;
		const int result = timerhub_loop_settle(loop_, &block_ns);

		if (result == 0 && ret_block)
			*ret_block = detail::from_ns(block_ns);
		return error(result);
	}

	/* Calls timerhub_loop_advance() of a loop opened with TIMERHUB_LOOP_MANUAL. */
	std::error_code advance(deadline now) const noexcept
	{
		return error(now.ns() <= static_cast<std::uint64_t>(clock::duration::max().count())
		                     ? timerhub_loop_advance(loop_, now.ns())
		                     : -ERANGE);
	}

	/*
	 * Calls timerhub_loop_adopt(): the calling thread owns the loop from now on. In a forked
	 * child, the loop becomes the child's if it has no hub.
	 */
	std::error_code adopt() const noexcept
	{
		return error(timerhub_loop_adopt(loop_));
	}

	/* Calls timerhub_loop_slow(): ret_count functions are stored in `ret`. */
	std::error_code slow(timerhub_slow_callback *ret, unsigned max,
	                     unsigned &ret_count) const noexcept
	{
		return counted(timerhub_loop_slow(loop_, ret, max), &ret_count);
	}

	/* Calls timerhub_loop_stats(). */
	std::error_code stats(struct timerhub_loop_stats &ret_stats) const noexcept
	{
		return error(timerhub_loop_stats(loop_, &ret_stats));
	}

	/*
	 * Calls timerhub_loop_now(): the loop's last reading of the clock. In the handler of a
	 * socket this is the time before the wait: call update() right after the wait if you use
	 * now() or timeout::set_at() there.
	 */
	time_point now() const noexcept
	{
		return time_point(detail::from_ns(timerhub_loop_now(loop_)));
	}

	/* Calls timerhub_loop_update(): reads the clock, and returns what now() returns next. */
	time_point update() const noexcept
	{
		return time_point(detail::from_ns(timerhub_loop_update(loop_)));
	}

	/*
	 * Calls timerhub_loop_due(): in the callable of a timeout, the deadline that it is called
	 * for; else time_point::max().
	 */
	time_point due() const noexcept
	{
		return time_point(detail::from_ns(timerhub_loop_due(loop_)));
	}

	/*
	 * Returns the queue of timerhub_loop_queue(). Any thread may arm timers on this queue, and
	 * turn() calls their callables. The program must use this queue only to arm timers. If the
	 * loop has no hub, the queue is not open.
	 */
	const timerhub_cpp::queue &queue() const noexcept
	{
		return queue_;
	}

	/*
	 * Returns the C object of the loop, for the calls of timerhub_loop.h; nullptr if the loop
	 * is not open.
	 */
	timerhub_loop *native() const noexcept
	{
		return loop_;
	}

      private:
	std::error_code open_on(timerhub *hub, timerhub_loop_config config) noexcept
	{
		if (loop_)
			return error(-EBUSY);
		if (config.size == 0)
			config.size = sizeof(config);
		const int result = timerhub_loop_open(&loop_, hub, &config);

		queue_.queue_ = timerhub_loop_queue(loop_);
		return error(result);
	}

	timerhub_loop *loop_ = nullptr;
	/* queue of the loop; timerhub_loop_close() closes the queue, not this object */
	timerhub_cpp::queue queue_;
};

namespace detail
{

/*
 * Replaces the time `out_of_range`, which a loop would accept, by UINT64_MAX, which a loop rejects.
 */
constexpr std::uint64_t of_loop(std::uint64_t ns) noexcept
{
	return ns == out_of_range ? UINT64_MAX : ns;
}

/*
 * The base class of every timeout. The C callback casts a pointer to this base to the timeout
 * object.
 */
class timeout_base : protected timerhub_timeout
{
      public:
	timeout_base(const timeout_base &) = delete;
	timeout_base &operator=(const timeout_base &) = delete;

	/*
	 * Calls timerhub_timeout_set(), which sets or moves the timeout to `after` from now. The
	 * timeout's own callable may call set(). Errors: ERANGE, EPERM, or EINVAL if the timeout is
	 * not added.
	 */
	std::error_code set(delay after) noexcept
	{
		return error(timerhub_timeout_set(loop_, this, of_loop(after.ns())));
	}

	/*
	 * Calls timerhub_timeout_set_at(). Like set(), but with a point in time on the loop's
	 * clock.
	 */
	std::error_code set_at(timerhub_cpp::deadline at) noexcept
	{
		return error(timerhub_timeout_set_at(loop_, this, of_loop(at.ns())));
	}

	/*
	 * Calls timerhub_timeout_stop(). `*ret_was_set` (may be NULL) says whether the timeout was
	 * set.
	 */
	std::error_code stop(bool *ret_was_set = nullptr) noexcept
	{
		const int result = timerhub_timeout_stop(loop_, this);

		if (result >= 0 && ret_was_set)
			*ret_was_set = result > 0;
		return error(result);
	}

	/* Calls timerhub_timeout_is_set(). */
	bool is_set() const noexcept
	{
		return timerhub_timeout_is_set(this) > 0;
	}

	/*
	 * Calls timerhub_timeout_deadline(). time_point::max() means that the timeout is not set.
	 */
	time_point expires() const noexcept
	{
		return time_point(from_ns(timerhub_timeout_deadline(this)));
	}

	/* Returns false if the timeout was not added, was removed, or its loop was closed. */
	bool is_added() const noexcept
	{
		return owner != 0;
	}

	/*
	 * Returns the C object of the timeout, for all calls of timerhub_loop.h except add and
	 * remove.
	 */
	timerhub_timeout *native() noexcept
	{
		return this;
	}

      protected:
	timeout_base() noexcept : timerhub_timeout()
	{
	}

	~timeout_base() = default;

	std::error_code add_to(const loop &on, timerhub_timeout_fn *fn) noexcept
	{
		loop_ = on.native();
		return error(timerhub_timeout_add(loop_, this, fn));
	}

	/*
	 * Removes the timeout, unless its loop is closed and has removed it. If the remove fails, a
	 * later callback would use freed memory, so the program ends.
	 */
	void remove_for_good() noexcept
	{
		if (is_added() && timerhub_timeout_remove(loop_, this) < 0)
			std::terminate();
	}

	timerhub_loop *loop_ = nullptr; /* the loop that the timeout was added to */
};

} // namespace detail

/*
 * A timeout of a loop and its callable, which takes no argument. The timeout can be a member of
 * another object. Only the loop's thread may call the methods and the destructor. The destructor
 * removes the timeout. If a thread other than the loop's thread destroys an added timeout, the
 * destructor calls std::terminate(), unless the loop is locked, or the process a forked child whose
 * loop nobody has adopted. A timeout can be neither copied nor moved. A timeout never allocates.
 *
 * timeout<> has 48 bytes. It accepts any small callable (is_small_v), such as a lambda that
 * captures `this`. timeout<Callable> stores a Callable of any size in the timeout object.
 *
 * The callable may destroy the timeout, and the object that has the timeout as a member, also if
 * that has the loop and the hub as members too. The callable stays valid until it returns, but it
 * must not touch the destroyed objects.
 */
template <class Callable = void> class timeout final : public detail::timeout_base
{
	static_assert(std::is_invocable_v<Callable &>, "a callable takes no argument");
	static_assert(std::is_nothrow_move_constructible_v<Callable>,
	              "a callable is moved out while it runs, and must not throw then");

      public:
	timeout() noexcept = default;

	~timeout()
	{
		this->remove_for_good();
		drop();
	}

	/*
	 * Calls timerhub_timeout_add(). An added timeout is not set yet. Errors: EAGAIN, EEXIST,
	 * EPERM, or EINVAL for a null function pointer or a loop that is not open. If the
	 * callable's constructor throws, the exception leaves add(), and the timeout is not added.
	 */
	template <class From> [[nodiscard]] std::error_code add(const loop &on, From &&callable)
	{
		if (this->is_added())
			return error(-EEXIST);
		drop();
		callable_.emplace(std::forward<From>(callable));
		const std::error_code result =
			detail::is_callable(*callable_) ? this->add_to(on, call) : error(-EINVAL);

		if (result)
			drop();
		return result;
	}

	/*
	 * Calls timerhub_timeout_remove(), and destroys the callable. A callable that runs now is
	 * destroyed when it returns. Errors: EPERM, or EINVAL if the timeout is not added or the
	 * loop is closed.
	 */
	std::error_code remove() noexcept
	{
		const int result = timerhub_timeout_remove(this->loop_, this);

		if (!this->is_added())
			drop();
		return error(result);
	}

      private:
	/*
	 * Holds the callable on the stack while it runs, so that the callable may destroy the
	 * timeout.
	 */
	class run
	{
	      public:
		/*
		 * The constructor is not inlined, because gcc 14 would warn that the timeout's
		 * `running_` may outlive the object of class run.
		 */
		[[gnu::noinline]] explicit run(timeout &home) noexcept
		    : callable(std::move(*home.callable_)), home_(&home)
		{
			home.callable_.reset();
			home.running_ = this;
		}

		~run()
		{
			if (!home_)
				return;
			home_->running_ = nullptr;
			home_->callable_.emplace(std::move(callable));
		}

		run(const run &) = delete;
		run &operator=(const run &) = delete;

		/*
		 * Do not put the callable back into the timeout, because the timeout is destroyed
		 * or has another callable.
		 */
		void leave() noexcept
		{
			home_ = nullptr;
		}

		Callable callable;

	      private:
		timeout *home_;
	};

	static void call(timerhub_loop *, timerhub_timeout *timeout_at)
	{
		run running(*static_cast<timeout *>(timeout_at));

		static_cast<void>(running.callable());
	}

	/*
	 * Destroys the callable. The callable's destructor may destroy this timeout, so drop()
	 * touches no member after the destructor has run.
	 */
	void drop() noexcept
	{
		if (running_)
			std::exchange(running_, nullptr)->leave();
		if (!callable_)
			return;
		[[maybe_unused]] const Callable dropped(std::move(*callable_));

		callable_.reset();
	}

	/* The callable; empty while the callable runs, and while the timeout is not added. */
	std::optional<Callable> callable_;
	/* the running call of the callable; NULL: the callable does not run */
	run *running_ = nullptr;
};

template <> class timeout<void> final : public detail::timeout_base
{
      public:
	timeout() noexcept = default;

	~timeout()
	{
		remove_for_good();
	}

	template <class Callable>
	[[nodiscard]] std::error_code add(const loop &on, Callable &&callable) noexcept
	{
		using stored = std::decay_t<Callable>;

		static_assert(is_small_v<stored>, "too large, or with state: timeout<Callable>");
		static_assert(std::is_invocable_v<const stored &>, "a callable takes no argument");
		detail::check_stored<stored, Callable>();
		const stored copy(std::forward<Callable>(callable));

		if (is_added())
			return error(-EEXIST);
		if (!detail::is_callable(copy))
			return error(-EINVAL);
		data_ = detail::pack(copy);
		return add_to(on, call<stored>);
	}

	std::error_code remove() noexcept
	{
		return error(timerhub_timeout_remove(loop_, this));
	}

      private:
	template <class Callable> static void call(timerhub_loop *, timerhub_timeout *timeout_at)
	{
		const detail::unpacked<Callable> copy(static_cast<timeout *>(timeout_at)->data_);

		static_cast<void>(copy.get()());
	}

	std::uint64_t data_ = 0; /* the bytes of the small callable */
};

} // namespace timerhub_cpp

/*
 * The names that programs use, such as timerhub::hub. timerhub.h declares a struct timerhub, so a
 * namespace cannot have the name timerhub. The names that programs use are therefore members of
 * struct timerhub. A program cannot make an object of struct timerhub. A program gets pointers to
 * struct timerhub from calls such as timerhub_open().
 */
struct timerhub {
	using clock = timerhub_cpp::clock;
	using time_point = timerhub_cpp::time_point;
	using delay = timerhub_cpp::delay;
	using deadline = timerhub_cpp::deadline;
	using expiry = timerhub_cpp::expiry;
	using hub = timerhub_cpp::hub;
	using queue = timerhub_cpp::queue;
	using timer = timerhub_cpp::timer;
	using loop = timerhub_cpp::loop;

	template <class Callable = void> using timeout = timerhub_cpp::timeout<Callable>;

	template <class Callable>
	static constexpr bool is_small_v = timerhub_cpp::is_small_v<Callable>;

	/*
	 * Converts the result of a C call to an error. If `result` is not negative, the error is
	 * empty.
	 */
	static std::error_code error(int result) noexcept
	{
		return timerhub_cpp::error(result);
	}

	timerhub() = delete;
	~timerhub() = delete;
};

#endif
