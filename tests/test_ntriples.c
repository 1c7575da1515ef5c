/* N-Triples: what is read under which name, what is refused with which words at which line, and that
 * neither pieces nor threads nor missing memory change that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "graph/reader.h"

static void free_piece(vlp_piece *piece) {
    vlp_free(piece->spans);
    vlp_free(piece->arena);
}

/* Parses a copy of just the text's size, so that a sanitizer sees what lies beyond; free *copy later. */
static vlp_piece parse(const char *text, size_t size, char **copy) {
    *copy = malloc(size > 0 ? size : 1);
    assert_non_null(*copy);
    memcpy(*copy, text, size);
    vlp_piece piece = {.text = *copy, .size = size};
    vlp_parse_ntriples(&piece, NULL);
    return piece;
}

static void expect_span(const vlp_span *span, const char *name) {
    if (span->length != strlen(name) || memcmp(span->text, name, span->length) != 0)
        fail_msg("'%.*s' instead of '%s'", (int)span->length, span->text, name);
    assert_int_equal(span->hash, vlp_name_hash(name, strlen(name)));
}

/* ---- What is read -------------------------------------------------------------------------------- */

typedef struct good_case {
    const char *text;
    const char *names[13]; /* head, relation, tail of each triple, then NULL */
} good_case;

#define P "http://example.org/p"
#define PP "<http://example.org/p>"

