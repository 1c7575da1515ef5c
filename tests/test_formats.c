/* Formats of files: the same triples in every format and compression are the same data; wrong and
 * damaged files are refused with a message that says what and where; memory is bounded. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/file.h"
#include "base/random.h"
#include "failing_allocator.h"
#include "graph/format.h"
#include "graph/labels.h"
#include "graph/reader.h"

/* ---- Reading ------------------------------------------------------------------------------------- */

typedef struct result {
    vlp_dictionary *entities, *relations;
    vlp_triple_list triples;
    vlp_read_sink sink;
} result;

static vlp_status result_start(result *read) {
    *read = (result){0};
    VLP_TRY(vlp_dictionary_new(&read->entities));
    VLP_TRY(vlp_dictionary_new(&read->relations));
    read->sink = (vlp_read_sink){
        .entities = read->entities, .relations = read->relations, .triples = &read->triples};
    return VLP_OK;
}

static void result_free(result *read) {
    vlp_dictionary_free(read->entities);
    vlp_dictionary_free(read->relations);
    vlp_triple_list_free(&read->triples);
}

static vlp_status read_text(result *read, const char *name, const char *text, size_t size,
                            const vlp_file_options *file, int32_t threads) {
    vlp_source *source = NULL;
    VLP_TRY(result_start(read));
    VLP_TRY(vlp_source_open_memory(&source, name, text, size));
    vlp_status status =
        vlp_read_source(&read->sink, source, &(vlp_read_options){.file = file, .threads = threads});
    vlp_source_free(source);
    return status;
}

/* ---- Texts --------------------------------------------------------------------------------------- */

typedef struct text {
    char *bytes;
    size_t size, capacity;
} text;

static void put_bytes(text *out, const char *bytes, size_t size) {
    if (size > 1u << 30) abort();
    if (out->size + size + 1 > out->capacity) {
        out->capacity = 2 * (out->size + size + 1);
        out->bytes = realloc(out->bytes, out->capacity);
        assert_non_null(out->bytes);
    }
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
    out->bytes[out->size] = '\0';
}

static void put(text *out, const char *bytes) {
    put_bytes(out, bytes, strlen(bytes));
}

static void write_zstd(const char *folder, const char *name, const text *content) {
    size_t bound = ZSTD_compressBound(content->size);
    char *bytes = malloc(bound);
    size_t size = ZSTD_compress(bytes, bound, content->bytes, content->size, 3);
    assert_false(ZSTD_isError(size));
    support_write(folder, name, bytes, size);
    free(bytes);
}

static uint32_t pick(uint64_t seed, int64_t place, uint32_t below) {
    return vlp_random(seed, 77, (uint64_t)place, 0).v[0] % below;
}

/* ---- The same triples in every format ------------------------------------------------------------ */

/* Terms, by what a reader has to name them and how a format may write them; several spellings of RDF. */
typedef struct term {
    const char *name;
    const char *ntriples; /* also a spelling of Turtle */
    const char *turtle;   /* with the prefixes ex: and : and the base of `turtle_start` */
} term;

static const char turtle_start[] = "@prefix ex: <http://e.x/> .\nPREFIX : <http://e.x/local#>\n"
                                   "@base <http://e.x/deep/file#part> . # a comment with \" and <\n"
                                   "@prefix xsd: <http://www.w3.org/2001/XMLSchema#>.\n";

