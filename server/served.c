#include "served.h"

#include <stdlib.h>
#include <string.h>

/* ---- The graph ----------------------------------------------------------------------------------- */

/* Sorts edges by their entity, keeping the order that `order` has them in. */
static bool gather(served_edges *out, const served *run, const int32_t *order, bool by_head) {
    out->offsets = calloc((size_t)run->entities + 2, sizeof *out->offsets);
    out->edges = malloc(((size_t)run->triple_count + 1) * sizeof *out->edges);
    if (!out->offsets || !out->edges) return false;
    int64_t *next = out->offsets + 1; /* where the next edge of an entity goes */
    for (int64_t i = 0; i < run->triple_count; i++)
        next[(by_head ? run->triples[i].head : run->triples[i].tail) + 1]++;
    for (int32_t e = 0; e < run->entities; e++) next[e + 1] += next[e];
    for (int64_t i = 0; i < run->triple_count; i++) {
        vlp_triple triple = run->triples[order[i]];
        out->edges[next[by_head ? triple.head : triple.tail]++] = order[i];
    }
    return true;
}

static bool index_graph(served *run) {
    int32_t *order = calloc((size_t)run->triple_count + 1, sizeof *order);
    int64_t *next = calloc((size_t)run->relations + 1, sizeof *next);
    run->counts = calloc((size_t)run->relations + 1, sizeof *run->counts);
    run->degrees = calloc((size_t)run->entities + 1, sizeof *run->degrees);
    bool done = order && next && run->counts && run->degrees;
    if (!done) goto out;
    for (int64_t i = 0; i < run->triple_count; i++) {
        vlp_triple triple = run->triples[i];
        run->counts[triple.relation]++;
        run->degrees[triple.head]++;
        if (triple.tail != triple.head) run->degrees[triple.tail]++;
    }
    for (int32_t r = 1; r < run->relations; r++) next[r] = next[r - 1] + run->counts[r - 1];
    for (int64_t i = 0; i < run->triple_count; i++) order[next[run->triples[i].relation]++] = (int32_t)i;
    done = gather(&run->out, run, order, true) && gather(&run->in, run, order, false);
out:
    free(order);
    free(next);
    return done;
}

int64_t served_edge(const served *run, vlp_triple triple) {
    int64_t low = run->out.offsets[triple.head], high = run->out.offsets[triple.head + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (run->triples[run->out.edges[middle]].relation < triple.relation)
            low = middle + 1;
        else
            high = middle;
    }
    /* Triples of one relation are in the order of the graph. */
    for (high = run->out.offsets[triple.head + 1]; low < high; low++) {
        const vlp_triple *found = &run->triples[run->out.edges[low]];
        if (found->relation != triple.relation) break;
        if (found->tail == triple.tail) return run->out.edges[low];
    }
    return -1;
}

/* ---- Names --------------------------------------------------------------------------------------- */

enum { FREE = -1 };

static uint32_t hash(const char *text) {
    uint64_t value = 14695981039346656037u;
    for (; *text; text++) value = (value ^ (unsigned char)*text) * 1099511628211u;
    return (uint32_t)(value ^ value >> 32);
}

/* A slot holds an entity e, or -e - 2 where several have its text. */
static int32_t entity_of(int32_t slot) {
    return slot >= 0 ? slot : -slot - 2;
}

typedef const char *text_function(const vlp_dataset *data, int32_t entity);

static int32_t *slot_of(const served *run, int32_t *table, text_function *text_of, const char *text) {
    uint32_t at = hash(text) & (run->slots - 1);
    while (table[at] != FREE && strcmp(text_of(run->data, entity_of(table[at])), text) != 0)
        at = (at + 1) & (run->slots - 1);
    return &table[at];
}

static int32_t *index_texts(const served *run, text_function *text_of) {
    int32_t *table = malloc(run->slots * sizeof *table);
    if (!table) return NULL;
    for (uint32_t i = 0; i < run->slots; i++) table[i] = FREE;
    for (int32_t e = 0; e < run->entities; e++) {
        const char *text = text_of(run->data, e);
        if (!text) continue;
        int32_t *slot = slot_of(run, table, text_of, text);
        if (*slot == FREE)
            *slot = e;
        else if (*slot >= 0)
            *slot = -*slot - 2;
    }
    return table;
}

static const char *name_of(const void *user, int32_t entity) {
    return vlp_dataset_entity_name(((const served *)user)->data, entity);
}

static const char *label_of(const void *user, int32_t entity) {
    return vlp_dataset_entity_label(((const served *)user)->data, entity);
}

