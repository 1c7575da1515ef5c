/* See oracle.h. Everything here reads the triple list from one end to the other, again and again: there
 * is no index that could be wrong. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* ---- Random numbers ---- */

int32_t oracle_below(oracle_random *random, int32_t bound) {
    vlp_random4 bits = vlp_random(random->seed, VLP_STREAM_TEST, random->step, random->index++);
    return (int32_t)vlp_random_below(bits.v[0], bits.v[1], (uint32_t)bound);
}

bool oracle_chance(oracle_random *random, int32_t one_in) {
    return oracle_below(random, one_in) == 0;
}

static void *checked(void *memory) {
    if (memory == NULL) abort();
    return memory;
}

static void *array(int64_t count, size_t size) {
    return checked(calloc((size_t)count + 1, size));
}

int32_t *oracle_permutation(oracle_random *random, int32_t count) {
    int32_t *order = array(count, sizeof *order);
    for (int32_t i = 0; i < count; i++) {
        int32_t other = oracle_below(random, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    return order;
}

/* ---- Graphs ---- */

bool oracle_graph_add(oracle_graph *graph, int32_t head, int32_t relation, int32_t tail) {
    for (int64_t i = 0; i < graph->count; i++) {
        vlp_triple t = graph->triples[i];
        if (t.head == head && t.relation == relation && t.tail == tail) return false;
    }
    if (graph->count == graph->capacity) {
        graph->capacity = 2 * graph->capacity + 64;
        graph->triples =
            checked(realloc(graph->triples, (size_t)graph->capacity * sizeof *graph->triples));
    }
    graph->triples[graph->count++] = (vlp_triple){head, relation, tail};
    return true;
}

void oracle_graph_free(oracle_graph *graph) {
    free(graph->triples);
    *graph = (oracle_graph){0};
}

/* Joins two nodes under a random relation in a random direction, and sometimes gives the pair a parallel
 * or a reverse edge, or one end a loop. */
static void join(oracle_graph *graph, int32_t a, int32_t b, oracle_random *random) {
    int32_t relation = oracle_below(random, graph->relations);
    if (oracle_chance(random, 2)) {
        int32_t swapped = a;
        a = b;
        b = swapped;
    }
    oracle_graph_add(graph, a, relation, b);
    if (oracle_chance(random, 5)) oracle_graph_add(graph, a, oracle_below(random, graph->relations), b);
    if (oracle_chance(random, 7)) oracle_graph_add(graph, b, oracle_below(random, graph->relations), a);
    if (oracle_chance(random, 9)) oracle_graph_add(graph, a, oracle_below(random, graph->relations), a);
}

/* In a quarter of the graphs nodes only join others of the same remainder: up to three parts. */
static void make_random(oracle_graph *graph, int32_t nodes, int64_t edges, oracle_random *random) {
    int32_t parts = oracle_chance(random, 4) ? 1 + oracle_below(random, 3) : 1;
    for (int64_t tries = 0; graph->count < edges && tries < 4 * edges; tries++) {
        int32_t a = oracle_below(random, nodes), b = oracle_below(random, nodes);
        b -= b % parts - a % parts;
        if (b >= 0 && b < nodes) join(graph, a, b, random);
    }
}

static void make_two_hubs(oracle_graph *graph, int32_t nodes, oracle_random *random) {
    if (nodes > 1 && oracle_chance(random, 2)) join(graph, 0, 1, random);
    for (int32_t leaf = 2; leaf < nodes; leaf++) {
        int32_t which = oracle_below(random, 8); /* one hub alone, the other alone, mostly both */
        if (which != 0) join(graph, 0, leaf, random);
        if (which != 1) join(graph, 1, leaf, random);
    }
}

/* Node 0 has 43 to 62 children. Two children have four nodes below them: each child alone has one, by
 * two parallel edges, and they share two. In exact fractions all four are equal; in the fixed point two
 * shares rounded one by one are not what their sum rounds to. */
static void make_layers(oracle_graph *graph, oracle_random *random) {
    int32_t pairs = 22 + oracle_below(random, 10), leaves = oracle_below(random, 4);
    int32_t children = 2 * pairs - oracle_below(random, 2), next = 1 + children;
    int32_t r = graph->relations;
    for (int32_t i = 1; i <= children; i++) oracle_graph_add(graph, 0, oracle_below(random, r), i);
    for (int32_t i = 1; i + 1 <= children; i += 2, next += 4) {
        for (int32_t own = 0; own < 2; own++) {
            oracle_graph_add(graph, next + own, oracle_below(random, r), i + own);
            oracle_graph_add(graph, i + own, oracle_below(random, r), next + own);
        }
        for (int32_t shared = 2; shared < 4; shared++) {
            oracle_graph_add(graph, next + shared, oracle_below(random, r), i);
            oracle_graph_add(graph, next + shared, oracle_below(random, r), i + 1);
        }
    }
    for (int32_t i = 1; i <= children; i++) {
        for (int32_t leaf = 0; leaf < leaves; leaf++)
            oracle_graph_add(graph, next++, oracle_below(random, r), i);
    }
    graph->entities = next;
}

/* Node 0 has 8 to 28 children in groups of 2 to 7; the children of a group of m share the same m - 1
 * nodes below them. Each of those gets m times 1/m of what one child has: all are equal, whatever m is,
 * and six times a sixth is not one in floating point. */
static void make_fractions(oracle_graph *graph, oracle_random *random) {
    int32_t next = 1;
    for (int32_t group = 0; group < 4; group++) {
        int32_t size = 2 + oracle_below(random, 6), below = next + size;
        for (int32_t child = next; child < below; child++) {
            oracle_graph_add(graph, 0, oracle_below(random, graph->relations), child);
            for (int32_t i = 0; i < size - 1; i++)
                oracle_graph_add(graph, below + i, oracle_below(random, graph->relations), child);
        }
        next = below + size - 1;
    }
    graph->entities = next;
}

static void shuffle(oracle_graph *graph, oracle_random *random) {
    int32_t *name = oracle_permutation(random, graph->entities);
    int32_t *order = oracle_permutation(random, (int32_t)graph->count);
    vlp_triple *shuffled = array(graph->count, sizeof *shuffled);
    for (int64_t i = 0; i < graph->count; i++) {
        vlp_triple t = graph->triples[i];
        shuffled[order[i]] = (vlp_triple){name[t.head], t.relation, name[t.tail]};
    }
    if (graph->count > 0) memcpy(graph->triples, shuffled, (size_t)graph->count * sizeof *shuffled);
    free(name);
    free(order);
    free(shuffled);
}

void oracle_graph_make(oracle_graph *out, enum oracle_shape shape, int32_t nodes, int32_t relations,
                       int64_t edges, oracle_random *random) {
    *out = (oracle_graph){.entities = nodes, .relations = relations};
    switch (shape) {
    case ORACLE_RANDOM:
        make_random(out, nodes, edges >= 0 ? edges : oracle_below(random, 3 * nodes), random);
        break;
    case ORACLE_PATH:
        for (int32_t i = 1; i < nodes; i++) join(out, i - 1, i, random);
        break;
    case ORACLE_STAR:
        for (int32_t i = 1; i < nodes; i++) join(out, 0, i, random);
        break;
    case ORACLE_CLIQUE:
        for (int32_t i = 0; i < nodes; i++) {
            for (int32_t j = 0; j < i; j++) join(out, j, i, random);
        }
        break;
    case ORACLE_TREE:
        for (int32_t i = 1; i < nodes; i++) join(out, oracle_below(random, i), i, random);
        break;
    case ORACLE_TWO_HUBS:
        make_two_hubs(out, nodes, random);
        break;
    case ORACLE_LAYERS:
        make_layers(out, random);
        break;
    case ORACLE_FRACTIONS:
        make_fractions(out, random);
        break;
    case ORACLE_SHAPES:
        abort();
    }
    out->entities += oracle_below(random, 3);
    shuffle(out, random);
}

void oracle_graph_small(oracle_graph *out, oracle_random *random) {
    int32_t relations = 1 + oracle_below(random, 4);
    if (oracle_chance(random, 2)) {
        int64_t edges = oracle_below(random, oracle_chance(random, 2) ? 61 : 20);
        oracle_graph_make(out, ORACLE_RANDOM, 1 + oracle_below(random, 14), relations, edges, random);
        return;
    }
    enum oracle_shape shape = ORACLE_PATH + (unsigned)oracle_below(random, ORACLE_TWO_HUBS);
    int32_t nodes = 1 + oracle_below(random, shape == ORACLE_CLIQUE ? 9 : 14);
    oracle_graph_make(out, shape, nodes, relations, -1, random);
    /* A few edges across close cycles, so that what was cut off is reached again, farther out. */
    for (int32_t extra = oracle_below(random, 4); extra > 0; extra--)
        join(out, oracle_below(random, nodes), oracle_below(random, nodes), random);
}

void oracle_graph_middle(oracle_graph *out, enum oracle_shape shape, oracle_random *random) {
    int32_t relations = 1 + oracle_below(random, 4), nodes = 200 + oracle_below(random, 498);
    if (shape == ORACLE_CLIQUE) nodes = 30;
    int64_t edges = nodes + oracle_below(random, nodes);
    oracle_graph_make(out, shape, nodes, relations, edges, random);
    if (shape == ORACLE_CLIQUE || shape == ORACLE_LAYERS || shape == ORACLE_FRACTIONS) return;
    for (int32_t extra = oracle_below(random, 40); extra > 0; extra--)
        join(out, oracle_below(random, nodes), oracle_below(random, nodes), random);
}

/* ---- Distances ---- */

int32_t *oracle_distance_matrix(const oracle_graph *graph) {
    const int32_t far = INT32_MAX / 2;
    const int64_t n = graph->entities;
    int32_t *matrix = array(n * n, sizeof *matrix); /* (n, n) */
    for (int64_t i = 0; i < n * n; i++) matrix[i] = far;
    for (int64_t i = 0; i < graph->count; i++) {
        matrix[graph->triples[i].head * n + graph->triples[i].tail] = 1;
        matrix[graph->triples[i].tail * n + graph->triples[i].head] = 1;
    }
    for (int64_t i = 0; i < n; i++) matrix[i * n + i] = 0;
    for (int64_t through = 0; through < n; through++) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++) {
                int32_t detour = matrix[i * n + through] + matrix[through * n + j];
                if (detour < matrix[i * n + j]) matrix[i * n + j] = detour;
            }
        }
    }
    for (int64_t i = 0; i < n * n; i++) {
        if (matrix[i] >= far) matrix[i] = -1;
    }
    return matrix;
}