static const term heads[] = {
    {"http://e.x/a", "<http://e.x/a>", "ex:a"},
    {"http://e.x/local#b.c", "<http://e.x/local#b.c>", ":b.c"},
    {"http://e.x/deep/d", "<http://e.x/deep/d>", "<d>"},
    {"http://e.x/deep/file", "<http://e.x/deep/file>", "<>"},
    {"http://e.x/\xc3\xa9", "<http://e.x/\\u00E9>", "ex:\xc3\xa9"},
    {"http://e.x/p(q)", "<http://e.x/p(q)>", "ex:p\\(q\\)"},
    {"_:b1", "_:b1", "_:b1"},
    {"_:B1", "_:B1", "_:B1"},
    {"_:x.y", "_:x.y", "_:x.y"},
};
static const term relations[] = {
    {"http://e.x/r", "<http://e.x/r>", "ex:r"},
    {"http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
     "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "a"},
    {"http://e.x/other", "<http://e.x/other>", "</other>"},
};
static const term literals[] = {
    {"\"plain\"", "\"plain\"", "'plain'"},
    {"\"plain\"", "\"plain\"^^<http://www.w3.org/2001/XMLSchema#string>", "\"plain\"^^xsd:string"},
    {"\"a, \\\"b\\\" \\\\ c\"@en-GB", "\"a, \\\"b\\\" \\\\ c\"@en-GB", "'a, \"b\" \\\\ c'@en-GB"},
    {"\"two\\nlines\\tand _:b7. ex:z [ (\"", "\"two\\nlines\\tand _:b7. ex:z [ (\"",
     "\"\"\"two\nlines\tand _:b7. ex:z [ (\"\"\""},
    {"\"\xe2\x82\xac 'x''y'\"", "\"\\u20AC 'x''y'\"", "\"\"\"\xe2\x82\xac 'x''y'\"\"\""},
    {"\"a\\\"\\n\\\"\\\"b\"", "\"a\\\"\\n\\\"\\\"b\"", "\"\"\"a\"\\n\"\"b\"\"\""},
    {"\"a'\\\\''b\"", "\"a'\\\\''b\"", "'''a'\\\\''b'''"},
    {"\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>",
     "\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>", "5"},
    {"\"-4.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>",
     "\"-4.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>", "-4.5"},
    {"\"1e+3\"^^<http://www.w3.org/2001/XMLSchema#double>",
     "\"1e+3\"^^<http://www.w3.org/2001/XMLSchema#double>", "1e+3"},
    {"\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>",
     "\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>", "true"},
};
enum {
    HEADS = sizeof heads / sizeof *heads,
    RELATIONS = sizeof relations / sizeof *relations,
    LITERALS = sizeof literals / sizeof *literals,
    TRIPLES = 1000
};

typedef struct statement {
    const term *terms[3];
} statement;

static void make_statements(statement *out, uint64_t seed) {
    for (int i = 0; i < TRIPLES; i++) {
        uint32_t tail = pick(seed, 4 * i + 2, HEADS + LITERALS);
        out[i] =
            (statement){{&heads[pick(seed, 4 * i, HEADS)], &relations[pick(seed, 4 * i + 1, RELATIONS)],
                         tail < HEADS ? &heads[tail] : &literals[tail - HEADS]}};
        /* Turtle shares subjects. */
        if (i > 0 && pick(seed, 4 * i + 3, 3) == 0) out[i].terms[0] = out[i - 1].terms[0];
    }
}

static void put_csv_field(text *out, const char *field, bool quoted) {
    if (!quoted && !strpbrk(field, "\",\n")) {
        put(out, field);
        return;
    }
    put(out, "\"");
    for (; *field; field++) {
        if (*field == '"') put(out, "\"");
        put_bytes(out, field, 1);
    }
    put(out, "\"");
}

static void put_table(text *out, const statement *all, vlp_format format, uint64_t seed) {
    bool csv = format == VLP_FORMAT_CSV, marked = pick(seed, -1, 2) == 0;
    const char *end = pick(seed, -2, 2) ? "\r\n" : "\n";
    if (marked) put(out, "\xef\xbb\xbf");
    for (int i = 0; i < TRIPLES; i++) {
        for (int part = 0; part < 3; part++) {
            if (part > 0) put(out, csv ? "," : "\t");
            if (csv)
                put_csv_field(out, all[i].terms[part]->name, pick(seed, 3 * i + part, 2) == 0);
            else
                put(out, all[i].terms[part]->name);
        }
        if (i + 1 < TRIPLES || marked) put(out, end);
    }
}

/* Returns the number of graph names. */
static int64_t put_lines(text *out, const statement *all, vlp_format format, uint64_t seed) {
    int64_t graphs = 0;
    for (int i = 0; i < TRIPLES; i++) {
        for (int part = 0; part < 3; part++) {
            put(out, all[i].terms[part]->ntriples);
            put(out, pick(seed, 5 * i + part, 2) ? " " : "\t");
        }
        uint32_t graph = format == VLP_FORMAT_NQUADS ? pick(seed, 5 * i + 3, 3) : 0;
        graphs += graph > 0;
        put(out, graph == 0 ? "" : graph == 1 ? "<http://g.x/1> " : "_:g");
        put(out, pick(seed, 5 * i + 4, 9) ? ".\n" : " . # comment\r\n\n");
    }
    return graphs;
}

/* Statements with spellings of Turtle; a graph of TriG ends where the next one begins. */
static int64_t put_turtle(text *out, const statement *all, vlp_format format, uint64_t seed) {
    int64_t graphs = 0;
    uint32_t graph = 0; /* 0: outside of any, 1: the default graph in braces, 2: a named one */
    put(out, turtle_start);
    for (int i = 0; i < TRIPLES; i++) {
        bool first = i == 0 || all[i].terms[0] != all[i - 1].terms[0] || graph != 0;
        if (format == VLP_FORMAT_TRIG) {
            graph = first ? pick(seed, 7 * i, 3) : graph;
            if (graph > 0) put(out, graph == 1 ? "{ " : pick(seed, 7 * i, 2) ? "ex:g{" : "GRAPH _:b1 {");
            graphs += graph == 2;
        }
        for (int part = first ? 0 : 1; part < 3; part++) {
            const term *found = all[i].terms[part];
            put(out, pick(seed, 7 * i + 1 + part, 2) ? found->turtle : found->ntriples);
            if (part < 2) put(out, pick(seed, 7 * i + 4, 5) ? " " : "\n\t");
        }
        bool follows = i + 1 < TRIPLES && all[i + 1].terms[0] == all[i].terms[0] && graph == 0;
        if (graph > 0)
            put(out, pick(seed, 7 * i + 5, 2) ? " }\n" : ".}\n");
        else if (follows)
            put(out, pick(seed, 7 * i + 5, 2) ? " ;\n" : "; ");
        else
            put(out, pick(seed, 7 * i + 5, 2) ? " .\n" : ".\r\n");
    }
    return graphs;
}

static int64_t put_all(text *out, const statement *all, vlp_format format, uint64_t seed) {
    switch (format) {
    case VLP_FORMAT_TSV:
    case VLP_FORMAT_CSV:
        put_table(out, all, format, seed);
        return 0;
    case VLP_FORMAT_NTRIPLES:
    case VLP_FORMAT_NQUADS:
        return put_lines(out, all, format, seed);
    case VLP_FORMAT_TURTLE:
    case VLP_FORMAT_TRIG:
        return put_turtle(out, all, format, seed);
    case VLP_FORMAT_AUTO:
    case VLP_FORMATS:
        break;
    }
    return 0;
}

static void check_statements(const result *read, const statement *all, const char *name) {
    if (read->triples.count != TRIPLES)
        fail_msg("%s: %lld triples", name, (long long)read->triples.count);
    for (int i = 0; i < TRIPLES; i++) {
        vlp_triple triple = read->triples.items[i];
        const char *names[3] = {vlp_dictionary_name(read->entities, triple.head),
                                vlp_dictionary_name(read->relations, triple.relation),
                                vlp_dictionary_name(read->entities, triple.tail)};
        for (int part = 0; part < 3; part++)
            if (strcmp(names[part], all[i].terms[part]->name) != 0)
                fail_msg("%s: triple %d has %s, not %s", name, i, names[part], all[i].terms[part]->name);
    }
}

static void the_same_in_every_format(void **state) {
    (void)state;
    const char *folder = support_folder();
    statement *all = malloc(TRIPLES * sizeof *all);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        make_statements(all, seed);
        for (int index = 0; index < VLP_FORMAT_EXTENSIONS; index++) {
            char name[32];
            vlp_format_file_name(name, sizeof name, "x", index);
            vlp_format format = vlp_format_of_name(name);
            if (format == VLP_FORMAT_AUTO) continue; /* .txt */
            text content = {0};
            int64_t graphs = put_all(&content, all, format, seed);
            if (strstr(name, ".gz"))
                support_write_gzip(folder, name, content.bytes, content.size);
            else if (strstr(name, ".zst"))
                write_zstd(folder, name, &content);
            else
                support_write(folder, name, content.bytes, content.size);
            /* Also by the content alone, under a name that states no format; and with three threads. */
            rename(support_path(folder, name), support_path(folder, "any"));
            for (int way = 0; way < 3; way++) {
                vlp_file_options file = VLP_FILE_OPTIONS_INIT;
                if (way == 1) rename(support_path(folder, "any"), support_path(folder, name));
                result read;
                assert_int_equal(result_start(&read), VLP_OK);
                vlp_read_options options = {.file = &file, .threads = way == 2 ? 3 : 1};
                const char *path = support_path(folder, way == 0 ? "any" : name);
                if (vlp_read_file(&read.sink, path, &options) != VLP_OK)
                    fail_msg("seed %d, %s: %s", (int)seed, name, vlp_error_message());
                /* By the content alone a format is read as one that contains it. */
                vlp_format wider = format == VLP_FORMAT_NTRIPLES ? VLP_FORMAT_NQUADS
                                   : format == VLP_FORMAT_TURTLE ? VLP_FORMAT_TRIG
                                                                 : format;
                assert_int_equal(read.sink.format, way == 0 ? wider : format);
                assert_int_equal(read.sink.graph_names, graphs);
                check_statements(&read, all, name);
                result_free(&read);
            }
            free(content.bytes);
        }
    }
    free(all);
    support_remove(folder);
}

