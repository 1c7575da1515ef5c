/* Named arrays in one file: the writer, and access to a file that was read. The parser is in
 * safetensors_parse.c.
 *
 * The bytes written depend only on the arguments. The format does not allow gaps in the data, so only
 * the header is padded, with spaces, until the data starts at a multiple of 64 bytes; arrays with
 * larger elements come first. So each array is aligned to its elements. */
#include "store/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/parse.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- Types, shapes, names ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [VLP_F32] = {"F32", 4}, [VLP_F64] = {"F64", 8}, [VLP_I32] = {"I32", 4},
    [VLP_I64] = {"I64", 8}, [VLP_U8] = {"U8", 1},   [VLP_BF16] = {"BF16", 2},
};
enum { TYPES = sizeof types / sizeof *types };

size_t vlp_tensor_type_size(vlp_tensor_type type) {
    assert((unsigned)type < TYPES);
    return types[type].size;
}

const char *vlp_tensor_type_name(vlp_tensor_type type) {
    assert((unsigned)type < TYPES);
    return types[type].name;
}

bool vlp_tensor_type_find(vlp_tensor_type *out, const char *name) {
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i].name, name) != 0) continue;
        *out = (vlp_tensor_type)i;
        return true;
    }
    return false;
}

bool vlp_shape_bytes(int64_t *out, int32_t dimensions, const int64_t *shape, size_t element) {
    if (dimensions < 0 || dimensions > VLP_TENSOR_DIMENSIONS) return false;
    int64_t bytes = (int64_t)element;
    bool empty = false;
    for (int32_t i = 0; i < dimensions; i++) {
        if (shape[i] < 0) return false;
        if (shape[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(bytes, shape[i], &bytes))
            return false;
    }
    *out = empty ? 0 : bytes;
    return true;
}

vlp_quoted vlp_quote(const char *name) {
    vlp_quoted quoted;
    char more[sizeof quoted.text + 8]; /* one character more at least */
    vlp_text_escape(quoted.text, sizeof quoted.text - strlen("..."), name);
    vlp_text_escape(more, sizeof more, name);
    if (strlen(more) > strlen(quoted.text)) strcat(quoted.text, "...");
    return quoted;
}

size_t vlp_tensor_bytes(const vlp_tensor *tensor) {
    int64_t bytes = 0;
    bool fits = vlp_shape_bytes(&bytes, tensor->dimensions, tensor->shape, types[tensor->type].size);
    assert(fits);
    (void)fits;
    return (size_t)bytes;
}

int vlp_pair_compare(const void *left, const void *right) {
    return strcmp(((const vlp_pair *)left)->key, ((const vlp_pair *)right)->key);
}

void vlp_checksum_compute(char out[VLP_CHECKSUM_DIGITS + 1], const char *header, size_t header_size,
                          size_t at, const vlp_tensor *tensors, int32_t tensor_count) {
    char zeros[VLP_CHECKSUM_DIGITS];
    memset(zeros, '0', sizeof zeros);
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, header, at);
    XXH3_128bits_update(&state, zeros, sizeof zeros);
    at += sizeof zeros;
    XXH3_128bits_update(&state, header + at, header_size - at);
    for (int32_t i = 0; i < tensor_count; i++) {
        size_t bytes = vlp_tensor_bytes(&tensors[i]);
        if (bytes > 0) XXH3_128bits_update(&state, tensors[i].data, bytes);
    }
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(&state));
    for (size_t i = 0; i < sizeof digest.digest; i++) snprintf(out + 2 * i, 3, "%02x", digest.digest[i]);
}

/* ---- Writing ------------------------------------------------------------------------------------- */

static bool is_utf8(const char *text) {
    size_t length = strlen(text);
    return vlp_utf8_valid_prefix(text, length) == length;
}

/* Refuses what the reader would refuse. There are at most a few dozen names, so comparing all pairs is
 * fast enough. */
