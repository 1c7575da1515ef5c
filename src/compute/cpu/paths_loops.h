/* The loops of the path model, written once: paths_kernels.c includes this file for every instruction
 * set, with names of its own (NAME), the attribute TARGET, a VECTOR of LANES floats, INTS of as many
 * integers, tiles of PRODUCT_ROWS and OUTER_ROWS rows, and these written before:
 *
 *   load, store, set, set_ints   a vector; all lanes the same
 *   fma                          a b + c
 *   larger, smaller, root        lane by lane
 *   keep_larger, keep_smaller    best and its edge become those of a message that is beyond it
 *   where_equal, where_positive  a value where integers are equal, where a number is above 0; else 0
 *   total                        the sum over the lanes
 *
 * Columns are taken two vectors at a time, so that sums stay in registers; counts are constants where
 * they are passed on. A row's results do not depend on the other rows of its block. */

/* ---- Products ------------------------------------------------------------------------------------ */

/* Where a tile of a product goes: c = or c += the tile, and then also scaled += scale * the tile. */
typedef struct NAME(target) {
    float *c, *scaled;
    int64_t stride;
    float scale;
    bool add;
} NAME(target);

/* The tile of `rows` rows and n vectors: the sum over k of a[i row + k step] b[k b_stride + ..]. */
INLINE void NAME(tile)(NAME(target) to, const float *a, int64_t row, int64_t step, const float *b,
                       int64_t b_stride, int64_t depth, int rows, int n) {
    VECTOR sum[12][2];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < n; j++) sum[i][j] = NAME(set)(0);
    for (int64_t k = 0; k < depth; k++) {
        VECTOR right[2];
        UNROLL for (int j = 0; j < n; j++) right[j] = NAME(load)(b + k * b_stride + LANES * j);
        UNROLL for (int i = 0; i < rows; i++) {
            VECTOR left = NAME(set)(a[i * row + k * step]);
            UNROLL for (int j = 0; j < n; j++) sum[i][j] = NAME(fma)(left, right[j], sum[i][j]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < n; j++) {
        float *c = to.c + i * to.stride + LANES * j;
        VECTOR out = sum[i][j];
        if (to.add) out = out + NAME(load)(c);
        NAME(store)(c, out);
        if (!to.scaled) continue;
        float *scaled = to.scaled + i * to.stride + LANES * j;
        NAME(store)(scaled, NAME(fma)(NAME(set)(to.scale), sum[i][j], NAME(load)(scaled)));
    }
}

INLINE void NAME(product_columns)(float *c, const float *a, const float *b, int32_t m, int64_t n,
                                  int64_t k, bool add, int vectors) {
    int32_t i = 0;
    for (; i + PRODUCT_ROWS <= m; i += PRODUCT_ROWS) NAME(tile)
    ((NAME(target)){c + i * n, NULL, n, 0, add}, a + i * k, k, 1, b, n, k, PRODUCT_ROWS, vectors);
    c += i * n, a += i * k;
    NAME(target) to = {c, NULL, n, 0, add};
    if (m - i > 8)
        NAME(tile)(to, a, k, 1, b, n, k, PRODUCT_ROWS, vectors);
    else if (m - i > 4)
        NAME(tile)(to, a, k, 1, b, n, k, PRODUCT_ROWS < 8 ? PRODUCT_ROWS : 8, vectors);
    else if (m - i > 0)
        NAME(tile)(to, a, k, 1, b, n, k, 4, vectors);
}

TARGET static void NAME(product)(float *c, const float *a, const float *b, int32_t m, int64_t n,
                                 int64_t k, bool add) {
    int64_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES) NAME(product_columns)(c + j, a, b + j, m, n, k, add, 2);
    if (j < n) NAME(product_columns)(c + j, a, b + j, m, n, k, add, 1);
}

