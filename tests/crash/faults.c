/* Preloaded into a process: counts every call that changes files below a folder or sends something to a server,
 * and lets one of them fail.
 *
 * Each such call is a fault point, numbered from 1. In mode RECORD every point is written to a log with its data;
 * in the other modes the process dies at one point, the disk is full, read-only or broken from there on, or the
 * connection is lost. The calls of Python, SQLite, NumPy and libpq all pass here; pages that are mapped for writing
 * do not. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, RECORD, KILL, TORN, FULL, READ_ONLY, IO_ERROR, MESSAGE_LOST, ANSWER_LOST };

static int mode = OFF, log_fd = -1, fired = 0;
static long points = 0, chosen = 0;
static char root[PATH_MAX];
static size_t root_length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Called by the harness. */

void faults_start(const char *folder, int new_mode, long point, int log) {
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    points = 0;
    fired = 0;
    chosen = point;
    log_fd = log;
    mode = new_mode;
}

void faults_stop(void) { mode = OFF; }
long faults_points(void) { return points; }
int faults_fired(void) { return fired; }

/* Paths */

static int below(const char *path) {
    return mode != OFF && strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || !path[root_length]);
}

static int fd_path(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, out, PATH_MAX - 1);
    if (length < 0) return 0;
    out[length] = 0;
    return below(out);
}

static int full_path(int folder, const char *path, char *out) {
    if (mode == OFF || !path) return 0;
    if (path[0] == '/') {
        strncpy(out, path, PATH_MAX - 1);
    } else {
        char base[PATH_MAX] = "";
        if (folder == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            fd_path(folder, base);
        }
        if (strlen(base) + strlen(path) + 2 > PATH_MAX) return 0;
        strcpy(out, base);
        strcat(out, "/");
        strcat(out, path);
    }
    out[PATH_MAX - 1] = 0;
    return below(out);
}

/* Points */

static void put(const void *data, size_t size) {
    while (size > 0) {
        long written = syscall(SYS_write, log_fd, data, size);
        if (written <= 0) _exit(99);
        data = (const char *)data + written;
        size -= (size_t)written;
    }
}

/* A record: kind ('x' if the call failed), offset, lengths of two paths and of the data, then those. */
static void record(char kind, const char *path, const char *other, int64_t offset, const void *data, size_t size) {
    int64_t head[5] = {kind, offset, (int64_t)strlen(path), other ? (int64_t)strlen(other) : 0, (int64_t)size};
    put(head, sizeof head);
    put(path, (size_t)head[2]);
    if (other) put(other, (size_t)head[3]);
    if (size) put(data, size);
}

enum { GO, HALF_THEN_DIE, HALF, FAIL, LOSE_MESSAGE, LOSE_ANSWER };

enum { NOTHING, SPACE, SERVER };

/* What becomes of this call, which needs one of these; `size` is what it writes. */
static int judge(int needs, size_t size) {
    points++;
    switch (mode) {
        case RECORD:
        case KILL:
            if (points == chosen) syscall(SYS_exit_group, 137);
            return GO;
        case TORN:
            return points == chosen ? HALF_THEN_DIE : GO;
        case FULL:
            if (points < chosen || needs != SPACE) return GO;
            if (!fired && size > 1) {
                fired = 1;
                return HALF; /* the last bytes that fit */
            }
            fired = 1;
            errno = ENOSPC;
            return FAIL;
        case READ_ONLY:
            if (points < chosen || needs == SERVER) return GO;
            fired = 1;
            errno = EROFS;
            return FAIL;
        case IO_ERROR:
            if (points != chosen || needs == SERVER) return GO;
            fired = 1;
            errno = EIO;
            return FAIL;
        case MESSAGE_LOST:
        case ANSWER_LOST:
            if (points != chosen || needs != SERVER) return GO;
            fired = 1;
            return mode == MESSAGE_LOST ? LOSE_MESSAGE : LOSE_ANSWER;
    }
    return GO;
}

#define REAL(type, name, ...)                               \
    static type (*real)(__VA_ARGS__);                       \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

/* Before a call that is a point: locks and decides. With FAIL nothing is locked, and errno says why. */
static int enter(int needs, size_t size) {
    pthread_mutex_lock(&lock);
    int fate = judge(needs, size);
    if (fate == FAIL) {
        int why = errno;
        pthread_mutex_unlock(&lock);
        errno = why;
    }
    return fate;
}

/* After it: dies if it must, records, unlocks, and returns what the call returned. */
static ssize_t leave(int fate, ssize_t result, char kind, const char *path, const char *other, int64_t offset,
                     const void *data) {
    int why = errno;
    if (fate == HALF_THEN_DIE) syscall(SYS_exit_group, 137);
    if (mode == RECORD) record(result >= 0 ? kind : 'x', path, other, offset, data, data && result > 0 ? (size_t)result : 0);
    pthread_mutex_unlock(&lock);
    errno = why;
    return result;
}

