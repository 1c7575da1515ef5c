/* Atomic file replacement: a temporary file beside the target is written, synced and renamed.
 *
 * Only regular files are replaced. A rename would silently turn a device, a FIFO or a symbolic link
 * into a regular file, so these are refused: before the work (vlp_writer_check) and again at the
 * commit. Symbolic links are not followed. The temporary file is always created anew (O_EXCL |
 * O_NOFOLLOW). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { WRITER_BUFFER = 1 << 16 };

struct vlp_writer {
    char *path, *temporary, *shown;
    int file;
    int code; /* errno of the first failure, or 0 */
    size_t used;
    char buffer[WRITER_BUFFER];
};

/* ---- The target ---------------------------------------------------------------------------------- */

/* Writes the parent folder of `path` into `folder`; returns 0 or an errno value. */
static int parent_of(char folder[PATH_MAX], const char *path) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= PATH_MAX) return ENAMETOOLONG;
    if (length > 0) {
        memcpy(folder, path, length);
        folder[length] = '\0';
    } else {
        memcpy(folder, slash ? "/" : ".", 2);
    }
    return 0;
}

/* VLP_OK if `path` does not exist or is a regular file. */
static vlp_status check_kind(const char *path, const char *shown) {
    struct stat info;
    if (lstat(path, &info) != 0)
        return errno == ENOENT && *path ? VLP_OK : vlp_fail_io("write", shown, errno);
    if (S_ISREG(info.st_mode)) return VLP_OK;
    if (S_ISDIR(info.st_mode))
        return vlp_fail(VLP_ERROR_IO, "cannot write %s: it is a folder; name a file", shown);
    if (S_ISLNK(info.st_mode))
        return vlp_fail(VLP_ERROR_IO, "cannot write %s: it is a symbolic link; name the file itself",
                        shown);
    return vlp_fail(VLP_ERROR_IO, "cannot write %s: it is not a regular file; name another", shown);
}

vlp_status vlp_parent_check(const char *path, const char *shown) {
    char folder[PATH_MAX];
    int code = parent_of(folder, path);
    if (code == 0 && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0) code = errno;
    return code ? vlp_fail_io("write", shown, code) : VLP_OK;
}

vlp_status vlp_writer_check(const char *path) {
    VLP_TRY(check_kind(path, path));
    return vlp_parent_check(path, path);
}

int vlp_parent_open(const char *path) {
    char folder[PATH_MAX];
    int code = parent_of(folder, path);
    if (code == 0) return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    errno = code;
    return -1;
}

vlp_status vlp_parent_sync(const char *path, const char *shown) {
    int folder = vlp_parent_open(path);
    if (folder < 0) return vlp_fail_io("write", shown, errno);
    /* EINVAL: the file system cannot sync folders. */
    int code = fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
    close(folder);
    return code ? vlp_fail_io("write", shown, code) : VLP_OK;
}

/* ---- The temporary name -------------------------------------------------------------------------- */

static const char mark[] = ".partial-";

/* A long name is truncated to NAME_MAX - SUFFIX bytes, so that it does not exceed NAME_MAX with the
 * suffix. */
enum { SUFFIX = 40 };

/* The last component of `path`, and the length to which it is truncated. */
static const char *last_component(const char *path, size_t *length) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    *length = strnlen(name, NAME_MAX - SUFFIX);
    return name;
}

char *vlp_temporary_name(const char *path, int attempt) {
    size_t name, folder = (size_t)(last_component(path, &name) - path), size = folder + name + SUFFIX;
    char *temporary = vlp_alloc(size, 1);
    if (!temporary) return NULL;
    char number[16] = "";
    if (attempt > 0) snprintf(number, sizeof number, "-%d", attempt);
    snprintf(temporary, size, "%.*s%s%ld%s", (int)(folder + name), path, mark, (long)getpid(), number);
    return temporary;
}

/* Reads a number as vlp_temporary_name writes it, without leading zeros, and advances the text; 0 where
 * there is none, or one that is no int. */
static long take_number(const char **text) {
    const char *digit = *text;
    long number = 0;
    for (; *digit >= '0' && *digit <= '9' && number < INT_MAX; digit++) {
        number = 10 * number + (*digit - '0');
        if (number == 0) return 0;
    }
    *text = digit;
    return number <= INT_MAX ? number : 0;
}

long vlp_temporary_process(const char *name, const char *path) {
    size_t length;
    const char *target = last_component(path, &length);
    if (strncmp(name, target, length) != 0) return 0;
    name += length;
    if (strncmp(name, mark, sizeof mark - 1) != 0) return 0;
    name += sizeof mark - 1;
    long process = take_number(&name);
    if (*name == '-' && process > 0) {
        name++;
        if (take_number(&name) == 0) return 0;
    }
    return *name ? 0 : process;
}