INLINE void NAME(outer_columns)(NAME(target) to, const float *a, const float *b, int32_t rows, int64_t m,
                                int vectors) {
    int64_t i = 0, n = to.stride;
    for (; i + OUTER_ROWS <= m; i += OUTER_ROWS) {
        NAME(tile)(to, a + i, 1, m, b, n, rows, OUTER_ROWS, vectors);
        to.c += OUTER_ROWS * n;
        if (to.scaled) to.scaled += OUTER_ROWS * n;
    }
    for (; i < m; i += 4) {
        NAME(tile)(to, a + i, 1, m, b, n, rows, 4, vectors);
        to.c += 4 * n;
        if (to.scaled) to.scaled += 4 * n;
    }
}

TARGET static void NAME(outer)(float *c, float *scaled, float scale, const float *a, const float *b,
                               int32_t rows, int64_t m, int64_t n) {
    int64_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES) NAME(outer_columns)
    ((NAME(target)){c + j, scaled ? scaled + j : NULL, n, scale, true}, a, b + j, rows, m, 2);
    if (j < n) NAME(outer_columns)
    ((NAME(target)){c + j, scaled ? scaled + j : NULL, n, scale, true}, a, b + j, rows, m, 1);
}

/* ---- Messages ------------------------------------------------------------------------------------ */

/* y of one row, some of its columns; where `arguments`, also the edges of its extremes: -1 the boundary,
 * -2 a message of 0 whose edge is not read. */
INLINE void NAME(aggregate_columns)(float *y, int32_t *largest, int32_t *smallest,
                                    const path_layer *layer, int32_t row, int n, bool arguments,
                                    int64_t column) {
    const path_local *local = layer->local;
    const path_edge *edges = local->edges;
    int32_t begin = local->nodes[row].begin, end = path_edges_end(local, row, layer->layer);
    int32_t degree = local->nodes[row].degree;
    int64_t width = layer->width;
    VECTOR sum[2], squares[2], most[2], least[2];
    INTS most_at[2], least_at[2];
    UNROLL for (int j = 0; j < n; j++) {
        VECTOR boundary = row == 0 ? NAME(load)(layer->query + column + LANES * j) : NAME(set)(0);
        sum[j] = most[j] = least[j] = boundary;
        squares[j] = boundary * boundary;
        most_at[j] = least_at[j] = NAME(set_ints)(-1);
        if (row == 0 && end - begin < degree) {
            NAME(keep_larger)(&most[j], &most_at[j], NAME(set)(0), NAME(set_ints)(-2));
            NAME(keep_smaller)(&least[j], &least_at[j], NAME(set)(0), NAME(set_ints)(-2));
        }
    }
    for (int32_t edge = begin; edge < end; edge++) {
        const float *x = layer->x + edges[edge].source * width + column;
        const float *w = layer->w + edges[edge].relation * width + column;
        UNROLL for (int j = 0; j < n; j++) {
            VECTOR message = NAME(load)(x + LANES * j) * NAME(load)(w + LANES * j);
            sum[j] = sum[j] + message;
            squares[j] = NAME(fma)(message, message, squares[j]);
            if (arguments) {
                NAME(keep_larger)(&most[j], &most_at[j], message, NAME(set_ints)(edge));
                NAME(keep_smaller)(&least[j], &least_at[j], message, NAME(set_ints)(edge));
            } else {
                most[j] = NAME(larger)(most[j], message);
                least[j] = NAME(smaller)(least[j], message);
            }
        }
    }
    VECTOR inverse = NAME(set)(1.0f / (float)(degree + 1)), zero = NAME(set)(0);
    bool has_state = row < local->reached[layer->layer];
    UNROLL for (int j = 0; j < n; j++) {
        int64_t at = column + LANES * j;
        VECTOR mean = sum[j] * inverse;
        VECTOR variance = NAME(fma)(squares[j], inverse, -(mean * mean));
        VECTOR state = has_state ? NAME(load)(layer->x + row * width + at) : zero;
        NAME(store)(y + at, state);
        NAME(store)(y + width + at, mean);
        NAME(store)(y + 2 * width + at, most[j]);
        NAME(store)(y + 3 * width + at, least[j]);
        NAME(store)
        (y + 4 * width + at, NAME(root)(NAME(larger)(variance, NAME(set)(VLP_PATH_LEAST_VARIANCE))));
        if (!arguments) continue;
        memcpy(largest + at, &most_at[j], sizeof most_at[j]);
        memcpy(smallest + at, &least_at[j], sizeof least_at[j]);
    }
}

