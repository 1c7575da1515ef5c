/* Entities, relations, triples and queries as JSON. */
#ifndef VLP_SERVER_OBJECTS_H
#define VLP_SERVER_OBJECTS_H

#include "served.h"

void entity_json(json_out *json, const char *key, const served *run, int32_t entity);
void relation_json(json_out *json, const char *key, const served *run, int32_t relation);
/* Its entities and relation without description, degree and count. */
void triple_json(json_out *json, const char *key, const served *run, vlp_triple triple);
void query_json(json_out *json, const served *run, vlp_query query);
void weights_json(json_out *json, const served *run);

#endif
