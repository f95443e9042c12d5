/* SPDX-License-Identifier: MIT */
/*
 * A model of a journal on a simulated disk, with a clock that tests set: random calls from a seed
 * on one thread, compared with an unsorted array of facts, one for each task.
 */
#ifndef JOURNAL_MODEL_H
#define JOURNAL_MODEL_H

#include <journal/open.h>
#include <journal/writer.h>

#include "sim_disk.h"

#define MODEL_TASKS 256
#define MODEL_KEYS 8

struct test_timer {
	struct wall_timer timer;
	uint64_t wall_ns;
	uint64_t monotonic_ns;
	uint64_t set_ns; /* time at which the timer expires */
};

void test_timer_open(struct test_timer *timer, uint64_t wall_ns);
void test_timer_pass(struct test_timer *timer, uint64_t ns);

/* Put, or perhaps put: after -EIO it is in doubt. */
struct fact {
	uint64_t id;
	uint64_t due_ns;
	uint64_t interval_ns;
	uint64_t attempts; /* number of the task's deliveries */
	uint64_t seed;     /* seed of the task's data */
	uint32_t data_len;
	unsigned key; /* number of the task's key, or 0 */
	bool live;    /* the task is live after all acknowledged calls */
	bool taken;
	bool parked;
	/* its record is on the disk, so it holds after a crash */
	bool parked_for_good;
	bool unsure;      /* the last call on the task is in doubt, because it returned -EIO */
	bool unsure_live; /* the task is live if the call in doubt was carried out */
	bool unsure_parked;
	uint64_t unsure_due_ns;
	/* 1 + index in model.facts of the second task of the commit in doubt, or 0 */
	unsigned pair;
	bool held, has_stale;
	struct timerhub_journal_task handed; /* latest delivery, if a worker has the task */
	/* with has_stale: an earlier delivery, not acknowledged */
	struct timerhub_journal_task stale;
};

struct model {
	struct sim_disk *disk;
	struct test_timer timer;
	struct timerhub_journal *journal; /* the open journal, or NULL if closed */
	struct timerhub_journal_config config;
	uint64_t stretch_bytes; /* number of bytes of zeros that the journal writes ahead */
	struct dice dice;
	struct fact facts[MODEL_TASKS];
	unsigned count;
	bool churns; /* the run keeps few tasks live */
	bool failed; /* the journal had failed before the present call */
	/* of the task taken last; 0: any may follow */
	uint64_t delivered_due_ns;
};

/* Segments of 4 KiB, tasks of up to 1000 bytes. */
void model_init(struct model *model, struct sim_disk *disk, uint64_t seed);

/* Open the journal. Returns the result of journal_open(). */
int model_open(struct model *model);
void model_close(struct model *model);

/* Make a random call, and compare its result with the model. */
void model_step(struct model *model);

/* A large task, so that compaction soon drops a segment. */
void model_churn(struct model *model);

/* A put that model_gather() adds to the open batch and wakes nobody: writer_pass() writes it. */
struct model_put {
	struct transaction transaction;
	struct change change;
};
void model_gather(struct timerhub_journal *journal, struct model_put *put, struct task *task);

/* In one batch, and waits for all. */
void model_put_many(struct model *model, unsigned count);

/* The tasks in memory against the facts. */
void model_verify(struct model *model);

struct fact *model_find(struct model *model, uint64_t id);

/* Store the task's data in `data`. */
void model_data(const struct fact *fact, uint8_t *data);

#endif