INLINE void NAME(aggregate_rows)(float *y, int32_t *largest, int32_t *smallest, const path_layer *layer,
                                 const int32_t *rows, int32_t count, bool arguments) {
    int64_t width = layer->width;
    for (int32_t i = 0; i < count; i++) {
        int64_t column = 0;
        for (; column + 2 * LANES <= width; column += 2 * LANES)
            NAME(aggregate_columns)(y, largest, smallest, layer, rows[i], 2, arguments, column);
        if (column < width)
            NAME(aggregate_columns)(y, largest, smallest, layer, rows[i], 1, arguments, column);
        y += PATH_PARTS * width;
        if (arguments) largest += width, smallest += width;
    }
}

TARGET static void NAME(aggregate)(float *y, int32_t *largest, int32_t *smallest,
                                   const path_layer *layer, const int32_t *rows, int32_t count) {
    if (largest)
        NAME(aggregate_rows)(y, largest, smallest, layer, rows, count, true);
    else
        NAME(aggregate_rows)(y, NULL, NULL, layer, rows, count, false);
}

/* ---- Their gradients ----------------------------------------------------------------------------- */

/* The gradients of a row's messages, some of its columns: g1 + m g2, and those of the extremes. */
typedef struct NAME(row_gradient) {
    VECTOR constant[2], slope[2], largest[2], smallest[2];
    INTS largest_at[2], smallest_at[2];
} NAME(row_gradient);

INLINE NAME(row_gradient)
    NAME(row_gradient_of)(const float *y, const float *y_grad, const int32_t *largest,
                          const int32_t *smallest, int64_t width, int32_t degree, int n) {
    NAME(row_gradient) out;
    VECTOR inverse = NAME(set)(1.0f / (float)(degree + 1));
    UNROLL for (int j = 0; j < n; j++) {
        VECTOR mean = NAME(load)(y + width + LANES * j);
        VECTOR deviation = NAME(load)(y + 4 * width + LANES * j);
        /* None where the variance is at its least. */
        VECTOR above = deviation - NAME(set)(1.00001f * sqrtf(VLP_PATH_LEAST_VARIANCE));
        VECTOR by_deviation =
            NAME(where_positive)(above, NAME(load)(y_grad + 4 * width + LANES * j) / deviation);
        VECTOR by_mean = NAME(load)(y_grad + width + LANES * j);
        out.constant[j] = NAME(fma)(-mean, by_deviation, by_mean) * inverse;
        out.slope[j] = by_deviation * inverse;
        out.largest[j] = NAME(load)(y_grad + 2 * width + LANES * j);
        out.smallest[j] = NAME(load)(y_grad + 3 * width + LANES * j);
        memcpy(&out.largest_at[j], largest + LANES * j, sizeof out.largest_at[j]);
        memcpy(&out.smallest_at[j], smallest + LANES * j, sizeof out.smallest_at[j]);
    }
    return out;
}

INLINE VECTOR NAME(message_gradient)(const NAME(row_gradient) * row, int j, VECTOR message, INTS edge) {
    VECTOR out = NAME(fma)(message, row->slope[j], row->constant[j]);
    out = out + NAME(where_equal)(row->largest_at[j], edge, row->largest[j]);
    return out + NAME(where_equal)(row->smallest_at[j], edge, row->smallest[j]);
}

