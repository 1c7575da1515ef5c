/* vlp score: scores and probabilities of given triples. */
#include <math.h>

#include "commands.h"
#include "component.h"
#include "predicting.h"
#include "text.h"

enum { KEY_CALIBRATION = 1 };
enum { BATCH = 512 };

typedef struct chosen_options {
    predicting common;
    bool calibration; /* show the curve */
} chosen_options;

static const struct argp_option options[] = {
    OPTION_PRIOR,
    {"calibration", KEY_CALIBRATION, NULL, 0,
     "Show the calibration of probabilities; FILE is then optional", 0},
    OPTION_ON_ERROR,
    OPTION_GRAPH,
    OPTION_DATA,
    OPTION_DEVICE,
    {0}};

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    chosen_options *chosen = own;
    if (key != KEY_CALIBRATION) return predicting_parse(key, value, state, &chosen->common);
    chosen->calibration = true;
    return 0;
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

static void score_json(json_out *json, const vlp_dataset *data, vlp_triple triple,
                       const vlp_score *score) {
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
    json_end_object(json);
}

static void print_number(double value) {
    if (isnan(value))
        fputs("\t-", stdout);
    else
        printf("\t%.6g", value);
}

static void score_text(const vlp_dataset *data, vlp_triple triple, const vlp_score *score) {
    printf("%s\t%s\t%s", text_field(vlp_dataset_entity_name(data, triple.head)),
           text_field(vlp_dataset_relation_name(data, triple.relation)),
           text_field(vlp_dataset_entity_name(data, triple.tail)));
    print_number(score->score);
    for (int c = 0; c < VLP_COMPONENTS; c++) print_number(score->parts[c]);
    print_number(score->probability);
    printf("\t%s\n", score->known ? "known" : "new");
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

/* Scores a file in batches. */
static vlp_status score_file(json_out *json, int64_t *skipped, bool *bad_line, vlp_run *run,
                             vlp_triple_reader *reader, const predicting *chosen) {
    static vlp_triple triples[BATCH];
    static vlp_score scores[BATCH];
    const vlp_dataset *data = vlp_run_graph_dataset(run);
    vlp_score_options scoring = VLP_SCORE_OPTIONS_INIT;
    scoring.prior = chosen->prior;
    scoring.observer = chosen->run.observer;
    vlp_status status = VLP_OK, bad = VLP_OK;
    for (bool more = true; status == VLP_OK && bad == VLP_OK && more;) {
        int64_t count = read_batch(triples, &more, &bad, skipped, reader, chosen);
        if (count > 0) status = vlp_run_score(scores, run, triples, count, &scoring);
        for (int64_t i = 0; status == VLP_OK && i < count; i++)
            if (json)
                score_json(json, data, triples[i], &scores[i]);
            else
                score_text(data, triples[i], &scores[i]);
    }
    *bad_line = bad != VLP_OK;
    return status;
}

static void write_header(vlp_run *run, bool file, bool probabilities) {
    vlp_run_info info;
    vlp_run_describe(&info, run);
    if (!file) return;
    printf("# %s, the mean of both directions; a triple of the graph is scored without its own edge\n",
           predicting_formula(&info));
    if (!probabilities) printf("# no probability: the data set has no validation split to fit it on\n");
    printf("# head\trelation\ttail\tf");
    for (int c = 0; c < VLP_COMPONENTS; c++) printf("\t%s", component_words_of[c].symbol);
    printf("\tprobability\tknown\n");
}

static int score(vlp_run *run, const char *path, const chosen_options *chosen, bool as_json) {
    json_out json = json_start(stdout);
    vlp_calibration calibration;
    vlp_calibration_options calibrating = VLP_CALIBRATION_OPTIONS_INIT;
    calibrating.observer = chosen->common.run.observer;
    int64_t valid, skipped = 0;
    bool bad_line = false;
    const vlp_dataset *data = vlp_run_graph_dataset(run);
    vlp_triple_reader *reader = NULL;
    vlp_dataset_triples(vlp_run_dataset(run), VLP_VALID, &valid);
    bool calibrated = valid > 0 || chosen->calibration; /* the latter then fails with the reason */
    if ((calibrated && vlp_run_calibrate(&calibration, run, &calibrating) != VLP_OK) ||
        (path && vlp_triple_reader_open(&reader, data, path, false) != VLP_OK))
        return cli_fail();
    cli_observer_end();
    if (as_json) {
        json_object(&json, NULL);
        if (chosen->calibration) calibration_json(&json, &calibration);
        json_array(&json, "triples");
    } else {
        if (chosen->calibration) calibration_text(&calibration);
        write_header(run, path != NULL, calibrated);
    }
    vlp_status status = VLP_OK;
    if (path)
        status = score_file(as_json ? &json : NULL, &skipped, &bad_line, run, reader, &chosen->common);
    vlp_triple_reader_free(reader);
    if (as_json) {
        json_end_array(&json);
        json_integer(&json, "skipped", skipped);
        json_end_object(&json);
        putchar('\n');
    }
    if (status != VLP_OK) return cli_fail();
    int code = cli_finish();
    return bad_line ? EXIT_FAILED : code;
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
        "share of true triples among those given, one half by default.",
        options,
        parse,
        1,
        2};
    chosen_options chosen = {PREDICTING_INIT, false};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    if (line.count < 2 && !chosen.calibration) {
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
