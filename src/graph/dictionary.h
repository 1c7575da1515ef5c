/* Names to ids and back. Ids count from 0 in the order in which names first came. Names hold no zero
 * byte: readers refuse it. */
#ifndef VLP_GRAPH_DICTIONARY_H
#define VLP_GRAPH_DICTIONARY_H

#include "base/base.h"

typedef struct vlp_dictionary vlp_dictionary;

/* A piece of text that is not terminated, with its hash, which vlp_name_hash gives. */
typedef struct vlp_span {
    const char *text;
    uint32_t length;
    uint32_t hash;
} vlp_span;

uint32_t vlp_name_hash(const char *text, size_t length);
vlp_span vlp_span_make(const char *text, size_t length);

vlp_status vlp_dictionary_new(vlp_dictionary **out);
void vlp_dictionary_free(vlp_dictionary *dictionary);

/* The id of a name, which is added when it is new. Fails when out of memory or over 2^31 - 1 names. */
vlp_status vlp_dictionary_intern(vlp_dictionary *dictionary, int32_t *id, const vlp_span *span);
vlp_status vlp_dictionary_add(vlp_dictionary *dictionary, int32_t *id, const char *name); /* the same */

/* The ids of `count` names, -1 where one is not known: for many at once, as it asks for memory ahead.
 * Several threads may do so at a time. ids[i * id_stride] belongs to spans[i * span_stride]. */
void vlp_dictionary_find_many(const vlp_dictionary *dictionary, int32_t *ids, int64_t id_stride,
                              const vlp_span *spans, int64_t span_stride, int64_t count);

int32_t vlp_dictionary_find(const vlp_dictionary *dictionary, const char *text,
                            size_t length);                                    /* or -1 */
const char *vlp_dictionary_name(const vlp_dictionary *dictionary, int32_t id); /* terminated */
size_t vlp_dictionary_name_length(const vlp_dictionary *dictionary, int32_t id);
int32_t vlp_dictionary_size(const vlp_dictionary *dictionary);
int64_t vlp_dictionary_bytes(const vlp_dictionary *dictionary);

/* Returns memory that growing left over, when no more names will come. */
void vlp_dictionary_trim(vlp_dictionary *dictionary);

#endif
