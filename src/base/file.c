#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

char *vlp_path_join(const char *folder, const char *name) {
    size_t length = strlen(folder);
    const char *separator = length > 0 && folder[length - 1] == '/' ? "" : "/";
    size_t size = length + strlen(separator) + strlen(name) + 1;
    char *path = vlp_alloc(size, 1);
    if (path) snprintf(path, size, "%s%s%s", folder, separator, name);
    return path;
}

bool vlp_path_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* ---- Mapping ------------------------------------------------------------------------------------- */

vlp_status vlp_map_open(vlp_map *map, const char *path) {
    *map = (vlp_map){"", 0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return vlp_fail_io("open", path, errno);
    vlp_status status = VLP_OK;
    struct stat info;
    if (fstat(file, &info) != 0) {
        status = vlp_fail_io("read", path, errno);
    } else if (!S_ISREG(info.st_mode)) {
        status = vlp_fail(VLP_ERROR_IO, "cannot read %s: not a regular file", path);
    } else if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED)
            status = vlp_fail_io("map", path, errno);
        else
            *map = (vlp_map){data, (size_t)info.st_size};
    }
    close(file);
    return status;
}

void vlp_map_close(vlp_map *map) {
    if (map->size > 0) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (vlp_map){"", 0};
}

/* ---- Reading a stream ---------------------------------------------------------------------------- */

struct vlp_source {
    char *name;
    gzFile file; /* zlib passes on what is not gzip as it is; NULL for memory */
    const char *data;
    size_t size, position;
};

static vlp_status source_new(vlp_source **out, const char *name) {
    vlp_source *source = vlp_alloc_zero(1, sizeof *source);
    if (!source) return vlp_fail_memory("a file reader");
    source->name = vlp_string_copy(name);
    if (!source->name) {
        vlp_free(source);
        return vlp_fail_memory("a file name");
    }
    *out = source;
    return VLP_OK;
}

vlp_status vlp_source_open(vlp_source **out, const char *path) {
    *out = NULL;
    vlp_source *source = NULL;
    VLP_TRY(source_new(&source, path));
    vlp_status status = VLP_OK;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (file < 0) {
        status = vlp_fail_io("open", path, errno);
        goto out;
    }
    if (fstat(file, &info) == 0 && S_ISDIR(info.st_mode)) {
        status = vlp_fail_io("read", path, EISDIR);
        goto out;
    }
    source->file = gzdopen(file, "rb");
    if (!source->file) {
        status = vlp_fail_memory("a file buffer");
        goto out;
    }
    file = -1; /* the gzFile closes it now */
    gzbuffer(source->file, 1 << 18);
out:
    if (status != VLP_OK) {
        if (file >= 0) close(file);
        vlp_source_free(source);
        return status;
    }
    *out = source;
    return VLP_OK;
}

vlp_status vlp_source_open_memory(vlp_source **out, const char *name, const void *data, size_t size) {
    *out = NULL;
    VLP_TRY(source_new(out, name));
    (*out)->data = data;
    (*out)->size = size;
    return VLP_OK;
}

static vlp_status source_failure(const vlp_source *source) {
    int code = Z_OK;
    const char *text = gzerror(source->file, &code);
    if (code == Z_ERRNO) return vlp_fail_io("read", source->name, errno);
    if (code == Z_BUF_ERROR)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: the gzip data ends too early; the file is cut short",
                        source->name);
    if (code == Z_MEM_ERROR) return vlp_fail_memory("decompression");
    /* zlib puts the name of the file (here a descriptor number) before its text. */
    const char *cause = strrchr(text, ':');
    return vlp_fail(VLP_ERROR_FORMAT, "%s: damaged gzip data (%s)", source->name,
                    cause ? cause + 2 : text);
}

