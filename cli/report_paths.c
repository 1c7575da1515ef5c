/* The paths of an answer as a small graph, and the known triples it rests on. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "report.h"

/* From left to right: the entity of the query, the entities of the paths, the answer. An entity is to
 * the right of those before it on every path, where paths agree on the order. The heaviest path is the
 * first row; the others are below it, each on a row of its own as far as its entities are not those of a
 * heavier one. */

enum {
    MAX_NODES = VLP_MAX_PATHS * 16 + 2,
    MAX_EDGES = VLP_MAX_PATHS * 16,
    COLUMN = 170,
    ROW = 62,
    HEAD = 40,
    FOOT = 12,
    LEFT = 82,
    RIGHT = 82,
    NODE_COLUMNS = 21,
    RELATION_COLUMNS = 20,
    LINE = 14, /* height of a text */
    BELOW = 17 /* from a node to the text below it */
};

typedef struct path_node {
    int32_t entity;
    int column, row;
    double x, y;
} path_node;

typedef struct path_edge {
    vlp_triple triple;
    int from, to; /* nodes, in the order of the path */
    int row;      /* that it hangs down to, between the query's entity and the answer */
    bool forward;
    double weight;           /* of all paths through it */
    bool rests;              /* the answer falls without it and the others of its kind */
    double label_x, label_y; /* where its relation is drawn */
} path_edge;

typedef struct picture {
    const vlp_dataset *data;
    path_node nodes[MAX_NODES]; /* the query's entity is the first, the answer the second */
    path_edge edges[MAX_EDGES];
    int node_count, edge_count;
    int columns, rows, height;
    double heaviest;
} picture;

static int find_node(picture *drawn, int32_t entity) {
    for (int i = 0; i < drawn->node_count; i++)
        if (drawn->nodes[i].entity == entity) return i;
    return -1;
}

static int add_node(picture *drawn, int32_t entity, int column, int row) {
    int at = find_node(drawn, entity);
    if (at >= 0) return at;
    drawn->nodes[drawn->node_count] = (path_node){.entity = entity, .column = column, .row = row};
    return drawn->node_count++;
}

static bool rests_on(const vlp_support *support, vlp_triple triple) {
    for (int32_t i = 0; i < support->count; i++)
        if (memcmp(&support->triples[i], &triple, sizeof triple) == 0) return true;
    return false;
}

static void add_edge(picture *drawn, const path_edge *edge) {
    int at = 0;
    while (at < drawn->edge_count &&
           memcmp(&drawn->edges[at].triple, &edge->triple, sizeof edge->triple) != 0)
        at++;
    if (at == drawn->edge_count)
        drawn->edges[drawn->edge_count++] = *edge;
    else
        drawn->edges[at].weight += edge->weight;
    drawn->heaviest = fmax(drawn->heaviest, drawn->edges[at].weight);
}

static void collect(picture *drawn, int32_t entity, const vlp_prediction *best) {
    drawn->nodes[0] = (path_node){.entity = entity};
    drawn->nodes[1] = (path_node){.entity = best->entity};
    drawn->node_count = 2;
    drawn->rows = 1;
    for (int32_t i = 0; i < best->path_count; i++) {
        const vlp_path *path = &best->paths[i];
        int from = 0;
        if (path->count > drawn->columns) drawn->columns = path->count;
        for (int32_t j = 0; j < path->count; j++) {
            const vlp_path_triple *step = &path->triples[j];
            int32_t next = step->forward ? step->triple.tail : step->triple.head;
            int to = j + 1 == path->count ? 1 : add_node(drawn, next, j + 1, i);
            add_edge(drawn, &(path_edge){.triple = step->triple,
                                         .from = from,
                                         .to = to,
                                         .row = path->count == 1 ? i : 0,
                                         .forward = step->forward,
                                         .weight = path->weight,
                                         .rests = rests_on(best->support, step->triple)});
            from = to;
        }
        if (path->count == 1 && i >= drawn->rows) drawn->rows = i + 1;
    }
}

/* Moves entities to the right until every triple of a path leads there. Paths that disagree about the
 * order have none: entities then keep the column of the heaviest path they are on. */