/* A call that takes effect as a whole. */
#define WHOLE(needs, call, kind, path, other, offset) \
    int fate = enter(needs, 0);                       \
    if (fate == FAIL) return -1;                      \
    return (int)leave(fate, (call), kind, path, other, offset, NULL)

/* A write of `size` bytes at `offset`, of which half may get through. */
#define WRITTEN(full, part, path, offset, data, size) \
    int fate = enter(SPACE, size);                    \
    if (fate == FAIL) return -1;                      \
    return leave(fate, fate == GO ? (full) : (part), 'w', path, NULL, offset, data)

/* Opening: a point where it creates or empties a file. */

static int opened(const char *path, int flags, int (*call)(const void *), const void *arguments) {
    struct stat status;
    int exists = stat(path, &status) == 0;
    if (mode == READ_ONLY && fired && (flags & O_ACCMODE) != O_RDONLY) {
        errno = EROFS;
        return -1;
    }
    if (exists && (flags & O_CREAT) && (flags & O_EXCL)) return call(arguments);
    if (!(flags & O_CREAT && !exists) && !(flags & O_TRUNC && exists && status.st_size > 0)) return call(arguments);
    WHOLE(exists ? NOTHING : SPACE, call(arguments), exists ? 't' : 'c', path, NULL, 0);
}

struct open_arguments {
    int folder;
    const char *path;
    int flags;
    mode_t permissions;
};

static int open_at(const void *given) {
    const struct open_arguments *a = given;
    return (int)syscall(SYS_openat, a->folder, a->path, a->flags, a->permissions);
}

static int open_any(int folder, const char *path, int flags, mode_t permissions) {
    char full[PATH_MAX];
    struct open_arguments a = {folder, path, flags, permissions};
    if (!full_path(folder, path, full)) return open_at(&a);
    return opened(full, flags, open_at, &a);
}

#define PERMISSIONS                       \
    mode_t permissions = 0;               \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list rest;                     \
        va_start(rest, flags);            \
        permissions = va_arg(rest, mode_t); \
        va_end(rest);                     \
    }

int open(const char *path, int flags, ...) { PERMISSIONS return open_any(AT_FDCWD, path, flags, permissions); }
int open64(const char *path, int flags, ...) { PERMISSIONS return open_any(AT_FDCWD, path, flags | O_LARGEFILE, permissions); }
int openat(int folder, const char *path, int flags, ...) { PERMISSIONS return open_any(folder, path, flags, permissions); }
int openat64(int folder, const char *path, int flags, ...) { PERMISSIONS return open_any(folder, path, flags, permissions); }
int creat(const char *path, mode_t permissions) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, permissions); }
int creat64(const char *path, mode_t permissions) { return creat(path, permissions); }

/* Writing */

static int64_t position(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_APPEND) ? lseek(fd, 0, SEEK_END) : lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    char path[PATH_MAX];
    if (mode == OFF || !fd_path(fd, path)) return real(fd, data, size);
    int64_t offset = position(fd);
    WRITTEN(real(fd, data, size), real(fd, data, size / 2), path, offset, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    char path[PATH_MAX];
    if (mode == OFF || !fd_path(fd, path)) return real(fd, data, size, offset);
    WRITTEN(real(fd, data, size, offset), real(fd, data, size / 2, offset), path, offset, data, size);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) { return pwrite(fd, data, size, offset); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    char path[PATH_MAX];
    if (mode == OFF || !fd_path(fd, path)) return real(fd, parts, count);
    ssize_t total = 0;
    for (int i = 0; i < count; i++) { /* one by one; short as soon as one is */
        ssize_t part = write(fd, parts[i].iov_base, parts[i].iov_len);
        if (part < 0) return total ? total : -1;
        total += part;
        if ((size_t)part < parts[i].iov_len) break;
    }
    return total;
}

/* NumPy writes arrays through a FILE; what it writes must be in the file when the point is over. */
size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
    REAL(size_t, fwrite, const void *, size_t, size_t, FILE *);
    char path[PATH_MAX];
    if (mode == OFF || !size || !count || !fd_path(fileno(file), path)) return real(data, size, count, file);
    fflush(file);
    const char *rest = data;
    size_t left = size * count;
    while (left > 0) {
        ssize_t written = write(fileno(file), rest, left);
        if (written <= 0) break;
        rest += written;
        left -= (size_t)written;
    }
    fseeko(file, 0, SEEK_CUR);
    return (size * count - left) / size;
}

