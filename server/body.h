/* The JSON object of a body, read by jansson, whose names clash with those of our writer: only body.c
 * includes it. Texts are valid UTF-8 without NUL and live as long as the body. */
#ifndef VLP_SERVER_BODY_H
#define VLP_SERVER_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct json_t body_json;

typedef enum body_kind {
    BODY_MISSING, /* or null */
    BODY_TEXT,
    BODY_INTEGER,
    BODY_BOOL,
    BODY_LIST,
    BODY_OBJECT,
    BODY_NUMBER /* not a whole one */
} body_kind;

typedef struct body_value {
    body_kind kind;
    const char *text;
    int64_t integer; /* 0 or 1 for BODY_BOOL */
    body_json *json; /* of a list or an object */
    size_t count;    /* of a list */
} body_value;

enum { BODY_MESSAGE = 256 };
/* NULL: it is not a JSON object without repeated keys, and `message` says why. */
body_json *body_read(char message[BODY_MESSAGE], const char *text, size_t size);
void body_free(body_json *body);

/* A member of an object, an item of a list; BODY_MISSING where `json` is NULL or has none. */
body_value body_member(const body_json *json, const char *name);
body_value body_item(const body_json *json, size_t index);
/* The first key that is not among `names`, ended by NULL; NULL: there is none. */
const char *body_unknown(body_json *json, const char *const *names);

#endif
