/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes counter boards, and keeps a forked child from counting on its parent's.
 *
 * After a fork() the child has its parent's observable boards mapped and shared, and it may even be
 * in the middle of a call that counts. So board_forked() replaces each of them by private memory
 * before fork() returns in the child. For that a shared board is listed in `shown` from before its
 * first count until it is unmapped.
 *
 * board_hide() takes a board off that list before the board is unmapped. Otherwise board_forked()
 * would put private memory over whatever is mapped at the board's old address by then.
 *
 * `shown` is accessed relaxed, because nobody reads through its pointers, and the kernel's lock of
 * the address space already orders mapping, unmapping and forking.
 *
 * It is tested by tests/tools, and by the tests of timerhub_stats().
 */
#define _GNU_SOURCE
#include "board/counter_board.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define BOARD_SHOWN_MAX 256

static atomic_ptr shown[BOARD_SHOWN_MAX];

/*
 * Replaces each registered board (a shared mapping with counters) by private memory in a forked
 * child, so that the child does not change its parent's counters.
 */
static void board_forked(void)
{
	for (unsigned i = 0; i < BOARD_SHOWN_MAX; i++) {
		void *board = ptr_load_relaxed(&shown[i]);

		if (board)
			memory_unshare(
				&(struct memory){ .base = board, .bytes = sizeof(struct board) });
	}
}

static int atfork_result;

static void board_register(void)
{
	atfork_result = -pthread_atfork(NULL, NULL, board_forked);
}

/*
 * Registers a board, so that a forked child replaces it by private memory. Returns 0, -ENOSPC if
 * BOARD_SHOWN_MAX boards are registered, or the error of pthread_atfork(3).
 */
static int board_show(struct board *board)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, board_register);
	if (atfork_result < 0)
		return atfork_result;
	for (unsigned i = 0; i < BOARD_SHOWN_MAX; i++) {
		void *nobody = NULL;

		if (ptr_cas_relaxed(&shown[i], &nobody, board))
			return 0;
	}
	return -ENOSPC;
}

/* Unregisters a board, which will then be unmapped. Does nothing if the board is not registered. */
static void board_hide(struct board *board)
{
	for (unsigned i = 0; i < BOARD_SHOWN_MAX; i++) {
		void *mine = board;

		if (ptr_cas_relaxed(&shown[i], &mine, NULL))
			return;
	}
}

static void board_describe(struct board *board, const struct timerhub_config *config)
{
	static atomic_u64 opened;
	struct board_header *header = &board->header;

	*header = (struct board_header){
		.magic = BOARD_MAGIC,
		.version = BOARD_VERSION,
		.header_bytes = sizeof(*header),
		.board_bytes = sizeof(*board),
		.pid = (uint32_t)getpid(),
		.clock = config->clock,
		.manual = (config->flags & TIMERHUB_MANUAL) != 0,
		.timers_max = config->timers_max,
		.serial = u64_fetch_add_relaxed(&opened, 1), /* relaxed: only uniqueness matters */
		.opened_ns = clock_monotonic_ns(),
		.slow_ns = config->slow_ns,
	};
	(void)strncpy(header->thread_name, config->thread_name, BOARD_TEXT_BYTES - 1);
	(void)strncpy(header->library_version, TIMERHUB_VERSION, BOARD_TEXT_BYTES - 1);
}

/*
 * Allocates the memory of an observable board's memfd, so that later writes raise no SIGBUS. The
 * queues' counters are left out, because most are never used. Returns 0 or -ENOSPC.
 */
static int board_commit(int fd)
{
	return -posix_fallocate(fd, 0, (off_t)offsetof(struct board, queues));
}

int board_open(struct board **ret_board, int *ret_fd, const struct timerhub_config *config)
{
	bool observable = (config->flags & TIMERHUB_OBSERVABLE) != 0;
	struct memory memory = { .base = NULL };
	int fd = -1;
	int result;

	if (observable)
		result = memory_reserve_shown(&memory, sizeof(struct board), BOARD_NAME, &fd);
	else
		result = memory_reserve(&memory, sizeof(struct board));
	if (result == 0 && observable)
		result = board_commit(fd);
	if (result == 0 && observable)
		result = board_show(memory.base);
	if (result < 0) {
		memory_release(&memory);
		if (fd >= 0)
			(void)close(fd);
		return result;
	}
	board_describe(memory.base, config);
	*ret_board = memory.base;
	*ret_fd = fd;
	return 0;
}

void board_announce(struct board *board, bool open)
{
	/*
	 * Release, because timerhub-top (tools/top) acquires `state` and may then read the header.
	 */
	u32_store_release(&board->header.state, open ? BOARD_OPEN : BOARD_CLOSED);
}

void board_close(struct board *board, int fd)
{
	struct memory memory = { .base = board, .bytes = sizeof(*board) };

	if (fd >= 0)
		board_hide(board);
	memory_release(&memory);
	if (fd >= 0)
		(void)close(fd);
}
