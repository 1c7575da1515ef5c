/* Searching entities while a name is typed: a million generated names and labels, queries of every
 * class. Prints the time to make the index and the percentiles of a search. */
#include <string.h>

#include "bench.h"
#include "server/search.h"

typedef struct names {
    char (*name)[16], (*label)[64];
    int32_t *degrees;
    int32_t count;
    uint64_t state;
    bool letters; /* uniformly random ones */
} names;

static uint64_t draw(names *of, uint64_t bound) {
    of->state = of->state * 6364136223846793005u + 1442695040888963407u;
    return (of->state >> 33) % bound;
}

static const char *name_of(const void *user, int32_t entity) {
    return ((const names *)user)->name[entity];
}

static const char *label_of(const void *user, int32_t entity) {
    return ((const names *)user)->label[entity];
}

/* Words of syllables: some are frequent, as in a language. */
static size_t add_word(char *to, names *of) {
    static const char *const syllables[] = {"ka", "ri",  "to",  "men",   "sal",  "ver",  "an",  "is",
                                            "lo", "du",  "pra", "ne",    "gor",  "mi",   "tal", "ber",
                                            "os", "en",  "chi", "ra",    "vo",   "ling", "sta", "pe",
                                            "ul", "gra", "ton", "ville", "berg", "sé",   "mü",  "ño"};
    size_t used = 0;
    if (of->letters) {
        for (size_t length = 5 + draw(of, 6); used < length; used++)
            to[used] = (char)('a' + draw(of, 26));
        return used;
    }
    uint64_t skew = draw(of, 32) * draw(of, 32) / 32;
    int count = 2 + (int)draw(of, 3);
    for (int i = 0; i < count; i++)
        used += (size_t)sprintf(to + used, "%s", syllables[i == 0 ? skew : draw(of, 32)]);
    return used;
}

static void make_names(names *of, int32_t count) {
    of->name = malloc((size_t)count * sizeof *of->name);
    of->label = malloc((size_t)count * sizeof *of->label);
    of->degrees = malloc((size_t)count * sizeof *of->degrees);
    of->count = count;
    if (!of->name || !of->label || !of->degrees) abort();
    for (int32_t e = 0; e < count; e++) {
        snprintf(of->name[e], sizeof of->name[e], "Q%d", e);
        size_t used = add_word(of->label[e], of);
        for (uint64_t words = draw(of, 3); words > 0; words--) {
            of->label[e][used++] = ' ';
            used += add_word(of->label[e] + used, of);
        }
        of->degrees[e] = (int32_t)(1000 / (1 + draw(of, 1000)));
    }
}

/* Seconds of this thread on a core: other work on the machine does not count. */
static double core_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* What is typed: the first `length` bytes of a label, or, with `edits`, of one with letters changed. */
static void type(char *to, names *of, int length, int edits) {
    snprintf(to, 64, "%.*s", length, of->label[draw(of, (uint64_t)of->count)]);
    for (size_t size = strlen(to); edits > 0 && size > 0; edits--) {
        char *at = &to[draw(of, size)];
        if ((unsigned char)*at < 0x80) *at = (char)('a' + draw(of, 26));
    }
}

static void measure(const search_index *index, names *of, int length, int edits) {
    enum { QUERIES = 500 };
    static double times[QUERIES];
    int64_t found = 0;
    for (int i = 0; i < QUERIES; i++) {
        char typed[64];
        int32_t results[20];
        bool more;
        type(typed, of, length, edits);
        double start = core_seconds();
        found += search_index_find(results, &more, index, typed, 20);
        times[i] = core_seconds() - start;
    }
    qsort(times, QUERIES, sizeof *times, compare);
    printf("  %2d bytes, %d changed: p50 %7.3f ms  p99 %7.3f ms  max %7.3f ms  (%.1f found)\n", length,
           edits, 1e3 * times[QUERIES / 2], 1e3 * times[QUERIES * 99 / 100], 1e3 * times[QUERIES - 1],
           (double)found / QUERIES);
}

static void run(int32_t count, bool letters) {
    names of = {.state = 1, .letters = letters};
    make_names(&of, count);
    search_source source = {count, name_of, label_of, &of, of.degrees};
    double start = seconds();
    search_index *index = search_index_make(&source);
    if (!index) exit(1);
    printf("search: %d names and labels of %s, index in %.2f s\n", count,
           letters ? "letters" : "syllables", seconds() - start);
    static const int lengths[] = {1, 2, 3, 5, 8, 10, 14, 30};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int edits = 0; edits <= (lengths[i] < 3 ? 0 : 2); edits++)
            measure(index, &of, lengths[i], edits);
    search_index_free(index);
    free(of.name);
    free(of.label);
    free(of.degrees);
}

int main(int argc, char **argv) {
    int32_t count = argc > 1 ? atoi(argv[1]) : 1000000;
    run(count, false);
    run(count, true);
    return 0;
}
