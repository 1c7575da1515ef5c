#include "graph/labels.h"

#include <string.h>

#include "graph/lines.h"

struct vlp_labels {
    char *text; /* the labels and descriptions, each terminated */
    int64_t size, capacity;
    int64_t *label, *description; /* (names) offsets into text, or -1 */
    int32_t names;
    int64_t count;
};

static bool has_control(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return true;
    return false;
}

/* No labels yet, for this many names. */
static vlp_status labels_start(vlp_labels **out, int32_t names) {
    vlp_labels *labels = vlp_alloc_zero(1, sizeof *labels);
    if (!labels) return vlp_fail_memory("labels");
    labels->names = names;
    size_t bytes = (size_t)names * sizeof *labels->label;
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

/* Copies a text; *place is where the copy begins, and stays -1 for an empty text or NULL. */
static vlp_status keep_text(int64_t *place, vlp_labels *labels, const char *text) {
    if (!text || !*text) return VLP_OK;
    int64_t length = (int64_t)strlen(text) + 1;
    VLP_TRY(vlp_grow(&labels->text, &labels->capacity, labels->size + length, 1, "labels"));
    memcpy(labels->text + labels->size, text, (size_t)length);
    *place = labels->size;
    labels->size += length;
    return VLP_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------- */

typedef struct row {
    const char *name, *label, *description; /* description: NULL without one */
} row;

/* Cuts a line at its tabs, in place; returns NULL or the error. */
static const char *cut_row(row *out, char *line) {
    char *label = strchr(line, '\t');
    if (!label) return "1 field where a name and a label are needed, separated by a tab";
    *label++ = '\0';
    char *description = strchr(label, '\t');
    if (description) {
        *description++ = '\0';
        if (strchr(description, '\t'))
            return "more than 3 fields; a line has a name, a label and at most a description";
    }
    if (!*line) return "an empty name";
    if (has_control(label) || (description && has_control(description)))
        return "a control character in a label";
    *out = (row){line, label, description};
    return NULL;
}

/* Keeps a row where its name is known and it is the first of it; met: (names). */
static vlp_status keep_row(vlp_labels *labels, uint8_t *met, const vlp_dictionary *names,
                           const row *found) {
    int32_t id = vlp_dictionary_find(names, found->name, strlen(found->name));
    if (id < 0 || met[id]) return VLP_OK;
    met[id] = 1;
    VLP_TRY(keep_text(&labels->label[id], labels, found->label));
    labels->count += labels->label[id] >= 0;
    return keep_text(&labels->description[id], labels, found->description);
}

vlp_status vlp_labels_read(vlp_labels *out[VLP_LABEL_KINDS], vlp_source *source,
                           const vlp_dictionary *const names[VLP_LABEL_KINDS]) {
    vlp_status status = VLP_OK;
    vlp_labels *labels[VLP_LABEL_KINDS] = {NULL};
    uint8_t *met[VLP_LABEL_KINDS] = {NULL};
    vlp_lines lines = {0};
    for (int kind = 0; kind < VLP_LABEL_KINDS; kind++) out[kind] = NULL;
    VLP_CHECK(vlp_lines_start(&lines, source));
    for (int kind = 0; kind < VLP_LABEL_KINDS; kind++) {
        VLP_CHECK(labels_start(&labels[kind], vlp_dictionary_size(names[kind])));
        met[kind] = vlp_alloc_zero((size_t)labels[kind]->names, 1);
        if (!met[kind]) {
            status = vlp_fail_memory("labels");
            goto out;
        }
    }
    for (;;) {
        char *line;
        size_t length;
        row found;
        VLP_CHECK(vlp_lines_next(&lines, &line, &length));
        if (!line) break;
        const char *fault = cut_row(&found, line);
        if (fault) {
            status = vlp_lines_fail(&lines, VLP_ERROR_FORMAT, fault);
            goto out;
        }
        for (int kind = 0; kind < VLP_LABEL_KINDS; kind++)
            VLP_CHECK(keep_row(labels[kind], met[kind], names[kind], &found));
    }
out:
    vlp_lines_free(&lines);
    for (int kind = 0; kind < VLP_LABEL_KINDS; kind++) {
        vlp_free(met[kind]);
        if (status == VLP_OK)
            out[kind] = labels[kind];
        else
            vlp_labels_free(labels[kind]);
    }
    return status;
}

/* ---- From memory --------------------------------------------------------------------------------- */

vlp_status vlp_labels_new(vlp_labels **out, const char *const *texts, const char *const *descriptions,
                          int32_t names) {
    *out = NULL;
    vlp_status status = VLP_OK;
    vlp_labels *labels = NULL;
    if (!texts && !descriptions) return VLP_OK;
    VLP_TRY(labels_start(&labels, names));
    for (int32_t i = 0; i < names; i++) {
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
    vlp_free(labels);
}

const char *vlp_labels_label(const vlp_labels *labels, int32_t id) {
    return labels->label[id] >= 0 ? labels->text + labels->label[id] : NULL;
}

const char *vlp_labels_description(const vlp_labels *labels, int32_t id) {
    return labels->description[id] >= 0 ? labels->text + labels->description[id] : NULL;
}

int64_t vlp_labels_count(const vlp_labels *labels) {
    return labels->count;
}

int64_t vlp_labels_bytes(const vlp_labels *labels) {
    return labels->capacity + 2 * (int64_t)labels->names * (int64_t)sizeof(int64_t);
}
