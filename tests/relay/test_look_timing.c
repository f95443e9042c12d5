/* SPDX-License-Identifier: MIT */
/*
 * Tests look_timing.c, which computes the times at which a relay polls (looks). The test runs in
 * virtual time, with up to a thousand relays and a model of Redis in memory. The model follows
 * sit(), promise() and ring() of timerhub.lua, which assign ranks and send wake-up messages
 * (bells). functions_test.py tests timerhub.lua itself. Each relay has a network delay of its own.
 * The tests delay messages, let wake-up messages overtake replies, kill relays, and set the clock
 * of Redis.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <harness.h>

#include <relay/look_timing.h>

#define RELAYS_MAX 1000u
#define HORIZON_US UINT64_C(10000000)
#define GRACE_US UINT64_C(100000)
#define TASKS_MAX 64u
#define NONE UINT64_MAX
/* The following constants have the values of timerhub.lua's constants. */
#define SEATS_RUNG 8u
#define OVERDUE_US UINT64_C(1000000)

/* A message in flight to a relay: a reply, or a wake-up message (bell). */
struct message {
	uint64_t at_ns;
	bool is_bell;
	struct look_timing_answer answer;
	struct look_timing_bell bell;
};

struct actor {
	struct look_timing timing;
	double order; /* score in the key `seats`; a lower score gives a lower rank */
	bool seated, alive;
	bool hangs;          /* its connection is open, so it receives bells, but it does nothing */
	uint64_t way_ns;     /* time that a message from the relay to Redis takes */
	uint64_t arrives_ns; /* time at which a poll arrives, or NONE */
	struct message answer, bell; /* messages to the relay; in flight unless at_ns is NONE */
};

static struct actor actors[RELAYS_MAX];
static unsigned actor_count;
static uint64_t now_ns, look_by_us;
static int64_t clock_us; /* Redis's clock minus the local clock */
static uint64_t dues_us[TASKS_MAX];
static unsigned task_count;
static uint64_t looks, latest_us, late_count;
static struct dice dice;

static uint64_t there_us(void)
{
	return (uint64_t)((int64_t)(now_ns / US) + clock_us);
}

/* ---- Redis ---- */

static bool is_before(const struct actor *a, const struct actor *b)
{
	return a->order < b->order || (a->order == b->order && a < b);
}

static unsigned rank_of(const struct actor *actor)
{
	unsigned rank = 0;

	for (unsigned i = 0; i < actor_count; i++)
		rank += actors[i].seated && is_before(&actors[i], actor);
	return rank;
}

static struct actor *at_rank(unsigned rank)
{
	struct actor *before = NULL, *found = NULL;

	for (unsigned i = 0; i <= rank; i++) {
		found = NULL;
		for (struct actor *one = actors; one < actors + actor_count; one++)
			if (one->seated && (!before || is_before(before, one)) &&
			    (!found || is_before(one, found)))
				found = one;
		before = found;
		if (!found)
			return NULL;
	}
	return found;
}

static void send_bell(struct actor *actor, const struct look_timing_bell *bell)
{
	/*
	 * If a second wake-up message is sent before the first has arrived, the relay gets the
	 * earlier due time.
	 */
	if (actor->bell.at_ns == NONE || bell->due_us < actor->bell.bell.due_us)
		actor->bell = (struct message){
			.at_ns = now_ns + actor->way_ns,
			.is_bell = true,
			.bell = *bell,
		};
}

static void ring(uint64_t due_us)
{
	struct look_timing_bell bell = { .due_us = due_us };
	unsigned deaf = 0;
	struct actor *actor;
	bool dead = look_by_us != NONE && there_us() > look_by_us + OVERDUE_US;

	if (dead)
		bell.due_us = there_us();
	else if (due_us >= look_by_us)
		return;
	else
		look_by_us = bell.due_us;
	while (bell.rank < 2 && bell.rank + deaf < SEATS_RUNG &&
	       (actor = at_rank((unsigned)bell.rank))) {
		if (!actor->alive && !actor->hangs) {
			actor->seated = false;
			deaf++;
			continue;
		}
		send_bell(actor, &bell);
		bell.rank++;
	}
	bell.is_common = true;
	for (unsigned i = 0; (bell.rank == 0 || dead) && i < actor_count; i++)
		if (actors[i].alive)
			send_bell(&actors[i], &bell);
}

static void put(uint64_t due_us)
{
	if (task_count < TASKS_MAX) {
		dues_us[task_count++] = due_us;
		ring(due_us);
	}
}

static void promote(void)
{
	for (unsigned i = 0; i < task_count;) {
		if (dues_us[i] > there_us()) {
			i++;
			continue;
		}
		if (there_us() - dues_us[i] > latest_us)
			latest_us = there_us() - dues_us[i];
		late_count += there_us() - dues_us[i] > 60;
		dues_us[i] = dues_us[--task_count];
	}
}

