/* npy: compares the values of accepted files with a reference conversion of each type; a truncated
 * file must be refused.
 *
 * The first byte of an input is the number of bytes of values that follow the header, which is the
 * rest, in a file of one of the three versions; 255: the rest is a complete file. */
#include <math.h>

#include "fuzz.h"
#include "store/parse.h"

UNCOUNTED_BEGIN

typedef struct bytes {
    uint8_t *data;
    size_t size;
} bytes;

static bytes make_bytes(size_t size) {
    bytes made = {malloc(size > 0 ? size : 1), size};
    REQUIRE(made.data != NULL);
    return made;
}

static bytes make_input(const uint8_t *data, size_t size) {
    if (data[0] == 255) {
        bytes raw = make_bytes(size - 1);
        memcpy(raw.data, data + 1, raw.size);
        return raw;
    }
    uint32_t length = (uint32_t)size - 1;
    uint8_t major = (uint8_t)(1 + length % 3);
    size_t start = major == 1 ? 10 : 12;
    bytes file = make_bytes(start + length + data[0]);
    memcpy(file.data, "\x93NUMPY", 6);
    file.data[6] = major;
    file.data[7] = 0;
    memcpy(file.data + 8, &length, start - 8);
    memcpy(file.data + start, data + 1, length);
    for (size_t i = 0; i < data[0]; i++) file.data[start + length + i] = (uint8_t)(i * 151 + size);
    return file;
}

static uint64_t little_endian(const uint8_t *data, size_t size) {
    uint64_t value = 0;
    while (size-- > 0) value = value << 8 | data[size];
    return value;
}

/* A floating-point number with a sign and the given bits of exponent and fraction. */
static float naive_float(uint64_t bits, int exponent_bits, int fraction_bits) {
    int most = (1 << exponent_bits) - 1, bias = most / 2;
    int exponent = (int)(bits >> fraction_bits) & most;
    double fraction = (double)(bits & ((UINT64_C(1) << fraction_bits) - 1));
    double sign = bits >> (exponent_bits + fraction_bits) ? -1.0 : 1.0;
    if (exponent == most) return fraction != 0.0 ? NAN : (float)(sign * INFINITY);
    if (exponent == 0) return (float)(sign * ldexp(fraction, 1 - bias - fraction_bits));
    return (float)(sign * ldexp(fraction + ldexp(1.0, fraction_bits), exponent - bias - fraction_bits));
}

static float naive_value(const uint8_t *at, const char *type) {
    size_t size = (size_t)(type[1] - '0');
    uint64_t bits = little_endian(at, size);
    if (type[0] == 'f')
        return size == 2   ? naive_float(bits, 5, 10)
               : size == 4 ? naive_float(bits, 8, 23)
                           : naive_float(bits, 11, 52);
    if (type[0] == 'u') return (float)bits;
    return size == 4 ? (float)(int32_t)(uint32_t)bits : (float)(int64_t)bits;
}

/* The type in the header, found by its pattern. */
static const char *naive_type(const char *header) {
    static const char *const types[] = {"f2", "f4", "f8", "i4", "i8", "u1"};
    for (int i = 0; i < 6; i++)
        if (strstr(header, types[i])) return types[i];
    return NULL;
}

static void check_array(const vlp_array *array, const bytes *file) {
    REQUIRE(file->size >= 10 && memcmp(file->data, "\x93NUMPY", 6) == 0);
    bool old = file->data[6] == 1;
    size_t start = old ? 10 : 12, length = little_endian(file->data + 8, old ? 2 : 4);
    REQUIRE(start + length <= file->size);
    char *header = strndup((const char *)file->data + start, length);
    REQUIRE(header && strlen(header) == length);
    const char *type = naive_type(header);
    bool fortran = strstr(header, "True") != NULL;
    REQUIRE(type && fortran == !strstr(header, "False"));
    REQUIRE(array->dimensions >= 0 && array->dimensions <= 4);
    size_t count = 1, size = (size_t)(type[1] - '0');
    for (int32_t i = 0; i < array->dimensions; i++) count *= (size_t)array->shape[i];
    REQUIRE(start + length + count * size == file->size);
    for (size_t place = 0; place < count; place++) { /* in the file */
        size_t rest = place, index[4], c_place = 0;
        for (int32_t i = 0; i < array->dimensions; i++) {
            int32_t k = fortran ? i : array->dimensions - 1 - i;
            index[k] = rest % (size_t)array->shape[k];
            rest /= (size_t)array->shape[k];
        }
        for (int32_t i = 0; i < array->dimensions; i++)
            c_place = c_place * (size_t)array->shape[i] + index[i];
        float expected = naive_value(file->data + start + length + place * size, type);
        float found = array->data[c_place];
        REQUIRE(isnan(expected) ? isnan(found) : memcmp(&expected, &found, sizeof found) == 0);
    }
    free(header);
}

static void check_message(vlp_status status) {
    const char *message = vlp_error_message();
    size_t length = strlen(message);
    REQUIRE(status == VLP_ERROR_FORMAT);
    REQUIRE(strncmp(message, "FILE: ", 6) == 0 && length > 6 && length < 300);
    for (size_t i = 0; i < length; i++) REQUIRE(message[i] >= ' ' && message[i] <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    bytes file = make_input(data, size);
    vlp_array array;
    vlp_status status = vlp_npy_parse(&array, "FILE", file.data, file.size);
    REQUIRE((array.data != NULL) == (status == VLP_OK));
    if (status != VLP_OK) {
        check_message(status);
    } else {
        check_array(&array, &file);
        vlp_array none;
        size_t shorter = file.size - 1 - (size_t)data[0] % file.size;
        check_message(vlp_npy_parse(&none, "FILE", file.data, shorter));
        REQUIRE(none.data == NULL);
    }
    vlp_array_free(&array);
    free(file.data);
    return 0;
}

UNCOUNTED_END
