/* vlp predict: the best answers of a query, or of a file of them. */
#include <string.h>

#include "candidates.h"
#include "commands.h"
#include "component.h"
#include "predicting.h"
#include "relations.h"
#include "text.h"

enum { KEY_COUNT = 'k', KEY_KNOWN = 1, KEY_QUERIES, KEY_FORMAT, KEY_FILTER };
enum { BATCH = 512 };

typedef struct chosen_options {
    predicting common;
    vlp_predict_options predict;
    chosen_candidates candidates;
    const char *file; /* of queries */
    bool table;       /* lines of fields instead of text */
} chosen_options;

static const struct argp_option options[] = {
    {NULL, KEY_COUNT, "K", 0, "Best answers to show (10)", 0},
    OPTION_EXPLAIN,
    OPTION_PATHS,
    {"known", KEY_KNOWN, NULL, 0, "Include known answers, and mark them", 0},
    {"filter", KEY_FILTER, "LIST", 0, "Splits that count as known (train,valid,test)", 0},
    {"queries", KEY_QUERIES, "FILE", 0,
     "Answer every query of a file (- for standard input): HEAD<TAB>RELATION<TAB>?, "
     "?<TAB>RELATION<TAB>TAIL or HEAD<TAB>?<TAB>TAIL on each line",
     0},
    OPTION_ON_ERROR,
    OPTION_CANDIDATES,
    {"format", KEY_FORMAT, "NAME", 0,
     "text, or tsv: one answer per line, fields separated by tabs (text)", 0},
    OPTION_GRAPH,
    OPTION_DATA,
    OPTION_DEVICE,
    {0}};

/* Parses a list of splits into a bit set. */
static unsigned parse_filter(struct argp_state *state, const char *text) {
    static const char *const names[VLP_SPLITS] = {"train", "valid", "test"};
    unsigned bits = 0;
    for (const char *at = text; at;) {
        const char *comma = strchr(at, ',');
        size_t length = comma ? (size_t)(comma - at) : strlen(at);
        unsigned bit = 0;
        for (int i = 0; i < VLP_SPLITS; i++)
            if (strlen(names[i]) == length && memcmp(names[i], at, length) == 0) bit = 1u << i;
        if (!bit) cli_unknown_item(state, "--filter", at, length);
        bits |= bit;
        at = comma ? comma + 1 : NULL;
    }
    return bits;
}

static error_t parse(int key, char *value, struct argp_state *state, void *own) {
    chosen_options *chosen = own;
    switch (key) {
    case KEY_COUNT:
        chosen->predict.count = (int32_t)cli_integer(state, "-k", value, 1, 1000000);
        return 0;
    case KEY_KNOWN:
        chosen->predict.known = true;
        return 0;
    case KEY_FILTER:
        chosen->predict.filter = parse_filter(state, value);
        return 0;
    case KEY_QUERIES:
        chosen->file = value;
        return 0;
    case KEY_FORMAT:
        if (strcmp(value, "text") != 0 && strcmp(value, "tsv") != 0)
            argp_error(state, "--format takes text or tsv, not '%s'", text_shown(value));
        chosen->table = strcmp(value, "tsv") == 0;
        return 0;
    case KEY_CANDIDATES:
    case KEY_SEEN:
    case KEY_WHERE:
        return candidates_parse(key, value, state, &chosen->candidates);
    default:
        return predicting_parse(key, value, state, &chosen->common);
    }
}

/* ---- Writing ------------------------------------------------------------------------------------- */

typedef struct output {
    const chosen_options *chosen;
    const vlp_dataset *data;
    vlp_run_info info;
    bool as_json;  /* else text or table */
    bool relation; /* the only query asks for a relation */
    json_out json;
    int64_t written, skipped;
    bool bad_line; /* an invalid line ended the work; it was reported when it was read */
} output;

static bool asks_for_tail(const vlp_dataset *data, vlp_query query) {
    return query.relation < vlp_dataset_relation_count(data);
}

