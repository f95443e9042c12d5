/* SPDX-License-Identifier: MIT */
/*
 * Law 9: the callbacks of a loop's timeouts and of the loop's queue throw C++ exceptions through
 * timerhub_loop_turn(). After an exception the loop stays usable, and the next turn continues with
 * the next callback. The tests use virtual time.
 */
#include <timerhub_loop.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace
{

constexpr unsigned rounds = 2000;

[[noreturn]] void fail(int line, const char *what)
{
	std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, what);
	std::exit(1);
}

#define expect(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))

timerhub *hub;
timerhub_loop *loop;
uint64_t now_ns;
unsigned calls;

void advance(uint64_t ns)
{
	now_ns += ns;
	expect(timerhub_advance(hub, now_ns, nullptr) == 0);
}

void begin()
{
	timerhub_config config{};

	config.size = sizeof(config);
	config.flags = TIMERHUB_MANUAL;
	config.timers_max = 100;
	expect(timerhub_open(&hub, &config) == 0);
	expect(timerhub_loop_open(&loop, hub, nullptr) == 0);
	now_ns = 0;
	calls = 0;
}

void end()
{
	timerhub_loop_close(loop);
	timerhub_close(hub);
}

/* Runs a turn of the loop. The turn must throw an exception. */
void turn_throws()
{
	bool thrown = false;

	try {
		(void)timerhub_loop_turn(loop);
	} catch (const std::runtime_error &) {
		thrown = true;
	}
	expect(thrown);
}

timerhub_timeout first, second, third;

void on_plain(timerhub_loop *, timerhub_timeout *)
{
	calls++;
}

void on_throwing(timerhub_loop *of, timerhub_timeout *timeout)
{
	calls++;
	/* The calls that a callback makes before it throws must take effect. */
	expect(timerhub_timeout_set(of, timeout, 1000) == 0);
	expect(timerhub_timeout_set(of, &third, 1000) == 0);
	throw std::runtime_error("out of a timeout");
}

/*
 * The callback of the first timeout throws. The next turn calls the callback of the second timeout.
 * Later turns call the remaining callbacks when their timeouts are due.
 */
void timeouts_may_throw()
{
	begin();
	expect(timerhub_timeout_add(loop, &first, on_throwing) == 0);
	expect(timerhub_timeout_add(loop, &second, on_plain) == 0);
	expect(timerhub_timeout_add(loop, &third, on_plain) == 0);
	for (unsigned round = 0; round < rounds; round++) {
		calls = 0;
		expect(timerhub_timeout_set_at(loop, &first, now_ns) == 0);
		expect(timerhub_timeout_set_at(loop, &second, now_ns) == 0);
		expect(timerhub_timeout_set_at(loop, &third, now_ns + 500) == 0);
		advance(1);
		turn_throws();
		while (calls < 2) /* the second callback may come before or after the exception */
			expect(timerhub_loop_turn(loop) == 1);
		expect(timerhub_timeout_is_set(&first) == 1);
		expect(timerhub_timeout_is_set(&second) == 0);
		expect(timerhub_timeout_deadline(&third) == now_ns + 1000);
		expect(timerhub_loop_turn(loop) == 0);
		expect(timerhub_loop_timeout(loop) <= 1000);
		expect(timerhub_timeout_stop(loop, &first) == 1);
		advance(999);
		expect(timerhub_loop_turn(loop) == 0);
		advance(1);
		expect(timerhub_loop_turn(loop) == 1);
	}
	end();
}

void on_event(const timerhub_event *)
{
	calls++;
	expect(timerhub_timeout_set(loop, &second, 10) == 0);
	throw std::runtime_error("out of a timer");
}

void timers_of_the_queue_may_throw()
{
	begin();
	expect(timerhub_timeout_add(loop, &second, on_plain) == 0);
	for (unsigned round = 0; round < rounds; round++) {
		calls = 0;
		for (unsigned i = 0; i < 3; i++)
			expect(timerhub_call(timerhub_loop_queue(loop), 0, on_event, nullptr,
			                     nullptr) == 0);
		advance(100);
		for (unsigned i = 1; i <= 3; i++) {
			turn_throws();
			expect(calls == i);
			expect(timerhub_timeout_deadline(&second) == now_ns + 10);
			/* the events that the exception left come in the next turn */
			expect(timerhub_loop_timeout(loop) == (i < 3 ? 0 : 10));
		}
		expect(timerhub_loop_turn(loop) == 0);
		advance(10);
		expect(timerhub_loop_turn(loop) == 1);
	}
	end();
}

