/* Named arrays in one file, in the safetensors format: eight bytes of header length, a JSON header, the
 * bytes of the arrays. Ordinary readers open it. The header's __metadata__ holds a checksum (XXH3, 128
 * bits) of everything else, verified on reading, and pairs of the caller's. */
#ifndef VLP_STORE_SAFETENSORS_H
#define VLP_STORE_SAFETENSORS_H

#include "base/file.h"

typedef enum vlp_tensor_type {
    VLP_F32 = 0,
    VLP_F64,
    VLP_I32,
    VLP_I64,
    VLP_U8,
    VLP_BF16
} vlp_tensor_type;
size_t vlp_tensor_type_size(vlp_tensor_type type);

enum { VLP_TENSOR_DIMENSIONS = 4 };

typedef struct vlp_tensor {
    const char *name;
    vlp_tensor_type type;
    int32_t dimensions;
    int64_t shape[VLP_TENSOR_DIMENSIONS];
    const void *data; /* row-major */
} vlp_tensor;

typedef struct vlp_pair {
    const char *key, *value;
} vlp_pair;

/* Written whole or not at all, synced. The same content gives the same bytes. */
vlp_status vlp_safetensors_write(const char *path, const vlp_tensor *tensors, int32_t tensor_count,
                                 const vlp_pair *metadata, int32_t pair_count);

/* A file opened for reading: mapped, checked. Anything that is not exactly what a writer of the format
 * may produce (and, where `checksum` is required, with ours intact) is VLP_ERROR_FORMAT with the file's
 * name and the cause. */
typedef struct vlp_safetensors vlp_safetensors;
vlp_status vlp_safetensors_open(vlp_safetensors **out, const char *path, bool checksum);
void vlp_safetensors_free(vlp_safetensors *file);
/* NULL when there is none of that name. Borrowed; data is aligned to the size of its elements. */
const vlp_tensor *vlp_safetensors_find(const vlp_safetensors *file, const char *name);
const vlp_tensor *vlp_safetensors_all(const vlp_safetensors *file, int32_t *count);
const char *vlp_safetensors_metadata(const vlp_safetensors *file, const char *key); /* or NULL */
/* Finds and checks in one: an error that names file and tensor when it is missing or of another type or
 * shape (a dimension of -1 takes any). */
vlp_status vlp_safetensors_need(const vlp_tensor **out, const vlp_safetensors *file, const char *name,
                                vlp_tensor_type type, int32_t dimensions, const int64_t *shape);

#endif