static vlp_status check_tensors(const char *name, const vlp_tensor *tensors, int32_t count) {
    int64_t total = 0, bytes;
    for (int32_t i = 0; i < count; i++) {
        const vlp_tensor *tensor = &tensors[i];
        const char *cause = NULL;
        if (!is_utf8(tensor->name))
            cause = "its name is not UTF-8";
        else if (strcmp(tensor->name, VLP_METADATA_KEY) == 0)
            cause = "the name is reserved by the format";
        else if (!vlp_shape_bytes(&bytes, tensor->dimensions, tensor->shape,
                                  vlp_tensor_type_size(tensor->type)) ||
                 __builtin_add_overflow(total, bytes, &total))
            cause = "its shape is invalid";
        for (int32_t k = 0; k < i && !cause; k++)
            if (strcmp(tensors[k].name, tensor->name) == 0) cause = "the name is used twice";
        if (cause)
            return vlp_fail(VLP_ERROR_ARGUMENT, "cannot write %s: tensor '%s': %s", name,
                            vlp_quote(tensor->name).text, cause);
    }
    return VLP_OK;
}

/* Sorts the pairs, including that of the checksum, and refuses what the reader would refuse. */
static vlp_status sort_pairs(vlp_pair *pairs, int32_t count, const char *name) {
    qsort(pairs, (size_t)count, sizeof *pairs, vlp_pair_compare);
    for (int32_t i = 0; i < count; i++) {
        const char *cause = NULL;
        if (!is_utf8(pairs[i].key) || !is_utf8(pairs[i].value)) cause = "it is not UTF-8";
        if (i > 0 && strcmp(pairs[i - 1].key, pairs[i].key) == 0)
            cause = "the key is used twice (that of the checksum is " VLP_CHECKSUM_KEY ")";
        if (cause)
            return vlp_fail(VLP_ERROR_ARGUMENT, "cannot write %s: metadata '%s': %s", name,
                            vlp_quote(pairs[i].key).text, cause);
    }
    return VLP_OK;
}

/* The maximum size of the header. Every byte of a text may become an escape of six bytes. */
static size_t header_bound(const vlp_tensor *tensors, int32_t tensor_count, const vlp_pair *pairs,
                           int32_t pair_count) {
    size_t bound = 256;
    for (int32_t i = 0; i < tensor_count; i++) bound += 6 * strlen(tensors[i].name) + 256;
    for (int32_t i = 0; i < pair_count; i++)
        bound += 6 * (strlen(pairs[i].key) + strlen(pairs[i].value)) + 16;
    return bound;
}

/* Writes a JSON string and returns its end. */
static char *put_string(char *at, const char *text) {
    *at++ = '"';
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20) {
            at += sprintf(at, "\\u%04x", (unsigned)*text);
            continue;
        }
        if (*text == '"' || *text == '\\') *at++ = '\\';
        *at++ = *text;
    }
    *at++ = '"';
    return at;
}

/* Sets *checksum to the position of the value of the checksum. */
static char *put_metadata(char *at, const vlp_pair *pairs, int32_t count, char **checksum) {
    at = stpcpy(at, "\"" VLP_METADATA_KEY "\":{");
    for (int32_t i = 0; i < count; i++) {
        if (i > 0) *at++ = ',';
        at = put_string(at, pairs[i].key);
        *at++ = ':';
        if (strcmp(pairs[i].key, VLP_CHECKSUM_KEY) == 0) *checksum = at + 1;
        at = put_string(at, pairs[i].value);
    }
    *at++ = '}';
    return at;
}

static char *put_tensor(char *at, const vlp_tensor *tensor, size_t begin) {
    *at++ = ',';
    at = put_string(at, tensor->name);
    at += sprintf(at, ":{\"dtype\":\"%s\",\"shape\":[", types[tensor->type].name);
    for (int32_t i = 0; i < tensor->dimensions; i++)
        at += sprintf(at, "%s%" PRId64, i > 0 ? "," : "", tensor->shape[i]);
    return at + sprintf(at, "],\"data_offsets\":[%zu,%zu]}", begin, begin + vlp_tensor_bytes(tensor));
}