static bool relax(int32_t *distance, int32_t from, int32_t to) {
    if (distance[from] < 0) return false;
    if (distance[to] >= 0 && distance[to] <= distance[from] + 1) return false;
    distance[to] = distance[from] + 1;
    return true;
}

void oracle_distance_from(int32_t *out, const oracle_graph *graph, int32_t source) {
    for (int32_t i = 0; i < graph->entities; i++) out[i] = -1;
    out[source] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t i = 0; i < graph->count; i++) {
            vlp_triple t = graph->triples[i];
            if (relax(out, t.head, t.tail)) changed = true;
            if (relax(out, t.tail, t.head)) changed = true;
        }
    }
}

/* ---- References ---- */

/* A copy of the triple list without the one that is left out. */
typedef struct remainder {
    vlp_triple *triples;
    int32_t *edge; /* the triples' indices in the whole graph */
    int64_t count;
    int64_t *degree; /* (entities) slots */
} remainder;

static void count_slots(int64_t *degree, vlp_triple t, unsigned mistakes) {
    degree[t.head]++;
    if (t.head != t.tail || !(mistakes & ORACLE_LOOP_ONE_SLOT)) degree[t.tail]++;
}

static void remainder_make(remainder *out, const oracle_graph *graph, vlp_query query,
                           unsigned mistakes) {
    out->triples = array(graph->count, sizeof *out->triples);
    out->edge = array(graph->count, sizeof *out->edge);
    out->degree = array(graph->entities, sizeof *out->degree);
    out->count = 0;
    bool kept = (mistakes & ORACLE_OWN_EDGE_IN_GRAPH) ||
                ((mistakes & ORACLE_OWN_EDGE_BACKWARD) && query.relation >= graph->relations);
    for (int64_t i = 0; i < graph->count; i++) {
        if (i == query.left_out && !kept) continue;
        out->triples[out->count] = graph->triples[i];
        out->edge[out->count++] = (int32_t)i;
        count_slots(out->degree, graph->triples[i], mistakes);
    }
    if (query.left_out < 0 || kept) return;
    vlp_triple own = graph->triples[query.left_out];
    if (mistakes & ORACLE_OLD_DEGREES) count_slots(out->degree, own, mistakes);
    if (mistakes & ORACLE_OLD_FAR_DEGREE) out->degree[own.head == query.entity ? own.tail : own.head]++;
}

