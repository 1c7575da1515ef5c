#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

static bool complain(const char *path, const char *reason) {
    fprintf(stderr, "vlp: cannot write %s: %s\n", text_shown(path), reason);
    return false;
}

/* The folder that holds `path`, to be freed. */
static char *parent_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Whether `path` is absent or a regular file: a rename would replace anything. */
static bool check_kind(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0) return (errno == ENOENT && *path) || complain(path, strerror(errno));
    if (S_ISREG(info.st_mode)) return true;
    if (S_ISDIR(info.st_mode)) return complain(path, "it is a folder; name a file");
    if (S_ISLNK(info.st_mode)) return complain(path, "it is a symbolic link; name the file itself");
    return complain(path, "it is not a regular file; name another");
}

/* Whether the folder that holds `path` is there and writable. */
static bool check_parent(const char *path) {
    char *folder = parent_of(path);
    int code = 0;
    if (!folder) code = ENOMEM;
    if (folder && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0) code = errno;
    free(folder);
    return code == 0 || complain(path, strerror(code));
}

bool output_check(const char *path) {
    return check_kind(path) && check_parent(path);
}

bool output_check_folder(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0)
        return errno == ENOENT && *path ? check_parent(path) : complain(path, strerror(errno));
    if (S_ISLNK(info.st_mode)) return complain(path, "it is a symbolic link; name the folder itself");
    return S_ISDIR(info.st_mode) || complain(path, "it is not a folder; name another");
}

/* "PATH.partial-PID", "PATH.partial-PID-1" ...: a name that is taken, by what a killed process left
 * behind or by a link, is neither opened nor removed. */
static int create(output_file *out) {
    enum { SUFFIX = 40, ATTEMPTS = 100 };
    const char *slash = strrchr(out->path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - out->path) : 0, name = strlen(out->path + folder);
    if (name > NAME_MAX - SUFFIX) name = NAME_MAX - SUFFIX; /* the suffix has to fit into a name */
    size_t size = folder + name + SUFFIX;
    out->partial = malloc(size);
    if (!out->partial) return ENOMEM;
    int file = -1;
    for (int attempt = 0; attempt < ATTEMPTS && file < 0; attempt++) {
        char number[16] = "";
        if (attempt > 0) snprintf(number, sizeof number, "-%d", attempt);
        snprintf(out->partial, size, "%.*s.partial-%ld%s", (int)(folder + name), out->path,
                 (long)getpid(), number);
        file = open(out->partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST) break;
    }
    if (file < 0) {
        int code = errno;
        free(out->partial); /* there is nothing to remove */
        out->partial = NULL;
        return code;
    }
    out->stream = fdopen(file, "w");
    if (out->stream) return 0;
    int code = errno;
    close(file);
    return code;
}

bool output_open(output_file *out, const char *path) {
    *out = (output_file){0};
    if (!check_kind(path)) return false;
    out->path = strdup(path);
    int code = out->path ? create(out) : ENOMEM;
    if (code == 0) return true;
    output_drop(out);
    return complain(path, strerror(code));
}

/* Makes the rename last. A file system that cannot sync folders is no failure. */
static void sync_parent(const char *path) {
    char *folder = parent_of(path);
    int file = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (file >= 0) {
        (void)fsync(file);
        close(file);
    }
    free(folder);
}

bool output_commit(output_file *out, int64_t *bytes) {
    int code = 0;
    errno = 0;
    if (fflush(out->stream) != 0 || ferror(out->stream)) code = errno ? errno : EIO;
    *bytes = (int64_t)ftello(out->stream);
    if (!code && fsync(fileno(out->stream)) != 0 && errno != EINVAL) code = errno;
    if (fclose(out->stream) != 0 && !code) code = errno;
    out->stream = NULL;
    bool done = code == 0 ? check_kind(out->path) : complain(out->path, strerror(code));
    if (done && rename(out->partial, out->path) != 0) done = complain(out->path, strerror(errno));
    if (done) {
        free(out->partial); /* it is the file itself now */
        out->partial = NULL;
        sync_parent(out->path);
    }
    output_drop(out);
    return done;
}

void output_drop(output_file *out) {
    if (out->stream) fclose(out->stream);
    if (out->partial) unlink(out->partial);
    free(out->partial);
    free(out->path);
    *out = (output_file){0};
}
