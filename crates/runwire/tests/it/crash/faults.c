/*
 * A disk that fails when it is told to: loaded before libc (LD_PRELOAD), it stands between the server and the
 * reads, writes and flushes of its store.
 *
 *   FAULT_WHEN  nothing fails before this file exists
 *   FAULT_FILE  how the names of the files end that fail; `*` stands for the store and its write-ahead log
 *   FAULT_AT    the how manieth read, write or flush fails, from 1
 *   FAULT_KIND  how:
 *     read-error    a few reads in a row fail (EIO)
 *     write-error   a write fails (EIO)
 *     write-full    a write fails (ENOSPC)
 *     write-short   a write takes only a part, and is no error
 *     full          this write takes only a part, and every one after it fails (ENOSPC)
 *     flush-error   a flush fails (EIO); what it should have flushed is there all the same
 *     flush-lost    a flush fails (EIO), and what it should have flushed is gone
 *     power-cut     the process dies in a flush, and any part of what was not flushed is gone
 *   FAULT_SEED  which parts
 *
 * It says so on standard error.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, MOST_RANGES = 1 << 16, READS_IN_A_ROW = 20 };

/* A flush through one descriptor flushes what was written through any, so ranges belong to the file. */
typedef struct {
    int fd;
    ino_t file;
    off_t from;
    size_t length;
} Range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Range unflushed[MOST_RANGES];
static size_t ranges;
static long countdown;
static int over;
static uint64_t chance;

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static int kind_is(const char *kind) {
    return strcmp(variable("FAULT_KIND"), kind) == 0;
}

static int kind_begins(const char *kind) {
    return strncmp(variable("FAULT_KIND"), kind, strlen(kind)) == 0;
}

static void *real(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

static ssize_t real_pwrite(int fd, const void *data, size_t length, off_t at) {
    static ssize_t (*call)(int, const void *, size_t, off_t);
    if (!call) call = real("pwrite");
    return call(fd, data, length, at);
}

static int ends_with(const char *path, ssize_t length, const char *end) {
    ssize_t ending = (ssize_t)strlen(end);
    return length >= ending && memcmp(path + length - ending, end, (size_t)ending) == 0;
}

static ino_t file_of(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/* Tells whether a file is one that fails. */
static int is_watched(int fd) {
    char link[64], path[4096];
    const char *end = variable("FAULT_FILE");
    if (!*end) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    if (strcmp(end, "*") == 0) return ends_with(path, length, ".db") || ends_with(path, length, "-wal");
    return ends_with(path, length, end);
}

/* Counts an act, and tells whether it is the one that fails. Called with the lock held. */
static int is_the_one(void) {
    if (over || access(variable("FAULT_WHEN"), F_OK) != 0) return 0;
    if (countdown == 0) {
        countdown = atol(variable("FAULT_AT"));
        chance = strtoull(variable("FAULT_SEED"), NULL, 10) | 1;
    }
    if (--countdown > 0) return 0;
    over = 1;
    dprintf(STDERR_FILENO, "the disk fails\n");
    return 1;
}

static int one_in_two(void) {
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (chance >> 32) & 1;
}

/* Takes back what was written to a file, or to all of them, since they were flushed: all of it or any part. */
static void lose(int fd, int any_file, int any_part) {
    static const char nothing[SECTOR];
    ino_t file = file_of(fd);
    for (size_t at = 0; at < ranges; at++) {
        Range range = unflushed[at];
        if (range.file != file && !any_file) continue;
        for (size_t done = 0; done < range.length; done += SECTOR) {
            size_t length = range.length - done < SECTOR ? range.length - done : SECTOR;
            if (!any_part || one_in_two()) {
                (void)!real_pwrite(range.fd, nothing, length, range.from + (off_t)done);
            }
        }
    }
}

static void forget(int fd) {
    size_t kept = 0;
    ino_t file = file_of(fd);
    for (size_t at = 0; at < ranges; at++) {
        if (unflushed[at].file != file) unflushed[kept++] = unflushed[at];
    }
    ranges = kept;
}

/* What a write to a watched file comes to: the bytes that it may take, or -1 with errno set. */
static ssize_t allowed(size_t length) {
    int fails = 0;
    if (kind_is("full") && over) {
        fails = 1;
    } else if ((kind_begins("write-") || kind_is("full")) && is_the_one()) {
        if (kind_is("write-short") || kind_is("full")) return (ssize_t)(length / 2 ? length / 2 : length);
        fails = 1;
    }
    if (!fails) return (ssize_t)length;
    errno = kind_is("write-error") ? EIO : ENOSPC;
    return -1;
}

static void remember(int fd, off_t from, ssize_t length) {
    if (length <= 0 || ranges == MOST_RANGES) return;
    unflushed[ranges++] = (Range){fd, file_of(fd), from, (size_t)length};
}

ssize_t write(int fd, const void *data, size_t length) {
    static ssize_t (*call)(int, const void *, size_t);
    if (!call) call = real("write");
    if (!is_watched(fd)) return call(fd, data, length);
    pthread_mutex_lock(&lock);
    off_t from = lseek(fd, 0, SEEK_CUR);
    ssize_t done = allowed(length);
    if (done >= 0) {
        done = call(fd, data, (size_t)done);
        remember(fd, from, done);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t from) {
    if (!is_watched(fd)) return real_pwrite(fd, data, length, from);
    pthread_mutex_lock(&lock);
    ssize_t done = allowed(length);
    if (done >= 0) {
        done = real_pwrite(fd, data, (size_t)done, from);
        remember(fd, from, done);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t from) {
    return pwrite(fd, data, length, from);
}

/* Tells whether a read of a watched file fails. */
static int read_fails(int fd) {
    static int failed;
    if (!kind_is("read-error") || !is_watched(fd)) return 0;
    pthread_mutex_lock(&lock);
    int fails = over ? failed < READS_IN_A_ROW : is_the_one();
    failed += fails;
    pthread_mutex_unlock(&lock);
    if (fails) errno = EIO;
    return fails;
}

ssize_t read(int fd, void *data, size_t length) {
    static ssize_t (*call)(int, void *, size_t);
    if (!call) call = real("read");
    return read_fails(fd) ? -1 : call(fd, data, length);
}

ssize_t pread(int fd, void *data, size_t length, off_t from) {
    static ssize_t (*call)(int, void *, size_t, off_t);
    if (!call) call = real("pread");
    return read_fails(fd) ? -1 : call(fd, data, length, from);
}

ssize_t pread64(int fd, void *data, size_t length, off_t from) {
    return pread(fd, data, length, from);
}

static int flush(int fd, int (*call)(int)) {
    if (!is_watched(fd)) return call(fd);
    pthread_mutex_lock(&lock);
    int failed = 0;
    if ((kind_begins("flush-") || kind_is("power-cut")) && is_the_one()) {
        if (kind_is("power-cut")) {
            lose(fd, 1, 1);
            kill(getpid(), SIGKILL);
            for (;;) pause();
        }
        if (kind_is("flush-lost")) lose(fd, 0, 0);
        failed = 1;
    }
    int done = failed ? -1 : call(fd);
    if (done == 0 || failed) forget(fd);
    pthread_mutex_unlock(&lock);
    if (failed) errno = EIO;
    return done;
}

int fsync(int fd) {
    static int (*call)(int);
    if (!call) call = real("fsync");
    return flush(fd, call);
}

int fdatasync(int fd) {
    static int (*call)(int);
    if (!call) call = real("fdatasync");
    return flush(fd, call);
}