#define RDF "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
#define RDF_LINE(head, local, tail) (head " " RDF local " " tail)

/* Nodes without a label get names of their own, also those of another file of the same sink. */
static void nodes_without_a_label(void **state) {
    (void)state;
    static const char document[] = "[ <x:p> ( _:b1 <x:o> ) ] <x:q> [] .\n";
    static const char *const expected[] = {RDF_LINE("_:[2]", "first", "_:b1"),
                                           RDF_LINE("_:[2]", "rest", "_:[3]"),
                                           RDF_LINE("_:[3]", "first", "x:o"),
                                           RDF_LINE("_:[3]", "rest", RDF "nil"),
                                           "_:[1] x:p _:[2]",
                                           "_:[1] x:q _:[4]"};
    result read;
    assert_int_equal(result_start(&read), VLP_OK);
    for (int copy = 0; copy < 2; copy++) {
        vlp_source *source = NULL;
        assert_int_equal(vlp_source_open_memory(&source, "a.ttl", document, sizeof document - 1),
                         VLP_OK);
        assert_int_equal(vlp_read_source(&read.sink, source, &(vlp_read_options){0}), VLP_OK);
        vlp_source_free(source);
    }
    assert_int_equal(read.triples.count, 12);
    assert_int_equal(read.sink.anonymous, 8);
    int found = 0;
    for (int i = 0; i < 12; i++) {
        vlp_triple triple = read.triples.items[i];
        char line[256];
        snprintf(line, sizeof line, "%s %s %s", vlp_dictionary_name(read.entities, triple.head),
                 vlp_dictionary_name(read.relations, triple.relation),
                 vlp_dictionary_name(read.entities, triple.tail));
        for (int j = 0; i < 6 && j < 6; j++) found += strcmp(line, expected[j]) == 0;
        if (i >= 6) assert_null(strstr(line, "_:[1]"));
    }
    assert_int_equal(found, 6);
    assert_true(vlp_dictionary_find(read.entities, "_:[8]", 5) >= 0);
    result_free(&read);
}

