#include "learn/trial_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/plain_locale.h"
#include "learn/halving.h"

enum { LINE = 1 << 15 }; /* bytes of the longest line */

static const char file_name[] = "trials.jsonl";

/* ---- Lines --------------------------------------------------------------------------------------- */

bool vlp_json_quote(char *out, size_t size, const char *text) {
    size_t used = strlen(out);
    for (const char *at = text;; at++) {
        char part[8];
        unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\')
            snprintf(part, sizeof part, "\\%c", c);
        else
            snprintf(part, sizeof part, c > 0 && c < 0x20 ? "\\u%04x" : "%c", c);
        if (at == text && used + 1 < size) out[used++] = '"';
        size_t length = c ? strlen(part) : 1;
        if (used + length + 1 >= size) return false;
        memcpy(out + used, c ? part : "\"", length);
        used += length;
        out[used] = '\0';
        if (!c) return true;
    }
}

static void format_record(char line[LINE], const vlp_trial_record *record) {
    char mrr[40] = "null";
    vlp_plain_locale locale = vlp_plain_locale_begin();
    if (!isnan(record->mrr)) snprintf(mrr, sizeof mrr, "%.17g", record->mrr);
    snprintf(line, LINE,
             "{\"candidate\":%lld,\"rung\":%d,\"mrr\":%s,\"seconds\":%.3f,\"settings\":%s}\n",
             (long long)record->candidate, record->rung, mrr, record->seconds, record->settings);
    vlp_plain_locale_end(locale);
}

/* A line as format_record writes it; `line` ends with its newline. */
static bool parse_record(vlp_trial_record *out, char *line) {
    char mrr[40], again[LINE];
    long long candidate;
    int at = 0;
    vlp_plain_locale locale = vlp_plain_locale_begin();
    bool read =
        sscanf(line,
               "{\"candidate\":%18lld,\"rung\":%9d,\"mrr\":%39[^,],\"seconds\":%lf,\"settings\":%n",
               &candidate, &out->rung, mrr, &out->seconds, &at) == 4 &&
        at > 0;
    out->mrr = read && strcmp(mrr, "null") != 0 ? strtod(mrr, NULL) : NAN;
    vlp_plain_locale_end(locale);
    size_t length = strlen(line);
    if (!read || length < (size_t)at + 4 || candidate < 0 || out->rung < 0 ||
        out->rung >= VLP_HALVING_RUNGS || out->mrr < 0 || out->mrr > 1)
        return false;
    out->candidate = candidate;
    /* Without the last brace while it is compared with what would be written. */
    char *end = line + length - 2, kept = *end;
    *end = '\0';
    out->settings = line + at;
    format_record(again, out);
    *end = kept;
    return strcmp(again, line) == 0;
}

static vlp_status keep(vlp_trial_log *log, const vlp_trial_record *record, size_t length) {
    VLP_TRY(vlp_grow(&log->records, &log->capacity, log->count + 1, sizeof *log->records, "trials"));
    vlp_trial_record *kept = &log->records[log->count];
    *kept = *record;
    kept->settings = vlp_alloc(length + 1, 1);
    if (!kept->settings) return vlp_fail_memory("a trial");
    memcpy(kept->settings, record->settings, length);
    kept->settings[length] = '\0';
    log->count++;
    return VLP_OK;
}

/* ---- The first line ------------------------------------------------------------------------------ */

static bool format_fact(char *line, const vlp_trial_fact *fact) {
    size_t used = strlen(line);
    if (used + 2 >= LINE) return false;
    memcpy(line + used, ",", 2);
    if (!vlp_json_quote(line, LINE - 3, fact->key)) return false;
    used = strlen(line);
    memcpy(line + used, ":", 2);
    return vlp_json_quote(line, LINE - 3, fact->value);
}

static vlp_status format_first(char line[LINE], const vlp_trial_fact *facts, int32_t count) {
    snprintf(line, LINE, "{\"search\":1");
    for (int32_t i = 0; i < count; i++)
        if (!format_fact(line, &facts[i]))
            return vlp_fail(VLP_ERROR_ARGUMENT, "the %s of the search is too long for its log",
                            facts[i].key);
    memcpy(line + strlen(line), "}\n", 3);
    return VLP_OK;
}

static vlp_status check_first(const vlp_trial_log *log, const char *line, const vlp_trial_fact *facts,
                              int32_t count) {
    char expected[LINE];
    VLP_TRY(format_first(expected, facts, count));
    if (strcmp(line, expected) == 0) return VLP_OK;
    if (strncmp(line, "{\"search\":1,", 12) != 0)
        return vlp_fail(VLP_ERROR_FORMAT, "%s:1: not the first line of a search", log->path);
    for (int32_t i = 0; i < count; i++) {
        char fact[LINE] = "";
        if (format_fact(fact, &facts[i]) && strstr(line, fact)) continue;
        return vlp_fail(VLP_ERROR_EXISTS, "%s is of a search with other %s; search in another folder",
                        log->path, facts[i].key);
    }
    return vlp_fail(VLP_ERROR_FORMAT, "%s:1: not the first line of a search", log->path);
}

