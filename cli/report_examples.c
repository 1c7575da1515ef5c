/* Examples: sampled queries, the answers of each run, and the references of its first answer as a
 * small graph. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "component.h"
#include "report.h"

/* ---- The graph of an answer ---------------------------------------------------------------------- */

/* From left to right: the entity of the query; the entities of the references, on rings by distance;
 * the answers of the references. A reference of distance 0 is a triple of the query's entity itself.
 * The width of a line shows the contribution of the reference to the score of the first answer. */

enum {
    MAX_REFERENCES = 16,
    FRAME = 640,
    ROW = 30,
    HEAD = 34,
    FOOT = 10,
    QUERY_X = 16,
    FIRST_RING = 150,
    LONE_RING = 190,
    LAST_RING = 270,
    ANSWERS_X = 440,
    QUERY_COLUMNS = 16,
    NODE_COLUMNS = 17,
    ANSWER_COLUMNS = 21
};

typedef struct graph_node {
    int32_t entity, distance;
    double x, y;
} graph_node;

typedef struct graph_edge {
    int from, to; /* a node of `near`, or -1 for the query's entity; a node of `far` */
    double contribution;
} graph_edge;

typedef struct picture {
    const vlp_dataset *data;
    graph_node near[MAX_REFERENCES], far[MAX_REFERENCES + 1];
    graph_edge edges[MAX_REFERENCES];
    int near_count, far_count, edge_count;
    int32_t distances[MAX_REFERENCES]; /* that occur, ascending, without 0 */
    int rings;
    graph_node query;
    int predicted;  /* a node of `far` */
    bool forward;   /* near nodes are head entities; else tail entities */
    double largest; /* contribution, without sign */
    int height;
} picture;

static int find_or_add(graph_node *nodes, int *count, int32_t entity, int32_t distance) {
    for (int i = 0; i < *count; i++)
        if (nodes[i].entity == entity) return i;
    nodes[*count] = (graph_node){.entity = entity, .distance = distance};
    return (*count)++;
}

static void add_ring(picture *drawn, int32_t distance) {
    int at = drawn->rings;
    for (int i = 0; i < drawn->rings; i++)
        if (drawn->distances[i] == distance) return;
    for (; at > 0 && drawn->distances[at - 1] > distance; at--)
        drawn->distances[at] = drawn->distances[at - 1];
    drawn->distances[at] = distance;
    drawn->rings++;
}

static void collect(picture *drawn, const vlp_answers *answers) {
    const vlp_prediction *best = &answers->predictions[0];
    drawn->query = (graph_node){.entity = answers->query.entity};
    drawn->forward = answers->query.relation < vlp_dataset_relation_count(drawn->data);
    drawn->predicted = find_or_add(drawn->far, &drawn->far_count, best->entity, 0);
    for (int32_t i = 0; i < answers->reference_count && i < MAX_REFERENCES; i++) {
        const vlp_answer_reference *reference = &answers->references[i];
        const vlp_triple *triple = &reference->triple;
        graph_edge edge = {.from = -1};
        if (reference->distance > 0) {
            edge.from = find_or_add(drawn->near, &drawn->near_count,
                                    drawn->forward ? triple->head : triple->tail, reference->distance);
            add_ring(drawn, reference->distance);
        }
        edge.to =
            find_or_add(drawn->far, &drawn->far_count, drawn->forward ? triple->tail : triple->head, 0);
        edge.contribution = best->contributions ? best->contributions[i] : 0;
        drawn->largest = fmax(drawn->largest, fabs(edge.contribution));
        drawn->edges[drawn->edge_count++] = edge;
    }
}

/* Positions of both columns, each spread over the full height; rings are circles around the query. */
static void lay_out(picture *drawn) {
    int rows = drawn->near_count > drawn->far_count ? drawn->near_count : drawn->far_count;
    double span = (double)rows * ROW, middle = HEAD + span / 2;
    drawn->height = (int)(HEAD + span + FOOT);
    drawn->query.x = QUERY_X;
    drawn->query.y = middle;
    for (int i = 0; i < drawn->near_count; i++) {
        graph_node *node = &drawn->near[i];
        int ring = 0;
        while (drawn->distances[ring] != node->distance) ring++;
        node->y = HEAD + span * (i + 0.5) / drawn->near_count;
        double x = drawn->rings == 1
                       ? LONE_RING
                       : FIRST_RING + (double)(LAST_RING - FIRST_RING) * ring / (drawn->rings - 1);
        /* A flat arc. */
        double off = (node->y - middle) / (span > 0 ? span : 1);
        node->x = x - 36 * off * off;
    }
    for (int i = 0; i < drawn->far_count; i++) {
        drawn->far[i].x = ANSWERS_X;
        drawn->far[i].y = HEAD + span * (i + 0.5) / drawn->far_count;
    }
}