static const good_case good_cases[] = {
    {"", {NULL}},
    {"\n", {NULL}},
    {"  \t", {NULL}},
    {"# only a comment", {NULL}},
    {" # a comment\r\n\r\n\t\n#\n", {NULL}},
    {"<http://example.org/s> " PP " <http://example.org/o> .\n",
     {"http://example.org/s", P, "http://example.org/o"}},
    {"<a:s> <a:p> <a:o> .", {"a:s", "a:p", "a:o"}},
    {"<a:s><a:p><a:o>.\n", {"a:s", "a:p", "a:o"}},
    {"\t <a:s>\t<a:p>  <a:o>\t. \t\n", {"a:s", "a:p", "a:o"}},
    {"<a:s> <a:p> <a:o> .# comment\n", {"a:s", "a:p", "a:o"}},
    {"<a:s> <a:p> <a:o> . # <a:s> <a:p> <a:o> .\n", {"a:s", "a:p", "a:o"}},
    {"<a:s> <a:p> <a:o> .\r\n<a:s> <a:p> <a:q> .\r\n", {"a:s", "a:p", "a:o", "a:s", "a:p", "a:q"}},
    {"<a:s> <a:p> <a:o> .\r\r\n<a:s> <a:p> <a:q> .\r", {"a:s", "a:p", "a:o", "a:s", "a:p", "a:q"}},
    /* IRIs */
    {"<a:> <scheme+1.x-y:z> <a:b#c?d=e&f%20'()*,;=[]@~!$> .\n",
     {"a:", "scheme+1.x-y:z", "a:b#c?d=e&f%20'()*,;=[]@~!$"}},
    {"<a:\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80> <a:p> <a:\\u00e9\\u4E2D\\U0001F600> .\n",
     {"a:\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", "a:p", "a:\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"}},
    {"<a:\\u0041> <a:p> <a:A> .\n", {"a:A", "a:p", "a:A"}},
    /* Blank nodes */
    {"_:s <a:p> _:o .\n", {"_:s", "a:p", "_:o"}},
    {"_:s<a:p>_:o.\n", {"_:s", "a:p", "_:o"}},
    {"_:a.b-c_9 <a:p> _:1.2. # x\n", {"_:a.b-c_9", "a:p", "_:1.2"}},
    {"_:\xc3\xa9\xc2\xb7 <a:p> _:_ .\n", {"_:\xc3\xa9\xc2\xb7", "a:p", "_:_"}},
    {"_:b1 <a:p> _:B1 .\n_:genid1 <a:p> _:b0 .\n", {"_:b1", "a:p", "_:B1", "_:genid1", "a:p", "_:b0"}},
    /* Words of Turtle as labels */
    {"_:BASE <a:p> _:base .\n_:Prefix <a:p> <a:o>.\n",
     {"_:BASE", "a:p", "_:base", "_:Prefix", "a:p", "a:o"}},
    {"_:graph <a:p> _:true.\n", {"_:graph", "a:p", "_:true"}},
    /* Literals */
    {"<a:s> <a:p> \"\" .\n", {"a:s", "a:p", "\"\""}},
    {"<a:s><a:p>\"x\".\n", {"a:s", "a:p", "\"x\""}},
    {"<a:s> <a:p> \"a . <b:c> # 'd' [e]\" .\n", {"a:s", "a:p", "\"a . <b:c> # 'd' [e]\""}},
    {"<a:s> <a:p> \"x\"@en .\n", {"a:s", "a:p", "\"x\"@en"}},
    {"<a:s> <a:p> \"x\"@zh-Hant-TW1.\n", {"a:s", "a:p", "\"x\"@zh-Hant-TW1"}},
    {"<a:s> <a:p> \"1\"^^<a:int> .\n", {"a:s", "a:p", "\"1\"^^<a:int>"}},
    {"<a:s> <a:p> \"1\"^^<a:\\u00e9> .\n", {"a:s", "a:p", "\"1\"^^<a:\xc3\xa9>"}},
    {"<a:s> <a:p> \"x\"^^<http://www.w3.org/2001/XMLSchema#string> .\n", {"a:s", "a:p", "\"x\""}},
    {"<a:s> <a:p> \"\\t\\b\\n\\r\\f\\\"\\'\\\\\" .\n", {"a:s", "a:p", "\"\\t\\b\\n\\r\\f\\\"'\\\\\""}},
    {"<a:s> <a:p> \"\\u0009\\u0022\\u005C\\u0000\\u0001\\u007f\\u001F\" .\n",
     {"a:s", "a:p", "\"\\t\\\"\\\\\\u0000\\u0001\\u007F\\u001F\""}},
    {"<a:s> <a:p> \"\\u00e9 \\U0001F600\" .\n", {"a:s", "a:p", "\"\xc3\xa9 \xf0\x9f\x98\x80\""}},
    {"<a:s> <a:p> \"a\tb\x01\x7f\" .\n", {"a:s", "a:p", "\"a\\tb\\u0001\\u007F\""}},
    {"<a:s> <a:p> \"\xe2\x80\xa8\xef\xbb\xbf\" .\n", {"a:s", "a:p", "\"\xe2\x80\xa8\xef\xbb\xbf\""}},
};

static void test_good(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good_cases / sizeof *good_cases; i++) {
        const good_case *c = &good_cases[i];
        char *copy;
        vlp_piece piece = parse(c->text, strlen(c->text), &copy);
        if (piece.status != VLP_OK) fail_msg("refused: %s\n%s", piece.error, c->text);
        int64_t count = 0;
        while (c->names[count]) count++;
        assert_int_equal(piece.span_count, count);
        for (int64_t j = 0; j < count; j++) expect_span(&piece.spans[j], c->names[j]);
        free_piece(&piece);
        free(copy);
    }
}

/* ---- What is refused ----------------------------------------------------------------------------- */

typedef struct bad_case {
    const char *text;
    size_t size;
    int64_t line; /* from 0 */
    const char *cause;
} bad_case;

#define BAD(text, line, cause)                                                                          \
    { text, sizeof(text) - 1, line, cause }