static void look(struct actor *actor)
{
	uint64_t now_us = there_us(), first_us = now_us + HORIZON_US, wait_us;
	unsigned rank;

	looks++;
	promote();
	actor->seated = true;
	rank = rank_of(actor);
	if (rank > 0 && (now_us >= look_by_us + GRACE_US || look_by_us > now_us + HORIZON_US)) {
		for (unsigned i = 0; i < actor_count; i++)
			if (actors[i].seated && actors[i].order < actor->order)
				actors[i].order += 1;
		rank = rank_of(actor);
	}
	if (rank == 0) {
		for (unsigned i = 0; i < task_count; i++)
			first_us = dues_us[i] < first_us ? dues_us[i] : first_us;
		look_by_us = first_us;
		wait_us = first_us - now_us;
	} else {
		wait_us = look_by_us < now_us + HORIZON_US ? look_by_us : now_us + HORIZON_US;
		wait_us = wait_us + look_timing_ladder_us(rank, GRACE_US) - now_us;
	}
	actor->answer = (struct message){
		.at_ns = now_ns + actor->way_ns,
		.answer = { .now_us = now_us, .wait_us = wait_us, .rank = rank },
	};
}

/* ---- relays ---- */

static uint64_t next_of(const struct actor *actor)
{
	uint64_t next_ns = NONE;

	if (!actor->alive)
		return NONE;
	if (actor->arrives_ns == NONE && actor->answer.at_ns == NONE)
		next_ns = look_timing_due_ns(&actor->timing);
	next_ns = actor->arrives_ns < next_ns ? actor->arrives_ns : next_ns;
	next_ns = actor->answer.at_ns < next_ns ? actor->answer.at_ns : next_ns;
	return actor->bell.at_ns < next_ns ? actor->bell.at_ns : next_ns;
}

static void act(struct actor *actor)
{
	if (actor->bell.at_ns <= now_ns) {
		actor->bell.at_ns = NONE;
		look_timing_rung(&actor->timing, &actor->bell.bell, now_ns);
	} else if (actor->answer.at_ns <= now_ns) {
		actor->answer.at_ns = NONE;
		look_timing_answered(&actor->timing, &actor->answer.answer);
	} else if (actor->arrives_ns <= now_ns) {
		actor->arrives_ns = NONE;
		look(actor);
	} else {
		look_timing_sent(&actor->timing, now_ns);
		actor->arrives_ns = now_ns + actor->way_ns;
	}
}

static void run_until(uint64_t until_ns)
{
	for (;;) {
		struct actor *first = NULL;
		uint64_t first_ns = NONE;

		for (unsigned i = 0; i < actor_count; i++) {
			uint64_t next_ns = next_of(&actors[i]);

			if (next_ns < first_ns) {
				first_ns = next_ns;
				first = &actors[i];
			}
		}
		if (!first || first_ns > until_ns)
			break;
		if (first_ns > now_ns)
			now_ns = first_ns;
		act(first);
	}
	now_ns = until_ns;
}

static void start(struct actor *actor)
{
	look_timing_init(&actor->timing, GRACE_US);
	actor->alive = true;
	actor->arrives_ns = actor->answer.at_ns = actor->bell.at_ns = NONE;
}

static void begin(unsigned count)
{
	memset(actors, 0, sizeof(actors));
	actor_count = count;
	now_ns = 1000 * SEC;
	clock_us = INT64_C(1700000000000000);
	look_by_us = NONE;
	task_count = 0;
	for (unsigned i = 0; i < count; i++) {
		actors[i].order = (double)(dice_roll(&dice) % 1000000) / 1e6;
		actors[i].way_ns = 50 * US + dice_roll(&dice) % (5 * MS);
		start(&actors[i]);
	}
	run_until(now_ns + SEC);
	looks = latest_us = late_count = 0;
}

TEST(one_relay_looks_once_for_each_due_instant, 60)
{
	begin(1);
	for (unsigned i = 0; i < 1000; i++) {
		put(there_us() + 20000 + dice_roll(&dice) % 5000000);
		run_until(now_ns + 10 * SEC);
	}
	expect_eq(task_count, 0);
	/*
	 * Relays poll at the due time, and once in each horizon. A put that is due before look_by
	 * sends a wake-up message, but causes no additional poll.
	 */
	expect_cmp(looks, <=, 1000 * 2 + 10);
	/* A task that is due while a reply is in flight is as late as the reply. */
	expect_cmp(latest_us, <=, 10100);
	expect_cmp(late_count, <=, 20);
}

