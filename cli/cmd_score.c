/* vlp score: scores and probabilities of given triples. */
#include <math.h>

#include "classes.h"
#include "commands.h"
#include "component.h"
#include "predicting.h"
#include "text.h"

enum { KEY_CALIBRATION = 1, KEY_CLASSIFY };
enum { BATCH = 512 };

typedef struct chosen_options {
    predicting common;
    bool calibration; /* show the curve */
    bool classify;    /* say true or false */
    uint64_t seed;    /* of corruptions */
} chosen_options;

static const struct argp_option options[] = {
    OPTION_PRIOR,
    {"calibration", KEY_CALIBRATION, NULL, 0,
     "Show the calibration of probabilities; FILE is then optional", 0},
    {"classify", KEY_CLASSIFY, NULL, 0,
     "Say whether each triple is true, by a threshold for each relation that is fitted on the "
     "validation "
     "split, and the accuracy on the test split; without FILE the thresholds are shown",
     0},
    OPTION_ON_ERROR,
    OPTION_GRAPH,
    OPTION_DATA,
    OPTION_DEVICE,
    {0}};

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    chosen_options *chosen = own;
    switch (key) {
    case KEY_CALIBRATION:
        chosen->calibration = true;
        return 0;
    case KEY_CLASSIFY:
        chosen->classify = true;
        return 0;
    default:
        return predicting_parse(key, value, state, &chosen->common);
    }
}

/* ---- The calibration ----------------------------------------------------------------------------- */

