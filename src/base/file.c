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

/* ---- Opening ------------------------------------------------------------------------------------- */

/* Whether a path names a descriptor that the program was given: standard input, or a shell's <(...). */
static bool names_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0) return true;
    return strcmp(path, "/dev/stdin") == 0;
}

/* Opens a regular file, or any stream where `streams` allows it and the path names a descriptor. Opening
 * a FIFO waits for a writer, possibly for ever, and reading a device may never end: these are refused.
 */
static vlp_status open_input(int *out, struct stat *info, const char *path, bool streams) {
    vlp_status status = VLP_OK;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return vlp_fail_io("open", path, errno);
    if (fstat(file, info) != 0)
        status = vlp_fail_io("read", path, errno);
    else if (S_ISDIR(info->st_mode))
        status = vlp_fail_io("read", path, EISDIR);
    else if (!S_ISREG(info->st_mode) && !(streams && names_descriptor(path)))
        status = vlp_fail(VLP_ERROR_IO, "cannot read %s: not a regular file", path);
    else if (!S_ISREG(info->st_mode) && fcntl(file, F_SETFL, 0) != 0) /* reading waits */
        status = vlp_fail_io("read", path, errno);
    if (status != VLP_OK) {
        close(file);
        return status;
    }
    *out = file;
    return VLP_OK;
}

/* ---- Mapping ------------------------------------------------------------------------------------- */