static void answers_json(json_out *json, const output *out, const vlp_answers *answers) {
    const vlp_dataset *data = out->data;
    bool tail = asks_for_tail(data, answers->query);
    const char *entity = vlp_dataset_entity_name(data, answers->query.entity);
    int32_t relation = answers->query.relation % vlp_dataset_relation_count(data);
    json_string(json, "head", tail ? entity : "?");
    json_string(json, "relation", vlp_dataset_relation_name(data, relation));
    json_string(json, "tail", tail ? "?" : entity);
    json_integer(json, "candidates", answers->candidate_count);
    json_array(json, "predictions");
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        const vlp_prediction *prediction = &answers->predictions[i];
        json_object(json, NULL);
        json_string(json, "entity", vlp_dataset_entity_name(data, prediction->entity));
        json_string(json, "label", vlp_dataset_entity_label(data, prediction->entity));
        json_number(json, "score", prediction->score);
        component_parts_json(json, prediction->parts);
        json_bool(json, "known", prediction->known);
        if (out->chosen->predict.explain) {
            predicting_paths_json(json, data, prediction);
            predicting_references_json(json, data, answers, prediction);
        }
        json_end_object(json);
    }
    json_end_array(json);
}

static void answers_table(const output *out, const vlp_answers *answers) {
    const vlp_dataset *data = out->data;
    bool tail = asks_for_tail(data, answers->query);
    int32_t relation = answers->query.relation % vlp_dataset_relation_count(data);
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        const vlp_prediction *prediction = &answers->predictions[i];
        const char *entity = vlp_dataset_entity_name(data, answers->query.entity);
        const char *found = vlp_dataset_entity_name(data, prediction->entity);
        printf("%s\t%s\t%s\t%s\t%d\t%.6g\t%s\n", text_field(tail ? entity : found),
               text_field(vlp_dataset_relation_name(data, relation)), text_field(tail ? found : entity),
               tail ? "tail" : "head", i + 1, prediction->score, prediction->known ? "known" : "new");
    }
}

/* Longer names are not aligned. */
enum { MAX_COLUMNS = 64 };

static void answers_text(const output *out, const vlp_answers *answers) {
    const vlp_dataset *data = out->data;
    bool tail = asks_for_tail(data, answers->query);
    const char *entity = predicting_readable(data, answers->query.entity);
    int32_t relation = answers->query.relation % vlp_dataset_relation_count(data);
    if (out->written > 0) putchar('\n');
    printf("%s  %s  %s\n", tail ? entity : "?", text_shown(cli_relation(data, relation)),
           tail ? "?" : entity);
    if (candidates_chosen(&out->chosen->candidates) && answers->candidate_count > 0)
        printf("  ranks among %s\n", cli_things(answers->candidate_count, "candidate"));
    if (answers->candidate_count == 0)
        printf("  no candidate: none is seen as %s entity of the relation\n", tail ? "tail" : "head");
    else if (answers->prediction_count == 0)
        printf("  no answer that is not known\n");
    int widest = 0;
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        int width = text_columns(predicting_readable(data, answers->predictions[i].entity));
        if (width > widest && width <= MAX_COLUMNS) widest = width;
    }
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        const vlp_prediction *prediction = &answers->predictions[i];
        printf("%5d  ", i + 1);
        text_print(predicting_readable(data, prediction->entity), widest);
        printf("  %8.4f", prediction->score);
        component_parts_print(out->info.components, prediction->parts);
        printf("%s\n", prediction->known ? "   known" : "");
        if (out->chosen->predict.explain) {
            predicting_paths_text(data, prediction);
            predicting_references_text(data, answers, prediction, &out->info);
        }
    }
}

static void write_answers(output *out, const vlp_answers *answers, bool inside) {
    if (out->as_json && inside) json_object(&out->json, NULL);
    if (out->as_json)
        answers_json(&out->json, out, answers);
    else if (out->chosen->table)
        answers_table(out, answers);
    else
        answers_text(out, answers);
    if (out->as_json && inside) json_end_object(&out->json);
    out->written++;
}

