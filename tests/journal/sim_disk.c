/* SPDX-License-Identifier: MIT */
/* A file's descriptor is its index in `files`; a close does nothing. */
#include "sim_disk.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define FILES_BYTES (SIM_FILES * sizeof(struct sim_file))

static struct sim_disk *sim_of(struct disk *disk)
{
	return (struct sim_disk *)(void *)disk;
}

static struct sim_name *find_name(struct sim_name *names, const char *name)
{
	for (unsigned i = 0; i < SIM_FILES; i++)
		if (strcmp(names[i].name, name) == 0)
			return &names[i];
	return NULL;
}

static void set_name(struct sim_name *names, const char *name, int file)
{
	struct sim_name *entry = find_name(names, name);

	if (!entry)
		entry = find_name(names, "");
	expect(entry);
	(void)strcpy(entry->name, name);
	entry->file = file;
}

static void clear_name(struct sim_name *names, const char *name)
{
	struct sim_name *entry = find_name(names, name);

	if (entry)
		entry->name[0] = '\0';
}

static void apply_change(struct sim_name *names, const struct sim_change *change)
{
	if (change->from[0] != '\0')
		clear_name(names, change->from);
	if (change->to[0] != '\0')
		set_name(names, change->to, change->file);
}

static void change_names(struct sim_disk *sim, const char *to, const char *from, int file)
{
	struct sim_change change = { .file = file };

	(void)strcpy(change.to, to);
	(void)strcpy(change.from, from);
	if (sim->changes_count == SIM_CHANGES) {
		/* the kernel may write names before a sync */
		memcpy(sim->stable_names, sim->names, sizeof(sim->names));
		sim->changes_count = 0;
	}
	apply_change(sim->names, &change);
	sim->changes[sim->changes_count++] = change;
}

/*
 * Counts what changes the disk. Returns an error if it must fail; at a crash it may be half done.
 */
static int operate(struct sim_disk *sim)
{
	if (sim->dead)
		return -EIO;
	sim->operations++;
	if (sim->operations == sim->crash_at) {
		sim->dead = true;
		sim->watched = sim->watch && *sim->watch;
	}
	return sim->operations == sim->fail_at ? sim->error : 0;
}

static int after(const struct sim_disk *sim)
{
	return sim->dead ? -EIO : 0;
}

/* ---- the calls ---- */

static int sim_lock(struct disk *disk)
{
	struct sim_disk *sim = sim_of(disk);

	if (sim->locked)
		return -EBUSY;
	sim->locked = true;
	return 0;
}

static int sim_list(struct disk *disk, int (*found)(void *context, const char *name), void *context)
{
	struct sim_disk *sim = sim_of(disk);
	int result = 0;

	for (unsigned i = 0; i < SIM_FILES && result == 0; i++)
		if (sim->names[i].name[0] != '\0') {
			char name[DISK_NAME_MAX];

			/* a copy: a callback that unlinks the file clears the name */
			(void)strcpy(name, sim->names[i].name);
			result = found(context, name);
		}
	return sim->dead ? -EIO : result;
}

static bool is_named(const struct sim_disk *sim, int file)
{
	for (unsigned i = 0; i < SIM_FILES; i++)
		if ((sim->names[i].name[0] != '\0' && sim->names[i].file == file) ||
		    (sim->stable_names[i].name[0] != '\0' && sim->stable_names[i].file == file))
			return true;
	for (unsigned i = 0; i < sim->changes_count; i++)
		if (sim->changes[i].file == file)
			return true;
	return false;
}

/* Set the extent, and zero the bytes from there on. */
static void set_extent(struct sim_file *file, uint32_t extent)
{
	if (extent < file->extent) {
		memset(file->now + extent, 0, file->extent - extent);
		memset(file->stable + extent, 0, file->extent - extent);
	}
	file->extent = extent;
}

/* Touches only pages with data: a page fault is slow. */
static void clear_file(struct sim_file *file)
{
	set_extent(file, 0);
	memset(file->dirty, 0, sizeof(file->dirty));
	file->size = file->stable_size = 0;
}

static void copy_file(struct sim_file *to, const struct sim_file *from)
{
	set_extent(to, from->extent);
	memcpy(to, from, offsetof(struct sim_file, now));
	memcpy(to->now, from->now, from->extent);
	memcpy(to->stable, from->stable, from->extent);
}

static int new_file(struct sim_disk *sim)
{
	for (int i = 0; i < SIM_FILES; i++)
		if (!sim->files[i].used || !is_named(sim, i)) {
			clear_file(&sim->files[i]);
			sim->files[i].used = true;
			return i;
		}
	expect_context("no room for another file", SIM_FILES, 0);
	expect(false);
	return -1;
}

