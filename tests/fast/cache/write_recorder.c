/* Records, in their order, all changes that a process makes below a folder, and what it prints. Loaded with LD_PRELOAD.
 *
 * RECORD_ROOT is the folder, RECORD_TO the file that gets the records:
 *   kind 1 | length of path 4 | path | length of second path 4 | second path | offset 8 | length of data 8 | data
 * Kinds: c create, m mkdir, r rename, u unlink, d rmdir, w write, t truncate (to offset), s sync, p printed.
 */
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int target = -1;

static const char *root(void) { return getenv("RECORD_ROOT"); }

static int is_inside(const char *path) {
    const char *folder = root();
    return folder && strncmp(path, folder, strlen(folder)) == 0;
}

static void record(char kind, const char *path, const char *second, uint64_t offset, const void *data, uint64_t length) {
    if (target < 0) {
        const char *to = getenv("RECORD_TO");
        if (!to) return;
        target = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (target < 0) return;
    }
    uint32_t first_length = strlen(path), second_length = strlen(second);
    struct iovec parts[] = {
        {&kind, 1}, {&first_length, 4}, {(void *)path, first_length}, {&second_length, 4}, {(void *)second, second_length},
        {&offset, 8}, {&length, 8}, {(void *)data, length},
    };
    syscall(SYS_writev, target, parts, 8);
}

static int path_of(int fd, char *path) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return is_inside(path);
}

static void resolve(int folder, const char *name, char *path) {
    if (name[0] == '/' || folder == AT_FDCWD) {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    char parent[PATH_MAX];
    if (path_of(folder, parent)) snprintf(path, PATH_MAX, "%.2000s/%.2000s", parent, name);
    else path[0] = 0;
}

static int open_recorded(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    resolve(folder, name, path);
    pthread_mutex_lock(&turn);
    struct stat found;
    int is_new = (flags & O_CREAT) && is_inside(path) && syscall(SYS_newfstatat, AT_FDCWD, path, &found, 0) != 0;
    int fd = (int)syscall(SYS_openat, folder, name, flags, mode);
    int error = errno;
    if (fd >= 0 && is_new) record('c', path, "", 0, "", 0);
    if (fd >= 0 && (flags & O_TRUNC) && !is_new && is_inside(path)) record('t', path, "", 0, "", 0);
    pthread_mutex_unlock(&turn);
    errno = error;
    return fd;
}

#define MODE_OF(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *name, int flags, ...) { MODE_OF(flags) return open_recorded(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE_OF(flags) return open_recorded(AT_FDCWD, name, flags, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE_OF(flags) return open_recorded(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE_OF(flags) return open_recorded(folder, name, flags, mode); }

#define RESULT(call) long result = (call); int error = errno;
#define DONE pthread_mutex_unlock(&turn); errno = error; return result;

ssize_t write(int fd, const void *data, size_t length) {
    char path[PATH_MAX];
    pthread_mutex_lock(&turn);
    int inside = fd != 1 && path_of(fd, path);
    off_t at = 0;
    if (inside) {
        struct stat found;
        int flags = (int)syscall(SYS_fcntl, fd, F_GETFL);
        at = (flags & O_APPEND) && fstat(fd, &found) == 0 ? found.st_size : lseek(fd, 0, SEEK_CUR);
    }
    RESULT(syscall(SYS_write, fd, data, length))
    if (result > 0 && inside) record('w', path, "", at, data, result);
    if (result > 0 && fd == 1) record('p', "", "", 0, data, result);
    DONE
}

static ssize_t pwrite_recorded(int fd, const void *data, size_t length, off_t at) {
    char path[PATH_MAX];
    pthread_mutex_lock(&turn);
    RESULT(syscall(SYS_pwrite64, fd, data, length, at))
    if (result > 0 && path_of(fd, path)) record('w', path, "", at, data, result);
    DONE
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t at) { return pwrite_recorded(fd, data, length, at); }
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) { return pwrite_recorded(fd, data, length, at); }

static int truncate_recorded(int fd, off_t length) {
    char path[PATH_MAX];
    pthread_mutex_lock(&turn);
    RESULT(syscall(SYS_ftruncate, fd, length))
    if (result == 0 && path_of(fd, path)) record('t', path, "", length, "", 0);
    DONE
}
int ftruncate(int fd, off_t length) { return truncate_recorded(fd, length); }
int ftruncate64(int fd, off64_t length) { return truncate_recorded(fd, length); }

static int sync_recorded(int fd, long call) {
    char path[PATH_MAX];
    pthread_mutex_lock(&turn);
    RESULT(syscall(call, fd))
    if (result == 0 && path_of(fd, path)) record('s', path, "", 0, "", 0);
    DONE
}
int fsync(int fd) { return sync_recorded(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_recorded(fd, SYS_fdatasync); }

int mkdir(const char *path, mode_t mode) {
    pthread_mutex_lock(&turn);
    RESULT(syscall(SYS_mkdirat, AT_FDCWD, path, mode))
    if (result == 0 && is_inside(path)) record('m', path, "", 0, "", 0);
    DONE
}

int rename(const char *from, const char *to) {
    pthread_mutex_lock(&turn);
    RESULT(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0))
    if (result == 0 && is_inside(from)) record('r', from, to, 0, "", 0);
    DONE
}

static int unlink_recorded(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    resolve(folder, name, path);
    pthread_mutex_lock(&turn);
    RESULT(syscall(SYS_unlinkat, folder, name, flags))
    if (result == 0 && is_inside(path)) record(flags & AT_REMOVEDIR ? 'd' : 'u', path, "", 0, "", 0);
    DONE
}
int unlink(const char *path) { return unlink_recorded(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlink_recorded(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int folder, const char *name, int flags) { return unlink_recorded(folder, name, flags); }
