/* Scores of triples and their calibration against plain recomputation, and files of queries. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_run.h"

#include "run/score.h"

/* ---- Scores -------------------------------------------------------------------------------------- */

/* Triples of train (scored without themselves), of test, and others. */
static void scores_both_ways(void **state) {
    (void)state;
    const char *const settings[][3] = {{"model=rotate"}, {"model=complex", "vertical=off"}};
    for (int s = 0; s < 2; s++) {
        tiny_run tiny;
        const char *const chosen[] = {settings[s][0], settings[s][1], NULL};
        tiny_run_make(&tiny, chosen, 50 + (uint64_t)s);
        enum { TRIPLES = 700 }; /* more than a batch */
        static vlp_triple triples[TRIPLES];
        static vlp_score scores[TRIPLES];
        oracle_random random = {1, 2, 3};
        int64_t train_count;
        const vlp_triple *train = vlp_dataset_triples(tiny.dataset, VLP_TRAIN, &train_count);
        for (int i = 0; i < TRIPLES; i++)
            triples[i] = i < train_count ? train[i]
                                         : (vlp_triple){oracle_below(&random, tiny.entities),
                                                        oracle_below(&random, tiny.relations),
                                                        oracle_below(&random, tiny.entities)};
        must(vlp_run_score(scores, tiny.run, triples, TRIPLES, NULL));
        vlp_calibration fit;
        must(vlp_run_calibrate(&fit, tiny.run, NULL));
        vlp_filter *known = NULL;
        must(vlp_filter_new(&known, tiny.dataset, 7));
        for (int i = 0; i < TRIPLES; i += 3) {
            tiny_score expected = tiny_run_triple(&tiny, triples[i]);
            near(scores[i].score, expected.f);
            near(scores[i].parts[VLP_HORIZONTAL], expected.g);
            assert_int_equal(isnan(scores[i].parts[VLP_VERTICAL]), s == 1);
            if (s == 0) near(scores[i].parts[VLP_VERTICAL], expected.c);
            near((scores[i].tail + scores[i].head) / 2, scores[i].score);
            near(scores[i].probability, 1 / (1 + exp(-(fit.intercept + fit.slope * scores[i].score))));
            assert_int_equal(scores[i].known, vlp_filter_has(known, triples[i].head, triples[i].relation,
                                                             triples[i].tail));
        }
        /* Another prior moves the log odds. */
        vlp_score_options options = VLP_SCORE_OPTIONS_INIT;
        vlp_score other;
        options.prior = 0.1;
        must(vlp_run_score(&other, tiny.run, triples, 1, &options));
        double p = scores[0].probability;
        near(log(other.probability / (1 - other.probability)), log(p / (1 - p)) + log(1.0 / 9));
        options.prior = 1;
        assert_int_equal(vlp_run_score(&other, tiny.run, triples, 1, &options), VLP_ERROR_ARGUMENT);
        vlp_triple wrong = {0, tiny.relations, 0};
        assert_int_equal(vlp_run_score(&other, tiny.run, &wrong, 1, NULL), VLP_ERROR_ARGUMENT);
        vlp_filter_free(known);
        tiny_run_free(&tiny);
    }
}

/* ---- The fit ------------------------------------------------------------------------------------- */

/* The loss that is to be smallest, over the numbers of one half (2: all). */
static double plain_loss(double a, double b, const double *x, const int32_t *group, int64_t positives,
                         int64_t count, int half) {
    double loss = 0, pos = 0, neg = 0;
    for (int64_t i = 0; i < count; i++) {
        if (half < 2 && group[i] % 2 != half) continue;
        *(i < positives ? &pos : &neg) += 1;
    }
    for (int64_t i = 0; i < count; i++) {
        if (half < 2 && group[i] % 2 != half) continue;
        double p = 1 / (1 + exp(-(a + b * x[i])));
        double target = i < positives ? (pos + 1) / (pos + 2) : 1 / (neg + 2);
        loss -= (target * log(p) + (1 - target) * log(1 - p)) / (2 * (i < positives ? pos : neg));
    }
    return loss;
}

