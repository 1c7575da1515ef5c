/* Maps names to ids and back. Ids count from 0 in the order of first occurrence. Names contain no zero
 * byte; readers refuse it. */
#ifndef VLP_GRAPH_DICTIONARY_H
#define VLP_GRAPH_DICTIONARY_H

#include "base/base.h"

typedef struct vlp_dictionary vlp_dictionary;

/* An unterminated piece of text with its hash (vlp_name_hash). */
typedef struct vlp_span {
    const char *text;
    uint32_t length;
    uint32_t hash;
} vlp_span;

uint32_t vlp_name_hash(const char *text, size_t length);
vlp_span vlp_span_make(const char *text, size_t length);

vlp_status vlp_dictionary_new(vlp_dictionary **out);
void vlp_dictionary_free(vlp_dictionary *dictionary);

/* The id of a name, which is added if it is new. Fails when out of memory or with more than 2^31 - 1
 * names. */
vlp_status vlp_dictionary_intern(vlp_dictionary *dictionary, int32_t *id, const vlp_span *span);
vlp_status vlp_dictionary_add(vlp_dictionary *dictionary, int32_t *id, const char *name); /* the same */

/* The ids of `count` names, -1 for unknown ones, with prefetching. Several threads may call it at the
 * same time. ids[i * id_stride] is the id of spans[i * span_stride]. */
void vlp_dictionary_find_many(const vlp_dictionary *dictionary, int32_t *ids, int64_t id_stride,
                              const vlp_span *spans, int64_t span_stride, int64_t count);

int32_t vlp_dictionary_find(const vlp_dictionary *dictionary, const char *text,
                            size_t length);                                    /* or -1 */
const char *vlp_dictionary_name(const vlp_dictionary *dictionary, int32_t id); /* terminated */
size_t vlp_dictionary_name_length(const vlp_dictionary *dictionary, int32_t id);
int32_t vlp_dictionary_size(const vlp_dictionary *dictionary);
int64_t vlp_dictionary_bytes(const vlp_dictionary *dictionary);

/* Releases unused capacity, after the last name was added. */
void vlp_dictionary_trim(vlp_dictionary *dictionary);

#endif