/* Fills layout->header, which is large enough, and the checksum in it. */
static vlp_status make_header(vlp_layout *layout, const char *name, const vlp_pair *pairs,
                              int32_t pair_count) {
    char *text = layout->header + VLP_LENGTH_SIZE, *at = text, *checksum = text;
    *at++ = '{';
    at = put_metadata(at, pairs, pair_count, &checksum);
    size_t begin = 0;
    for (int32_t i = 0; i < layout->tensor_count; i++) {
        at = put_tensor(at, &layout->tensors[i], begin);
        begin += vlp_tensor_bytes(&layout->tensors[i]);
    }
    *at++ = '}';
    while ((at - layout->header) % 64 != 0) *at++ = ' ';
    layout->header_size = (size_t)(at - layout->header);
    uint64_t length = layout->header_size - VLP_LENGTH_SIZE;
    if (length > VLP_HEADER_LIMIT)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "cannot write %s: names and metadata take %" PRIu64
                        " bytes, and the format allows %d",
                        name, length, VLP_HEADER_LIMIT);
    memcpy(layout->header, &length, sizeof length);
    char digits[VLP_CHECKSUM_DIGITS + 1];
    vlp_checksum_compute(digits, text, length, (size_t)(checksum - text), layout->tensors,
                         layout->tensor_count);
    memcpy(checksum, digits, VLP_CHECKSUM_DIGITS);
    return VLP_OK;
}

vlp_status vlp_layout_make(vlp_layout *out, const char *name, const vlp_tensor *tensors,
                           int32_t tensor_count, const vlp_pair *metadata, int32_t pair_count) {
    assert(tensor_count >= 0 && pair_count >= 0);
    char zeros[VLP_CHECKSUM_DIGITS + 1] = {0};
    memset(zeros, '0', VLP_CHECKSUM_DIGITS);
    vlp_layout layout = {.tensor_count = tensor_count};
    vlp_status status = VLP_OK;
    int32_t keys = pair_count + 1;
    vlp_pair *pairs = vlp_alloc((size_t)keys, sizeof *pairs);
    layout.tensors = vlp_alloc((size_t)tensor_count, sizeof *layout.tensors);
    if (!pairs || !layout.tensors) {
        status = vlp_fail_memory("a file's metadata");
        goto out;
    }
    for (int32_t i = 0; i < pair_count; i++) pairs[i] = metadata[i];
    pairs[pair_count] = (vlp_pair){VLP_CHECKSUM_KEY, zeros};
    VLP_CHECK(sort_pairs(pairs, keys, name));
    VLP_CHECK(check_tensors(name, tensors, tensor_count));
    layout.header = vlp_alloc(header_bound(tensors, tensor_count, pairs, keys), 1);
    if (!layout.header) {
        status = vlp_fail_memory("a file's header");
        goto out;
    }
    int32_t placed = 0;
    for (size_t size = 8; size > 0; size /= 2)
        for (int32_t i = 0; i < tensor_count; i++)
            if (types[tensors[i].type].size == size) layout.tensors[placed++] = tensors[i];
    assert(placed == tensor_count);
    VLP_CHECK(make_header(&layout, name, pairs, keys));
out:
    vlp_free(pairs);
    if (status == VLP_OK)
        *out = layout;
    else
        vlp_layout_free(&layout);
    return status;
}

void vlp_layout_free(vlp_layout *layout) {
    vlp_free(layout->header);
    vlp_free(layout->tensors);
    *layout = (vlp_layout){0};
}

vlp_status vlp_safetensors_write(const char *path, const vlp_tensor *tensors, int32_t tensor_count,
                                 const vlp_pair *metadata, int32_t pair_count) {
    vlp_layout layout = {0};
    vlp_writer *writer = NULL;
    vlp_status status = VLP_OK;
    VLP_CHECK(vlp_layout_make(&layout, path, tensors, tensor_count, metadata, pair_count));
    VLP_CHECK(vlp_writer_open(&writer, path));
    vlp_writer_bytes(writer, layout.header, layout.header_size);
    for (int32_t i = 0; i < tensor_count; i++) {
        size_t bytes = vlp_tensor_bytes(&layout.tensors[i]);
        if (bytes > 0) vlp_writer_bytes(writer, layout.tensors[i].data, bytes);
    }
    VLP_CHECK(vlp_writer_commit(&writer));
out:
    vlp_writer_free(writer);
    vlp_layout_free(&layout);
    return status;
}

