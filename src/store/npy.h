/* .npy files: one array each, little-endian. Writes version 1.0 in C order, reads versions 1.0 to 3.0.
 */
#ifndef VLP_STORE_NPY_H
#define VLP_STORE_NPY_H

#include "store/safetensors.h"

/* Writes the file atomically; the name of the tensor is not used. */
vlp_status vlp_npy_write(const char *path, const vlp_tensor *tensor);
/* The same into the caller's writer; the shape is valid. */
void vlp_npy_put(vlp_writer *writer, const vlp_tensor *tensor);

/* An array converted to fp32 from any type of the file (f2, f4, f8, i4, i8, u1) and to C order. */
typedef struct vlp_array {
    float *data;
    int32_t dimensions;
    int64_t shape[VLP_TENSOR_DIMENSIONS];
} vlp_array;
vlp_status vlp_npy_read(vlp_array *out, const char *path);
void vlp_array_free(vlp_array *array);

#endif
