/* Named arrays in one file, in the safetensors format: eight bytes of header length, a JSON header,
 * the bytes of the arrays. Ordinary readers open it. __metadata__ in the header contains a checksum
 * (XXH3, 128 bits) of everything else, which is verified on reading, and pairs of the caller. */
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

/* Replaces the file atomically, synced. The same content gives the same bytes. */
vlp_status vlp_safetensors_write(const char *path, const vlp_tensor *tensors, int32_t tensor_count,
                                 const vlp_pair *metadata, int32_t pair_count);

/* A file opened for reading: mapped, checked. Any deviation from the format (and, where `checksum` is
 * required, a missing or wrong checksum) is VLP_ERROR_FORMAT with the file's name and the cause. */
typedef struct vlp_safetensors vlp_safetensors;
vlp_status vlp_safetensors_open(vlp_safetensors **out, const char *path, bool checksum);
void vlp_safetensors_free(vlp_safetensors *file);
/* NULL if there is no such tensor. Borrowed; data is aligned to the size of its elements. */
const vlp_tensor *vlp_safetensors_find(const vlp_safetensors *file, const char *name);
const vlp_tensor *vlp_safetensors_all(const vlp_safetensors *file, int32_t *count);
const char *vlp_safetensors_metadata(const vlp_safetensors *file, const char *key); /* or NULL */
/* Finds and checks a tensor: an error that names file and tensor if it is missing or has another type
 * or shape (-1 matches any dimension). */
vlp_status vlp_safetensors_need(const vlp_tensor **out, const vlp_safetensors *file, const char *name,
                                vlp_tensor_type type, int32_t dimensions, const int64_t *shape);

#endif