static void remainder_free(remainder *rest) {
    free(rest->triples);
    free(rest->edge);
    free(rest->degree);
}

/* Distances from `entity` up to max_distance, level by level. */
static void measure(int32_t *distance, int32_t entities, const vlp_triple *triples, int64_t count,
                    int32_t entity, int32_t max_distance) {
    for (int32_t i = 0; i < entities; i++) distance[i] = -1;
    distance[entity] = 0;
    for (int32_t level = 0; level < max_distance; level++) {
        for (int64_t i = 0; i < count; i++) {
            int32_t a = triples[i].head, b = triples[i].tail;
            if (distance[a] == level && distance[b] < 0) distance[b] = level + 1;
            if (distance[b] == level && distance[a] < 0) distance[a] = level + 1;
        }
    }
}

/* How many triples join the ends of triple i, in either direction; 0 unless i is the first of them. */
static int64_t multiplicity(const remainder *rest, int64_t i) {
    int64_t same = 0;
    vlp_triple own = rest->triples[i];
    for (int64_t k = 0; k < rest->count; k++) {
        vlp_triple t = rest->triples[k];
        if ((t.head == own.head && t.tail == own.tail) || (t.head == own.tail && t.tail == own.head)) {
            if (k < i) return 0;
            same++;
        }
    }
    return same;
}

