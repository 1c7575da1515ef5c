#include "graph/labels.h"

#include <string.h>

#include "base/text.h"

struct vlp_labels {
    char *text; /* the file, fields terminated in place */
    int64_t size, capacity;
    int64_t *label, *description; /* (entities) offsets into text, or -1 */
    uint8_t *met;                 /* (entities) whether a line had this name */
    int32_t entities;
    int64_t count;
};

static vlp_status read_all(vlp_labels *labels, vlp_source *source) {
    for (;;) {
        /* One spare byte for the terminator of the last line. */
        VLP_TRY(vlp_grow(&labels->text, &labels->capacity, labels->size + (1 << 16), 1, "labels"));
        size_t got, want = (size_t)(labels->capacity - labels->size - 1);
        VLP_TRY(vlp_source_read(source, labels->text + labels->size, want, &got));
        labels->size += (int64_t)got;
        if (got < want) return VLP_OK;
    }
}

static bool has_control(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return true;
    return false;
}

/* Parses one line, [line, stop); the byte at `stop` may be overwritten. Returns NULL or the error. */
static const char *take_line(vlp_labels *labels, char *line, char *stop,
                             const vlp_dictionary *entities) {
    if (stop > line && stop[-1] == '\r') stop--;
    *stop = '\0';
    if (strlen(line) != (size_t)(stop - line)) return "a zero byte";
    char *label = memchr(line, '\t', (size_t)(stop - line));
    if (!label) return "1 field where a name and a label are needed, separated by a tab";
    size_t name_length = (size_t)(label - line);
    *label++ = '\0';
    char *description = memchr(label, '\t', (size_t)(stop - label));
    if (description) {
        *description++ = '\0';
        if (memchr(description, '\t', (size_t)(stop - description)))
            return "more than 3 fields; a line has a name, a label and at most a description";
    }
    if (name_length == 0) return "an empty name";
    if (has_control(label) || (description && has_control(description)))
        return "a control character in a label";
    int32_t entity = vlp_dictionary_find(entities, line, name_length);
    if (entity < 0 || labels->met[entity]) return NULL;
    labels->met[entity] = 1;
    if (*label) {
        labels->label[entity] = label - labels->text;
        labels->count++;
    }
    if (description && *description) labels->description[entity] = description - labels->text;
    return NULL;
}

static vlp_status parse(vlp_labels *labels, const char *name, const vlp_dictionary *entities) {
    char *text = labels->text, *end = text + labels->size;
    size_t valid = vlp_utf8_valid_prefix(text, (size_t)labels->size);
    int64_t number = 1;
    for (char *line = text + vlp_bom_length(text, (size_t)labels->size); line < end; number++) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *stop = newline ? newline : end;
        const char *fault =
            stop > text + valid ? "invalid UTF-8" : take_line(labels, line, stop, entities);
        if (fault) return vlp_fail(VLP_ERROR_FORMAT, "%s:%lld: %s", name, (long long)number, fault);
        line = stop + 1;
    }
    return VLP_OK;
}

/* No labels yet, for this many entities. */
static vlp_status labels_start(vlp_labels **out, int32_t entities) {
    vlp_labels *labels = vlp_alloc_zero(1, sizeof *labels);
    if (!labels) return vlp_fail_memory("labels");
    labels->entities = entities;
    size_t bytes = (size_t)entities * sizeof *labels->label;
    labels->label = vlp_alloc(bytes, 1);
    labels->description = vlp_alloc(bytes, 1);
    if (!labels->label || !labels->description) {
        vlp_labels_free(labels);
        return vlp_fail_memory("labels");
    }
    memset(labels->label, 0xff, bytes);
    memset(labels->description, 0xff, bytes);
    *out = labels;
    return VLP_OK;
}

vlp_status vlp_labels_read(vlp_labels **out, vlp_source *source, const vlp_dictionary *entities) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_labels *labels = NULL;
    VLP_TRY(labels_start(&labels, vlp_dictionary_size(entities)));
    labels->met = vlp_alloc_zero((size_t)labels->entities, 1);
    if (!labels->met) {
        status = vlp_fail_memory("labels");
        goto out;
    }
    VLP_CHECK(read_all(labels, source));
    VLP_CHECK(parse(labels, vlp_source_name(source), entities));
    vlp_free(labels->met);
    labels->met = NULL;
out:
    if (status != VLP_OK) {
        vlp_labels_free(labels);
        return status;
    }
    *out = labels;
    return VLP_OK;
}

/* Where the copy of a text begins, -1 for none. */
static vlp_status keep_text(int64_t *place, vlp_labels *labels, const char *text) {
    if (!text || !*text) return VLP_OK;
    int64_t length = (int64_t)strlen(text) + 1;
    VLP_TRY(vlp_grow(&labels->text, &labels->capacity, labels->size + length, 1, "labels"));
    memcpy(labels->text + labels->size, text, (size_t)length);
    *place = labels->size;
    labels->size += length;
    return VLP_OK;
}

vlp_status vlp_labels_new(vlp_labels **out, const char *const *texts, const char *const *descriptions,
                          int32_t entities) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_labels *labels = NULL;
    if (!texts && !descriptions) return VLP_OK;
    VLP_TRY(labels_start(&labels, entities));
    for (int32_t i = 0; i < entities; i++) {
        if (texts) VLP_CHECK(keep_text(&labels->label[i], labels, texts[i]));
        if (descriptions) VLP_CHECK(keep_text(&labels->description[i], labels, descriptions[i]));
        labels->count += labels->label[i] >= 0;
    }
out:
    if (status != VLP_OK || labels->size == 0) {
        vlp_labels_free(labels);
        return status;
    }
    *out = labels;
    return VLP_OK;
}

void vlp_labels_free(vlp_labels *labels) {
    if (!labels) return;
    vlp_free(labels->text);
    vlp_free(labels->label);
    vlp_free(labels->description);
    vlp_free(labels->met);
    vlp_free(labels);
}

const char *vlp_labels_label(const vlp_labels *labels, int32_t entity) {
    return labels->label[entity] >= 0 ? labels->text + labels->label[entity] : NULL;
}

const char *vlp_labels_description(const vlp_labels *labels, int32_t entity) {
    return labels->description[entity] >= 0 ? labels->text + labels->description[entity] : NULL;
}

int64_t vlp_labels_count(const vlp_labels *labels) {
    return labels->count;
}

int64_t vlp_labels_bytes(const vlp_labels *labels) {
    return labels->capacity + 2 * (int64_t)labels->entities * (int64_t)sizeof(int64_t);
}
