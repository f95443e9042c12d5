/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes a store. Opening checks the database, opens the store's connections to it, and
 * starts the store's own thread. Closing first makes waiting takes return, and then ends that
 * thread.
 *
 * store_read_shift() reads a file in which Linux shows the offsets of future child processes. The
 * process has the same offsets, unless it has called unshare(2).
 *
 * connection_refused() calls mknod(2) if error_of() says that there is no file. That may only mean
 * that the process may not create the file, and then mknod(2) fails with the right errno.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/cancellation.h"
#include "base/descriptor.h"
#include "base/options.h"
#include "base/thread.h"
#include "base/whole_read.h"
#include "store/store.h"
#undef timerhub_store_open
#undef timerhub_store_install

#define LEASE_DEFAULT_NS UINT64_C(30000000000)
#define ATTEMPTS_DEFAULT 25
#define DATA_MAX_DEFAULT (UINT32_C(1) << 20)
#define TIMEOUT_DEFAULT_NS UINT64_C(5000000000)
#define NAP_NS 1000000
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 36

/* ---- the connections ---- */

static int is_wal(void *ret, int columns, char **texts, char **names)
{
	(void)names;
	*(bool *)ret = columns == 1 && texts[0] && strcmp(texts[0], "wal") == 0;
	return 0;
}

/*
 * Sets the journal mode to WAL. If two processes open a new file at once, both want its only lock,
 * and SQLite returns SQLITE_BUSY at once, because each would wait for the other. So this waits and
 * tries again.
 */
static int connection_set_wal(sqlite3 *db, uint64_t timeout_ns)
{
	uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
	bool becomes_wal = false;

	while (sqlite3_exec(db, "PRAGMA main.journal_mode=WAL", is_wal, &becomes_wal, NULL) !=
	       SQLITE_OK) {
		int result = error_of(db);

		if (result != -EBUSY || clock_monotonic_ns() >= deadline_ns)
			return result;
		files_nap(NAP_NS);
	}
	return becomes_wal ? 0 : -EOPNOTSUPP;
}

/* Returns the negative errno for a file that SQLite could neither open nor create. */
static int connection_refused(sqlite3 *db, const char *path)
{
	int result = error_of(db);

	if (result == -ENOENT && mknod(path, S_IFREG | 0644, 0) < 0 && errno != EEXIST)
		result = -errno;
	return result;
}

/*
 * Opens a connection to the database. Until the store is open, SQLite waits up to `timeout_ns` for
 * a lock that another process holds. Later, writer_begin() does that.
 */
static int connection_open(sqlite3 **ret, const char *path, uint64_t timeout_ns)
{
	uint64_t timeout_ms = timeout_ns / 1000000 + 1;
	struct statfs fs;
	int result;

	if (sqlite3_open_v2(path, ret,
	                    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
	                            SQLITE_OPEN_PRIVATECACHE,
	                    NULL) != SQLITE_OK)
		return *ret ? connection_refused(*ret, path) : -ENOMEM;
	if (*sqlite3_db_filename(*ret, "main") == '\0')
		return -EINVAL; /* a database in memory */
	/* a WAL needs memory that its users share, so it cannot lie on a network file system */
	if (statfs(sqlite3_db_filename(*ret, "main"), &fs) == 0 &&
	    (fs.f_type == NFS_SUPER_MAGIC || fs.f_type == SMB_SUPER_MAGIC ||
	     fs.f_type == SMB2_SUPER_MAGIC || fs.f_type == CIFS_SUPER_MAGIC))
		return -EOPNOTSUPP;
	(void)sqlite3_extended_result_codes(*ret, 1);
	(void)sqlite3_busy_timeout(*ret, timeout_ms < 1000000000 ? (int)timeout_ms : 1000000000);
	/* SQLite reports no error if it could open the file for reading only, so check that here */
	if (sqlite3_db_readonly(*ret, "main") != 0)
		return access(sqlite3_db_filename(*ret, "main"), W_OK) < 0 ? -errno : -EROFS;
	result = connection_set_wal(*ret, timeout_ns);
	if (result == 0)
		result = run_sql(*ret, "PRAGMA main.synchronous=NORMAL;"
		                       "PRAGMA main.wal_autocheckpoint=0;"
		                       "PRAGMA main.cache_size=-8192;"
		                       "PRAGMA main.mmap_size=0;"
		                       "PRAGMA main.journal_size_limit=20971520;");
	return result;
}