/* ---- Tables -------------------------------------------------------------------------------------- */

static vlp_file_options columns_of(vlp_format format, const char *head, const char *relation,
                                   const char *tail) {
    vlp_file_options file = VLP_FILE_OPTIONS_INIT;
    file.format = format;
    const char *names[3] = {head, relation, tail};
    memcpy(file.column_names, names, sizeof names);
    return file;
}

/* Records of several lines, over several blocks and with several threads. */
static void large_csv(void **state) {
    (void)state;
    enum { ROWS = 90000 };
    text content = {0};
    put(&content, "\"a \"\"note\"\"\",to,\"fr\nom\",kind\r\n");
    for (int i = 0; i < ROWS; i++) {
        char row[256];
        snprintf(row, sizeof row, "\"%.*s%s\n\"\"%d\"\"\n\",\"t\"\"%d\",h%d,\"r,%d\"%s", (int)(i % 90),
                 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                 "xxxxxxxxxx",
                 i % 7 ? "" : ",", i, i % 1000, i % 777, i % 5, i % 3 ? "\n" : "\r\n");
        put(&content, row);
    }
    assert_true(content.size > 5 << 20);
    vlp_file_options file = columns_of(VLP_FORMAT_CSV, "fr\nom", "kind", "to");
    for (int32_t threads = 1; threads <= 4; threads += 3) {
        result read;
        assert_int_equal(read_text(&read, "c.csv", content.bytes, content.size, &file, threads), VLP_OK);
        assert_int_equal(read.triples.count, ROWS);
        for (int i = 0; i < ROWS; i++) {
            char names[3][32];
            snprintf(names[0], 32, "h%d", i % 777);
            snprintf(names[1], 32, "r,%d", i % 5);
            snprintf(names[2], 32, "t\"%d", i % 1000);
            vlp_triple triple = read.triples.items[i];
            assert_string_equal(vlp_dictionary_name(read.entities, triple.head), names[0]);
            assert_string_equal(vlp_dictionary_name(read.relations, triple.relation), names[1]);
            assert_string_equal(vlp_dictionary_name(read.entities, triple.tail), names[2]);
        }
        result_free(&read);
        /* An error far inside names the line where its record starts. */
        text wrong = {0};
        put_bytes(&wrong, content.bytes, content.size);
        put(&wrong, "\"note\nof lines\",to,from\n");
        char message[128];
        snprintf(message, sizeof message, "c.csv:%d: 3 fields where at least 4 are needed",
                 2 + 3 * ROWS + 1);
        assert_int_equal(read_text(&read, "c.csv", wrong.bytes, wrong.size, &file, threads),
                         VLP_ERROR_FORMAT);
        if (!strstr(vlp_error_message(), message)) fail_msg("%s", vlp_error_message());
        result_free(&read);
        free(wrong.bytes);
    }
    free(content.bytes);
}