static void draw_rings(html_out *out, const picture *drawn) {
    double top = HEAD - 6, bottom = drawn->height - FOOT;
    for (int i = 0; i < drawn->rings; i++) {
        double x = drawn->rings == 1
                       ? LONE_RING
                       : FIRST_RING + (double)(LAST_RING - FIRST_RING) * i / (drawn->rings - 1);
        html_print(out, "<path class=\"ring\" d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\"/>", x - 9, top, x + 9,
                   (top + bottom) / 2, x - 9, bottom);
        html_print(out, "<text class=\"t\" text-anchor=\"middle\" x=\"%.1f\" y=\"18\">%d hop%s</text>",
                   x, drawn->distances[i], drawn->distances[i] == 1 ? "" : "s");
    }
    html_print(out, "<text class=\"t\" x=\"%d\" y=\"18\">answers</text>", ANSWERS_X - 6);
}

/* A curve with horizontal ends and a tip at the tail entity of the triple. */
static void draw_edge(html_out *out, const picture *drawn, const graph_edge *edge,
                      const char *relation) {
    const graph_node *from = edge->from < 0 ? &drawn->query : &drawn->near[edge->from];
    const graph_node *to = &drawn->far[edge->to];
    double share = drawn->largest > 0 ? fabs(edge->contribution) / drawn->largest : 0;
    double width = 1 + 4.5 * share, x1 = from->x + 6, x2 = to->x - 7, bend = (x2 - x1) * 0.45;
    const char *kind = share < 0.02 ? "" : edge->contribution > 0 ? " up" : " down";
    double start = drawn->forward ? x1 : x1 + 8, end = drawn->forward ? x2 - 8 : x2;
    html_print(out,
               "<path class=\"edge%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f "
               "%.1f\"><title>",
               kind, width, start, from->y, x1 + bend, from->y, x2 - bend, to->y, end, to->y);
    const graph_node *head = drawn->forward ? from : to, *tail = drawn->forward ? to : from;
    html_text(out, report_entity_text(drawn->data, head->entity));
    html_put(out, " ");
    html_text(out, relation);
    html_put(out, " ");
    html_text(out, report_entity_text(drawn->data, tail->entity));
    html_put(out, "; contribution ");
    html_signed(out, edge->contribution, 4);
    html_put(out, "</title></path>");
    if (drawn->forward)
        html_print(out, "<path class=\"tip%s\" d=\"M%.1f %.1fl-9 -5v10z\"/>", kind, x2 + 1, to->y);
    else
        html_print(out, "<path class=\"tip%s\" d=\"M%.1f %.1fl9 -5v10z\"/>", kind, x1 - 1, from->y);
}

static void draw_node(html_out *out, const picture *drawn, const graph_node *node, const char *kind,
                      double dx, double dy, int columns) {
    const char *text = report_entity_text(drawn->data, node->entity);
    html_print(out, "<circle class=\"node %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>", kind, node->x,
               node->y);
    html_print(out, "<text class=\"halo\" x=\"%.1f\" y=\"%.1f\"><title>", node->x + dx, node->y + dy);
    html_text(out, text);
    html_put(out, "</title>");
    html_text_short(out, text, columns);
    html_put(out, "</text>");
}

void report_graph(html_out *out, const vlp_dataset *data, const vlp_answers *answers) {
    picture whole = {.data = data}, *drawn = &whole;
    const char *relation =
        cli_relation(data, answers->query.relation % vlp_dataset_relation_count(data));
    collect(drawn, answers);
    lay_out(drawn);
    html_print(out,
               "<figure class=\"graph\"><div class=\"scroll\" role=\"region\" tabindex=\"0\" "
               "aria-label=\"References as a graph\"><svg role=\"img\" viewBox=\"0 0 %d %d\" "
               "aria-label=\"",
               FRAME, drawn->height);
    html_put(out, "The references of the query about ");
    html_text(out, report_entity_text(data, answers->query.entity));
    html_put(out, ", and the first answer, ");
    html_text(out, report_entity_text(data, answers->predictions[0].entity));
    html_put(out, "; the list of references follows\">");
    draw_rings(out, drawn);
    for (int i = 0; i < drawn->edge_count; i++) draw_edge(out, drawn, &drawn->edges[i], relation);
    bool copied = false;
    for (int i = 0; i < drawn->edge_count; i++)
        copied = copied || drawn->edges[i].to == drawn->predicted;
    const graph_node *guess = &drawn->far[drawn->predicted];
    if (!copied)
        html_print(out, "<path class=\"guess\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>",
                   drawn->query.x + 7, drawn->query.y, drawn->query.x + 130, guess->y, guess->x - 160,
                   guess->y, guess->x - 7, guess->y);
    draw_node(out, drawn, &drawn->query, "query", -6, -12, QUERY_COLUMNS);
    for (int i = 0; i < drawn->near_count; i++)
        draw_node(out, drawn, &drawn->near[i], "", 4, -8, NODE_COLUMNS);
    for (int i = 0; i < drawn->far_count; i++)
        draw_node(out, drawn, &drawn->far[i], i == drawn->predicted ? "predicted" : "", 11, 4.5,
                  ANSWER_COLUMNS);
    html_put(out, "</svg></div></figure>\n");
}