/* The smallest loss by walking downhill in ever smaller steps. */
static void plain_fit(double *a, double *b, const double *x, const int32_t *group, int64_t positives,
                      int64_t count, int half) {
    *a = *b = 0;
    double best = plain_loss(0, 0, x, group, positives, count, half);
    for (double step = 1; step > 1e-7; step /= 2)
        for (bool moved = true; moved;) {
            moved = false;
            for (int way = 0; way < 8; way++) {
                const double da[] = {1, -1, 0, 0, 1, -1, 1, -1}, db[] = {0, 0, 1, -1, 1, 1, -1, -1};
                double loss = plain_loss(*a + step * da[way], *b + step * db[way], x, group, positives,
                                         count, half);
                if (!(loss < best)) continue;
                best = loss;
                *a += step * da[way];
                *b += step * db[way];
                moved = true;
            }
        }
}

static void fit_is_the_best(void **state) {
    (void)state;
    enum { POSITIVES = 60, COUNT = 300 };
    oracle_random random = {9, 9, 9};
    for (int round = 0; round < 6; round++) {
        double x[COUNT], a, b;
        int32_t group[COUNT];
        for (int i = 0; i < COUNT; i++) {
            group[i] = i < POSITIVES ? i : i % POSITIVES;
            x[i] = oracle_below(&random, 1000) * 0.002 + (i < POSITIVES ? 0.3 * round : 0);
        }
        vlp_calibration fit;
        vlp_calibration_fit(&fit, x, group, POSITIVES, COUNT);
        assert_int_equal(fit.positives, POSITIVES);
        assert_int_equal(fit.negatives, COUNT - POSITIVES);
        plain_fit(&a, &b, x, group, POSITIVES, COUNT, 2);
        near(plain_loss(fit.intercept, fit.slope, x, group, POSITIVES, COUNT, 2),
             plain_loss(a, b, x, group, POSITIVES, COUNT, 2));
        assert_true(fabs(fit.slope - b) < 0.02 * (1 + fabs(b)));
        /* The curve: each half by the fit on the other one. */
        double brier = 0, log_loss = 0, weight[VLP_CALIBRATION_BINS] = {0},
               truth[VLP_CALIBRATION_BINS] = {0};
        for (int half = 0; half < 2; half++) {
            plain_fit(&a, &b, x, group, POSITIVES, COUNT, 1 - half);
            for (int i = 0; i < COUNT; i++) {
                if (group[i] % 2 != half) continue;
                double p = 1 / (1 + exp(-(a + b * x[i]))), y = i < POSITIVES;
                double w = 0.5 / (i < POSITIVES ? POSITIVES : COUNT - POSITIVES);
                brier += w * (p - y) * (p - y);
                log_loss -= w * log(y > 0 ? p : 1 - p);
                weight[(int)(p * VLP_CALIBRATION_BINS)] += w;
                truth[(int)(p * VLP_CALIBRATION_BINS)] += w * y;
            }
        }
        assert_true(fabs(fit.brier - brier) < 1e-3);
        assert_true(fabs(fit.log_loss - log_loss) < 3e-3);
        double sum = 0;
        int64_t triples = 0;
        for (int bin = 0; bin < VLP_CALIBRATION_BINS; bin++) {
            sum += fit.bins[bin].weight;
            triples += fit.bins[bin].triples;
            /* A number at the edge of a bin may fall either way. */
            assert_true(fabs(fit.bins[bin].weight - weight[bin]) < 0.03);
            if (weight[bin] > 0.1)
                assert_true(fabs(fit.bins[bin].observed - truth[bin] / weight[bin]) < 0.15);
        }
        near(sum, 1);
        assert_int_equal(triples, COUNT);
    }
}