#define SUBJECT "a subject is an IRI in < > or a blank node _:label"
#define PREDICATE "a predicate is an IRI in < >"
#define OBJECT "an object is an IRI in < >, a blank node _:label or a literal in \" \""
#define FOURTH "a fourth term; a statement of N-Triples has three"
#define BEHIND "text after the full stop; a line is one statement"
#define NO_STOP "no full stop after the object"
#define ESCAPE "a backslash in a literal that does not start an escape"
#define DIGITS "an escape \\u needs 4 hexadecimal digits, \\U 8"
#define CODE "an escape \\u or \\U that is no code point"
#define IRI_BYTE "a character that is not allowed in an IRI"
#define IRI_ESCAPE "an escape for a character that is not allowed in an IRI"
#define LANGUAGE "a language tag that is not like @en or @zh-Hant"
#define DATATYPE "a datatype is written ^^ and an IRI in < >"
#define LABEL "the label of a blank node starts with a letter, a digit or _"
#define RELATIVE "an IRI without a scheme; N-Triples has absolute IRIs only, such as http://..."
#define MULTIPLICATION "invalid character U+00D7 in name" /* in the words of serd */
#define COMMENT "a NUL byte or a carriage return in a comment"
#define LITERAL "a NUL byte or a carriage return in a literal"