INLINE void NAME(scatter_columns)(const path_scatter *to, const path_layer *layer,
                                  const path_block *block, int32_t i, int n, bool factors,
                                  int64_t column) {
    const path_local *local = layer->local;
    const path_edge *edges = local->edges;
    int32_t row = block->rows[i];
    int32_t begin = local->nodes[row].begin, end = path_edges_end(local, row, layer->layer);
    int64_t width = layer->width, first = i * width + column;
    const float *y = block->y + i * PATH_PARTS * width + column;
    const float *y_grad = block->y_grad + i * PATH_PARTS * width;
    NAME(row_gradient)
    gradient = NAME(row_gradient_of)(y, y_grad + column, block->largest + first, block->smallest + first,
                                     width, local->nodes[row].degree, n);
    UNROLL for (int j = 0; j < n; j++) {
        int64_t at = column + LANES * j;
        float *state = to->states + row * width + at, *query = to->query + at;
        NAME(store)(state, NAME(load)(state) + NAME(load)(y_grad + at));
        if (row == 0) {
            VECTOR boundary = NAME(load)(layer->query + at);
            VECTOR change = NAME(message_gradient)(&gradient, j, boundary, NAME(set_ints)(-1));
            NAME(store)(query, NAME(load)(query) + change);
        }
    }
    for (int32_t edge = begin; edge < end; edge++) {
        int64_t source = edges[edge].source * width + column;
        int64_t relation = edges[edge].relation * width + column;
        VECTOR factor = NAME(set)(0);
        UNROLL for (int j = 0; j < n; j++) {
            VECTOR x = NAME(load)(layer->x + source + LANES * j);
            VECTOR w = NAME(load)(layer->w + relation + LANES * j);
            VECTOR change = NAME(message_gradient)(&gradient, j, x * w, NAME(set_ints)(edge));
            float *state = to->states + source + LANES * j,
                  *weight = to->relation + relation + LANES * j;
            NAME(store)(state, NAME(fma)(change, w, NAME(load)(state)));
            NAME(store)(weight, NAME(fma)(change, x, NAME(load)(weight)));
            if (factors) factor = NAME(fma)(change, x * w, factor);
        }
        if (factors) to->messages[edge] += NAME(total)(factor);
    }
}

INLINE void NAME(scatter_rows)(const path_scatter *to, const path_layer *layer, const path_block *block,
                               bool factors) {
    const path_local *local = layer->local;
    int64_t width = layer->width;
    for (int32_t i = 0; i < block->count; i++) {
        int32_t row = block->rows[i];
        int32_t begin = local->nodes[row].begin, end = path_edges_end(local, row, layer->layer);
        for (int32_t edge = begin; edge < end; edge++) {
            int32_t source = local->edges[edge].source;
            if (to->active[source]) continue;
            to->active[source] = 1;
            memset(to->states + source * width, 0, (size_t)width * sizeof(float));
        }
        int64_t column = 0;
        for (; column + 2 * LANES <= width; column += 2 * LANES)
            NAME(scatter_columns)(to, layer, block, i, 2, factors, column);
        if (column < width) NAME(scatter_columns)(to, layer, block, i, 1, factors, column);
    }
}

TARGET static void NAME(scatter)(const path_scatter *to, const path_layer *layer,
                                 const path_block *block) {
    if (to->messages)
        NAME(scatter_rows)(to, layer, block, true);
    else
        NAME(scatter_rows)(to, layer, block, false);
}

/* ---- The layer normalization --------------------------------------------------------------------- */

TARGET static void NAME(normalize)(const path_norm *norm, const float *z, const int32_t *rows,
                                   int32_t count) {
    int64_t width = norm->width;
    float inverse_dim = 1.0f / (float)norm->dim;
    VECTOR zero = NAME(set)(0);
    for (int32_t i = 0; i < count; i++, z += width) {
        VECTOR sum = zero, squares = zero;
        for (int64_t j = 0; j < width; j += LANES) {
            VECTOR value = NAME(load)(z + j);
            sum = sum + value;
            squares = NAME(fma)(value, value, squares);
        }
        float mean = NAME(total)(sum) * inverse_dim;
        float variance = NAME(total)(squares) * inverse_dim - mean * mean;
        float inverse = 1.0f / sqrtf((variance > 0 ? variance : 0) + VLP_PATH_NORM_EPSILON);
        int64_t row = rows[i] * width;
        if (norm->inverse) norm->inverse[rows[i]] = inverse;
        for (int64_t j = 0; j < width; j += LANES) {
            VECTOR unit = (NAME(load)(z + j) - NAME(set)(mean)) * NAME(set)(inverse);
            VECTOR out = NAME(fma)(unit, NAME(load)(norm->scale + j), NAME(load)(norm->shift + j));
            out = NAME(larger)(out, zero);
            if (rows[i] < norm->reached) out = out + NAME(load)(norm->x + row + j);
            if (norm->unit) NAME(store)(norm->unit + row + j, unit);
            NAME(store)(norm->next + row + j, out);
        }
    }
}