/* Creates the temporary file under an unused name. Existing files and links are neither opened nor
 * removed. */
static vlp_status create_temporary(vlp_writer *writer) {
    for (int attempt = 0; attempt < VLP_TEMPORARY_ATTEMPTS; attempt++) {
        char *name = vlp_temporary_name(writer->path, attempt);
        if (!name) return vlp_fail_memory("a file name");
        writer->file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (writer->file >= 0) {
            writer->temporary = name; /* created: to be removed on failure */
            return VLP_OK;
        }
        int code = errno;
        vlp_free(name);
        if (code != EEXIST) return vlp_fail_io("write", writer->shown, code);
    }
    return vlp_fail(VLP_ERROR_IO, "cannot write %s: too many temporary files beside it", writer->shown);
}

/* ---- Writing ------------------------------------------------------------------------------------- */

vlp_status vlp_writer_open(vlp_writer **out, const char *path) {
    return vlp_writer_open_as(out, path, path);
}

vlp_status vlp_writer_open_as(vlp_writer **out, const char *path, const char *shown) {
    *out = NULL;
    VLP_TRY(check_kind(path, shown));
    vlp_writer *writer = vlp_alloc(1, sizeof *writer);
    if (!writer) return vlp_fail_memory("a file writer");
    writer->file = -1;
    writer->code = 0;
    writer->used = 0;
    writer->temporary = NULL;
    writer->path = vlp_string_copy(path);
    writer->shown = vlp_string_copy(shown);
    vlp_status status =
        writer->path && writer->shown ? create_temporary(writer) : vlp_fail_memory("a file name");
    if (status != VLP_OK) {
        vlp_writer_free(writer);
        return status;
    }
    *out = writer;
    return VLP_OK;
}

static void writer_put(vlp_writer *writer, const char *data, size_t size) {
    while (size > 0 && writer->code == 0) {
        ssize_t count = write(writer->file, data, size);
        if (count < 0) {
            if (errno == EINTR) continue;
            writer->code = errno;
            return;
        }
        data += count;
        size -= (size_t)count;
    }
}

static void writer_flush(vlp_writer *writer) {
    writer_put(writer, writer->buffer, writer->used);
    writer->used = 0;
}

void vlp_writer_bytes(vlp_writer *writer, const void *data, size_t size) {
    if (size > WRITER_BUFFER - writer->used) writer_flush(writer);
    if (size >= WRITER_BUFFER) {
        writer_put(writer, data, size);
        return;
    }
    memcpy(writer->buffer + writer->used, data, size);
    writer->used += size;
}

void vlp_writer_text(vlp_writer *writer, const char *text) {
    vlp_writer_bytes(writer, text, strlen(text));
}

void vlp_writer_format(vlp_writer *writer, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    /* For short, bounded texts; names of any length are written by vlp_writer_text. */
    assert(length >= 0 && (size_t)length < sizeof text);
    vlp_writer_bytes(writer, text, (size_t)length);
}

/* Renames the finished temporary file to the target. */
static vlp_status put_in_place(vlp_writer *writer) {
    VLP_TRY(check_kind(writer->path, writer->shown));
    if (rename(writer->temporary, writer->path) != 0) return vlp_fail_io("write", writer->shown, errno);
    vlp_free(writer->temporary); /* renamed: nothing to remove */
    writer->temporary = NULL;
    return vlp_parent_sync(writer->path, writer->shown);
}

vlp_status vlp_writer_commit(vlp_writer **handle) {
    vlp_writer *writer = *handle;
    *handle = NULL;
    writer_flush(writer);
    if (writer->code == 0 && fsync(writer->file) != 0 && errno != EINVAL) writer->code = errno;
    if (close(writer->file) != 0 && writer->code == 0) writer->code = errno;
    writer->file = -1;
    vlp_status status =
        writer->code == 0 ? put_in_place(writer) : vlp_fail_io("write", writer->shown, writer->code);
    vlp_writer_free(writer);
    return status;
}

void vlp_writer_free(vlp_writer *writer) {
    if (!writer) return;
    if (writer->file >= 0) close(writer->file);
    if (writer->temporary) unlink(writer->temporary);
    vlp_free(writer->temporary);
    vlp_free(writer->path);
    vlp_free(writer->shown);
    vlp_free(writer);
}

/* ---- Logs ---------------------------------------------------------------------------------------- */

FILE *vlp_append_open(const char *path) {
    /* O_NONBLOCK: opening a FIFO would otherwise wait for a reader. */
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int file = open(path, flags, 0666);
    if (file < 0) return NULL;
    struct stat info;
    FILE *stream = fstat(file, &info) == 0 && S_ISREG(info.st_mode) ? fdopen(file, "a") : NULL;
    if (!stream) close(file);
    return stream;
}
