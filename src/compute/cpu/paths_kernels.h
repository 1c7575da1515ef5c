/* The loops of the path model over a block of rows, for several instruction sets. */
#ifndef VLP_COMPUTE_CPU_PATHS_KERNELS_H
#define VLP_COMPUTE_CPU_PATHS_KERNELS_H

#include "compute/cpu/paths_internal.h"

/* What messages of a layer are made from. */
typedef struct path_layer {
    const path_local *local;
    int32_t layer;
    int64_t width;
    const float *x;     /* (reached, width) states */
    const float *w;     /* (relations, width) */
    const float *query; /* (width) the head entity's boundary */
} path_layer;

/* Where gradients of a layer's messages are added to. */
typedef struct path_scatter {
    float *states;   /* (nodes, width) */
    uint8_t *active; /* (nodes) whether the row is set; it is set to zeros before it is added to */
    float *relation; /* (relations, width) */
    float *query;    /* (width) */
    float *messages; /* (edges) added to: derivatives with respect to factors of messages; NULL: none */
} path_scatter;

/* Rows with what was computed for them. */
typedef struct path_block {
    const int32_t *rows; /* (count) local numbers */
    int32_t count;
    const float *y, *y_grad;           /* (count, 5 width) */
    const int32_t *largest, *smallest; /* (count, width) the edges of the extremes */
} path_block;

/* A layer normalization with its shortcut. */
typedef struct path_norm {
    int32_t dim, reached; /* rows below `reached` have a state before */
    int64_t width;
    const float *scale, *shift; /* (width) */
    const float *x;             /* (reached, width) states before */
    float *next;                /* (nodes, width) states after */
    float *unit;                /* (nodes, width) normalized, without scale and shift; NULL: not kept */
    float *inverse;             /* (nodes) of the deviation; NULL: not kept */
} path_norm;

typedef struct path_norm_gradients {
    float *z;                  /* (count, width), set */
    float *scale, *shift;      /* (width), added to */
    float *bias, *scaled_bias; /* (width), added to: the sums of z, and of each row's scale times z */
} path_norm_gradients;

/* Arrays of a block have at least PATH_ROWS rows. Widths are multiples of 16. Rows are local numbers. */
typedef struct path_kernels {
    const char *name;
    bool (*runs)(void); /* on this processor */
    /* c (m, n) = a (m, k) b (k, n), or += it. Rows of c behind the last may be overwritten. */
    void (*product)(float *c, const float *a, const float *b, int32_t m, int64_t n, int64_t k, bool add);
    /* c (m, n) += a^T b, a (rows, m), b (rows, n); where it is not NULL scaled += scale times the same.
     */
    void (*outer)(float *c, float *scaled, float scale, const float *a, const float *b, int32_t rows,
                  int64_t m, int64_t n);
    /* y (count, 5 width) of rows; where not NULL, the edges of largest and smallest (count, width). */
    void (*aggregate)(float *y, int32_t *largest, int32_t *smallest, const path_layer *layer,
                      const int32_t *rows, int32_t count);
    /* The gradients of a block's messages. */
    void (*scatter)(const path_scatter *to, const path_layer *layer, const path_block *block);
    /* From z (count, width). */
    void (*normalize)(const path_norm *norm, const float *z, const int32_t *rows, int32_t count);
    /* scales (count): s of each row. */
    void (*normalize_backward)(const path_norm_gradients *to, const path_norm *norm,
                               const float *states_grad, const int32_t *rows, const float *scales,
                               int32_t count);
    /* scores (count) from hidden (count, width) before its offset (width) and ReLU. */
    void (*readout)(float *scores, const float *hidden, const float *offset, const float *output,
                    float bias, int32_t count, int64_t width);
    /* From grads (count): hidden becomes its gradient; the others are added to. */
    void (*readout_backward)(float *hidden, float *offset_grad, float *output_grad, const float *grads,
                             const float *offset, const float *output, int32_t count, int64_t width);
} path_kernels;

/* Products of factors that are rounded to bf16, in pairs along the index that is summed over. */
typedef struct path_bf16_kernels {
    /* Pairs of neighbours of a row, (count / 2); count is a multiple of 32. */
    void (*pack)(uint32_t *to, const float *from, int64_t count);
    /* Pairs of rows, (rows / 2 rounded up, width); a missing last row is zeros. */
    void (*pack_pairs)(uint32_t *to, const float *from, int64_t rows, int64_t width);
    /* As those of path_kernels: a (m, pairs), b (pairs, n); a (pairs, m), b (pairs, n). */
    void (*product)(float *c, const uint32_t *a, const uint32_t *b, int32_t m, int64_t n, int64_t pairs,
                    bool add);
    void (*outer)(float *c, float *scaled, float scale, const uint32_t *a, const uint32_t *b,
                  int64_t pairs, int64_t m, int64_t n);
} path_bf16_kernels;

/* NULL where the processor has no products of bf16. */
const path_bf16_kernels *path_bf16_choose(void);

/* All versions, the best first, then NULL; the last runs everywhere. */
extern const path_kernels *const path_kernel_versions[];
/* The best that runs here. */
const path_kernels *path_kernels_choose(void);
/* Computes with a version of its own choice from now on. */
vlp_status cpu_paths_use(vlp_compute *compute, const path_kernels *kernels);

#endif