/*
 * The relays of the first ranks are killed, or hang (stopped, or cut off). Then tasks are put. A
 * wake-up message to a killed relay has no receiver, so the put wakes the next relay. A message to
 * a relay that hangs is received, but no poll follows.
 */
static const struct scene {
	unsigned relays, rounds;
	unsigned dead, hang; /* so many of the first ranks */
	unsigned puts;
	bool earlier;                  /* behind each put one that is due in half the time */
	uint64_t ahead_us, step_ns;    /* of each put */
	uint64_t latest_us, looks_max; /* a put; 0: any number of looks */
} scenes[] = {
	/*
	 * The relay of rank 0 polls once for each task. All other relays together poll at most
	 * twice in each grace period.
	 */
	{ 16, 1, 0, 0, 200, false, 40000, 50 * MS, 15000, 200 + 200 },
	/*
	 * A task is late by LOOK_TIMING_MARGIN_NS, or by the time that a bell needs to reach a
	 * relay, and never by a failover delay (GRACE_US).
	 */
	{ 50, 1, 0, 0, 300, true, 4000000, 9 * SEC, 15000, 0 },
	/* if the relay of rank 0 dies, that of rank 1 polls one grace later */
	{ 20, 200, 1, 0, 1, false, 1000000, 2 * SEC, GRACE_US + 20000, 0 },
	/* if a promised poll is overdue by OVERDUE_US (1 s), the next put wakes all relays */
	{ 30, 20, 20, 0, TASKS_MAX, false, 20000, 50 * MS, OVERDUE_US + 100000, 0 },
	{ 3, 1, 0, 2, 2 * TASKS_MAX, false, 300000, 500 * MS, OVERDUE_US + 500000 + GRACE_US, 0 },
	{ 30, 1, 0, 2, 2 * TASKS_MAX, false, 300000, 500 * MS, OVERDUE_US + 500000 + GRACE_US, 0 },
	{ 30, 1, 0, 8, 2 * TASKS_MAX, false, 300000, 500 * MS, OVERDUE_US + 500000 + GRACE_US, 0 },
	{ 30, 1, 0, 15, 2 * TASKS_MAX, false, 300000, 500 * MS, OVERDUE_US + 500000 + GRACE_US, 0 },
};

static void play(const struct scene *scene)
{
	begin(scene->relays);
	run_until(now_ns + 60 * SEC); /* each relay has a rank */
	for (unsigned rank = 0; rank < scene->dead + scene->hang; rank++) {
		struct actor *actor = at_rank(rank);

		actor->hangs = rank >= scene->dead;
		actor->alive = false;
	}
	looks = latest_us = 0;
	for (unsigned i = 0; i < scene->puts; i++) {
		put(there_us() + scene->ahead_us);
		if (scene->earlier)
			put(there_us() + scene->ahead_us / 2);
		run_until(now_ns + scene->step_ns);
	}
	expect_cmp(looks, <=, scene->looks_max ? scene->looks_max : UINT64_MAX);
	run_until(now_ns + SEC);
	expect_eq(task_count, 0);
	expect_cmp(latest_us, <=, scene->latest_us);
}

TEST_LOOP(puts_are_in_time_whoever_dies, 60, COUNT_OF(scenes))
{
	for (unsigned round = 0; round < scenes[_i].rounds; round++)
		play(&scenes[_i]);
}

TEST(idle_relays_look_seldom_however_many, 60)
{
	static const unsigned counts[] = { 1, 2, 10, 100, 1000 };

	for (unsigned i = 0; i < COUNT_OF(counts); i++) {
		begin(counts[i]);
		run_until(now_ns + 20 * SEC); /* after 20 s each relay has a rank */
		looks = 0;
		run_until(now_ns + 100 * SEC);
		/*
		 * In these 100 s the relay of rank 0 polls 10 times. A relay of a high rank polls 5
		 * times or less: it waits for 15 s, and 0.1 s for each rank, after the time at
		 * which the relay of rank 0 should poll.
		 */
		expect_cmp(looks, <=, counts[i] == 1 ? 20 : 150 + 5 * counts[i]);
		expect_cmp(looks, >=, 10);
	}
}

TEST(deaths_at_random_cost_no_more_than_the_ladder, 120)
{
	for (unsigned i = 0; i < 20; i++) {
		unsigned left = 1000;

		begin(1000);
		for (unsigned j = 0; j < 100; j++) {
			for (unsigned k = 0; k < 9 && left > 1; k++) {
				struct actor *actor = &actors[dice_roll(&dice) % actor_count];

				left -= actor->alive;
				actor->alive = false;
				if (left == 0)
					actor->alive = true;
			}
			put(there_us() + dice_roll(&dice) % 3000000);
			run_until(now_ns + 3 * SEC);
		}
		/*
		 * If the first eight registered relays are all killed relays, a put removes the
		 * registrations of these eight relays.
		 */
		run_until(now_ns + 600 * SEC);
		expect_eq(task_count, 0);
		expect_cmp(latest_us, <=, HORIZON_US + 15 * SEC / US + 1000 * GRACE_US);
	}
}