static const bad_case bad_cases[] = {
    /* Statements and lines */
    BAD("<a:s> <a:p> <a:o>\n", 0, NO_STOP),
    BAD("<a:s> <a:p> <a:o>", 0, NO_STOP),
    BAD("<a:s> <a:p> .\n", 0, OBJECT),
    BAD("<a:s> .\n", 0, PREDICATE),
    BAD(".\n", 0, SUBJECT),
    BAD("<a:s>\n<a:p>\n<a:o> .\n", 0, PREDICATE),
    BAD("<a:s> <a:p> # comment\n<a:o> .\n", 0, OBJECT),
    BAD("\n# x\n<a:s> <a:p> <a:o> .\n<a:s> <a:p>\n", 3, OBJECT),
    BAD("<a:s> <a:p> <a:o> . <a:s> <a:p> <a:o> .\n", 0, BEHIND),
    BAD("<a:s> <a:p> <a:o> ..\n", 0, BEHIND),
    BAD("<a:s> <a:p> <a:o> .\r<a:s> <a:p> <a:o> .\n", 0, BEHIND),
    BAD("<a:s> <a:p> <a:o> <a:g> .\n", 0, FOURTH),
    BAD("<a:s> <a:p> <a:o> _:g .\n", 0, FOURTH),
    BAD("<a:s> <a:p> <a:o>\v.\n", 0, NO_STOP),
    /* The wrong term in the wrong place */
    BAD("\"x\" <a:p> <a:o> .\n", 0, SUBJECT),
    BAD("<a:s> _:p <a:o> .\n", 0, PREDICATE),
    BAD("<a:s> \"p\" <a:o> .\n", 0, PREDICATE),
    /* Turtle, TriG */
    BAD("@prefix a: <b:c> .\n", 0, SUBJECT),
    BAD("PREFIX a: <b:c>\n", 0, SUBJECT),
    BAD("base <b:c>\n", 0, SUBJECT),
    BAD("GRAPH <b:c> { <a:s> <a:p> <a:o> . }\n", 0, SUBJECT),
    BAD("{ <a:s> <a:p> <a:o> . }\n", 0, SUBJECT),
    BAD("a:s <a:p> <a:o> .\n", 0, SUBJECT),
    BAD("[] <a:p> <a:o> .\n", 0, SUBJECT),
    BAD("( <a:s> ) <a:p> <a:o> .\n", 0, SUBJECT),
    BAD("<a:s> a <a:o> .\n", 0, PREDICATE),
    BAD("<a:s> a:p <a:o> .\n", 0, PREDICATE),
    BAD("<a:s> <a:p> :o .\n", 0, OBJECT),
    BAD("<a:s> <a:p> [ ] .\n", 0, OBJECT),
    BAD("<a:s> <a:p> 1 .\n", 0, OBJECT),
    BAD("<a:s> <a:p> true .\n", 0, OBJECT),
    BAD("<a:s> <a:p> 'x' .\n", 0, OBJECT),
    BAD("<a:s> <a:p> \"\"\"x\"\"\" .\n", 0, FOURTH),
    BAD("<a:s> <a:p> <a:o> ; <a:p> <a:o> .\n", 0, NO_STOP),
    BAD("<a:s> <a:p> <a:o> , <a:o> .\n", 0, NO_STOP),
    /* IRIs */
    BAD("<> <a:p> <a:o> .\n", 0, "an empty IRI"),
    BAD("<a:s <a:p> <a:o> .\n", 0, "a space in an IRI, or no closing >"),
    BAD("<a:s> <a:p> <a:o .\n", 0, "a space in an IRI, or no closing >"),
    BAD("<a:s> <a:p> <a:o.\n", 0, "an IRI without a closing >"),
    BAD("<a:s\t> <a:p> <a:o> .\n", 0, IRI_BYTE),
    BAD("<a:s\x7f> <a:p> <a:o> .\n", 0, IRI_BYTE),
    BAD("<a:s\0> <a:p> <a:o> .\n", 0, IRI_BYTE),
    BAD("<a:s{> <a:p> <a:o> .\n", 0, IRI_BYTE),
    BAD("<a:s<b> <a:p> <a:o> .\n", 0, IRI_BYTE),
    BAD("<a:s\\n> <a:p> <a:o> .\n", 0, "a backslash in an IRI that does not start \\u or \\U"),
    BAD("<a:s\\u00> <a:p> <a:o> .\n", 0, DIGITS),
    BAD("<a:s\\uD800> <a:p> <a:o> .\n", 0, CODE),
    BAD("<a:s\\u0020> <a:p> <a:o> .\n", 0, IRI_ESCAPE),
    BAD("<a:s\\u0000> <a:p> <a:o> .\n", 0, IRI_ESCAPE),
    BAD("<a:s\\u000a> <a:p> <a:o> .\n", 0, IRI_ESCAPE),
    BAD("<a:s\\u007F> <a:p> <a:o> .\n", 0, IRI_ESCAPE),
    BAD("<a:s\\u003e> <a:p> <a:o> .\n", 0, IRI_ESCAPE),
    BAD("<a:s\\u0022> <a:p> <a:o> .\n", 0, IRI_ESCAPE),
    BAD("<s> <a:p> <a:o> .\n", 0, RELATIVE),
    BAD("<a:s> </p> <a:o> .\n", 0, RELATIVE),
    BAD("<a:s> <a:p> <o/a:b> .\n", 0, RELATIVE),
    BAD("<a:s> <a:p> <\xc3\xa9:o> .\n", 0, RELATIVE),
    BAD("<9a:s> <a:p> <a:o> .\n", 0, RELATIVE),
    BAD("<:s> <a:p> <a:o> .\n", 0, RELATIVE),
    BAD("<a", 0, RELATIVE),
    BAD("<\\u0061:s> <a:p> <a:o> .\n", 0, RELATIVE),
    BAD("\n<a:s> <a:p> <a:o> .\n# x\n<a:s> <a:p> \"1\"^^<int> .\n", 3, RELATIVE),
    /* Blank nodes */
    BAD("_ <a:p> <a:o> .\n", 0, "a blank node is written _:label"),
    BAD("_: <a:p> <a:o> .\n", 0, LABEL),
    BAD("_:-a <a:p> <a:o> .\n", 0, LABEL),
    BAD("_:.a <a:p> <a:o> .\n", 0, LABEL),
    BAD("_:... <a:p> <a:o> .\n", 0, LABEL),
    BAD("_:\xe2\x81\x80 <a:p> <a:o> .\n", 0, LABEL),
    BAD("<a:s> <a:p> _:\xcc\x80 .\n", 0, LABEL),
    BAD("_:a. <a:p> <a:o> .\n", 0, PREDICATE),
    BAD("_:a:b <a:p> <a:o> .\n", 0, PREDICATE),
    BAD("<a:s> <a:p> _:a.. \n", 0, BEHIND),
    BAD("_:\xc3\x97 <a:p> <a:o> .\n", 0, MULTIPLICATION),
    BAD("<a:s> <a:p> _:a\xc3\x97 .\n", 0, MULTIPLICATION),
    /* Literals */
    BAD("<a:s> <a:p> \"x .\n", 0, "a literal without a closing quote"),
    BAD("<a:s> <a:p> \"x\\\" .\n", 0, "a literal without a closing quote"),
    BAD("<a:s> <a:p> \"x\ny\" .\n", 0, "a literal without a closing quote"),
    BAD("<a:s> <a:p> \"x\ry\" .\n", 0, LITERAL),
    BAD("<a:s> <a:p> \"x\0y\" .\n", 0, LITERAL),
    BAD("<a:s> <a:p> \"x\\qy\" .\n", 0, ESCAPE),
    BAD("<a:s> <a:p> \"x\\\0y\" .\n", 0, ESCAPE),
    BAD("<a:s> <a:p> \"x\\", 0, ESCAPE),
    BAD("<a:s> <a:p> \"\\u00g0\" .\n", 0, DIGITS),
    BAD("<a:s> <a:p> \"\\U0001F60\" .\n", 0, DIGITS),
    BAD("<a:s> <a:p> \"\\u12", 0, DIGITS),
    BAD("<a:s> <a:p> \"\\U00110000\" .\n", 0, CODE),
    BAD("<a:s> <a:p> \"\\uDFFF\" .\n", 0, CODE),
    BAD("<a:s> <a:p> \"x\"@ .\n", 0, LANGUAGE),
    BAD("<a:s> <a:p> \"x\"@1 .\n", 0, LANGUAGE),
    BAD("<a:s> <a:p> \"x\"@en- .\n", 0, LANGUAGE),
    BAD("<a:s> <a:p> \"x\"@en--us .\n", 0, LANGUAGE),
    BAD("<a:s> <a:p> \"x\"@e1 .\n", 0, NO_STOP),
    BAD("<a:s> <a:p> \"x\"@en^^<a:t> .\n", 0, NO_STOP),
    BAD("<a:s> <a:p> \"x\" @en .\n", 0, NO_STOP),
    BAD("<a:s> <a:p> \"x\"^<a:t> .\n", 0, DATATYPE),
    BAD("<a:s> <a:p> \"x\"^^a:t .\n", 0, DATATYPE),
    BAD("<a:s> <a:p> \"x\"^^\"t\" .\n", 0, DATATYPE),
    BAD("<a:s> <a:p> \"x\"^^", 0, DATATYPE),
    BAD("<a:s> <a:p> \"x\"^^<a:t .\n", 0, "a space in an IRI, or no closing >"),
    /* Bytes */
    BAD("# x\0 <a:s> <a:p> <a:o> .\n", 0, COMMENT),
    BAD("<a:s> <a:p> <a:o> . # x\r<a:s> <a:p> <a:o> .\n", 0, COMMENT),
    BAD("\0\n", 0, SUBJECT),
    BAD("<a:s> <a:p> <a:o> .\n<a:\xff> <a:p> <a:o> .\n", 1, "invalid UTF-8"),
    BAD("<a:s> <a:p> \"\xed\xa0\x80\" .\n", 0, "invalid UTF-8"),
    BAD("<a:s> <a:p> \"\xc0\x80\" .\n", 0, "invalid UTF-8"),
    BAD("# \xe4\xb8\n", 0, "invalid UTF-8"),
    BAD("<a:s> <a:p> <a:o> .\n\xef\xbb\xbf<a:s> <a:p> <a:o> .\n", 1, SUBJECT),
    /* The first error counts, at any thread that finds it. */
    BAD("<a:s> <a:p> <a:o> .\n_:\xc3\x97 <a:p> <a:o> .\nx\n\xff\n", 1, MULTIPLICATION),
    BAD("<a:s> <a:p> <a:o> .\nx\n_:\xc3\x97 <a:p> <a:o> .\n\xff\n", 1, SUBJECT),
    BAD("<a:s> <a:p> <a:o> .\n\xff\nx\n_:\xc3\x97 <a:p> <a:o> .\n", 1, "invalid UTF-8"),
};

