/* Recipes: INI files of settings.
 *
 * Read by hand, not with inih: Debian's build of it cuts lines at 200 bytes and reads on in the middle,
 * takes an indented line as more of the value above, "key: value" as a setting and "[a] rubbish" as a
 * heading, does not tell its handler the line, and is set up through mutable globals that the whole
 * process shares. Checking all that beforehand leaves it nothing to do.
 *
 * A line is a heading, a setting, a comment or blank. A comment starts with ';' or '#', at the start of
 * the line or after space: no value contains either. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "learn/settings.h"

typedef struct recipe_reader {
    vlp_recipe_take take;
    void *user;
    const char *name;
    int64_t line;     /* from 1 */
    int64_t *given;   /* the line of each setting, in the order of the table; 0: not yet */
    char *text;       /* the present line, as a string */
    int64_t capacity; /* of text */
} recipe_reader;

static vlp_status fail_line(const recipe_reader *recipe, const char *cause) {
    return vlp_fail(VLP_ERROR_FORMAT, "%s:%lld: %s", recipe->name, (long long)recipe->line, cause);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Cuts space off both ends, in place. */
static char *trim(char *text) {
    while (is_blank(*text)) text++;
    size_t length = strlen(text);
    while (length > 0 && is_blank(text[length - 1])) length--;
    text[length] = '\0';
    return text;
}

static void cut_comment(char *text) {
    for (char *at = text; *at; at++)
        if ((*at == ';' || *at == '#') && (at == text || is_blank(at[-1]))) {
            *at = '\0';
            return;
        }
}

static vlp_status take_setting(recipe_reader *recipe, const char *key, const char *value) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int32_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, key) != 0) continue;
        if (recipe->given[i] > 0)
            return vlp_fail(VLP_ERROR_FORMAT, "%s:%lld: %s was given already on line %lld", recipe->name,
                            (long long)recipe->line, key, (long long)recipe->given[i]);
        recipe->given[i] = recipe->line;
    }
    char where[1024];
    snprintf(where, sizeof where, "%.980s:%lld", recipe->name, (long long)recipe->line);
    return recipe->take(recipe->user, where, key, value);
}

static vlp_status take_line(recipe_reader *recipe, const char *line, size_t length) {
    if (length > 0 && line[length - 1] == '\r') length--;
    if (vlp_utf8_valid_prefix(line, length) < length) return fail_line(recipe, "invalid UTF-8");
    if (memchr(line, '\0', length)) return fail_line(recipe, "a NUL byte");
    VLP_TRY(vlp_grow(&recipe->text, &recipe->capacity, (int64_t)length + 1, 1, "a line of a recipe"));
    memcpy(recipe->text, line, length);
    recipe->text[length] = '\0';
    cut_comment(recipe->text);
    char *text = trim(recipe->text);
    if (*text == '\0') return VLP_OK;
    if (*text == '[') {
        const char *close = strchr(text, ']');
        if (close && close[1] == '\0') return VLP_OK;
        return fail_line(recipe, close ? "there is something behind the heading's ']'"
                                       : "the heading has no ']'");
    }
    char *equals = strchr(text, '=');
    if (!equals)
        return fail_line(recipe, "there is no '='; a line is 'key = value', '[heading]' or a comment "
                                 "after ';' or '#'");
    *equals = '\0';
    const char *key = trim(text);
    if (*key == '\0') return fail_line(recipe, "there is no key before '='");
    return take_setting(recipe, key, trim(equals + 1));
}

vlp_status vlp_recipe_each(const char *name, const char *text, size_t size, vlp_recipe_take take,
                           void *user) {
    int32_t count;
    vlp_settings_table(&count);
    vlp_status status = VLP_OK;
    recipe_reader recipe = {.take = take, .user = user, .name = name};
    recipe.given = vlp_alloc_zero((size_t)count, sizeof *recipe.given);
    if (!recipe.given) {
        status = vlp_fail_memory("a recipe");
        goto out;
    }
    size_t at = vlp_bom_length(text, size);
    while (at < size) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - text) - at : size - at;
        recipe.line++;
        VLP_CHECK(take_line(&recipe, text + at, length));
        at += length + 1;
    }
out:
    vlp_free(recipe.text);
    vlp_free(recipe.given);
    return status;
}

static vlp_status set_one(void *user, const char *where, const char *key, const char *value) {
    /* The message is right as it is; what was wrong is the file. */
    vlp_status status = vlp_settings_set(user, key, value, where);
    return status == VLP_OK ? VLP_OK : VLP_ERROR_FORMAT;
}

vlp_status vlp_recipe_parse(vlp_settings *settings, const char *name, const char *text, size_t size) {
    vlp_settings read;
    /* By bytes, padding and all: equal settings stay equal bytes. */
    memcpy(&read, settings, sizeof *settings);
    VLP_TRY(vlp_recipe_each(name, text, size, set_one, &read));
    memcpy(settings, &read, sizeof *settings);
    return VLP_OK;
}

/* Through a stream, so that a pipe will do as well as a file. The limit refuses a data file that is
 * named by mistake. */
vlp_status vlp_recipe_each_of(const char *path, vlp_recipe_take take, void *user) {
    const size_t most = (size_t)1 << 20;
    vlp_status status = VLP_OK;
    vlp_source *source = NULL;
    size_t size = 0;
    char *text = vlp_alloc(most + 1, 1);
    if (!text) {
        status = vlp_fail_memory("a recipe");
        goto out;
    }
    VLP_CHECK(vlp_source_open(&source, path));
    VLP_CHECK(vlp_source_read(source, text, most + 1, &size));
    if (size > most) {
        status = vlp_fail(VLP_ERROR_FORMAT, "%s is larger than 1 MiB: not a recipe", path);
        goto out;
    }
    VLP_CHECK(vlp_recipe_each(path, text, size, take, user));
out:
    vlp_source_free(source);
    vlp_free(text);
    return status;
}

vlp_status vlp_recipe_read(vlp_settings *settings, const char *path) {
    vlp_settings read;
    memcpy(&read, settings, sizeof *settings);
    VLP_TRY(vlp_recipe_each_of(path, set_one, &read));
    memcpy(settings, &read, sizeof *settings);
    return VLP_OK;
}

vlp_status vlp_recipe_write(const char *path, const vlp_settings *settings) {
    vlp_settings plain;
    vlp_settings_default(&plain);
    return vlp_recipe_write_over(path, settings, &plain);
}

vlp_status vlp_recipe_write_over(const char *path, const vlp_settings *settings,
                                 const vlp_settings *start) {
    vlp_writer *writer = NULL;
    VLP_TRY(vlp_writer_open(&writer, path));
    vlp_settings plain;
    vlp_settings_default(&plain);
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    const char *section = "";
    for (int32_t i = 0; i < count; i++) {
        char value[64], otherwise[64], started[64];
        vlp_settings_get(value, settings, &table[i]);
        vlp_settings_get(otherwise, &plain, &table[i]);
        vlp_settings_get(started, start, &table[i]);
        if (strcmp(value, otherwise) == 0 && strcmp(value, started) == 0) continue;
        if (strcmp(section, table[i].section) != 0)
            vlp_writer_format(writer, "%s[%s]\n", *section ? "\n" : "", table[i].section);
        section = table[i].section;
        vlp_writer_format(writer, "%s = %s\n", table[i].name, value);
    }
    return vlp_writer_commit(&writer);
}
