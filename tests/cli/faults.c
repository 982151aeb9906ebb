/* Makes system calls on files below a folder fail. Loaded with LD_PRELOAD.
 *
 * FAULT_ROOT is the folder, FAULT_CALL some of write, sync, open, create, read, rename, mkdir, list and lock, FAULT_ERROR
 * the number of the error. The first FAULT_AFTER of these calls succeed, all others fail.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls = 0;

static int is_inside(const char *path) {
    const char *root = getenv("FAULT_ROOT");
    return root && strncmp(path, root, strlen(root)) == 0;
}

static int is_file_inside(int fd) {
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return is_inside(path);
}

static int is_named_inside(int folder, const char *name) {
    char path[PATH_MAX * 2];
    if (name[0] == '/') return is_inside(name);
    if (folder != AT_FDCWD) return is_file_inside(folder);
    if (!getcwd(path, PATH_MAX)) return 0;
    snprintf(path + strlen(path), PATH_MAX, "/%s", name);
    return is_inside(path);
}

/* Whether this call is to fail; sets errno. */
static int fails(const char *call) {
    const char *wanted = getenv("FAULT_CALL"), *after = getenv("FAULT_AFTER"), *error = getenv("FAULT_ERROR");
    if (!wanted || !after || !error || !strstr(wanted, call)) return 0;
    if (atomic_fetch_add(&calls, 1) < atol(after)) return 0;
    errno = atoi(error);
    return 1;
}

static int open_at(int folder, const char *name, int flags, mode_t mode) {
    if (is_named_inside(folder, name) && fails(flags & O_CREAT ? "create" : "open")) return -1;
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}

#define MODE_OF(flags)                                                                                                 \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                                               \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open(const char *name, int flags, ...) { MODE_OF(flags) return open_at(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE_OF(flags) return open_at(AT_FDCWD, name, flags, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE_OF(flags) return open_at(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE_OF(flags) return open_at(folder, name, flags, mode); }

ssize_t write(int fd, const void *data, size_t length) {
    if (fd > 2 && is_file_inside(fd) && fails("write")) return -1;
    return syscall(SYS_write, fd, data, length);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (fd > 2 && is_file_inside(fd) && fails("write")) return -1;
    return syscall(SYS_writev, fd, parts, count);
}
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) {
    if (is_file_inside(fd) && fails("write")) return -1;
    return syscall(SYS_pwrite64, fd, data, length, at);
}
ssize_t read(int fd, void *data, size_t length) {
    if (fd > 2 && is_file_inside(fd) && fails("read")) return -1;
    return syscall(SYS_read, fd, data, length);
}
ssize_t pread64(int fd, void *data, size_t length, off64_t at) {
    if (is_file_inside(fd) && fails("read")) return -1;
    return syscall(SYS_pread64, fd, data, length, at);
}
int ftruncate64(int fd, off64_t length) {
    if (is_file_inside(fd) && fails("write")) return -1;
    return (int)syscall(SYS_ftruncate, fd, length);
}
int fsync(int fd) {
    if (is_file_inside(fd) && fails("sync")) return -1;
    return (int)syscall(SYS_fsync, fd);
}
int fdatasync(int fd) {
    if (is_file_inside(fd) && fails("sync")) return -1;
    return (int)syscall(SYS_fdatasync, fd);
}
int mkdir(const char *path, mode_t mode) {
    if (is_named_inside(AT_FDCWD, path) && fails("mkdir")) return -1;
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}
int rename(const char *from, const char *to) {
    if (is_named_inside(AT_FDCWD, from) && fails("rename")) return -1;
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int flock(int fd, int how) {
    if (fails("lock")) return -1;
    return (int)syscall(SYS_flock, fd, how);
}
DIR *opendir(const char *name) {
    if (is_named_inside(AT_FDCWD, name) && fails("list")) return NULL;
    DIR *(*next)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    return next(name);
}
