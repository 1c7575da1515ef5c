/* Steps of a trainer by themselves: what they move, what a lazy optimizer leaves alone, logits in
 * blocks, and numbers that are not finite. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "learn/trainer_internal.h"
#include "tables.h"

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* A trainer over the family, with the settings of its caller. */
typedef struct steps {
    vlp_settings settings;
    vlp_dataset *dataset;
    vlp_compute *compute;
    vlp_model *model;
    vlp_trainer *trainer;
} steps;

static void open_steps(steps *work, const char *const *texts) {
    const vlp_backend *backend = lab_backend();
    vlp_settings *settings = &work->settings;
    vlp_settings_default(settings);
    for (; *texts; texts++) {
        char key[32];
        const char *equals = strchr(*texts, '=');
        snprintf(key, sizeof key, "%.*s", (int)(equals - *texts), *texts);
        must(vlp_settings_set(settings, key, equals + 1, "test"));
    }
    must(vlp_settings_check(settings));
    must(vlp_dataset_open(&work->dataset, support_family(6, 3), NULL));
    must(backend->open(&work->compute, 2));
    vlp_model_shape shape = vlp_settings_shape(settings, work->dataset);
    must(vlp_model_new(&work->model, backend, work->compute, &shape, true));
    must(vlp_model_init(work->model, 0, settings->init_scale));
    must(vlp_trainer_new(&work->trainer, work->dataset, settings, work->model, NULL));
}

static void close_steps(steps *work) {
    vlp_trainer_free(work->trainer);
    vlp_model_free(work->model);
    lab_backend()->close(work->compute);
    vlp_dataset_free(work->dataset);
}

/* The numbers of a table; the caller frees them. */
static float *numbers_of(const steps *work, int id) {
    const vlp_table *table = &work->model->tables[id];
    size_t bytes = (size_t)table->rows * (size_t)table->width * sizeof(float);
    float *numbers = malloc(bytes);
    assert_non_null(numbers);
    must(lab_backend()->memory->download(work->compute, numbers, table->value, bytes));
    return numbers;
}

/* A lazy optimizer leaves the rows alone that a step has nothing to say of. */
static void lazy_moves_few(void **state) {
    (void)state;
    const char *const cases[][9] = {
        {"optimizer=lazy-adam", "batch=2", "negatives=3", "references=1", "dim=4", NULL},
        {"optimizer=lazy-adam", "batch=2", "negatives=3", "references=1", "dim=4", "candidates=4",
         "vertical_gradient=on", NULL}};
    for (int i = 0; i < 2; i++) {
        steps work = {.trainer = NULL};
        open_steps(&work, cases[i]);
        const vlp_table *table = vlp_model_entities(work.model);
        /* Answers, negatives, head entities; with vertical_gradient also both ends of references, and
         * candidates.
         */
        int64_t most = 2 * 4 + 2 + (i == 1 ? 2 * 2 + 2 + 4 : 0);
        assert_true(most < table->rows);
        float *before = numbers_of(&work, VLP_TABLE_ENTITIES);
        for (int64_t step = 0; step < 6; step++) {
            must(vlp_trainer_step(NULL, work.trainer, step));
            float *after = numbers_of(&work, VLP_TABLE_ENTITIES);
            int64_t moved = 0;
            for (int64_t row = 0; row < table->rows; row++)
                moved += memcmp(before + row * table->width, after + row * table->width,
                                (size_t)table->width * sizeof *after) != 0;
            assert_in_range(moved, 1, most);
            free(before);
            before = after;
        }
        free(before);
        close_steps(&work);
    }
}

/* Adagrad's first step with epsilon 1 moves a number by - rate g / (|g| + 1). Returns the largest g. */
static float check_moved(const steps *work, int id, const float *before, float rate, float scale) {
    const vlp_table *table = &work->model->tables[id];
    int64_t count = table->rows * table->width;
    float *after = numbers_of(work, id), *grad = malloc((size_t)count * sizeof *grad), most = 0;
    assert_non_null(grad);
    must(
        lab_backend()->memory->download(work->compute, grad, table->grad, (size_t)count * sizeof *grad));
    for (int64_t i = 0; i < count; i++) {
        float g = scale * grad[i], expected = before[i] - rate * g / (fabsf(g) + 1);
        if (fabsf(after[i] - expected) > 1e-6f + 1e-4f * fabsf(rate * g))
            fail_msg("%s, number %lld: %g, expected %g", table->name, (long long)i, (double)after[i],
                     (double)expected);
        most = fmaxf(most, fabsf(grad[i]));
    }
    free(after);
    free(grad);
    return most;
}