static void test_bad(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const bad_case *c = &bad_cases[i];
        char *copy;
        vlp_piece piece = parse(c->text, c->size, &copy);
        if (piece.status != VLP_ERROR_FORMAT || piece.error_line != c->line ||
            strcmp(piece.error, c->cause) != 0)
            fail_msg("status %d, line %lld, '%s' instead of line %lld, '%s' for\n%s", piece.status,
                     (long long)piece.error_line, piece.error, (long long)c->line, c->cause, c->text);
        assert_int_equal(piece.span_count % 3, 0);
        free_piece(&piece);
        free(copy);
    }
}

/* A wrong line behind many good ones, comments and empty lines keeps its number, at any thread that
 * finds it. */
static void test_bad_line_number(void **state) {
    (void)state;
    static const char *const wrong[] = {"_:\xc3\x97 <a:p> <a:o> .\n", "<a:s> <a:p>\n", "\xff\n"};
    enum { LINES = 5000, LENGTH = 64 };
    char *text = malloc(LINES * LENGTH);
    assert_non_null(text);
    for (int i = 0; i < 3; i++) {
        size_t size = 0;
        int64_t wrong_line = 4000 + 7 * i;
        for (int64_t line = 0; line < LINES; line++) {
            static const char *const fill[] = {"\n", "# comment\r\n", "  \n"};
            if (line == wrong_line)
                size += (size_t)snprintf(text + size, LENGTH, "%s", wrong[i]);
            else if (line % 5 < 3)
                size += (size_t)snprintf(text + size, LENGTH, "_:n%lld <a:p> \"%lld\" .\n",
                                         (long long)line, (long long)line % 9);
            else
                size += (size_t)snprintf(text + size, LENGTH, "%s", fill[line % 3]);
        }
        vlp_piece piece = {.text = text, .size = size};
        vlp_parse_ntriples(&piece, NULL);
        assert_int_equal(piece.status, VLP_ERROR_FORMAT);
        assert_int_equal(piece.error_line, wrong_line);
        free_piece(&piece);
    }
    free(text);
}

