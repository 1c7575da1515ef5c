#include "request.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* ---- The address --------------------------------------------------------------------------------- */

request_method request_method_of(const char *name) {
    if (strcmp(name, "GET") == 0) return METHOD_GET;
    if (strcmp(name, "HEAD") == 0) return METHOD_HEAD;
    if (strcmp(name, "POST") == 0) return METHOD_POST;
    return METHOD_OTHER;
}

static int digit(char character) {
    if (character >= '0' && character <= '9') return character - '0';
    char lower = (char)(character | 32);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_utf8(const char *text) {
    for (int length; *text; text += length)
        if (text_next(text, &length) == 0xfffd && length == 1) return false;
    return true;
}

/* Decodes %XX, and + where it is a space, in place. */
static bool decode(char *text, bool plus) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        char character = *at;
        if (character == '%') {
            int high = digit(at[1]), low = high < 0 ? -1 : digit(at[2]);
            if (low < 0 || (high == 0 && low == 0)) return false;
            character = (char)(16 * high + low);
            at += 2;
        } else if (plus && character == '+') {
            character = ' ';
        }
        *to++ = character;
    }
    *to = '\0';
    return is_utf8(text);
}

static bool fail_encoding(http_reply *failure) {
    reply_error(failure, 400,
                "The address is not well encoded: write %%XX for bytes of UTF-8, and no %%00.");
    return false;
}

bool request_read_target(http_request *out, http_reply *failure, const char *target) {
    if (target[0] != '/') {
        reply_error(failure, 400, "The address has to begin with a slash.");
        return false;
    }
    if (strlen(target) >= REQUEST_TARGET) {
        reply_error(failure, 414, "The address is longer than %d bytes; send the parameters by POST.",
                    REQUEST_TARGET);
        return false;
    }
    out->text = strdup(target);
    if (!out->text) {
        reply_error(failure, 503, "The server is short of memory; try again.");
        return false;
    }
    char *query = strchr(out->text, '?');
    if (query) *query++ = '\0';
    out->path = out->text;
    if (!decode(out->text, false)) return fail_encoding(failure);
    for (char *next; query; query = next) {
        next = strchr(query, '&');
        if (next) *next++ = '\0';
        if (!*query) continue;
        char *value = strchr(query, '=');
        if (value) *value++ = '\0';
        if (out->count == REQUEST_PARAMETERS) {
            reply_error(failure, 400, "There are more than %d parameters.", REQUEST_PARAMETERS);
            return false;
        }
        if (!decode(query, true) || (value && !decode(value, true))) return fail_encoding(failure);
        out->parameters[out->count++] = (request_parameter){query, value ? value : ""};
    }
    return true;
}

bool request_read_body(http_request *out, http_reply *failure, const char *body, size_t size) {
    char message[BODY_MESSAGE];
    out->body = body_read(message, body, size);
    if (!out->body) reply_error(failure, 400, "%s", message);
    return out->body != NULL;
}

void request_free(http_request *request) {
    free(request->text);
    body_free(request->body);
    memset(request, 0, sizeof *request);
}

/* ---- Parameters ---------------------------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *names) {
    while (*names && strcmp(name, *names) != 0) names++;
    return *names != NULL;
}

bool request_knows(const http_request *request, http_reply *failure, const char *const *names) {
    const char *unknown = NULL;
    for (int i = 0; i < request->count && !unknown; i++)
        if (!is_one_of(request->parameters[i].name, names)) unknown = request->parameters[i].name;
    if (!unknown && request->body) unknown = body_unknown(request->body, names);
    if (!unknown) return true;
    char known[256] = "none";
    size_t used = 0;
    for (int i = 0; names[i] && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
    reply_error(failure, 400, "There is no parameter '%s' here; known are: %s.", unknown, known);
    return false;
}

const char *request_next(const http_request *request, const char *name, int *index) {
    while (++*index < request->count)
        if (strcmp(request->parameters[*index].name, name) == 0)
            return request->parameters[*index].value;
    return NULL;
}

/* The value of the query, which may be given once. */
static const char *once(const http_request *request, http_reply *failure, const char *name) {
    int index = -1;
    const char *value = request_next(request, name, &index);
    if (value && request_next(request, name, &index)) {
        reply_error(failure, 400, "The parameter '%s' is given more than once.", name);
        return NULL;
    }
    return value;
}