static void calibration_json(json_out *json, const vlp_calibration *calibration) {
    json_object(json, "calibration");
    json_integer(json, "positives", calibration->positives);
    json_integer(json, "negatives", calibration->negatives);
    json_number(json, "intercept", calibration->intercept);
    json_number(json, "slope", calibration->slope);
    json_number(json, "brier", calibration->brier);
    json_number(json, "log_loss", calibration->log_loss);
    json_array(json, "bins");
    for (int i = 0; i < VLP_CALIBRATION_BINS; i++) {
        const vlp_calibration_bin *bin = &calibration->bins[i];
        json_object(json, NULL);
        json_integer(json, "triples", bin->triples);
        json_number(json, "weight", bin->weight);
        json_number(json, "predicted", bin->predicted);
        json_number(json, "observed", bin->observed);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static void calibration_text(const vlp_calibration *calibration) {
    printf("# probability = 1 / (1 + exp(-(%.4f + %.4f f))), fitted on %s of valid and %s "
           "corruptions of them\n",
           calibration->intercept, calibration->slope, cli_things(calibration->positives, "triple"),
           cli_count(calibration->negatives));
    if (isnan(calibration->brier)) {
        printf("# too few triples in valid to evaluate the fit\n");
        return;
    }
    printf("# on triples held out of the fit: Brier score %.4f (constant 1/2: 0.25), log loss %.4f "
           "(constant "
           "1/2: 0.6931)\n",
           calibration->brier, calibration->log_loss);
    printf("# predicted   observed    triples\n");
    for (int i = 0; i < VLP_CALIBRATION_BINS; i++) {
        const vlp_calibration_bin *bin = &calibration->bins[i];
        if (bin->triples > 0)
            printf("# %6.4f      %6.4f     %8s\n", bin->predicted, bin->observed,
                   cli_count(bin->triples));
    }
}

/* ---- Triples ------------------------------------------------------------------------------------- */

/* classes: NULL without --classify. */
static void score_json(json_out *json, const vlp_dataset *data, vlp_triple triple,
                       const vlp_score *score, const vlp_classification *classes) {
    json_object(json, NULL);
    json_string(json, "head", vlp_dataset_entity_name(data, triple.head));
    json_string(json, "relation", vlp_dataset_relation_name(data, triple.relation));
    json_string(json, "tail", vlp_dataset_entity_name(data, triple.tail));
    json_number(json, "score", score->score);
    component_parts_json(json, score->parts);
    json_number(json, "probability", score->probability);
    json_number(json, "score_tail", score->tail);
    json_number(json, "score_head", score->head);
    json_bool(json, "known", score->known);
    if (classes)
        json_bool(json, "true", vlp_classification_holds(classes, triple.relation, score->score));
    json_end_object(json);
}

static void print_number(double value) {
    if (isnan(value))
        fputs("\t-", stdout);
    else
        printf("\t%.6g", value);
}

static void score_text(const vlp_dataset *data, vlp_triple triple, const vlp_score *score,
                       const vlp_classification *classes) {
    printf("%s\t%s\t%s", text_field(vlp_dataset_entity_name(data, triple.head)),
           text_field(vlp_dataset_relation_name(data, triple.relation)),
           text_field(vlp_dataset_entity_name(data, triple.tail)));
    print_number(score->score);
    for (int c = 0; c < VLP_COMPONENTS; c++) print_number(score->parts[c]);
    print_number(score->probability);
    printf("\t%s", score->known ? "known" : "new");
    if (classes)
        printf("\t%s",
               vlp_classification_holds(classes, triple.relation, score->score) ? "true" : "false");
    putchar('\n');
}

/* Reads at most one batch; *bad is the status of an invalid line that ends the work. */
static int64_t read_batch(vlp_triple *triples, bool *more, vlp_status *bad, int64_t *skipped,
                          vlp_triple_reader *reader, const predicting *chosen) {
    int64_t count = 0;
    while (count < BATCH) {
        *bad = vlp_triple_reader_next(&triples[count], more, reader);
        if (*bad != VLP_OK && predicting_bad_line(chosen, *bad)) {
            ++*skipped;
            *bad = VLP_OK;
            continue;
        }
        if (*bad != VLP_OK || !*more) break;
        count++;
    }
    if (*bad != VLP_OK) fprintf(stderr, "vlp: %s\n", vlp_error_message());
    return count;
}

/* A file to score, and what comes of it. */
typedef struct scored_file {
    vlp_triple_reader *reader;
    const vlp_classification *classes; /* NULL: without --classify */
    int64_t skipped;
    bool bad_line; /* an invalid line ended the work */
} scored_file;

/* Scores a file in batches. json NULL: text. */
static vlp_status score_file(json_out *json, scored_file *file, vlp_run *run, const predicting *chosen) {
    static vlp_triple triples[BATCH];
    static vlp_score scores[BATCH];
    const vlp_dataset *data = vlp_run_graph_dataset(run);
    vlp_score_options scoring = VLP_SCORE_OPTIONS_INIT;
    scoring.prior = chosen->prior;
    scoring.observer = chosen->run.observer;
    vlp_status status = VLP_OK, bad = VLP_OK;
    for (bool more = true; status == VLP_OK && bad == VLP_OK && more;) {
        int64_t count = read_batch(triples, &more, &bad, &file->skipped, file->reader, chosen);
        if (count > 0) status = vlp_run_score(scores, run, triples, count, &scoring);
        for (int64_t i = 0; status == VLP_OK && i < count; i++)
            if (json)
                score_json(json, data, triples[i], &scores[i], file->classes);
            else
                score_text(data, triples[i], &scores[i], file->classes);
    }
    file->bad_line = bad != VLP_OK;
    return status;
}

static void write_header(vlp_run *run, bool probabilities, bool classes) {
    vlp_run_info info;
    vlp_run_describe(&info, run);
    printf("# %s, the mean of both directions; a triple of the graph is scored without its own edge\n",
           predicting_formula(&info));
    if (!probabilities) printf("# no probability: the data set has no validation split to fit it on\n");
    printf("# head\trelation\ttail\tf");
    for (int c = 0; c < VLP_COMPONENTS; c++) printf("\t%s", component_words_of[c].symbol);
    printf("\tprobability\tknown%s\n", classes ? "\ttrue" : "");
}

/* What is fitted on the validation split before triples are scored. */
typedef struct fitted {
    bool calibrated;
    vlp_calibration calibration;
    vlp_classification *classes; /* NULL: without --classify */
} fitted;

static vlp_status fit(fitted *out, vlp_run *run, const chosen_options *chosen) {
    vlp_calibration_options calibrating = VLP_CALIBRATION_OPTIONS_INIT;
    vlp_classification_options classifying = VLP_CLASSIFICATION_OPTIONS_INIT;
    calibrating.observer = classifying.observer = chosen->common.run.observer;
    classifying.seed = chosen->seed;
    int64_t valid;
    vlp_dataset_triples(vlp_run_dataset(run), VLP_VALID, &valid);
    out->calibrated = valid > 0 || chosen->calibration; /* the latter then fails with the reason */
    vlp_status status = VLP_OK;
    if (out->calibrated) status = vlp_run_calibrate(&out->calibration, run, &calibrating);
    if (status == VLP_OK && chosen->classify)
        status = vlp_run_classify(&out->classes, run, &classifying);
    return status;
}

static void write_start(json_out *json, vlp_run *run, const fitted *fit_of, const chosen_options *chosen,
                        bool file) {
    const vlp_dataset *data = vlp_run_graph_dataset(run);
    if (json) {
        json_object(json, NULL);
        if (chosen->calibration) calibration_json(json, &fit_of->calibration);
        if (fit_of->classes) classes_json(json, data, fit_of->classes);
        json_array(json, "triples");
        return;
    }
    if (chosen->calibration) calibration_text(&fit_of->calibration);
    if (fit_of->classes) classes_text(data, fit_of->classes, !file);
    if (file) write_header(run, fit_of->calibrated, fit_of->classes != NULL);
}

static int score(vlp_run *run, const char *path, const chosen_options *chosen, bool as_json) {
    json_out json = json_start(stdout), *to = as_json ? &json : NULL;
    fitted fit_of = {0};
    scored_file file = {0};
    int code = EXIT_FAILED;
    vlp_status status = fit(&fit_of, run, chosen);
    if (status == VLP_OK && path)
        status = vlp_triple_reader_open(&file.reader, vlp_run_graph_dataset(run), path, false);
    if (status != VLP_OK) {
        code = cli_fail();
        goto out;
    }
    cli_observer_end();
    file.classes = fit_of.classes;
    write_start(to, run, &fit_of, chosen, path != NULL);
    if (path) status = score_file(to, &file, run, &chosen->common);
    if (to) {
        json_end_array(to);
        json_integer(to, "skipped", file.skipped);
        json_end_object(to);
        putchar('\n');
    }
    code = status == VLP_OK ? cli_finish() : cli_fail();
    if (file.bad_line) code = EXIT_FAILED;
out:
    vlp_triple_reader_free(file.reader);
    vlp_classification_free(fit_of.classes);
    return code;
}

int cmd_score(int argc, char **argv) {
    static const cli_syntax syntax = {
        "vlp score",
        "RUN FILE",
        "The scores f, f_g and f_c of triples, one per line (HEAD<TAB>RELATION<TAB>TAIL), and their "
        "probabilities.\v"
        "Each triple is scored in both directions, and its scores are the means of the two. "
        "Probabilities are fitted on the validation split and corruptions of its triples; --prior is "
        "the "
        "share of true triples among those given, one half by default. --classify says true where f is "
        "at "
        "least the threshold of the relation, which separates triples of the validation split from "
        "corruptions of them best; --seed chooses the corruptions.",
        options,
        parse,
        1,
        2};
    chosen_options chosen = {.common = PREDICTING_INIT};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    chosen.seed = line.common.seed;
    if (line.count < 2 && !chosen.calibration && !chosen.classify) {
        fprintf(stderr, "vlp score: FILE names the triples to score; it is required\n");
        return EXIT_USAGE;
    }
    vlp_run *run = NULL;
    int code;
    vlp_status status = predicting_open(&run, line.arguments[0], &chosen.common, &line.common);
    if (status != VLP_OK)
        code = cli_fail_next(status, chosen.common.run.device, NULL);
    else
        code = score(run, line.count > 1 ? line.arguments[1] : NULL, &chosen, line.common.json);
    vlp_run_free(run);
    return code;
}