/* What triple i carries from `from` to `to`, one level below. */
static uint64_t carried(const remainder *rest, int64_t i, int32_t from, const uint64_t *mass,
                        unsigned mistakes) {
    uint64_t degree = (uint64_t)rest->degree[from];
    if (mistakes & ORACLE_PATH_COUNTS) return mass[from];
    if (mistakes & ORACLE_PARALLEL_CARRY_ONCE)
        return multiplicity(rest, i) > 0 ? mass[from] / degree : 0;
    if (mistakes & ORACLE_ROUND_LATE) {
        unsigned __int128 together = (unsigned __int128)mass[from] * (uint64_t)multiplicity(rest, i);
        return (uint64_t)(together / degree);
    }
    return mass[from] / degree;
}

/* The walk of the mistaken kind that uses floating point. Doubles above zero order as their bits do. */
static void walk_floating(uint64_t *mass, const int32_t *distance, const remainder *rest,
                          int32_t entities, int32_t entity, int32_t max_distance) {
    double *weight = array(entities, sizeof *weight);
    weight[entity] = 1;
    for (int32_t level = 0; level < max_distance; level++) {
        for (int64_t i = 0; i < rest->count; i++) {
            int32_t a = rest->triples[i].head, b = rest->triples[i].tail;
            if (distance[a] == level && distance[b] == level + 1)
                weight[b] += weight[a] / (double)rest->degree[a];
            if (distance[b] == level && distance[a] == level + 1)
                weight[a] += weight[b] / (double)rest->degree[b];
        }
    }
    memcpy(mass, weight, (size_t)entities * sizeof *weight);
    free(weight);
}

static void walk(uint64_t *mass, const int32_t *distance, const remainder *rest, int32_t entity,
                 int32_t max_distance, unsigned mistakes) {
    mass[entity] = mistakes & ORACLE_PATH_COUNTS ? 1 : VLP_WALK_UNIT;
    for (int32_t level = 0; level < max_distance; level++) {
        for (int64_t i = 0; i < rest->count; i++) {
            int32_t a = rest->triples[i].head, b = rest->triples[i].tail;
            if (distance[a] == level && distance[b] == level + 1)
                mass[b] += carried(rest, i, a, mass, mistakes);
            if (distance[b] == level && distance[a] == level + 1)
                mass[a] += carried(rest, i, b, mass, mistakes);
        }
    }
}

/* Nodes that the left-out triple had nearer, treated as if they had been forgotten. */
static void mistreat_orphans(oracle_view *view, const oracle_graph *graph, int32_t entity,
                             int32_t max_distance, unsigned mistakes) {
    int32_t *before = array(graph->entities, sizeof *before);
    measure(before, graph->entities, graph->triples, graph->count, entity, max_distance);
    for (int32_t i = 0; i < graph->entities; i++) {
        if (before[i] == view->distance[i]) continue;
        if (mistakes & ORACLE_ORPHANS_LOST) view->distance[i] = -1;
        view->mass[i] = 0;
    }
    free(before);
}

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_candidates(const void *left, const void *right) {
    const oracle_candidate *a = left, *b = right;
    if (a->distance != b->distance) return a->distance < b->distance ? -1 : 1;
    if (a->mass != b->mass) return compare_numbers(b->mass, a->mass);
    return a->edge < b->edge ? -1 : 1;
}

static int compare_candidates_by_head(const void *left, const void *right) {
    const oracle_candidate *a = left, *b = right;
    if (a->distance != b->distance || a->mass != b->mass) return compare_candidates(left, right);
    if (a->head != b->head) return a->head < b->head ? -1 : 1;
    return a->edge < b->edge ? -1 : 1;
}

