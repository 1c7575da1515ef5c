/* Heads on their own: over a finished run, over its exported arrays, over arrays that name their rows
 * in another order, and over arrays without inverse relations. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "failing_allocator.h"
#include "model/model.h"
#include "store/npy.h"
#include "store/safetensors.h"
#include "tables.h"

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

static const char *family(const char *folder) {
    static char path[96];
    snprintf(path, sizeof path, "%s/people", folder);
    vlp_family_options options = VLP_FAMILY_OPTIONS_INIT;
    options.families = 4;
    options.generations = 3;
    must(vlp_family_generate(NULL, path, &options));
    return path;
}

/* Trains; `more` are further settings, ended by NULL. */
static vlp_status train(const char *data, const char *run, const char *base, bool resume,
                        const char *const *more) {
    const char *settings[16] = {"steps=20",  "batch=32",      "negatives=8", "eval_every=10",
                                "threads=2", "save_every=10", "rate=0.01"};
    int32_t count = 7;
    for (; more && *more; more++) settings[count++] = *more;
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = count;
    options.base = base;
    options.resume = resume;
    return vlp_train(NULL, data, run, &options);
}

/* Whether a tensor of two runs has the same bytes. */
static bool same_tensor(const char *left, const char *right, const char *name) {
    vlp_safetensors *files[2] = {NULL, NULL};
    const vlp_tensor *tensors[2];
    must(vlp_safetensors_open(&files[0], support_path(left, "model.safetensors"), true));
    must(vlp_safetensors_open(&files[1], support_path(right, "model.safetensors"), true));
    for (int i = 0; i < 2; i++) {
        tensors[i] = vlp_safetensors_find(files[i], name);
        assert_non_null(tensors[i]);
    }
    size_t bytes = (size_t)(tensors[0]->shape[0] * tensors[0]->shape[1]) * sizeof(float);
    bool same = memcmp(tensors[0]->data, tensors[1]->data, bytes) == 0;
    vlp_safetensors_free(files[0]);
    vlp_safetensors_free(files[1]);
    return same;
}

static void export_run(const char *run, const char *folder) {
    vlp_run *opened = NULL;
    must(vlp_run_open(&opened, run, NULL));
    must(vlp_run_export(opened, folder));
    vlp_run_free(opened);
}

static vlp_metrics horizontal_of(const char *run) {
    vlp_run *opened = NULL;
    vlp_evaluation *evaluation = NULL;
    must(vlp_run_open(&opened, run, NULL));
    must(vlp_run_evaluate(&evaluation, opened, NULL));
    vlp_metrics found = evaluation->alone[VLP_HORIZONTAL];
    vlp_evaluation_free(evaluation);
    vlp_run_free(opened);
    return found;
}

/* Reverses the lines of folder/what.tsv; returns their count. */
static int64_t reverse_names(const char *folder, const char *what) {
    char file[32];
    char *names[512], text[1 << 16];
    snprintf(file, sizeof file, "%s.tsv", what);
    FILE *in = fopen(support_path(folder, file), "r");
    assert_non_null(in);
    size_t size = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[size] = '\0';
    int64_t count = 0;
    for (char *at = strtok(text, "\n"); at; at = strtok(NULL, "\n")) names[count++] = at;
    FILE *out = fopen(support_path(folder, file), "w");
    assert_non_null(out);
    for (int64_t i = count - 1; i >= 0; i--) fprintf(out, "%s\n", names[i]);
    fclose(out);
    return count;
}

/* Reverses the rows of folder/what.npy, `count` at a time. */
static void reverse_rows(const char *folder, const char *what, int64_t count) {
    char file[32];
    snprintf(file, sizeof file, "%s.npy", what);
    vlp_array array = {0};
    must(vlp_npy_read(&array, support_path(folder, file)));
    int64_t width = array.shape[1], parts = array.shape[0] / count;
    assert_int_equal(array.shape[0], parts * count);
    float *reversed = vlp_alloc((size_t)(array.shape[0] * width), sizeof *reversed);
    for (int64_t p = 0; p < parts; p++)
        for (int64_t i = 0; i < count; i++)
            memcpy(reversed + (p * count + i) * width, array.data + (p * count + count - 1 - i) * width,
                   (size_t)width * sizeof *reversed);
    vlp_tensor tensor = {what, VLP_F32, 2, {array.shape[0], width, 0, 0}, reversed};
    must(vlp_npy_write(support_path(folder, file), &tensor));
    vlp_free(reversed);
    vlp_array_free(&array);
}

/* Reverses an export: names and rows alike. */
static void reverse_export(const char *folder, int32_t kind, int32_t dim) {
    vlp_form form;
    vlp_model_array arrays[VLP_MAX_MODEL_ARRAYS];
    vlp_model_form(&form, &(vlp_model_options){.kind = kind, .dim = dim});
    int32_t count = vlp_model_arrays(arrays, vlp_model_row_of(kind), &form);
    reverse_rows(folder, "entities", reverse_names(folder, "entities"));
    int64_t relations = reverse_names(folder, "relations");
    for (int32_t i = 0; i < count; i++) reverse_rows(folder, arrays[i].name, relations);
}