/* Prints once what holds for all answers. */
static void write_remark(output *out) {
    if (out->as_json) candidates_json(&out->json, &out->chosen->candidates, out->data);
    if (out->as_json || out->chosen->table) return;
    const char *why = out->chosen->predict.explain ? predicting_no_copy(&out->info) : NULL;
    printf("%s%s%s\n", predicting_formula(&out->info), why ? "; " : "", why ? why : "");
    if (out->relation) printf("%s\n", RELATIONS_SCORE);
    if (candidates_chosen(&out->chosen->candidates)) {
        printf("candidates: entities ");
        candidates_print(&out->chosen->candidates, out->data);
        putchar('\n');
    }
    putchar('\n');
}

/* ---- Answering ----------------------------------------------------------------------------------- */

static vlp_status answer_batch(output *out, vlp_run *run, const vlp_query *queries, int64_t count,
                               bool inside) {
    vlp_predictions *predictions = NULL;
    vlp_status status = vlp_run_predict(&predictions, run, queries, count, &out->chosen->predict);
    if (status == VLP_OK) {
        for (int64_t i = 0; i < count; i++)
            write_answers(out, vlp_predictions_get(predictions, i), inside);
    }
    vlp_predictions_free(predictions);
    return status;
}

static vlp_status write_relations(output *out, vlp_run *run, const vlp_relation_answers *answers,
                                  bool inside) {
    relations_output to = {run, out->data, &out->info, &out->chosen->predict};
    vlp_status status = VLP_OK;
    if (out->as_json) {
        if (inside) json_object(&out->json, NULL);
        status = relations_json(&out->json, &to, answers);
        if (inside) json_end_object(&out->json);
    } else if (out->chosen->table) {
        relations_table(out->data, answers);
    } else {
        if (out->written > 0) putchar('\n');
        status = relations_text(&to, answers);
    }
    out->written++;
    return status;
}

/* The relations of pairs; known ones are among them. */
static vlp_status relate(vlp_relation_predictions **out, const output *to, vlp_run *run,
                         const vlp_entity_pair *pairs, int64_t count) {
    vlp_predict_options with_known = to->chosen->predict;
    with_known.known = true;
    vlp_status status = vlp_run_predict_relations(out, run, pairs, count, &with_known);
    if (status == VLP_OK) cli_observer_end();
    return status;
}

static vlp_status answer_relations(output *out, vlp_run *run, const vlp_entity_pair *pairs,
                                   int64_t count) {
    vlp_relation_predictions *predictions = NULL;
    vlp_status status = relate(&predictions, out, run, pairs, count);
    for (int64_t i = 0; status == VLP_OK && i < count; i++)
        status = write_relations(out, run, vlp_relation_predictions_get(predictions, i), true);
    vlp_relation_predictions_free(predictions);
    return status;
}

/* Answers lines of a file: runs of those that ask for an entity, and of those that ask for a relation.
 */
static vlp_status answer_asked(output *out, vlp_run *run, const vlp_triple *asked, int64_t count) {
    static vlp_query queries[BATCH];
    static vlp_entity_pair pairs[BATCH];
    vlp_status status = VLP_OK;
    for (int64_t start = 0, end; status == VLP_OK && start < count; start = end) {
        bool relation = asked[start].relation < 0;
        for (end = start; end < count && (asked[end].relation < 0) == relation; end++) {
            pairs[end - start] = (vlp_entity_pair){asked[end].head, asked[end].tail};
            queries[end - start] = vlp_query_of(out->data, asked[end]);
        }
        status = relation ? answer_relations(out, run, pairs, end - start)
                          : answer_batch(out, run, queries, end - start, true);
    }
    return status;
}

/* Where no candidate is left, says which options do that. */
static int fail(const output *out, vlp_status status) {
    bool empty = status == VLP_ERROR_ARGUMENT && candidates_chosen(&out->chosen->candidates);
    return cli_fail_next(status, out->chosen->common.run.device, empty ? CANDIDATES_NEXT : NULL);
}

