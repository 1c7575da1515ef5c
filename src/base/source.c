/* A stream of bytes: a plain file, a compressed one, or memory.
 *
 * A compressed file is decompressed into the caller's buffer, so that memory does not depend on the
 * decompressed size. Input is read in blocks of SOURCE_BUFFER bytes. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/file.h"

enum { SOURCE_BUFFER = 1 << 18, ZSTD_STEP = 1 << 12 };

typedef enum coding { PLAIN, GZIP, ZSTD } coding;

struct vlp_source {
    char *name;
    int file;             /* -1 when reading from memory */
    unsigned char *input; /* (capacity); [at, filled) is unused */
    size_t capacity, at, filled;
    int64_t consumed; /* bytes of the file before input[0] */
    bool ended;       /* end of file reached */
    coding coding;
    bool inside;              /* within a gzip member or zstd frame, which is not complete yet */
    z_stream inflating;       /* GZIP */
    ZSTD_DCtx *decompressing; /* ZSTD */
    char *peeked;             /* (peek_size), the first peek_at of them read; or NULL */
    size_t peek_size, peek_at;
    const char *data; /* (size), the first `position` bytes read; memory only */
    size_t size, position;
};

static size_t smaller(size_t left, size_t right) {
    return left < right ? left : right;
}

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

/* Appends input to what is left in the buffer. */
static vlp_status refill(vlp_source *source) {
    size_t left = source->filled - source->at, got;
    if (left > 0) memmove(source->input, source->input + source->at, left);
    source->consumed += (int64_t)source->at;
    source->at = 0;
    VLP_TRY(read_file(source, source->input + left, source->capacity - left, &got));
    source->filled = left + got;
    return VLP_OK;
}

/* ---- Compression --------------------------------------------------------------------------------- */

/* The longest magic number. */
enum { MAGIC = 4 };

/* What the unused input starts with. A zstd file may start with a skippable frame. */
static coding coding_of(const vlp_source *source) {
    const unsigned char *at = source->input + source->at;
    size_t size = source->filled - source->at;
    if (size >= 2 && at[0] == 0x1f && at[1] == 0x8b) return GZIP;
    if (size >= MAGIC && memcmp(at, "\x28\xb5\x2f\xfd", MAGIC) == 0) return ZSTD;
    if (size >= MAGIC && (at[0] & 0xf0) == 0x50 && memcmp(at + 1, "\x2a\x4d\x18", 3) == 0) return ZSTD;
    return PLAIN;
}

static void *inflate_allocate(void *opaque, unsigned count, unsigned size) {
    (void)opaque;
    return vlp_alloc(count, size);
}

static void inflate_release(void *opaque, void *memory) {
    (void)opaque;
    vlp_free(memory);
}

static vlp_status begin(vlp_source *source) {
    coding found = coding_of(source);
    switch (found) {
    case PLAIN:
        break;
    case GZIP:
        source->inflating.zalloc = inflate_allocate;
        source->inflating.zfree = inflate_release;
        if (inflateInit2(&source->inflating, 15 + 16) != Z_OK) return vlp_fail_memory("decompression");
        source->inside = true;
        break;
    case ZSTD:
        /* Its default limit of the window, 128 MiB, bounds the memory. */
        source->decompressing = ZSTD_createDCtx();
        if (!source->decompressing) return vlp_fail_memory("decompression");
        source->inside = true;
        break;
    }
    source->coding = found;
    return VLP_OK;
}

static vlp_status fail_truncated(const vlp_source *source, const char *kind) {
    return vlp_fail(VLP_ERROR_FORMAT,
                    "%s: the %s data ends too early, at byte %lld; the file is truncated: get it again",
                    source->name, kind, (long long)(source->consumed + (int64_t)source->at));
}

static vlp_status fail_damaged(const vlp_source *source, const char *kind, const char *cause) {
    return vlp_fail(VLP_ERROR_FORMAT, "%s: damaged %s data near byte %lld (%s); get the file again",
                    source->name, kind, (long long)(source->consumed + (int64_t)source->at), cause);
}

/* Calls inflate itself instead of gzread: gzread of zlib 1.2.13 does not report a truncated file when
 * the caller's buffer is full at the end of the compressed bytes. */
static vlp_status inflate_some(vlp_source *source, void *buffer, size_t size, size_t *got) {
    z_stream *stream = &source->inflating;
    if (!source->inside) {
        if (coding_of(source) != GZIP) { /* bytes after the last member are padding */
            source->at = source->filled;
            source->ended = true;
            return VLP_OK;
        }
        inflateReset(stream);
        source->inside = true;
    }
    stream->next_in = source->input + source->at;
    stream->avail_in = (unsigned)(source->filled - source->at);
    stream->next_out = buffer;
    stream->avail_out = size < 1u << 30 ? (unsigned)size : 1u << 30;
    unsigned capacity = stream->avail_out;
    int code = inflate(stream, Z_NO_FLUSH);
    source->at = source->filled - stream->avail_in;
    *got = capacity - stream->avail_out;
    source->inside = code != Z_STREAM_END;
    if (code == Z_OK || code == Z_STREAM_END) return VLP_OK;
    if (code == Z_MEM_ERROR) return vlp_fail_memory("decompression");
    if (code == Z_BUF_ERROR) return fail_truncated(source, "gzip");
    return fail_damaged(source, "gzip", stream->msg ? stream->msg : "unknown cause");
}