static int sim_create(struct disk *disk, const char *name)
{
	struct sim_disk *sim = sim_of(disk);
	int result = operate(sim), file;

	if (result < 0)
		return result;
	file = new_file(sim);
	change_names(sim, name, "", file);
	return sim->dead ? -EIO : file;
}

static int sim_open_file(struct disk *disk, const char *name, bool write, uint64_t *ret_bytes)
{
	struct sim_disk *sim = sim_of(disk);
	struct sim_name *entry = find_name(sim->names, name);

	(void)write;
	if (sim->dead)
		return -EIO;
	if (!entry)
		return -ENOENT;
	sim->zero_opens -= sim->zero_opens > 0;
	*ret_bytes = sim->files[entry->file].size;
	return entry->file;
}

static void sim_close_file(struct disk *disk, int file)
{
	(void)disk;
	(void)file;
}

static int64_t sim_read(struct disk *disk, int number, void *bytes, size_t count, uint64_t offset)
{
	struct sim_disk *sim = sim_of(disk);
	struct sim_file *file = &sim->files[number];

	if (sim->dead)
		return -EIO;
	if (offset >= file->size)
		return 0;
	if (count > file->size - offset)
		count = (size_t)(file->size - offset);
	if (count > 1 && dice_one_in(&sim->dice, 4))
		count = 1 + (size_t)dice_below(&sim->dice, count - 1);
	if (offset < sim->bad_to && offset + count > sim->bad_from &&
	    (!sim->bad_file || sim->bad_file == file))
		return -EIO;
	memcpy(bytes, file->now + offset, count);
	for (uint64_t at = sim->zero_from; sim->zero_opens > 0 && at < sim->zero_to; at++)
		if (at >= offset && at < offset + count)
			((uint8_t *)bytes)[at - offset] = 0;
	return (int64_t)count;
}

uint64_t sim_bytes(const struct sim_disk *sim)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < SIM_FILES; i++)
		if (sim->names[i].name[0] != '\0')
			bytes += sim->files[sim->names[i].file].size;
	return bytes;
}

static void set_dirty(struct sim_file *file, size_t from, size_t to)
{
	for (size_t sector = from / SIM_SECTOR; sector * SIM_SECTOR < to; sector++)
		file->dirty[sector] = true;
}

static void put_bytes(struct sim_file *file, const void *bytes, size_t count, uint64_t offset)
{
	expect_le(offset + count, SIM_FILE_BYTES);
	memcpy(file->now + offset, bytes, count);
	set_dirty(file, (size_t)offset, (size_t)offset + count);
	if (offset + count > file->size)
		file->size = (uint32_t)(offset + count);
	if (offset + count > file->extent)
		file->extent = (uint32_t)(offset + count);
}

/* Some dirty sectors, as the kernel may before a sync. */
static void write_back(struct sim_disk *sim, struct sim_file *file)
{
	if (!dice_one_in(&sim->dice, 4))
		return;
	for (size_t i = 0; i < SIM_SECTORS; i++)
		if (file->dirty[i] && dice_one_in(&sim->dice, 2))
			memcpy(file->stable + i * SIM_SECTOR, file->now + i * SIM_SECTOR,
			       SIM_SECTOR);
	if (dice_one_in(&sim->dice, 2))
		file->stable_size = file->size;
}

/* An almost full disk writes what fits; after an error it may have written some. */
static int64_t sim_write(struct disk *disk, int number, const void *bytes, size_t count,
                         uint64_t offset)
{
	struct sim_disk *sim = sim_of(disk);
	struct sim_file *file = &sim->files[number];
	uint64_t used = sim_bytes(sim), end = offset + count;
	uint64_t growth = end > file->size ? end - file->size : 0;
	size_t able = count;
	int result;

	if (sim->dead)
		return -EIO;
	result = operate(sim);
	if (result < 0)
		able = (size_t)dice_below(&sim->dice, count + 1);
	else if (used + growth > sim->space)
		able = used + growth - sim->space < count
		               ? count - (size_t)(used + growth - sim->space)
		               : 0;
	else if (count > 1 && dice_one_in(&sim->dice, 16))
		/* The disk may write fewer bytes than the caller asked for. */
		able = 1 + (size_t)dice_below(&sim->dice, count - 1);
	put_bytes(file, bytes, able, offset);
	write_back(sim, file);
	used = sim_bytes(sim);
	sim->peak = used > sim->peak ? used : sim->peak;
	if (sim->dead)
		return -EIO;
	if (result < 0)
		return result;
	return able > 0 || count == 0 ? (int64_t)able : -ENOSPC;
}