/*
 * The turn that an exception has ended must set the descriptor for what the callback has set: a
 * program that polls it asks for nothing else before it sleeps.
 */
void timeout_of_a_throwing_timer_reaches_the_descriptor()
{
	begin();
	expect(timerhub_timeout_add(loop, &second, on_plain) == 0);
	for (unsigned round = 0; round < rounds; round++) {
		uint64_t next_ns = 0;

		calls = 0;
		expect(timerhub_call(timerhub_loop_queue(loop), 0, on_event, nullptr, nullptr) ==
		       0);
		advance(100);
		turn_throws();
		expect(timerhub_advance(hub, now_ns, &next_ns) == 0);
		expect(next_ns == now_ns + 10);
		advance(10);
		expect(timerhub_loop_turn(loop) == 1 && calls == 2);
	}
	end();
}

void on_closing(timerhub_loop *of, timerhub_timeout *)
{
	calls++;
	timerhub_loop_close(of);
	throw std::runtime_error("out of a closed loop");
}

void loop_may_be_closed_and_left()
{
	for (unsigned round = 0; round < rounds; round++) {
		begin();
		expect(timerhub_timeout_add(loop, &first, on_closing) == 0);
		expect(timerhub_timeout_add(loop, &second, on_plain) == 0);
		expect(timerhub_timeout_set(loop, &first, 0) == 0);
		expect(timerhub_timeout_set(loop, &second, 0) == 0);
		advance(1);
		/*
		 * The two deadlines are equal, so the loop may call on_plain() before on_closing().
		 */
		turn_throws();
		expect(calls <= 2);
		expect(timerhub_timeout_is_set(&second) == 0);
		timerhub_close(hub);
	}
}

void on_closing_all(timerhub_loop *of, timerhub_timeout *timeout)
{
	calls++;
	timerhub_loop_close(of);
	timerhub_close(hub);
	*timeout = timerhub_timeout{};
	throw std::runtime_error("out of a loop whose hub is closed too");
}

void hub_may_be_closed_after_its_loop()
{
	for (unsigned round = 0; round < rounds; round++) {
		begin();
		expect(timerhub_timeout_add(loop, &first, on_closing_all) == 0);
		expect(timerhub_timeout_set(loop, &first, 0) == 0);
		advance(1);
		turn_throws();
		expect(calls == 1);
	}
}

/*
 * The timeout's callback removes the timeout, frees the object that contains the timeout, and
 * throws.
 */
struct session {
	timerhub_timeout idle{};
	unsigned number = 0;
};

void on_idle(timerhub_loop *of, timerhub_timeout *timeout)
{
	session *self = reinterpret_cast<session *>(timeout);

	calls++;
	expect(timerhub_timeout_remove(of, timeout) == 0);
	delete self;
	throw std::runtime_error("out of a session that is gone");
}

void memory_may_be_freed_before_throwing()
{
	begin();
	for (unsigned round = 0; round < rounds; round++) {
		session *self = new session;

		calls = 0;
		expect(timerhub_timeout_add(loop, &self->idle, on_idle) == 0);
		expect(timerhub_timeout_set(loop, &self->idle, 5) == 0);
		expect(timerhub_loop_turn(loop) == 0);
		advance(5);
		turn_throws();
		expect(calls == 1);
		expect(timerhub_loop_turn(loop) == 0);
	}
	end();
}

} // namespace

int main()
{
	timeouts_may_throw();
	timers_of_the_queue_may_throw();
	timeout_of_a_throwing_timer_reaches_the_descriptor();
	loop_may_be_closed_and_left();
	hub_may_be_closed_after_its_loop();
	memory_may_be_freed_before_throwing();
	return 0;
}