static bool index_names(served *run) {
    run->slots = 16;
    while (run->slots < 2 * (uint32_t)run->entities) run->slots *= 2;
    run->by_name = index_texts(run, vlp_dataset_entity_name);
    run->by_label = index_texts(run, vlp_dataset_entity_label);
    search_source source = {run->entities, name_of, label_of, run, run->degrees};
    run->search = search_index_make(&source);
    return run->by_name && run->by_label && run->search;
}

/* Names of the entities that a search finds, for a message. */
static void nearest(char *out, size_t size, const served *run, const char *text) {
    int32_t found[3];
    bool more;
    int32_t count = search_index_find(found, &more, run->search, text, 3);
    size_t used = 0;
    out[0] = '\0';
    for (int32_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s'%.80s'", i ? ", " : "",
                                 vlp_dataset_entity_name(run->data, found[i]));
}

int32_t served_entity(const served *run, http_reply *failure, const char *name) {
    int32_t entity = *slot_of(run, run->by_name, vlp_dataset_entity_name, name);
    if (entity == FREE) entity = *slot_of(run, run->by_label, vlp_dataset_entity_label, name);
    if (entity >= 0) return entity;
    char known[300];
    nearest(known, sizeof known, run, name);
    if (entity != FREE)
        reply_error(failure, 404, "Several entities have the label '%.80s'; give the name of one: %s.",
                    name, known);
    else if (known[0])
        reply_error(failure, 404, "There is no entity '%.80s'; the nearest known: %s.", name, known);
    else
        reply_error(failure, 404, "There is no entity '%.80s', and none that is near.", name);
    return -1;
}

int32_t served_relation(const served *run, http_reply *failure, const char *name) {
    int32_t relation = -1;
    if (vlp_dataset_find_relation(&relation, run->data, name) != VLP_OK)
        reply_error(failure, 404, "There is no such relation: %s.", vlp_error_message());
    return relation;
}

/* ---- Life ---------------------------------------------------------------------------------------- */

static char *last_part(const char *folder) {
    char *path = realpath(folder, NULL);
    if (!path) return strdup(folder);
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash && slash[1] ? slash + 1 : path);
    free(path);
    return name;
}

static void served_free(served *run) {
    if (!run) return;
    for (int i = 0; i < VLP_SPLITS; i++) free(run->evaluations[i].text);
    free(run->map.points);
    search_index_free(run->search);
    free(run->by_name);
    free(run->by_label);
    free(run->out.offsets);
    free(run->out.edges);
    free(run->in.offsets);
    free(run->in.edges);
    free(run->degrees);
    free(run->counts);
    free(run->name);
    vlp_history_free(run->history);
    vlp_run_free(run->run);
    pthread_mutex_destroy(&run->map.lock);
    pthread_mutex_destroy(&run->lock);
    free(run);
}

vlp_status served_open(served **out, const served_options *options) {
    *out = NULL;
    served *run = calloc(1, sizeof *run);
    if (!run) return VLP_ERROR_MEMORY;
    atomic_init(&run->holders, 1);
    pthread_mutex_init(&run->lock, NULL);
    pthread_mutex_init(&run->map.lock, NULL);
    vlp_status status = vlp_run_open(&run->run, options->folder, &options->run);
    if (status == VLP_OK && options->graph)
        status = vlp_run_use_graph(NULL, run->run, options->graph, options->run.observer);
    if (status == VLP_OK) status = vlp_run_history(&run->history, run->run);
    if (status == VLP_OK) status = vlp_dataset_describe(&run->stats, vlp_run_dataset(run->run));
    if (status != VLP_OK) goto out;
    run->device = options->run.device ? options->run.device : "auto";
    vlp_run_describe(&run->info, run->run);
    run->data = vlp_run_graph_dataset(run->run);
    run->triples = vlp_run_graph_triples(run->run, &run->triple_count);
    run->entities = vlp_dataset_entity_count(run->data);
    run->relations = vlp_dataset_relation_count(run->data);
    run->name = last_part(options->folder);
    for (int i = 0; i < VLP_SPLITS; i++) {
        run->evaluations[i].run = run;
        run->evaluations[i].split = (vlp_split)i;
    }
    if (!run->name || !index_graph(run) || !index_names(run)) status = VLP_ERROR_MEMORY;
out:
    if (status == VLP_OK)
        *out = run;
    else
        served_free(run);
    return status;
}

served *served_hold(served *run) {
    atomic_fetch_add(&run->holders, 1);
    return run;
}

void served_release(served *run) {
    if (run && atomic_fetch_sub(&run->holders, 1) == 1) served_free(run);
}