/* An aggregator over a run, over its arrays, and over the arrays in another order, for every model: the
 * same bits, and the embeddings as they were. */
static void base_by_any_way(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[96];
    snprintf(data, sizeof data, "%s", family(folder));
    for (int32_t kind = 0; kind < VLP_MODELS; kind++) {
        const vlp_model_row *row = vlp_model_row_of(kind);
        char run[96], arrays[96], aggregators[3][96], model[32];
        snprintf(model, sizeof model, "model=%s", row->name);
        const char *plain[] = {model, "dim=6", "vertical=off", NULL};
        const char *aggregator[] = {model, "references=3", NULL};
        snprintf(run, sizeof run, "%s/%d", folder, kind);
        snprintf(arrays, sizeof arrays, "%s/%d-npy", folder, kind);
        for (int i = 0; i < 3; i++)
            snprintf(aggregators[i], sizeof aggregators[i], "%s/%d-%d", folder, kind, i);
        must(train(data, run, NULL, false, plain));
        must(train(data, aggregators[0], run, false, aggregator));
        export_run(run, arrays);
        must(train(data, aggregators[1], arrays, false, aggregator));
        reverse_export(arrays, kind, 6);
        must(train(data, aggregators[2], arrays, false, aggregator));
        for (int i = 0; i < 3; i++) {
            assert_true(same_tensor(run, aggregators[i], "entities"));
            if (i > 0 && row->to_arrays) continue; /* converted relations are rounded */
            assert_true(same_tensor(run, aggregators[i], "relations"));
            assert_true(same_tensor(aggregators[0], aggregators[i], "aggregator_output"));
        }
        vlp_metrics before = horizontal_of(run);
        for (int i = 1; i < 3; i++)
            assert_true(fabs(before.mrr - horizontal_of(aggregators[i]).mrr) < 1e-6);
    }
    support_remove(folder);
}

/* Relations without their inverses: each follows, and its score read backwards is the same. */
static void inverses_follow(void **state) {
    (void)state;
    for (int32_t kind = 0; kind < VLP_MODELS; kind++)
        for (int32_t norm = 0; norm < 2; norm++) {
            const vlp_backend *backend;
            vlp_compute *compute = NULL;
            vlp_model *model = NULL;
            vlp_model_options options = {kind, 5, kind == VLP_MODEL_TRANSR ? 3 : 0, norm, 4};
            must(vlp_backend_find(&backend, "cpu"));
            must(backend->open(&compute, 1));
            must(vlp_model_new(&model, backend, compute,
                               &(vlp_model_shape){options, 7, 2, components_of(false), {0}}, false));
            must(vlp_model_init(model, 3, 0.5));
            float *rows = vlp_model_relations(model)->value;
            vlp_model_row_of(kind)->inverse(rows + model->form.relation_width, rows, &model->form);
            float q[32], scores[2][7];
            for (int32_t h = 0; h < 7; h++)
                for (int32_t t = 0; t < 7; t++) {
                    for (int32_t side = 0; side < 2; side++) {
                        int32_t ends[2] = {side ? t : h, side ? h : t};
                        const float *entities = vlp_model_entities(model)->value;
                        backend->transform->query(
                            compute, q, &model->form,
                            &(vlp_related_rows){.count = 1,
                                                .rows = entities +
                                                        (int64_t)ends[0] * model->form.entity_width,
                                                .relations = &side,
                                                .relation_table = rows},
                            false);
                        must(backend->scores->all(
                            compute, scores[side], &model->form,
                            &(vlp_related_rows){
                                .count = 1, .rows = q, .relations = &side, .relation_table = rows},
                            entities, 7));
                        scores[side][0] = scores[side][ends[1]];
                    }
                    assert_true(fabsf(scores[0][0] - scores[1][0]) < 1e-4f);
                }
            vlp_model_free(model);
            backend->close(compute);
        }
}

static void expect_failure(vlp_status status, const char *part) {
    assert_int_not_equal(status, VLP_OK);
    if (!strstr(vlp_error_message(), part)) fail_msg("'%s' lacks '%s'", vlp_error_message(), part);
}

