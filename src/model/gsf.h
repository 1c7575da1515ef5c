/* The models of the generalized score function f_g = g(W_r1 h + b_r, W_r2 t). A model is a file in this
 * folder that defines its vlp_model_row, and a row in the list below; its formulas are a transform
 * (compute/transforms.h) and a similarity (compute/similarity.h). */
#ifndef VLP_MODEL_GSF_H
#define VLP_MODEL_GSF_H

#include "base/base.h"
#include "compute/form.h"

/* X(NAME, name): the row is vlp_name_model, the setting's value "name". */
#define VLP_MODEL_LIST(X)                                                                               \
    X(RESCAL, rescal)                                                                                   \
    X(TRANSE, transe)                                                                                   \
    X(TRANSR, transr)                                                                                   \
    X(DISTMULT, distmult)                                                                               \
    X(COMPLEX, complex)                                                                                 \
    X(ROTATE, rotate)                                                                                   \
    X(PAIRRE, pairre)                                                                                   \
    X(TRANSH, transh)                                                                                   \
    X(QUATE, quate)

/* VLP_MODEL_RESCAL, VLP_MODEL_TRANSE, ... */
typedef enum vlp_model_kind {
#define VLP_ENUMERATOR(NAME, name) VLP_MODEL_##NAME,
    VLP_MODEL_LIST(VLP_ENUMERATOR)
#undef VLP_ENUMERATOR
        VLP_MODELS,
    VLP_MODEL_NONE = VLP_MODELS /* a run without embeddings */
} vlp_model_kind;

typedef enum vlp_norm { VLP_NORM_L1 = 0, VLP_NORM_L2 } vlp_norm;

typedef struct vlp_model_options {
    int32_t kind; /* vlp_model_kind */
    int32_t dim, relation_dim;
    int32_t norm; /* vlp_norm */
    double margin;
} vlp_model_options;

/* An array that an export writes, as name.npy: a row per relation, floats offset .. offset + width of
 * the relation's row. */
typedef struct vlp_model_array {
    const char *name;
    int64_t offset, width;
} vlp_model_array;

enum { VLP_MAX_MODEL_ARRAYS = 2 };

/* Rows of relations are (relation_width) floats. Members that are NULL or false are not needed. */
typedef struct vlp_model_row {
    const char *name;
    vlp_transform transform;
    vlp_similarity similarity;
    bool has_norm; /* the setting norm chooses between the L1 and the L2 norm */
    /* Completes a form whose transform, similarity and margin are set, and, for a unit-wise transform,
     * its widths: `dim` units per row. */
    void (*form)(vlp_form *form, const vlp_model_options *options);
    /* The relation read backwards: f_g(t, inverse, h) = f_g(h, relation, t). The rows do not overlap. */
    void (*inverse)(float *out, const float *relation, const vlp_form *form);
    /* The arrays a relation's row is exported as; returns their count. NULL: `relations`, the whole row.
     */
    int32_t (*arrays)(vlp_model_array out[VLP_MAX_MODEL_ARRAYS], const vlp_form *form);
    /* A trained row to the numbers that are exported, and back, in place. NULL: they are the same. */
    void (*to_arrays)(float *relation, const vlp_form *form);
    void (*from_arrays)(float *relation, const vlp_form *form);
    /* The array whose rows have relation_dim numbers. NULL: the model has no relation_dim. */
    const char *relation_dim_array;
} vlp_model_row;

/* Defines a model's row: VLP_DEFINE_MODEL(name, .transform = ..., ...). */
#define VLP_DEFINE_MODEL(model, ...)                                                                    \
    const vlp_model_row vlp_##model##_model = {.name = #model, __VA_ARGS__}

#define VLP_DECLARATION(NAME, name) extern const vlp_model_row vlp_##name##_model;
VLP_MODEL_LIST(VLP_DECLARATION)
#undef VLP_DECLARATION

/* By kind, "none" the last of them, and NULL behind it. */
extern const char *const vlp_model_names[];

/* Of a kind that has embeddings. */
const vlp_model_row *vlp_model_row_of(int32_t kind);

/* ---- Properties ---------------------------------------------------------------------------------- */

/* The score is a dot product of q with the entity's row: one matrix product scores all entities, and
 * 1-to-All cross-entropy is possible. */
static inline bool vlp_model_is_dot(const vlp_model_row *row) {
    return row->similarity == VLP_DOT && !vlp_transform_traits_of(row->transform).answers;
}

/* The score is linear in the relation's row: relations can be predicted. */
static inline bool vlp_model_predicts_relations(const vlp_model_row *row) {
    return vlp_model_is_dot(row) && vlp_transform_traits_of(row->transform).bilinear;
}

/* N3 is the nuclear 3-norm of a tensor decomposition: relations have units as entities do. */
static inline bool vlp_model_has_n3(const vlp_model_row *row) {
    vlp_transform_traits traits = vlp_transform_traits_of(row->transform);
    return vlp_model_is_dot(row) && traits.parts == traits.relation_parts;
}

/* ---- Forms --------------------------------------------------------------------------------------- */

/* The most numbers of a row. Half of what an int32_t holds: loops over a row step past its end. */
enum { VLP_MAX_WIDTH = 1 << 30 };

/* A width of a form; 0 where it is too large, which vlp_model_check refuses. */
static inline int32_t vlp_form_width(int64_t width) {
    return width <= VLP_MAX_WIDTH ? (int32_t)width : 0;
}

/* Refuses options whose rows are too wide, and says which dim would fit. */
vlp_status vlp_model_check(const vlp_model_options *options);

/* Zeros for VLP_MODEL_NONE. */
void vlp_model_form(vlp_form *form, const vlp_model_options *options);

/* The arrays of a model's relations: returns their count. */
int32_t vlp_model_arrays(vlp_model_array out[VLP_MAX_MODEL_ARRAYS], const vlp_model_row *row,
                         const vlp_form *form);

#endif