/* Scores that divide the kinds perfectly, that are all the same, and too few for a curve. */
static void fits_at_the_edge(void **state) {
    (void)state;
    const double divided[8] = {1, 2, 3, 4, -1, -2, -3, -4}, same[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int32_t group[8] = {0, 1, 2, 3, 0, 1, 2, 3};
    vlp_calibration fit;
    vlp_calibration_fit(&fit, divided, group, 4, 8);
    assert_true(isfinite(fit.intercept) && isfinite(fit.slope) && fit.slope > 0);
    assert_true(fit.brier < 0.1);
    vlp_calibration_fit(&fit, same, group, 4, 8);
    assert_true(fit.slope == 0);
    near(fit.brier, 0.25);
    vlp_calibration_fit(&fit, divided, group, 1, 2);
    assert_true(isnan(fit.brier) && isnan(fit.bins[0].predicted));
}

static void calibration_is_kept(void **state) {
    (void)state;
    tiny_run tiny;
    tiny_run_make(&tiny, NULL, 60);
    vlp_calibration first, second;
    vlp_calibration_options options = VLP_CALIBRATION_OPTIONS_INIT;
    must(vlp_run_calibrate(&first, tiny.run, NULL));
    int64_t valid;
    vlp_dataset_triples(tiny.dataset, VLP_VALID, &valid);
    assert_int_equal(first.positives, valid);
    assert_true(first.negatives > 0 && first.negatives <= 8 * valid);
    const char *file = support_path(tiny.path, "calibration.safetensors");
    /* Read from the folder, made again, and made again where the file is damaged: always the same. */
    for (int way = 0; way < 3; way++) {
        FILE *handle = way == 2 ? fopen(file, "r+") : NULL;
        if (handle) {
            fseek(handle, -3, SEEK_END);
            fputc('x', handle);
            fclose(handle);
        }
        tiny.run->gate->calibrated = 0;
        options.fresh = way == 1;
        memset(&second, 0, sizeof second);
        must(vlp_run_calibrate(&second, tiny.run, &options));
        assert_true(first.intercept == second.intercept && first.slope == second.slope);
        assert_true(first.brier == second.brier && first.bins[3].triples == second.bins[3].triples);
    }
    /* Other weights: what is there does not count. */
    tiny.run->gate->calibrated = 0;
    tiny.run->gate->fingerprint[0] = '\0';
    tiny.run->progress.mixture.weights[VLP_HORIZONTAL] = 2;
    vlp_run_set_graph(tiny.run, NULL); /* the predictors are made anew, with the other mixture */
    must(vlp_run_calibrate(&second, tiny.run, NULL));
    assert_false(first.slope == second.slope);
    options.exchanges = 0;
    assert_int_equal(vlp_run_calibrate(&second, tiny.run, &options), VLP_ERROR_ARGUMENT);
    tiny_run_free(&tiny);
}

/* Without valid there is no probability, and that is no error for scores. */
static void without_valid(void **state) {
    (void)state;
    tiny_run tiny = {0};
    snprintf(tiny.folder, sizeof tiny.folder, "%s", support_folder());
    snprintf(tiny.path, sizeof tiny.path, "%s/run", tiny.folder);
    support_write_text(tiny.folder, "train.txt", "a\tr\tb\nb\tr\tc\nc\tr\td\nd\tr\ta\na\ts\tc\n");
    tiny_run_train(&tiny, tiny.folder, NULL);
    vlp_triple triple = {0, 0, 2};
    vlp_score score;
    vlp_calibration fit;
    must(vlp_run_score(&score, tiny.run, &triple, 1, NULL));
    assert_true(isnan(score.probability) && isfinite(score.score));
    assert_int_equal(vlp_run_calibrate(&fit, tiny.run, NULL), VLP_ERROR_ARGUMENT);
    assert_non_null(strstr(vlp_error_message(), "no valid"));
    tiny_run_free(&tiny);
}

/* ---- Files of queries -------------------------------------------------------------------------- */

typedef struct line_case {
    const char *line;
    vlp_status status;
    const char *message; /* a part of it */
    vlp_triple triple;
} line_case;

static void files_of_queries(void **state) {
    (void)state;
    static const line_case lines[] = {{"\xef\xbb\xbf"
                                       "a\tr\t?\r\n",
                                       VLP_OK,
                                       NULL,
                                       {0, 0, -1}},
                                      {"\n", VLP_OK, NULL, {-2, 0, 0}},
                                      {"?\ts\tc\n", VLP_OK, NULL, {-1, 1, 2}},
                                      {"a\tr\n", VLP_ERROR_FORMAT, ":4: fewer than 3", {0}},
                                      {"a\tr\t?\t\n", VLP_ERROR_FORMAT, ":5: more than 3", {0}},
                                      {"a\tr\tb\n", VLP_ERROR_FORMAT, ":6: a query has one '?'", {0}},
                                      {"?\tr\t?\n", VLP_ERROR_FORMAT, "this line has 2", {0}},
                                      {"a\t?\tc\n", VLP_OK, NULL, {0, -1, 2}},
                                      {"a\t?\t?\n", VLP_ERROR_FORMAT, "this line has 2", {0}},
                                      {"apple tre\tr\t?\n", VLP_ERROR_UNKNOWN, "apple tree", {0}},
                                      {"a\tq\t?\n", VLP_ERROR_UNKNOWN, "unknown relation 'q'", {0}},
                                      {"\t\t?\n", VLP_ERROR_FORMAT, "empty name", {0}},
                                      {"a\x01\tr\t?\n", VLP_ERROR_FORMAT, "control character", {0}},
                                      {"a\xff\tr\t?\n", VLP_ERROR_FORMAT, "UTF-8", {0}},
                                      {"An apple\tr\t?\n", VLP_OK, NULL, {3, 0, -1}},
                                      {"a,r,?\n", VLP_ERROR_FORMAT, "looks like CSV, not TSV", {0}},
                                      {"<x:a> <x:r> <x:b> .\n", VLP_ERROR_FORMAT, "like N-Triples", {0}},
                                      {"b\tfollows\t?\n", VLP_OK, NULL, {1, 1, -1}},
                                      {"?\tr\tb", VLP_OK, NULL, {-1, 0, 1}}};
    enum { LINES = sizeof lines / sizeof *lines };
    const char *folder = support_folder();
    support_write_text(folder, "train.txt", "a\tr\tb\nb\ts\tc\napple tree\tr\ta\n");
    support_write_text(folder, "labels.tsv", "apple tree\tAn apple\ns\tfollows\n");
    char text[1024] = "";
    for (int i = 0; i < LINES; i++) strcat(text, lines[i].line);
    support_write_text(folder, "plain.tsv", text);
    support_write_gzip(folder, "packed.tsv.gz", text, strlen(text));
    vlp_dataset *dataset = NULL;
    must(vlp_dataset_open(&dataset, folder, NULL));
    for (int packed = 0; packed < 2; packed++) {
        vlp_triple_reader *reader = NULL;
        must(vlp_triple_reader_open(&reader, dataset,
                                    support_path(folder, packed ? "packed.tsv.gz" : "plain.tsv"), true));
        vlp_triple triple;
        bool more;
        for (int i = 0; i < LINES; i++) {
            if (lines[i].triple.head == -2) continue; /* a blank line is passed over */
            assert_int_equal(vlp_triple_reader_next(&triple, &more, reader), lines[i].status);
            assert_true(more);
            assert_int_equal(vlp_triple_reader_line(reader), i + 1);
            if (lines[i].message)
                assert_non_null(strstr(vlp_error_message(), lines[i].message));
            else
                assert_memory_equal(&triple, &lines[i].triple, sizeof triple);
        }
        must(vlp_triple_reader_next(&triple, &more, reader));
        assert_false(more);
        vlp_triple_reader_free(reader);
    }
    vlp_dataset_free(dataset);
    support_remove(folder);
}

/* A line that is far too long is passed over, wherever it ends. */
static void long_lines(void **state) {
    (void)state;
    const char *folder = support_folder();
    support_write_text(folder, "train.txt", "a\tr\tb\n");
    vlp_dataset *dataset = NULL;
    must(vlp_dataset_open(&dataset, folder, NULL));
    size_t sizes[] = {1 << 20, (1 << 20) + 1, 3 << 20, (1 << 16) - 6};
    for (int last = 0; last < 2; last++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            FILE *file = fopen(support_path(folder, "long.tsv"), "w");
            assert_non_null(file);
            fputs("a\tr\tb\n", file);
            for (size_t i = 0; i < sizes[s]; i++) fputc('x', file);
            if (!last) fputs("\na\tr\tb\n", file);
            fclose(file);
            vlp_triple_reader *reader = NULL;
            vlp_triple triple;
            bool more;
            must(vlp_triple_reader_open(&reader, dataset, support_path(folder, "long.tsv"), false));
            must(vlp_triple_reader_next(&triple, &more, reader));
            assert_int_equal(vlp_triple_reader_next(&triple, &more, reader), VLP_ERROR_FORMAT);
            assert_non_null(strstr(vlp_error_message(), "long.tsv:2: "));
            if (!last) {
                must(vlp_triple_reader_next(&triple, &more, reader));
                assert_true(more);
                assert_int_equal(vlp_triple_reader_line(reader), 3);
            }
            must(vlp_triple_reader_next(&triple, &more, reader));
            assert_false(more);
            vlp_triple_reader_free(reader);
        }
    vlp_dataset_free(dataset);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_both_ways), cmocka_unit_test(fit_is_the_best),
        cmocka_unit_test(fits_at_the_edge), cmocka_unit_test(calibration_is_kept),
        cmocka_unit_test(without_valid),    cmocka_unit_test(files_of_queries),
        cmocka_unit_test(long_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
