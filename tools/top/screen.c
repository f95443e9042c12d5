/* SPDX-License-Identifier: MIT */
/*
 * Shows the live view of timerhub-top on a terminal (outputs.h). The tool has one thread, which
 * waits for keys until the next reading is due. Text that does not fit the terminal is cut off at
 * the right and at the bottom, but the last row always lists the keys.
 */
#include <console.h>
#include <curses.h>
#include <stdio.h>

#include "base/clock.h"
#include "outputs.h"

#define KEY_ESCAPE 27
#define MARKED_COLOURS 1 /* the colour pair of what is marked */

struct screen {
	struct watch *watch;
	enum view view;
	bool has_colours;
	uint64_t interval_ns;
	uint64_t next_ns; /* time of the next reading */
	uint64_t serial;  /* serial number of the shown hub */
	bool paused;
	bool quit;
};

/*
 * Returns the index of the shown hub or loop in watch->now. If it was closed, the first one is
 * shown from now on.
 */
static unsigned screen_index(struct screen *screen)
{
	const struct watch *watch = screen->watch;

	for (unsigned i = 0; i < watch->count; i++)
		if (watch->now[i].about.serial == screen->serial)
			return i;
	screen->serial = watch->now[0].about.serial;
	return 0;
}

static void screen_draw(struct screen *screen)
{
	struct page page = { .columns = (unsigned)COLS,
		             .rows = LINES > 1 ? (unsigned)LINES - 1 : 1 };
	bool has_others = screen->watch->count > 1;
	char keys[PAGE_COLUMNS_MAX + 1];

	page_fill(&page, screen->watch, screen->view, screen_index(screen));
	(void)erase();
	for (int i = 0; i < LINES - 1 && i < (int)page.count; i++) {
		(void)attrset(i == 0 || page.marked[i] ? A_BOLD : A_NORMAL);
		if (page.marked[i] && screen->has_colours)
			(void)attron(COLOR_PAIR(MARKED_COLOURS));
		(void)mvaddnstr(i, 0, page.lines[i], COLS);
	}
	(void)snprintf(keys, sizeof(keys), " q quit  w who  a ahead  space %s%s  %.3g s %s",
	               screen->paused ? "go on" : "pause",
	               has_others ? "  tab next hub  o overview" : "",
	               (double)screen->interval_ns / 1e9, screen->paused ? "(paused)" : "");
	(void)attrset(A_REVERSE);
	/*
	 * Leave the last column of the last row empty, because a character there makes some
	 * terminals scroll.
	 */
	(void)mvaddnstr(LINES - 1, 0, keys, COLS - 1);
	(void)attrset(A_NORMAL);
	(void)refresh();
}

static void screen_key(struct screen *screen, int key)
{
	enum view view = key == 'o' ? VIEW_OVERVIEW : key == 'a' ? VIEW_AHEAD : VIEW_WHO;
	const struct watch *watch = screen->watch;
	unsigned index = screen_index(screen), last = watch->count - 1;

	if (key == 'q' || key == 'Q' || key == KEY_ESCAPE)
		screen->quit = true;
	else if (key == ' ')
		screen->paused = !screen->paused;
	else if (key == 'o' || key == 'w' || key == 'a')
		screen->view = screen->view == view ? VIEW_ONE : view;
	else if (key == '\t' || key == 'n' || key == KEY_RIGHT)
		screen->serial = watch->now[index < last ? index + 1 : 0].about.serial;
	else if (key == KEY_BTAB || key == 'p' || key == KEY_LEFT)
		screen->serial = watch->now[index > 0 ? index - 1 : last].about.serial;
}

static int screen_loop(struct screen *screen, const volatile sig_atomic_t *stop)
{
	while (!screen->quit && !*stop) {
		uint64_t left_ns = reading_more(screen->next_ns, clock_monotonic_ns());

		screen_draw(screen);
		timeout((int)((left_ns + 999999) / 1000000));
		screen_key(screen, getch());
		if (clock_monotonic_ns() < screen->next_ns)
			continue;
		screen->next_ns = clock_monotonic_ns() + screen->interval_ns;
		/*
		 * A paused view reads no counters, but it must still notice when the process has no
		 * hub or loop any more.
		 */
		if (screen->paused ? target_refresh(&screen->watch->target) < 0
		                   : watch_read(screen->watch) < 0)
			return -1;
	}
	return 0;
}

int screen_run(struct watch *watch, uint64_t interval_ns, const volatile sig_atomic_t *stop)
{
	struct screen screen = {
		.watch = watch,
		.interval_ns = interval_ns,
		.next_ns = clock_monotonic_ns() + interval_ns,
		.serial = watch->now[0].about.serial,
	};
	/*
	 * Use newterm(), because it returns NULL if the terminal is unknown. initscr() would exit.
	 */
	SCREEN *terminal = newterm(NULL, stdout, stdin);
	int result;

	if (!terminal) {
		watch->target.refusal[0] = 0;
		return -1;
	}
	(void)cbreak();
	(void)noecho();
	(void)keypad(stdscr, TRUE);
	(void)curs_set(0);
	(void)set_escdelay(25);
	if (*console_colour(stdout, CONSOLE_BAD) != 0 && start_color() == OK)
		screen.has_colours = use_default_colors() == OK &&
		                     init_pair(MARKED_COLOURS, COLOR_RED, -1) == OK;
	result = screen_loop(&screen, stop);
	(void)endwin();
	delscreen(terminal);
	return result;
}
