/* SPDX-License-Identifier: MIT */
/*
 * A journal on a simulated disk and under a clock that tests set. One thread makes seeded random
 * calls. The model is an array of facts, which is searched.
 */
#ifndef JOURNAL_MODEL_H
#define JOURNAL_MODEL_H

#include <journal/journal.h>
#include <journal/writer.h>

#include "sim_disk.h"

#define MODEL_TASKS 256
#define MODEL_KEYS 8

struct test_timer {
	struct wall_timer timer;
	uint64_t wall_ns;
	uint64_t monotonic_ns;
	uint64_t set_ns; /* the time for which it is set */
};

void test_timer_open(struct test_timer *timer, uint64_t wall_ns);
void test_timer_pass(struct test_timer *timer, uint64_t ns);

/* A task that was put, or may have been put by a call in doubt. */
struct fact {
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns;
	uint64_t attempts; /* deliveries */
	uint64_t seed;     /* of its data */
	uint32_t data_len;
	unsigned key; /* 0: none; else its number */
	bool live;    /* the acknowledged state */
	bool taken;
	bool parked;
	bool parked_for_good; /* the park is on disk, even if no attempts are recorded */
	bool unsure;          /* the last call on it was answered with -EIO */
	bool unsure_live;     /* the state if the call in doubt was made ... */
	bool unsure_parked;
	uint64_t unsure_due_ns;
	unsigned pair; /* unsure: 1 plus the index of the other fact of the same commit; 0: none */
	bool held, has_stale;
	struct timerhub_task handed; /* the latest delivery, if held */
	struct timerhub_task stale;  /* if has_stale: an earlier delivery, not acknowledged */
};

struct model {
	struct sim_disk *disk;
	struct test_timer timer;
	struct timerhub_journal *journal; /* NULL: closed */
	struct timerhub_journal_config config;
	uint64_t stretch_bytes; /* bytes of zeros ahead, in place of the journal's default */
	struct dice dice;
	struct fact facts[MODEL_TASKS];
	unsigned count;
	bool churns;               /* few tasks live at once */
	bool failed;               /* the journal had failed before the call now made */
	uint64_t delivered_due_ns; /* of the last task taken since something was put */
};

/* Segments of 4 KiB, tasks of up to 1000 bytes. */
void model_init(struct model *model, struct sim_disk *disk, uint64_t seed);

/* Opens; the result of journal_open(). */
int model_open(struct model *model);
void model_close(struct model *model);

/* Make a random call, and compare its result with the model. */
void model_step(struct model *model);

/* Put and cancel a large task, so that compaction soon has something to drop. */
void model_churn(struct model *model);

/* Add a put to the open batch, without a wake-up. Then call writer_pass(). */
struct model_put {
	struct transaction transaction;
	struct change change;
};
void model_gather(struct timerhub_journal *journal, struct model_put *put, struct task *task);

/* Several puts in one batch, begun and then awaited. */
void model_put_many(struct model *model, unsigned count);

/* Compare the open journal's memory with the model. */
void model_verify(struct model *model);

struct fact *model_find(struct model *model, uint64_t id);

/* The data of a fact. */
void model_data(const struct fact *fact, uint8_t *data);

#endif
