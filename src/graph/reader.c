/* The driver of the readers of records: blocks of complete records are parsed and looked up in parallel,
 * and added in order. */
#include "graph/reader.h"

#include <stdio.h>
#include <string.h>

#include <omp.h>

#include "base/text.h"

/* 4 MiB blocks keep text and spans in the cache; a long line grows the block up to LINE_LIMIT. */
enum { FIRST_BLOCK = 1 << 16, BLOCK = 4 << 20, LINE_LIMIT = 64 << 20, SMALL_PIECE = 1 << 16 };

void vlp_triple_list_free(vlp_triple_list *list) {
    vlp_free(list->items);
    *list = (vlp_triple_list){NULL, 0, 0};
}

void vlp_piece_fail(vlp_piece *piece, vlp_status status, int64_t line, const char *format, ...) {
    piece->status = status;
    piece->error_line = line;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(piece->error, sizeof piece->error, format, arguments);
    va_end(arguments);
}

bool vlp_piece_add(vlp_piece *piece, const vlp_span triple[3]) {
    if (piece->span_count + 3 > piece->span_capacity &&
        vlp_grow(&piece->spans, &piece->span_capacity, piece->span_count + 3, sizeof *piece->spans,
                 "parsed lines") != VLP_OK) {
        vlp_piece_fail(piece, VLP_ERROR_MEMORY, 0, "out of memory for parsed lines");
        return false;
    }
    memcpy(piece->spans + piece->span_count, triple, 3 * sizeof *triple);
    piece->span_count += 3;
    return true;
}

void vlp_piece_free(vlp_piece *piece) {
    vlp_free(piece->spans);
    vlp_free(piece->ids);
    vlp_free(piece->arena);
}

/* ---- Blocks -------------------------------------------------------------------------------------- */

const char *vlp_record_end(const char *start, const char *from, const char *end, bool quoted) {
    if (!quoted) {
        const char *newline = memchr(from, '\n', (size_t)(end - from));
        return newline ? newline + 1 : NULL;
    }
    bool inside = false;
    for (const char *at = start; at < end; at++) {
        inside ^= *at == '"';
        if (*at == '\n' && !inside && at >= from) return at + 1;
    }
    return NULL;
}

/* The end of the last complete record; NULL without one. */
static const char *last_record_end(const char *text, const char *end, bool quoted) {
    if (!quoted) {
        const char *newline = memrchr(text, '\n', (size_t)(end - text));
        return newline ? newline + 1 : NULL;
    }
    const char *last = NULL;
    bool inside = false;
    for (const char *at = text; at < end; at++) {
        inside ^= *at == '"';
        if (*at == '\n' && !inside) last = at + 1;
    }
    return last;
}

typedef struct block_reader {
    vlp_source *source;
    char *buffer;
    int64_t capacity;
    size_t filled;     /* bytes in the buffer */
    size_t taken;      /* of these, returned as complete records */
    int64_t line;      /* 0-based number of the first line of the block */
    bool first, ended; /* the first block of the file; the end of the source */
    bool quoted;
} block_reader;

/* Reads the next block of complete records: *text, *size; size 0 at the end. */
static vlp_status next_block(block_reader *reader, const char **text, size_t *size) {
    size_t rest = reader->filled - reader->taken;
    if (rest > 0) memmove(reader->buffer, reader->buffer + reader->taken, rest);
    reader->filled = rest;
    reader->taken = 0;
    for (;;) {
        if (!reader->ended) {
            size_t got = 0, want = (size_t)reader->capacity - reader->filled;
            VLP_TRY(vlp_source_read(reader->source, reader->buffer + reader->filled, want, &got));
            reader->filled += got;
            reader->ended = got < want;
        }
        if (reader->ended) {
            reader->taken = reader->filled;
            break;
        }
        if (reader->capacity < BLOCK) { /* a small buffer suffices for small files */
            VLP_TRY(vlp_grow(&reader->buffer, &reader->capacity, BLOCK, 1, "a reader"));
            continue;
        }
        const char *last =
            last_record_end(reader->buffer, reader->buffer + reader->filled, reader->quoted);
        if (last) {
            reader->taken = (size_t)(last - reader->buffer);
            break;
        }
        if (reader->capacity >= LINE_LIMIT)
            return vlp_fail(VLP_ERROR_FORMAT, "%s:%lld: a line of more than %d MiB; %s",
                            vlp_source_name(reader->source), (long long)reader->line + 1,
                            LINE_LIMIT >> 20,
                            reader->quoted ? "is a closing quote missing?" : "is this a text file?");
        VLP_TRY(vlp_grow(&reader->buffer, &reader->capacity, reader->capacity * 2, 1, "a long line"));
    }
    *text = reader->buffer;
    *size = reader->taken;
    if (reader->first) {
        size_t mark = vlp_bom_length(*text, *size);
        *text += mark;
        *size -= mark;
        reader->first = false;
    }
    return VLP_OK;
}

/* Divides a text into at most `count` pieces of complete records of about the same size. */
static int cut_pieces(vlp_piece *pieces, int count, const char *text, size_t size, bool quoted) {
    int used = 0;
    const char *end = text + size;
    for (int left = count; text < end; left--) {
        size_t share = (size_t)(end - text) / (size_t)(left > 0 ? left : 1);
        if (share < SMALL_PIECE) share = SMALL_PIECE;
        const char *stop = end;
        if (left > 1 && share < (size_t)(end - text)) {
            const char *found = vlp_record_end(text, text + share, end, quoted);
            if (found) stop = found;
        }
        vlp_piece *piece = &pieces[used++];
        piece->text = text;
        piece->size = (size_t)(stop - text);
        piece->span_count = piece->arena_size = piece->graph_names = piece->error_line = 0;
        piece->status = VLP_OK;
        text = stop;
    }
    return used;
}

