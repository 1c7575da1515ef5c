/* Turtle and TriG, parsed by serd over a checked text (turtle_text.h).
 *
 * A term may span lines and depends on the prefixes before it, so that one thread parses the whole file.
 * serd asks for one byte at a time: the line of an error is the line of the byte it has read last.
 * Statements are collected in a piece, which is added to the sink when it is large enough. */
#include <serd/serd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/rdf_names.h"
#include "graph/turtle_text.h"

enum { BATCH = 1 << 14, BATCH_BYTES = 1 << 20, MAXIMUM_PREFIXES = 10000 };

typedef struct reading {
    vlp_turtle_text text;
    vlp_piece piece;
    vlp_read_sink *sink;
    const vlp_read_options *options;
    vlp_format format;
    SerdEnv *prefixes;
    int prefix_count;
    int64_t anonymous; /* of earlier files */
    vlp_status status; /* of the first failure */
} reading;

static size_t fetch(void *buffer, size_t size, size_t count, void *stream) {
    (void)size, (void)count; /* both 1 */
    reading *this = stream;
    int byte = this->status == VLP_OK ? vlp_turtle_text_next(&this->text) : -1;
    if (byte < 0) return 0;
    *(unsigned char *)buffer = (unsigned char)byte;
    return 1;
}

static int never_fails(void *stream) {
    (void)stream;
    return 0;
}

/* ---- Errors -------------------------------------------------------------------------------------- */

/* Fails at the line of the byte that was read last; later failures follow from the first. */
static SerdStatus fail(reading *this, const char *format, ...) VLP_PRINTF(2, 3);
static SerdStatus fail(reading *this, const char *format, ...) {
    if (this->status != VLP_OK) return SERD_ERR_UNKNOWN;
    char cause[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cause, sizeof cause, format, arguments);
    va_end(arguments);
    this->status = vlp_fail(VLP_ERROR_FORMAT, "%s:%lld: %s", vlp_source_name(this->text.source),
                            (long long)this->text.line + 1, cause);
    return SERD_ERR_UNKNOWN;
}

/* A failure of the text comes before what serd says about its end. */
static bool text_failed(reading *this) {
    if (this->text.status == VLP_OK) return false;
    if (this->text.error[0])
        fail(this, "%s", this->text.error);
    else
        this->status = this->text.status; /* its message is set */
    return true;
}

static SerdStatus take_complaint(void *handle, const SerdError *error) {
    reading *this = handle;
    if (this->status != VLP_OK || text_failed(this)) return SERD_SUCCESS;
    char complaint[128];
    int length = vsnprintf(complaint, sizeof complaint, error->fmt, *error->args);
    if (length < 0) complaint[0] = '\0';
    complaint[strcspn(complaint, "\n")] = '\0';
    /* serd quotes single bytes, which may be part of a UTF-8 sequence. */
    for (char *at = complaint; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f) *at = '?';
    fail(this, "%s", complaint[0] ? complaint : "not a statement");
    return SERD_SUCCESS;
}

static SerdStatus piece_failed(reading *this) {
    if (this->piece.status == VLP_ERROR_MEMORY)
        this->status = vlp_fail(this->piece.status, "%s", this->piece.error);
    else
        fail(this, "%s", this->piece.error);
    return SERD_ERR_UNKNOWN;
}

/* ---- Prefixes ------------------------------------------------------------------------------------ */

static bool has_base(const reading *this) {
    const SerdNode *base = serd_env_get_base_uri(this->prefixes, NULL);
    return base && base->buf && base->n_bytes > 0;
}

static SerdStatus take_base(void *handle, const SerdNode *iri) {
    reading *this = handle;
    if (!serd_uri_string_has_scheme(iri->buf) && !has_base(this))
        return fail(this, "a base that is not an absolute IRI, such as http://...");
    /* A base has no fragment (RFC 3986, 5.1). */
    size_t length = strcspn((const char *)iri->buf, "#");
    char *text = vlp_alloc(length + 1, 1);
    if (!text) {
        this->status = vlp_fail_memory("a base");
        return SERD_ERR_UNKNOWN;
    }
    memcpy(text, iri->buf, length);
    text[length] = '\0';
    SerdNode base = serd_node_from_string(SERD_URI, (const uint8_t *)text);
    SerdStatus outcome = serd_env_set_base_uri(this->prefixes, &base);
    vlp_free(text);
    if (outcome != SERD_SUCCESS) return fail(this, "a base that is not an IRI");
    return SERD_SUCCESS;
}

