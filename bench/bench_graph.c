/* Timings of the graph half: reading, memory, distances, references. Every part runs in a process of its
 * own, so that its peak memory is its own. Prints one table; nothing here can fail on a busy day.
 *
 *   bench_graph SCRATCH [DATA]   SCRATCH: a folder for generated files; DATA: the benchmark data sets */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <serd/serd.h>

#include "base/random.h"
#include "bench.h"
#include "graph/dataset.h"
#include "graph/reference.h"

static double peak_bytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

static void row(const char *what, const char *goal, const char *format, ...) VLP_PRINTF(3, 4);
static void row(const char *what, const char *goal, const char *format, ...) {
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%-58s %-26s %s\n", what, goal, text);
    fflush(stdout);
}

/* Runs a part in a process of its own. */
static void alone(void (*part)(const char *), const char *argument) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        part(argument);
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
}

/* ---- Generated files ---- */

enum { TSV_TRIPLES = 20000000, NT_TRIPLES = 2000000 };

/* A graph with many entities and few hubs: half of the ends are uniform over four million, half lie near
 * zero on a logarithmic scale. */
static uint32_t draw_entity(uint32_t bits, uint32_t kind) {
    if (kind & 1) return bits % 4000000;
    return (1u << (bits % 22)) - 1 + (bits >> 8) % (1u << (bits % 22));
}

static void generate(const char *path, int64_t triples, const char *format) {
    if (access(path, R_OK) == 0) return;
    char partial[512];
    snprintf(partial, sizeof partial, "%s.partial", path);
    FILE *file = fopen(partial, "w");
    if (!file) {
        perror(partial);
        exit(1);
    }
    setvbuf(file, NULL, _IOFBF, 1 << 20);
    for (int64_t i = 0; i < triples; i++) {
        vlp_random4 a = vlp_random(20, VLP_STREAM_TEST, (uint64_t)i, 0);
        fprintf(file, format, draw_entity(a.v[0], a.v[3]), a.v[1] % 1000,
                draw_entity(a.v[2], a.v[3] >> 1));
    }
    if (fclose(file) != 0 || rename(partial, path) != 0) {
        perror(path);
        exit(1);
    }
}

/* ---- Parts ---- */

static double file_bytes(const char *path) {
    FILE *file = fopen(path, "r");
    fseek(file, 0, SEEK_END);
    double size = (double)ftell(file);
    fclose(file);
    return size;
}

/* Reading alone: text to ids. */
static void read_tsv(const char *path) {
    vlp_dictionary *entities = NULL, *relations = NULL;
    vlp_triple_list triples = {0};
    need(vlp_dictionary_new(&entities));
    need(vlp_dictionary_new(&relations));
    vlp_read_sink sink = {.entities = entities, .relations = relations, .triples = &triples};
    double start = seconds();
    need(vlp_read_file(&sink, path, &(vlp_read_options){0}));
    double time = seconds() - start;
    row("TSV, 20 M triples, 4 M names: text to ids", ">= 5 M triples/s",
        "%.1f M triples/s (%.2f s, %.0f MB/s)", (double)triples.count / time / 1e6, time,
        file_bytes(path) / time / 1e6);
}

/* Everything that opening a data set does, and its memory. */
static void open_large(const char *folder) {
    double before = peak_bytes();
    vlp_dataset *dataset = NULL;
    double start = seconds();
    need(vlp_dataset_open(&dataset, folder, NULL));
    double time = seconds() - start, peak = peak_bytes() - before;
    double triples = (double)dataset->splits[VLP_TRAIN].count;
    double names =
        (double)(vlp_dictionary_bytes(dataset->entities) + vlp_dictionary_bytes(dataset->relations));
    double held = (double)vlp_graph_bytes(dataset->graph) + 12 * triples;
    row("TSV, 20 M triples: opened, with graph both ways", "", "%.2f s (%.1f M triples/s)", time,
        triples / time / 1e6);
    row("  memory of ids and graph", "<= 40 bytes a triple", "%.1f bytes a triple, names %.0f MB",
        held / triples, names / 1e6);
    row("  peak of the process less the names", "", "%.1f bytes a triple", (peak - names) / triples);
}

static SerdStatus ignore_statement(void *handle, SerdStatementFlags flags, const SerdNode *graph,
                                   const SerdNode *subject, const SerdNode *predicate,
                                   const SerdNode *object, const SerdNode *datatype,
                                   const SerdNode *lang) {
    (void)flags, (void)graph, (void)subject, (void)predicate, (void)object, (void)datatype, (void)lang;
    ++*(int64_t *)handle;
    return SERD_SUCCESS;
}

