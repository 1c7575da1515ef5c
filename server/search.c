#include "search.h"

#include <stdlib.h>
#include <string.h>

#include "fold.h"
#include "search_table.h"
#include "text.h"

struct search_index {
    char *pool;       /* folded texts, each with its end */
    int32_t *by_rank; /* (count) entities, largest degree first */
    int32_t count;
    search_table wholes; /* names and labels */
    search_table words;  /* later words, to the end of their text */
};

/* ---- Making -------------------------------------------------------------------------------------- */

typedef struct items {
    search_item *all;
    size_t count, capacity;
} items;

typedef struct maker {
    char *pool;
    size_t used, capacity;
    items wholes, words;
} maker;

static bool add_item(items *to, size_t offset, int32_t rank) {
    if (to->count == to->capacity) {
        size_t capacity = to->capacity ? 2 * to->capacity : 1024;
        search_item *all = realloc(to->all, capacity * sizeof *all);
        if (!all) return false;
        to->all = all;
        to->capacity = capacity;
    }
    to->all[to->count++] = (search_item){0, (uint32_t)offset, rank};
    return true;
}

/* Offsets of the last words of a folded text, without its beginning; returns how many. */
static int words_of(uint16_t out[SEARCH_WORDS], const char *text) {
    int count = 0;
    bool before = true;
    const char *start = text;
    for (int length; *text; text += length) {
        bool separator = fold_separates(text_next(text, &length));
        if (before && !separator && text > start) out[count++ % SEARCH_WORDS] = (uint16_t)(text - start);
        before = separator;
    }
    return count < SEARCH_WORDS ? count : SEARCH_WORDS;
}

static bool add_text(maker *to, const char *text, int32_t rank, bool with_words) {
    char folded[FOLD_LIMIT];
    size_t length = fold_text(folded, text) + 1;
    if (to->used + length > UINT32_MAX) return false;
    if (!to->pool || to->used + length > to->capacity) {
        size_t capacity = 2 * to->capacity + 65536;
        char *pool = realloc(to->pool, capacity);
        if (!pool) return false;
        to->pool = pool;
        to->capacity = capacity;
    }
    size_t offset = to->used;
    memcpy(to->pool + offset, folded, length);
    to->used += length;
    bool done = add_item(&to->wholes, offset, rank);
    uint16_t words[SEARCH_WORDS];
    int count = with_words ? words_of(words, folded) : 0;
    for (int i = 0; done && i < count; i++) done = add_item(&to->words, offset + words[i], rank);
    return done;
}

static int by_degree(const void *left, const void *right, void *user) {
    const int32_t *a = left, *b = right, *degrees = user;
    if (degrees[*a] != degrees[*b]) return degrees[*a] > degrees[*b] ? -1 : 1;
    return (*a > *b) - (*a < *b);
}

search_index *search_index_make(const search_source *source) {
    maker to = {0};
    search_index *index = calloc(1, sizeof *index);
    bool done = index && (index->by_rank = malloc(((size_t)source->count + 1) * sizeof(int32_t)));
    if (!done) goto out;
    index->count = source->count;
    for (int32_t i = 0; i < source->count; i++) index->by_rank[i] = i;
    qsort_r(index->by_rank, (size_t)source->count, sizeof(int32_t), by_degree,
            (void *)(uintptr_t)source->degrees);
    for (int32_t rank = 0; done && rank < source->count; rank++) {
        int32_t entity = index->by_rank[rank];
        const char *label = source->label(source->user, entity);
        done = add_text(&to, source->name(source->user, entity), rank, !label) &&
               (!label || add_text(&to, label, rank, true));
    }
    if (!done || to.wholes.count > UINT32_MAX || to.words.count > UINT32_MAX) goto out;
    index->pool = to.pool;
    to.pool = NULL;
    done = search_table_make(&index->wholes, index->pool, to.wholes.all, (uint32_t)to.wholes.count) &&
           search_table_make(&index->words, index->pool, to.words.all, (uint32_t)to.words.count);
out:
    free(to.pool);
    free(to.wholes.all);
    free(to.words.all);
    if (!done) {
        search_index_free(index);
        index = NULL;
    }
    return index;
}

void search_index_free(search_index *index) {
    if (!index) return;
    search_table_free(&index->wholes);
    search_table_free(&index->words);
    free(index->by_rank);
    free(index->pool);
    free(index);
}

/* ---- Finding ------------------------------------------------------------------------------------- */

/* Moves what a class gave behind what was found before; returns whether more is wanted. */
static bool end_class(search_top *top) {
    memcpy(top->found + top->found_count, top->ranks, (size_t)top->count * sizeof *top->ranks);
    top->found_count += top->count;
    top->wanted -= top->count;
    top->count = 0;
    return top->wanted > 0;
}

static void find(search_top *top, const search_index *index, const char *text) {
    int characters = 0, length;
    for (const char *at = text; *at; at += length, characters++) (void)text_next(at, &length);
    int edits = characters > SEARCH_FUZZY_LIMIT || characters < 3 ? 0 : characters < 8 ? 1 : 2;
    search_table_equal(top, &index->wholes, text);
    if (!end_class(top)) return;
    search_table_prefix(top, &index->wholes, text);
    if (!end_class(top)) return;
    search_table_prefix(top, &index->words, text);
    for (int allowed = 1; end_class(top) && allowed <= edits; allowed++) {
        search_table_fuzzy(top, &index->wholes, text, allowed);
        search_table_fuzzy(top, &index->words, text, allowed);
    }
}

int32_t search_index_find(int32_t *out, bool *more, const search_index *index, const char *text,
                          int32_t limit) {
    char folded[FOLD_LIMIT];
    if (limit > SEARCH_LIMIT) limit = SEARCH_LIMIT;
    search_top top = {.wanted = limit + 1};
    if (fold_text(folded, text) > 0) {
        find(&top, index, folded);
    } else {
        top.found_count = index->count < limit + 1 ? index->count : limit + 1;
        for (int32_t i = 0; i < top.found_count; i++) top.found[i] = i;
    }
    *more = top.found_count > limit;
    int32_t count = *more ? limit : top.found_count;
    for (int32_t i = 0; i < count; i++) out[i] = index->by_rank[top.found[i]];
    return count;
}

int32_t search_index_ranked(const search_index *index, int32_t rank) {
    return index->by_rank[rank];
}
