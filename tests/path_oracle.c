#include "path_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The graph ----------------------------------------------------------------------------------- */

static bool is_out(const uint8_t *removed, int64_t triple, int edge) {
    return removed && (removed[triple] & edge) != 0;
}

/* Marks `to` as reached in `level` + 1 hops where `from` is reached in `level`. */
static bool walk(int32_t *hops, int32_t level, int32_t from, int32_t to) {
    if (hops[from] != level || hops[to] >= 0) return false;
    hops[to] = level + 1;
    return true;
}

void path_oracle_hops(int32_t *hops, const path_world *world, int32_t head, const uint8_t *removed) {
    for (int32_t v = 0; v < world->entities; v++) hops[v] = v == head ? 0 : -1;
    bool changed = true;
    for (int32_t level = 0; changed; level++) {
        changed = false;
        for (int64_t i = 0; i < world->triples; i++) {
            vlp_triple triple = world->items[i];
            if (!is_out(removed, i, PATH_INTO_TAIL) && walk(hops, level, triple.head, triple.tail))
                changed = true;
            if (!is_out(removed, i, PATH_INTO_HEAD) && walk(hops, level, triple.tail, triple.head))
                changed = true;
        }
    }
}

/* Edges into an entity. */
static int64_t degree_of(const path_world *world, int32_t entity, const uint8_t *removed) {
    int64_t degree = 0;
    for (int64_t i = 0; i < world->triples; i++) {
        degree += world->items[i].tail == entity && !is_out(removed, i, PATH_INTO_TAIL);
        degree += world->items[i].head == entity && !is_out(removed, i, PATH_INTO_HEAD);
    }
    return degree;
}

void path_oracle_reach(int32_t *hops, const path_world *world, int32_t head, const uint8_t *removed) {
    path_oracle_hops(hops, world, head, removed);
    int64_t left = world->form.edge_limit;
    bool full = false;
    for (int32_t v = 0; v < world->entities; v++)
        if (hops[v] > world->form.layers) hops[v] = -1;
    if (left == 0) return;
    /* Entities that were taken are marked by -2 - hops. */
    for (int32_t level = 1; level <= world->form.layers; level++)
        for (;;) {
            int32_t best = -1;
            for (int32_t v = 0; v < world->entities; v++)
                if (hops[v] == level &&
                    (best < 0 || degree_of(world, v, NULL) > degree_of(world, best, NULL)))
                    best = v;
            if (best < 0) break;
            int64_t degree = degree_of(world, best, NULL);
            if (degree > left) full = true;
            if (!full) left -= degree;
            hops[best] = full ? -1 : -2 - level;
        }
    for (int32_t v = 0; v < world->entities; v++)
        if (hops[v] < -1) hops[v] = -2 - hops[v];
}

/* ---- A layer ------------------------------------------------------------------------------------- */

static double mean_log_degree(const path_world *world) {
    double sum = 0;
    for (int32_t v = 0; v < world->entities; v++) sum += log((double)(degree_of(world, v, NULL) + 1));
    return sum > 0 ? sum / world->entities : 1;
}

/* What a query is computed with. */
typedef struct oracle_query {
    const path_world *world;
    int32_t head;
    const double *q; /* (d) */
    const uint8_t *removed;
    const double *factors;
    const int32_t *hops; /* (entities) */
    double mean;
} oracle_query;

/* w_l[p][j] of a relation p. */
static double relation_weight(const oracle_query *query, int32_t layer, int32_t relation, int32_t j) {
    const path_world *world = query->world;
    int64_t d = world->form.dim, width = world->form.relations * d, column = relation * d + j;
    double sum = world->table[VLP_PATH_RELATION_BIAS][layer * width + column];
    for (int64_t k = 0; k < d; k++)
        sum += query->q[k] * world->table[VLP_PATH_RELATION][(layer * d + k) * width + column];
    return sum;
}

/* Sums and extremes over the messages into an entity, for one column. */
typedef struct oracle_statistics {
    double sum, squares, largest, smallest;
    int64_t count;
} oracle_statistics;

static void add_message(oracle_statistics *statistics, double message) {
    statistics->sum += message;
    statistics->squares += message * message;
    statistics->largest = fmax(statistics->largest, message);
    statistics->smallest = fmin(statistics->smallest, message);
    statistics->count++;
}