vlp_status vlp_source_read(vlp_source *source, void *buffer, size_t size, size_t *got) {
    *got = 0;
    if (!source->file) {
        size_t left = source->size - source->position;
        size_t take = size < left ? size : left;
        if (take > 0) memcpy(buffer, source->data + source->position, take);
        source->position += take;
        *got = take;
        return VLP_OK;
    }
    while (*got < size) {
        size_t want = size - *got;
        if (want > (1u << 30)) want = 1u << 30;
        int count = gzread(source->file, (char *)buffer + *got, (unsigned)want);
        if (count < 0) return source_failure(source);
        if (count == 0) {
            int code = Z_OK;
            gzerror(source->file, &code);
            /* Z_BUF_ERROR at the end of the file: the compressed stream was not complete. */
            if (code != Z_OK && code != Z_STREAM_END) return source_failure(source);
            break;
        }
        *got += (size_t)count;
    }
    return VLP_OK;
}

const char *vlp_source_name(const vlp_source *source) {
    return source->name;
}

void vlp_source_free(vlp_source *source) {
    if (!source) return;
    if (source->file) gzclose_r(source->file);
    vlp_free(source->name);
    vlp_free(source);
}

/* ---- Writing whole files ------------------------------------------------------------------------- */

enum { WRITER_BUFFER = 1 << 16 };

struct vlp_writer {
    char *path, *temporary, *shown;
    int file;
    int code; /* errno of the first failure, 0 when none */
    size_t used;
    char buffer[WRITER_BUFFER];
};

/* Makes a rename or a new entry of the folder that holds `path` last. */
static int sync_parent(const char *path) {
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof folder) return ENAMETOOLONG;
    if (!slash)
        memcpy(folder, ".", 2);
    else if (length == 0)
        memcpy(folder, "/", 2);
    else {
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return errno;
    /* Some file systems cannot sync folders; that is their answer, not a failure of ours. */
    int code = fsync(file) == 0 || errno == EINVAL ? 0 : errno;
    close(file);
    return code;
}

vlp_status vlp_writer_open(vlp_writer **out, const char *path) {
    return vlp_writer_open_as(out, path, path);
}

vlp_status vlp_writer_open_as(vlp_writer **out, const char *path, const char *shown) {
    *out = NULL;
    vlp_writer *writer = vlp_alloc(1, sizeof *writer);
    if (!writer) return vlp_fail_memory("a file writer");
    writer->file = -1;
    writer->code = 0;
    writer->used = 0;
    size_t size = strlen(path) + 32;
    writer->path = vlp_string_copy(path);
    writer->shown = vlp_string_copy(shown);
    writer->temporary = vlp_alloc(size, 1);
    vlp_status status = VLP_OK;
    if (!writer->path || !writer->shown || !writer->temporary) {
        status = vlp_fail_memory("a file name");
    } else {
        snprintf(writer->temporary, size, "%s.partial-%ld", path, (long)getpid());
        writer->file = open(writer->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (writer->file < 0) status = vlp_fail_io("write", shown, errno);
    }
    if (status != VLP_OK) {
        vlp_free(writer->temporary); /* no such file: nothing to remove */
        writer->temporary = NULL;
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
    /* For short, bounded texts; names of any length go through vlp_writer_text. */
    assert(length >= 0 && (size_t)length < sizeof text);
    vlp_writer_bytes(writer, text, (size_t)length);
}

vlp_status vlp_writer_commit(vlp_writer **handle) {
    vlp_writer *writer = *handle;
    *handle = NULL;
    writer_flush(writer);
    if (writer->code == 0 && fsync(writer->file) != 0 && errno != EINVAL) writer->code = errno;
    if (close(writer->file) != 0 && writer->code == 0) writer->code = errno;
    writer->file = -1;
    if (writer->code == 0 && rename(writer->temporary, writer->path) != 0) writer->code = errno;
    if (writer->code == 0) {
        vlp_free(writer->temporary); /* it is the file itself now */
        writer->temporary = NULL;
        writer->code = sync_parent(writer->path);
    }
    vlp_status status = VLP_OK;
    if (writer->code != 0) status = vlp_fail_io("write", writer->shown, writer->code);
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