/* The norm of the aggregator's gradient. */
static float aggregator_norm(const steps *work) {
    double sum = 0;
    for (int id = TABLE_NODE; id < TABLES; id++) {
        const vlp_table *table = &work->model->tables[id];
        size_t count = (size_t)(table->rows * table->width);
        float *grad = malloc(count * sizeof *grad);
        assert_non_null(grad);
        must(lab_backend()->memory->download(work->compute, grad, table->grad, count * sizeof *grad));
        for (size_t i = 0; i < count; i++) sum += (double)grad[i] * (double)grad[i];
        free(grad);
    }
    return (float)sqrt(sum);
}

/* A step moves the head, and relations, by their gradients, each with its own rate, and clips the head
 * by itself. */
static void tables_follow_their_gradients(void **state) {
    (void)state;
    static const char *const clips[] = {"clip=0", "clip=0.001"}, *const precisions[] = {
                                                                     "precision=fp32", "precision=bf16"};
    for (int i = 0; i < 4; i++) {
        const char *const settings[] = {"dim=8",
                                        "batch=32",
                                        "negatives=8",
                                        "rate=0.5",
                                        "vertical_rate=0.25",
                                        "optimizer=adagrad",
                                        "epsilon=1",
                                        "schedule=constant",
                                        precisions[i / 2],
                                        clips[i % 2],
                                        NULL};
        steps work = {.trainer = NULL};
        open_steps(&work, settings);
        float *before[TABLES];
        for (int id = 0; id < TABLES; id++) before[id] = numbers_of(&work, id);
        vlp_step_loss loss;
        must(vlp_trainer_step(&loss, work.trainer, 0));
        float norm = aggregator_norm(&work), clip = (float)work.settings.clip;
        assert_true(norm > 0.002f); /* there is something to clip */
        for (int id = TABLE_NODE; id < TABLES; id++)
            assert_true(check_moved(&work, id, before[id], 0.25f, clip > 0 ? clip / norm : 1) > 0);
        if (clip == 0)
            assert_true(check_moved(&work, VLP_TABLE_RELATIONS, before[VLP_TABLE_RELATIONS], 0.5f, 1) >
                        0);
        for (int id = 0; id < TABLES; id++) free(before[id]);
        close_steps(&work);
    }
}

