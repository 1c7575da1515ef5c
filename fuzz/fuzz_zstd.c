/* zstd: compares a source with ZSTD_decompressStream over the same bytes in memory. (ZSTD_decompress
 * does not refuse the same frames: it has no window.) */
#include <sys/mman.h>
#include <unistd.h>

#include <zstd.h>

#include "base/file.h"
#include "fuzz.h"

UNCOUNTED_BEGIN

/* Limits the decompressed size; larger outputs add no coverage. */
enum { LIMIT = 1 << 16 };

static bool has_magic(const uint8_t *data, size_t size) {
    return size >= 4 &&
           ((data[0] == 0x28 && data[1] == 0xb5 && data[2] == 0x2f && data[3] == 0xfd) ||
            ((data[0] & 0xf0) == 0x50 && data[1] == 0x2a && data[2] == 0x4d && data[3] == 0x18));
}

/* Decompresses at most LIMIT bytes in steps of `step`; the size, or -1 where the data is wrong. */
static int64_t naive_read(uint8_t *out, const uint8_t *data, size_t size, size_t step) {
    ZSTD_DCtx *context = ZSTD_createDCtx();
    ZSTD_inBuffer in = {data, size, 0};
    size_t total = 0;
    bool whole = true, moved = true; /* at the end of a frame; the last call did something */
    while (moved && total < LIMIT) {
        size_t before = in.pos;
        ZSTD_outBuffer to = {out + total, LIMIT - total < step ? LIMIT - total : step, 0};
        size_t code = ZSTD_decompressStream(context, &to, &in);
        moved = !ZSTD_isError(code) && (to.pos > 0 || in.pos > before);
        if (moved || ZSTD_isError(code)) whole = code == 0;
        total += moved ? to.pos : 0;
    }
    ZSTD_freeDCtx(context);
    if (total == LIMIT) return LIMIT;
    return whole ? (int64_t)total : -1;
}

/* Reads all through a source in steps of `step` bytes; the size, or -1. */
static int64_t source_read(uint8_t *out, const char *path, size_t step) {
    vlp_source *source = NULL;
    REQUIRE(vlp_source_open(&source, path) == VLP_OK);
    size_t total = 0, got = 0;
    vlp_status status;
    do {
        size_t want = LIMIT - total < step ? LIMIT - total : step;
        status = vlp_source_read(source, out + total, want, &got);
        REQUIRE(got <= want);
        REQUIRE(status == VLP_OK || status == VLP_ERROR_FORMAT);
        if (status != VLP_OK) REQUIRE(strncmp(vlp_error_message(), path, strlen(path)) == 0);
        total += got;
        if (got < want) break;
    } while (status == VLP_OK && total < LIMIT);
    vlp_source_free(source);
    return status == VLP_OK ? (int64_t)total : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file = -1;
    static char path[64];
    static uint8_t expected[LIMIT], found[LIMIT];
    if (!has_magic(data, size)) return 0;
    if (file < 0) {
        file = memfd_create("fuzz", MFD_CLOEXEC);
        REQUIRE(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    REQUIRE(ftruncate(file, 0) == 0);
    REQUIRE(pwrite(file, data, size, 0) == (ssize_t)size);
    size_t step = one_in(data, size, 2) ? LIMIT : 1 + size % 97;
    int64_t good = naive_read(expected, data, size, step), got = source_read(found, path, step);
    REQUIRE(got == good);
    if (good > 0) REQUIRE(memcmp(found, expected, (size_t)good) == 0);
    return 0;
}

UNCOUNTED_END
