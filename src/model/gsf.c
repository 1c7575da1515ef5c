#include "model/gsf.h"

#include <stdio.h>

static const vlp_model_row *const rows[VLP_MODELS] = {
#define ROW(NAME, name) &vlp_##name##_model,
    VLP_MODEL_LIST(ROW)
#undef ROW
};

const char *const vlp_model_names[] = {
#define NAME_OF(NAME, name) #name,
    VLP_MODEL_LIST(NAME_OF)
#undef NAME_OF
        "none",
    NULL};

const vlp_model_row *vlp_model_row_of(int32_t kind) {
    assert(kind >= 0 && kind < VLP_MODELS);
    return rows[kind];
}

void vlp_model_form(vlp_form *form, const vlp_model_options *options) {
    *form = (vlp_form){0};
    if (options->kind == VLP_MODEL_NONE) return;
    const vlp_model_row *row = rows[options->kind];
    vlp_transform_traits traits = vlp_transform_traits_of(row->transform);
    *form = (vlp_form){.transform = row->transform, .similarity = row->similarity};
    if (row->has_norm) form->similarity = options->norm == VLP_NORM_L1 ? VLP_MINUS_L1 : VLP_MINUS_L2;
    if (row->similarity != VLP_DOT) form->margin = (float)options->margin;
    if (!traits.matrix) {
        form->entity_width = form->query_width = vlp_form_width((int64_t)traits.parts * options->dim);
        form->relation_width = vlp_form_width((int64_t)traits.relation_parts * options->dim);
    }
    if (row->form) row->form(form, options);
}

static bool fits(const vlp_model_options *options) {
    vlp_form form;
    vlp_model_form(&form, options);
    return form.entity_width > 0 && form.relation_width > 0 && form.query_width > 0;
}

vlp_status vlp_model_check(const vlp_model_options *options) {
    if (options->kind == VLP_MODEL_NONE || fits(options)) return VLP_OK;
    vlp_model_options smaller = *options;
    char advice[48] = "lower relation_dim";
    int32_t low = 0, high = options->dim; /* low fits, or is 0; high does not fit */
    while (high - low > 1) {
        smaller.dim = low + (high - low) / 2;
        if (fits(&smaller))
            low = smaller.dim;
        else
            high = smaller.dim;
    }
    if (low > 0) snprintf(advice, sizeof advice, "dim = %d would fit", low);
    return vlp_fail(VLP_ERROR_ARGUMENT, "a row of %s with dim = %d has more than %d numbers; %s",
                    rows[options->kind]->name, options->dim, VLP_MAX_WIDTH, advice);
}

int32_t vlp_model_arrays(vlp_model_array out[VLP_MAX_MODEL_ARRAYS], const vlp_model_row *row,
                         const vlp_form *form) {
    if (row->arrays) return row->arrays(out, form);
    out[0] = (vlp_model_array){"relations", 0, form->relation_width};
    return 1;
}