/* ---- Lists --------------------------------------------------------------------------------------- */

/* Whether this is a held-out answer of the query. */
static bool is_right(const vlp_dataset *data, vlp_split split, const vlp_query *query, int32_t answer) {
    int32_t relations = vlp_dataset_relation_count(data), relation = query->relation % relations;
    bool forward = query->relation < relations;
    int64_t count;
    const vlp_triple *triples = vlp_dataset_triples(data, split, &count);
    vlp_triple wanted = {forward ? query->entity : answer, relation, forward ? answer : query->entity};
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&triples[i], &wanted, sizeof wanted) == 0) return true;
    return false;
}

static void query(html_out *out, const vlp_dataset *data, const vlp_query *query) {
    int32_t relations = vlp_dataset_relation_count(data);
    const char *relation = cli_relation(data, query->relation % relations);
    bool forward = query->relation < relations;
    if (forward)
        report_entity(out, data, query->entity);
    else
        html_put(out, "?");
    html_put(out, " <span class=\"mono\">");
    html_name(out, relation);
    html_put(out, "</span> ");
    if (forward)
        html_put(out, "?");
    else
        report_entity(out, data, query->entity);
}

/* The filtered rank of the held-out answer, and why it may differ from its position in the list:
 * `position` from 1, 0 where it is not in it. */
static void rank_text(html_out *out, const report_run *run, int32_t truth, double rank, int position) {
    html_put(out, "<p class=\"small\">Held-out answer: ");
    report_entity(out, run->data, truth);
    html_put(out, ", <b>filtered rank ");
    report_rank(out, rank);
    html_put(out, "</b>.");
    if (position == 0 ? rank <= REPORT_ANSWERS : rank < position)
        html_put(out, position == 0
                          ? " It is not in the list: other true answers above it are not counted."
                          : " The filtered rank does not count the other true answers above it.");
    if (rank > floor(rank) || (position > 0 && rank > position))
        html_put(out, " It shares its score with others, and the mean of their ranks.");
    html_put(out, "</p>\n");
}

static void answer_list(html_out *out, const report *page, const report_run *run,
                        const vlp_answers *answers, int32_t truth, double rank) {
    int position = 0;
    html_put(out, "<ol>\n");
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        const vlp_prediction *prediction = &answers->predictions[i];
        html_put(out, "<li>");
        report_entity(out, run->data, prediction->entity);
        html_put(out, " <span class=\"soft small\">");
        html_number(out, prediction->score, 3);
        html_put(out, "</span>");
        if (is_right(run->data, page->split, &answers->query, prediction->entity))
            html_put(out, " <span class=\"tag good\">&#10003; held out, true</span>");
        if (prediction->entity == truth) position = i + 1;
        html_put(out, "</li>\n");
    }
    html_put(out, "</ol>\n");
    rank_text(out, run, truth, rank, position);
}

static void reference_list(html_out *out, const report_run *run, const vlp_answers *answers) {
    const vlp_prediction *best = &answers->predictions[0];
    int32_t relations = vlp_dataset_relation_count(run->data);
    const char *relation = cli_relation(run->data, answers->query.relation % relations);
    report_fold_begin(out, "The references as a list");
    report_table_begin(out, "References");
    html_put(out, "<thead><tr><th class=\"left\" scope=\"col\">known triple</th>"
                  "<th scope=\"col\">hops away</th><th scope=\"col\">contribution</th></tr></thead>"
                  "<tbody>\n");
    for (int32_t i = 0; i < answers->reference_count; i++) {
        const vlp_answer_reference *reference = &answers->references[i];
        html_put(out, "<tr><td class=\"left\">");
        report_entity(out, run->data, reference->triple.head);
        html_put(out, " <span class=\"mono\">");
        html_name(out, relation);
        html_put(out, "</span> ");
        report_entity(out, run->data, reference->triple.tail);
        html_print(out, "</td><td>%d</td><td>", reference->distance);
        html_signed(out, best->contributions ? best->contributions[i] : (double)NAN, 4);
        html_put(out, "</td></tr>\n");
    }
    html_put(out, "</tbody>");
    report_table_end(out);
    report_fold_end(out);
}