/* Answers a file in batches, so that memory does not grow with it. */
static vlp_status answer_lines(output *out, vlp_run *run, vlp_triple_reader *reader) {
    static vlp_triple asked[BATCH];
    const vlp_observer *observer = out->chosen->predict.observer;
    vlp_status status = VLP_OK, bad = VLP_OK;
    for (bool more = true; status == VLP_OK && bad == VLP_OK && more;) {
        int64_t count = 0;
        while (count < BATCH && bad == VLP_OK) {
            bad = vlp_triple_reader_next(&asked[count], &more, reader);
            if (bad != VLP_OK && predicting_bad_line(&out->chosen->common, bad)) {
                out->skipped++;
                bad = VLP_OK;
                continue;
            }
            if (bad != VLP_OK || !more) break;
            count++;
        }
        if (bad != VLP_OK) fprintf(stderr, "vlp: %s\n", vlp_error_message());
        /* Queries before an invalid line are answered. */
        if (count > 0) status = answer_asked(out, run, asked, count);
        if (observer->progress && more) observer->progress(observer->user, "queries", out->written, 0);
    }
    out->bad_line = bad != VLP_OK;
    return status;
}

static int answer_file(output *out, vlp_run *run) {
    vlp_triple_reader *reader = NULL;
    if (vlp_triple_reader_open(&reader, out->data, out->chosen->file, true) != VLP_OK) return cli_fail();
    if (out->as_json) json_object(&out->json, NULL);
    write_remark(out);
    if (out->as_json) json_array(&out->json, "queries");
    vlp_status status = answer_lines(out, run, reader);
    vlp_triple_reader_free(reader);
    if (out->as_json) {
        json_end_array(&out->json);
        json_integer(&out->json, "skipped", out->skipped);
        json_end_object(&out->json);
        putchar('\n');
    }
    if (status != VLP_OK) return fail(out, status);
    int code = cli_finish();
    return out->bad_line ? EXIT_FAILED : code;
}

/* The query of the arguments: HEAD RELATION '?' or '?' RELATION TAIL. */
static vlp_status make_query(vlp_query *out, const vlp_dataset *data, char **arguments) {
    bool tail = strcmp(arguments[3], "?") == 0;
    vlp_triple triple = {-1, -1, -1};
    vlp_status status =
        vlp_dataset_find_entity(tail ? &triple.head : &triple.tail, data, arguments[tail ? 1 : 3]);
    if (status == VLP_OK) status = vlp_dataset_find_relation(&triple.relation, data, arguments[2]);
    if (status == VLP_OK) *out = vlp_query_of(data, triple);
    return status;
}

/* A query whose relation has none of the candidates. */
static int fail_not_seen(const output *out, vlp_query query) {
    bool tail = asks_for_tail(out->data, query);
    int32_t relation = query.relation % vlp_dataset_relation_count(out->data);
    fprintf(stderr, "vlp: no candidate is left: no entity%s is seen as %s entity of %s (%s)\n",
            out->chosen->candidates.file || out->chosen->candidates.where_count > 0
                ? " that meets the other restrictions"
                : "",
            tail ? "tail" : "head", text_shown(vlp_dataset_relation_name(out->data, relation)),
            CANDIDATES_NEXT);
    return EXIT_FAILED;
}

static int answer_one(output *out, vlp_run *run, char **arguments) {
    vlp_query query;
    vlp_predictions *predictions = NULL;
    if (make_query(&query, out->data, arguments) != VLP_OK) return cli_fail();
    vlp_status status = vlp_run_predict(&predictions, run, &query, 1, &out->chosen->predict);
    if (status != VLP_OK) return fail(out, status);
    cli_observer_end();
    if (vlp_predictions_get(predictions, 0)->candidate_count == 0) {
        vlp_predictions_free(predictions);
        return fail_not_seen(out, query);
    }
    if (out->as_json) json_object(&out->json, NULL);
    write_remark(out);
    write_answers(out, vlp_predictions_get(predictions, 0), false);
    vlp_predictions_free(predictions);
    if (out->as_json) {
        json_end_object(&out->json);
        putchar('\n');
    }
    return cli_finish();
}