static SerdStatus take_prefix(void *handle, const SerdNode *name, const SerdNode *iri) {
    reading *this = handle;
    if (++this->prefix_count > MAXIMUM_PREFIXES)
        return fail(this, "more than %d prefixes", MAXIMUM_PREFIXES);
    if (!serd_uri_string_has_scheme(iri->buf) && !has_base(this))
        return fail(this, "a prefix with a relative IRI, and no @base before it");
    if (serd_env_set_prefix(this->prefixes, name, iri) != SERD_SUCCESS)
        return fail(this, "a prefix that is not an IRI");
    this->text.pending = 0;
    return SERD_SUCCESS;
}

/* ---- Terms --------------------------------------------------------------------------------------- */

static vlp_text text_of(const SerdNode *node) {
    return node && node->buf ? (vlp_text){node->buf, node->n_bytes} : (vlp_text){NULL, 0};
}

static bool add_iri_parts(vlp_span *out, reading *this, const vlp_text *parts, int count) {
    if (!vlp_rdf_add(out, &this->piece, parts, count)) return piece_failed(this), false;
    const char *name = this->piece.arena + this->piece.arena_size - out->length;
    const char *fault = vlp_iri_fault(name, out->length);
    if (fault) fail(this, "%s", fault);
    return !fault;
}

/* A relative IRI, against the base. */
static bool add_relative(vlp_span *out, reading *this, const SerdNode *node) {
    if (!has_base(this)) {
        fail(this, "a relative IRI <%.60s>, and no @base before it", (const char *)node->buf);
        return false;
    }
    SerdNode whole = serd_env_expand_node(this->prefixes, node);
    bool added = add_iri_parts(out, this, (vlp_text[]){text_of(&whole)}, 1);
    serd_node_free(&whole);
    return added;
}

static bool add_prefixed(vlp_span *out, reading *this, const SerdNode *node) {
    SerdChunk prefix, local;
    if (serd_env_expand(this->prefixes, node, &prefix, &local) != SERD_SUCCESS) {
        size_t length = strcspn((const char *)node->buf, ":");
        fail(this, "the prefix '%.*s:' is not defined; an @prefix line has to define it",
             (int)(length < 60 ? length : 60), (const char *)node->buf);
        return false;
    }
    const vlp_text parts[2] = {{prefix.buf, prefix.len}, {local.buf, local.len}};
    return add_iri_parts(out, this, parts, 2);
}

/* A label has the letter that turtle_text.h puts before it. Nodes without a label are named _:[1],
 * _:[2], ...: no label contains a bracket. */
static bool add_blank(vlp_span *out, reading *this, const SerdNode *node) {
    vlp_text id = text_of(node);
    const char *bytes = id.bytes;
    char number[32];
    if (id.size > 0 && bytes[0] == VLP_TURTLE_BLANK) {
        if (!vlp_rdf_starts_label(bytes + 1, id.size - 1)) {
            fail(this, "the label of a blank node starts with a letter, a digit or _");
            return false;
        }
        const vlp_text parts[2] = {{"_:", 2}, {bytes + 1, id.size - 1}};
        return vlp_rdf_add(out, &this->piece, parts, 2) || (piece_failed(this), false);
    }
    long long own = id.size > 1 && bytes[0] == 'b' ? strtoll(bytes + 1, NULL, 10) : 0;
    if (own <= 0) {
        fail(this, "a blank node behind another term without a space between");
        return false;
    }
    int64_t all = this->anonymous + own;
    if (all > this->sink->anonymous) this->sink->anonymous = all;
    int length = snprintf(number, sizeof number, "_:[%lld]", (long long)all);
    const vlp_text parts[1] = {{number, (size_t)length}};
    return vlp_rdf_add(out, &this->piece, parts, 1) || (piece_failed(this), false);
}

static bool add_resource(vlp_span *out, reading *this, const SerdNode *node) {
    if (node->type == SERD_BLANK) return add_blank(out, this, node);
    if (node->type == SERD_CURIE) return add_prefixed(out, this, node);
    if (!serd_uri_string_has_scheme(node->buf)) return add_relative(out, this, node);
    return add_iri_parts(out, this, (vlp_text[]){text_of(node)}, 1);
}