static int store_open_connections(struct timerhub_store *store, const char *path)
{
	int64_t page_bytes = 0;
	int result = connection_open(&store->statements.db, path, store->timeout_ns);
	sqlite3 *db = store->statements.db;

	if (result == 0)
		result = schema_install(db);
	/* The second connection must open the same file, even if a symbolic link was changed. */
	if (result == 0)
		result = connection_open(&store->keeper.statements.db,
		                         sqlite3_db_filename(db, "main"), store->timeout_ns);
	if (result == 0)
		result = statement_run(&store->statements, DO_PAGE_SIZE, NULL, &page_bytes);
	/* A checkpoint does nothing on a connection that has never read. So read something here. */
	if (result >= 0)
		result = run_sql(store->keeper.statements.db, "SELECT 1 FROM timerhub_about");
	if (result < 0)
		return result;
	store->frame_bytes = (uint32_t)page_bytes + 24;
	(void)sqlite3_busy_timeout(db, 0);
	(void)sqlite3_busy_timeout(store->keeper.statements.db, 0);
	(void)sqlite3_wal_hook(db, keeper_on_commit, store);
	return files_open(&store->files, sqlite3_db_filename(db, "main"));
}

/* ---- what a watcher sleeps on ---- */

static int store_open_watch(struct timerhub_store *store)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = DESCRIPTOR_ABOVE_STDIO(epoll_create1(EPOLL_CLOEXEC)), result;
	int inotify_fd = DESCRIPTOR_ABOVE_STDIO(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));

	result = store->watch.epoll_fd = epoll_fd;
	store->watch.inotify_fd = inotify_fd;
	if (result >= 0)
		result = store->watch.bell = bell_open();
	if (result >= 0)
		result = store->synced.fd = bell_open();
	if (result >= 0)
		result = deadline_fd_create(&store->watch.timer);
	if (result < 0)
		return result;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, store->watch.bell, &event) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, store->watch.timer.fd, &event) < 0)
		return -errno;
	/* relaxed: nobody else uses the store yet */
	u32_store_relaxed(&store->watch.is_polling,
	                  inotify_fd < 0 ||
	                          epoll_ctl(epoll_fd, EPOLL_CTL_ADD, inotify_fd, &event) < 0);
	/* epoll_fd is readable at first, because nobody has looked for due tasks yet */
	bell_ring(store->watch.bell);
	return 0;
}

/* ---- open ---- */

static int store_configure(struct timerhub_store *store, const struct timerhub_store_config *config)
{
	struct timerhub_store_config known = { .size = sizeof(known) };
	int result = options_read(&known, sizeof(known), sizeof(known), config);

	if (result < 0)
		return result;
	if (known.flags != 0)
		return -EINVAL;
	store->lease_us = store_lease_us(known.lease_ns ? known.lease_ns : LEASE_DEFAULT_NS);
	store->attempts_max = known.attempts_max ? known.attempts_max : ATTEMPTS_DEFAULT;
	store->data_max = known.data_max ? known.data_max : DATA_MAX_DEFAULT;
	store->timeout_ns = known.timeout_ns ? known.timeout_ns : TIMEOUT_DEFAULT_NS;
	/* the sum of this timeout and the clock's time must not overflow */
	if (store->timeout_ns > INT64_MAX)
		store->timeout_ns = INT64_MAX;
	store->queue = strdup(known.queue ? known.queue : "");
	return store->queue ? 0 : -ENOMEM;
}

