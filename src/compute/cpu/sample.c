/* Negatives by p0, without replacement, never a known answer: draw a shell by its remaining weight, then
 * one of its remaining members uniformly. Draws are a function of (seed, step, query), not of threads.
 */
#include <math.h>
#include <string.h>

#include <omp.h>

#include "base/random.h"
#include "compute/cpu/cpu.h"

enum { MAX_SHELLS = 16 };

/* Random words of one query, in order. */
typedef struct word_stream {
    uint64_t seed, step;
    uint32_t query, block;
    int used;
    vlp_random4 words;
} word_stream;

static uint32_t next_below(word_stream *stream, uint32_t bound) {
    if (stream->used + 2 > 4) {
        /* The query takes the upper half of the step's word: steps stay below 2^32 queries apart. */
        stream->words = vlp_random(stream->seed, VLP_STREAM_NEGATIVES,
                                   stream->step << 32 | stream->query, stream->block++);
        stream->used = 0;
    }
    stream->used += 2;
    return vlp_random_below(stream->words.v[stream->used - 2], stream->words.v[stream->used - 1], bound);
}

static double next_unit(word_stream *stream) {
    return (double)next_below(stream, 1u << 31) * 0x1p-31;
}

/* The draws of one query. mark[e] == stamp: e is a known answer or drawn already. */
typedef struct drawing {
    const vlp_sample_options *options;
    int32_t head;
    int32_t *mark, stamp;
    word_stream random;
    int32_t left[MAX_SHELLS];   /* remaining members of each shell */
    double falloff[MAX_SHELLS]; /* exp(-alpha0 k): a member's weight, k shells beyond the nearest */
    int32_t shells;
} drawing;

/* The shell of an entity: distances 0 and 1 are shell 1 (the head entity counts as a neighbour), the
 * last shell includes all larger distances. Shell 0 is all entities when draws are uniform. */
static int32_t shell_of(const drawing *draw, int32_t entity) {
    const vlp_shell_view *view = draw->options->shells;
    if (!view) return 0;
    int32_t distance = view->limit + 1;
    if (view->matrix) {
        distance = view->matrix[draw->head * view->stride + entity / 2] >> (entity % 2 * 4) & 15;
    } else if (entity == draw->head) {
        distance = 0;
    } else {
        const int32_t *counts = view->counts + (int64_t)draw->head * (view->limit + 1);
        const int32_t *members = view->near_member + view->near_offset[draw->head];
        for (int32_t d = 1; d <= view->near[draw->head]; members += counts[d++]) {
            int32_t low = 0, high = counts[d];
            while (low < high) {
                int32_t middle = (low + high) / 2;
                if (members[middle] < entity)
                    low = middle + 1;
                else
                    high = middle;
            }
            if (low < counts[d] && members[low] == entity) {
                distance = d;
                break;
            }
        }
    }
    if (distance < 1) distance = 1;
    return distance < draw->shells ? distance : draw->shells - 1;
}

/* Sets up the shells of a head: members and weights. */
static void open_shells(drawing *draw) {
    const vlp_shell_view *view = draw->options->shells;
    memset(draw->left, 0, sizeof draw->left);
    if (!view) {
        draw->shells = 1;
        draw->left[0] = draw->options->entities;
        draw->falloff[0] = 1;
        return;
    }
    const int32_t *counts = view->counts + (int64_t)draw->head * (view->limit + 1);
    /* With the matrix, shells 1 .. limit, the last with all larger distances; without, the near ones and
     * one more. */
    int32_t known = view->matrix ? view->limit : view->near[draw->head] + 1;
    if (known > view->limit) known = view->limit;
    draw->shells = known + 1;
    int32_t rest = draw->options->entities;
    for (int32_t d = 1; d < known; d++) {
        draw->left[d] = counts[d] + (d == 1 ? counts[0] : 0);
        rest -= draw->left[d];
    }
    draw->left[known] = rest;
    for (int32_t k = 0; k <= known; k++) draw->falloff[k] = exp(-(double)draw->options->alpha0 * k);
}

static bool take(drawing *draw, int32_t entity, int32_t shell) {
    if (draw->mark[entity] == draw->stamp) return false;
    draw->mark[entity] = draw->stamp;
    draw->left[shell]--;
    return true;
}

/* Weights are relative to the nearest shell with remaining members, so that a large alpha0 does not
 * underflow all of them. */
