/* The run, its entities, relations and known triples. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "handlers.h"
#include "objects.h"
#include "results_json.h"

void answer_health(http_handling *handling) {
    json_out json = reply_begin(handling->reply, 200);
    json_object(&json, NULL);
    json_string(&json, "status", "ok");
    json_string(&json, "version", vlp_version());
    json_string(&json, "run", handling->run->name);
    json_number(&json, "uptime_seconds", handling->uptime);
    json_end_object(&json);
    reply_end(handling->reply);
}

/* ---- The run ------------------------------------------------------------------------------------- */

static void data_json(json_out *json, const served *run) {
    static const char *const names[VLP_SPLITS] = {"train", "valid", "test"};
    const vlp_dataset *data = vlp_run_dataset(run->run);
    const char *slash = run->info.data ? strrchr(run->info.data, '/') : NULL;
    json_object(json, "data");
    json_string(json, "name", slash && slash[1] ? slash + 1 : run->info.data);
    json_integer(json, "entities", vlp_dataset_entity_count(data));
    json_integer(json, "relations", vlp_dataset_relation_count(data));
    for (int i = 0; i < VLP_SPLITS; i++) json_integer(json, names[i], run->stats.triples[i]);
    json_bool(json, "labels", run->stats.labels > 0);
    json_end_object(json);
}

static void settings_json(json_out *json, const served *run) {
    vlp_setting_info info;
    char value[64];
    json_array(json, "settings");
    for (int32_t i = 0; vlp_setting_describe(&info, i) && vlp_run_setting(value, run->run, i); i++) {
        json_object(json, NULL);
        json_string(json, "name", info.name);
        json_string(json, "section", info.section);
        json_string(json, "value", value);
        json_string(json, "default", info.fallback);
        json_string(json, "help", info.help);
        json_end_object(json);
    }
    json_end_array(json);
}

static void history_json(json_out *json, const vlp_history *history) {
    json_array(json, "history");
    for (int64_t i = 0; i < history->count; i++) {
        const vlp_history_point *point = &history->items[i];
        json_object(json, NULL);
        json_integer(json, "step", point->step);
        for (int c = 0; c < VLP_COMPONENTS; c++) {
            char key[32];
            snprintf(key, sizeof key, "loss_%s", vlp_component_name((vlp_component)c));
            json_number(json, key, point->losses[c]);
        }
        json_number(json, "valid_mrr", point->valid_mrr);
        json_end_object(json);
    }
    json_end_array(json);
}

void answer_run(http_handling *handling) {
    const served *run = handling->run;
    json_out json = reply_begin(handling->reply, 200);
    json_object(&json, NULL);
    json_string(&json, "name", run->name);
    json_string(&json, "version", vlp_run_version(run->run));
    json_string(&json, "model", run->info.model);
    json_integer(&json, "dim", run->info.dim);
    json_string(&json, "device", run->device);
    data_json(&json, run);
    json_array(&json, "components");
    for (int c = 0; c < VLP_COMPONENTS; c++)
        if (run->info.components >> c & 1)
            json_string(&json, NULL, vlp_component_name((vlp_component)c));
    json_end_array(&json);
    weights_json(&json, run);
    json_number(&json, "lambda", run->info.horizontal_only ? NAN : run->info.lambda);
    json_integer(&json, "references", run->info.references);
    json_integer(&json, "step", run->info.step);
    json_number(&json, "valid_mrr", run->info.valid_mrr);
    settings_json(&json, run);
    history_json(&json, run->history);
    json_end_object(&json);
    reply_end(handling->reply);
}

/* ---- Entities and relations ---------------------------------------------------------------------- */

void answer_entities(http_handling *handling) {
    const char *text = request_text(handling->request, handling->reply, "q");
    int32_t found[SEARCH_LIMIT], limit = 20;
    if (reply_failed(handling->reply) ||
        !request_integer(&limit, handling->request, handling->reply, "limit", 1, SEARCH_LIMIT))
        return;
    bool more;
    int32_t count = search_index_find(found, &more, handling->run->search, text ? text : "", limit);
    json_out json = reply_begin(handling->reply, 200);
    json_object(&json, NULL);
    json_array(&json, "entities");
    for (int32_t i = 0; i < count; i++) entity_json(&json, NULL, handling->run, found[i]);
    json_end_array(&json);
    json_bool(&json, "more", more);
    json_end_object(&json);
    reply_end(handling->reply);
}

