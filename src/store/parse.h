/* Shared by the files of src/store, and the readers and the writer for memory instead of files, which
 * fuzz targets and tests of damaged files use. */
#ifndef VLP_STORE_PARSE_H
#define VLP_STORE_PARSE_H

#include "store/npy.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "both formats are little-endian, and values are copied unchanged");

#define VLP_CHECKSUM_KEY "xxh3_128"
#define VLP_METADATA_KEY "__metadata__"
enum { VLP_CHECKSUM_DIGITS = 32, VLP_LENGTH_SIZE = 8, VLP_HEADER_LIMIT = 100000000 };

/* ---- Shapes, keys, names ---- */

/* The size of an array in bytes; false if it overflows an int64_t, or if there are too many dimensions
 * or a negative one. Zeros of an empty array count as ones here, so that products of some of its
 * dimensions cannot overflow either. */
bool vlp_shape_bytes(int64_t *out, int32_t dimensions, const int64_t *shape, size_t element);

/* Of an array whose shape has been checked. */
size_t vlp_tensor_bytes(const vlp_tensor *tensor);

/* For sorting and searching pairs by their keys. */
int vlp_pair_compare(const void *left, const void *right);

/* A name for a message: escaped, and truncated between characters. */
typedef struct vlp_quoted {
    char text[72];
} vlp_quoted;
vlp_quoted vlp_quote(const char *name);

/* "F32"; asserts that the type is valid. */
const char *vlp_tensor_type_name(vlp_tensor_type type);
/* False if there is no such type. */
bool vlp_tensor_type_find(vlp_tensor_type *out, const char *name);

/* ---- safetensors ---- */

struct vlp_safetensors {
    char *name;                 /* of the file, for messages */
    vlp_map map;                /* empty if parsed from memory */
    vlp_tensor *tensors;        /* (tensor_count), in the order of their data */
    const vlp_tensor **by_name; /* (tensor_count), sorted */
    vlp_pair *pairs;            /* (pair_count), sorted by key */
    int32_t tensor_count, pair_count;
    char *strings; /* storage of names, keys and values */
    char *copies;  /* copies of tensors that are unaligned in the file */
};

typedef enum vlp_checksum_rule {
    VLP_CHECKSUM_IGNORED = 0, /* for fuzzing, as no mutation has a valid checksum */
    VLP_CHECKSUM_VERIFIED,    /* if there is one */
    VLP_CHECKSUM_REQUIRED
} vlp_checksum_rule;

/* `data` must outlive the result. */
vlp_status vlp_safetensors_parse(vlp_safetensors **out, const char *name, const void *data, size_t size,
                                 vlp_checksum_rule rule);

/* The content of a file: `header`, then the data of `tensors`, concatenated. */
typedef struct vlp_layout {
    char *header; /* from the eight bytes of length to the start of the data */
    size_t header_size;
    vlp_tensor *tensors; /* (tensor_count) of the caller, in the order of the file */
    int32_t tensor_count;
} vlp_layout;
vlp_status vlp_layout_make(vlp_layout *out, const char *name, const vlp_tensor *tensors,
                           int32_t tensor_count, const vlp_pair *metadata, int32_t pair_count);
void vlp_layout_free(vlp_layout *layout);

/* The checksum of a header (without its length) whose own checksum starts at `at`, and of the data. */
void vlp_checksum_compute(char out[VLP_CHECKSUM_DIGITS + 1], const char *header, size_t header_size,
                          size_t at, const vlp_tensor *tensors, int32_t tensor_count);

/* ---- npy ---- */
vlp_status vlp_npy_parse(vlp_array *out, const char *name, const void *data, size_t size);

#endif
