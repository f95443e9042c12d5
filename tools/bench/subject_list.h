/* SPDX-License-Identifier: MIT */
/* Declares every subject. A subject whose library was not found has no definition. */
#ifndef BENCH_SUBJECT_LIST_H
#define BENCH_SUBJECT_LIST_H

#include "subject.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct subject subject_floor;
extern const struct subject subject_touch;
extern const struct subject subject_timerhub_loop;
extern const struct subject subject_timerhub_loop_alone;
extern const struct subject subject_timerhub;
extern const struct subject subject_timerhub_many;
extern const struct subject subject_timerhub_spin;
extern const struct subject subject_timerhub_huge;
extern const struct subject subject_heap;
extern const struct subject subject_heap_loop;
extern const struct subject subject_libev;
extern const struct subject subject_libuv;
extern const struct subject subject_libevent;
extern const struct subject subject_asio;
extern const struct subject subject_timerfd;
extern const struct subject subject_timerfd_loop;
extern const struct subject subject_uring;
extern const struct subject subject_go;
extern const struct subject subject_journal;
extern const struct subject subject_journal_submit;
extern const struct subject subject_journal_take;
extern const struct subject subject_beanstalkd;
extern const struct subject subject_sync_append;
extern const struct subject subject_sync_batch;
extern const struct subject subject_sync_overwrite;

#ifdef __cplusplus
}
#endif

#endif
