/* A map of the entities: the first two principal components of their embeddings, computed once. */
#include <stdlib.h>
#include <string.h>

#include "handlers.h"
#include "pca.h"

enum { MAP_LIMIT = 20000 };

/* Computes the map, where it is not there yet; others wait for it. */
static bool make_map(http_handling *handling) {
    served *run = handling->run;
    served_map *map = &run->map;
    pthread_mutex_lock(&map->lock);
    vlp_embeddings table = {0};
    vlp_status status = map->points ? VLP_OK : vlp_run_entity_embeddings(&table, run->run);
    if (status == VLP_OK && table.rows > 0) {
        map->points = malloc(2 * (size_t)table.rows * sizeof *map->points);
        if (!map->points ||
            !pca_project(map->points, map->explained, table.values, table.rows, table.columns)) {
            free(map->points);
            map->points = NULL;
            status = VLP_ERROR_MEMORY;
        }
        map->rows = table.rows;
    }
    bool made = map->points != NULL;
    pthread_mutex_unlock(&map->lock);
    if (status != VLP_OK)
        answer_failure(handling->reply, status);
    else if (!made)
        reply_error(handling->reply, 404, "The run has no embeddings: the path model alone scores.");
    return made;
}

static void point_json(json_out *json, const served *run, int32_t entity) {
    json_object(json, NULL);
    json_integer(json, "id", entity);
    json_string(json, "name", vlp_dataset_entity_name(run->data, entity));
    json_string(json, "label", vlp_dataset_entity_label(run->data, entity));
    json_integer(json, "degree", run->degrees[entity]);
    json_number(json, "x", (double)run->map.points[2 * (int64_t)entity]);
    json_number(json, "y", (double)run->map.points[2 * (int64_t)entity + 1]);
    json_end_object(json);
}

/* The entities that are named, at most as many as a request has parameters. */
static int32_t read_names(int32_t *out, http_handling *handling) {
    int32_t count = 0;
    int index = -1;
    for (const char *name; (name = request_next(handling->request, "name", &index));) {
        int32_t entity = served_entity(handling->run, handling->reply, name);
        if (entity < 0) return -1;
        out[count++] = entity;
    }
    return count;
}

void answer_map(http_handling *handling) {
    const served *run = handling->run;
    int32_t limit = 2000, named[REQUEST_PARAMETERS];
    if (!request_integer(&limit, handling->request, handling->reply, "limit", 0, MAP_LIMIT)) return;
    int32_t count = read_names(named, handling);
    if (count < 0 || !make_map(handling)) return;
    int32_t taken = 0;
    json_out json = reply_begin(handling->reply, 200);
    json_object(&json, NULL);
    json_array(&json, "points");
    for (int32_t i = 0; i < run->entities && taken < limit; i++) {
        int32_t entity = search_index_ranked(run->search, i);
        if (entity >= run->map.rows)
            continue; /* of a graph with entities that the run was not trained on */
        point_json(&json, run, entity);
        taken++;
        for (int32_t j = 0; j < count; j++)
            if (named[j] == entity) named[j] = -1;
    }
    for (int32_t j = 0; j < count; j++)
        if (named[j] >= 0 && named[j] < run->map.rows) point_json(&json, run, named[j]);
    json_end_array(&json);
    json_array(&json, "explained");
    for (int i = 0; i < 2; i++) json_number(&json, NULL, run->map.explained[i]);
    json_end_array(&json);
    json_integer(&json, "entities", run->entities);
    json_end_object(&json);
    reply_end(handling->reply);
}
