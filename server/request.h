/* A request as it is read, and the reply to it. Neither knows of sockets.
 *
 * Parameters come from the query of the address, or from the JSON object of a body; handlers do not see
 * the difference. All texts are valid UTF-8 without NUL. */
#ifndef VLP_SERVER_REQUEST_H
#define VLP_SERVER_REQUEST_H

#include "body.h"
#include "json.h"

enum {
    REQUEST_PARAMETERS = 64, /* of a query */
    REQUEST_BODY = 1000000,  /* bytes */
    REQUEST_TARGET = 8192    /* bytes of path and query */
};

typedef enum request_method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_OTHER } request_method;

typedef struct request_parameter {
    const char *name, *value;
} request_parameter;

typedef struct http_request {
    request_method method;
    char *text;       /* owns path and parameters */
    const char *path; /* decoded */
    request_parameter parameters[REQUEST_PARAMETERS];
    int count;
    body_json *body; /* NULL: none was sent */
} http_request;

/* `text` is the reply's, `fixed` is a constant; one of them is NULL. */
typedef struct http_reply {
    int status;
    const char *type;
    char *text;
    const char *fixed;
    size_t size;
    const char *allow; /* methods, of 405 */
    int retry_after;   /* seconds, of 503; 0: not said */
    FILE *stream;      /* while it is written */
} http_reply;

request_method request_method_of(const char *name);
/* Reads path and query of `target`, "/api/predict?head=a". False: it is wrong, and the reply says how.
 */
bool request_read_target(http_request *out, http_reply *failure, const char *target);
/* Reads a body as a JSON object. */
bool request_read_body(http_request *out, http_reply *failure, const char *body, size_t size);
void request_free(http_request *request);

/* Whether every parameter is one of `names`, ended by NULL. */
bool request_knows(const http_request *request, http_reply *failure, const char *const *names);
bool request_has(const http_request *request, const char *name);
/* The text of a parameter; NULL: it is not given, or (with a failure) not a text. */
const char *request_text(const http_request *request, http_reply *failure, const char *name);
/* The same where it has to be given. */
const char *request_needed(const http_request *request, http_reply *failure, const char *name);
/* Parameters that keep *out where they are not given. False: the value is wrong. */
bool request_integer(int32_t *out, const http_request *request, http_reply *failure, const char *name,
                     int32_t minimum, int32_t maximum);
bool request_bool(bool *out, const http_request *request, http_reply *failure, const char *name);
/* The next parameter of this name in the query, after *index, which starts at -1; NULL: no more. */
const char *request_next(const http_request *request, const char *name, int *index);

/* Starts and ends a reply of JSON. Where memory is missing the reply says so. */
json_out reply_begin(http_reply *reply, int status);
void reply_end(http_reply *reply);
/* A reply that is an error: {"error": "..."}, a sentence. An earlier one is replaced. */
void reply_error(http_reply *reply, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void reply_text(http_reply *reply, int status, const char *type, const char *fixed, size_t size);
bool reply_failed(const http_reply *reply);
void reply_free(http_reply *reply);

#endif