static void store_init(struct timerhub_store *store)
{
	lock_init(&store->shared.lock);
	store->shared.last = &store->shared.first;
	lock_init(&store->keeper.lock);
	lock_init(&store->synced.lock);
	store->synced.last_completed = &store->synced.completed;
	store->watch.next_due_us = INT64_MAX;
	u64_store_relaxed(&store->watch.stopped_us,
	                  UINT64_MAX); /* relaxed: nobody else uses it yet */
	store->files.wal_fd = store->files.shm_fd = -1;
	store->watch.epoll_fd = store->watch.bell = store->watch.inotify_fd = -1;
	store->synced.fd = -1;
	clock_init(&store->wall, TIMERHUB_CLOCK_REALTIME, false);
	clock_init(&store->since_boot, TIMERHUB_CLOCK_BOOTTIME, false);
	deadline_fd_init(&store->watch.timer, &store->wall);
}

/*
 * Reads the id of the machine's boot, by which deliver_open() recognizes a reboot. Without /proc
 * the id stays empty, and deliver_open() compares CLOCK_REALTIME with CLOCK_BOOTTIME instead.
 */
static void store_read_boot(struct timerhub_store *store)
{
	int fd = DESCRIPTOR_ABOVE_STDIO(open(BOOT_ID, O_RDONLY | O_CLOEXEC));

	if (fd < 0)
		return;
	if (whole_read(fd, store->boot, BOOT_ID_BYTES) < 0)
		store->boot[0] = '\0';
	(void)close(fd);
}

/* Reads what the process's time namespace adds to CLOCK_BOOTTIME. */
static void store_read_shift(struct timerhub_store *store)
{
	char text[128] = { 0 };
	long long s = 0, ns = 0;
	int fd = DESCRIPTOR_ABOVE_STDIO(open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC));
	const char *line;

	if (fd < 0)
		return; /* there are no time namespaces */
	if (whole_read(fd, text, sizeof(text) - 1) > 0 && (line = strstr(text, "boottime")) &&
	    sscanf(line, "boottime %lld %lld", &s, &ns) == 2)
		store->shift_us = s * 1000000 + ns / 1000;
	(void)close(fd);
}

/*
 * Syncs the database's folder, so that a loss of power does not remove the new files from it.
 * SQLite does that when it first syncs the WAL.
 */
static int store_sync_names(struct timerhub_store *store)
{
	sqlite3_file *wal = NULL;

	if (sqlite3_file_control(store->statements.db, "main", SQLITE_FCNTL_JOURNAL_POINTER,
	                         &wal) != SQLITE_OK ||
	    wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL) != SQLITE_OK)
		return -EIO;
	return 0;
}

/*
 * Makes the first transaction. In it, checks whether this file system shows other programs' locks.
 * If not, threads that wait for tasks have to poll.
 */
static int store_begin(struct timerhub_store *store)
{
	int result = writer_begin(store, clock_monotonic_ns() + store->timeout_ns);

	if (result < 0)
		return result == -EAGAIN ? -EBUSY : result;
	result = deliver_open(store);
	files_make_room(&store->files, store->frame_bytes, 0);
	if (!files_is_writing(&store->files))
		u32_store_relaxed(&store->watch.is_polling, 1);
	result = writer_end(store, result);
	return result < 0 ? result : store_sync_names(store);
}

static void store_free(struct timerhub_store *store)
{
	struct work *next;

	statements_fini(&store->statements);
	statements_fini(&store->keeper.statements);
	(void)sqlite3_close(store->keeper.statements.db);
	(void)sqlite3_close(store->statements.db);
	files_close(&store->files);
	for (struct work *work = store->synced.completed; work; work = next) {
		next = work->next;
		free(work);
	}
	bell_close(store->watch.bell);
	bell_close(store->synced.fd);
	deadline_fd_close(&store->watch.timer);
	if (store->watch.inotify_fd >= 0)
		(void)close(store->watch.inotify_fd);
	if (store->watch.epoll_fd >= 0)
		(void)close(store->watch.epoll_fd);
	lock_fini(&store->shared.lock);
	lock_fini(&store->keeper.lock);
	lock_fini(&store->synced.lock);
	fork_check_close(&store->fork_check);
	free(store->queue);
	free(store);
}

