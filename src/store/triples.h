/* The triples of a data set by id, in one gzip file: a line "SPLIT<TAB>HEAD<TAB>RELATION<TAB>TAIL" each,
 * train before valid before test. The same triples give the same bytes. */
#ifndef VLP_STORE_TRIPLES_H
#define VLP_STORE_TRIPLES_H

#include "base/file.h"

/* Triples and their count, for each split. */
typedef struct vlp_stored_triples {
    vlp_triple *items[VLP_SPLITS];
    int64_t counts[VLP_SPLITS];
} vlp_stored_triples;

/* Written whole or not at all, synced. */
vlp_status vlp_triples_write(const char *path, const vlp_stored_triples *triples);

/* Ids have to be below `entities` and `relations`; a line that is wrong is VLP_ERROR_FORMAT with file,
 * line and cause. vlp_triples_parse reads from a source. The triples are the caller's to free. */
vlp_status vlp_triples_read(vlp_stored_triples *out, const char *path, int32_t entities,
                            int32_t relations);
vlp_status vlp_triples_parse(vlp_stored_triples *out, vlp_source *source, int32_t entities,
                             int32_t relations);
void vlp_stored_triples_free(vlp_stored_triples *triples);

#endif
