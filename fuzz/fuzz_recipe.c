/* Recipes: accepted values are within their ranges and survive printing and reading; a refused recipe
 * changes nothing, and the message names the invalid line. */
#include "base/base.h"
#include "fuzz.h"
#include "learn/settings.h"

UNCOUNTED_BEGIN

enum { RECIPE = 8192 };

/* Every setting of the table, one per line. */
static size_t print_all(char text[RECIPE], const vlp_settings *settings) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    size_t used = 0;
    for (int32_t i = 0; i < count; i++) {
        char value[64];
        vlp_settings_get(value, settings, &table[i]);
        used += (size_t)snprintf(text + used, RECIPE - used, "%s = %s\n", table[i].name, value);
        REQUIRE(used < RECIPE);
    }
    return used;
}

static void check_good(const vlp_settings *settings) {
    char text[RECIPE];
    size_t size = print_all(text, settings);
    vlp_settings back;
    vlp_settings_default(&back);
    REQUIRE(vlp_recipe_parse(&back, "printed", text, size) == VLP_OK);
    REQUIRE(memcmp(&back, settings, sizeof back) == 0);
    /* Settings may contradict each other, but all are within their ranges. */
    if (vlp_settings_check(settings) != VLP_OK) REQUIRE(strstr(vlp_error_message(), " takes ") == NULL);
}

/* "input:LINE: cause": the lines before LINE are a valid recipe, and with LINE they are not. */
static void check_refused(const uint8_t *data, size_t size) {
    char message[1024];
    snprintf(message, sizeof message, "%s", vlp_error_message());
    REQUIRE(naive_utf8((const uint8_t *)message, strlen(message)));
    int64_t wrong = 0;
    char *end = message;
    if (strncmp(message, "input:", 6) == 0) wrong = strtoll(message + 6, &end, 10);
    REQUIRE(wrong > 0 && strncmp(end, ": ", 2) == 0 && strlen(end) > 2);
    size_t at = 0, next = 0;
    for (int64_t line = 1; line < wrong; line++, at += next) {
        REQUIRE(at < size);
        naive_line(data + at, size - at, &next);
    }
    REQUIRE(at < size);
    vlp_settings settings;
    vlp_settings_default(&settings);
    REQUIRE(vlp_recipe_parse(&settings, "input", (const char *)data, at) == VLP_OK);
    size_t length = naive_line(data + at, size - at, &next);
    REQUIRE(vlp_recipe_parse(&settings, "input", (const char *)data, at + length) == VLP_ERROR_FORMAT);
    REQUIRE(strcmp(message, vlp_error_message()) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vlp_settings settings, before;
    vlp_settings_default(&settings);
    vlp_settings_default(&before);
    vlp_status status = vlp_recipe_parse(&settings, "input", (const char *)data, size);
    REQUIRE(status == VLP_OK || status == VLP_ERROR_FORMAT);
    if (status == VLP_OK) {
        check_good(&settings);
    } else {
        REQUIRE(memcmp(&settings, &before, sizeof settings) == 0);
        check_refused(data, size);
    }
    return 0;
}

UNCOUNTED_END