/* ---- The file ------------------------------------------------------------------------------------ */

static vlp_status create(const vlp_trial_log *log, const vlp_trial_fact *facts, int32_t count) {
    char line[LINE];
    vlp_writer *writer = NULL;
    VLP_TRY(format_first(line, facts, count));
    VLP_TRY(vlp_writer_open(&writer, log->path));
    vlp_writer_text(writer, line);
    return vlp_writer_commit(&writer);
}

static vlp_status read_line(vlp_trial_log *log, const char *text, size_t length, int64_t number,
                            const vlp_trial_fact *facts, int32_t fact_count) {
    char line[LINE];
    vlp_trial_record record;
    if (length < sizeof line && !memchr(text, '\0', length)) {
        memcpy(line, text, length);
        line[length] = '\0';
        if (number == 1) return check_first(log, line, facts, fact_count);
        if (parse_record(&record, line)) return keep(log, &record, strlen(record.settings) - 2);
    }
    return vlp_fail(VLP_ERROR_FORMAT, "%s:%lld: not a finished trial as a search writes it", log->path,
                    (long long)number);
}

/* All whole lines. *size: their bytes. */
static vlp_status read_lines(vlp_trial_log *log, int64_t *size, const vlp_trial_fact *facts,
                             int32_t fact_count) {
    vlp_map map;
    VLP_TRY(vlp_map_open(&map, log->path));
    vlp_status status = VLP_OK;
    size_t at = 0;
    for (int64_t number = 1; status == VLP_OK && at < map.size; number++) {
        const char *newline = memchr(map.data + at, '\n', map.size - at);
        if (!newline && number > 1) break;
        size_t length = newline ? (size_t)(newline - map.data) + 1 - at : map.size - at;
        status = read_line(log, map.data + at, length, number, facts, fact_count);
        at += length;
    }
    if (status == VLP_OK && map.size == 0) status = vlp_fail(VLP_ERROR_FORMAT, "%s is empty", log->path);
    vlp_map_close(&map);
    *size = (int64_t)at;
    return status;
}

bool vlp_trial_log_exists(const char *folder) {
    char *path = vlp_path_join(folder, file_name);
    bool exists = path && vlp_path_exists(path);
    vlp_free(path);
    return exists;
}

vlp_status vlp_trial_log_open(vlp_trial_log **out, const char *folder, const vlp_trial_fact *facts,
                              int32_t fact_count) {
    *out = NULL;
    vlp_status status = VLP_OK;
    int64_t size;
    vlp_trial_log *log = vlp_alloc_zero(1, sizeof *log);
    if (!log) return vlp_fail_memory("trials");
    log->file = -1;
    log->path = vlp_path_join(folder, file_name);
    if (!log->path) {
        status = vlp_fail_memory("a file name");
        goto out;
    }
    if (!vlp_trial_log_exists(folder)) VLP_CHECK(create(log, facts, fact_count));
    VLP_CHECK(read_lines(log, &size, facts, fact_count));
    log->file = open(log->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (log->file < 0 || ftruncate(log->file, size) != 0)
        status = vlp_fail_io("write", log->path, errno);
out:
    if (status == VLP_OK)
        *out = log;
    else
        vlp_trial_log_free(log);
    return status;
}

void vlp_trial_log_free(vlp_trial_log *log) {
    if (!log) return;
    if (log->file >= 0) close(log->file);
    for (int64_t i = 0; i < log->count; i++) vlp_free(log->records[i].settings);
    vlp_free(log->records);
    vlp_free(log->path);
    vlp_free(log);
}

static bool write_all(int file, const char *text, size_t size) {
    while (size > 0) {
        ssize_t written = write(file, text, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

vlp_status vlp_trial_log_add(vlp_trial_log *log, const vlp_trial_record *record) {
    char line[LINE];
    format_record(line, record);
    off_t before = lseek(log->file, 0, SEEK_END);
    if (before < 0 || !write_all(log->file, line, strlen(line)) || fsync(log->file) != 0) {
        int code = errno;
        /* A part of a line would otherwise be completed by the next one. */
        if (before >= 0 && ftruncate(log->file, before) != 0) code = errno;
        return vlp_fail_io("write", log->path, code);
    }
    return keep(log, record, strlen(record->settings));
}