static void read_ntriples(const char *path) {
    int64_t count = 0;
    double start = seconds();
    SerdReader *reader =
        serd_reader_new(SERD_NTRIPLES, &count, NULL, NULL, NULL, ignore_statement, NULL);
    FILE *file = fopen(path, "r");
    serd_reader_read_file_handle(reader, file, (const uint8_t *)"bench");
    fclose(file);
    serd_reader_free(reader);
    double alone_time = seconds() - start;
    for (int threads = 1; threads <= 2; threads++) {
        vlp_dictionary *entities = NULL, *relations = NULL;
        vlp_triple_list triples = {0};
        need(vlp_dictionary_new(&entities));
        need(vlp_dictionary_new(&relations));
        vlp_read_sink sink = {.entities = entities, .relations = relations, .triples = &triples};
        start = seconds();
        need(vlp_read_file(&sink, path, &(vlp_read_options){.threads = threads}));
        double time = seconds() - start;
        char what[80];
        snprintf(what, sizeof what, "N-Triples, 2 M triples: text to ids, %d thread%s", threads,
                 threads > 1 ? "s" : "");
        row(what, threads > 1 ? ">= serd alone" : "", "%.2f M triples/s; serd alone %.2f (ratio %.2f)",
            (double)triples.count / time / 1e6, (double)count / alone_time / 1e6, alone_time / time);
    }
}

static void open_small(const char *folder) {
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        vlp_dataset *dataset = NULL;
        double start = seconds();
        need(vlp_dataset_open(&dataset, folder, NULL));
        double time = seconds() - start;
        if (time < best) best = time;
        vlp_dataset_free(dataset);
    }
    row("FB15k-237: opened, with labels and graph", "< 0.3 s", "%.3f s", best);
}

static void distances(const char *folder) {
    vlp_dataset *dataset = NULL;
    vlp_skeleton *skeleton = NULL;
    need(vlp_dataset_open(&dataset, folder, NULL));
    double start = seconds();
    need(vlp_skeleton_new(&skeleton, dataset->graph, 0));
    double build = seconds() - start, best = 1e9;
    int32_t *counts = malloc((size_t)skeleton->nodes * 9 * sizeof *counts);
    for (int round = 0; round < 3; round++) {
        start = seconds();
        need(vlp_skeleton_counts(counts, skeleton, 8, 0, NULL));
        double time = seconds() - start;
        if (time < best) best = time;
    }
    row("WN18RR: distances <= 8 of all pairs, as counts", "< 0.4 s", "%.3f s (and %.3f s to prepare)",
        best, build);
    vlp_shells *shells = NULL;
    start = seconds();
    need(vlp_shells_new(&shells, skeleton, 8, INT64_C(4) << 30, 0, NULL));
    row("WN18RR: the same as a matrix, with near lists", "", "%.2f s, %.0f MB", seconds() - start,
        (double)vlp_shells_bytes(shells) / 1e6);
}

static void references(const char *folder) {
    bool small = strstr(folder, "WN18RR") != NULL;
    vlp_dataset *dataset = NULL;
    need(vlp_dataset_open(&dataset, folder, NULL));
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        vlp_references *found = NULL;
        double start = seconds();
        need(vlp_references_find(&found, dataset, NULL, 0, NULL));
        double time = seconds() - start;
        if (time < best) best = time;
        vlp_references_free(found);
    }
    char what[96];
    snprintf(what, sizeof what, "%s: leave-one-out references, N 8, all %lld queries",
             small ? "WN18RR" : "FB15k-237", (long long)(2 * dataset->graph->edges));
    row(what, small ? "< 1 s" : "< 15 s", "%.2f s (%.1f us a query)", best,
        1e6 * best / (double)(2 * dataset->graph->edges));
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    char tsv[512], nt[512], folder[512], data[512];
    snprintf(folder, sizeof folder, "%s/large", argv[1]);
    snprintf(tsv, sizeof tsv, "%s/large/train.tsv", argv[1]);
    snprintf(nt, sizeof nt, "%s/bench.nt", argv[1]);
    fprintf(stderr, "bench: generating files\n");
    generate(tsv, TSV_TRIPLES, "Q%u\tP%u\tQ%u\n");
    generate(nt, NT_TRIPLES,
             "<http://example.org/entity/Q%u> <http://example.org/prop/P%u> "
             "<http://example.org/entity/Q%u> .\n");
    printf("%-58s %-26s %s\n", "work", "goal", "measured");
    alone(read_tsv, tsv);
    alone(open_large, folder);
    alone(read_ntriples, nt);
    if (argc < 3) return 0;
    snprintf(data, sizeof data, "%s/FB15k-237", argv[2]);
    alone(open_small, data);
    alone(references, data);
    snprintf(data, sizeof data, "%s/WN18RR", argv[2]);
    alone(distances, data);
    alone(references, data);
    return 0;
}
