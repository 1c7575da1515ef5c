/* Search spaces: every draw of an accepted one is a value that its setting takes, and is the same again;
 * a refused one leaves nothing behind, and the message names the line. */
#include "base/base.h"
#include "fuzz.h"
#include "learn/space.h"

UNCOUNTED_BEGIN

static void check_draws(const vlp_space *space) {
    for (uint64_t draw = 0; draw < 3; draw++) {
        vlp_settings first, second;
        vlp_settings_default(&first);
        memcpy(&second, &first, sizeof first);
        REQUIRE(vlp_space_fix(&first, space) == VLP_OK && vlp_space_fix(&second, space) == VLP_OK);
        REQUIRE(vlp_space_draw(&first, space, 1, draw) == VLP_OK);
        REQUIRE(vlp_space_draw(&second, space, 1, draw) == VLP_OK);
        REQUIRE(memcmp(&first, &second, sizeof first) == 0);
    }
}

static void check_dimensions(const vlp_space *space) {
    for (int64_t i = 0; i < space->count; i++) {
        const vlp_dimension *dimension = &space->dimensions[i];
        char text[512];
        vlp_dimension_text(text, sizeof text, dimension);
        REQUIRE(strlen(text) > 0);
        REQUIRE(vlp_space_has(space, dimension->setting->name));
        if (dimension->kind == VLP_SPACE_LIST)
            REQUIRE(dimension->count > 0);
        else
            REQUIRE(dimension->low < dimension->high && dimension->low >= dimension->setting->least &&
                    dimension->high <= dimension->setting->most);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vlp_space *space = NULL;
    vlp_status status = vlp_space_parse(&space, "input", (const char *)data, size);
    REQUIRE(status == VLP_OK || status == VLP_ERROR_FORMAT);
    if (status == VLP_OK) {
        check_dimensions(space);
        check_draws(space);
    } else {
        REQUIRE(!space && strncmp(vlp_error_message(), "input:", 6) == 0);
    }
    vlp_space_free(space);
    return 0;
}

UNCOUNTED_END
