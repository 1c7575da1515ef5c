#include "eval/same_rows.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Rows that are fetched at a time. */
enum { CHUNK = 1024 };

/* A row by its hash: 128 bits are as good as the row. */
typedef struct hashed {
    XXH128_hash_t hash;
    int32_t entity;
} hashed;

static int compare(const void *left, const void *right) {
    const hashed *a = left, *b = right;
    int order = XXH128_cmp(&a->hash, &b->hash);
    return order ? order : (a->entity > b->entity) - (a->entity < b->entity);
}

static vlp_status hash_rows(hashed *rows, const vlp_model *model) {
    const vlp_table *table = vlp_model_entities(model);
    size_t bytes = (size_t)table->width * sizeof(float);
    char *chunk = vlp_alloc(CHUNK, bytes);
    if (!chunk) return vlp_fail_memory("rows that are the same");
    vlp_status status = VLP_OK;
    for (int64_t first = 0; first < table->rows && status == VLP_OK; first += CHUNK) {
        int64_t count = table->rows - first < CHUNK ? table->rows - first : CHUNK;
        status = model->backend->memory->download(
            model->compute, chunk, table->value + first * table->width, (size_t)count * bytes);
        for (int64_t i = 0; i < count && status == VLP_OK; i++)
            rows[first + i] =
                (hashed){XXH3_128bits(chunk + (size_t)i * bytes, bytes), (int32_t)(first + i)};
    }
    vlp_free(chunk);
    return status;
}

vlp_status vlp_same_rows(int32_t **out, const vlp_model *model) {
    *out = NULL;
    int64_t entities = model->entities, copies = 0;
    vlp_status status = VLP_OK;
    int32_t *same = vlp_alloc((size_t)entities, sizeof *same);
    hashed *rows = vlp_alloc((size_t)entities, sizeof *rows);
    if (!same || !rows) {
        status = vlp_fail_memory("rows that are the same");
        goto out;
    }
    VLP_CHECK(hash_rows(rows, model));
    qsort(rows, (size_t)entities, sizeof *rows, compare);
    for (int64_t i = 0; i < entities; i++) {
        bool copy = i > 0 && XXH128_isEqual(rows[i - 1].hash, rows[i].hash);
        same[rows[i].entity] = copy ? same[rows[i - 1].entity] : rows[i].entity;
        copies += copy;
    }
    if (copies > 0) {
        *out = same;
        same = NULL;
    }
out:
    vlp_free(same);
    vlp_free(rows);
    return status;
}