/* The query of the arguments: HEAD '?' TAIL. */
static int relate_one(output *out, vlp_run *run, char **arguments) {
    vlp_entity_pair pair;
    if (vlp_dataset_find_entity(&pair.head, out->data, arguments[1]) != VLP_OK ||
        vlp_dataset_find_entity(&pair.tail, out->data, arguments[3]) != VLP_OK)
        return cli_fail();
    vlp_relation_predictions *predictions = NULL;
    vlp_status status = relate(&predictions, out, run, &pair, 1);
    if (status != VLP_OK) return fail(out, status);
    if (out->as_json) json_object(&out->json, NULL);
    write_remark(out);
    status = write_relations(out, run, vlp_relation_predictions_get(predictions, 0), false);
    vlp_relation_predictions_free(predictions);
    if (out->as_json) {
        json_end_object(&out->json);
        putchar('\n');
    }
    return status == VLP_OK ? cli_finish() : fail(out, status);
}

/* Which of the arguments of a query is '?', 1 to 3; 0 where not exactly one is. */
static int asked_for(char **arguments) {
    int asked = 0, count = 0;
    for (int i = 1; i <= 3; i++)
        if (strcmp(arguments[i], "?") == 0) {
            asked = i;
            count++;
        }
    return count == 1 ? asked : 0;
}

int cmd_predict(int argc, char **argv) {
    static const cli_syntax syntax = {
        "vlp predict",
        "RUN HEAD RELATION '?'\nRUN '?' RELATION TAIL\nRUN HEAD '?' TAIL\nRUN --queries FILE",
        "The best answers of a query, and with --explain what each rests on.\v"
        "Known answers are left out unless --known is given. The number before a path is the share of "
        "the path score that depends on it, an estimate. The known triples without which an answer "
        "falls are found by taking triples out of the graph and scoring again. A reference is a near "
        "known triple of the relation; its contribution is the score with all references minus the "
        "score without it. With --candidates, --seen and --where only entities that meet all of them "
        "are "
        "scored, and ranks are among these. HEAD '?' TAIL asks for the relation: each is scored in both "
        "directions by the mean log-softmax of f over entities, known ones are shown and marked.",
        options,
        parse,
        1,
        4};
    chosen_options chosen = {.common = PREDICTING_INIT, .predict = VLP_PREDICT_OPTIONS_INIT};
    cli_line line = {.own = &chosen};
    cli_parse(&line, &syntax, argc, argv);
    int asked = line.count == 4 ? asked_for(line.arguments) : 0;
    if (chosen.file ? line.count != 1 : asked == 0) {
        fprintf(stderr,
                "vlp predict: a query is HEAD RELATION '?', '?' RELATION TAIL or HEAD '?' TAIL%s\n",
                chosen.file ? ", or --queries, not both" : "; --queries FILE answers a file of queries");
        return EXIT_USAGE;
    }
    if (asked == 2 && candidates_chosen(&chosen.candidates)) {
        fprintf(stderr, "vlp predict: --candidates, --seen and --where restrict entities; HEAD '?' TAIL "
                        "asks for a relation\n");
        return EXIT_USAGE;
    }
    chosen.predict.explain = chosen.common.explain;
    chosen.predict.paths = chosen.common.paths;
    vlp_run *run = NULL;
    int code;
    vlp_status status = predicting_open(&run, line.arguments[0], &chosen.common, &line.common);
    if (status != VLP_OK) {
        code = cli_fail_next(status, chosen.common.run.device, NULL);
    } else {
        chosen.predict.observer = chosen.common.run.observer;
        output out = {.chosen = &chosen,
                      .data = vlp_run_graph_dataset(run),
                      .as_json = line.common.json,
                      .json = json_start(stdout)};
        vlp_run_describe(&out.info, run);
        chosen.predict.candidates = &chosen.candidates.options;
        out.relation = asked == 2;
        if (!candidates_find(&chosen.candidates, out.data))
            code = EXIT_FAILED;
        else if (chosen.file)
            code = answer_file(&out, run);
        else
            code = out.relation ? relate_one(&out, run, line.arguments)
                                : answer_one(&out, run, line.arguments);
    }
    candidates_free(&chosen.candidates);
    vlp_run_free(run);
    return code;
}
