/* zstd: compares a source with ZSTD_decompress over each frame of the same bytes. */
#include <sys/mman.h>
#include <unistd.h>

#define ZSTD_STATIC_LINKING_ONLY
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

/* The decompressed size; -1 where a frame is wrong, -2 where it is over LIMIT. */
static int64_t naive_decompress(uint8_t *out, const uint8_t *data, size_t size) {
    int64_t total = 0;
    while (size > 0) {
        if (!has_magic(data, size)) return -1;
        size_t frame = ZSTD_findFrameCompressedSize(data, size);
        if (ZSTD_isError(frame)) return -1;
        unsigned long long bound = ZSTD_decompressBound(data, frame);
        if (bound != ZSTD_CONTENTSIZE_ERROR && bound > (unsigned long long)(LIMIT - total)) return -2;
        size_t got = ZSTD_decompress(out + total, (size_t)(LIMIT - total), data, frame);
        if (ZSTD_isError(got)) return -1;
        total += (int64_t)got;
        data += frame;
        size -= frame;
    }
    return total;
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
    int64_t good = naive_decompress(expected, data, size);
    int64_t got = source_read(found, path, one_in(data, size, 2) ? LIMIT : 1 + size % 97);
    if (good >= 0 && good < LIMIT) {
        /* A window above the limit of streams is refused by the source alone. */
        if (got < 0) REQUIRE(strstr(vlp_error_message(), "window") != NULL);
        if (got >= 0) REQUIRE(got == good && memcmp(found, expected, (size_t)good) == 0);
    }
    /* At LIMIT the rest of the data has not been read. */
    if (good == -1) REQUIRE(got == -1 || got == LIMIT);
    return 0;
}

UNCOUNTED_END
