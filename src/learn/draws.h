/* The candidates of a search: what they start from, the settings that are drawn for each, and their
 * trainings at the rungs of successive halving. */
#ifndef VLP_LEARN_DRAWS_H
#define VLP_LEARN_DRAWS_H

#include "learn/settings.h"
#include "learn/space.h"

typedef struct vlp_draws {
    const vlp_dataset *dataset;
    const vlp_tune_options *options;
    vlp_space *space;
    int64_t keys; /* (h, r) of the training graph, both directions, where embeddings are searched */
    vlp_settings start;  /* before anything is drawn */
    vlp_settings *drawn; /* (count), at full length */
    int64_t count, capacity;
    uint64_t draw; /* the next one; those that are invalid or not new are left out */
} vlp_draws;

/* Reads space, recipe, base and settings. To be freed, also after a failure. */
vlp_status vlp_draws_open(vlp_draws *out, const vlp_dataset *dataset, const vlp_tune_options *options);
void vlp_draws_close(vlp_draws *candidates);

/* Draws until there are `wanted` candidates, or no new ones are found: a list has an end. With none at
 * all, VLP_ERROR_ARGUMENT says what is wrong with them. */
vlp_status vlp_draws_draw(vlp_draws *candidates, int64_t wanted);

/* A candidate as it is trained at a rung: passes, steps, warm-up and decay in proportion. */
vlp_settings vlp_draws_at(const vlp_draws *candidates, int64_t candidate, int32_t rung);

/* The settings that the search varies, as "key=value key=value", cut to `size` bytes; and as a JSON
 * object, with the length of the training. */
void vlp_draws_text(char *text, size_t size, const vlp_draws *candidates, int64_t candidate);
enum { VLP_DRAW_JSON = 8192 };
void vlp_draws_json(char json[VLP_DRAW_JSON], const vlp_draws *candidates, int64_t candidate,
                    int32_t rung);

/* The space, and the settings of the start that are not the defaults, as text of at most `size` bytes.
 */
void vlp_draws_space(char *text, size_t size, const vlp_draws *candidates);
void vlp_draws_start(char *text, size_t size, const vlp_draws *candidates);

#endif