/*
 * Some dirty sectors are written, and Linux marks all clean: a read returns the new bytes, and the
 * next sync does not write them.
 */
static void sync_badly(struct sim_disk *sim, struct sim_file *file)
{
	for (size_t i = 0; i < SIM_SECTORS; i++) {
		uint64_t roll = dice_below(&sim->dice, 3);

		if (!file->dirty[i] || roll == 0)
			continue;
		if (roll == 1)
			memcpy(file->stable + i * SIM_SECTOR, file->now + i * SIM_SECTOR,
			       SIM_SECTOR);
		file->dirty[i] = false;
	}
	if (dice_one_in(&sim->dice, 2))
		file->stable_size = file->size;
}

static int sim_sync(struct disk *disk, int number)
{
	struct sim_disk *sim = sim_of(disk);
	struct sim_file *file = &sim->files[number];
	int result = operate(sim);

	if (result == 0 && ++sim->syncs == sim->sync_fails)
		result = -EIO;
	if (sim->dead)
		return -EIO;
	if (result < 0) {
		sync_badly(sim, file);
		return result;
	}
	for (size_t i = 0; i < SIM_SECTORS; i++)
		if (file->dirty[i])
			memcpy(file->stable + i * SIM_SECTOR, file->now + i * SIM_SECTOR,
			       SIM_SECTOR);
	memset(file->dirty, 0, sizeof(file->dirty));
	file->stable_size = file->size;
	return 0;
}

/* Without a name its data is lost when it is closed. */
static int sim_check(struct disk *disk, int number)
{
	struct sim_disk *sim = sim_of(disk);

	for (unsigned i = 0; i < SIM_FILES; i++)
		if (sim->names[i].name[0] != '\0' && sim->names[i].file == number)
			return sim->dead ? -EIO : 0;
	return -EIO;
}

static int sim_truncate(struct disk *disk, int number, uint64_t bytes)
{
	struct sim_disk *sim = sim_of(disk);
	struct sim_file *file = &sim->files[number];
	int result = operate(sim);

	if (result < 0)
		return result;
	if (bytes < file->size) {
		memset(file->now + bytes, 0, file->size - bytes);
		set_dirty(file, (size_t)bytes, file->size);
	}
	file->size = (uint32_t)bytes;
	return after(sim);
}

static int sim_rename(struct disk *disk, const char *from, const char *to)
{
	struct sim_disk *sim = sim_of(disk);
	struct sim_name *entry = find_name(sim->names, from);
	int result = operate(sim);

	if (result == 0 && !entry)
		result = -ENOENT;
	if (result < 0)
		return result;
	change_names(sim, to, from, entry->file);
	return after(sim);
}

static int sim_unlink(struct disk *disk, const char *name)
{
	struct sim_disk *sim = sim_of(disk);
	struct sim_name *entry = find_name(sim->names, name);
	int result = operate(sim);

	if (result == 0 && !entry)
		result = -ENOENT;
	if (result < 0)
		return result;
	change_names(sim, "", name, entry->file);
	return after(sim);
}

static int sim_sync_dir(struct disk *disk)
{
	struct sim_disk *sim = sim_of(disk);
	int result = operate(sim);

	if (result < 0 || sim->dead)
		return result < 0 ? result : -EIO;
	memcpy(sim->stable_names, sim->names, sizeof(sim->names));
	sim->changes_count = 0;
	return 0;
}

static uint32_t sim_random(struct disk *disk)
{
	return (uint32_t)dice_roll(&sim_of(disk)->dice);
}

static const struct disk_ops sim_ops = {
	.lock = sim_lock,
	.list = sim_list,
	.create = sim_create,
	.open = sim_open_file,
	.close = sim_close_file,
	.read = sim_read,
	.write = sim_write,
	.sync = sim_sync,
	.check = sim_check,
	.truncate = sim_truncate,
	.rename = sim_rename,
	.unlink = sim_unlink,
	.sync_dir = sim_sync_dir,
	.random = sim_random,
};

/* ---- for tests ---- */

