/* numpy's .npy files: one array each, little-endian, C order, version 1.0 written, 1.0 to 3.0 read. */
#ifndef VLP_STORE_NPY_H
#define VLP_STORE_NPY_H

#include "store/safetensors.h"

vlp_status vlp_npy_write(const char *path, const vlp_tensor *tensor); /* atomic; the name is not used */
/* The same into a writer of the caller's. The shape is a possible one. */
void vlp_npy_put(vlp_writer *writer, const vlp_tensor *tensor);

/* An array as fp32, whatever float or integer type the file has (f2, f4, f8, i4, i8), in C order also
 * when the file is in Fortran order. */
typedef struct vlp_array {
    float *data;
    int32_t dimensions;
    int64_t shape[VLP_TENSOR_DIMENSIONS];
} vlp_array;
vlp_status vlp_npy_read(vlp_array *out, const char *path);
void vlp_array_free(vlp_array *array);

#endif