/* Looks up the names of a piece among those known before its block. */
static void look_up(vlp_piece *piece, const vlp_read_sink *sink) {
    int64_t count = piece->span_count / 3;
    if (count == 0) return; /* comments only */
    if (vlp_grow(&piece->ids, &piece->id_capacity, piece->span_capacity, sizeof *piece->ids,
                 "parsed lines") != VLP_OK) {
        vlp_piece_fail(piece, VLP_ERROR_MEMORY, 0, "%s", vlp_error_message());
        return;
    }
    vlp_dictionary_find_many(sink->relations, piece->ids + 1, 3, piece->spans + 1, 3, count);
    vlp_dictionary_find_many(sink->entities, piece->ids, 3, piece->spans, 3, count);
    vlp_dictionary_find_many(sink->entities, piece->ids + 2, 3, piece->spans + 2, 3, count);
}

/* Adds the triples and the new names of a piece, in the order of the file. */
static vlp_status add_piece(vlp_read_sink *sink, const vlp_piece *piece, int threads) {
    int64_t count = piece->span_count / 3;
    vlp_triple_list *list = sink->triples;
    sink->graph_names += piece->graph_names;
    if (count == 0) return VLP_OK;
    if (sink->drops_repeated)
        VLP_TRY(vlp_triple_list_reserve(list, &sink->repeated, count,
                                        vlp_dictionary_size(sink->entities), threads));
    else
        VLP_TRY(vlp_grow(&list->items, &list->capacity, list->count + count, sizeof *list->items,
                         "triples"));
    if (list->count + count > INT32_MAX)
        return vlp_fail(VLP_ERROR_FORMAT, "more than %d triples in one file", INT32_MAX);
    vlp_triple *out = list->items + list->count;
    for (int64_t i = 0; i < count; i++) {
        int32_t *ids = piece->ids + 3 * i;
        for (int part = 0; part < 3; part++)
            if (ids[part] < 0)
                VLP_TRY(vlp_dictionary_intern(part == 1 ? sink->relations : sink->entities, &ids[part],
                                              &piece->spans[3 * i + part]));
        out[i] = (vlp_triple){ids[0], ids[1], ids[2]};
    }
    list->count += count;
    return VLP_OK;
}

vlp_status vlp_sink_add(vlp_read_sink *sink, vlp_piece *piece, int threads) {
    look_up(piece, sink);
    if (piece->status != VLP_OK) return vlp_fail(piece->status, "%s", piece->error);
    return add_piece(sink, piece, threads);
}

/* Parses one block with all threads and adds its triples. */
static vlp_status read_block(vlp_read_sink *sink, block_reader *reader, const char *text, size_t size,
                             vlp_piece *pieces, int threads, const vlp_record_format *format) {
    int count = cut_pieces(pieces, threads, text, size, format->quoted);
#pragma omp parallel for num_threads(count) schedule(static, 1) if (count > 1)
    for (int i = 0; i < count; i++) {
        format->parser(&pieces[i], format->settings);
        if (pieces[i].status == VLP_OK) look_up(&pieces[i], sink);
    }
    for (int i = 0; i < count; i++) {
        const vlp_piece *piece = &pieces[i];
        if (piece->status == VLP_ERROR_MEMORY) return vlp_fail(piece->status, "%s", piece->error);
        if (piece->status != VLP_OK)
            return vlp_fail(piece->status, "%s:%lld: %s", vlp_source_name(reader->source),
                            (long long)(reader->line + piece->error_line + 1), piece->error);
        VLP_TRY(add_piece(sink, piece, threads));
        reader->line += vlp_count_newlines(piece->text, piece->size);
    }
    return VLP_OK;
}

vlp_status vlp_read_records(vlp_read_sink *sink, vlp_source *source, const vlp_record_format *format,
                            const vlp_read_options *options) {
    int threads = vlp_thread_count(options->threads);
    vlp_status status = VLP_OK;
    block_reader reader = {.source = source, .first = true, .quoted = format->quoted};
    size_t header = format->header;
    vlp_piece *pieces = vlp_alloc_zero((size_t)threads, sizeof *pieces);
    if (!pieces) return vlp_fail_memory("a reader");
    VLP_CHECK(vlp_grow(&reader.buffer, &reader.capacity, FIRST_BLOCK, 1, "a reader"));
    for (;;) {
        const char *text = NULL;
        size_t size = 0;
        VLP_CHECK(next_block(&reader, &text, &size));
        /* The first block is longer than VLP_PEEK where the file is. */
        assert(header <= size);
        reader.line += vlp_count_newlines(text, header);
        text += header;
        size -= header;
        header = 0;
        if (size > 0) VLP_CHECK(read_block(sink, &reader, text, size, pieces, threads, format));
        vlp_progress(options->observer, "triples", sink->triples->count + sink->repeated, 0);
        if (reader.ended) break;
        if (vlp_stopped(options->observer)) {
            status = vlp_fail_stopped();
            goto out;
        }
    }
out:
    for (int i = 0; i < threads; i++) vlp_piece_free(&pieces[i]);
    vlp_free(pieces);
    vlp_free(reader.buffer);
    return status;
}
