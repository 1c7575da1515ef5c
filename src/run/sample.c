#include "run/sample.h"

#include "base/random.h"

/* Random numbers of entities; those of triples begin at 0. */
#define ENTITIES ((uint64_t)1 << 40)

/* Whether item number `index` is taken, where `wanted` of the `left` items from it on are: asked of one
 * item after the other, this takes every set of that size equally often. */
static bool takes(uint64_t seed, uint64_t index, int64_t wanted, int64_t left) {
    vlp_random4 random = vlp_random(seed, VLP_STREAM_SAMPLE, index, 0);
    return (int64_t)vlp_random_below(random.v[0], random.v[1], (uint32_t)left) < wanted;
}

vlp_status vlp_sample_triples(vlp_dataset *out, vlp_triple **taken, const vlp_dataset *dataset,
                              vlp_split split, int64_t count, uint64_t seed) {
    const vlp_triple_list *all = &dataset->splits[split];
    int64_t used = 0;
    vlp_triple *items = vlp_alloc((size_t)count, sizeof *items);
    if (!items) return vlp_fail_memory("an evaluation");
    for (int64_t i = 0; i < all->count && used < count; i++)
        if (takes(seed, (uint64_t)i, count - used, all->count - i)) items[used++] = all->items[i];
    *taken = items;
    *out = *dataset;
    out->splits[split].items = items;
    out->splits[split].count = count;
    return VLP_OK;
}

void vlp_sample_marks(uint8_t *marks, int32_t entities, int32_t count, uint64_t seed) {
    int64_t left = 0, wanted = count;
    for (int32_t e = 0; e < entities; e++) left += marks[e];
    for (int32_t e = 0; e < entities; e++) {
        if (!marks[e]) continue;
        bool take = takes(seed, ENTITIES + (uint64_t)e, wanted, left--);
        wanted -= take;
        marks[e] = take;
    }
}
