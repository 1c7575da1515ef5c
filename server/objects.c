#include "objects.h"

#include "results_json.h"

static void entity_members(json_out *json, const served *run, int32_t entity) {
    json_integer(json, "id", entity);
    json_string(json, "name", vlp_dataset_entity_name(run->data, entity));
    json_string(json, "label", vlp_dataset_entity_label(run->data, entity));
}

static void relation_members(json_out *json, const served *run, int32_t relation) {
    json_integer(json, "id", relation);
    json_string(json, "name", vlp_dataset_relation_name(run->data, relation));
    json_string(json, "label", vlp_dataset_relation_label(run->data, relation));
}

void entity_json(json_out *json, const char *key, const served *run, int32_t entity) {
    json_object(json, key);
    entity_members(json, run, entity);
    json_string(json, "description", vlp_dataset_entity_description(run->data, entity));
    json_integer(json, "degree", run->degrees[entity]);
    json_end_object(json);
}

void relation_json(json_out *json, const char *key, const served *run, int32_t relation) {
    json_object(json, key);
    relation_members(json, run, relation);
    json_string(json, "description", vlp_dataset_relation_description(run->data, relation));
    json_integer(json, "triples", run->counts[relation]);
    json_end_object(json);
}

static void place_json(json_out *json, const char *key, const served *run, int32_t entity) {
    json_object(json, key);
    entity_members(json, run, entity);
    json_end_object(json);
}

void triple_json(json_out *json, const char *key, const served *run, vlp_triple triple) {
    json_object(json, key);
    place_json(json, "head", run, triple.head);
    json_object(json, "relation");
    relation_members(json, run, triple.relation);
    json_end_object(json);
    place_json(json, "tail", run, triple.tail);
    json_end_object(json);
}

void query_json(json_out *json, const served *run, vlp_query query) {
    bool tail = query.relation < run->relations;
    json_object(json, "query");
    if (tail)
        entity_json(json, "head", run, query.entity);
    else
        json_string(json, "head", NULL);
    relation_json(json, "relation", run, query.relation % run->relations);
    if (tail)
        json_string(json, "tail", NULL);
    else
        entity_json(json, "tail", run, query.entity);
    json_string(json, "asks", tail ? "tail" : "head");
    json_end_object(json);
}

void weights_json(json_out *json, const served *run) {
    json_object(json, "weights");
    component_parts_json(json, run->info.weights);
    json_end_object(json);
}
