/* A pull-based step: each row gathers the new bits of its neighbours. Every row is written once, in
 * order; the skeleton's numbering keeps neighbours close in memory; no list of active rows is needed. */
#include "graph/block_search.h"

#include <string.h>

#include "base/simd.h"

vlp_block_search *vlp_block_searches_new(const vlp_skeleton *skeleton, int count, int extra) {
    vlp_block_search *searches = vlp_alloc_zero((size_t)count + 1, sizeof *searches);
    if (!searches) return NULL;
    size_t nodes = (size_t)skeleton->nodes;
    for (int i = 0; i < count; i++) { /* the entry after the last has NULL pointers and ends the list */
        char *memory = vlp_alloc((3 + (size_t)extra) * nodes + 1, sizeof(vlp_source_bits));
        if (!memory) {
            vlp_block_searches_free(searches);
            return NULL;
        }
        searches[i].memory = memory;
        searches[i].seen = (vlp_source_bits *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
        searches[i].fresh = searches[i].seen + nodes;
        searches[i].next = searches[i].fresh + nodes;
        searches[i].extra = searches[i].next + nodes;
    }
    return searches;
}

void vlp_block_searches_free(vlp_block_search *searches) {
    if (!searches) return;
    for (vlp_block_search *search = searches; search->memory; search++) vlp_free(search->memory);
    vlp_free(searches);
}

void vlp_block_search_start(vlp_block_search *search, const vlp_skeleton *skeleton,
                            const int32_t *sources, int32_t count) {
    size_t bytes = (size_t)skeleton->nodes * sizeof *search->seen;
    memset(search->seen, 0, bytes);
    for (int32_t i = 0; i < count; i++) search->seen[sources[i]].lane[i >> 6] |= UINT64_C(1) << (i & 63);
    memcpy(search->fresh, search->seen, bytes);
}

/* All lanes as one vector; the compiler splits it to the width of the instruction set. */
typedef uint64_t lanes __attribute__((vector_size(8 * VLP_BLOCK_LANES), may_alias));

/* next = the new bits of the neighbours, which are also added to seen. Returns whether there were any.
 */
VLP_CLONES static bool pull(vlp_source_bits *next, vlp_source_bits *seen, const vlp_source_bits *fresh,
                            const int64_t *offset, const int32_t *neighbor, int32_t nodes) {
    lanes *to = (lanes *)next, *known = (lanes *)seen;
    const lanes *from = (const lanes *)fresh;
    lanes any = {0};
    for (int32_t row = 0; row < nodes; row++) {
        lanes bits = {0};
        for (int64_t slot = offset[row]; slot < offset[row + 1]; slot++) bits |= from[neighbor[slot]];
        bits &= ~known[row];
        known[row] |= bits;
        to[row] = bits;
        any |= bits;
    }
    uint64_t found = 0;
    for (int lane = 0; lane < VLP_BLOCK_LANES; lane++) found |= any[lane];
    return found != 0;
}

bool vlp_block_search_step(vlp_block_search *search, const vlp_skeleton *skeleton) {
    bool any = pull(search->next, search->seen, search->fresh, skeleton->offset, skeleton->neighbor,
                    skeleton->nodes);
    vlp_source_bits *swap = search->fresh;
    search->fresh = search->next;
    search->next = swap;
    return any;
}