bool request_has(const http_request *request, const char *name) {
    int index = -1;
    return body_member(request->body, name).kind != BODY_MISSING || request_next(request, name, &index);
}

const char *request_text(const http_request *request, http_reply *failure, const char *name) {
    body_value value = body_member(request->body, name);
    if (value.kind == BODY_MISSING) return once(request, failure, name);
    if (value.kind == BODY_TEXT) return value.text;
    reply_error(failure, 400, "The value of '%s' has to be a text.", name);
    return NULL;
}

const char *request_needed(const http_request *request, http_reply *failure, const char *name) {
    const char *value = request_text(request, failure, name);
    if (!value && !reply_failed(failure))
        reply_error(failure, 400, "The parameter '%s' is missing.", name);
    return value;
}

bool request_integer(int32_t *out, const http_request *request, http_reply *failure, const char *name,
                     int32_t minimum, int32_t maximum) {
    body_value json = body_member(request->body, name);
    long long value = json.integer;
    bool right = json.kind == BODY_INTEGER;
    if (json.kind == BODY_MISSING) {
        const char *text = once(request, failure, name);
        if (!text) return !reply_failed(failure);
        char *end;
        errno = 0;
        value = strtoll(text, &end, 10);
        right = end != text && *end == '\0' && errno == 0 && text[0] != ' ' && text[0] != '+';
    }
    if (!right || value < minimum || value > maximum) {
        reply_error(failure, 400, "The parameter '%s' takes a whole number from %d to %d.", name,
                    minimum, maximum);
        return false;
    }
    *out = (int32_t)value;
    return true;
}

bool request_bool(bool *out, const http_request *request, http_reply *failure, const char *name) {
    body_value json = body_member(request->body, name);
    if (json.kind == BODY_BOOL) {
        *out = json.integer != 0;
        return true;
    }
    if (json.kind == BODY_MISSING) {
        const char *text = once(request, failure, name);
        if (!text) return !reply_failed(failure);
        bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        if (yes || strcmp(text, "false") == 0 || strcmp(text, "0") == 0) {
            *out = yes;
            return true;
        }
    }
    reply_error(failure, 400, "The parameter '%s' takes true or false.", name);
    return false;
}

/* ---- Replies ------------------------------------------------------------------------------------- */

static const char no_memory[] = "{\"error\":\"The server is short of memory; try again.\"}";

void reply_text(http_reply *reply, int status, const char *type, const char *fixed, size_t size) {
    reply_free(reply);
    reply->status = status;
    reply->type = type;
    reply->fixed = fixed;
    reply->size = size;
}

static void fail_memory(http_reply *reply) {
    reply_text(reply, 503, "application/json", no_memory, sizeof no_memory - 1);
    reply->retry_after = 1;
}

/* Where replies are written to that have no memory. */
static FILE *nowhere;
static void open_nowhere(void) {
    nowhere = fopen("/dev/null", "w");
    if (!nowhere) abort();
}

json_out reply_begin(http_reply *reply, int status) {
    static pthread_once_t opened = PTHREAD_ONCE_INIT;
    pthread_once(&opened, open_nowhere);
    reply_free(reply);
    reply->status = status;
    reply->type = "application/json";
    reply->stream = open_memstream(&reply->text, &reply->size);
    return json_start(reply->stream ? reply->stream : nowhere);
}

void reply_end(http_reply *reply) {
    bool failed = !reply->stream || fputc('\n', reply->stream) == EOF || ferror(reply->stream);
    if (reply->stream && fclose(reply->stream) != 0) failed = true;
    reply->stream = NULL;
    if (failed) fail_memory(reply);
}

void reply_error(http_reply *reply, int status, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    /* Names from outside may be cut within a character: json_string replaces what is left of it. */
    const char *allow = reply->allow;
    int retry_after = reply->retry_after;
    json_out json = reply_begin(reply, status);
    json_object(&json, NULL);
    json_string(&json, "error", text);
    json_end_object(&json);
    reply_end(reply);
    if (reply->status == status) {
        reply->allow = allow;
        reply->retry_after = retry_after;
    }
}

bool reply_failed(const http_reply *reply) {
    return reply->status >= 400;
}

void reply_free(http_reply *reply) {
    if (reply->stream) fclose(reply->stream);
    free(reply->text);
    memset(reply, 0, sizeof *reply);
}