TEST(the_clock_of_redis_may_be_set, 60)
{
	static const int64_t steps_us[] = { INT64_C(3600000000), INT64_C(-3600000000), 5000000,
		                            -5000000 };

	for (unsigned i = 0; i < COUNT_OF(steps_us); i++) {
		begin(10);
		run_until(now_ns + 20 * SEC);
		clock_us += steps_us[i];
		put(there_us() + 2000000);
		run_until(now_ns + 30 * SEC);
		expect_eq(task_count, 0);
		/*
		 * Only the first task after the clock was set may be late by more than GRACE_US:
		 * if the clock was set back, its put lowers look_by, which is too far ahead.
		 */
		latest_us = 0;
		for (unsigned j = 0; j < 20; j++) {
			put(there_us() + 1000000);
			run_until(now_ns + 2 * SEC);
		}
		expect_cmp(latest_us, <=, GRACE_US);
	}
}

TEST(a_bell_outlives_an_answer_that_is_older, 20)
{
	struct look_timing timing;
	struct look_timing_answer answer = { .now_us = 1000000, .wait_us = 5000000 };
	struct look_timing_bell bell = { .due_us = 1500000, .rank = 0 };

	look_timing_init(&timing, GRACE_US);
	expect_eq(look_timing_due_ns(&timing), 0);
	look_timing_sent(&timing, 7 * SEC);
	expect(look_timing_due_ns(&timing) == LOOK_TIMING_NEVER);
	look_timing_answered(&timing, &answer);
	expect_eq(look_timing_due_ns(&timing), 12 * SEC + LOOK_TIMING_MARGIN_NS);
	/*
	 * The wake-up message arrives while a poll is in flight. The poll may have run before the
	 * put that sent the message. Therefore the reply to the poll must not raise the time of the
	 * next poll above the message's time.
	 */
	look_timing_sent(&timing, 8 * SEC);
	look_timing_rung(&timing, &bell, 8 * SEC);
	answer.now_us = 1000001;
	look_timing_answered(&timing, &answer);
	expect_eq(look_timing_due_ns(&timing), 7 * SEC + 500 * MS + LOOK_TIMING_MARGIN_NS);
	/*
	 * The wake-up message arrived before the poll was sent. The poll ran after the put that
	 * sent the message. Therefore only the reply to the poll sets the time of the next poll.
	 */
	look_timing_rung(&timing, &bell, 8 * SEC);
	look_timing_sent(&timing, 9 * SEC);
	look_timing_answered(&timing, &answer);
	expect_eq(look_timing_due_ns(&timing), 14 * SEC + LOOK_TIMING_MARGIN_NS);
	/* If a wake-up message gives the relay rank 1, it polls one grace after the due time. */
	bell.rank = 1;
	look_timing_rung(&timing, &bell, 9 * SEC);
	expect_eq(look_timing_due_ns(&timing),
	          9 * SEC + 499999 * US + 100 * MS + LOOK_TIMING_MARGIN_NS);
}

TEST(bells_are_read, 20)
{
	static const char *const bad[] = { "",
		                           "x",
		                           "-1",
		                           "1 ",
		                           "1 2",
		                           "1 0 ",
		                           "1  0",
		                           "1.5",
		                           "9007199254740992",
		                           "99999999999999999999999" };
	struct look_timing_bell bell;

	expect(look_timing_read_bell(&bell, "1700000000000000 1"));
	expect(bell.due_us == 1700000000000000 && bell.rank == 1 && !bell.is_common);
	expect(look_timing_read_bell(&bell, "9007199254740991"));
	expect(bell.is_common);
	for (unsigned i = 0; i < COUNT_OF(bad); i++)
		expect(!look_timing_read_bell(&bell, bad[i]));
}

TEST(the_ladder_doubles_up_to_its_end, 20)
{
	expect_eq(look_timing_ladder_us(0, GRACE_US), 0);
	for (unsigned rank = 1; rank <= 8; rank++)
		expect_eq(look_timing_ladder_us(rank, GRACE_US), GRACE_US << (rank - 1));
	for (unsigned rank = 9; rank <= 2000; rank++)
		expect_eq(look_timing_ladder_us(rank, GRACE_US), 15000000 + rank * GRACE_US);
}

int main(int argc, char **argv)
{
	tests_begin(argc, argv);
	dice = dice_new(1);
	return tests_run();
}
