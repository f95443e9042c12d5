/* SPDX-License-Identifier: MIT */
/*
 * An echo server on epoll with timerhub.hpp (C++17). A session is an object that has its idle
 * timeout as a member, and each message moves it. When a session was silent for too long, the
 * callback destroys the session, and with it the timeout.
 *
 * It listens on 127.0.0.1. SIGINT and SIGTERM end it, and it then prints its counters.
 *
 * Usage: session_server [-p PORT] [-t IDLE_MS]
 *
 * PORT 0 (default): the kernel picks a free port, which is printed. IDLE_MS (default 3000): the
 * silence after which a session ends.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <timerhub.hpp>
#include <unordered_map>
#include <utility>

namespace
{

using namespace std::chrono_literals;

constexpr auto accept_retry = 100ms;
constexpr int batch = 64;

/*
 * Ends the program if `error` is set, for errors that it cannot handle.
 */
void must(const char *what, const std::error_code &error)
{
	if (!error)
		return;
	std::fprintf(stderr, "session_server: %s: %s\n", what, error.message().c_str());
	std::exit(1);
}

/* Returns the result of a system call. If the call failed, ends the program. */
int must(const char *what, int result)
{
	if (result < 0)
		must(what, std::error_code(errno, std::system_category()));
	return result;
}

/* Owns a file descriptor. */
class descriptor
{
      public:
	explicit descriptor(int fd = -1) : fd_(fd)
	{
	}

	descriptor(descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1))
	{
	}

	descriptor &operator=(descriptor &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}

	~descriptor()
	{
		if (fd_ >= 0)
			close(fd_);
	}

	int fd() const
	{
		return fd_;
	}

      private:
	int fd_;
};

struct figures {
	std::uint64_t accepted = 0, idle = 0, echoed_bytes = 0;
};

class server;

/*
 * Receives bytes and sends them back. A session cannot be moved, because its timeout points at it.
 */
class session
{
      public:
	session(server &owner, descriptor socket) : owner_(owner), socket_(std::move(socket))
	{
	}

	session(const session &) = delete;
	session &operator=(const session &) = delete;

	/* Adds and sets the idle timeout. Returns false if the loop has timeouts_max timeouts. */
	bool start();

	/*
	 * Receives and sends once, and not until EAGAIN: a client that is always ready would keep
	 * all others waiting. Returns false if the connection is closed, or after an error.
	 */
	bool go_on();

      private:
	void alive();
	bool receive();
	bool send();

	server &owner_;
	descriptor socket_;
	std::array<char, 4096> bytes_{};
	/* number of received bytes to send back; 0: the session is receiving */
	std::size_t length_ = 0;
	std::size_t sent_ = 0; /* number of the received bytes that were sent back */
	timerhub::timeout<> idle_;
};

class server
{
      public:
	server(std::uint16_t port, std::chrono::milliseconds idle);

	server(const server &) = delete;
	server &operator=(const server &) = delete;

	/* Runs until a signal comes. */
	void run();

	/* Destroys the session. */
	void end(int fd)
	{
		sessions_.erase(fd);
	}

	void watch(int operation, int fd, std::uint32_t events) const;

	const timerhub::loop &loop() const
	{
		return loop_;
	}

	const std::chrono::milliseconds idle;
	figures done;

      private:
	void listen_on(std::uint16_t port);
	void accept_all();
	void accept_one(descriptor socket);
	void ready(int fd);

	timerhub::loop loop_;
	descriptor epoll_, listener_, signals_;
	bool stopping_ = false;
	/* the sessions, by the descriptor of the socket */
	std::unordered_map<int, session> sessions_;
	/* when to accept again after accept4() had no descriptor or memory */
	timerhub::timeout<> retry_;
};

/* ---- a session ---- */

bool session::start()
{
	const auto expired = [this] {
		owner_.done.idle++;
		owner_.end(socket_.fd()); /* destroys this session and its timeout */
	};

	return !idle_.add(owner_.loop(), expired) && !idle_.set(owner_.idle);
}

bool session::go_on()
{
	const bool was_sending = length_ > 0;

	if (!((was_sending || receive()) && send()) && errno != EAGAIN)
		return false;
	if (was_sending != (length_ > 0))
		owner_.watch(EPOLL_CTL_MOD, socket_.fd(), length_ > 0 ? EPOLLOUT : EPOLLIN);
	return true;
}

/*
 * Moves the idle timeout, which cannot fail, because it is added and the time is in range.
 */
void session::alive()
{
	must("idle timeout", idle_.set(owner_.idle));
}

bool session::receive()
{
	const ssize_t count = recv(socket_.fd(), bytes_.data(), bytes_.size(), 0);

	if (count <= 0) {
		errno = count == 0 ? ECONNRESET : errno; /* go_on() would read EAGAIN as success */
		return false;
	}
	length_ = static_cast<std::size_t>(count);
	sent_ = 0;
	alive();
	return true;
}

bool session::send()
{
	const ssize_t count =
		::send(socket_.fd(), bytes_.data() + sent_, length_ - sent_, MSG_NOSIGNAL);

	if (count < 0)
		return false;
	sent_ += static_cast<std::size_t>(count);
	owner_.done.echoed_bytes += static_cast<std::uint64_t>(count);
	if (sent_ == length_)
		length_ = 0;
	alive();
	return true;
}