/* Logits are made in as many blocks as memory asks for: that changes nothing but the last digits. */
static void blocks_of_logits(void **state) {
    (void)state;
    const char *const cases[][9] = {
        {"model=complex", "loss=cross-entropy", "batch=60", "dim=8", "rate=0.05", NULL},
        {"model=complex", "loss=cross-entropy", "batch=60", "dim=8", "rate=0.05", "vertical_gradient=on",
         NULL},
        {"model=complex", "loss=cross-entropy", "batch=60", "dim=8", "rate=0.05", "precision=bf16",
         NULL},
        {"model=complex", "loss=kvsall", "batch=60", "dim=8", "rate=0.05", "label_smoothing=0.1",
         "dropout=0.2", NULL},
        {"model=complex", "loss=kvsall", "batch=60", "dim=8", "rate=0.05", "precision=bf16", NULL},
        {"model=rotate", "batch=60", "dim=8", "rate=0.05", "precision=bf16", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float *numbers[2][2];
        int64_t counts[2] = {0, 0};
        const int tables[2] = {VLP_TABLE_ENTITIES, TABLE_OUTPUT};
        for (int small = 0; small < 2; small++) {
            steps work = {.trainer = NULL};
            open_steps(&work, cases[i]);
            if (small) work.trainer->block = 7;
            for (int64_t step = 0; step < 3; step++) must(vlp_trainer_step(NULL, work.trainer, step));
            for (int t = 0; t < 2; t++) {
                numbers[small][t] = numbers_of(&work, tables[t]);
                counts[t] = work.model->tables[tables[t]].rows * work.model->tables[tables[t]].width;
            }
            close_steps(&work);
        }
        for (int t = 0; t < 2; t++) {
            double difference = 0, size = 0;
            for (int64_t j = 0; j < counts[t]; j++) {
                difference += pow((double)numbers[0][t][j] - (double)numbers[1][t][j], 2);
                size += pow((double)numbers[0][t][j], 2);
            }
            if (!(difference <= 1e-5 * size))
                fail_msg("case %zu: off by %g", i, sqrt(difference / size));
            free(numbers[0][t]);
            free(numbers[1][t]);
        }
    }
}

/* ---- Steps by hand --------------------------------------------------------------------- */

/* DistMult's loss of a batch, from tables in double: cross-entropy over all entities and over all
 * relations, and N3. */
typedef struct by_hand {
    double *tables[2]; /* entities, relations */
    int32_t entities, relations, dim, batch;
    const int32_t *heads, *ids, *answers;
    double n3, relation_prediction;
    bool *known; /* (batch, entities) which entities are answers; NULL: 1-to-All */
    bool kvsall; /* `known` are the answers of keys, not what is excluded from the negatives */
    double smoothing;
    double *kept; /* (batch, dim) factors of q; NULL: no dropout */
} by_hand;

static double *row_of(const by_hand *one, int table, int32_t id) {
    return one->tables[table] + (int64_t)id * one->dim;
}

static double score_of(const by_hand *one, int32_t head, int32_t relation, int32_t answer) {
    double sum = 0;
    for (int32_t j = 0; j < one->dim; j++)
        sum += row_of(one, 0, head)[j] * row_of(one, 1, relation)[j] * row_of(one, 0, answer)[j];
    return sum;
}

/* The score of query i, with dropout. */
static double dropped_score(const by_hand *one, int32_t i, int32_t answer) {
    double sum = 0;
    for (int32_t j = 0; j < one->dim; j++)
        sum += (one->kept ? one->kept[i * one->dim + j] : 1) * row_of(one, 0, one->heads[i])[j] *
               row_of(one, 1, one->ids[i])[j] * row_of(one, 0, answer)[j];
    return sum;
}

static double n3_of(const double *row, int32_t dim) {
    double sum = 0;
    for (int32_t j = 0; j < dim; j++) sum += fabs(row[j] * row[j] * row[j]);
    return sum;
}

/* Whether a triple, asked either way, is one of the training triples. */
static bool is_known(const by_hand *one, const vlp_dataset *dataset, int32_t head, int32_t relation,
                     int32_t answer) {
    int64_t count;
    const vlp_triple *train = vlp_dataset_triples(dataset, VLP_TRAIN, &count);
    bool forward = relation < one->relations / 2;
    vlp_triple asked = {forward ? head : answer, forward ? relation : relation - one->relations / 2,
                        forward ? answer : head};
    for (int64_t j = 0; j < count; j++)
        if (memcmp(&train[j], &asked, sizeof asked) == 0) return true;
    return false;
}

/* The paper's L2 with all negatives, weighted evenly. known (batch, entities). */
static double negatives_by_hand(const by_hand *one) {
    double loss = 0;
    for (int32_t i = 0; i < one->batch; i++) {
        double gold = dropped_score(one, i, one->answers[i]), sum = 0, count = 0;
        for (int32_t e = 0; e < one->entities; e++) {
            if (one->known[i * one->entities + e]) continue;
            sum += log(1 + exp(dropped_score(one, i, e)));
            count++;
        }
        loss += 0.5 * (log(1 + exp(-gold)) + sum / count);
    }
    return loss / one->batch;
}

/* Binary cross-entropy with all entities, and N3 of the triple that was drawn. */
static double kvsall_by_hand(const by_hand *one) {
    double loss = 0;
    for (int32_t i = 0; i < one->batch; i++) {
        for (int32_t e = 0; e < one->entities; e++) {
            double target = one->known[i * one->entities + e] ? 1 - one->smoothing
                                                              : one->smoothing / (one->entities - 1);
            double score = dropped_score(one, i, e);
            loss += target * log(1 + exp(-score)) + (1 - target) * log(1 + exp(score));
        }
        loss += one->n3 * (n3_of(row_of(one, 0, one->heads[i]), one->dim) +
                           n3_of(row_of(one, 1, one->ids[i]), one->dim) +
                           n3_of(row_of(one, 0, one->answers[i]), one->dim));
    }
    return loss / one->batch;
}

static double loss_by_hand(const void *context) {
    const by_hand *one = context;
    if (one->kvsall) return kvsall_by_hand(one);
    if (one->known) return negatives_by_hand(one);
    double loss = 0;
    for (int32_t i = 0; i < one->batch; i++) {
        int32_t h = one->heads[i], r = one->ids[i], t = one->answers[i];
        double gold = dropped_score(one, i, t), entities = 0, relations = 0;
        for (int32_t e = 0; e < one->entities; e++) entities += exp(dropped_score(one, i, e));
        for (int32_t k = 0; k < one->relations; k++) relations += exp(score_of(one, h, k, t));
        loss += log(entities) - gold;
        loss += one->relation_prediction * (log(relations) - score_of(one, h, r, t));
        loss += one->n3 * (n3_of(row_of(one, 0, h), one->dim) + n3_of(row_of(one, 1, r), one->dim) +
                           n3_of(row_of(one, 0, t), one->dim));
    }
    return loss / one->batch;
}

/* The chosen queries are of the training triples, asked either way. */
static void check_batch(const by_hand *one, const vlp_dataset *dataset) {
    for (int32_t i = 0; i < one->batch; i++)
        assert_true(is_known(one, dataset, one->heads[i], one->ids[i], one->answers[i]));
}

static bool *find_known(const by_hand *one, const vlp_dataset *dataset) {
    bool *known = calloc((size_t)one->batch * (size_t)one->entities, sizeof *known);
    assert_non_null(known);
    for (int32_t i = 0; i < one->batch * one->entities; i++)
        known[i] = is_known(one, dataset, one->heads[i / one->entities], one->ids[i / one->entities],
                            i % one->entities);
    return known;
}

static double *doubles_of(const steps *work, int id) {
    int64_t count = work->model->tables[id].rows * work->model->tables[id].width;
    float *numbers = numbers_of(work, id);
    double *out = malloc((size_t)count * sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < count; i++) out[i] = (double)numbers[i];
    free(numbers);
    return out;
}

static int32_t *ids_of(const steps *work, const int32_t *from, int32_t count) {
    int32_t *out = malloc((size_t)count * sizeof *out);
    assert_non_null(out);
    must(lab_backend()->memory->download(work->compute, out, from, (size_t)count * sizeof *out));
    return out;
}

/* What the step multiplied the numbers of q by: 0, or 1 / (1 - dropout). */
static double *find_kept(const steps *work) {
    const vlp_trainer *trainer = work->trainer;
    const vlp_horizontal_state *horizontal = trainer->states[VLP_HORIZONTAL];
    int32_t count = trainer->batch * work->model->form.query_width, zeros = 0;
    double kept = 1 / (1 - work->settings.dropout), *out = malloc((size_t)count * sizeof *out);
    float *q = malloc((size_t)count * sizeof *q), *dropped = malloc((size_t)count * sizeof *q);
    assert_true(out && q && dropped);
    must(lab_backend()->memory->download(work->compute, q, trainer->q, (size_t)count * sizeof *q));
    must(lab_backend()->memory->download(work->compute, dropped, horizontal->dropped_q,
                                         (size_t)count * sizeof *q));
    for (int32_t i = 0; i < count; i++) {
        out[i] = dropped[i] == 0.0f ? 0 : kept;
        zeros += dropped[i] == 0.0f;
        assert_true(fabs((double)dropped[i] - out[i] * (double)q[i]) < 1e-4);
    }
    assert_true(zeros > 0 && zeros < count);
    free(q);
    free(dropped);
    return out;
}

/* Adagrad's first step with rate and epsilon 1 is -g / (|g| + 1): the gradient can be read off it. */
static void check_by_hand(const char *const *own) {
    static const char *const common[] = {"model=distmult",    "vertical=off",      "dim=3",  "batch=16",
                                         "query_weights=off", "optimizer=adagrad", "rate=1", "epsilon=1",
                                         "schedule=constant", "init_scale=0.5"};
    enum { COMMON = sizeof common / sizeof *common, MOST = 16 };
    const char *settings[MOST] = {NULL};
    memcpy(settings, common, sizeof common);
    for (int i = 0; own[i]; i++) {
        assert_true(COMMON + i < MOST - 1);
        settings[COMMON + i] = own[i];
    }
    steps work = {.trainer = NULL};
    open_steps(&work, settings);
    int32_t batch = work.trainer->batch;
    by_hand one = {.entities = work.model->entities,
                   .relations = work.model->relations,
                   .dim = work.settings.dim,
                   .batch = batch,
                   .n3 = work.settings.n3,
                   .smoothing = work.settings.label_smoothing,
                   .kvsall = work.settings.loss == VLP_LOSS_KVSALL,
                   .relation_prediction = work.settings.relation_prediction};
    for (int t = 0; t < 2; t++) one.tables[t] = doubles_of(&work, t);
    vlp_step_loss loss;
    must(vlp_trainer_step(&loss, work.trainer, 0));
    const vlp_batch *chosen = &work.trainer->chosen;
    int32_t *heads = ids_of(&work, chosen->heads, batch), *ids = ids_of(&work, chosen->relations, batch);
    int32_t *answers = ids_of(&work, chosen->answers, batch);
    one.heads = heads;
    one.ids = ids;
    one.answers = answers;
    check_batch(&one, work.dataset);
    if (work.settings.loss != VLP_LOSS_CROSS_ENTROPY) one.known = find_known(&one, work.dataset);
    if (work.settings.dropout > 0) one.kept = find_kept(&work);
    double expected = loss_by_hand(&one);
    lab_expect("loss", &expected, &loss.components[VLP_HORIZONTAL], 1, 1e-3, 0);
    for (int t = 0; t < 2; t++) {
        int64_t count = work.model->tables[t].rows * work.model->tables[t].width;
        double *after = doubles_of(&work, t), *slopes = calloc((size_t)count, sizeof *slopes);
        assert_non_null(slopes);
        lab_slopes(slopes, one.tables[t], count, loss_by_hand, &one);
        for (int64_t i = 0; i < count; i++) {
            double moved = one.tables[t][i] - after[i];
            after[i] = moved / (1 - fabs(moved));
        }
        lab_expect_close(work.model->tables[t].name, slopes, after, count, 5e-3);
        free(after);
        free(slopes);
    }
    for (int t = 0; t < 2; t++) free(one.tables[t]);
    free(one.known);
    free(one.kept);
    free(heads);
    free(ids);
    free(answers);
    close_steps(&work);
}

static void one_to_all_by_hand(void **state) {
    (void)state;
    static const char *const own[] = {"loss=cross-entropy", "n3=0.5", "relation_prediction=0.7", NULL};
    static const char *const dropped[] = {"loss=cross-entropy", "n3=0.5", "relation_prediction=0.7",
                                          "dropout=0.25", NULL};
    check_by_hand(own);
    check_by_hand(dropped);
}

/* All answers of a key at once. */
static void kvsall_step_by_hand(void **state) {
    (void)state;
    static const char *const cases[][5] = {
        {"loss=kvsall", NULL},
        {"loss=kvsall", "label_smoothing=0.2", "n3=0.5", NULL},
        {"loss=kvsall", "label_smoothing=0.2", "dropout=0.5", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_by_hand(cases[i]);
}

/* Every key once a pass, with all its answers; each of them is sometimes the one that is drawn. The
 * references are those of the triple that was drawn: not the triple itself. */
static void keys_of_a_pass(void **state) {
    (void)state;
    enum { PASSES = 60 };
    static const char *const settings[] = {"model=distmult", "loss=kvsall",  "dim=2",
                                           "batch=7",        "references=4", NULL};
    steps work = {.trainer = NULL};
    open_steps(&work, settings);
    const vlp_trainer *trainer = work.trainer;
    const vlp_batch *chosen = &trainer->chosen;
    int64_t keys = trainer->tables.keys.count, all = 2 * work.dataset->graph->edges;
    int32_t entities = work.model->entities, relations = work.model->relations, most = 4;
    by_hand one = {.entities = entities, .relations = relations};
    int32_t *times = calloc((size_t)entities * (size_t)relations, sizeof *times);
    int32_t *drawn = calloc((size_t)entities * (size_t)relations * (size_t)entities, sizeof *drawn);
    assert_true(times && drawn && keys < all);
    for (int64_t step = 0; step < keys * PASSES / 7; step++) {
        must(vlp_trainer_step(NULL, work.trainer, step));
        int32_t *heads = ids_of(&work, chosen->heads, 7), *ids = ids_of(&work, chosen->relations, 7);
        int32_t *answers = ids_of(&work, chosen->answers, 7);
        int32_t *counts = ids_of(&work, chosen->reference_counts, 7);
        int32_t *froms = ids_of(&work, chosen->reference_heads, 7 * most);
        int32_t *tos = ids_of(&work, chosen->reference_answers, 7 * most);
        for (int32_t i = 0; i < 7; i++) {
            assert_true(is_known(&one, work.dataset, heads[i], ids[i], answers[i]));
            times[heads[i] * relations + ids[i]]++;
            drawn[(heads[i] * relations + ids[i]) * entities + answers[i]]++;
            for (int32_t j = i * most; j < i * most + counts[i]; j++) {
                assert_true(is_known(&one, work.dataset, froms[j], ids[i], tos[j]));
                assert_false(froms[j] == heads[i] && tos[j] == answers[i]);
            }
        }
        free(heads), free(ids), free(answers), free(counts), free(froms), free(tos);
    }
    int64_t found = 0;
    for (int32_t key = 0; key < entities * relations; key++) {
        int32_t first = 0, count = 0;
        for (int32_t e = 0; e < entities; e++)
            count += is_known(&one, work.dataset, key / relations, key % relations, e);
        found += count > 0;
        assert_in_range(times[key], count > 0 ? PASSES - 1 : 0, count > 0 ? PASSES : 0);
        for (int32_t e = 0; e < entities; e++) first += drawn[(int64_t)key * entities + e] > 0;
        if (count <= 6) assert_int_equal(first, count);
    }
    assert_int_equal(found, keys);
    free(times);
    free(drawn);
    close_steps(&work);
}

/* More negatives than there are entities: all that are not known are taken. */
static void all_negatives_by_hand(void **state) {
    (void)state;
    static const char *const own[] = {"negatives=5000", "weights=uniform", NULL};
    static const char *const dropped[] = {"negatives=5000", "weights=uniform", "dropout=0.25", NULL};
    check_by_hand(own);
    check_by_hand(dropped);
}

/* A loss that is not finite ends a step with its number, and the embeddings stay as they are. */
static void not_finite_is_named(void **state) {
    (void)state;
    static const char *const settings[] = {"dim=8", "batch=32", "negatives=8", NULL};
    const vlp_backend *backend = lab_backend();
    steps work = {.trainer = NULL};
    open_steps(&work, settings);
    vlp_step_loss loss;
    must(vlp_trainer_step(&loss, work.trainer, 0));
    const vlp_table *relations = vlp_model_relations(work.model);
    const vlp_table *entities = vlp_model_entities(work.model);
    size_t bytes = (size_t)entities->rows * (size_t)entities->width * sizeof(float);
    float nan = NAN, *before = numbers_of(&work, VLP_TABLE_ENTITIES);
    for (int64_t i = 0; i < relations->rows * relations->width; i++)
        must(backend->memory->upload(work.compute, relations->value + i, &nan, sizeof nan));
    for (int round = 0; round < 2; round++) {
        /* The report of the second step is not read: later ones do nothing, the first is still named. */
        if (round == 0)
            assert_int_equal(vlp_trainer_step(&loss, work.trainer, 7), VLP_ERROR_DIVERGED);
        else
            must(vlp_trainer_step(NULL, work.trainer, 8));
        assert_int_equal(vlp_trainer_read(&loss, work.trainer), VLP_ERROR_DIVERGED);
        assert_non_null(strstr(vlp_error_message(), "step 7"));
        assert_non_null(strstr(vlp_error_message(), "not finite"));
        float *after = numbers_of(&work, VLP_TABLE_ENTITIES);
        assert_memory_equal(before, after, bytes);
        free(after);
    }
    free(before);
    close_steps(&work);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_follow_their_gradients),
        cmocka_unit_test(lazy_moves_few),
        cmocka_unit_test(blocks_of_logits),
        cmocka_unit_test(one_to_all_by_hand),
        cmocka_unit_test(all_negatives_by_hand),
        cmocka_unit_test(kvsall_step_by_hand),
        cmocka_unit_test(keys_of_a_pass),
        cmocka_unit_test(not_finite_is_named),
    };
    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
