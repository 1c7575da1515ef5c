/* .npy files: magic, version, header length, header (a Python literal), values.
 *
 * The reader accepts every spelling of the header that Python accepts for a plain array of numbers,
 * and requires the file to end with the last value. */
#include "store/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/parse.h"

static const char magic[6] = "\x93NUMPY";

/* ---- Writing ------------------------------------------------------------------------------------- */

/* "(3, 4)", "(3,)", "()" */
static void print_shape(char out[128], int32_t dimensions, const int64_t *shape) {
    char *at = stpcpy(out, "(");
    for (int32_t i = 0; i < dimensions; i++)
        at += sprintf(at, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
    strcpy(at, dimensions == 1 ? ",)" : ")");
}

static void put_header(vlp_writer *writer, const vlp_tensor *tensor) {
    /* numpy has no bf16; fp32 represents every value exactly. */
    static const char *const types[] = {[VLP_F32] = "<f4", [VLP_F64] = "<f8", [VLP_I32] = "<i4",
                                        [VLP_I64] = "<i8", [VLP_U8] = "|u1",  [VLP_BF16] = "<f4"};
    char shape[128], header[320];
    print_shape(shape, tensor->dimensions, tensor->shape);
    const int start = sizeof magic + 4; /* including two bytes each of version and length */
    int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 types[tensor->type], shape);
    while ((start + length + 1) % 64 != 0) header[length++] = ' ';
    header[length++] = '\n';
    vlp_writer_bytes(writer, magic, sizeof magic);
    vlp_writer_bytes(writer, (const char[]){1, 0, (char)(length & 0xff), (char)(length >> 8)}, 4);
    vlp_writer_bytes(writer, header, (size_t)length);
}

static void put_widened(vlp_writer *writer, const uint16_t *values, int64_t count) {
    uint32_t wide[1024];
    for (int64_t done = 0; done < count;) {
        int64_t part = count - done < 1024 ? count - done : 1024;
        for (int64_t i = 0; i < part; i++) wide[i] = (uint32_t)values[done + i] << 16;
        vlp_writer_bytes(writer, wide, (size_t)part * sizeof *wide);
        done += part;
    }
}

void vlp_npy_put(vlp_writer *writer, const vlp_tensor *tensor) {
    int64_t bytes;
    bool possible =
        vlp_shape_bytes(&bytes, tensor->dimensions, tensor->shape, vlp_tensor_type_size(tensor->type));
    assert(possible);
    (void)possible;
    put_header(writer, tensor);
    if (tensor->type == VLP_BF16)
        put_widened(writer, tensor->data, bytes / 2);
    else if (bytes > 0)
        vlp_writer_bytes(writer, tensor->data, (size_t)bytes);
}

vlp_status vlp_npy_write(const char *path, const vlp_tensor *tensor) {
    int64_t bytes;
    if (!vlp_shape_bytes(&bytes, tensor->dimensions, tensor->shape, vlp_tensor_type_size(tensor->type)))
        return vlp_fail(VLP_ERROR_ARGUMENT, "cannot write %s: its shape is invalid", path);
    vlp_writer *writer = NULL;
    VLP_TRY(vlp_writer_open(&writer, path));
    vlp_npy_put(writer, tensor);
    return vlp_writer_commit(&writer);
}

/* ---- The header ---------------------------------------------------------------------------------- */

typedef enum value_type { HALF, SINGLE, DOUBLE, INT32, INT64, BYTE, VALUE_TYPES } value_type;
static const struct {
    char code[3];
    int64_t size;
} value_types[VALUE_TYPES] = {{"f2", 2}, {"f4", 4}, {"f8", 8}, {"i4", 4}, {"i8", 8}, {"u1", 1}};

typedef struct header {
    value_type type;
    bool fortran;
    int32_t dimensions;
    int64_t shape[VLP_TENSOR_DIMENSIONS];
} header;

typedef struct parser {
    const char *name;
    const char *text; /* the file from its start; positions in messages refer to the file */
    size_t size, at;  /* size: the end of the header */
} parser;

static vlp_status fail_at(const parser *p, const char *cause) {
    return vlp_fail(VLP_ERROR_FORMAT, "%s: byte %zu: %s", p->name, p->at, cause);
}

static char peek(parser *p) {
    while (p->at < p->size && memchr(" \t\n\r", p->text[p->at], 4)) p->at++;
    return p->at < p->size ? p->text[p->at] : '\0';
}

static bool take(parser *p, char byte) {
    if (peek(p) != byte) return false;
    p->at++;
    return true;
}

/* A Python keyword, not followed by a letter. */
static bool take_word(parser *p, const char *word) {
    size_t length = strlen(word);
    peek(p);
    if (p->size - p->at < length || memcmp(p->text + p->at, word, length) != 0) return false;
    char next = p->size - p->at > length ? p->text[p->at + length] : ' ';
    if (!memchr(" \t\n\r,}", next, 6)) return false;
    p->at += length;
    return true;
}

