/* Writes JSON to a stream. Keys are NULL in arrays and at the top level. */
#ifndef VLP_COMMON_JSON_H
#define VLP_COMMON_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json_out {
    FILE *stream;
    bool first; /* the current object or array is empty */
} json_out;

json_out json_start(FILE *stream);
void json_object(json_out *json, const char *key);
void json_array(json_out *json, const char *key);
void json_end_object(json_out *json);
void json_end_array(json_out *json);
void json_string(json_out *json, const char *key, const char *value); /* NULL: null */
void json_integer(json_out *json, const char *key, int64_t value);
void json_number(json_out *json, const char *key, double value); /* null if not finite */
void json_bool(json_out *json, const char *key, bool value);

#endif