static int store_open_parts(struct timerhub_store *store, const char *path)
{
	int result = fork_check_open(&store->fork_check, sizeof(uint32_t));

	store_read_boot(store);
	store_read_shift(store);
	if (result == 0)
		result = store_open_connections(store, path);
	if (result == 0)
		result = store_open_watch(store);
	if (result == 0)
		result = store_begin(store);
	return result < 0 ? result : thread_create(&store->keeper.thread, keeper_main, store);
}

/*
 * SQLite can be compiled without mutexes, or a program turns them off (SQLITE_CONFIG_SINGLETHREAD).
 * Then even a connection that asks for a mutex gets none.
 */
static bool sqlite_has_mutexes(void)
{
	sqlite3 *db = NULL;
	int result = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX,
	                             NULL);
	bool has = result != SQLITE_OK || sqlite3_db_mutex(db);

	(void)sqlite3_close(db);
	return has;
}

int timerhub_store_open_checked(struct timerhub_store **ret, const char *path,
                                const struct timerhub_store_config *config, int (*sqlite)(void))
{
	CANCELLATION_HELD;
	struct descriptors_low low = { .held = { false } };
	struct timerhub_store *store;
	int result;

	if (!ret || !path)
		return -EINVAL;
	if (sqlite != sqlite3_libversion_number)
		return -EXDEV;
	if (!sqlite_has_mutexes())
		return -EOPNOTSUPP;
	store = calloc(1, sizeof(*store));
	if (!store)
		return -ENOMEM;
	store_init(store);
	/*
	 * Occupy the descriptors 0, 1 and 2 for now. If one of them were free, SQLite would open
	 * /dev/null there, and never close it.
	 */
	DESCRIPTORS_FILL(&low, open("/dev/null", O_RDONLY | O_CLOEXEC));
	result = store_configure(store, config);
	if (result == 0)
		result = store_open_parts(store, path);
	(void)descriptors_release(&low, 0);
	if (result < 0)
		store_free(store);
	else
		*ret = store;
	return result < 0 ? result : 0;
}

int timerhub_store_open(struct timerhub_store **ret, const char *path,
                        const struct timerhub_store_config *config)
{
	return timerhub_store_open_checked(ret, path, config, sqlite3_libversion_number);
}

int timerhub_store_install_checked(struct sqlite3 *db, int (*sqlite)(void))
{
	CANCELLATION_HELD;

	if (!db)
		return -EINVAL;
	return sqlite == sqlite3_libversion_number ? schema_install(db) : -EXDEV;
}

int timerhub_store_install(struct sqlite3 *db)
{
	return timerhub_store_install_checked(db, sqlite3_libversion_number);
}

/* ---- close ---- */

/*
 * Makes the store's descriptors unreadable for ever. If a forked child has them too, an epoll
 * instance of the program would go on reporting them after the close.
 */
static void store_clear_watch(struct timerhub_store *store)
{
	const int watched[] = { store->watch.bell, store->watch.timer.fd, store->watch.inotify_fd };

	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		(void)epoll_ctl(store->watch.epoll_fd, EPOLL_CTL_DEL, watched[i], NULL);
	bell_clear(store->synced.fd);
}

void timerhub_store_close(struct timerhub_store *store)
{
	CANCELLATION_HELD;

	/* a forked child must not use the copies of SQLite's locks in its memory */
	if (store_check(store) < 0)
		return;
	timerhub_store_stop(store);
	while (u32_load_acquire(&store->watch.takes) != 0) /* [taken] */
		files_nap(NAP_NS);
	lock_take(&store->shared.lock);
	store->keeper.quits = true;
	lock_give(&store->shared.lock);
	eventcount_advance(&store->keeper.work, 1);
	(void)pthread_join(store->keeper.thread, NULL);
	store_clear_watch(store);
	store_free(store);
}
