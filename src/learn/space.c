#include "learn/space.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_locale.h"
#include "base/random.h"

/* ---- Built-in spaces ----------------------------------------------------------------------------- */

/* How long a training is follows from the graph where nothing says it (tune.c). */
static const char path_space[] = "path = on\n"
                                 "precision = bf16\n"
                                 "path_layers = 3, 4, 5, 6, 8\n"
                                 "path_drop = 0, 0.15, 0.3, 0.5\n"
                                 "path_hidden = 0.5, 1\n"
                                 "path_hide = edge, pair\n"
                                 "path_states = reached, all\n"
                                 "path_rate = 0.002 .. 0.01 log\n"
                                 "path_weight_decay = 0, 0.05, 0.2\n";

static const char embedding_space[] = "model = complex\n"
                                      "loss = cross-entropy, kvsall\n"
                                      "vertical = off\n"
                                      "query_weights = off\n"
                                      "precision = bf16\n"
                                      "optimizer = adagrad\n"
                                      "schedule = constant\n"
                                      "init_scale = 0.001\n"
                                      "dim = 50, 100, 200\n"
                                      "batch = 128, 256, 512, 1000\n"
                                      "rate = 0.03 .. 0.3 log\n"
                                      "n3 = 0.001 .. 0.5 log\n";

static const char aggregator_space[] = "references = 2, 4, 8, 16, 32\n"
                                       "references_per_head = 0, 1, 2\n"
                                       "temperature = 5 .. 50 log\n"
                                       "vertical_rate = 0.0003 .. 0.01 log\n";

/* ---- Reading ------------------------------------------------------------------------------------- */

static const vlp_setting *find_setting(const char *name) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int32_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

/* The text between two places without the space around it; false where it is empty or too long. */
static bool cut(char out[VLP_SPACE_VALUE], const char *begin, const char *end) {
    while (begin < end && (*begin == ' ' || *begin == '\t')) begin++;
    while (begin < end && (end[-1] == ' ' || end[-1] == '\t')) end--;
    size_t length = (size_t)(end - begin);
    if (length == 0 || length >= VLP_SPACE_VALUE) return false;
    memcpy(out, begin, length);
    out[length] = '\0';
    return true;
}

static vlp_status fail_value(const char *where, const char *key, const char *cause) {
    return vlp_fail(VLP_ERROR_FORMAT, "%s: %s: %s", where, key, cause);
}

/* A value of a setting, its range checked. */
static vlp_status check_value(const vlp_setting *setting, const char *value, const char *where) {
    vlp_settings scratch;
    vlp_settings_default(&scratch);
    return vlp_settings_set(&scratch, setting->name, value, where) == VLP_OK ? VLP_OK : VLP_ERROR_FORMAT;
}

static vlp_status read_list(vlp_dimension *out, const char *text, const char *where) {
    for (;;) {
        const char *end = strchr(text, ',');
        char value[VLP_SPACE_VALUE];
        if (!cut(value, text, end ? end : text + strlen(text)))
            return fail_value(where, out->setting->name,
                              "a value of the list is missing or longer than 63 bytes");
        VLP_TRY(check_value(out->setting, value, where));
        VLP_TRY(vlp_grow(&out->values, &out->capacity, out->count + 1, sizeof *out->values,
                         "a list of values"));
        memcpy(out->values[out->count++], value, sizeof value);
        if (!end) return VLP_OK;
        text = end + 1;
    }
}

static bool is_number(const vlp_setting *setting) {
    switch (setting->type) {
    case VLP_SETTING_INTEGER:
    case VLP_SETTING_LONG:
    case VLP_SETTING_NUMBER:
        return true;
    case VLP_SETTING_SEED:
    case VLP_SETTING_SWITCH:
    case VLP_SETTING_CHOICE:
        return false;
    }
    return false;
}

static double number_of(const char *text) {
    vlp_plain_locale locale = vlp_plain_locale_begin();
    double value = strtod(text, NULL);
    vlp_plain_locale_end(locale);
    return value;
}

/* "LOW .. HIGH" or "LOW .. HIGH log"; `dots` is where the dots are. */
static vlp_status read_range(vlp_dimension *out, const char *text, const char *dots, const char *where) {
    char low[VLP_SPACE_VALUE], high[VLP_SPACE_VALUE];
    const char *name = out->setting->name, *end = dots + strlen(dots);
    out->kind = VLP_SPACE_UNIFORM;
    if (!is_number(out->setting))
        return fail_value(where, name, "only numbers have ranges: give a list");
    if (end - dots > 5 && memcmp(end - 3, "log", 3) == 0 && (end[-4] == ' ' || end[-4] == '\t')) {
        out->kind = VLP_SPACE_LOG;
        end -= 3;
    }
    if (!cut(low, text, dots) || !cut(high, dots + 2, end))
        return fail_value(where, name, "a range is 'LOW .. HIGH' or 'LOW .. HIGH log'");
    VLP_TRY(check_value(out->setting, low, where));
    VLP_TRY(check_value(out->setting, high, where));
    out->low = number_of(low);
    out->high = number_of(high);
    if (out->low >= out->high)
        return fail_value(where, name, "the range ends where it begins, or before");
    if (out->kind == VLP_SPACE_LOG && out->low <= 0)
        return fail_value(where, name, "a range with 'log' begins above 0");
    return VLP_OK;
}