/* y (5 d) of an entity. */
static void aggregate(double *y, const oracle_query *query, int32_t layer, int32_t entity,
                      const double *x) {
    const path_world *world = query->world;
    int32_t d = world->form.dim, half = world->form.relations / 2;
    for (int32_t j = 0; j < d; j++) {
        double boundary = entity == query->head ? query->q[j] : 0;
        oracle_statistics all = {boundary, boundary * boundary, boundary, boundary, 1};
        for (int64_t i = 0; i < world->triples; i++) {
            vlp_triple triple = world->items[i];
            const double *factors =
                query->factors ? query->factors + (int64_t)layer * 2 * world->triples : NULL;
            if (triple.tail == entity && !is_out(query->removed, i, PATH_INTO_TAIL))
                add_message(&all, (factors ? factors[i] : 1) * x[triple.head * d + j] *
                                      relation_weight(query, layer, triple.relation, j));
            if (triple.head == entity && !is_out(query->removed, i, PATH_INTO_HEAD))
                add_message(&all, (factors ? factors[world->triples + i] : 1) * x[triple.tail * d + j] *
                                      relation_weight(query, layer, triple.relation + half, j));
        }
        double mean = all.sum / (double)all.count;
        double variance = all.squares / (double)all.count - mean * mean;
        y[j] = x[entity * d + j];
        y[d + j] = mean;
        y[2 * d + j] = all.largest;
        y[3 * d + j] = all.smallest;
        y[4 * d + j] = sqrt(fmax(variance, (double)VLP_PATH_LEAST_VARIANCE));
    }
}

/* z (d) = y W + b of the layer's first or second product. */
static void multiply(double *z, const path_world *world, int32_t layer, int32_t which, const double *y) {
    int64_t d = world->form.dim, first = (layer * 2 + which) * 5 * d;
    for (int64_t j = 0; j < d; j++) {
        z[j] = world->table[VLP_PATH_UPDATE_BIAS][(layer * 2 + which) * d + j];
        for (int64_t k = 0; k < 5 * d; k++)
            z[j] += y[k] * world->table[VLP_PATH_UPDATE][(first + k) * d + j];
    }
}

/* log(degree + 1), above 16 that of the middle of its quarter of an octave. */
static double log_degree(int64_t degree) {
    double n = (double)(degree + 1);
    return n <= 16 ? log(n) : (floor(4 * log2(n)) + 0.5) / 4 * log(2);
}

static void update(double *out, const oracle_query *query, int32_t layer, int32_t entity,
                   const double *x) {
    const path_world *world = query->world;
    int32_t d = world->form.dim;
    double y[5 * VLP_PATH_MAX_DIM] = {0}, z[VLP_PATH_MAX_DIM], scaled[VLP_PATH_MAX_DIM];
    aggregate(y, query, layer, entity, x);
    multiply(z, world, layer, 0, y);
    multiply(scaled, world, layer, 1, y);
    const uint8_t *out_of_degree = world->mistake == PATH_FULL_DEGREE ? NULL : query->removed;
    double s = log_degree(degree_of(world, entity, out_of_degree)) / query->mean;
    double mean = 0, variance = 0;
    for (int32_t j = 0; j < d; j++) z[j] += s * scaled[j];
    for (int32_t j = 0; j < d; j++) mean += z[j] / d;
    for (int32_t j = 0; j < d; j++) variance += (z[j] - mean) * (z[j] - mean) / d;
    const double *norm = world->table[VLP_PATH_NORM] + (int64_t)layer * 2 * d;
    for (int32_t j = 0; j < d; j++) {
        double unit = (z[j] - mean) / sqrt(variance + (double)VLP_PATH_NORM_EPSILON);
        out[j] = x[entity * d + j] + fmax(norm[j] * unit + norm[d + j], 0);
    }
}

/* ---- Scores -------------------------------------------------------------------------------------- */

static double readout(const path_world *world, const double *x, const double *q) {
    int64_t d = world->form.dim;
    const double *output = world->table[VLP_PATH_OUTPUT];
    double score = output[2 * d];
    for (int64_t j = 0; j < 2 * d; j++) {
        double hidden = world->table[VLP_PATH_HIDDEN_BIAS][j];
        for (int64_t k = 0; k < 2 * d; k++)
            hidden += (k < d ? x[k] : q[k - d]) * world->table[VLP_PATH_HIDDEN][k * 2 * d + j];
        score += output[j] * fmax(hidden, 0);
    }
    return score;
}

void path_oracle_scores(double *scores, const path_world *world, int32_t head, int32_t relation,
                        const uint8_t *removed, const double *factors) {
    int32_t d = world->form.dim;
    size_t size = (size_t)world->entities * (size_t)d;
    double *x = calloc(size, sizeof *x), *next = calloc(size, sizeof *next);
    int32_t *hops = malloc((size_t)world->entities * sizeof *hops);
    const double *q = world->table[VLP_PATH_QUERY] + (int64_t)relation * d;
    oracle_query query = {world, head, q, removed, factors, hops, mean_log_degree(world)};
    path_oracle_reach(hops, world, head, removed);
    memcpy(x + (int64_t)head * d, q, (size_t)d * sizeof *x);
    for (int32_t layer = 0; layer < world->form.layers; layer++) {
        for (int32_t v = 0; v < world->entities; v++) {
            bool reached = hops[v] >= 0 && hops[v] <= layer + 1;
            if (reached || !world->form.reached_only)
                update(next + (int64_t)v * d, &query, layer, v, x);
            else
                memset(next + (int64_t)v * d, 0, (size_t)d * sizeof *next);
        }
        memcpy(x, next, size * sizeof *x);
    }
    for (int32_t v = 0; v < world->entities; v++) scores[v] = readout(world, x + (int64_t)v * d, q);
    free(x);
    free(next);
    free(hops);
}

