#include "tiny_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

void near(double got, double expected) {
    if (fabs(got - expected) <= 2e-4 * (1 + fabs(expected))) return;
    fail_msg("%.9g is not near %.9g", got, expected);
}

/* ---- Making one ---------------------------------------------------------------------------------- */

static void write_split(FILE *file, oracle_random *random, int32_t entities, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        fprintf(file, "e%d\tr%d\te%d\n", oracle_below(random, 1 + oracle_below(random, entities)),
                oracle_below(random, 3), oracle_below(random, entities));
}

static void write_data(const char *folder, uint64_t seed) {
    static const struct {
        const char *name;
        int32_t triples, entities; /* a few of the entities are in valid and test only */
    } splits[] = {{"train.txt", 90, 24}, {"valid.txt", 14, 26}, {"test.txt", 14, 26}};
    oracle_random random = {seed, 0, 0};
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(support_path(folder, splits[i].name), "w");
        assert_non_null(file);
        /* Every entity is in train. */
        for (int32_t e = 0; i == 0 && e < 26; e++) fprintf(file, "e%d\tr%d\te%d\n", e, e % 3, e / 2);
        write_split(file, &random, splits[i].entities, splits[i].triples);
        fclose(file);
    }
}

static void take_tables(tiny_run *tiny) {
    const vlp_model *model = tiny->run->model;
    tiny->head.form = &model->form;
    for (int id = 0; id < TABLES; id++) {
        const vlp_table *table = &model->tables[id];
        size_t count = (size_t)table->rows * (size_t)table->width;
        tiny->tables[id] = calloc(count + 1, sizeof(double));
        float *values = calloc(count + 1, sizeof *values);
        assert_true(tiny->tables[id] && values);
        if (count > 0)
            model->backend->memory->download(model->compute, values, table->value,
                                             count * sizeof *values);
        for (size_t i = 0; i < count; i++) tiny->tables[id][i] = (double)values[i];
        free(values);
        tiny->head.tables[id] = tiny->tables[id];
    }
}

void tiny_run_train(tiny_run *out, const char *data, const char *const *settings) {
    const char *all[24] = {"steps=12",  "batch=32",     "negatives=6",  "dim=6",
                           "rate=0.03", "references=4", "eval_every=0", "threads=2"};
    int32_t count = 8;
    for (; settings && *settings; settings++) all[count++] = *settings;
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = all;
    options.setting_count = count;
    must(vlp_train(NULL, data, out->path, &options));
    must(vlp_run_open(&out->run, out->path, NULL));
    out->dataset = vlp_run_dataset(out->run);
    out->entities = vlp_dataset_entity_count(out->dataset);
    out->relations = vlp_dataset_relation_count(out->dataset);
    if (out->run->settings.vertical)
        out->run->progress.mixture = (vlp_mixture){{[VLP_HORIZONTAL] = 0.3f, [VLP_VERTICAL] = 1}};
    take_tables(out);
}

void tiny_run_make(tiny_run *out, const char *const *settings, uint64_t seed) {
    memset(out, 0, sizeof *out);
    snprintf(out->folder, sizeof out->folder, "%s", support_folder());
    snprintf(out->data, sizeof out->data, "%s", out->folder);
    snprintf(out->path, sizeof out->path, "%s/run", out->folder);
    write_data(out->folder, seed);
    tiny_run_train(out, out->data, settings);
}

void tiny_run_free(tiny_run *tiny) {
    vlp_run_free(tiny->run);
    for (int id = 0; id < TABLES; id++) free(tiny->tables[id]);
    support_remove(tiny->folder);
}

/* ---- Its scores ---------------------------------------------------------------------------------- */

enum { WIDEST = 64, MAX_REFERENCES = 64 };

tiny_score tiny_run_score(const tiny_run *tiny, vlp_query query, const vlp_triple *edges, int32_t count,
                          int32_t without, int32_t entity) {
    const vlp_form *form = &tiny->run->model->form;
    double q[WIDEST], k[WIDEST], output[WIDEST];
    const double *rows = tiny->tables[VLP_TABLE_ENTITIES];
    const double *relation =
        tiny->tables[VLP_TABLE_RELATIONS] + (int64_t)query.relation * form->relation_width;
    const double *answer = rows + (int64_t)entity * form->entity_width;
    reference_query(form, q, rows + (int64_t)query.entity * form->entity_width, relation, false);
    reference_answer(form, k, answer, relation);
    tiny_score score = {.g = reference_similarity(form, q, k), .c = (double)NAN};
    vlp_mixture mixture = vlp_run_mixture(tiny->run);
    score.f = (double)mixture.weights[VLP_HORIZONTAL] * score.g;
    if (!tiny->run->settings.vertical) return score;
    int32_t heads[MAX_REFERENCES], answers[MAX_REFERENCES], used = 0;
    bool forward = query.relation < tiny->relations;
    for (int32_t i = 0; i < count; i++) {
        if (i == without) continue;
        heads[used] = forward ? edges[i].head : edges[i].tail;
        answers[used++] = forward ? edges[i].tail : edges[i].head;
    }
    reference_aggregator_output(&tiny->head, output, query.entity, query.relation, heads, answers, used);
    score.c = reference_cosine(output, answer, form->entity_width);
    score.f += (double)mixture.weights[VLP_VERTICAL] * score.c;
    return score;
}

int32_t tiny_run_references(const tiny_run *tiny, vlp_query query, vlp_triple *edges) {
    vlp_references *found = NULL;
    vlp_reference_options options = VLP_REFERENCE_OPTIONS_INIT;
    options.count = tiny->run->settings.references;
    must(vlp_references_find(&found, tiny->dataset, &query, 1, &options));
    int32_t count;
    int64_t triples;
    const vlp_reference *list = vlp_references_get(found, 0, &count);
    const vlp_triple *train = vlp_dataset_triples(tiny->dataset, VLP_TRAIN, &triples);
    for (int32_t i = 0; i < count; i++) edges[i] = train[list[i].edge];
    vlp_references_free(found);
    return count;
}

tiny_score tiny_run_triple(const tiny_run *tiny, vlp_triple triple) {
    int64_t count, own = -1;
    const vlp_triple *train = vlp_dataset_triples(tiny->dataset, VLP_TRAIN, &count);
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&train[i], &triple, sizeof triple) == 0) own = i;
    vlp_query queries[2] = {{triple.head, triple.relation, own},
                            {triple.tail, triple.relation + tiny->relations, own}};
    int32_t answers[2] = {triple.tail, triple.head};
    tiny_score mean = {0};
    for (int i = 0; i < 2; i++) {
        vlp_triple edges[MAX_REFERENCES];
        int32_t used = tiny_run_references(tiny, queries[i], edges);
        tiny_score score = tiny_run_score(tiny, queries[i], edges, used, -1, answers[i]);
        mean.f += score.f / 2;
        mean.g += score.g / 2;
        mean.c += score.c / 2;
    }
    return mean;
}