/* ---- Names of any length, pieces used again ------------------------------------------------------ */

static void test_long_names(void **state) {
    (void)state;
    /* Around serd's page and stack sizes, and far above them. */
    static const size_t lengths[] = {1, 4000, 4095, 4096, 4097, 8191, 8192, 65537, 3000000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t length = lengths[i], size = 0;
        char *text = malloc(4 * length + 64), *name = malloc(length + 1);
        assert_non_null(text);
        assert_non_null(name);
        memset(name, 'x', length);
        name[length] = '\0';
        size += (size_t)sprintf(text + size, "<a:%s> <a:%s> <a:%s> .\n", name, name, name);
        size += (size_t)sprintf(text + size, "_:%s <a:p> \"", name);
        vlp_piece piece = {.text = text, .size = size};
        vlp_parse_ntriples(&piece, NULL);
        assert_string_equal(piece.error, "a literal without a closing quote");
        assert_int_equal(piece.error_line, 1);
        assert_int_equal(piece.span_count, 3);
        for (int j = 0; j < 3; j++) {
            assert_int_equal(piece.spans[j].length, length + 2);
            assert_memory_equal(piece.spans[j].text, "a:", 2);
            assert_memory_equal(piece.spans[j].text + 2, name, length);
        }
        free_piece(&piece);
        free(text);
        free(name);
    }
}