/* The datatype is resolved in the arena first and removed from it again. */
static bool add_literal(vlp_span *out, reading *this, const SerdNode *node, const SerdNode *datatype,
                        const SerdNode *language) {
    vlp_text text = text_of(node), type = text_of(datatype);
    if (vlp_utf8_valid_prefix(text.bytes, text.size) < text.size) {
        fail(this, "an escape \\u or \\U that is no code point");
        return false;
    }
    vlp_text tag = text_of(language);
    const char *fault = tag.size > 0 ? vlp_language_fault(tag.bytes, tag.size) : NULL;
    if (fault) {
        fail(this, "%s", fault);
        return false;
    }
    char *copy = NULL;
    if (type.size > 0) {
        int64_t before = this->piece.arena_size;
        vlp_span resolved;
        if (!add_resource(&resolved, this, datatype)) return false;
        copy = vlp_alloc(resolved.length, 1);
        if (!copy) {
            this->status = vlp_fail_memory("names");
            return false;
        }
        memcpy(copy, this->piece.arena + before, resolved.length);
        type = (vlp_text){copy, resolved.length};
        this->piece.arena_size = before;
    }
    bool added = vlp_rdf_add_literal(out, &this->piece, text, type, tag);
    vlp_free(copy);
    return added || (piece_failed(this), false);
}

/* ---- Statements ---------------------------------------------------------------------------------- */

/* Adds the statements so far to the sink. */
static vlp_status flush(reading *this) {
    vlp_piece *piece = &this->piece;
    int64_t at = 0;
    vlp_rdf_point(piece->spans, piece->span_count, piece, &at);
    VLP_TRY(vlp_sink_add(this->sink, piece, vlp_thread_count(this->options->threads)));
    piece->span_count = piece->arena_size = piece->graph_names = 0;
    vlp_progress(this->options->observer, "triples", this->sink->triples->count + this->sink->repeated,
                 0);
    return vlp_stopped(this->options->observer) ? vlp_fail_stopped() : VLP_OK;
}

static SerdStatus take_statement(void *handle, SerdStatementFlags flags, const SerdNode *graph,
                                 const SerdNode *subject, const SerdNode *predicate,
                                 const SerdNode *object, const SerdNode *datatype,
                                 const SerdNode *language) {
    (void)flags;
    reading *this = handle;
    vlp_span triple[3];
    if (this->status != VLP_OK) return SERD_ERR_UNKNOWN;
    if (graph && this->format == VLP_FORMAT_TURTLE) return fail(this, "a graph, which Turtle has not");
    bool added = add_resource(&triple[0], this, subject) && add_resource(&triple[1], this, predicate);
    if (added && object->type == SERD_LITERAL)
        added = add_literal(&triple[2], this, object, datatype, language);
    else if (added)
        added = add_resource(&triple[2], this, object);
    if (!added) return SERD_ERR_UNKNOWN;
    if (!vlp_piece_add(&this->piece, triple)) return piece_failed(this);
    this->piece.graph_names += graph != NULL;
    this->text.pending = 0;
    if (this->piece.span_count < 3 * BATCH && this->piece.arena_size < BATCH_BYTES) return SERD_SUCCESS;
    this->status = flush(this);
    return this->status == VLP_OK ? SERD_SUCCESS : SERD_ERR_UNKNOWN;
}

vlp_status vlp_read_turtle(vlp_read_sink *sink, vlp_source *source, vlp_format format,
                           const vlp_read_options *options) {
    reading this = {.sink = sink, .options = options, .format = format, .anonymous = sink->anonymous};
    vlp_status status = VLP_OK;
    SerdReader *reader = serd_reader_new(format == VLP_FORMAT_TRIG ? SERD_TRIG : SERD_TURTLE, &this,
                                         NULL, take_base, take_prefix, take_statement, NULL);
    this.prefixes = serd_env_new(NULL);
    if (!reader || !this.prefixes) {
        status = vlp_fail_memory("a reader of RDF");
        goto out;
    }
    VLP_CHECK(vlp_turtle_text_start(&this.text, source));
    serd_reader_set_strict(reader, true);
    serd_reader_set_error_sink(reader, take_complaint, &this);
    SerdStatus outcome = serd_reader_read_source(reader, fetch, never_fails, &this, NULL, 1);
    if (this.status == VLP_OK) text_failed(&this);
    /* SERD_FAILURE: there was nothing to read. */
    if (this.status == VLP_OK && outcome > SERD_FAILURE) fail(&this, "%s", serd_strerror(outcome));
    status = this.status != VLP_OK ? this.status : flush(&this);
out:
    serd_reader_free(reader);
    serd_env_free(this.prefixes);
    vlp_turtle_text_free(&this.text);
    vlp_piece_free(&this.piece);
    return status;
}
