/* Files, plain or compressed: compares a source with zlib's inflate over the same bytes. */
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "fuzz.h"

UNCOUNTED_BEGIN

/* Limits the decompressed size; larger outputs add no coverage. */
enum { LIMIT = 1 << 16 };

typedef struct outcome {
    bool good;   /* the end was reached without an error */
    bool cut;    /* LIMIT was reached first */
    size_t size; /* of the output before that */
    uint8_t bytes[LIMIT];
} outcome;

/* Decompresses gzip members until other data follows. */
static void naive_inflate(outcome *out, const uint8_t *data, size_t size) {
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)data,
                       .avail_in = (unsigned)size,
                       .next_out = out->bytes,
                       .avail_out = LIMIT};
    REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
    int code = Z_OK;
    for (;;) {
        code = inflate(&stream, Z_NO_FLUSH);
        if (code == Z_OK && stream.avail_out > 0 && stream.avail_in > 0) continue;
        bool more = code == Z_STREAM_END && stream.avail_in > 1 && stream.next_in[0] == 0x1f &&
                    stream.next_in[1] == 0x8b;
        if (!more) break;
        REQUIRE(inflateReset(&stream) == Z_OK);
    }
    out->size = LIMIT - stream.avail_out;
    out->good = code == Z_STREAM_END;
    out->cut = stream.avail_out == 0;
    inflateEnd(&stream);
}

static bool is_zstd(const uint8_t *data, size_t size) {
    return size >= 4 && (memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0 ||
                         ((data[0] & 0xf0) == 0x50 && memcmp(data + 1, "\x2a\x4d\x18", 3) == 0));
}

static void naive_read(outcome *out, const uint8_t *data, size_t size) {
    if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b) {
        naive_inflate(out, data, size);
        return;
    }
    out->size = size < LIMIT ? size : LIMIT;
    out->good = true;
    out->cut = size >= LIMIT;
    memcpy(out->bytes, data, out->size);
}

/* Reads through a source in steps of `step` bytes. */
static void source_read(outcome *out, const char *path, size_t step) {
    vlp_source *source = NULL;
    REQUIRE(vlp_source_open(&source, path) == VLP_OK);
    out->size = 0;
    out->good = out->cut = false;
    for (;;) {
        size_t want = LIMIT - out->size < step ? LIMIT - out->size : step, got = 0;
        vlp_status status = vlp_source_read(source, out->bytes + out->size, want, &got);
        REQUIRE(got <= want);
        REQUIRE(status == VLP_OK || status == VLP_ERROR_FORMAT);
        if (status != VLP_OK) {
            REQUIRE(strncmp(vlp_error_message(), path, strlen(path)) == 0);
            break;
        }
        out->size += got;
        out->good = got < want;
        out->cut = out->size == LIMIT;
        if (out->good || out->cut) break;
    }
    vlp_source_free(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file = -1;
    static char path[64];
    static outcome expected, found;
    if (is_zstd(data, size)) return 0; /* fuzz_zstd.c */
    if (file < 0) {
        file = memfd_create("fuzz", MFD_CLOEXEC);
        REQUIRE(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    REQUIRE(ftruncate(file, 0) == 0);
    REQUIRE(pwrite(file, data, size, 0) == (ssize_t)size);
    naive_read(&expected, data, size);
    source_read(&found, path, LIMIT);
    /* At LIMIT the end of the data has not been checked. */
    if (!expected.cut) REQUIRE(found.good == expected.good);
    if (expected.good && !expected.cut) {
        REQUIRE(found.size == expected.size);
        REQUIRE(memcmp(found.bytes, expected.bytes, found.size) == 0);
    }
    if (one_in(data, size, 8)) {
        source_read(&found, path, 1 + size % 97);
        if (!expected.cut) REQUIRE(found.good == expected.good);
        REQUIRE(found.size <= expected.size);
        REQUIRE(memcmp(found.bytes, expected.bytes, found.size) == 0);
    }
    return 0;
}

UNCOUNTED_END