/* The reader empties a piece and gives it the next text; the memory stays. */
static void test_piece_reused(void **state) {
    (void)state;
    vlp_piece piece = {.text = NULL};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof good_cases / sizeof *good_cases; i++) {
            const good_case *c = &good_cases[i];
            piece.text = c->text;
            piece.size = strlen(c->text);
            piece.span_count = piece.arena_size = 0;
            vlp_parse_ntriples(&piece, NULL);
            assert_int_equal(piece.status, VLP_OK);
            for (int64_t j = 0; j < piece.span_count; j++) expect_span(&piece.spans[j], c->names[j]);
        }
    }
    free_piece(&piece);
}

/* ---- Through the reader -------------------------------------------------------------------------- */

typedef struct graph {
    vlp_dictionary *entities, *relations;
    vlp_triple_list triples;
} graph;

static vlp_status read_text(graph *out, const char *text, size_t size, int32_t threads) {
    *out = (graph){NULL, NULL, {NULL, 0, 0}};
    vlp_source *source = NULL;
    vlp_status status = VLP_OK;
    vlp_record_format format = {.parser = vlp_parse_ntriples};
    VLP_CHECK(vlp_dictionary_new(&out->entities));
    VLP_CHECK(vlp_dictionary_new(&out->relations));
    VLP_CHECK(vlp_source_open_memory(&source, "graph.nt", text, size));
    vlp_read_sink sink = {
        .entities = out->entities, .relations = out->relations, .triples = &out->triples};
    VLP_CHECK(vlp_read_records(&sink, source, &format, &(vlp_read_options){.threads = threads}));
out:
    vlp_source_free(source);
    return status;
}

static void free_graph(graph *g) {
    vlp_dictionary_free(g->entities);
    vlp_dictionary_free(g->relations);
    vlp_triple_list_free(&g->triples);
}

static const char *entity(const graph *g, int32_t id) {
    return vlp_dictionary_name(g->entities, id);
}

static void test_reader_mark_and_message(void **state) {
    (void)state;
    static const char good[] = "\xef\xbb\xbf<a:s> <a:p> _:o .\r\n_:o <a:p> \"x\"@en";
    graph g;
    assert_int_equal(read_text(&g, good, sizeof good - 1, 1), VLP_ERROR_FORMAT);
    assert_string_equal(vlp_error_message(), "graph.nt:2: no full stop after the object");
    free_graph(&g);
    static const char mended[] = "\xef\xbb\xbf<a:s> <a:p> _:o .\r\n_:o <a:p> \"x\"@en.";
    assert_int_equal(read_text(&g, mended, sizeof mended - 1, 1), VLP_OK);
    assert_int_equal(g.triples.count, 2);
    assert_int_equal(vlp_dictionary_size(g.relations), 1);
    assert_string_equal(entity(&g, g.triples.items[0].head), "a:s");
    assert_string_equal(entity(&g, g.triples.items[0].tail), "_:o");
    assert_int_equal(g.triples.items[1].head, g.triples.items[0].tail);
    assert_string_equal(entity(&g, g.triples.items[1].tail), "\"x\"@en");
    free_graph(&g);
}

/* Many lines of every kind; free() it. */
static char *large_text(size_t *size, int64_t lines) {
    char *text = malloc((size_t)lines * 100);
    assert_non_null(text);
    *size = 0;
    for (int64_t i = 0; i < lines; i++) {
        static const char *const forms[] = {
            "<http://example.org/%lld> <a:p> <http://example.org/%lld> .\n",
            "_:b%lld <a:p> \"t\\t%lld\"@en .\r\n", "# %lld %lld\n", "<a:\\u00e9%lld> <a:q> _:b%lld.\n"};
        long long left = i * 7919 % 1000, right = i * 104729 % 1000;
        *size += (size_t)sprintf(text + *size, forms[i % 4], left, right);
    }
    return text;
}

