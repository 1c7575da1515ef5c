/* A search space: the values that settings may take in a search, and the drawing of them.
 *
 * A file of it has the lines of a recipe:
 *   path_drop = 0, 0.2, 0.4        one of a list
 *   n3        = 0.001 .. 0.5 log   a number of a range, uniform in its logarithm
 *   path_rate = 0.001 .. 0.01      a number of a range, uniform
 *   path      = on                 fixed
 * Ranges are for numbers, both ends included; whole numbers stay whole, others have three digits. */
#ifndef VLP_LEARN_SPACE_H
#define VLP_LEARN_SPACE_H

#include "learn/settings.h"

typedef enum vlp_space_kind { VLP_SPACE_LIST = 0, VLP_SPACE_UNIFORM, VLP_SPACE_LOG } vlp_space_kind;

enum { VLP_SPACE_VALUE = 64 }; /* bytes of a value's text */

typedef struct vlp_dimension {
    const vlp_setting *setting;
    vlp_space_kind kind;
    char (*values)[VLP_SPACE_VALUE]; /* (count) of a list, as vlp_settings_set reads them */
    int64_t count, capacity;         /* one: fixed */
    double low, high;                /* of a range */
} vlp_dimension;

typedef struct vlp_space {
    vlp_dimension *dimensions; /* (count), in the order of the file */
    int64_t count, capacity;
} vlp_space;

/* VLP_ERROR_FORMAT with file, line and cause. *out is to be freed. */
vlp_status vlp_space_read(vlp_space **out, const char *path);
vlp_status vlp_space_parse(vlp_space **out, const char *name, const char *text, size_t size);
/* What is searched for a component where no file is given. */
vlp_status vlp_space_builtin(vlp_space **out, vlp_component component);
void vlp_space_free(vlp_space *space);

/* Whether a setting is in the space. */
bool vlp_space_has(const vlp_space *space, const char *name);
static inline bool vlp_dimension_varies(const vlp_dimension *dimension) {
    return dimension->kind != VLP_SPACE_LIST || dimension->count > 1;
}

/* Sets the fixed settings; and one value of each dimension that varies. The same seed and number of the
 * draw always give the same values. */
vlp_status vlp_space_fix(vlp_settings *settings, const vlp_space *space);
vlp_status vlp_space_draw(vlp_settings *settings, const vlp_space *space, uint64_t seed, uint64_t draw);

/* One dimension as text, in the spelling of a file, cut to `size` bytes. */
void vlp_dimension_text(char *text, size_t size, const vlp_dimension *dimension);

#endif