static ssize_t copied(int out, int in, off64_t *from, size_t count) {
    static char buffer[1 << 16];
    size_t size = count < sizeof buffer ? count : sizeof buffer;
    ssize_t part = from ? pread64(in, buffer, size, *from) : read(in, buffer, size);
    if (part <= 0) return part;
    ssize_t written = write(out, buffer, (size_t)part);
    if (written > 0 && from) *from += written;
    if (written < part && !from) lseek(in, (written > 0 ? written : 0) - part, SEEK_CUR);
    return written;
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count) {
    REAL(ssize_t, sendfile, int, int, off_t *, size_t);
    char path[PATH_MAX];
    if (mode == OFF || !fd_path(out, path)) return real(out, in, offset, count);
    return copied(out, in, (off64_t *)offset, count);
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t count) { return sendfile(out, in, offset, count); }

ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t count, unsigned flags) {
    REAL(ssize_t, copy_file_range, int, off64_t *, int, off64_t *, size_t, unsigned);
    char path[PATH_MAX];
    if (mode == OFF || !fd_path(out, path)) return real(in, from, out, to, count, flags);
    errno = ENOSYS;
    return -1;
}

int ftruncate(int fd, off_t size) {
    REAL(int, ftruncate, int, off_t);
    char path[PATH_MAX];
    struct stat status;
    if (mode == OFF || !fd_path(fd, path)) return real(fd, size);
    if (fstat(fd, &status) == 0 && status.st_size == size) return real(fd, size);
    WHOLE(size > status.st_size ? SPACE : NOTHING, real(fd, size), 't', path, NULL, size);
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int posix_fallocate(int fd, off_t offset, off_t size) {
    REAL(int, posix_fallocate, int, off_t, off_t);
    char path[PATH_MAX];
    if (mode == OFF || !fd_path(fd, path)) return real(fd, offset, size);
    return EOPNOTSUPP;
}

int posix_fallocate64(int fd, off64_t offset, off64_t size) { return posix_fallocate(fd, offset, size); }

/* Flushing */

static int flushed(int fd, int (*call)(int), const char *path) {
    WHOLE(NOTHING, call(fd), 's', path, NULL, 0);
}

int fsync(int fd) {
    REAL(int, fsync, int);
    char path[PATH_MAX];
    return mode == OFF || !fd_path(fd, path) ? real(fd) : flushed(fd, real, path);
}

int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    char path[PATH_MAX];
    return mode == OFF || !fd_path(fd, path) ? real(fd) : flushed(fd, real, path);
}

/* Names */

static int renamed(int old_folder, const char *old, int new_folder, const char *new, unsigned flags) {
    char from[PATH_MAX], to[PATH_MAX];
    int inside = full_path(old_folder, old, from);
    if (!full_path(new_folder, new, to) && !inside)
        return (int)syscall(SYS_renameat2, old_folder, old, new_folder, new, flags);
    WHOLE(NOTHING, (int)syscall(SYS_renameat2, old_folder, old, new_folder, new, flags), 'r', from, to, 0);
}

int rename(const char *old, const char *new) { return renamed(AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int a, const char *old, int b, const char *new) { return renamed(a, old, b, new, 0); }
int renameat2(int a, const char *old, int b, const char *new, unsigned flags) { return renamed(a, old, b, new, flags); }

static int removed(int folder, const char *path, int flags) {
    char full[PATH_MAX];
    struct stat status;
    if (!full_path(folder, path, full)) return (int)syscall(SYS_unlinkat, folder, path, flags);
    if (lstat(full, &status) != 0) return (int)syscall(SYS_unlinkat, folder, path, flags);
    WHOLE(NOTHING, (int)syscall(SYS_unlinkat, folder, path, flags), 'u', full, NULL, 0);
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return removed(folder, path, flags); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }

static int made(int folder, const char *path, mode_t permissions) {
    char full[PATH_MAX];
    struct stat status;
    if (!full_path(folder, path, full) || lstat(full, &status) == 0)
        return (int)syscall(SYS_mkdirat, folder, path, permissions);
    WHOLE(SPACE, (int)syscall(SYS_mkdirat, folder, path, permissions), 'm', full, NULL, 0);
}

int mkdir(const char *path, mode_t permissions) { return made(AT_FDCWD, path, permissions); }
int mkdirat(int folder, const char *path, mode_t permissions) { return made(folder, path, permissions); }

/* Messages to a server. A connection is lost before the server has the message, or before it answers. */

static int to_server(int fd) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(ssize_t, send, int, const void *, size_t, int);
    if (mode == OFF || !to_server(fd)) return real(fd, data, size, flags);
    int fate = enter(SERVER, size);
    if (fate == LOSE_MESSAGE) shutdown(fd, SHUT_RDWR);
    ssize_t result = real(fd, data, fate == HALF_THEN_DIE ? size / 2 : size, flags);
    int why = errno;
    if (fate == LOSE_ANSWER) shutdown(fd, SHUT_RDWR);
    errno = why;
    return leave(fate, result, 'n', "server", NULL, 0, NULL);
}

/* A library asks whether its folder can be written. */
int access(const char *path, int how) {
    char full[PATH_MAX];
    if (mode == READ_ONLY && fired && (how & W_OK) && full_path(AT_FDCWD, path, full)) {
        errno = EROFS;
        return -1;
    }
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, how);
}