static void order_columns(picture *drawn) {
    int columns[MAX_NODES];
    bool moved = true;
    for (int i = 0; i < drawn->node_count; i++) columns[i] = drawn->nodes[i].column;
    for (int round = 0; moved && round <= drawn->node_count; round++) {
        moved = false;
        for (int i = 0; i < drawn->edge_count; i++) {
            const path_edge *edge = &drawn->edges[i];
            if (edge->to == 1 || columns[edge->to] > columns[edge->from]) continue;
            columns[edge->to] = columns[edge->from] + 1;
            moved = true;
        }
    }
    for (int i = 2; i < drawn->node_count; i++) {
        if (!moved) drawn->nodes[i].column = columns[i];
        if (drawn->nodes[i].column >= drawn->columns) drawn->columns = drawn->nodes[i].column + 1;
    }
    drawn->nodes[1].column = drawn->columns;
}

static bool occupied(const picture *drawn, int before, int column, int row) {
    for (int i = 2; i < before; i++)
        if (drawn->nodes[i].column == column && drawn->nodes[i].row == row) return true;
    return false;
}

/* Below the end of an edge where curves do not meet, of those into the answer the begin, and below the
 * labels that are there already. */
static void place_relation(picture *drawn, int number) {
    path_edge *edge = &drawn->edges[number];
    const path_node *from = &drawn->nodes[edge->from], *to = &drawn->nodes[edge->to];
    double x = to->x - 0.4 * COLUMN, y = to->y;
    if (edge->to == 1) x = edge->from == 0 ? (from->x + to->x) / 2 : from->x + 0.4 * COLUMN;
    if (edge->to == 1) y = from->y + edge->row * ROW;
    y += BELOW;
    for (int i = 0; i < number;) {
        const path_edge *other = &drawn->edges[i++];
        if (fabs(other->label_x - x) > 0.7 * COLUMN || fabs(other->label_y - y) >= LINE) continue;
        y = other->label_y + LINE;
        i = 0;
    }
    edge->label_x = x;
    edge->label_y = y;
    drawn->height = (int)fmax(drawn->height, y + LINE);
}

static void lay_out(picture *drawn) {
    order_columns(drawn);
    for (int i = 2; i < drawn->node_count; i++) {
        path_node *node = &drawn->nodes[i];
        while (occupied(drawn, i, node->column, node->row)) node->row++;
        if (node->row >= drawn->rows) drawn->rows = node->row + 1;
    }
    for (int i = 0; i < drawn->node_count; i++) {
        path_node *node = &drawn->nodes[i];
        node->x = LEFT + (double)node->column * COLUMN;
        node->y = HEAD + (double)node->row * ROW;
    }
    drawn->height = HEAD + (drawn->rows - 1) * ROW + FOOT;
    for (int i = 0; i < drawn->edge_count; i++) place_relation(drawn, i);
}

static void triple_text(html_out *out, const vlp_dataset *data, vlp_triple triple) {
    html_text(out, report_entity_text(data, triple.head));
    html_put(out, " ");
    html_text(out, cli_relation(data, triple.relation));
    html_put(out, " ");
    html_text(out, report_entity_text(data, triple.tail));
}

/* A curve with horizontal ends, a tip at the tail entity of the triple, its relation in the middle. */
static void draw_edge(html_out *out, const picture *drawn, const path_edge *edge) {
    const path_node *from = &drawn->nodes[edge->from], *to = &drawn->nodes[edge->to];
    double width = 1.5 + 4 * (drawn->heaviest > 0 ? edge->weight / drawn->heaviest : 0);
    double x1 = from->x + 7, x2 = to->x - 7, bend = (x2 - x1) * 0.4;
    double down = (double)edge->row * ROW * 4 / 3; /* three quarters of it are the middle of the curve */
    double start = edge->forward ? x1 : x1 + 8, end = edge->forward ? x2 - 8 : x2;
    const char *kind = edge->rests ? " rests" : " up";
    html_print(out,
               "<path class=\"edge%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f "
               "%.1f\"><title>",
               kind, width, start, from->y, x1 + bend, from->y + down, x2 - bend, to->y + down, end,
               to->y);
    triple_text(out, drawn->data, edge->triple);
    html_put(out, edge->rests ? "; the answer rests on it</title></path>" : "</title></path>");
    if (edge->forward)
        html_print(out, "<path class=\"tip%s\" d=\"M%.1f %.1fl-10 -5.5v11z\"/>", kind, x2 + 1, to->y);
    else
        html_print(out, "<path class=\"tip%s\" d=\"M%.1f %.1fl10 -5.5v11z\"/>", kind, x1 - 1, from->y);
}

static void draw_relation(html_out *out, const picture *drawn, const path_edge *edge) {
    html_print(out, "<text class=\"t halo\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\"><title>",
               edge->label_x, edge->label_y);
    triple_text(out, drawn->data, edge->triple);
    html_put(out, "</title>");
    html_text_short(out, cli_relation(drawn->data, edge->triple.relation), RELATION_COLUMNS);
    html_put(out, "</text>");
}