/* A string in single or double quotes, of printable ASCII without escapes, as types and keys are.
 * Longer strings than `out` are errors. */
static vlp_status parse_text(parser *p, char out[32]) {
    char quote = peek(p);
    if (quote != '\'' && quote != '"') return fail_at(p, "a string in quotes is expected");
    size_t length = 0;
    for (p->at++; p->at < p->size && p->text[p->at] != quote; p->at++) {
        char byte = p->text[p->at];
        if (byte < 0x20 || byte > 0x7e || byte == '\\') return fail_at(p, "an unexpected character");
        if (length == 31) return fail_at(p, "the string is too long");
        out[length++] = byte;
    }
    if (p->at == p->size) return fail_at(p, "an unterminated string");
    p->at++;
    out[length] = '\0';
    return VLP_OK;
}

static vlp_status parse_type(parser *p, value_type *out) {
    if (peek(p) == '[' || peek(p) == '(')
        return vlp_fail(VLP_ERROR_FORMAT, "%s: structured values are not supported", p->name);
    char text[32];
    VLP_TRY(parse_text(p, text));
    for (int i = 0; i < VALUE_TYPES; i++) {
        if (text[0] == '\0' || strcmp(text + 1, value_types[i].code) != 0) continue;
        bool single = value_types[i].size == 1;
        if (text[0] == '>' && !single)
            return vlp_fail(VLP_ERROR_FORMAT,
                            "%s: big-endian values ('%s') are not supported; save it as '<%s'", p->name,
                            text, value_types[i].code);
        if (!strchr(single ? "<>|" : "<", text[0])) break;
        *out = (value_type)i;
        return VLP_OK;
    }
    return vlp_fail(VLP_ERROR_FORMAT,
                    "%s: values of type '%s' are not supported (<f2, <f4, <f8, <i4, <i8 and |u1 are)",
                    p->name, text);
}

static vlp_status parse_size(parser *p, int64_t *out) {
    size_t start = p->at;
    int64_t value = 0;
    for (; p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, p->text[p->at] - '0', &value))
            return fail_at(p, "a number too large");
    if (p->at == start) return fail_at(p, "a whole number from 0 is expected");
    if (p->text[start] == '0' && value != 0) return fail_at(p, "a number that starts with 0");
    *out = value;
    return VLP_OK;
}

static vlp_status parse_shape(parser *p, header *out) {
    if (!take(p, '(')) return fail_at(p, "'(' is expected");
    for (bool comma = true; !take(p, ')');) {
        if (!comma) return fail_at(p, "',' or ')' is expected");
        if (out->dimensions == VLP_TENSOR_DIMENSIONS)
            return vlp_fail(VLP_ERROR_FORMAT, "%s: more than %d dimensions", p->name,
                            VLP_TENSOR_DIMENSIONS);
        VLP_TRY(parse_size(p, &out->shape[out->dimensions++]));
        comma = take(p, ',');
        /* In Python (3) is a number, not a shape. */
        if (out->dimensions == 1 && !comma) return fail_at(p, "',' is expected");
    }
    return VLP_OK;
}

static vlp_status parse_order(parser *p, bool *fortran) {
    *fortran = take_word(p, "True");
    if (*fortran || take_word(p, "False")) return VLP_OK;
    return fail_at(p, "True or False is expected");
}

static vlp_status parse_member(parser *p, header *out, unsigned *seen) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[32];
    VLP_TRY(parse_text(p, key));
    unsigned which = 0;
    while (which < 3 && strcmp(key, keys[which]) != 0) which++;
    if (which == 3 || (*seen & 1u << which))
        return vlp_fail(VLP_ERROR_FORMAT, "%s: the header has %s '%s'", p->name,
                        which == 3 ? "an unknown key" : "a second", key);
    *seen |= 1u << which;
    if (!take(p, ':')) return fail_at(p, "':' is expected");
    if (which == 0) return parse_type(p, &out->type);
    if (which == 1) return parse_order(p, &out->fortran);
    return parse_shape(p, out);
}

static vlp_status parse_header(parser *p, header *out) {
    unsigned seen = 0;
    if (!take(p, '{')) return fail_at(p, "'{' is expected");
    for (bool comma = true; !take(p, '}'); comma = take(p, ',')) {
        if (!comma) return fail_at(p, "',' or '}' is expected");
        VLP_TRY(parse_member(p, out, &seen));
    }
    if (seen != 7)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: the header needs descr, fortran_order and shape",
                        p->name);
    peek(p);
    return p->at == p->size ? VLP_OK : fail_at(p, "the header continues after its '}'");
}