vlp_status vlp_map_open(vlp_map *map, const char *path) {
    *map = (vlp_map){"", 0};
    int file = -1;
    struct stat info;
    VLP_TRY(open_input(&file, &info, path, false));
    vlp_status status = VLP_OK;
    if (info.st_size > 0) {
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

/* Decompression is driven here and not through gzread: zlib 1.2.13's forgets that a file was cut short
 * when the caller's buffer is full just as the compressed bytes run out. */
enum { SOURCE_BUFFER = 1 << 18 };

struct vlp_source {
    char *name;
    int file;             /* -1: memory */
    unsigned char *input; /* (capacity), of which stream.next_in is still to be used */
    size_t capacity;
    z_stream stream;
    bool compressed;
    bool inside;      /* a member of the gzip file, which has to end */
    bool ended;       /* the file has no more bytes */
    const char *data; /* (size), of which `position` are read; memory only */
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
    source->file = -1;
    *out = source;
    return VLP_OK;
}

/* Reads from the file until `buffer` is full or the file ends. */
static vlp_status read_file(vlp_source *source, void *buffer, size_t size, size_t *got) {
    for (*got = 0; *got < size && !source->ended;) {
        ssize_t count = read(source->file, (char *)buffer + *got, size - *got);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return vlp_fail_io("read", source->name, errno);
        source->ended = count == 0;
        *got += (size_t)count;
    }
    return VLP_OK;
}

/* Fills up the input behind what is left of it. */
static vlp_status refill(vlp_source *source) {
    size_t left = source->stream.avail_in, got;
    if (left > 0) memmove(source->input, source->stream.next_in, left);
    VLP_TRY(read_file(source, source->input + left, source->capacity - left, &got));
    source->stream.next_in = source->input;
    source->stream.avail_in = (unsigned)(left + got);
    return VLP_OK;
}

static bool at_member(const vlp_source *source) {
    const z_stream *stream = &source->stream;
    return stream->avail_in >= 2 && stream->next_in[0] == 0x1f && stream->next_in[1] == 0x8b;
}

static void *inflate_allocate(void *opaque, unsigned count, unsigned size) {
    (void)opaque;
    return vlp_alloc(count, size);
}

static void inflate_release(void *opaque, void *memory) {
    (void)opaque;
    vlp_free(memory);
}

static vlp_status begin_inflating(vlp_source *source) {
    source->stream.zalloc = inflate_allocate;
    source->stream.zfree = inflate_release;
    if (inflateInit2(&source->stream, 15 + 16) != Z_OK) return vlp_fail_memory("decompression");
    source->compressed = source->inside = true;
    return VLP_OK;
}

vlp_status vlp_source_open(vlp_source **out, const char *path) {
    *out = NULL;
    vlp_source *source = NULL;
    VLP_TRY(source_new(&source, path));
    vlp_status status = VLP_OK;
    struct stat info;
    VLP_CHECK(open_input(&source->file, &info, path, true));
    source->capacity = SOURCE_BUFFER;
    /* A small file needs no large buffer, and most files of a folder are small. */
    if (S_ISREG(info.st_mode) && info.st_size < SOURCE_BUFFER)
        source->capacity = (size_t)info.st_size + 2;
    source->input = vlp_alloc(source->capacity, 1);
    if (!source->input) {
        status = vlp_fail_memory("a file buffer");
        goto out;
    }
    VLP_CHECK(refill(source));
    if (at_member(source)) VLP_CHECK(begin_inflating(source));
out:
    if (status != VLP_OK) {
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

static vlp_status read_plain(vlp_source *source, void *buffer, size_t size, size_t *got) {
    size_t taken = source->stream.avail_in < size ? source->stream.avail_in : size;
    memcpy(buffer, source->stream.next_in, taken);
    source->stream.next_in += taken;
    source->stream.avail_in -= (unsigned)taken;
    VLP_TRY(read_file(source, (char *)buffer + taken, size - taken, got));
    *got += taken;
    return VLP_OK;
}

/* Inflates what fits; *got == 0 at the end. */
static vlp_status inflate_some(vlp_source *source, void *buffer, size_t size, size_t *got) {
    z_stream *stream = &source->stream;
    if (stream->avail_in < 2 && !source->ended) VLP_TRY(refill(source));
    if (!source->inside) {
        if (!at_member(source)) { /* what is behind the last member is padding */
            stream->avail_in = 0;
            source->ended = true;
            return VLP_OK;
        }
        inflateReset(stream);
        source->inside = true;
    }
    stream->next_out = buffer;
    stream->avail_out = size < 1u << 30 ? (unsigned)size : 1u << 30;
    unsigned room = stream->avail_out;
    int code = inflate(stream, Z_NO_FLUSH);
    *got = room - stream->avail_out;
    source->inside = code != Z_STREAM_END;
    if (code == Z_OK || code == Z_STREAM_END) return VLP_OK;
    if (code == Z_MEM_ERROR) return vlp_fail_memory("decompression");
    if (code == Z_BUF_ERROR)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: the gzip data ends too early; the file is cut short",
                        source->name);
    return vlp_fail(VLP_ERROR_FORMAT, "%s: damaged gzip data (%s)", source->name,
                    stream->msg ? stream->msg : "unknown cause");
}

static bool has_more(const vlp_source *source) {
    return source->inside || source->stream.avail_in > 0 || !source->ended;
}

vlp_status vlp_source_read(vlp_source *source, void *buffer, size_t size, size_t *got) {
    *got = 0;
    if (source->file < 0) {
        size_t left = source->size - source->position;
        size_t take = size < left ? size : left;
        if (take > 0) memcpy(buffer, source->data + source->position, take);
        source->position += take;
        *got = take;
        return VLP_OK;
    }
    if (!source->compressed) return read_plain(source, buffer, size, got);
    while (*got < size && has_more(source)) {
        size_t count = 0;
        VLP_TRY(inflate_some(source, (char *)buffer + *got, size - *got, &count));
        *got += count;
    }
    return VLP_OK;
}

const char *vlp_source_name(const vlp_source *source) {
    return source->name;
}

void vlp_source_free(vlp_source *source) {
    if (!source) return;
    if (source->compressed) inflateEnd(&source->stream);
    if (source->file >= 0) close(source->file);
    vlp_free(source->input);
    vlp_free(source->name);
    vlp_free(source);
}