/* ---- A file that was read ------------------------------------------------------------------------ */

vlp_status vlp_safetensors_open(vlp_safetensors **out, const char *path, bool checksum) {
    *out = NULL;
    vlp_map map;
    VLP_TRY(vlp_map_open(&map, path));
    vlp_status status = vlp_safetensors_parse(out, path, map.data, map.size,
                                              checksum ? VLP_CHECKSUM_REQUIRED : VLP_CHECKSUM_VERIFIED);
    if (status == VLP_OK)
        (*out)->map = map;
    else
        vlp_map_close(&map);
    return status;
}

void vlp_safetensors_free(vlp_safetensors *file) {
    if (!file) return;
    vlp_map_close(&file->map);
    vlp_free(file->name);
    vlp_free(file->tensors);
    vlp_free(file->by_name);
    vlp_free(file->pairs);
    vlp_free(file->strings);
    vlp_free(file->copies);
    vlp_free(file);
}

static int compare_name(const void *name, const void *tensor) {
    return strcmp(name, (*(const vlp_tensor *const *)tensor)->name);
}

const vlp_tensor *vlp_safetensors_find(const vlp_safetensors *file, const char *name) {
    const vlp_tensor **found =
        bsearch(name, file->by_name, (size_t)file->tensor_count, sizeof *file->by_name, compare_name);
    return found ? *found : NULL;
}

const vlp_tensor *vlp_safetensors_all(const vlp_safetensors *file, int32_t *count) {
    *count = file->tensor_count;
    return file->tensors;
}

const char *vlp_safetensors_metadata(const vlp_safetensors *file, const char *key) {
    const vlp_pair wanted = {key, NULL};
    const vlp_pair *found =
        bsearch(&wanted, file->pairs, (size_t)file->pair_count, sizeof *file->pairs, vlp_pair_compare);
    return found ? found->value : NULL;
}

/* "[3, any]" */
static void print_shape(char out[128], int32_t dimensions, const int64_t *shape) {
    char *at = stpcpy(out, "[");
    for (int32_t i = 0; i < dimensions; i++) {
        if (i > 0) at = stpcpy(at, ", ");
        if (shape[i] < 0)
            at = stpcpy(at, "any");
        else
            at += sprintf(at, "%" PRId64, shape[i]);
    }
    strcpy(at, "]");
}

vlp_status vlp_safetensors_need(const vlp_tensor **out, const vlp_safetensors *file, const char *name,
                                vlp_tensor_type type, int32_t dimensions, const int64_t *shape) {
    assert(dimensions >= 0 && dimensions <= VLP_TENSOR_DIMENSIONS);
    const vlp_tensor *tensor = vlp_safetensors_find(file, name);
    if (!tensor)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: tensor '%s' is missing", file->name,
                        vlp_quote(name).text);
    if (tensor->type != type)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: tensor '%s' is of type %s, and %s is needed", file->name,
                        vlp_quote(name).text, types[tensor->type].name, vlp_tensor_type_name(type));
    bool same = tensor->dimensions == dimensions;
    for (int32_t i = 0; i < dimensions && same; i++) same = shape[i] < 0 || shape[i] == tensor->shape[i];
    if (!same) {
        char has[128], needed[128];
        print_shape(has, tensor->dimensions, tensor->shape);
        print_shape(needed, dimensions, shape);
        return vlp_fail(VLP_ERROR_FORMAT, "%s: tensor '%s' has the shape %s, and %s is needed",
                        file->name, vlp_quote(name).text, has, needed);
    }
    *out = tensor;
    return VLP_OK;
}