static void refuses(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[96], run[96], arrays[96], other[96];
    snprintf(data, sizeof data, "%s", family(folder));
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(arrays, sizeof arrays, "%s/npy", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    const char *plain[] = {"model=complex", "dim=6", "vertical=off", NULL};
    must(train(data, run, NULL, false, plain));
    export_run(run, arrays);
    const char *wide[] = {"dim=7", NULL}, *another[] = {"model=distmult", "dim=6", NULL};
    const char *off[] = {"vertical=off", NULL}, *alone[] = {"trains=head", NULL};
    expect_failure(train(data, other, run, false, wide), "has dim = 6, not 7");
    expect_failure(train(data, other, run, false, another), "has model = complex, not distmult");
    expect_failure(train(data, other, run, false, off),
                   "for training the aggregator (vertical = on) or the path model");
    expect_failure(train(data, other, NULL, false, alone),
                   "a base, which is a run or a folder of arrays");
    expect_failure(train(data, other, folder, false, NULL), "is neither a run");
    const char *narrow[] = {"model=complex", "dim=5", NULL};
    expect_failure(train(data, other, arrays, false, narrow), "has rows for dim = 6, not 5");
    /* A name too many, and a name that is missing. */
    const char *complex_model[] = {"model=complex", NULL};
    FILE *names = fopen(support_path(arrays, "relations.tsv"), "a");
    fprintf(names, "stranger\n");
    fclose(names);
    expect_failure(train(data, other, arrays, false, complex_model), "lines, and the array beside it");
    names = fopen(support_path(arrays, "relations.tsv"), "w");
    vlp_run *opened = NULL;
    must(vlp_run_open(&opened, run, NULL));
    int32_t relations = vlp_dataset_relation_count(vlp_run_dataset(opened));
    vlp_run_free(opened);
    for (int32_t i = 0; i < relations; i++) fprintf(names, "stranger_%d\n", i);
    fclose(names);
    expect_failure(train(data, other, arrays, false, complex_model), "has no row for");
    support_remove(folder);
}

/* Arrays that are no tables are refused, and nothing of them stays in memory. */
static void no_table(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[96], run[96];
    snprintf(data, sizeof data, "%s", family(folder));
    snprintf(run, sizeof run, "%s/run", folder);
    const vlp_tensor arrays[] = {{"scalar", VLP_F32, 0, {0}, &(float){1}},
                                 {"vector", VLP_F32, 1, {3, 0, 0, 0}, (float[]){1, 2, 3}},
                                 {"empty", VLP_F32, 2, {3, 0, 0, 0}, NULL}};
    const char *const messages[] = {"has 0 dimensions", "has 1 dimensions", "dim"};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        must(vlp_npy_write(support_path(folder, "entities.npy"), &arrays[i]));
        const char *more[] = {"model=transe", NULL};
        failing_allocator memory;
        failing_allocator_install(&memory, 0);
        vlp_status status = train(data, run, folder, false, more);
        failing_allocator_remove(&memory);
        expect_failure(status, messages[i]);
    }
    support_remove(folder);
}

/* A head's run goes on without its base. */
static void resumes(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[96], run[96], whole[96], parts[96];
    snprintf(data, sizeof data, "%s", family(folder));
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(parts, sizeof parts, "%s/parts", folder);
    const char *plain[] = {"model=complex", "dim=6", "vertical=off", NULL};
    const char *head[] = {"references=3", NULL};
    must(train(data, run, NULL, false, plain));
    must(train(data, whole, run, false, head));
    must(train(data, parts, run, false, head));
    /* Back to the state before the last: step 10 of 20. */
    assert_int_equal(rename(support_path(parts, "state.previous.safetensors"),
                            support_path(parts, "state.safetensors")),
                     0);
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.resume = true;
    must(vlp_train(NULL, data, parts, &options));
    assert_true(same_tensor(whole, parts, "aggregator_output"));
    assert_true(same_tensor(run, parts, "entities"));
    support_remove(folder);
}

/* The control: a head without references over the same embeddings, kept and used again; its f_g is the
 * run's own. A run without a head has none. */
static void control(void **state) {
    (void)state;
    const char *folder = support_folder();
    char data[96], run[96], plain[96], inside[112];
    snprintf(data, sizeof data, "%s", family(folder));
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(plain, sizeof plain, "%s/plain", folder);
    snprintf(inside, sizeof inside, "%s/control", run);
    const char *with[] = {"model=complex", "dim=6", "references=3", NULL};
    const char *without[] = {"model=complex", "dim=6", "vertical=off", NULL};
    must(train(data, run, NULL, false, with));
    must(train(data, plain, NULL, false, without));
    vlp_evaluation_options options = VLP_EVALUATION_OPTIONS_INIT;
    options.control = true;
    double mrr[2];
    for (int i = 0; i < 2; i++) {
        vlp_run *opened = NULL;
        vlp_evaluation *evaluation = NULL;
        must(vlp_run_open(&opened, run, NULL));
        must(vlp_run_evaluate(&evaluation, opened, &options));
        assert_int_equal(evaluation->control.queries, evaluation->queries);
        assert_true(fabs(evaluation->control_gain.middle -
                         (evaluation->both.mrr - evaluation->control.mrr)) < 1e-9);
        mrr[i] = evaluation->control.mrr;
        vlp_evaluation_free(evaluation);
        vlp_run_free(opened);
    }
    assert_true(mrr[0] == mrr[1]);
    assert_true(same_tensor(run, inside, "entities"));
    assert_true(horizontal_of(run).mrr == horizontal_of(inside).mrr);
    vlp_run *opened = NULL;
    vlp_evaluation *evaluation = NULL;
    must(vlp_run_open(&opened, plain, NULL));
    expect_failure(vlp_run_evaluate(&evaluation, opened, &options), "has no aggregator");
    vlp_run_free(opened);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_by_any_way), cmocka_unit_test(inverses_follow), cmocka_unit_test(refuses),
        cmocka_unit_test(no_table),        cmocka_unit_test(resumes),         cmocka_unit_test(control)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
