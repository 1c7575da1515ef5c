#include "body.h"

#include <jansson.h>
#include <string.h>

body_json *body_read(char message[BODY_MESSAGE], const char *text, size_t size) {
    json_error_t error;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!json) {
        snprintf(message, BODY_MESSAGE, "The body is not valid JSON: line %d, column %d: %s.",
                 error.line, error.column, error.text);
    } else if (!json_is_object(json)) {
        snprintf(message, BODY_MESSAGE, "The body has to be a JSON object.");
        json_decref(json);
        json = NULL;
    }
    return json;
}

void body_free(body_json *body) {
    json_decref(body);
}

static body_value value_of(json_t *json) {
    body_value value = {.kind = BODY_MISSING, .json = json};
    if (!json) return value;
    switch (json_typeof(json)) {
    case JSON_STRING:
        value.kind = BODY_TEXT;
        value.text = json_string_value(json);
        break;
    case JSON_INTEGER:
        value.kind = BODY_INTEGER;
        value.integer = json_integer_value(json);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        value.kind = BODY_BOOL;
        value.integer = json_is_true(json);
        break;
    case JSON_ARRAY:
        value.kind = BODY_LIST;
        value.count = json_array_size(json);
        break;
    case JSON_OBJECT:
        value.kind = BODY_OBJECT;
        break;
    case JSON_REAL:
        value.kind = BODY_NUMBER;
        break;
    case JSON_NULL:
        break;
    }
    return value;
}

body_value body_member(const body_json *json, const char *name) {
    return value_of(json_object_get(json, name));
}

body_value body_item(const body_json *json, size_t index) {
    return value_of(json_array_get(json, index));
}

const char *body_unknown(body_json *json, const char *const *names) {
    for (void *at = json_object_iter(json); at; at = json_object_iter_next(json, at)) {
        const char *key = json_object_iter_key(at);
        const char *const *name = names;
        while (*name && strcmp(*name, key) != 0) name++;
        if (!*name) return key;
    }
    return NULL;
}
