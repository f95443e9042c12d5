/* SPDX-License-Identifier: MIT */
/*
 * A journal on a simulated disk and under a clock that tests set. One thread makes seeded random
 * calls. The model is an unsorted array of facts.
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
	uint64_t set_ns; /* time for which the timer is set */
};

void test_timer_open(struct test_timer *timer, uint64_t wall_ns);
void test_timer_pass(struct test_timer *timer, uint64_t ns);

/* A task that was put, or may have been put by a call in doubt. */
struct fact {
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns;
	uint64_t attempts; /* number of deliveries */
	uint64_t seed;     /* seed of the task's data */
	uint32_t data_len;
	unsigned key; /* number of the task's key; 0: no key */
	bool live;    /* whether the task is live, by the acknowledged calls */
	bool taken;
	bool parked;
	bool parked_for_good; /* the park is on disk, even if no attempts are recorded */
	bool unsure;          /* the last call on the task returned -EIO */
	bool unsure_live;     /* whether the task is live if the call in doubt was carried out */
	bool unsure_parked;
	uint64_t unsure_due_ns;
	/* If unsure: 1 plus the index of the other fact of the same commit; 0: no other fact. */
	unsigned pair;
	bool held, has_stale;
	struct timerhub_task handed; /* the latest delivery, if a worker has it */
	/* If has_stale: an earlier delivery that was not acknowledged. */
	struct timerhub_task stale;
};

struct model {
	struct sim_disk *disk;
	struct test_timer timer;
	struct timerhub_journal *journal; /* the journal; NULL: closed */
	struct timerhub_journal_config config;
	uint64_t stretch_bytes; /* bytes of zeros ahead, in place of the journal's default */
	struct dice dice;
	struct fact facts[MODEL_TASKS];
	unsigned count;
	bool churns;               /* the run keeps few tasks live at once */
	bool failed;               /* the journal had failed before the present call */
	uint64_t delivered_due_ns; /* due time of the last task that was taken since the last put */
};

/* Begin a model with segments of 4 KiB and tasks of up to 1000 bytes. */
void model_init(struct model *model, struct sim_disk *disk, uint64_t seed);

/* Opens the journal, and returns the result of journal_open(). */
int model_open(struct model *model);
void model_close(struct model *model);

/* Make a random call, and compare its result with the model. */
void model_step(struct model *model);

/* Put and cancel a large task, so that compaction soon has something to drop. */
void model_churn(struct model *model);

/*
 * Add a put to the open batch, without a wake-up. The caller then calls writer_pass() to write the
 * batch.
 */
struct model_put {
	struct transaction transaction;
	struct change change;
};
void model_gather(struct timerhub_journal *journal, struct model_put *put, struct task *task);

/* Begin several puts in one batch, and wait for all of them. */
void model_put_many(struct model *model, unsigned count);

/* Compare the open journal's memory with the model. */
void model_verify(struct model *model);

struct fact *model_find(struct model *model, uint64_t id);

/* Returns the data of a fact. */
void model_data(const struct fact *fact, uint8_t *data);

#endif