static int32_t draw_shell(drawing *draw) {
    int32_t first = 0;
    while (draw->left[first] == 0) first++;
    double total = 0;
    for (int32_t d = first; d < draw->shells; d++) total += draw->falloff[d - first] * draw->left[d];
    double point = next_unit(&draw->random) * total;
    int32_t last = first;
    for (int32_t d = first; d < draw->shells; d++) {
        double weight = draw->falloff[d - first] * draw->left[d];
        if (weight == 0) continue;
        last = d;
        point -= weight;
        if (point < 0) break;
    }
    return last;
}

/* The members of a shell as a list, where there is one: shell 1 .. near, the last only if it does not
 * hold all larger distances. The head entity is in shell 1 but not in its list. */
static const int32_t *shell_list(const drawing *draw, int32_t shell, int32_t *count) {
    const vlp_shell_view *view = draw->options->shells;
    if (!view || shell > view->near[draw->head] || shell == draw->shells - 1) return NULL;
    const int32_t *counts = view->counts + (int64_t)draw->head * (view->limit + 1);
    const int32_t *members = view->near_member + view->near_offset[draw->head];
    for (int32_t d = 1; d < shell; d++) members += counts[d];
    *count = counts[shell];
    return members;
}

/* A remaining member of a shell, uniformly: by rejection from its list or from all entities, and, where
 * few of many remain, by counting. */
static int32_t draw_member(drawing *draw, int32_t shell) {
    int32_t count = 0, entities = draw->options->entities;
    const int32_t *list = shell_list(draw, shell, &count);
    int32_t extra = list && shell == 1; /* the head entity */
    int32_t among = list ? count + extra : entities;
    int64_t tries = 8 + 4 * (int64_t)among / draw->left[shell];
    for (int64_t i = 0; i < tries; i++) {
        int32_t place = (int32_t)next_below(&draw->random, (uint32_t)among);
        int32_t entity = !list ? place : place < count ? list[place] : draw->head;
        if (!list && shell_of(draw, entity) != shell) continue;
        if (take(draw, entity, shell)) return entity;
    }
    int32_t wanted = (int32_t)next_below(&draw->random, (uint32_t)draw->left[shell]);
    for (int32_t entity = 0; entity < entities; entity++) {
        if (draw->mark[entity] == draw->stamp || shell_of(draw, entity) != shell) continue;
        if (wanted-- > 0) continue;
        take(draw, entity, shell);
        return entity;
    }
    return -1; /* not reached: left[] counts what remains */
}

static void draw_query(drawing *draw, int32_t *out, const int32_t *known, int64_t known_count) {
    open_shells(draw);
    int64_t remain = 0;
    for (int64_t i = 0; i < known_count; i++) take(draw, known[i], shell_of(draw, known[i]));
    for (int32_t d = 0; d < draw->shells; d++) remain += draw->left[d];
    for (int32_t i = 0; i < draw->options->count; i++)
        out[i] = i < remain ? draw_member(draw, draw_shell(draw)) : -1;
}

static vlp_status sample_negatives(vlp_compute *compute, int32_t *entities,
                                   const vlp_sampled_queries *queries,
                                   const vlp_sample_options *options) {
    int64_t size = (int64_t)compute->threads * options->entities;
    if (size > compute->marks_capacity) {
        vlp_free(compute->marks);
        compute->marks_capacity = 0;
        compute->marks = vlp_alloc((size_t)size, sizeof *compute->marks);
        if (!compute->marks) return vlp_fail_memory("the sampler");
        compute->marks_capacity = size;
    }
    compute->segments_of = NULL;
    memset(compute->marks, 0xff, (size_t)size * sizeof *compute->marks);
    int32_t width = options->count + 1;
#pragma omp parallel for num_threads(compute->threads) schedule(dynamic, 8)
    for (int32_t i = 0; i < queries->count; i++) {
        drawing draw = {
            .options = options,
            .head = queries->heads[i],
            .mark = compute->marks + (int64_t)omp_get_thread_num() * options->entities,
            .stamp = i,
            .random = {options->seed, (uint64_t)compute->values.step, (uint32_t)i, 0, 4, {{0}}}};
        int64_t begin = queries->known_begin[i];
        draw_query(&draw, entities + (int64_t)i * width + 1, queries->known + begin,
                   queries->known_end[i] - begin);
    }
    return VLP_OK;
}

const vlp_sample_operations cpu_sample_operations = {.negatives = sample_negatives};
