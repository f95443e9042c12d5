/* SPDX-License-Identifier: MIT */
/*
 * The board (the page with a hub's counters): its header, a second mapping of the memfd, closes and
 * reuse, the stacks' and lanes' counts.
 */
#include "harness.h"

#include <string.h>
#include <sys/mman.h>
#include <timerhub.h>
#include <unistd.h>

#include "hub/hub.h"

static const struct timerhub_config about = {
	.flags = TIMERHUB_MANUAL | TIMERHUB_OBSERVABLE,
	.timers_max = 12345,
	.clock = TIMERHUB_CLOCK_REALTIME,
	.thread_name = "a name of more than sixteen bytes",
};

TEST(header_describes_the_hub, 20)
{
	uint64_t before_ns = clock_monotonic_ns();
	const struct board_header *header;
	struct board *board, *second;
	int fd, second_fd;

	expect_eq(board_open(&board, &fd, &about), 0);
	header = &board->header;
	expect_eq(header->magic, BOARD_MAGIC);
	expect_eq(header->version, BOARD_VERSION);
	expect_eq(header->header_bytes, sizeof(*header));
	expect_eq(header->board_bytes, sizeof(*board));
	expect_eq(header->pid, getpid());
	expect_eq(header->clock, about.clock);
	expect_eq(header->manual, 1);
	expect_eq(header->timers_max, about.timers_max);
	expect_le(before_ns, header->opened_ns);
	expect_le(header->opened_ns, clock_monotonic_ns());
	expect_eq(strncmp(header->thread_name, about.thread_name, BOARD_TEXT_BYTES - 1), 0);
	expect_eq(header->thread_name[BOARD_TEXT_BYTES - 1], '\0');
	expect_eq(strcmp(header->library_version, timerhub_version()), 0);
	expect_eq(board_open(&second, &second_fd, &about), 0);
	expect_eq(second->header.serial, header->serial + 1);
	board_close(second, second_fd);
	board_close(board, fd);
}

TEST(only_an_observable_board_has_a_file, 20)
{
	struct timerhub_config hidden = about;
	struct board *board, *shown;
	int fd;

	hidden.flags = TIMERHUB_MANUAL;
	expect_eq(board_open(&board, &fd, &hidden), 0);
	expect_eq(fd, -1);
	expect_eq(board->header.magic, BOARD_MAGIC);
	board_close(board, fd);

	expect_eq(board_open(&board, &fd, &about), 0);
	shown = mmap(NULL, sizeof(*shown), PROT_READ, MAP_SHARED, fd, 0);
	expect(shown != MAP_FAILED);
	u64_store_relaxed(&board->queues[BOARD_QUEUES_MAX - 1].put, 42);
	expect_eq(u64_load_relaxed(&shown->queues[BOARD_QUEUES_MAX - 1].put), 42);
	board_close(board, fd);
	expect_eq(munmap(shown, sizeof(*shown)), 0);
}

struct notes {
	uint64_t armed, live; /* sum of the counts of all free stacks on the board */
	uint64_t waiting;     /* sum of the counts of all inbox lanes on the board */
};

static struct notes notes_of(const struct board *board)
{
	struct notes notes = { .armed = 0 };

	for (unsigned i = 0; i < BOARD_SHARDS_MAX; i++) {
		uint64_t stack = u64_load_relaxed(&board->shards[i].stack);
		uint64_t used = u64_load_relaxed(&board->shards[i].used);

		notes.armed += (stack >> BOARD_DEPTH_BITS) + used;
		notes.live += used - (stack & ((1u << BOARD_DEPTH_BITS) - 1));
	}
	for (unsigned i = 0; i < BOARD_LANES_MAX; i++)
		notes.waiting += u64_load_relaxed(&board->lanes[i].tail) -
		                 u64_load_relaxed(&board->lanes[i].head);
	return notes;
}

static void expect_notes(const struct timerhub *hub, uint64_t armed, uint64_t live,
                         uint64_t waiting)
{
	struct notes notes = notes_of(hub->board);
	bool shown = hub->board_fd >= 0;

	expect_eq(notes.armed, shown ? armed : 0);
	expect_eq(notes.live, shown ? live : 0);
	expect_eq(notes.waiting, shown ? waiting : 0);
}

static void check_notes(uint32_t flags)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_MANUAL | flags,
		                          .timers_max = 64 };
	struct timerhub *hub;
	struct timerhub_queue *queue;
	timerhub_timer timers[10];

	expect_eq(timerhub_open(&hub, &config), 0);
	expect_eq(u64_load_relaxed(&hub->board->owner.tid), 0);
	expect_eq(timerhub_queue_open(hub, &queue, NULL), 0);
	expect_notes(hub, 0, 0, 0);
	for (unsigned i = 0; i < 10; i++)
		expect_eq(timerhub_after(queue, SEC, i, &timers[i]), 0);
	expect_notes(hub, 10, 10, 10);
	expect_eq(timerhub_advance(hub, 1, NULL), 0);
	expect_notes(hub, 10, 10, 0);
	expect_eq(timerhub_cancel_many(hub, timers, 4), 4);
	expect_notes(hub, 10, 6, 0);
	for (unsigned i = 0; i < 2; i++)
		expect_eq(timerhub_after(queue, SEC / 2, i, NULL), 0);
	expect_notes(hub, 12, 8, 2);
	timerhub_close(hub);
}

TEST(notes_are_left_for_who_looks_and_nobody_else, 20)
{
	check_notes(TIMERHUB_OBSERVABLE);
	check_notes(0);
}

static void expect_on_board(const struct board_queue *counts, int fd, uint64_t waiting)
{
	expect_eq(u64_load_relaxed(&counts->fd_plus_one), fd + 1);
	expect_eq(u64_load_relaxed(&counts->put) - u64_load_relaxed(&counts->delivered) -
	                  u64_load_relaxed(&counts->passed_over),
	          waiting);
}

/* The next with the same index begins at zero. */
TEST(queues_come_and_go_on_the_board, 20)
{
	struct timerhub_config config = { .size = sizeof(config),
		                          .flags = TIMERHUB_MANUAL,
		                          .timers_max = 4 };
	struct timerhub_queue *queues[3];
	struct timerhub *hub;

	expect_eq(timerhub_open(&hub, &config), 0);
	for (unsigned i = 0; i < COUNT_OF(queues); i++) {
		expect_eq(u64_load_relaxed(&hub->board->callers.queues_end), i);
		expect_eq(timerhub_queue_open(hub, &queues[i], NULL), 0);
		expect_on_board(&hub->board->queues[i], timerhub_queue_fd(queues[i]), 0);
	}
	expect_eq(timerhub_after(queues[1], 1, 0, NULL), 0);
	expect_eq(timerhub_advance(hub, SEC, NULL), 0);
	expect_on_board(&hub->board->queues[1], timerhub_queue_fd(queues[1]), 1);
	timerhub_queue_close(queues[1]);
	expect_eq(u64_load_relaxed(&hub->board->queues[1].fd_plus_one), 0);
	expect_eq(timerhub_queue_open(hub, &queues[1], NULL), 0);
	expect_on_board(&hub->board->queues[1], timerhub_queue_fd(queues[1]), 0);
	expect_eq(u64_load_relaxed(&hub->board->callers.queues_end), COUNT_OF(queues));
	timerhub_close(hub);
}
