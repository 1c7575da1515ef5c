/* One training at a time in a run folder, and nothing of a failed or killed one left in it.
 *
 * train.lock is held with flock, which ends with the process however it ends, and says who holds it. It
 * is removed when the training ends; so a process that has locked the file has to check that it still is
 * the one in the folder. One that is found marks the folder as ours: a training was killed in it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "learn/run_folder.h"

struct vlp_run_lock {
    char *folder, *path; /* of the lock */
    int file;
    bool made;  /* the folder was missing */
    bool found; /* a training was killed in it */
};

static const char lock_name[] = "train.lock";

/* What a training writes before it saves weights. */
static const char *const early_files[] = {"entities.tsv", "relations.tsv", "triples.tsv.gz",
                                          "recipe.ini",   "config.ini",    "metrics.jsonl",
                                          "train.log"};
enum { EARLY_FILES = sizeof early_files / sizeof *early_files };

/* ---- The lock ------------------------------------------------------------------------------------ */

static vlp_status fail_busy(const vlp_run_lock *lock) {
    char text[320] = "", host[256] = "";
    long process = 0;
    ssize_t length = pread(lock->file, text, sizeof text - 1, 0);
    if (length <= 0 || sscanf(text, "%ld %255[^\n]", &process, host) != 2 || process <= 0)
        return vlp_fail(VLP_ERROR_BUSY, "%s is being trained by another process", lock->folder);
    return vlp_fail(VLP_ERROR_BUSY, "%s is being trained by process %ld on %s", lock->folder, process,
                    host);
}

/* Says who holds the lock. On a full disk it does not: that is no reason not to hold it. */
static void sign(const vlp_run_lock *lock) {
    char text[320], host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0 || !*host) memcpy(host, "this machine", 13);
    int length = snprintf(text, sizeof text, "%ld %s\n", (long)getpid(), host);
    if (ftruncate(lock->file, 0) != 0) return;
    ssize_t written = pwrite(lock->file, text, (size_t)length, 0);
    (void)written;
}

/* Whether the locked file is the one in the folder. */
static bool is_current(const vlp_run_lock *lock) {
    struct stat mine, there;
    return fstat(lock->file, &mine) == 0 && stat(lock->path, &there) == 0 &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

static vlp_status lock_file(vlp_run_lock *lock) {
    for (;;) {
        const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
        lock->file = open(lock->path, flags | O_EXCL, 0666);
        lock->found = lock->file < 0 && errno == EEXIST;
        if (lock->found) lock->file = open(lock->path, flags, 0666);
        /* In a folder that cannot be written, a finished run can still be resumed: there is nothing to
         * do. */
        if (lock->file < 0 && !lock->made && (errno == EROFS || errno == EACCES)) return VLP_OK;
        if (lock->file < 0) return vlp_fail_io("lock", lock->folder, errno);
        if (flock(lock->file, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK) return fail_busy(lock);
            /* Some file systems have no locks; training there is as it would be without. */
            if (errno != ENOLCK && errno != ENOSYS && errno != EOPNOTSUPP && errno != EINVAL) {
                int code = errno;
                if (!lock->found) unlink(lock->path);
                return vlp_fail_io("lock", lock->folder, code);
            }
        }
        if (is_current(lock)) break;
        close(lock->file);
    }
    sign(lock);
    return VLP_OK;
}

static void lock_free(vlp_run_lock *lock) {
    if (lock->file >= 0) close(lock->file);
    vlp_free(lock->folder);
    vlp_free(lock->path);
    vlp_free(lock);
}

vlp_status vlp_run_lock_take(vlp_run_lock **out, const char *folder) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_run_lock *lock = vlp_alloc_zero(1, sizeof *lock);
    if (!lock) return vlp_fail_memory("a lock");
    lock->file = -1;
    lock->folder = vlp_string_copy(folder);
    lock->path = vlp_path_join(folder, lock_name);
    if (!lock->folder || !lock->path) {
        status = vlp_fail_memory("a file name");
        goto out;
    }
    lock->made = mkdir(folder, 0777) == 0;
    if (!lock->made && errno != EEXIST) {
        status = vlp_fail_io("make", folder, errno);
        goto out;
    }
    VLP_CHECK(lock_file(lock));
out:
    if (status != VLP_OK) {
        if (lock->made) rmdir(folder);
        lock_free(lock);
        return status;
    }
    *out = lock;
    return VLP_OK;
}

/* ---- What is in the folder ----------------------------------------------------------------------- */

/* "NAME.partial-PID" or "NAME.partial-PID-N", as writers name what is not yet whole. */
static bool is_temporary(const char *name) {
    static const char mark[] = ".partial-";
    const char *at = NULL;
    for (const char *next = name; (next = strstr(next, mark)); next++) at = next;
    if (!at) return strcmp(name, "state.previous.safetensors.link") == 0;
    at += sizeof mark - 1;
    return *at && at[strspn(at, "0123456789-")] == '\0';
}

static bool is_early(const char *name) {
    for (int i = 0; i < EARLY_FILES; i++)
        if (strcmp(name, early_files[i]) == 0) return true;
    return false;
}

vlp_status vlp_run_lock_check_free(const vlp_run_lock *lock) {
    DIR *folder = opendir(lock->folder);
    if (!folder) return vlp_fail_io("read", lock->folder, errno);
    vlp_status status = VLP_OK;
    for (const struct dirent *entry; status == VLP_OK && (entry = readdir(folder));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, lock_name) == 0) continue;
        if (lock->found && (is_early(name) || is_temporary(name))) continue;
        status = vlp_fail(VLP_ERROR_EXISTS,
                          "cannot train into %s: it is not a run, and holds %.200s; name a new folder",
                          lock->folder, name);
    }
    closedir(folder);
    return status;
}

void vlp_run_lock_sweep(const vlp_run_lock *lock) {
    DIR *folder = opendir(lock->folder);
    if (!folder) return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (is_temporary(entry->d_name)) unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

void vlp_run_lock_release(vlp_run_lock *lock, bool discard) {
    if (!lock) return;
    int folder = open(lock->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; discard && folder >= 0 && i < EARLY_FILES; i++) unlinkat(folder, early_files[i], 0);
    if (folder >= 0) close(folder);
    /* While it is held: afterwards the file may be another training's. */
    unlink(lock->path);
    if (discard && lock->made) rmdir(lock->folder);
    lock_free(lock);
}