static void gather(oracle_view *view, const oracle_graph *graph, const remainder *rest, vlp_query query,
                   unsigned mistakes) {
    bool backward = query.relation >= graph->relations;
    int32_t relation = backward ? query.relation - graph->relations : query.relation;
    if (mistakes & ORACLE_INVERSE_FORWARD) backward = false;
    for (int64_t i = 0; i < rest->count; i++) {
        if (rest->triples[i].relation != relation) continue;
        if (rest->edge[i] == query.left_out && !(mistakes & ORACLE_OWN_EDGE_A_REFERENCE)) continue;
        int32_t head = backward ? rest->triples[i].tail : rest->triples[i].head;
        if (view->distance[head] < 0) continue;
        uint64_t mass = mistakes & ORACLE_NO_MASS ? 0 : view->mass[head];
        view->candidates[view->count++] =
            (oracle_candidate){rest->edge[i], head, view->distance[head], mass};
    }
    qsort(view->candidates, (size_t)view->count, sizeof *view->candidates,
          mistakes & ORACLE_TIES_BY_HEAD ? compare_candidates_by_head : compare_candidates);
}

void oracle_view_make(oracle_view *out, const oracle_graph *graph, vlp_query query, int32_t max_distance,
                      unsigned mistakes) {
    remainder rest;
    /* To see one's own triple as a reference one has to find it in the graph first. */
    if (mistakes & ORACLE_OWN_EDGE_A_REFERENCE) mistakes |= ORACLE_OWN_EDGE_IN_GRAPH;
    remainder_make(&rest, graph, query, mistakes);
    out->distance = array(graph->entities, sizeof *out->distance);
    out->mass = array(graph->entities, sizeof *out->mass);
    out->candidates = array(rest.count, sizeof *out->candidates);
    out->count = 0;
    measure(out->distance, graph->entities, rest.triples, rest.count, query.entity, max_distance);
    if (mistakes & ORACLE_FLOATING_MASS)
        walk_floating(out->mass, out->distance, &rest, graph->entities, query.entity, max_distance);
    else
        walk(out->mass, out->distance, &rest, query.entity, max_distance, mistakes);
    if (mistakes & (ORACLE_ORPHANS_LOST | ORACLE_ORPHANS_MASSLESS))
        mistreat_orphans(out, graph, query.entity, max_distance, mistakes);
    gather(out, graph, &rest, query, mistakes);
    remainder_free(&rest);
}

void oracle_view_free(oracle_view *view) {
    free(view->distance);
    free(view->mass);
    free(view->candidates);
    *view = (oracle_view){0};
}

/* Edges of one head have one distance and one mass, so that the list has them in edge order. */
static int64_t earlier_of_head(const oracle_view *view, int64_t position) {
    int64_t earlier = 0;
    for (int64_t i = 0; i < position; i++) {
        if (view->candidates[i].head == view->candidates[position].head) earlier++;
    }
    return earlier;
}

int32_t oracle_references(vlp_reference *out, const oracle_graph *graph, vlp_query query,
                          const vlp_reference_options *options, unsigned mistakes) {
    oracle_view view;
    int32_t count = 0;
    oracle_view_make(&view, graph, query, options->max_distance, mistakes);
    for (int64_t i = 0; i < view.count && count < options->count; i++) {
        oracle_candidate candidate = view.candidates[i];
        bool capped = options->per_head > 0 && earlier_of_head(&view, i) >= options->per_head;
        if (candidate.distance == 0 && !(mistakes & ORACLE_CAP_AT_ENTITY)) capped = false;
        if (!capped) out[count++] = (vlp_reference){candidate.edge, candidate.distance};
        if ((mistakes & ORACLE_CAP_AFTER_CUT) && i + 1 >= options->count) break;
    }
    oracle_view_free(&view);
    return count;
}

int32_t oracle_references_within(vlp_reference *out, const oracle_graph *graph, vlp_query query,
                                 const vlp_reference_options *options, int64_t edges) {
    oracle_view view;
    vlp_reference_options within = *options;
    oracle_view_make(&view, graph, query, options->max_distance, 0);
    /* The farthest level such that the entities before it have at most `edges` ends of triples. */
    for (within.max_distance = 0; within.max_distance < options->max_distance; within.max_distance++) {
        int64_t read = 0;
        for (int64_t i = 0; i < graph->count; i++) {
            int32_t head = view.distance[graph->triples[i].head],
                    tail = view.distance[graph->triples[i].tail];
            read +=
                (head >= 0 && head <= within.max_distance) + (tail >= 0 && tail <= within.max_distance);
        }
        if (read > edges) break;
    }
    oracle_view_free(&view);
    return oracle_references(out, graph, query, &within, 0);
}
