/* Unit-wise transforms: the formulas of compute/transforms.h, instantiated by transform, for kernels;
 * and the passes over rows in units.cu. Specializations, by faster instructions or with explicit
 * rounding, are compared with the formulas in tests/cuda/test_specializations.c. */
#ifndef VLP_COMPUTE_CUDA_UNITS_H
#define VLP_COMPUTE_CUDA_UNITS_H

#include <type_traits>

#include "compute/cuda/device.h"

/* ---- One unit ------------------------------------------------------------------------------------ */

template <vlp_transform TRANSFORM> struct unit_transform {
    static constexpr vlp_transform_traits traits = vlp_transform_traits_of(TRANSFORM);
    static constexpr int PARTS = traits.parts, RELATION_PARTS = traits.relation_parts;
    static constexpr int PREPARED = traits.prepared > 0 ? traits.prepared : traits.relation_parts;
    static constexpr int SUMS = traits.sums, ALL_SUMS = traits.sums + traits.sums_backward;
    static constexpr bool ANSWERS = traits.answers;

    /* p from r; scale: the form's phase_scale. */
    static __device__ void prepare(float *p, const float *r, float scale) {
        if constexpr (traits.prepared > 0) {
            vlp_unit_prepare(TRANSFORM, p, r, scale);
        } else {
#pragma unroll
            for (int part = 0; part < RELATION_PARTS; part++) p[part] = r[part];
        }
    }

    /* The unit's terms of the SUMS sums over a row, and of the others. */
    static __device__ void terms(float *terms, const float *x, const float *p) {
        vlp_unit_terms(TRANSFORM, terms, x, p);
    }
    static __device__ void terms_backward(float *terms, const float *dy, const float *p) {
        vlp_unit_terms_backward(TRANSFORM, terms, dy, p);
    }

    /* y: the query of x, or its answer. */
    template <bool ANSWER>
    static __device__ void transform(float *y, const float *x, const float *p, const vlp_unit_row &row) {
        if constexpr (ANSWER)
            vlp_unit_answer(TRANSFORM, y, x, p, &row);
        else
            query(y, x, p, row);
    }

    /* x_grad += the gradient of x from that of y. */
    template <bool ANSWER>
    static __device__ void grad_row(float *x_grad, const float *dy, const float *p,
                                    const vlp_unit_row &row) {
        if constexpr (ANSWER)
            vlp_unit_answer_grad_tail(TRANSFORM, x_grad, dy, p, &row);
        else
            vlp_unit_query_grad_head(TRANSFORM, x_grad, dy, p, &row);
    }

    /* r_grad += the gradient of r from that of y. */
    template <bool ANSWER>
    static __device__ void grad_relation(float *r_grad, const float *dy, const float *x, const float *p,
                                         const vlp_unit_row &row) {
        if constexpr (ANSWER)
            vlp_unit_answer_grad_relation(TRANSFORM, r_grad, dy, x, p, &row);
        else
            query_grad_relation(r_grad, dy, x, p, row);
    }

  private:
    static __device__ void query(float *q, const float *h, const float *p, const vlp_unit_row &row) {
        vlp_unit_query(TRANSFORM, q, h, p, &row);
    }

    static __device__ void query_grad_relation(float *r_grad, const float *dq, const float *h,
                                               const float *p, const vlp_unit_row &row) {
        vlp_unit_query_grad_relation(TRANSFORM, r_grad, dq, h, p, &row);
    }
};

/* Cosine and sine share their range reduction. */
template <>
__device__ inline void unit_transform<VLP_ROTATE>::prepare(float *p, const float *r, float scale) {
    sincosf(r[0] * scale, &p[1], &p[0]);
}

/* The formulas with explicit rounding: left to the compiler, which product is contracted differs from
 * kernel to kernel, and so would the last bits of the same query. */
template <>
__device__ inline void unit_transform<VLP_ROTATE>::query(float *q, const float *h, const float *p,
                                                         const vlp_unit_row &) {
    q[0] = __fmaf_rn(h[0], p[0], -__fmul_rn(h[1], p[1]));
    q[1] = __fmaf_rn(h[0], p[1], __fmul_rn(h[1], p[0]));
}