static vlp_status take_line(void *user, const char *where, const char *key, const char *value) {
    vlp_space *space = user;
    const vlp_setting *setting = find_setting(key);
    if (!setting) { /* for the message, which names the nearest one */
        vlp_settings scratch;
        vlp_settings_default(&scratch);
        (void)vlp_settings_set(&scratch, key, value, where);
        return VLP_ERROR_FORMAT;
    }
    if (strcmp(key, "threads") == 0)
        return fail_value(where, key, "not a setting to search; it is given to the search itself");
    VLP_TRY(vlp_grow(&space->dimensions, &space->capacity, space->count + 1, sizeof *space->dimensions,
                     "a search space"));
    vlp_dimension *dimension = &space->dimensions[space->count++];
    *dimension = (vlp_dimension){.setting = setting};
    const char *dots = strstr(value, "..");
    return dots ? read_range(dimension, value, dots, where) : read_list(dimension, value, where);
}

/* Ends the making of a space: *out is set where it succeeded. */
static vlp_status give(vlp_space **out, vlp_space *space, vlp_status status) {
    if (status == VLP_OK)
        *out = space;
    else
        vlp_space_free(space);
    return status;
}

vlp_status vlp_space_parse(vlp_space **out, const char *name, const char *text, size_t size) {
    *out = NULL;
    vlp_space *space = vlp_alloc_zero(1, sizeof *space);
    if (!space) return vlp_fail_memory("a search space");
    return give(out, space, vlp_recipe_each(name, text, size, take_line, space));
}

vlp_status vlp_space_read(vlp_space **out, const char *path) {
    *out = NULL;
    vlp_space *space = vlp_alloc_zero(1, sizeof *space);
    if (!space) return vlp_fail_memory("a search space");
    vlp_status status = vlp_recipe_each_of(path, take_line, space);
    if (status == VLP_OK && space->count == 0)
        status = vlp_fail(VLP_ERROR_FORMAT, "%s has no settings to search", path);
    return give(out, space, status);
}

vlp_status vlp_space_builtin(vlp_space **out, vlp_component component) {
    switch (component) {
    case VLP_HORIZONTAL:
        return vlp_space_parse(out, "embeddings", embedding_space, sizeof embedding_space - 1);
    case VLP_VERTICAL:
        return vlp_space_parse(out, "aggregator", aggregator_space, sizeof aggregator_space - 1);
    case VLP_PATH:
        return vlp_space_parse(out, "path", path_space, sizeof path_space - 1);
    case VLP_COMPONENTS:
        break;
    }
    return vlp_fail(VLP_ERROR_ARGUMENT, "there is no component %d to search", (int)component);
}

void vlp_space_free(vlp_space *space) {
    if (!space) return;
    for (int64_t i = 0; i < space->count; i++) vlp_free(space->dimensions[i].values);
    vlp_free(space->dimensions);
    vlp_free(space);
}

bool vlp_space_has(const vlp_space *space, const char *name) {
    for (int64_t i = 0; i < space->count; i++)
        if (strcmp(space->dimensions[i].setting->name, name) == 0) return true;
    return false;
}

/* ---- Drawing ------------------------------------------------------------------------------------- */

static void print_drawn(char text[VLP_SPACE_VALUE], const vlp_dimension *dimension, double unit) {
    double low = dimension->low, high = dimension->high;
    bool whole = dimension->setting->type != VLP_SETTING_NUMBER;
    bool logarithmic = dimension->kind == VLP_SPACE_LOG;
    double end = whole && !logarithmic ? high + 1 : high; /* every whole number is as likely */
    double value = logarithmic ? low * exp(unit * log(high / low)) : low + unit * (end - low);
    vlp_plain_locale locale = vlp_plain_locale_begin();
    if (whole) {
        value = logarithmic ? round(value) : floor(value);
        snprintf(text, VLP_SPACE_VALUE, "%.0f", value < low ? low : value > high ? high : value);
    } else {
        /* Three digits, for people; but never past the ends. */
        snprintf(text, VLP_SPACE_VALUE, "%.3g", value);
        value = strtod(text, NULL);
        if (value < low || value > high)
            snprintf(text, VLP_SPACE_VALUE, "%.17g", value < low ? low : high);
    }
    vlp_plain_locale_end(locale);
}

vlp_status vlp_space_fix(vlp_settings *settings, const vlp_space *space) {
    for (int64_t i = 0; i < space->count; i++) {
        const vlp_dimension *dimension = &space->dimensions[i];
        if (!vlp_dimension_varies(dimension))
            VLP_TRY(vlp_settings_set(settings, dimension->setting->name, dimension->values[0], NULL));
    }
    return VLP_OK;
}

vlp_status vlp_space_draw(vlp_settings *settings, const vlp_space *space, uint64_t seed, uint64_t draw) {
    for (int64_t i = 0; i < space->count; i++) {
        const vlp_dimension *dimension = &space->dimensions[i];
        if (!vlp_dimension_varies(dimension)) continue;
        vlp_random4 words = vlp_random(seed, VLP_STREAM_SPACE, draw, (uint32_t)i);
        char text[VLP_SPACE_VALUE];
        const char *value = text;
        if (dimension->kind == VLP_SPACE_LIST)
            value =
                dimension->values[vlp_random_below(words.v[0], words.v[1], (uint32_t)dimension->count)];
        else
            print_drawn(text, dimension,
                        (double)((uint64_t)words.v[0] << 21 | words.v[1] >> 11) * 0x1p-53);
        VLP_TRY(vlp_settings_set(settings, dimension->setting->name, value, NULL));
    }
    return VLP_OK;
}

void vlp_dimension_text(char *text, size_t size, const vlp_dimension *dimension) {
    if (dimension->kind != VLP_SPACE_LIST) {
        vlp_plain_locale locale = vlp_plain_locale_begin();
        snprintf(text, size, "%.17g .. %.17g%s", dimension->low, dimension->high,
                 dimension->kind == VLP_SPACE_LOG ? " log" : "");
        vlp_plain_locale_end(locale);
        return;
    }
    text[0] = '\0';
    for (int64_t i = 0; i < dimension->count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i ? ", " : "", dimension->values[i]);
    }
}
