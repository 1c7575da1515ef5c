#include "run/path_search.h"

#include <math.h>
#include <string.h>

/* A beam search from the answer back to the head entity, one triple at a time. */

enum { BEAM = 256 };

/* A chain that ends in the answer. */
typedef struct partial {
    double weight; /* the sum of mass */
    int32_t entity;
    int32_t length;
    int32_t slots[VLP_PATH_MAX_LAYERS];    /* from the answer on */
    int32_t entities[VLP_PATH_MAX_LAYERS]; /* the entity whose row a slot is in */
    double mass[VLP_PATH_MAX_LAYERS + 1];  /* [l]: of the messages into `entity`, those of layers below l
                                              brought it */
} partial;

/* The best of what was offered: a heap whose root is the worst. */
typedef struct best_partials {
    partial *items;
    int32_t count, capacity;
} best_partials;

/* Heavier chains come first, then shorter ones, then those of smaller slots. */
static bool precedes(const partial *a, const partial *b) {
    if (a->weight != b->weight) return a->weight > b->weight;
    if (a->length != b->length) return a->length < b->length;
    for (int32_t i = 0; i < a->length; i++)
        if (a->slots[i] != b->slots[i]) return a->slots[i] < b->slots[i];
    return false;
}

static int compare(const void *left, const void *right) {
    return precedes(left, right) ? -1 : precedes(right, left) ? 1 : 0;
}

static void sift_down(best_partials *best, int32_t at) {
    for (;;) {
        int32_t child = 2 * at + 1, worst = at;
        for (int32_t i = child; i < child + 2 && i < best->count; i++)
            if (precedes(&best->items[worst], &best->items[i])) worst = i;
        if (worst == at) return;
        partial swap = best->items[at];
        best->items[at] = best->items[worst];
        best->items[worst] = swap;
        at = worst;
    }
}

static bool passes(const best_partials *best, double weight) {
    return best->count < best->capacity || weight >= best->items[0].weight;
}

static void offer(best_partials *best, const partial *offered) {
    if (best->count < best->capacity) {
        int32_t at = best->count++;
        best->items[at] = *offered;
        while (at > 0 && precedes(&best->items[(at - 1) / 2], &best->items[at])) {
            partial swap = best->items[at];
            best->items[at] = best->items[(at - 1) / 2];
            best->items[(at - 1) / 2] = swap;
            at = (at - 1) / 2;
        }
        return;
    }
    if (!precedes(offered, &best->items[0])) return;
    best->items[0] = *offered;
    sift_down(best, 0);
}

/* A search with what it is computed from. */
typedef struct finder {
    const vlp_path_search *search;
    const vlp_graph *graph;
    int32_t layers;
    int32_t *hops; /* (entities) from the head entity, VLP_PATH_MAX_LAYERS + 1 where it is too far */
} finder;

/* Breadth-first from the head entity. Where every entity has a state, messages also come from entities
 * that nothing of the head entity has reached yet: no chain passes through these. queue: (entities). */
static void measure_hops(finder *find, int32_t *queue) {
    const vlp_graph *graph = find->graph;
    int64_t begin = 0, end = 1;
    for (int32_t v = 0; v < graph->entities; v++) find->hops[v] = VLP_PATH_MAX_LAYERS + 1;
    queue[0] = find->search->head;
    find->hops[queue[0]] = 0;
    for (; begin < end; begin++) {
        int32_t v = queue[begin], farther = find->hops[v] + 1;
        if (farther >= find->layers) return;
        for (int64_t slot = graph->offset[v]; slot < graph->offset[v + 1]; slot++) {
            int32_t u = graph->neighbor[slot];
            if (find->hops[u] <= farther) continue;
            find->hops[u] = farther;
            queue[end++] = u;
        }
    }
}

static double gradient(const finder *find, int32_t layer, int64_t slot) {
    float value = find->search->messages[layer * 2 * find->graph->edges + slot];
    return find->hops[find->graph->neighbor[slot]] <= layer ? fabs((double)value) : 0;
}

/* per_mass[l]: the mass of layers above l over what reached the entity before them; a message of layer l
 * carries its gradient times that. Returns false where nothing reached it. */
