/* metrics.jsonl: a JSON object of numbers on each line, one for every evaluation during training. */
#include <stdlib.h>
#include <string.h>

#include "base/plain_locale.h"
#include "learn/run_folder.h"

static vlp_status metrics_path(char **out, const char *folder) {
    *out = vlp_path_join(folder, "metrics.jsonl");
    return *out ? VLP_OK : vlp_fail_memory("a file name");
}

vlp_status vlp_run_folder_save_metrics(const char *folder, const char *lines) {
    char *path = NULL;
    vlp_writer *writer = NULL;
    VLP_TRY(metrics_path(&path, folder));
    vlp_status status = vlp_writer_open(&writer, path);
    vlp_free(path);
    VLP_TRY(status);
    vlp_writer_text(writer, lines);
    return vlp_writer_commit(&writer);
}

/* Skips `text` where it comes next. */
static bool skip(const char **at, const char *text) {
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0) return false;
    *at += length;
    return true;
}

/* A number as JSON writes it, or null. */
static bool skip_value(double *value, const char **at) {
    char *end;
    *value = -1;
    if (skip(at, "null")) return true;
    if (**at != '-' && (**at < '0' || **at > '9')) return false;
    size_t length = strspn(*at, "0123456789+-.eE");
    *value = strtod(*at, &end);
    bool whole = end == *at + length;
    *at += length;
    return whole;
}

/* {"step":N,"name":number or null,...}; *step is N. Names that later versions add are fine. */
static bool read_line(int64_t *step, const char *line) {
    double value;
    if (!skip(&line, "{\"step\":") || !skip_value(&value, &line)) return false;
    if (!(value >= 0 && value < 9e15)) return false;
    *step = (int64_t)value;
    while (skip(&line, ",\"")) {
        size_t name = strspn(line, "abcdefghijklmnopqrstuvwxyz_0123456789");
        line += name;
        if (name == 0 || !skip(&line, "\":") || !skip_value(&value, &line)) return false;
    }
    return skip(&line, "}") && *line == '\0';
}

/* Cuts `text` (size) behind the last line of a step that is not after `last_step`. */
static vlp_status take_lines(char *text, size_t size, const char *path, int64_t last_step) {
    size_t keep = 0;
    int64_t number = 1;
    for (size_t at = 0; at < size; number++) {
        char *newline = memchr(text + at, '\n', size - at);
        int64_t step = 0;
        size_t length = newline ? (size_t)(newline - text) - at : size - at;
        if (newline) *newline = '\0';
        if (!newline || strlen(text + at) != length || !read_line(&step, text + at))
            return vlp_fail(VLP_ERROR_FORMAT,
                            "%s:%lld: damaged: not a JSON object of a step and its figures", path,
                            (long long)number);
        *newline = '\n';
        at += length + 1;
        /* Steps that were done after the last save are done again. */
        if (step <= last_step) keep = at;
    }
    text[keep] = '\0';
    return VLP_OK;
}

vlp_status vlp_run_folder_load_metrics(char **out, const char *folder, int64_t last_step) {
    *out = NULL;
    char *path = NULL, *text = NULL;
    vlp_map map = {"", 0};
    vlp_status status = VLP_OK;
    VLP_TRY(metrics_path(&path, folder));
    if (vlp_path_exists(path)) VLP_CHECK(vlp_map_open(&map, path));
    text = vlp_alloc(map.size + 1, 1);
    if (!text) {
        status = vlp_fail_memory("metrics");
        goto out;
    }
    memcpy(text, map.data, map.size);
    text[map.size] = '\0';
    vlp_plain_locale locale = vlp_plain_locale_begin();
    status = take_lines(text, map.size, path, last_step);
    vlp_plain_locale_end(locale);
out:
    vlp_map_close(&map);
    vlp_free(path);
    if (status != VLP_OK) {
        vlp_free(text);
        return status;
    }
    *out = text;
    return VLP_OK;
}
