/* Finding entities by what people type of their name or label.
 *
 * Texts are compared folded (fold.h). Results come in classes: the text is the name or the label; begins
 * one of them; begins a later word of the label (of the name, where there is no label); is within one
 * edit, then two edits, of such a beginning. Within a class the largest degree is first, then the
 * smallest id. An edit is a character that is missing, added or another one, or two neighbours
 * exchanged; one is allowed from 3 characters on, two from 8 on, none above SEARCH_FUZZY_LIMIT. */
#ifndef VLP_SERVER_SEARCH_H
#define VLP_SERVER_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SEARCH_LIMIT = 100,      /* results */
    SEARCH_FUZZY_LIMIT = 60, /* characters of a text */
    SEARCH_WORDS = 8         /* words of a text that are indexed: the last ones */
};

/* What is searched: texts and degrees of entities 0 .. count - 1. Borrowed while the index is made. */
typedef struct search_source {
    int32_t count;
    const char *(*name)(const void *user, int32_t entity);
    const char *(*label)(const void *user, int32_t entity); /* NULL: it has none */
    const void *user;
    const int32_t *degrees; /* (count) */
} search_source;

typedef struct search_index search_index;

/* NULL: memory is missing. */
search_index *search_index_make(const search_source *source);
void search_index_free(search_index *index);

/* Writes the best `limit` entities (at most SEARCH_LIMIT) to `out` and returns their number; *more:
 * there are others. An empty text finds all entities. Thread-safe. */
int32_t search_index_find(int32_t *out, bool *more, const search_index *index, const char *text,
                          int32_t limit);
/* The entity with the rank-th largest degree, from 0. */
int32_t search_index_ranked(const search_index *index, int32_t rank);

#endif