static bool spread(double *per_mass, const finder *find, const partial *from) {
    const vlp_graph *graph = find->graph;
    double before[VLP_PATH_MAX_LAYERS + 1]; /* gradients of layers below l */
    before[0] = 0;
    for (int32_t l = 0; l < find->layers; l++) {
        double sum = 0;
        for (int64_t slot = graph->offset[from->entity]; slot < graph->offset[from->entity + 1]; slot++)
            sum += gradient(find, l, slot);
        before[l + 1] = before[l] + sum;
    }
    double above = 0;
    for (int32_t l = find->layers - 1; l >= 0; l--) {
        if (before[l + 1] > 0) above += from->mass[l + 1] / before[l + 1];
        per_mass[l] = above;
    }
    return above > 0;
}

static bool visits(const partial *from, int32_t entity) {
    for (int32_t i = 0; i < from->length; i++)
        if (from->entities[i] == entity) return true;
    return entity == from->entity;
}

/* Chains that are longer by one triple go to `next`, or to `done` where they begin at the head entity.
 */
static void extend(best_partials *next, best_partials *done, const finder *find, const partial *from) {
    const vlp_graph *graph = find->graph;
    double per_mass[VLP_PATH_MAX_LAYERS];
    if (!spread(per_mass, find, from)) return;
    for (int64_t slot = graph->offset[from->entity]; slot < graph->offset[from->entity + 1]; slot++) {
        int32_t source = graph->neighbor[slot];
        best_partials *to = source == find->search->head ? done : next;
        double weight = 0;
        for (int32_t l = 0; l < find->layers; l++) weight += gradient(find, l, slot) * per_mass[l];
        if (!(weight > 0) || !passes(to, weight)) continue;
        if (to == next && (from->length + 1 >= find->layers || visits(from, source))) continue;
        partial longer = *from;
        longer.weight = weight;
        longer.entity = source;
        longer.slots[longer.length] = (int32_t)slot;
        longer.entities[longer.length++] = from->entity;
        for (int32_t l = 0; l <= find->layers; l++)
            longer.mass[l] = l < find->layers ? gradient(find, l, slot) * per_mass[l] : 0;
        offer(to, &longer);
    }
}

vlp_status vlp_paths_find(vlp_found_path *out, int32_t *count, const vlp_path_search *search,
                          int32_t wanted) {
    vlp_status status = VLP_OK;
    best_partials now = {.capacity = BEAM}, next = {.capacity = BEAM}, done = {.capacity = wanted};
    finder find = {search, search->graph, search->layers, NULL};
    int32_t *queue = NULL;
    *count = 0;
    find.hops = vlp_alloc((size_t)search->graph->entities, sizeof *find.hops);
    queue = vlp_alloc((size_t)search->graph->entities, sizeof *queue);
    now.items = vlp_alloc(BEAM, sizeof *now.items);
    next.items = vlp_alloc(BEAM, sizeof *next.items);
    done.items = vlp_alloc((size_t)wanted, sizeof *done.items);
    if (!find.hops || !queue || !now.items || !next.items || !done.items) {
        status = vlp_fail_memory("paths");
        goto out;
    }
    measure_hops(&find, queue);
    partial start = {.weight = 1, .entity = search->answer};
    start.mass[search->layers] = 1;
    offer(&now, &start);
    for (int32_t length = 0; length < search->layers && now.count > 0; length++) {
        next.count = 0;
        for (int32_t i = 0; i < now.count; i++) extend(&next, &done, &find, &now.items[i]);
        best_partials swap = now;
        now = next;
        next = swap;
    }
    qsort(done.items, (size_t)done.count, sizeof *done.items, compare);
    for (int32_t i = 0; i < done.count; i++) {
        const partial *found = &done.items[i];
        out[i] = (vlp_found_path){.weight = found->weight, .length = found->length};
        for (int32_t j = 0; j < found->length; j++)
            out[i].slots[j] = found->slots[found->length - 1 - j];
    }
    *count = done.count;
out:
    vlp_free(find.hops);
    vlp_free(queue);
    vlp_free(now.items);
    vlp_free(next.items);
    vlp_free(done.items);
    return status;
}

void vlp_paths_total(double *total, const vlp_path_search *search, double weight) {
    const vlp_graph *graph = search->graph;
    int64_t slots = 2 * graph->edges;
    for (int32_t l = 0; l < search->layers; l++)
        for (int64_t slot = 0; slot < slots; slot++)
            total[graph->edge[slot]] += weight * (double)search->messages[l * slots + slot];
}
