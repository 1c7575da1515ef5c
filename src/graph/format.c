#include "graph/format.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/reader.h"

static const struct {
    const char *name, *title, *extension;
} formats[VLP_FORMATS] = {
    [VLP_FORMAT_AUTO] = {"auto", "unknown", ".txt"},
    [VLP_FORMAT_TSV] = {"tsv", "TSV", ".tsv"},
    [VLP_FORMAT_CSV] = {"csv", "CSV", ".csv"},
    [VLP_FORMAT_NTRIPLES] = {"ntriples", "N-Triples", ".nt"},
    [VLP_FORMAT_NQUADS] = {"nquads", "N-Quads", ".nq"},
    [VLP_FORMAT_TURTLE] = {"turtle", "Turtle", ".ttl"},
    [VLP_FORMAT_TRIG] = {"trig", "TriG", ".trig"},
};

static const char *const compressions[] = {"", ".gz", ".zst"};
enum { COMPRESSIONS = sizeof compressions / sizeof *compressions };
_Static_assert(VLP_FORMAT_EXTENSIONS == VLP_FORMATS * COMPRESSIONS, "every format, every compression");

const char *vlp_format_name(vlp_format format) {
    return (int)format >= 0 && format < VLP_FORMATS ? formats[format].name : NULL;
}

const char *vlp_format_title(vlp_format format) {
    return formats[format].title;
}

const char *vlp_format_extension(vlp_format format) {
    return formats[format].extension;
}

bool vlp_format_is_table(vlp_format format) {
    return format == VLP_FORMAT_TSV || format == VLP_FORMAT_CSV;
}

/* ---- By name ------------------------------------------------------------------------------------- */

void vlp_format_file_name(char *out, size_t size, const char *split, int index) {
    snprintf(out, size, "%s%s%s", split, formats[index % VLP_FORMATS].extension,
             compressions[index / VLP_FORMATS]);
}

/* Whether the first `length` bytes of a name end with `end`. */
static bool ends_with(const char *name, size_t length, const char *end) {
    size_t size = strlen(end);
    return length > size && strncasecmp(name + length - size, end, size) == 0;
}

vlp_format vlp_format_of_name(const char *name) {
    size_t length = strlen(name);
    for (int i = 1; i < COMPRESSIONS; i++)
        if (ends_with(name, length, compressions[i])) {
            length -= strlen(compressions[i]);
            break;
        }
    for (int format = VLP_FORMAT_TSV; format < VLP_FORMATS; format++)
        if (ends_with(name, length, formats[format].extension)) return (vlp_format)format;
    return VLP_FORMAT_AUTO;
}

/* ---- By content ---------------------------------------------------------------------------------- */

/* Files that are not read, by their first bytes. */
static const struct {
    const char *start;
    size_t size;
    const char *advice;
} foreign[] = {
#define START(bytes, advice)                                                                            \
    { bytes, sizeof(bytes) - 1, advice }
    START("<?xml", "XML; RDF/XML has to be converted to Turtle or N-Triples"),
    START("<rdf:RDF", "RDF/XML; convert it to Turtle or N-Triples"),
    START("<!DOCTYPE", "a web page, not data"),
    START("<html", "a web page, not data"),
    START("BZh", "a bzip2 file; decompress it, or compress it with gzip or zstd"),
    START("\xfd"
          "7zXZ",
          "an xz file; decompress it, or compress it with gzip or zstd"),
    START("PK\x03\x04", "a ZIP archive; unpack it"),
    START("7z\xbc\xaf", "a 7-Zip archive; unpack it"),
    START("PAR1", "a Parquet file; convert it to CSV"),
    START("$HDT", "an HDT file; convert it to N-Triples"),
    START("SQLite format 3", "an SQLite database; export a table as CSV"),
    START("\xff\xfe", "UTF-16; convert it to UTF-8"),
    START("\xfe\xff", "UTF-16; convert it to UTF-8"),
    START("%PDF", "a PDF file, not data"),
#undef START
};

/* The unread part of the text. */
typedef struct view {
    const char *at, *end;
} view;

static bool starts(const view *text, const char *word) {
    size_t length = strlen(word);
    return (size_t)(text->end - text->at) > length && strncasecmp(text->at, word, length) == 0;
}

/* Skips blank lines, spaces and comments of RDF. */
static void skip_remarks(view *text) {
    while (text->at < text->end) {
        if (*text->at == '#') {
            const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
            text->at = newline ? newline : text->end;
        } else if (*text->at == ' ' || *text->at == '\t' || *text->at == '\r' || *text->at == '\n') {
            text->at++;
        } else {
            return;
        }
    }
}

static bool is_directive(const view *text) {
    return starts(text, "@prefix") || starts(text, "@base") || starts(text, "PREFIX ") ||
           starts(text, "BASE ") || starts(text, "PREFIX\t") || starts(text, "BASE\t");
}

/* Whether there is a { outside of IRIs, literals and comments: a graph of TriG. */
static bool has_graph(view text) {
    for (char inside = '\0'; text.at < text.end; text.at++) {
        char byte = *text.at;
        if (byte == '\\' && text.at + 1 < text.end)
            text.at++;
        else if (inside)
            inside = byte == inside || (byte == '\n' && inside != '"') ? '\0' : inside;
        else if (byte == '"')
            inside = '"';
        else if (byte == '<')
            inside = '>';
        else if (byte == '#')
            inside = '\n';
        else if (byte == '{')
            return true;
    }
    return false;
}

/* The format of a text that starts with a term of RDF; AUTO where its first line is no statement and
 * there are no directives. */
static vlp_format look_at_statement(const view *text) {
    const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
    size_t length = (size_t)((newline ? newline : text->end) - text->at);
    if (vlp_is_statement(text->at, length, false)) return VLP_FORMAT_NTRIPLES;
    if (vlp_is_statement(text->at, length, true)) return VLP_FORMAT_NQUADS;
    return VLP_FORMAT_AUTO;
}

static vlp_format look_at_table(const view *text) {
    const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
    int tabs = 0, commas = 0;
    for (const char *at = text->at; at < (newline ? newline : text->end); at++) {
        tabs += *at == '\t';
        commas += *at == ',';
    }
    if (tabs >= 2) return VLP_FORMAT_TSV;
    return tabs == 0 && commas >= 2 ? VLP_FORMAT_CSV : VLP_FORMAT_AUTO;
}

vlp_format_guess vlp_format_look(const char *text, size_t size) {
    vlp_format_guess guess = {VLP_FORMAT_AUTO, false, NULL};
    size_t mark = vlp_bom_length(text, size);
    view all = {text + mark, text + size}, first = all;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (size - mark >= foreign[i].size && memcmp(all.at, foreign[i].start, foreign[i].size) == 0) {
            guess.foreign = foreign[i].advice;
            return guess;
        }
    skip_remarks(&first);
    if (is_directive(&first)) {
        guess.format = has_graph(first) ? VLP_FORMAT_TRIG : VLP_FORMAT_TURTLE;
        guess.certain = true;
        return guess;
    }
    guess.format = look_at_statement(&first);
    guess.certain = guess.format != VLP_FORMAT_AUTO;
    if (guess.format == VLP_FORMAT_AUTO) guess.format = look_at_table(&all);
    if (guess.format != VLP_FORMAT_AUTO || first.at == first.end) return guess;
    if (*first.at == '<')
        guess.format = has_graph(first) ? VLP_FORMAT_TRIG : VLP_FORMAT_TURTLE;
    else if (*first.at == '{')
        guess.foreign = "JSON; convert it to CSV, or JSON-LD to Turtle or N-Triples";
    return guess;
}
