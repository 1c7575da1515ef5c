#include "predicting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "component.h"
#include "text.h"

error_t predicting_parse(int key, char *value, struct argp_state *state, predicting *chosen) {
    switch (key) {
    case KEY_GRAPH:
        chosen->graph = value;
        return 0;
    case KEY_RUN_DATA:
        chosen->run.data = value;
        return 0;
    case KEY_RUN_DEVICE:
        chosen->run.device = value;
        return 0;
    case KEY_ON_ERROR:
        if (strcmp(value, "stop") != 0 && strcmp(value, "skip") != 0)
            argp_error(state, "--on-error takes stop or skip, not '%s'", text_shown(value));
        chosen->skip = strcmp(value, "skip") == 0;
        return 0;
    case KEY_PRIOR:
        chosen->prior = cli_number(state, "--prior", value, 1e-9, 1 - 1e-9);
        return 0;
    case KEY_EXPLAIN:
        chosen->explain = true;
        return 0;
    case KEY_PATHS:
        chosen->paths = (int32_t)cli_integer(state, "--paths", value, 0, VLP_MAX_PATHS);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

vlp_status predicting_open(vlp_run **out, const char *folder, predicting *chosen,
                           const cli_common *common) {
    chosen->run.threads = common->threads;
    chosen->run.observer = cli_observer(common);
    vlp_status status = vlp_run_open(out, folder, &chosen->run);
    if (status != VLP_OK || !chosen->graph) return status;
    return predicting_use_graph(*out, chosen->graph, common, chosen->run.observer);
}

/* Says what scores a graph with new entities. `had`: the components of the run. */
static void print_new_entities(const vlp_run *run, const vlp_graph_report *report, unsigned had) {
    vlp_run_info info;
    vlp_run_describe(&info, run);
    fprintf(stderr, "%s unknown to the run: answers are entities of this graph, ranked by %s",
            cli_things(report->new_entities, "entity"), predicting_formula(&info));
    const char *gap = "; ";
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (component_has(had & ~info.components, c)) {
            fprintf(stderr, "%s%s", gap, component_words_of[c].symbol);
            gap = " and ";
        }
    fprintf(stderr, "%s\n", had != info.components ? " left out, for want of trained entities" : "");
}

vlp_status predicting_use_graph(vlp_run *run, const char *folder, const cli_common *common,
                                const vlp_observer *observer) {
    vlp_graph_report report;
    vlp_run_info before;
    vlp_run_describe(&before, run);
    vlp_status status = vlp_run_use_graph(&report, run, folder, observer);
    if (status != VLP_OK || common->quiet) return status;
    cli_observer_end();
    fprintf(stderr, "graph %s: %s, %s of them new since training\n", text_shown(folder),
            cli_things(report.triples, "triple"), cli_count(report.new_triples));
    int64_t left_out = report.unknown_triples + report.unknown_others;
    if (left_out > 0 && component_has(before.components, VLP_PATH))
        fprintf(stderr, "%s left out, of relations unknown to the run\n",
                cli_things(left_out, "triple"));
    else if (left_out > 0)
        fprintf(stderr,
                "%s left out, with names unknown to the run (%s and %s of train); only a path model "
                "scores new entities\n",
                cli_things(left_out, "triple"), cli_things(report.unknown_entities, "entity"),
                cli_things(report.unknown_relations, "relation"));
    if (report.new_entities > 0) print_new_entities(run, &report, before.components);
    return VLP_OK;
}

const char *predicting_readable(const vlp_dataset *data, int32_t entity) {
    const char *label = vlp_dataset_entity_label(data, entity);
    return text_shown(label ? label : vlp_dataset_entity_name(data, entity));
}

const char *predicting_formula(const vlp_run_info *info) {
    static char text[96];
    component_formula(text, sizeof text, info->components, info->weights, false);
    return text;
}

/* Whether there are references to show: the path model alone has none. */
static bool shows_references(const vlp_run_info *info) {
    return component_has(info->components, VLP_VERTICAL) || !component_has(info->components, VLP_PATH);
}

const char *predicting_no_copy(const vlp_run_info *info) {
    if (info->copies) return NULL;
    if (!shows_references(info)) {
        bool unused = info->weights[VLP_PATH] == 0;
        return unused ? "f_g alone was chosen on the validation split: paths do not contribute" : NULL;
    }
    if (!component_has(info->components, VLP_VERTICAL))
        return "the run has no vertical aggregator: references do not contribute, they are the nearest "
               "known triples";
    if (info->references == 0)
        return "the vertical aggregator of the run uses no references: they do not contribute";
    if (component_has(info->components, VLP_PATH))
        return "f_c was not chosen on the validation split: references do not contribute, they are the "
               "nearest known triples";
    return "f_g alone was chosen on the validation split: references do not contribute, they are the "
           "nearest known triples";
}

/* ---- References ---------------------------------------------------------------------------------- */

void predicting_references_json(json_out *json, const vlp_dataset *data, const vlp_answers *answers,
                                const vlp_prediction *prediction) {
    json_array(json, "references");
    for (int32_t i = 0; i < answers->reference_count; i++) {
        vlp_answer_reference reference = answers->references[i];
        json_object(json, NULL);
        json_string(json, "head", vlp_dataset_entity_name(data, reference.triple.head));
        json_string(json, "relation", vlp_dataset_relation_name(data, reference.triple.relation));
        json_string(json, "tail", vlp_dataset_entity_name(data, reference.triple.tail));
        json_integer(json, "distance", reference.distance);
        json_number(json, "contribution", prediction->contributions[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

typedef struct ordered {
    double contribution;
    int32_t index;
} ordered;

static int compare(const void *left, const void *right) {
    const ordered *a = left, *b = right;
    if (a->contribution != b->contribution) return a->contribution > b->contribution ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static void print_reference(const vlp_dataset *data, vlp_answer_reference reference) {
    if (reference.distance < 0) /* chosen at random: its distance was not looked at */
        printf("random  ");
    else
        printf("%d hop%s  ", reference.distance, reference.distance == 1 ? " " : "s");
    printf("%s  %s  %s\n", predicting_readable(data, reference.triple.head),
           text_shown(cli_relation(data, reference.triple.relation)),
           predicting_readable(data, reference.triple.tail));
}

/* A bar for a contribution; negative ones have another pattern. */
static void print_bar(double contribution, double largest) {
    enum { WIDTH = 10 };
    int filled = largest > 0 ? (int)(fabs(contribution) / largest * WIDTH + 0.5) : 0;
    for (int i = 0; i < WIDTH; i++) fputs(i >= filled ? " " : contribution > 0 ? "█" : "░", stdout);
}

void predicting_references_text(const vlp_dataset *data, const vlp_answers *answers,
                                const vlp_prediction *prediction, const vlp_run_info *info) {
    int32_t count = answers->reference_count;
    if (!shows_references(info)) return;
    if (count == 0) printf("        no reference: no edge of this relation is near enough\n");
    ordered *order = malloc(((size_t)count + 1) * sizeof *order);
    if (!order) return;
    double largest = 0;
    for (int32_t i = 0; i < count; i++) {
        order[i] = (ordered){prediction->contributions[i], i};
        largest = fmax(largest, fabs(prediction->contributions[i]));
    }
    qsort(order, (size_t)count, sizeof *order, compare);
    for (int32_t i = 0; i < count; i++) {
        fputs("        ", stdout);
        if (info->copies) {
            print_bar(order[i].contribution, largest);
            printf(" %+.4f  ", order[i].contribution);
        }
        print_reference(data, answers->references[order[i].index]);
    }
    free(order);
}

bool predicting_bad_line(const predicting *chosen, vlp_status status) {
    cli_observer_end();
    if (!chosen->skip || (status != VLP_ERROR_FORMAT && status != VLP_ERROR_UNKNOWN)) return false;
    fprintf(stderr, "vlp: skipped %s\n", vlp_error_message());
    return true;
}