/* ---- the server ---- */

server::server(std::uint16_t port, std::chrono::milliseconds idle_for)
    : idle(idle_for), epoll_(must("epoll", epoll_create1(EPOLL_CLOEXEC)))
{
	sigset_t signals;

	must("loop", loop_.open());
	must("retry", retry_.add(loop_, [this] { watch(EPOLL_CTL_MOD, listener_.fd(), EPOLLIN); }));
	watch(EPOLL_CTL_ADD, must("timeouts", loop_.fd()), EPOLLIN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, nullptr);
	signals_ = descriptor(must("signalfd", signalfd(-1, &signals, SFD_CLOEXEC)));
	watch(EPOLL_CTL_ADD, signals_.fd(), EPOLLIN);
	listen_on(port);
}

void server::listen_on(std::uint16_t port)
{
	sockaddr_in address{};
	socklen_t size = sizeof(address);
	auto *const any = reinterpret_cast<sockaddr *>(&address);
	const int yes = 1;

	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener_ = descriptor(
		must("socket", socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
	must("address", setsockopt(listener_.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)));
	must("bind", bind(listener_.fd(), any, size));
	must("listen", listen(listener_.fd(), SOMAXCONN));
	must("address", getsockname(listener_.fd(), any, &size));
	watch(EPOLL_CTL_ADD, listener_.fd(), EPOLLIN);
	std::printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
	std::fflush(stdout);
}

void server::watch(int operation, int fd, std::uint32_t events) const
{
	epoll_event event{};

	event.events = events;
	event.data.fd = fd;
	must("epoll_ctl", epoll_ctl(epoll_.fd(), operation, fd, &event));
}

void server::accept_all()
{
	for (;;) {
		descriptor socket(
			accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));

		if (socket.fd() >= 0) {
			accept_one(std::move(socket));
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		           errno == ENOMEM) {
			/*
			 * The listener stays readable, so stop watching the listener until the
			 * retry timeout expires.
			 */
			watch(EPOLL_CTL_MOD, listener_.fd(), 0);
			must("retry", retry_.set(accept_retry));
			return;
		} else {
			return; /* return to epoll, which reports the next connection */
		}
	}
}

void server::accept_one(descriptor socket)
{
	const int fd = socket.fd();
	const auto place = sessions_.try_emplace(fd, *this, std::move(socket)).first;

	if (!place->second.start()) {
		sessions_.erase(place);
		return;
	}
	done.accepted++;
	watch(EPOLL_CTL_ADD, fd, EPOLLIN);
}

void server::ready(int fd)
{
	if (fd == signals_.fd()) {
		stopping_ = true;
	} else if (fd == listener_.fd()) {
		accept_all();
	} else if (!sessions_.at(fd).go_on()) {
		end(fd);
	}
}

void server::run()
{
	std::array<epoll_event, batch> events{};

	while (!stopping_) {
		must("turn", loop_.turn()); /* may destroy sessions: the batch has no events left */
		/*
		 * Serve all ready sockets before the next turn. epoll reports each once before it
		 * reports one again; three are the listener, the signals and the loop. EINTR:
		 * perhaps after a SIGSTOP.
		 */
		int left = static_cast<int>(sessions_.size()) + 3, timeout_ms = -1, count;
		do {
			count = epoll_wait(epoll_.fd(), events.data(), batch, timeout_ms);
			if (count < 0 && errno != EINTR)
				must("epoll_wait", count);
			for (int i = 0; i < count; i++) {
				const int fd = events[static_cast<std::size_t>(i)].data.fd;

				if (fd != loop_.fd())
					ready(fd);
			}
			left -= count;
			timeout_ms = 0;
		} while (left > 0 && (count == batch || count < 0));
	}
}

/* Returns a number in [0, max], or prints an error and exits. */
unsigned long number(const char *text, unsigned long max)
{
	char *end;
	const unsigned long value = std::strtoul(text, &end, 10);

	if (end != text && *end == '\0' && *text != '-' && value <= max)
		return value;
	std::fprintf(stderr, "session_server: %s: not a number up to %lu\n", text, max);
	std::exit(2);
}

} // namespace

int main(int argc, char **argv)
{
	std::chrono::milliseconds idle = 3s;
	std::uint16_t port = 0;
	int option;

	while ((option = getopt(argc, argv, "p:t:")) != -1) {
		if (option == 'p') {
			port = static_cast<std::uint16_t>(number(optarg, UINT16_MAX));
		} else if (option == 't') {
			idle = std::chrono::milliseconds(number(optarg, 1000000000));
		} else {
			std::fprintf(stderr, "Usage: session_server [-p PORT] [-t IDLE_MS]\n");
			return 2;
		}
	}
	server server(port, idle);
	server.run();
	std::printf("accepted=%ju idle=%ju echoed_bytes=%ju\n",
	            std::uintmax_t{ server.done.accepted }, std::uintmax_t{ server.done.idle },
	            std::uintmax_t{ server.done.echoed_bytes });
	return 0;
}