template <>
__device__ inline void unit_transform<VLP_ROTATE>::query_grad_relation(float *r_grad, const float *dq,
                                                                       const float *h, const float *p,
                                                                       const vlp_unit_row &row) {
    float re = __fmaf_rn(h[0], p[0], -__fmul_rn(h[1], p[1]));
    float im = __fmaf_rn(h[1], p[0], __fmul_rn(h[0], p[1]));
    r_grad[0] = __fmaf_rn(row.scale, __fmaf_rn(dq[1], re, -__fmul_rn(dq[0], im)), r_grad[0]);
}

/* Unit j of a row of units of COUNT parts. */
template <int COUNT>
__device__ inline void load_unit(float *unit, const float *row, int32_t j, int32_t columns) {
#pragma unroll
    for (int part = 0; part < COUNT; part++) unit[part] = row[part * columns + j];
}

template <int COUNT>
__device__ inline void store_unit(float *row, const float *unit, int32_t j, int32_t columns) {
#pragma unroll
    for (int part = 0; part < COUNT; part++) row[part * columns + j] = unit[part];
}

/* ---- Dispatch ------------------------------------------------------------------------------------ */

/* Calls function(unit_transform<transform>()), for kernels that are templates; nothing for a matrix
 * transform. */
template <class F> static inline void with_unit_transform(vlp_transform transform, F function) {
    switch (transform) {
#define UNIT(NAME, ...)                                                                                 \
    case VLP_##NAME:                                                                                    \
        function(unit_transform<VLP_##NAME>());                                                         \
        break;
        VLP_UNIT_TRANSFORMS(UNIT, )
#undef UNIT
#define MATRIX(NAME, ...) case VLP_##NAME:
        VLP_MATRIX_TRANSFORMS(MATRIX, )
        break;
#undef MATRIX
    }
}

/* ---- Passes over rows (units.cu) ----------------------------------------------------------------- */

/* Rows x that are transformed: row i is rows[ids[i]], with relation relations[i / group]. */
typedef struct cuda_unit_rows {
    int64_t count;
    const float *rows;        /* (..., entity_width) */
    const int32_t *ids;       /* (count), -1: masked; NULL: row i */
    const int32_t *relations; /* (count / group); NULL: the first of the table */
    int32_t group;
    const float *relation_table; /* (..., relation_width) */
} cuda_unit_rows;

static inline cuda_unit_rows cuda_unit_rows_of(const vlp_related_rows *rows) {
    return {rows->count, rows->rows, nullptr, rows->relations, 1, rows->relation_table};
}

/* What y is: the query of a head entity, that without its bias b_r, or the answer of a tail entity. */
typedef enum unit_side { SIDE_QUERY, SIDE_LINEAR_QUERY, SIDE_ANSWER } unit_side;

/* y (count, query_width); zeros where masked. */
void cuda_unit_transform(vlp_compute *compute, float *y, const vlp_form *form,
                         const cuda_unit_rows *rows, unit_side side);

/* Gradients of rows and of their relations from that of y. */
typedef struct cuda_unit_gradients {
    const float *y_grad; /* (count, query_width) */
    float *rows_grad;    /* (count, entity_width); not written where masked */
    bool add;            /* to rows_grad; else it is set */
    /* With segments, rows sorted by relation: (relation_count, relation_width), added to. Without:
     * (count / group, relation_width), of each group by itself, set. */
    float *relation_grad;
    const cuda_segments *segments;
    int32_t relation_count;
} cuda_unit_gradients;

void cuda_unit_backward(vlp_compute *compute, const cuda_unit_gradients *gradients, const vlp_form *form,
                        const cuda_unit_rows *rows, unit_side side);

/* The relation queries of a bilinear transform, as in compute/backend.h. */
void cuda_unit_relation_query(vlp_compute *compute, float *v, const vlp_form *form,
                              const vlp_head_answer_rows *rows);
void cuda_unit_relation_query_backward(vlp_compute *compute, float *heads_grad, float *answers_grad,
                                       const vlp_form *form, const float *v_grad,
                                       const vlp_head_answer_rows *rows);

#endif