/* Which rows a header takes away, and which columns are read: the first triple as "h r t". */
static void headers(void **state) {
    (void)state;
    const struct {
        const char *name, *text;
        const char *columns[3];
        int32_t numbers[3];
        bool header;
        int64_t count;
        const char *first;
    } cases[] = {
        {"a.csv", "a,r,b\n", {NULL}, {0}, false, 1, "a r b"},
        {"a.csv", "head,relation,tail\na,r,b\n", {NULL}, {0}, false, 1, "a r b"},
        {"a.csv", "id,Object,\"Predicate\",subject,x\n1,b,r,a,\n", {NULL}, {0}, false, 1, "a r b"},
        {"a.csv", ":START_ID,:END_ID,:TYPE\r\na,b,r\r\n", {NULL}, {0}, false, 1, "a r b"},
        {"a.csv", "head,head,relation\nx,r,y\n", {NULL}, {0}, false, 2, "head head relation"},
        {"a.csv", "x,y,z\na,r,b\n", {NULL}, {0}, true, 1, "a r b"},
        {"a.csv", "x,y,z\na,r,b\n", {"z", "y", "x"}, {0}, false, 1, "b r a"},
        {"a.csv", "x,y,z\na,r,b\n", {"z", NULL, NULL}, {0, 2, 1}, false, 1, "b r a"},
        {"a.csv", "head,relation,tail\na,r,b\n", {NULL}, {3, 2, 1}, false, 2, "tail relation head"},
        {"a.csv", "head,relation,tail\na,r,b\n", {NULL}, {3, 2, 1}, true, 1, "b r a"},
        {"a.tsv", "head\trelation\ttail\n", {NULL}, {0}, false, 1, "head relation tail"},
        {"a.tsv", "x\ty\tz\na\tr\tb\n", {"z", "y", "x"}, {0}, false, 1, "b r a"},
        {"a.tsv", "\xef\xbb\xbfx\ty\tz\na\tr\tb", {"x", "y", "z"}, {0}, false, 1, "a r b"},
        {"a.csv", "head,relation,tail", {NULL}, {0}, false, 0, NULL},
        {"a.csv", "", {NULL}, {0}, false, 0, NULL},
        {"a.csv", "", {"a", "b", "c"}, {0}, false, 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vlp_file_options file =
            columns_of(VLP_FORMAT_AUTO, cases[i].columns[0], cases[i].columns[1], cases[i].columns[2]);
        memcpy(file.columns, cases[i].numbers, sizeof file.columns);
        file.header = cases[i].header;
        assert_int_equal(vlp_file_options_check(&file), VLP_OK);
        result read;
        if (read_text(&read, cases[i].name, cases[i].text, strlen(cases[i].text), &file, 1) != VLP_OK)
            fail_msg("case %zu: %s", i, vlp_error_message());
        if (read.triples.count != cases[i].count)
            fail_msg("case %zu: %lld triples", i, (long long)read.triples.count);
        if (cases[i].first) {
            char first[128];
            snprintf(first, sizeof first, "%s %s %s",
                     vlp_dictionary_name(read.entities, read.triples.items[0].head),
                     vlp_dictionary_name(read.relations, read.triples.items[0].relation),
                     vlp_dictionary_name(read.entities, read.triples.items[0].tail));
            assert_string_equal(first, cases[i].first);
        }
        result_free(&read);
    }
}

/* ---- What is wrong ------------------------------------------------------------------------------- */

static void errors_say_what_and_where(void **state) {
    (void)state;
#define FIELDS "fields where 3 are needed (head, relation, tail, separated by commas)"
    const struct {
        const char *name, *text, *message;
    } cases[] = {
        {"a.csv", "a,r,b\na,r\n", "a.csv:2: 2 " FIELDS},
        {"a.csv", "a,r,b\na,r,b,c\n",
         "a.csv:2: 4 " FIELDS "; an import takes any columns, by name or number"},
        {"a.csv", "a,r,\"b\nc\"\n", "a.csv:1: a control character in a name (the tail)"},
        {"a.csv", "a,r,\"\"\n", "a.csv:1: an empty name (the tail)"},
        {"a.csv", "a,r,b\na,\"r,b\nx\n", "a.csv:2: a field in quotes that has no closing quote"},
        {"a.csv", "a,r,b\na,\"r\"x,b\n",
         "a.csv:2: text behind the closing quote of a field; a quote in a field in quotes is doubled"},
        {"a.csv", "a,r,b\na,r\"x\",b\n",
         "a.csv:2: a quote in a field without quotes; put the field in quotes and double those in it"},
        {"a.csv", "a,r,b\n\"a\n\xff\",r,b\n", "a.csv:3: invalid UTF-8"},
        {"a.nq", "<x:a> <x:r> <x:b> <g> .\n",
         "a.nq:1: an IRI without a scheme; N-Triples has absolute IRIs only, such as http://..."},
        {"a.nq", "<x:a> <x:r> <x:b> <x:g> <x:h> .\n", "a.nq:1: no full stop after the graph name"},
        {"a.nq", "<x:a> <x:r> <x:b> \"g\" .\n",
         "a.nq:1: a graph name is an IRI in < > or a blank node _:label"},
        {"a.ttl", "<x:a> <x:r> <x:b> .\n<x:a> <x:r> ex:b .\n",
         "a.ttl:2: the prefix 'ex:' is not defined; an @prefix line has to define it"},
        {"a.ttl", "<x:a> <x:r> <b> .\n", "a.ttl:1: a relative IRI <b>, and no @base before it"},
        {"a.ttl", "@prefix ex: <e/> .\n",
         "a.ttl:1: a prefix with a relative IRI, and no @base before it"},
        {"a.ttl", "@base <e/> .\n", "a.ttl:1: a base that is not an absolute IRI, such as http://..."},
        {"a.ttl", "<x:a> <x:r> <x:b>\n<x:c> <x:r> <x:d> .\n", "a.ttl:2: missing ';' or '.'"},
        {"a.ttl", "<x:a> <x:r>\n\n\"\\uD800\" .\n",
         "a.ttl:3: an escape \\u or \\U that is no code point"},
        {"a.ttl", "<x:a> <x:r>\n\"\xff\" .\n", "a.ttl:2: invalid UTF-8"},
        {"a.ttl", "_:.a <x:r> <x:b> .\n",
         "a.ttl:1: the label of a blank node starts with a letter, a digit or _"},
        {"a.ttl", "_:\xcd\xaf <x:r> <x:b> .\n",
         "a.ttl:1: the label of a blank node starts with a letter, a digit or _"},
        {"a.ttl", "<x:a> <x:r> \"b\"@en- .\n",
         "a.ttl:1: a language tag that is not like @en or @zh-Hant"},
        {"a.ttl", "<x:a> <x:r> \"\"\"\n\nnever closed", "a.ttl:3: end of file in long string"},
        {"a.ttl", "@prefix ex: <x:> .\n<x:g> { <x:a> <x:r> <x:b> }\n",
         "a.ttl:2: a graph, which Turtle has not (this looks like TriG, not Turtle: choose that format, "
         "or name it *.trig)"},
        {"a.tsv", "@prefix ex: <x:> .\n",
         "a.tsv: this is Turtle, not TSV: choose that format, or name it *.ttl"},
        {"a.tsv", "<x:a>\t<x:r>\t<x:b> .\n",
         "a.tsv: this is N-Triples, not TSV: choose that format, or name it *.nt"},
        {"a.csv", "<x:a> <x:r> <x:b> <x:g> .\n",
         "a.csv: this is N-Quads, not CSV: choose that format, or name it *.nq"},
        {"a.nt", "<x:a> <x:r> <x:b> <x:g> .\n",
         "a.nt:1: a fourth term; a statement of N-Triples has three (this looks like N-Quads, not "
         "N-Triples: choose that format, or name it *.nq)"},
        {"a.nt", "a\tr\tb\n",
         "a.nt:1: a subject is an IRI in < > or a blank node _:label (this looks like TSV, not "
         "N-Triples: choose that format, or name it *.tsv)"},
        {"a.tsv", "a,r,b\n",
         "a.tsv:1: 1 field where 3 are needed (head, relation, tail, separated by tabs) (this looks "
         "like "
         "CSV, not TSV: choose that format, or name it *.csv)"},
        {"a.txt", "{\"a\": 1}",
         "a.txt:1: 1 field where 3 are needed (head, relation, tail, separated by tabs) (this is JSON; "
         "convert it to CSV, or JSON-LD to Turtle or N-Triples)"},
        {"a.ttl", "<?xml version=\"1.0\"?>\n",
         "a.ttl:1: invalid IRI character (escape %20) (this is XML; RDF/XML has to be converted to "
         "Turtle or N-Triples)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result read;
        assert_int_equal(read_text(&read, cases[i].name, cases[i].text, strlen(cases[i].text), NULL, 2),
                         VLP_ERROR_FORMAT);
        assert_string_equal(vlp_error_message(), cases[i].message);
        result_free(&read);
    }
}

static void columns_that_are_not_there(void **state) {
    (void)state;
    static const char table[] = "x,y,\"z \"\"z\"\"\",x\na,r,b,c\n";
    const struct {
        const char *columns[3], *message;
    } cases[] = {
        {{"y", "w", "x"}, "a.csv:1: there is no column 'w'; the columns are x, y, z \"z\", x"},
        {{"x", "y", "z \"z\""}, "a.csv:1: columns 1 and 4 are both named 'x'; use the number of one"},
        {{"y", "y", "z \"z\""}, "a.csv:1: column 2 is chosen for both the head and the relation"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vlp_file_options file =
            columns_of(VLP_FORMAT_AUTO, cases[i].columns[0], cases[i].columns[1], cases[i].columns[2]);
        result read;
        assert_int_equal(read_text(&read, "a.csv", table, sizeof table - 1, &file, 1), VLP_ERROR_FORMAT);
        assert_string_equal(vlp_error_message(), cases[i].message);
        result_free(&read);
    }
}

/* A compressed file cut anywhere is refused, and one with a changed byte is refused or read as it was;
 * the message says where. */
static void damaged_zstd(void **state) {
    (void)state;
    const char *folder = support_folder(), *path = support_path(folder, "x.tsv.zst");
    text content = {0};
    for (int i = 0; i < 300; i++) {
        char row[64];
        snprintf(row, sizeof row, "e%d\tr%d\te%d\n", i * 37 % 101, i % 3, i * 11 % 97);
        put(&content, row);
    }
    char bytes[8192];
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    size_t size = ZSTD_compress2(context, bytes, sizeof bytes, content.bytes, content.size);
    ZSTD_freeCCtx(context);
    assert_false(ZSTD_isError(size));
    for (size_t i = 4; i < size; i++)
        for (int change = 0; change < 2; change++) {
            char changed[8192];
            memcpy(changed, bytes, size);
            changed[i] = (char)(changed[i] ^ 0x11);
            support_write(folder, "x.tsv.zst", change ? changed : bytes, change ? size : i);
            result read;
            assert_int_equal(result_start(&read), VLP_OK);
            vlp_status status = vlp_read_file(&read.sink, path, &(vlp_read_options){.threads = 1});
            if (status == VLP_OK) {
                assert_true(change);
                assert_int_equal(read.triples.count, 300);
            } else {
                assert_int_equal(status, VLP_ERROR_FORMAT);
                const char *expected = change ? "x.tsv.zst: " : "the zstd data ends too early, at byte ";
                if (!strstr(vlp_error_message(), expected)) fail_msg("%s", vlp_error_message());
            }
            result_free(&read);
        }
    /* Two frames and a skippable one are one file. */
    char two[2 * sizeof bytes + 16];
    static const char skipped[12] = "\x53\x2a\x4d\x18\x04\0\0\0skip";
    memcpy(two, skipped, sizeof skipped);
    memcpy(two + sizeof skipped, bytes, size);
    memcpy(two + sizeof skipped + size, bytes, size);
    support_write(folder, "x.tsv.zst", two, sizeof skipped + 2 * size);
    result read;
    assert_int_equal(result_start(&read), VLP_OK);
    assert_int_equal(vlp_read_file(&read.sink, path, &(vlp_read_options){.threads = 1}), VLP_OK);
    assert_int_equal(read.triples.count, 600);
    result_free(&read);
    free(content.bytes);
    support_remove(folder);
}

/* ---- Memory -------------------------------------------------------------------------------------- */

static _Atomic int64_t held, peak;

/* Blocks carry their size in front. */
static void *counting_reallocate(void *user, void *memory, size_t size) {
    (void)user;
    size_t *block = memory ? (size_t *)memory - 2 : NULL, old = block ? *block : 0;
    block = realloc(block, size + 2 * sizeof *block);
    if (!block) return NULL;
    *block = size;
    held += (int64_t)size - (int64_t)old;
    if (held > peak) peak = held;
    return block + 2;
}

static void counting_release(void *user, void *memory) {
    (void)user;
    size_t *block = (size_t *)memory - 2;
    held -= (int64_t)*block;
    free(block);
}

/* Writes `count` times a text as zstd. */
static void write_bomb(const char *path, const char *start, const char *repeated, int count) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    FILE *file = fopen(path, "wb");
    char out[1 << 14];
    for (int i = -1; i <= count; i++) {
        const char *part = i < 0 ? start : repeated;
        ZSTD_inBuffer in = {part, i == count ? 0 : strlen(part), 0};
        size_t left;
        do {
            ZSTD_outBuffer to = {out, sizeof out, 0};
            left = ZSTD_compressStream2(context, &to, &in, i == count ? ZSTD_e_end : ZSTD_e_continue);
            assert_false(ZSTD_isError(left));
            assert_int_equal(fwrite(out, 1, to.pos, file), to.pos);
        } while (i == count ? left > 0 : in.pos < in.size);
    }
    fclose(file);
    ZSTD_freeCCtx(context);
}

/* A small file that decompresses to 200 MB is read, or refused, in little memory. */
static void bombs_take_little_memory(void **state) {
    (void)state;
    enum { MEGABYTE = 1 << 20 };
    static const vlp_allocator counting = {counting_reallocate, counting_release, NULL};
    char *block = malloc(MEGABYTE + 1);
    const struct {
        const char *name, *start;
        char fill, end;
        int64_t limit; /* MiB */
        const char *message;
    } cases[] = {
        {"x.nt.zst", "<x:a> <x:r> <x:b> .\n#", '#', '\n', 20, NULL},
        {"x.tsv.zst", "a\tr\tb\n", 'x', 'x', 150, "a line of more than 64 MiB"},
        {"x.csv.zst", "a,r,b\n\"", 'x', '\n', 150, "a line of more than 64 MiB; is a closing quote"},
        {"x.ttl.zst", "<x:a> <x:r> \"\"\"", 'x', '\n', 20, "of more than 64 MiB; is a quote missing?"},
        {"x.trig.zst", "<x:a> <x:r> <x:b> .\n#", 'x', 'x', 20, "comment of more than 64 MiB"},
    };
    const char *folder = support_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(block, cases[i].fill, MEGABYTE);
        block[MEGABYTE - 1] = cases[i].end;
        block[MEGABYTE] = '\0';
        const char *path = support_path(folder, cases[i].name);
        write_bomb(path, cases[i].start, block, 200);
        vlp_allocator_set(&counting);
        held = peak = 0;
        result read;
        vlp_status status = result_start(&read);
        if (status == VLP_OK)
            status = vlp_read_file(&read.sink, path, &(vlp_read_options){.threads = 2});
        result_free(&read);
        vlp_allocator_set(NULL);
        assert_int_equal(status, cases[i].message ? VLP_ERROR_FORMAT : VLP_OK);
        if (cases[i].message && !strstr(vlp_error_message(), cases[i].message))
            fail_msg("%s", vlp_error_message());
        if (peak > cases[i].limit << 20)
            fail_msg("%s takes %lld MiB", cases[i].name, (long long)peak >> 20);
        remove(path);
    }
    support_remove(folder);
    free(block);
}

/* labels.tsv is not held in memory as a whole. */
static void many_labels_take_little_memory(void **state) {
    (void)state;
    static const vlp_allocator counting = {counting_reallocate, counting_release, NULL};
    text content = {0};
    for (int i = 0; i < 200000; i++) {
        char row[128];
        snprintf(row, sizeof row, "unknown%d\ta label that is not kept, as nothing has this name\n", i);
        put(&content, row);
    }
    put(&content, "a\tA\nr\tR\n");
    vlp_allocator_set(&counting);
    held = peak = 0;
    result read;
    vlp_labels *labels[VLP_LABEL_KINDS] = {NULL};
    vlp_status status = read_text(&read, "x", "a\tr\tb\n", 6, NULL, 1);
    const vlp_dictionary *const names[VLP_LABEL_KINDS] = {read.entities, read.relations};
    vlp_source *source = NULL;
    if (status == VLP_OK) status = vlp_source_open_memory(&source, "l", content.bytes, content.size);
    peak = held;
    int64_t before = held;
    if (status == VLP_OK) status = vlp_labels_read(labels, source, names);
    bool kept = status == VLP_OK && strcmp(vlp_labels_label(labels[0], 0), "A") == 0 &&
                strcmp(vlp_labels_label(labels[1], 0), "R") == 0;
    int64_t grown = peak - before;
    vlp_labels_free(labels[0]);
    vlp_labels_free(labels[1]);
    vlp_source_free(source);
    result_free(&read);
    vlp_allocator_set(NULL);
    free(content.bytes);
    assert_true(kept);
    if (grown > 1 << 20) fail_msg("%lld KiB", (long long)grown >> 10);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const struct {
        const char *name, *text;
    } cases[] = {
        {"a.csv", "note,head,relation,tail\n\"x\ny\",\"a \"\"b\"\"\",r,c\n,d,r,e\n"},
        {"a.ttl", "@prefix ex: <x:> .\n@base <http://b/> .\nex:a ex:r [ ex:s 5, <c>, \"d\"^^ex:t ] .\n"},
        {"a.nq", "<x:a> <x:r> \"b\"@en <x:g> .\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        failing_allocator memory;
        int64_t call = 0;
        vlp_status status;
        do {
            failing_allocator_install(&memory, ++call);
            result read = {0};
            status = read_text(&read, cases[i].name, cases[i].text, strlen(cases[i].text), NULL, 1);
            result_free(&read);
            failing_allocator_remove(&memory);
            assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
        } while (memory.failed);
        assert_true(call > 8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_in_every_format),
        cmocka_unit_test(nodes_without_a_label),
        cmocka_unit_test(large_csv),
        cmocka_unit_test(headers),
        cmocka_unit_test(errors_say_what_and_where),
        cmocka_unit_test(columns_that_are_not_there),
        cmocka_unit_test(damaged_zstd),
        cmocka_unit_test(bombs_take_little_memory),
        cmocka_unit_test(many_labels_take_little_memory),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
