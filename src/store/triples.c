#include "store/triples.h"

#include <string.h>

#include <zlib.h>

static const char *const names[VLP_SPLITS] = {"train", "valid", "test"};

void vlp_stored_triples_free(vlp_stored_triples *triples) {
    for (int split = 0; split < VLP_SPLITS; split++) vlp_free(triples->items[split]);
    *triples = (vlp_stored_triples){0};
}

/* ---- Writing ------------------------------------------------------------------------------------- */

enum { BLOCK = 1 << 16, LONGEST_LINE = 64 };

/* Text that is compressed on its way into a file. */
typedef struct compressor {
    vlp_writer *writer;
    z_stream stream;
    char text[BLOCK];
    size_t used;
    unsigned char packed[BLOCK];
} compressor;

static void *deflate_allocate(void *opaque, unsigned count, unsigned size) {
    (void)opaque;
    return vlp_alloc(count, size);
}

static void deflate_release(void *opaque, void *memory) {
    (void)opaque;
    vlp_free(memory);
}

/* zlib's default header has no time and no name in it. */
static vlp_status compressor_open(compressor **out, const char *path) {
    compressor *packer = vlp_alloc_zero(1, sizeof *packer);
    if (!packer) return vlp_fail_memory("compression");
    packer->stream.zalloc = deflate_allocate;
    packer->stream.zfree = deflate_release;
    if (deflateInit2(&packer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        vlp_free(packer);
        return vlp_fail_memory("compression");
    }
    vlp_status status = vlp_writer_open(&packer->writer, path);
    if (status != VLP_OK) {
        deflateEnd(&packer->stream);
        vlp_free(packer);
        return status;
    }
    *out = packer;
    return VLP_OK;
}

static void compress_block(compressor *packer, int flush) {
    packer->stream.next_in = (unsigned char *)packer->text;
    packer->stream.avail_in = (unsigned)packer->used;
    do {
        packer->stream.next_out = packer->packed;
        packer->stream.avail_out = BLOCK;
        deflate(&packer->stream, flush); /* with space for output it does not fail */
        vlp_writer_bytes(packer->writer, packer->packed, BLOCK - packer->stream.avail_out);
    } while (packer->stream.avail_out == 0);
    packer->used = 0;
}

static vlp_status compressor_commit(compressor *packer) {
    compress_block(packer, Z_FINISH);
    deflateEnd(&packer->stream);
    vlp_status status = vlp_writer_commit(&packer->writer);
    vlp_free(packer);
    return status;
}

/* Puts a number in decimal, not negative, and what follows it. */
static void put_number(compressor *packer, int32_t value, char behind) {
    char digits[12];
    int count = 0;
    do digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (count > 0) packer->text[packer->used++] = digits[--count];
    packer->text[packer->used++] = behind;
}

vlp_status vlp_triples_write(const char *path, const vlp_stored_triples *triples) {
    compressor *packer = NULL;
    VLP_TRY(compressor_open(&packer, path));
    for (int split = 0; split < VLP_SPLITS; split++)
        for (int64_t i = 0; i < triples->counts[split]; i++) {
            vlp_triple triple = triples->items[split][i];
            size_t length = strlen(names[split]);
            if (packer->used + LONGEST_LINE > BLOCK) compress_block(packer, Z_NO_FLUSH);
            memcpy(packer->text + packer->used, names[split], length);
            packer->used += length;
            packer->text[packer->used++] = '\t';
            put_number(packer, triple.head, '\t');
            put_number(packer, triple.relation, '\t');
            put_number(packer, triple.tail, '\n');
        }
    return compressor_commit(packer);
}

/* ---- Reading ------------------------------------------------------------------------------------- */

/* One line's text, [at, end), as it is consumed. */
typedef struct line_text {
    const char *at, *end;
} line_text;

/* Takes a number below `limit` up to the end of the line or a tab, which is taken too. */
static bool take_number(int32_t *out, line_text *line, int32_t limit, bool last) {
    int64_t value = 0;
    const char *start = line->at;
    for (; line->at < line->end && *line->at >= '0' && *line->at <= '9'; line->at++) {
        value = value * 10 + (*line->at - '0');
        if (value >= limit) return false;
    }
    if (line->at == start || (last ? line->at != line->end : line->at == line->end || *line->at != '\t'))
        return false;
    line->at += !last;
    *out = (int32_t)value;
    return true;
}

/* The split of a line: the name and the tab behind it are taken; VLP_SPLITS without one. */
static int take_split(line_text *line) {
    for (int split = 0; split < VLP_SPLITS; split++) {
        size_t length = strlen(names[split]);
        if ((size_t)(line->end - line->at) <= length || line->at[length] != '\t' ||
            memcmp(line->at, names[split], length) != 0)
            continue;
        line->at += length + 1;
        return split;
    }
    return VLP_SPLITS;
}

typedef struct triple_sink {
    vlp_stored_triples *out;
    int64_t capacity[VLP_SPLITS];
    int32_t entities, relations;
    const char *name; /* of the file */
    int64_t line;     /* from 1 */
} triple_sink;

static vlp_status take_line(triple_sink *sink, const char *text, size_t length) {
    line_text line = {text, text + length};
    vlp_triple triple;
    sink->line++;
    int split = take_split(&line);
    if (split == VLP_SPLITS || !take_number(&triple.head, &line, sink->entities, false) ||
        !take_number(&triple.relation, &line, sink->relations, false) ||
        !take_number(&triple.tail, &line, sink->entities, true))
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s:%lld: not a triple of %d entities and %d relations by id: split, head, "
                        "relation, tail",
                        sink->name, (long long)sink->line, sink->entities, sink->relations);
    int64_t at = sink->out->counts[split];
    VLP_TRY(
        vlp_grow(&sink->out->items[split], &sink->capacity[split], at + 1, sizeof triple, "triples"));
    sink->out->items[split][at] = triple;
    sink->out->counts[split]++;
    return VLP_OK;
}

vlp_status vlp_triples_parse(vlp_stored_triples *out, vlp_source *source, int32_t entities,
                             int32_t relations) {
    *out = (vlp_stored_triples){0};
    triple_sink sink = {
        .out = out, .entities = entities, .relations = relations, .name = vlp_source_name(source)};
    vlp_status status = VLP_OK;
    size_t filled = 0, got = 0;
    char *buffer = vlp_alloc(BLOCK, 1);
    if (!buffer) return vlp_fail_memory("a file reader");
    for (bool ended = false; !ended;) {
        VLP_CHECK(vlp_source_read(source, buffer + filled, BLOCK - filled, &got));
        ended = got < BLOCK - filled;
        filled += got;
        size_t at = 0;
        for (const char *newline; (newline = memchr(buffer + at, '\n', filled - at));
             at = (size_t)(newline - buffer) + 1)
            VLP_CHECK(take_line(&sink, buffer + at, (size_t)(newline - buffer) - at));
        filled -= at;
        memmove(buffer, buffer + at, filled);
        /* What is left is a line without an end, or longer than any of a triple. */
        if (filled > 0 && (ended || filled > LONGEST_LINE)) VLP_CHECK(take_line(&sink, buffer, filled));
    }
out:
    vlp_free(buffer);
    if (status != VLP_OK) vlp_stored_triples_free(out);
    return status;
}

vlp_status vlp_triples_read(vlp_stored_triples *out, const char *path, int32_t entities,
                            int32_t relations) {
    vlp_source *source = NULL;
    VLP_TRY(vlp_source_open(&source, path));
    vlp_status status = vlp_triples_parse(out, source, entities, relations);
    vlp_source_free(source);
    return status;
}