/* ---- The section --------------------------------------------------------------------------------- */

static void run_example(html_out *out, const report *page, const report_group *group,
                        const report_run *run, int example) {
    const vlp_answers *answers = vlp_predictions_get(run->answers, example);
    html_put(out, "<div>\n");
    if (group->count > 1) {
        html_put(out, "<h4>");
        html_name(out, run->name);
        html_put(out, "</h4>\n");
    }
    answer_list(out, page, run, answers, group->truths[example],
                vlp_evaluation_rank(run->evaluation, VLP_BY_F, group->places[example]));
    /* A run alone has its graphs beside its answers, several have them below. */
    if (group->count == 1) html_put(out, "</div>\n<div>\n");
    html_put(out, "<div class=\"graphs\">\n");
    if (run->explained && answers->prediction_count > 0) {
        html_put(out, "<div>\n");
        report_paths(out, run->data, vlp_predictions_get(run->explained, example));
        html_put(out, "</div>\n");
    }
    bool shown = component_has(run->info.components, VLP_VERTICAL) ||
                 !component_has(run->info.components, VLP_PATH);
    if (shown && answers->reference_count == 0) {
        html_put(out, "<p class=\"soft small\">No reference: no known triple of this relation is near "
                      "enough.</p>\n");
    } else if (shown && answers->prediction_count > 0) {
        html_put(out, "<div>\n");
        report_graph(out, run->data, answers);
        reference_list(out, run, answers);
        html_put(out, "</div>\n");
    }
    html_put(out, "</div>\n</div>\n");
}

/* Whether a run of the page has this component. */
static bool any_has(const report *page, vlp_component component) {
    for (int i = 0; i < page->count; i++)
        if (component_has(page->runs[i].info.components, (int)component)) return true;
    return false;
}

static void explain_section(html_out *out, const report *page) {
    html_print(out,
               "<p>The queries are a random sample of all queries of <i>%s</i> (seed %llu), whether the "
               "runs are right or wrong. The lists leave out known answers of train%s. ",
               report_split_name(page->split), (unsigned long long)page->seed,
               page->split == VLP_TEST ? " and valid" : "");
    html_print(out,
               "The <b>filtered rank</b> of a held-out answer also leaves out the other true answers of "
               "<i>%s</i>, as the evaluation does, so it may be smaller than the position in the "
               "list.</p>\n",
               report_split_name(page->split));
    bool paths = any_has(page, VLP_PATH);
    if (paths)
        html_put(out, "<p>The graphs of paths show chains of known triples from the entity of the query "
                      "(left, filled) to the first answer of the run (right, filled blue). The wider a "
                      "line, the more of the path score depends on it, by its gradients. Orange lines "
                      "are known triples that were found by taking them out of the graph: without all "
                      "of them the answer falls from its rank.</p>\n");
    if (paths && !any_has(page, VLP_VERTICAL)) return;
    html_put(out,
             "<p>In the graphs of references the entity of the query is on the left, the entities of "
             "its references, the nearest known triples of the relation, are on rings by distance, the "
             "answers of the references on the right; the filled blue one is the first answer of the "
             "run. The width of a line shows the contribution of the reference to the score of that "
             "answer: blue positive, orange negative, grey near zero. A dashed line leads to an answer "
             "that is not the answer of a reference.</p>\n");
}

void report_examples(html_out *out, const report *page) {
    html_put(out, "<section id=\"examples\"><h2>Examples</h2>\n");
    explain_section(out, page);
    for (int g = 0; g < page->group_count; g++) {
        const report_group *group = &page->groups[g];
        const vlp_dataset *data = group->runs[0]->data;
        if (page->group_count > 1) {
            html_put(out, "<h3>");
            html_name(out, report_base_name(group->runs[0]->info.data));
            html_put(out, "</h3>\n");
        }
        for (int i = 0; i < group->examples; i++) {
            html_put(out, "<article class=\"example\"><h3>");
            query(out, data, &group->queries[i]);
            html_put(out, group->count == 1 ? "</h3>\n<div class=\"sides alone\">\n"
                                            : "</h3>\n<div class=\"sides\">\n");
            for (int r = 0; r < group->count; r++) run_example(out, page, group, group->runs[r], i);
            html_put(out, "</div></article>\n");
        }
    }
    html_put(out, "</section>\n");
}