static vlp_status decompress_some(vlp_source *source, void *buffer, size_t size, size_t *got) {
    /* Small steps, so that an error names its place. */
    ZSTD_inBuffer in = {source->input, smaller(source->filled, source->at + ZSTD_STEP), source->at};
    ZSTD_outBuffer out = {buffer, size, 0};
    size_t code = ZSTD_decompressStream(source->decompressing, &out, &in);
    bool stuck = in.pos == source->at && out.pos == 0;
    source->at = in.pos;
    *got = out.pos;
    if (ZSTD_isError(code)) {
        ZSTD_ErrorCode error = ZSTD_getErrorCode(code);
        if (error == ZSTD_error_memory_allocation) return vlp_fail_memory("decompression");
        if (error == ZSTD_error_frameParameter_windowTooLarge)
            return vlp_fail(VLP_ERROR_FORMAT,
                            "%s: its zstd window is larger than 128 MiB; compress it with a smaller one",
                            source->name);
        return fail_damaged(source, "zstd", ZSTD_getErrorName(code));
    }
    source->inside = code != 0;
    return stuck && source->inside ? fail_truncated(source, "zstd") : VLP_OK;
}

/* Decompresses at most `size` bytes; *got is 0 at the end. */
static vlp_status decode_some(vlp_source *source, void *buffer, size_t size, size_t *got) {
    if (source->filled - source->at < MAGIC && !source->ended) VLP_TRY(refill(source));
    if (!source->inside && source->at == source->filled) return VLP_OK;
    return source->coding == GZIP ? inflate_some(source, buffer, size, got)
                                  : decompress_some(source, buffer, size, got);
}

/* ---- Opening and reading ------------------------------------------------------------------------- */

vlp_status vlp_source_open(vlp_source **out, const char *path) {
    *out = NULL;
    vlp_source *source = NULL;
    bool standard = strcmp(path, "-") == 0;
    VLP_TRY(source_new(&source, standard ? "standard input" : path));
    vlp_status status = VLP_OK;
    struct stat info;
    VLP_CHECK(vlp_input_open(&source->file, &info, standard ? "/dev/stdin" : path, true));
    source->capacity = SOURCE_BUFFER;
    /* A small file gets a small buffer. */
    if (S_ISREG(info.st_mode) && info.st_size < SOURCE_BUFFER)
        source->capacity = (size_t)info.st_size + MAGIC;
    source->input = vlp_alloc(source->capacity, 1);
    if (!source->input) {
        status = vlp_fail_memory("a file buffer");
        goto out;
    }
    VLP_CHECK(refill(source));
    VLP_CHECK(begin(source));
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
    size_t taken = smaller(source->filled - source->at, size);
    memcpy(buffer, source->input + source->at, taken);
    source->at += taken;
    VLP_TRY(read_file(source, (char *)buffer + taken, size - taken, got));
    *got += taken;
    return VLP_OK;
}

static size_t read_memory(vlp_source *source, void *buffer, size_t size) {
    size_t taken = smaller(source->size - source->position, size);
    if (taken > 0) memcpy(buffer, source->data + source->position, taken);
    source->position += taken;
    return taken;
}

static bool has_more(const vlp_source *source) {
    return source->inside || source->at < source->filled || !source->ended;
}

static vlp_status read_content(vlp_source *source, void *buffer, size_t size, size_t *got) {
    *got = 0;
    if (source->file < 0) {
        *got = read_memory(source, buffer, size);
        return VLP_OK;
    }
    if (source->coding == PLAIN) return read_plain(source, buffer, size, got);
    while (*got < size && has_more(source)) {
        size_t count = 0;
        VLP_TRY(decode_some(source, (char *)buffer + *got, size - *got, &count));
        *got += count;
    }
    return VLP_OK;
}

vlp_status vlp_source_read(vlp_source *source, void *buffer, size_t size, size_t *got) {
    size_t taken = smaller(source->peek_size - source->peek_at, size);
    if (taken > 0) memcpy(buffer, source->peeked + source->peek_at, taken);
    source->peek_at += taken;
    *got = taken;
    if (taken == size) return VLP_OK;
    VLP_TRY(read_content(source, (char *)buffer + taken, size - taken, got));
    *got += taken;
    return VLP_OK;
}

vlp_status vlp_source_peek(vlp_source *source, const char **text, size_t *size) {
    assert(!source->peeked);
    source->peeked = vlp_alloc(VLP_PEEK, 1);
    if (!source->peeked) return vlp_fail_memory("a file buffer");
    VLP_TRY(read_content(source, source->peeked, VLP_PEEK, &source->peek_size));
    *text = source->peeked;
    *size = source->peek_size;
    return VLP_OK;
}

const char *vlp_source_name(const vlp_source *source) {
    return source->name;
}

void vlp_source_free(vlp_source *source) {
    if (!source) return;
    if (source->coding == GZIP) inflateEnd(&source->inflating);
    ZSTD_freeDCtx(source->decompressing);
    if (source->file >= 0) close(source->file);
    vlp_free(source->peeked);
    vlp_free(source->input);
    vlp_free(source->name);
    vlp_free(source);
}