TARGET static void NAME(normalize_backward)(const path_norm_gradients *to, const path_norm *norm,
                                            const float *states_grad, const int32_t *rows,
                                            const float *scales, int32_t count) {
    int64_t width = norm->width;
    float inverse_dim = 1.0f / (float)norm->dim;
    float *z_grad = to->z;
    for (int32_t i = 0; i < count; i++, z_grad += width) {
        int64_t row = rows[i] * width;
        VECTOR sum = NAME(set)(0), product = NAME(set)(0);
        for (int64_t j = 0; j < width; j += LANES) {
            VECTOR unit = NAME(load)(norm->unit + row + j), scale = NAME(load)(norm->scale + j);
            VECTOR out = NAME(fma)(unit, scale, NAME(load)(norm->shift + j));
            VECTOR change = NAME(where_positive)(out, NAME(load)(states_grad + row + j));
            NAME(store)(to->scale + j, NAME(fma)(change, unit, NAME(load)(to->scale + j)));
            NAME(store)(to->shift + j, NAME(load)(to->shift + j) + change);
            VECTOR scaled = change * scale;
            NAME(store)(z_grad + j, scaled);
            sum = sum + scaled;
            product = NAME(fma)(scaled, unit, product);
        }
        VECTOR mean = NAME(set)(NAME(total)(sum) * inverse_dim);
        VECTOR along = NAME(set)(NAME(total)(product) * inverse_dim);
        VECTOR inverse = NAME(set)(norm->inverse[rows[i]]), s = NAME(set)(scales[i]);
        for (int64_t j = 0; j < width; j += LANES) {
            VECTOR unit = NAME(load)(norm->unit + row + j);
            VECTOR change = inverse * (NAME(load)(z_grad + j) - mean - unit * along);
            NAME(store)(z_grad + j, change);
            NAME(store)(to->bias + j, NAME(load)(to->bias + j) + change);
            NAME(store)(to->scaled_bias + j, NAME(fma)(change, s, NAME(load)(to->scaled_bias + j)));
        }
    }
}

/* ---- The readout --------------------------------------------------------------------------------- */

TARGET static void NAME(readout)(float *scores, const float *hidden, const float *offset,
                                 const float *output, float bias, int32_t count, int64_t width) {
    for (int32_t i = 0; i < count; i++, hidden += width) {
        VECTOR sum = NAME(set)(0);
        for (int64_t j = 0; j < width; j += LANES) {
            VECTOR value = NAME(load)(hidden + j) + NAME(load)(offset + j);
            sum = NAME(fma)(NAME(larger)(value, NAME(set)(0)), NAME(load)(output + j), sum);
        }
        scores[i] = NAME(total)(sum) + bias;
    }
}

TARGET static void NAME(readout_backward)(float *hidden, float *offset_grad, float *output_grad,
                                          const float *grads, const float *offset, const float *output,
                                          int32_t count, int64_t width) {
    for (int32_t i = 0; i < count; i++, hidden += width) {
        VECTOR grad = NAME(set)(grads[i]);
        for (int64_t j = 0; j < width; j += LANES) {
            VECTOR value = NAME(load)(hidden + j) + NAME(load)(offset + j);
            VECTOR positive = NAME(larger)(value, NAME(set)(0));
            VECTOR change = NAME(where_positive)(value, grad * NAME(load)(output + j));
            NAME(store)(output_grad + j, NAME(fma)(positive, grad, NAME(load)(output_grad + j)));
            NAME(store)(offset_grad + j, NAME(load)(offset_grad + j) + change);
            NAME(store)(hidden + j, change);
        }
    }
}

#undef NAME
#undef TARGET
#undef VECTOR
#undef INTS
#undef LANES
#undef PRODUCT_ROWS
#undef OUTER_ROWS