static void draw_node(html_out *out, const picture *drawn, int number) {
    const path_node *node = &drawn->nodes[number];
    const char *text = report_entity_text(drawn->data, node->entity);
    const char *kind = number == 0 ? "query" : number == 1 ? "predicted" : "";
    html_print(out, "<circle class=\"node %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>", kind, node->x,
               node->y);
    html_print(out, "<text class=\"halo\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\"><title>", node->x,
               node->y - 13);
    html_text(out, text);
    html_put(out, "</title>");
    html_text_short(out, text, NODE_COLUMNS);
    html_put(out, "</text>");
}

static void draw(html_out *out, const vlp_dataset *data, int32_t entity, const vlp_prediction *best) {
    picture whole = {.data = data}, *drawn = &whole;
    collect(drawn, entity, best);
    lay_out(drawn);
    int width = LEFT + drawn->columns * COLUMN + RIGHT;
    html_print(
        out,
        "<figure class=\"graph paths\"><div class=\"scroll\" role=\"region\" tabindex=\"0\" "
        "aria-label=\"Paths as a graph\"><svg role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 "
        "%d %d\" aria-label=\"",
        width, drawn->height, width, drawn->height);
    html_put(out, "Paths of known triples from ");
    html_text(out, report_entity_text(data, entity));
    html_put(out, " to the first answer, ");
    html_text(out, report_entity_text(data, best->entity));
    html_put(out, "; the list of paths follows\">");
    /* Relations come after all curves, so that none crosses them. */
    for (int i = 0; i < drawn->edge_count; i++) draw_edge(out, drawn, &drawn->edges[i]);
    for (int i = 0; i < drawn->edge_count; i++) draw_relation(out, drawn, &drawn->edges[i]);
    for (int i = 0; i < drawn->node_count; i++) draw_node(out, drawn, i);
    html_put(out, "</svg></div></figure>\n");
}

/* ---- Words --------------------------------------------------------------------------------------- */

static void triple_markup(html_out *out, const vlp_dataset *data, vlp_triple triple) {
    report_entity(out, data, triple.head);
    html_put(out, " <span class=\"mono\">");
    html_name(out, cli_relation(data, triple.relation));
    html_put(out, "</span> ");
    report_entity(out, data, triple.tail);
}

static void support_text(html_out *out, const vlp_dataset *data, const vlp_support *support) {
    if (support->count == 0) {
        html_put(out,
                 "<p class=\"small\">No set of four known triples was found without which the first "
                 "answer falls from rank ");
        report_rank(out, support->rank_before);
        html_put(out, ".</p>\n");
        return;
    }
    html_print(out, "<p class=\"small\">Without %s the first answer falls from rank ",
               support->count == 1 ? "this known triple" : "these known triples");
    report_rank(out, support->rank_before);
    html_put(out, " to ");
    report_rank(out, support->rank);
    html_put(out, ":</p>\n<ul>");
    for (int32_t i = 0; i < support->count; i++) {
        html_put(out, "<li>");
        triple_markup(out, data, support->triples[i]);
        html_put(out, "</li>\n");
    }
    html_put(out, "</ul>\n");
}

static void path_list(html_out *out, const vlp_dataset *data, const vlp_prediction *best) {
    report_fold_begin(out, "The paths as a list");
    report_table_begin(out, "Paths");
    html_put(out, "<thead><tr><th class=\"left\" scope=\"col\">known triples, from the query to the "
                  "answer</th><th scope=\"col\">weight</th></tr></thead><tbody>\n");
    for (int32_t i = 0; i < best->path_count; i++) {
        const vlp_path *path = &best->paths[i];
        html_put(out, "<tr><td class=\"left\">");
        for (int32_t j = 0; j < path->count; j++) {
            html_put(out, j > 0 ? "; " : "");
            triple_markup(out, data, path->triples[j].triple);
        }
        html_put(out, "</td><td>");
        html_number(out, path->weight, 2);
        html_put(out, "</td></tr>\n");
    }
    html_put(out, "</tbody>");
    report_table_end(out);
    report_fold_end(out);
}

void report_paths(html_out *out, const vlp_dataset *data, const vlp_answers *answers) {
    const vlp_prediction *best = &answers->predictions[0];
    if (best->path_count == 0) {
        html_put(out, "<p class=\"soft small\">No path: no chain of known triples that the path model "
                      "reads leads to the first answer.</p>\n");
        return;
    }
    draw(out, data, answers->query.entity, best);
    support_text(out, data, best->support);
    path_list(out, data, best);
}