void answer_relations(http_handling *handling) {
    json_out json = reply_begin(handling->reply, 200);
    json_object(&json, NULL);
    json_array(&json, "relations");
    for (int32_t r = 0; r < handling->run->relations; r++) relation_json(&json, NULL, handling->run, r);
    json_end_array(&json);
    json_end_object(&json);
    reply_end(handling->reply);
}

typedef struct facts {
    int32_t entity, relation; /* relation -1: all */
    bool out, in;             /* directions wanted */
    int64_t offset, limit, total;
} facts;

/* Writes those of one direction that are within the window, and counts all. */
static void facts_json(json_out *json, const served *run, facts *of, bool out) {
    const served_edges *edges = out ? &run->out : &run->in;
    for (int64_t i = edges->offsets[of->entity]; i < edges->offsets[of->entity + 1]; i++) {
        vlp_triple triple = run->triples[edges->edges[i]];
        if (of->relation >= 0 && triple.relation != of->relation) continue;
        int64_t number = of->total++;
        if (number < of->offset || number >= of->offset + of->limit) continue;
        json_object(json, NULL);
        triple_json(json, "triple", run, triple);
        json_string(json, "direction", out ? "out" : "in");
        json_end_object(json);
    }
}

/* The relations of one direction with the number of triples. */
static void summary_json(json_out *json, const served *run, int32_t entity, bool out) {
    const served_edges *edges = out ? &run->out : &run->in;
    int64_t end = edges->offsets[entity + 1];
    for (int64_t i = edges->offsets[entity], next; i < end; i = next) {
        int32_t relation = run->triples[edges->edges[i]].relation;
        for (next = i + 1; next < end && run->triples[edges->edges[next]].relation == relation;) next++;
        json_object(json, NULL);
        relation_json(json, "relation", run, relation);
        json_string(json, "direction", out ? "out" : "in");
        json_integer(json, "count", next - i);
        json_end_object(json);
    }
}

static bool read_facts(facts *out, http_handling *handling) {
    const http_request *request = handling->request;
    http_reply *reply = handling->reply;
    int32_t limit = 50, offset = 0;
    const char *name = request_needed(request, reply, "name");
    if (!name || !request_integer(&limit, request, reply, "limit", 0, 1000) ||
        !request_integer(&offset, request, reply, "offset", 0, INT32_MAX))
        return false;
    const char *relation = request_text(request, reply, "relation");
    const char *direction = request_text(request, reply, "direction");
    if (reply_failed(reply)) return false;
    if (direction && strcmp(direction, "out") != 0 && strcmp(direction, "in") != 0) {
        reply_error(reply, 400, "The parameter 'direction' takes out or in.");
        return false;
    }
    *out = (facts){.relation = -1, .offset = offset, .limit = limit};
    out->out = !direction || direction[0] == 'o';
    out->in = !direction || direction[0] == 'i';
    out->entity = served_entity(handling->run, reply, name);
    if (out->entity >= 0 && relation) out->relation = served_relation(handling->run, reply, relation);
    return !reply_failed(reply);
}

void answer_entity(http_handling *handling) {
    const served *run = handling->run;
    facts of;
    if (!read_facts(&of, handling)) return;
    json_out json = reply_begin(handling->reply, 200);
    json_object(&json, NULL);
    entity_json(&json, "entity", run, of.entity);
    json_array(&json, "facts");
    if (of.out) facts_json(&json, run, &of, true);
    if (of.in) facts_json(&json, run, &of, false);
    json_end_array(&json);
    json_integer(&json, "total", of.total);
    json_array(&json, "relations");
    summary_json(&json, run, of.entity, true);
    summary_json(&json, run, of.entity, false);
    json_end_array(&json);
    json_end_object(&json);
    reply_end(handling->reply);
}
