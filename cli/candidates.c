#include "candidates.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

/* ---- Options ------------------------------------------------------------------------------------- */

error_t candidates_parse(int key, char *value, struct argp_state *state, chosen_candidates *chosen) {
    switch (key) {
    case KEY_CANDIDATES:
        chosen->file = value;
        return 0;
    case KEY_SEEN:
        chosen->seen = true;
        return 0;
    case KEY_WHERE:
        if (!strchr(value, '='))
            argp_error(state, "--where takes RELATION=ENTITY, not '%s'", text_shown(value));
        if (chosen->where_count == CANDIDATES_CONDITIONS)
            argp_error(state, "--where is given more than %d times", CANDIDATES_CONDITIONS);
        chosen->where[chosen->where_count++] = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

bool candidates_chosen(const chosen_candidates *chosen) {
    return chosen->file || chosen->seen || chosen->where_count > 0;
}

/* A relation by name, or inverted with ^ before it where no relation has the whole name. */
static vlp_status find_relation(int32_t *out, const vlp_dataset *data, const char *name) {
    if (vlp_dataset_find_relation(out, data, name) == VLP_OK) return VLP_OK;
    bool inverse = name[0] == '^';
    vlp_status status = vlp_dataset_find_relation(out, data, name + inverse);
    if (status == VLP_OK) *out += vlp_dataset_relation_count(data);
    return status;
}

/* Names may contain '=': the first one behind a known relation separates. */
static vlp_status find_condition(vlp_condition *out, const vlp_dataset *data, const char *text) {
    char *copy = strdup(text);
    if (!copy) abort();
    vlp_status status = VLP_ERROR_UNKNOWN;
    for (char *at = strchr(copy, '='); at && status != VLP_OK; at = strchr(at + 1, '=')) {
        *at = '\0';
        status = find_relation(&out->relation, data, copy);
        *at = '=';
        if (status == VLP_OK) status = vlp_dataset_find_entity(&out->entity, data, at + 1);
    }
    if (status != VLP_OK) { /* the message is that of the first '=' */
        char *at = strchr(copy, '=');
        *at = '\0';
        if (find_relation(&out->relation, data, copy) == VLP_OK)
            (void)vlp_dataset_find_entity(&out->entity, data, at + 1);
    }
    free(copy);
    return status;
}

bool candidates_find(chosen_candidates *chosen, const vlp_dataset *data) {
    chosen->options = (vlp_candidate_options)VLP_CANDIDATE_OPTIONS_INIT;
    chosen->options.seen = chosen->seen;
    chosen->options.conditions = chosen->conditions;
    chosen->options.condition_count = chosen->where_count;
    for (int32_t i = 0; i < chosen->where_count; i++)
        if (find_condition(&chosen->conditions[i], data, chosen->where[i]) != VLP_OK) {
            fprintf(stderr, "vlp: --where %s: %s\n", text_shown(chosen->where[i]), vlp_error_message());
            return false;
        }
    if (!chosen->file) return true;
    chosen->list = candidates_read(&chosen->list_count, data, chosen->file);
    chosen->options.entities = chosen->list;
    chosen->options.entity_count = chosen->list_count;
    return chosen->list != NULL;
}

void candidates_free(chosen_candidates *chosen) {
    free(chosen->list);
}

/* ---- Words --------------------------------------------------------------------------------------- */

void candidates_print(const chosen_candidates *chosen, const vlp_dataset *data) {
    const char *gap = "";
    int32_t relations = vlp_dataset_relation_count(data);
    if (chosen->file) {
        printf("named in %s", text_shown(chosen->file));
        gap = ", ";
    }
    if (chosen->seen) {
        printf("%sseen in that place of the relation", gap);
        gap = ", ";
    }
    for (int32_t i = 0; i < chosen->where_count; i++) {
        vlp_condition condition = chosen->conditions[i];
        const char *entity = text_shown(vlp_dataset_entity_name(data, condition.entity));
        bool forward = condition.relation < relations;
        printf("%swith (%s, %s, %s)", gap, forward ? "x" : entity,
               text_shown(vlp_dataset_relation_name(data, condition.relation % relations)),
               forward ? entity : "x");
        gap = ", ";
    }
}

void candidates_json(json_out *json, const chosen_candidates *chosen, const vlp_dataset *data) {
    if (!candidates_chosen(chosen)) return;
    int32_t relations = vlp_dataset_relation_count(data);
    json_object(json, "restriction");
    json_string(json, "file", chosen->file);
    json_bool(json, "seen", chosen->seen);
    json_array(json, "where");
    for (int32_t i = 0; i < chosen->where_count; i++) {
        vlp_condition condition = chosen->conditions[i];
        const char *entity = vlp_dataset_entity_name(data, condition.entity);
        bool forward = condition.relation < relations;
        json_object(json, NULL);
        json_string(json, "head", forward ? NULL : entity);
        json_string(json, "relation", vlp_dataset_relation_name(data, condition.relation % relations));
        json_string(json, "tail", forward ? entity : NULL);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

/* ---- The file ------------------------------------------------------------------------------------ */

/* Opens a regular file, or an inherited descriptor (/dev/fd/N). Opening any other FIFO would block.
 * Prints a message on failure. */
static FILE *open_file(const char *path) {
    bool descriptor = strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0;
    struct stat info;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), code = errno;
    FILE *stream = NULL;
    if (file >= 0 && fstat(file, &info) == 0) {
        code = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
        if (S_ISREG(info.st_mode) || (descriptor && fcntl(file, F_SETFL, 0) == 0))
            stream = fdopen(file, "r");
    }
    if (stream) return stream;
    fprintf(stderr, "vlp: cannot read %s: %s\n", text_shown(path),
            code == EINVAL ? "not a regular file" : strerror(code));
    if (file >= 0) close(file);
    return NULL;
}

int32_t *candidates_read(int64_t *count, const vlp_dataset *data, const char *path) {
    static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark */
    FILE *file = open_file(strcmp(path, "-") == 0 ? "/dev/stdin" : path);
    if (!file) return NULL;
    int32_t *found = NULL;
    int64_t capacity = 0, line = 0;
    char *text = NULL;
    size_t size = 0;
    bool good = true;
    *count = 0;
    while (good && getline(&text, &size, file) > 0) {
        line++;
        char *name = line == 1 && strncmp(text, mark, 3) == 0 ? text + 3 : text;
        name[strcspn(name, "\t\r\n")] = '\0';
        if (!name[0]) continue;
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            int32_t *larger = realloc(found, (size_t)capacity * sizeof *found);
            if (!larger) abort();
            found = larger;
        }
        good = vlp_dataset_find_entity(&found[*count], data, name) == VLP_OK;
        if (!good)
            fprintf(stderr, "vlp: %s:%lld: %s\n", text_shown(path), (long long)line,
                    vlp_error_message());
        else
            ++*count;
    }
    if (good && *count == 0) {
        fprintf(stderr, "vlp: %s names no candidate; it has one entity name per line\n",
                text_shown(path));
        good = false;
    }
    fclose(file);
    free(text);
    if (good) return found;
    free(found);
    return NULL;
}