/* ---- The loss ------------------------------------------------------------------------------------ */

static bool is_hidden(const path_oracle_key *key, int32_t entity) {
    for (int64_t i = 0; i < key->count; i++)
        if (key->answers[i] == entity && key->hidden[i]) return true;
    return false;
}

/* The edges of a hidden triple that are out. */
static int hidden_edges(const path_world *world, bool answer_is_tail) {
    int into_answer = answer_is_tail ? PATH_INTO_TAIL : PATH_INTO_HEAD;
    if (world->mistake == PATH_ONE_WAY_LEFT) return PATH_BOTH_WAYS - into_answer;
    if (world->mistake == PATH_OTHER_WAY_LEFT) return into_answer;
    return PATH_BOTH_WAYS;
}

void path_oracle_removed(uint8_t *removed, const path_world *world, const path_oracle_key *key,
                         const vlp_path_options *options) {
    int32_t half = world->form.relations / 2;
    bool pairs = options->hiding == VLP_PATH_HIDE_PAIR;
    for (int64_t i = 0; i < world->triples; i++) {
        vlp_triple triple = world->items[i];
        removed[i] = 0;
        if (triple.head == key->head && is_hidden(key, triple.tail) &&
            (pairs || triple.relation == key->relation))
            removed[i] |= (uint8_t)hidden_edges(world, true);
        if (triple.tail == key->head && is_hidden(key, triple.head) &&
            (pairs || triple.relation + half == key->relation))
            removed[i] |= (uint8_t)hidden_edges(world, false);
        if (vlp_path_chosen(key->seed, VLP_STREAM_PATH_DROPPED, (uint32_t)i,
                            vlp_path_share(options->drop)))
            removed[i] |= world->mistake == PATH_DROPS_ONE_WAY ? PATH_INTO_TAIL : PATH_BOTH_WAYS;
    }
}

static double key_loss(const path_world *world, const path_oracle_key *key,
                       const vlp_path_options *options) {
    size_t entities = (size_t)world->entities;
    uint8_t *removed = malloc((size_t)world->triples + 1), *known = calloc(entities, 1);
    double *scores = malloc(entities * sizeof *scores), others = 0, loss = 0;
    int32_t *hops = malloc(entities * sizeof *hops), *reach = malloc(entities * sizeof *reach);
    path_oracle_removed(removed, world, key, options);
    path_oracle_scores(scores, world, key->head, key->relation, removed, NULL);
    path_oracle_hops(hops, world, key->head, removed);
    path_oracle_reach(reach, world, key->head, removed);
    for (int64_t i = 0; i < key->count; i++)
        known[key->answers[i]] = world->mistake != PATH_NOT_MASKED || key->hidden[i];
    for (int32_t v = 0; v < world->entities; v++) {
        bool far = hops[v] < 0 || hops[v] > options->near;
        double weight = 1;
        /* All entities whose state is 0 have the same score: they are counted, not sampled. */
        if (far && (reach[v] >= 0 || !world->form.reached_only)) {
            uint32_t share = vlp_path_share(options->far);
            bool chosen = vlp_path_chosen(key->seed, VLP_STREAM_PATH_CANDIDATES, (uint32_t)v, share);
            weight = chosen ? 65536.0 / share : 0;
        }
        if (!known[v]) others += weight * exp(scores[v]);
    }
    int64_t hidden = 0;
    for (int64_t i = 0; i < key->count; i++) {
        if (!key->hidden[i]) continue;
        loss += log1p(others * exp(-scores[key->answers[i]]));
        hidden++;
    }
    free(removed);
    free(known);
    free(scores);
    free(hops);
    free(reach);
    return loss / (double)hidden;
}

double path_oracle_loss(const path_world *world, const path_oracle_key *keys, int32_t count,
                        const vlp_path_options *options) {
    double loss = 0, weights = 0;
    for (int32_t i = 0; i < count; i++) {
        double root = sqrt((double)keys[i].count), weight = root / floor(root);
        loss += weight * key_loss(world, keys + i, options);
        weights += weight;
    }
    return loss / weights;
}