static void expect_same_graph(const graph *left, const graph *right) {
    assert_int_equal(left->triples.count, right->triples.count);
    assert_memory_equal(left->triples.items, right->triples.items,
                        (size_t)left->triples.count * sizeof *left->triples.items);
    assert_int_equal(vlp_dictionary_size(left->entities), vlp_dictionary_size(right->entities));
    for (int32_t i = 0; i < vlp_dictionary_size(left->entities); i++)
        assert_string_equal(entity(left, i), entity(right, i));
}

static void test_reader_threads(void **state) {
    (void)state;
    size_t size;
    char *text = large_text(&size, 20000);
    graph one, many;
    assert_int_equal(read_text(&one, text, size, 1), VLP_OK);
    assert_int_equal(one.triples.count, 15000);
    for (int32_t threads = 2; threads <= 7; threads++) {
        assert_int_equal(read_text(&many, text, size, threads), VLP_OK);
        expect_same_graph(&one, &many);
        free_graph(&many);
    }
    free_graph(&one);
    /* Two wrong lines: the first is reported, however the text is cut. */
    char *late = memrchr(text, '<', size - 50), *early = memchr(text + size / 3, '<', size);
    late[1] = '>';
    early[1] = '>';
    char expected[64];
    int64_t line = 1;
    for (const char *at = text; at < early; at++) line += *at == '\n';
    snprintf(expected, sizeof expected, "graph.nt:%lld: an empty IRI", (long long)line);
    for (int32_t threads = 1; threads <= 5; threads++) {
        assert_int_equal(read_text(&many, text, size, threads), VLP_ERROR_FORMAT);
        assert_string_equal(vlp_error_message(), expected);
        free_graph(&many);
    }
    free(text);
}

/* Written as N-Triples, the names are read as themselves. */
static void test_round_trip(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good_cases / sizeof *good_cases; i++) {
        const good_case *c = &good_cases[i];
        char text[1024];
        int size = 0, count = 0;
        for (; c->names[count]; count++) {
            bool iri = c->names[count][0] != '"' && c->names[count][0] != '_';
            size += snprintf(text + size, sizeof text - (size_t)size, iri ? "<%s> " : "%s ",
                             c->names[count]);
            if (count % 3 == 2) size += snprintf(text + size, sizeof text - (size_t)size, ".\n");
        }
        assert_in_range(size, 0, sizeof text - 1);
        vlp_piece piece = {.text = text, .size = (size_t)size};
        vlp_parse_ntriples(&piece, NULL);
        assert_int_equal(piece.status, VLP_OK);
        assert_int_equal(piece.span_count, count);
        for (int j = 0; j < count; j++) expect_span(&piece.spans[j], c->names[j]);
        free_piece(&piece);
    }
}

/* ---- Without memory ------------------------------------------------------------------------------ */

static void test_piece_without_memory(void **state) {
    (void)state;
    size_t size;
    char *text = large_text(&size, 300);
    failing_allocator memory;
    int64_t call = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_piece piece = {.text = text, .size = size};
        vlp_parse_ntriples(&piece, NULL);
        assert_int_equal(piece.status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
        if (memory.failed) assert_memory_equal(piece.error, "out of memory for ", 18);
        free_piece(&piece);
        failing_allocator_remove(&memory);
    } while (memory.failed);
    assert_in_range(call, 5, 100);
    free(text);
}

static void test_reader_without_memory(void **state) {
    (void)state;
    size_t size;
    char *text = large_text(&size, 6000);
    failing_allocator memory;
    int64_t call = 0;
    do {
        graph g;
        failing_allocator_install(&memory, ++call);
        vlp_status status = read_text(&g, text, size, 2);
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
        free_graph(&g);
        failing_allocator_remove(&memory);
    } while (memory.failed);
    assert_in_range(call, 10, 400);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_bad_line_number),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_piece_reused),
        cmocka_unit_test(test_reader_mark_and_message),
        cmocka_unit_test(test_reader_threads),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_piece_without_memory),
        cmocka_unit_test(test_reader_without_memory),
    };
    return cmocka_run_group_tests_name("ntriples", tests, NULL, NULL);
}