/* Finds the header: after magic and version, with a length of two bytes, or four from version 2 on. */
static vlp_status find_header(parser *p, const char *data, size_t size) {
    if (size < sizeof magic + 2 || memcmp(data, magic, sizeof magic) != 0)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: not a .npy file", p->name);
    int major = (unsigned char)data[6], minor = (unsigned char)data[7];
    if (major < 1 || major > 3 || minor != 0)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s: version %d.%d of the format is not supported (1.0 to 3.0 are)", p->name,
                        major, minor);
    p->text = data;
    p->at = sizeof magic + (major == 1 ? 4 : 6);
    uint32_t length = 0;
    if (p->at <= size) memcpy(&length, data + sizeof magic + 2, major == 1 ? 2 : 4);
    if (p->at > size || length > size - p->at)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: the header is incomplete; the file is truncated",
                        p->name);
    p->size = p->at + length;
    return VLP_OK;
}

/* ---- Values -------------------------------------------------------------------------------------- */

static float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    if (exponent == 0) { /* zero and subnormals: multiples of 2^-24, exact in fp32 */
        float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    /* The bias changes from 15 to 127; the exponent of infinities and NaNs stays all ones. */
    uint32_t bits = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Values start at the end of the header, possibly unaligned: copied by bytes. */
#define CONVERT(type, conversion)                                                                       \
    for (int64_t i = 0; i < count; i++) {                                                               \
        type value;                                                                                     \
        memcpy(&value, in + i * stride * (int64_t)sizeof value, sizeof value);                          \
        out[i] = conversion(value);                                                                     \
    }                                                                                                   \
    break

/* Every `stride`-th value from `in` on. */
static void convert(float *out, const char *in, int64_t count, int64_t stride, value_type type) {
    switch (type) {
    case HALF:
        CONVERT(uint16_t, half_to_float);
    case SINGLE:
        CONVERT(float, );
    case DOUBLE:
        CONVERT(double, (float));
    case INT32:
        CONVERT(int32_t, (float));
    case INT64:
        CONVERT(int64_t, (float));
    case BYTE:
        CONVERT(uint8_t, (float));
    case VALUE_TYPES:
        assert(false);
    }
}

/* Converts row by row of the last dimension. In Fortran order the first index is contiguous, so the
 * values of a row have a stride. */
static void convert_fortran(float *out, const char *in, const header *h, int64_t count) {
    int32_t last = h->dimensions - 1;
    int64_t length = h->shape[last], strides[VLP_TENSOR_DIMENSIONS] = {1};
    for (int32_t i = 1; i <= last; i++) strides[i] = strides[i - 1] * h->shape[i - 1];
    for (int64_t row = 0; row * length < count; row++) {
        int64_t place = 0, rest = row;
        for (int32_t i = last - 1; i >= 0; i--) {
            place += rest % h->shape[i] * strides[i];
            rest /= h->shape[i];
        }
        convert(out + row * length, in + place * value_types[h->type].size, length, strides[last],
                h->type);
    }
}

vlp_status vlp_npy_parse(vlp_array *out, const char *name, const void *data, size_t size) {
    *out = (vlp_array){0};
    parser p = {.name = name};
    header h = {0};
    VLP_TRY(find_header(&p, data, size));
    VLP_TRY(parse_header(&p, &h));
    int64_t bytes, element = value_types[h.type].size;
    bool fits = vlp_shape_bytes(&bytes, h.dimensions, h.shape, (size_t)element);
    if (!fits || (uint64_t)bytes != size - p.size) {
        char shape[128];
        print_shape(shape, h.dimensions, h.shape);
        return vlp_fail(VLP_ERROR_FORMAT, "%s: %zu bytes of values do not match the shape %s of %s",
                        name, size - p.size, shape, value_types[h.type].code);
    }
    int64_t count = bytes / element;
    float *values = vlp_alloc((size_t)count, sizeof *values);
    if (!values) return vlp_fail_memory("an array");
    const char *in = (const char *)data + p.size;
    if (h.fortran && h.dimensions > 1)
        convert_fortran(values, in, &h, count);
    else
        convert(values, in, count, 1, h.type);
    *out = (vlp_array){.data = values, .dimensions = h.dimensions};
    memcpy(out->shape, h.shape, sizeof h.shape);
    return VLP_OK;
}

vlp_status vlp_npy_read(vlp_array *out, const char *path) {
    *out = (vlp_array){0};
    vlp_map map;
    VLP_TRY(vlp_map_open(&map, path));
    vlp_status status = vlp_npy_parse(out, path, map.data, map.size);
    vlp_map_close(&map);
    return status;
}

void vlp_array_free(vlp_array *array) {
    if (!array) return;
    vlp_free(array->data);
    *array = (vlp_array){0};
}