void sim_open(struct sim_disk *sim, uint64_t seed)
{
	*sim = (struct sim_disk){
		.disk = { &sim_ops },
		.files = mmap(NULL, FILES_BYTES, PROT_READ | PROT_WRITE,
		              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		.space = UINT64_MAX / 2,
		.dice = dice_new(seed),
	};
	expect(sim->files != MAP_FAILED);
}

void sim_close(struct sim_disk *sim)
{
	if (sim->files)
		expect_eq(munmap(sim->files, FILES_BYTES), 0);
	sim->files = NULL;
}

/*
 * Which unsynced sectors a crash keeps: 0 none, 2 all, 1 each at random. By chance alone 0 and 2
 * were rare.
 */
static unsigned roll_mood(struct dice *dice)
{
	uint64_t roll = dice_below(dice, 8);

	return roll == 0 ? 0 : roll == 1 ? 2 : 1;
}

static bool is_new(struct dice *dice, unsigned mood)
{
	return mood == 2 || (mood == 1 && dice_one_in(dice, 2));
}

static void crash_sector(uint8_t *to, const uint8_t *from, struct dice *dice, unsigned mood)
{
	size_t torn = mood == 1 && dice_one_in(dice, 3) ? (size_t)dice_below(dice, SIM_SECTOR)
	                                                : SIM_SECTOR;

	if (is_new(dice, mood))
		memcpy(to, from, torn);
}

static void crash_file(struct sim_file *to, const struct sim_file *from, struct dice *dice,
                       unsigned mood)
{
	uint32_t size = from->stable_size;

	to->used = from->used;
	if (!from->used)
		return;
	set_extent(to, from->extent);
	memcpy(to->now, from->stable, from->extent);
	for (size_t i = 0; i < SIM_SECTORS; i++)
		if (from->dirty[i])
			crash_sector(to->now + i * SIM_SECTOR, from->now + i * SIM_SECTOR, dice,
			             mood);
	if (is_new(dice, mood))
		size = from->size;
	if (mood == 1 && from->size > from->stable_size && dice_one_in(dice, 4))
		size = from->stable_size +
		       (uint32_t)dice_below(dice, from->size - from->stable_size);
	if (size < from->extent)
		memset(to->now + size, 0, from->extent - size);
	to->size = size;
	to->stable_size = size;
	memcpy(to->stable, to->now, from->extent);
	memset(to->dirty, 0, sizeof(to->dirty));
}

static void revive(struct sim_disk *image)
{
	image->operations = image->crash_at = 0;
	image->syncs = image->sync_fails = image->fail_at = 0;
	image->space = UINT64_MAX / 2;
	image->dead = image->locked = false;
}

void sim_crash(struct sim_disk *image, const struct sim_disk *sim, struct dice *dice)
{
	unsigned mood = roll_mood(dice);

	for (unsigned i = 0; i < SIM_FILES; i++)
		crash_file(&image->files[i], &sim->files[i], dice, mood);
	memcpy(image->names, sim->stable_names, sizeof(image->names));
	for (unsigned i = 0; i < sim->changes_count; i++)
		if (is_new(dice, mood))
			apply_change(image->names, &sim->changes[i]);
	memcpy(image->stable_names, image->names, sizeof(image->names));
	image->changes_count = 0;
	revive(image);
}

void sim_survive(struct sim_disk *image, const struct sim_disk *sim)
{
	for (unsigned i = 0; i < SIM_FILES; i++)
		copy_file(&image->files[i], &sim->files[i]);
	memcpy(image->names, sim->names, sizeof(image->names));
	memcpy(image->stable_names, sim->stable_names, sizeof(image->names));
	memcpy(image->changes, sim->changes, sizeof(image->changes));
	image->changes_count = sim->changes_count;
	revive(image);
}

void sim_copy(struct sim_disk *image, const struct sim_disk *sim)
{
	memcpy(image->names, sim->names, sizeof(image->names));
	for (unsigned i = 0; i < SIM_FILES; i++) {
		struct sim_file *file = &image->files[i];

		copy_file(file, &sim->files[i]);
		memcpy(file->stable, file->now, file->extent);
		memset(file->dirty, 0, sizeof(file->dirty));
		file->stable_size = file->size;
	}
	memcpy(image->stable_names, image->names, sizeof(image->names));
	image->changes_count = 0;
	revive(image);
}

struct sim_file *sim_find(struct sim_disk *sim, const char *name)
{
	struct sim_name *entry = find_name(sim->names, name);
	struct sim_file *file = entry ? &sim->files[entry->file] : NULL;

	if (file && file->extent < file->size)
		file->extent = file->size;
	return file;
}

void sim_plant(struct sim_disk *sim, const char *name, const void *bytes, size_t count)
{
	int number = new_file(sim);
	struct sim_file *file = &sim->files[number];

	expect_le(count, SIM_FILE_BYTES);
	if (count > 0) { /* `bytes` of an empty file may be NULL, which memcpy() forbids */
		memcpy(file->now, bytes, count);
		memcpy(file->stable, bytes, count);
	}
	file->size = file->stable_size = file->extent = (uint32_t)count;
	set_name(sim->names, name, number);
	set_name(sim->stable_names, name, number);
}
