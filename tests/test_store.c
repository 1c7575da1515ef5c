/* safetensors: what is written is read back, nothing damaged is, every malformed header has its message,
 * every allocation fails once; and the format's own package agrees where Python has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_allocator.h"
#include "store/parse.h"
#include "support.h"

/* ---- What the tests write ---- */

static const float floats[6] = {0.0f, -1.5f, 2.25f, 3e-40f, 1e30f, -7.0f};
static const double doubles[3] = {1e300, -0.1, 5e-324};
static const int32_t ints[4] = {INT32_MIN, -1, 0, INT32_MAX};
static const int64_t longs[2] = {INT64_MIN, INT64_MAX};
static const uint8_t bytes[5] = {0, 1, 127, 128, 255};
static const uint16_t shorts[4] = {0x3f80, 0xc000, 0x7f80, 0x0001};

static const vlp_tensor all_types[] = {
    {"bytes", VLP_U8, 1, {5}, bytes},
    {"floats", VLP_F32, 2, {2, 3}, floats},
    {"shorts", VLP_BF16, 4, {1, 2, 1, 2}, shorts},
    {"doubles", VLP_F64, 3, {1, 3, 1}, doubles},
    {"ints", VLP_I32, 2, {4, 1}, ints},
    {"longs", VLP_I64, 1, {2}, longs},
    {"scalar", VLP_F32, 0, {0}, &floats[2]},
    {"empty", VLP_F32, 2, {0, 7}, NULL},
    {"", VLP_U8, 4, {2, 0, 2, 2}, NULL},
};
enum { ALL_TYPES = sizeof all_types / sizeof *all_types };

static const vlp_pair some_pairs[] = {
    {"step", "1200"},
    {"quote \" backslash \\ newline \n", "\t\x01\x7f é 🙂 /"},
    {"", ""},
};
enum { SOME_PAIRS = sizeof some_pairs / sizeof *some_pairs };

static void check_same(const vlp_tensor *found, const vlp_tensor *expected) {
    assert_non_null(found);
    assert_string_equal(found->name, expected->name);
    assert_int_equal(found->type, expected->type);
    assert_int_equal(found->dimensions, expected->dimensions);
    for (int32_t i = 0; i < expected->dimensions; i++)
        assert_int_equal(found->shape[i], expected->shape[i]);
    size_t size = vlp_tensor_type_size(expected->type);
    assert_int_equal((uintptr_t)found->data % size, 0);
    if (vlp_tensor_bytes(expected) > 0)
        assert_memory_equal(found->data, expected->data, vlp_tensor_bytes(expected));
}

/* A file as it would be written, in memory, to be freed. */
static char *make_file(size_t *size, const vlp_tensor *tensors, int32_t count, const vlp_pair *pairs,
                       int32_t pair_count) {
    vlp_layout layout;
    assert_int_equal(vlp_layout_make(&layout, "memory", tensors, count, pairs, pair_count), VLP_OK);
    assert_int_equal(layout.header_size % 64, 0);
    *size = layout.header_size;
    for (int32_t i = 0; i < count; i++) *size += vlp_tensor_bytes(&tensors[i]);
    char *file = malloc(*size), *at = file;
    assert_non_null(file);
    memcpy(at, layout.header, layout.header_size);
    at += layout.header_size;
    for (int32_t i = 0; i < count; i++) {
        size_t part = vlp_tensor_bytes(&layout.tensors[i]);
        if (part > 0) memcpy(at, layout.tensors[i].data, part);
        at += part;
    }
    vlp_layout_free(&layout);
    return file;
}

/* The size of a file in a folder. */
static size_t file_size(const char *folder, const char *name) {
    FILE *file = fopen(support_path(folder, name), "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    fclose(file);
    return size;
}

/* ---- safetensors ---- */

static void test_round_trip(void **state) {
    (void)state;
    const char *folder = support_folder(), *path = support_path(folder, "a.safetensors");
    assert_int_equal(vlp_safetensors_write(path, all_types, ALL_TYPES, some_pairs, SOME_PAIRS), VLP_OK);
    vlp_safetensors *file = NULL;
    assert_int_equal(vlp_safetensors_open(&file, path, true), VLP_OK);
    for (int i = 0; i < ALL_TYPES; i++)
        check_same(vlp_safetensors_find(file, all_types[i].name), &all_types[i]);
    assert_null(vlp_safetensors_find(file, "none"));
    for (int i = 0; i < SOME_PAIRS; i++)
        assert_string_equal(vlp_safetensors_metadata(file, some_pairs[i].key), some_pairs[i].value);
    assert_int_equal(strlen(vlp_safetensors_metadata(file, "xxh3_128")), 32);
    assert_null(vlp_safetensors_metadata(file, "none"));

    /* Together they are the data, in the order of their elements' size, else in that of the caller. */
    static const char *const order[ALL_TYPES] = {"doubles", "longs",  "floats", "ints", "scalar",
                                                 "empty",   "shorts", "bytes",  ""};
    int32_t count;
    const vlp_tensor *tensors = vlp_safetensors_all(file, &count);
    assert_int_equal(count, ALL_TYPES);
    for (int i = 0; i < count; i++) assert_string_equal(tensors[i].name, order[i]);
    for (int i = 1; i < count; i++)
        assert_ptr_equal(tensors[i].data,
                         (const char *)tensors[i - 1].data + vlp_tensor_bytes(&tensors[i - 1]));
    vlp_safetensors_free(file);
    vlp_safetensors_free(NULL);

    assert_int_equal(vlp_safetensors_write(path, NULL, 0, NULL, 0), VLP_OK); /* replaces it */
    assert_int_equal(vlp_safetensors_open(&file, path, true), VLP_OK);
    vlp_safetensors_all(file, &count);
    assert_int_equal(count, 0);
    vlp_safetensors_free(file);
    assert_int_equal(support_count(folder), 1);
    support_remove(folder);
}

static void test_same_bytes(void **state) {
    (void)state;
    const char *folder = support_folder();
    vlp_pair turned[SOME_PAIRS];
    for (int i = 0; i < SOME_PAIRS; i++) turned[i] = some_pairs[SOME_PAIRS - 1 - i];
    assert_int_equal(
        vlp_safetensors_write(support_path(folder, "a"), all_types, ALL_TYPES, some_pairs, SOME_PAIRS),
        VLP_OK);
    assert_int_equal(
        vlp_safetensors_write(support_path(folder, "b"), all_types, ALL_TYPES, turned, SOME_PAIRS),
        VLP_OK);
    size_t size = 0;
    char *expected = make_file(&size, all_types, ALL_TYPES, some_pairs, SOME_PAIRS);
    static const char *const names[] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(file_size(folder, names[i]), size);
        char *found = support_read(folder, names[i]);
        assert_memory_equal(found, expected, size);
        free(found);
    }
    free(expected);
    support_remove(folder);

    /* The bytes themselves: a change here is a change of the format that old runs are in. */
    static const int32_t one = 1;
    expected = make_file(&size, &(vlp_tensor){"x", VLP_I32, 0, {0}, &one}, 1, NULL, 0);
    static const char text[] =
        "\x78\0\0\0\0\0\0\0{\"__metadata__\":{\"xxh3_128\":\"db294126ccab728ffe475fdf96e6360d\"},"
        "\"x\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[0,4]}}    \1\0\0\0";
    assert_int_equal(size, sizeof text - 1);
    assert_memory_equal(expected, text, size);
    free(expected);
}

static void test_bad_arguments(void **state) {
    (void)state;
    const int64_t most = INT64_MAX;
    const struct {
        vlp_tensor tensor; /* before one byte named "b" */
        vlp_pair pair;
        const char *message;
    } cases[] = {
        {{"b", VLP_U8, 0, {0}, bytes}, {"k", "v"}, "tensor 'b': the name is used twice"},
        {{"a", VLP_U8, 1, {-1}, bytes}, {"k", "v"}, "tensor 'a': its shape is invalid"},
        {{"a", VLP_U8, 5, {1}, bytes}, {"k", "v"}, "tensor 'a': its shape is invalid"},
        {{"a", VLP_F64, 2, {most, 0}, bytes}, {"k", "v"}, "tensor 'a': its shape is invalid"},
        {{"a", VLP_U8, 1, {most}, bytes}, {"k", "v"}, "tensor 'b': its shape is invalid"},
        {{"\xff", VLP_U8, 0, {0}, bytes}, {"k", "v"}, "tensor '\\xff': its name is not UTF-8"},
        {{"__metadata__", VLP_U8, 0, {0}, bytes},
         {"k", "v"},
         "tensor '__metadata__': the name is reserved by the format"},
        {{"a", VLP_U8, 0, {0}, bytes},
         {"xxh3_128", "v"},
         "metadata 'xxh3_128': the key is used twice (that of the checksum is xxh3_128)"},
        {{"a", VLP_U8, 0, {0}, bytes}, {"k", "\xed\xa0\x80"}, "metadata 'k': it is not UTF-8"},
    };
    const char *folder = support_folder(), *path = support_path(folder, "file");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const vlp_tensor tensors[2] = {cases[i].tensor, {"b", VLP_U8, 0, {0}, bytes}};
        char message[256];
        snprintf(message, sizeof message, "cannot write %s: %s", path, cases[i].message);
        assert_int_equal(vlp_safetensors_write(path, tensors, 2, &cases[i].pair, 1), VLP_ERROR_ARGUMENT);
        assert_string_equal(vlp_error_message(), message);
    }
    size_t long_size = 17000000; /* of control characters, each of which takes six bytes */
    char *text = malloc(long_size + 1);
    memset(text, 1, long_size);
    text[long_size] = '\0';
    assert_int_equal(vlp_safetensors_write(path, NULL, 0, &(vlp_pair){"k", text}, 1),
                     VLP_ERROR_ARGUMENT);
    assert_non_null(strstr(vlp_error_message(), "and the format allows 100000000"));
    free(text);
    assert_int_equal(support_count(folder), 0);
    assert_int_equal(vlp_safetensors_write("/nonexistent/x", NULL, 0, NULL, 0), VLP_ERROR_IO);
    support_remove(folder);
}

static void test_need(void **state) {
    (void)state;
    size_t size = 0;
    char *bytes_of_file = make_file(&size, all_types, ALL_TYPES, NULL, 0);
    vlp_safetensors *file = NULL;
    assert_int_equal(vlp_safetensors_parse(&file, "run/m", bytes_of_file, size, VLP_CHECKSUM_REQUIRED),
                     VLP_OK);
    const vlp_tensor *tensor = NULL;
    assert_int_equal(vlp_safetensors_need(&tensor, file, "floats", VLP_F32, 2, (const int64_t[]){2, 3}),
                     VLP_OK);
    check_same(tensor, &all_types[1]);
    assert_int_equal(vlp_safetensors_need(&tensor, file, "floats", VLP_F32, 2, (const int64_t[]){-1, 3}),
                     VLP_OK);
    assert_int_equal(vlp_safetensors_need(&tensor, file, "scalar", VLP_F32, 0, NULL), VLP_OK);

    static const struct {
        const char *name;
        vlp_tensor_type type;
        int32_t dimensions;
        int64_t shape[4];
        const char *message;
    } cases[] = {
        {"none", VLP_F32, 1, {1}, "run/m: tensor 'none' is missing"},
        {"floats", VLP_F64, 2, {2, 3}, "run/m: tensor 'floats' is of type F32, and F64 is needed"},
        {"floats", VLP_F32, 1, {6}, "run/m: tensor 'floats' has the shape [2, 3], and [6] is needed"},
        {"floats",
         VLP_F32,
         2,
         {-1, 4},
         "run/m: tensor 'floats' has the shape [2, 3], and [any, 4] is needed"},
        {"scalar", VLP_F32, 1, {1}, "run/m: tensor 'scalar' has the shape [], and [1] is needed"},
        {"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
         VLP_F32,
         0,
         {0},
         "run/m: tensor 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...' is "
         "missing"},
        {"\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f",
         VLP_F32,
         0,
         {0},
         "run/m: tensor '"
         "\\u007f\\u007f\\u007f\\u007f\\u007f\\u007f\\u007f\\u007f\\u007f\\u007f\\u007f...' is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tensor = NULL;
        assert_int_equal(vlp_safetensors_need(&tensor, file, cases[i].name, cases[i].type,
                                              cases[i].dimensions, cases[i].shape),
                         VLP_ERROR_FORMAT);
        assert_string_equal(vlp_error_message(), cases[i].message);
        assert_null(tensor);
    }
    vlp_safetensors_free(file);
    free(bytes_of_file);
}

/* ---- Damage ---- */

static void check_refused(const char *data, size_t size) {
    vlp_safetensors *file = NULL;
    /* A block of exactly that size, so that a sanitizer sees what is read behind it. */
    char *exact = malloc(size > 0 ? size : 1);
    if (size > 0) memcpy(exact, data, size);
    assert_int_equal(vlp_safetensors_parse(&file, "FILE", exact, size, VLP_CHECKSUM_REQUIRED),
                     VLP_ERROR_FORMAT);
    assert_null(file);
    assert_memory_equal(vlp_error_message(), "FILE: ", 6);
    free(exact);
}

/* The contract of a checkpoint: cut short, or with one byte changed anywhere, it is refused by name. */
static void test_damage(void **state) {
    (void)state;
    const vlp_tensor tensors[] = {{"entities", VLP_F32, 2, {2, 3}, floats},
                                  {"é", VLP_U8, 1, {5}, bytes},
                                  {"step", VLP_I64, 0, {0}, longs}};
    size_t size = 0;
    char *file = make_file(&size, tensors, 3, some_pairs, 2);
    vlp_safetensors *whole = NULL;
    assert_int_equal(vlp_safetensors_parse(&whole, "FILE", file, size, VLP_CHECKSUM_REQUIRED), VLP_OK);
    vlp_safetensors_free(whole);

    for (size_t length = 0; length < size; length++) check_refused(file, length);
    for (size_t i = 0; i < size; i++) {
        for (int change = 1; change < 256; change++) {
            file[i] = (char)(file[i] ^ change);
            check_refused(file, size);
            file[i] = (char)(file[i] ^ change);
        }
    }
    char *longer = malloc(size + 1);
    for (int byte = 0; byte < 256; byte++) {
        memcpy(longer, file, size);
        longer[size] = (char)byte;
        check_refused(longer, size + 1);
    }
    for (size_t i = 0; i + 1 < size; i++) { /* neighbours changed places */
        if (file[i] == file[i + 1]) continue;
        memcpy(longer, file, size);
        longer[i] = file[i + 1];
        longer[i + 1] = file[i];
        check_refused(longer, size);
    }
    free(longer);
    free(file);
}

/* The same through files, with the messages that a user sees. */
static void test_damaged_files(void **state) {
    (void)state;
    const char *folder = support_folder(), *path = support_path(folder, "m");
    char message[256];
    size_t size = 0;
    char *file = make_file(&size, all_types, ALL_TYPES, NULL, 0);
    vlp_safetensors *opened = NULL;
    for (int required = 0; required < 2; required++) {
        file[size - 1] ^= 1;
        support_write(folder, "m", file, size);
        file[size - 1] ^= 1;
        assert_int_equal(vlp_safetensors_open(&opened, path, required), VLP_ERROR_FORMAT);
        snprintf(message, sizeof message, "%s: damaged (the checksum does not match)", path);
        assert_string_equal(vlp_error_message(), message);

        support_write(folder, "m", file, size - 1);
        assert_int_equal(vlp_safetensors_open(&opened, path, required), VLP_ERROR_FORMAT);
        assert_non_null(strstr(vlp_error_message(), "the file is truncated"));
        assert_non_null(strstr(vlp_error_message(), path));
    }
    for (size_t length = 0; length <= 8; length++) {
        support_write(folder, "m", file, length);
        assert_int_equal(vlp_safetensors_open(&opened, path, true), VLP_ERROR_FORMAT);
    }
    assert_int_equal(vlp_safetensors_open(&opened, folder, true), VLP_ERROR_IO);
    assert_int_equal(vlp_safetensors_open(&opened, support_path(folder, "none"), true), VLP_ERROR_IO);
    assert_null(opened);
    free(file);
    support_remove(folder);
}

/* ---- Headers of others ---- */

/* A file of a header and `data` bytes 0, 1, 2, …, to be freed. */
static char *with_header(size_t *size, const char *header, size_t length, size_t data) {
    *size = 8 + length + data;
    char *file = malloc(*size);
    assert_non_null(file);
    memcpy(file, &(uint64_t){length}, 8);
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < data; i++) file[8 + length + i] = (char)i;
    return file;
}

static vlp_status parse_header(vlp_safetensors **out, char **file, const char *header, size_t data,
                               vlp_checksum_rule rule) {
    size_t size;
    *file = with_header(&size, header, strlen(header), data);
    return vlp_safetensors_parse(out, "FILE", *file, size, rule);
}

#define BODY "\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]"
#define NUMBER "a whole number from 0 is expected"

static const struct bad_header {
    const char *header;
    size_t data;
    const char *message;
} bad_headers[] = {
    {"", 0, "byte 0 of the header: '{' is expected"},
    {" {}", 0, "byte 0 of the header: '{' is expected"},
    {"[]", 0, "byte 0 of the header: '{' is expected"},
    {"{", 0, "byte 1 of the header: a string in quotes is expected"},
    {"{}}", 0, "byte 2 of the header: only spaces may follow the last '}'"},
    {"{}\n", 0, "byte 2 of the header: only spaces may follow the last '}'"},
    {"{} {", 0, "byte 3 of the header: only spaces may follow the last '}'"},
    {"{}", 1, "the tensors end at byte 0 of the data, and there are 1"},
    {"{,}", 0, "byte 1 of the header: a string in quotes is expected"},
    {"{a:1}", 0, "byte 1 of the header: a string in quotes is expected"},
    {"{\"a", 0, "byte 3 of the header: an unterminated string"},
    {"{\"a\\", 0, "byte 4 of the header: an invalid escape"},
    {"{\"\\x\"", 0, "byte 3 of the header: an invalid escape"},
    {"{\"\n\"", 0, "byte 2 of the header: a control character in a string"},
    {"{\"\\u12", 0, "byte 4 of the header: \\u needs four hexadecimal digits"},
    {"{\"\\u12g4\"", 0, "byte 4 of the header: \\u needs four hexadecimal digits"},
    {"{\"\\u0000\"", 0, "byte 4 of the header: U+0000 in a string"},
    {"{\"\\ud800\"", 0, "byte 8 of the header: half of a surrogate pair"},
    {"{\"\\ud800\\u0041\"", 0, "byte 8 of the header: half of a surrogate pair"},
    {"{\"\\ud800\\ue000\"", 0, "byte 8 of the header: half of a surrogate pair"},
    {"{\"\\udc00\\udc00\"", 0, "byte 8 of the header: half of a surrogate pair"},
    {"{\"\\ud800xxxxxx\"", 0, "byte 8 of the header: half of a surrogate pair"},
    {"{\"\xff\"", 0, "byte 2 of the header: not UTF-8"},
    {"{\"\xed\xa0\x80\"", 0, "byte 2 of the header: not UTF-8"},
    {"{\"a\"}", 0, "byte 4 of the header: ':' is expected"},
    {"{\"a\":1}", 0, "byte 5 of the header: '{' is expected"},
    {"{\"a\":{}}", 0, "tensor 'a' needs dtype, shape and data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 1, "tensor 'a' needs dtype, shape and data_offsets"},
    {"{\"a\":{" BODY ",}}", 2, "byte 52 of the header: a string in quotes is expected"},
    {"{\"a\":{" BODY "},}", 2, "byte 53 of the header: a string in quotes is expected"},
    {"{\"a\":{" BODY "} \"b\"", 2, "byte 53 of the header: ',' or '}' is expected"},
    {"{\"a\":{" BODY ",\"x\":1}}", 2, "tensor 'a' has an unknown key 'x'"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "tensor 'a' has a second 'dtype'"},
    {"{\"a\":{\"dtype\":1}}", 0, "byte 14 of the header: a string in quotes is expected"},
    {"{\"a\":{\"dtype\":\"F16\"}}", 0,
     "tensor 'a' is of type 'F16', which is not supported (F32, F64, I32, I64, U8 and BF16 are)"},
    {"{\"a\":{\"dtype\":\"f32\"}}", 0,
     "tensor 'a' is of type 'f32', which is not supported (F32, F64, I32, I64, U8 and BF16 are)"},
    {"{\"a\":{\"shape\":2}}", 0, "byte 14 of the header: '[' is expected"},
    {"{\"a\":{\"shape\":[1,]}}", 0, "byte 17 of the header: " NUMBER},
    {"{\"a\":{\"shape\":[,1]}}", 0, "byte 15 of the header: " NUMBER},
    {"{\"a\":{\"shape\":[-1]}}", 0, "byte 15 of the header: " NUMBER},
    {"{\"a\":{\"shape\":[\"1\"]}}", 0, "byte 15 of the header: " NUMBER},
    {"{\"a\":{\"shape\":[1.0]}}", 0, "byte 16 of the header: ',' or ']' is expected"},
    {"{\"a\":{\"shape\":[1e1]}}", 0, "byte 16 of the header: ',' or ']' is expected"},
    {"{\"a\":{\"shape\":[1 2]}}", 0, "byte 17 of the header: ',' or ']' is expected"},
    {"{\"a\":{\"shape\":[01]}}", 0, "byte 15 of the header: a number that starts with 0"},
    {"{\"a\":{\"shape\":[9223372036854775808]}}", 0, "byte 33 of the header: a number too large"},
    {"{\"a\":{\"shape\":[92233720368547758070]}}", 0, "byte 34 of the header: a number too large"},
    {"{\"a\":{\"shape\":[1,1,1,1,1]}}", 0, "byte 23 of the header: the list is too long"},
    {"{\"a\":{\"data_offsets\":[0,1,2]}}", 0, "byte 26 of the header: the list is too long"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0]}}", 0,
     "tensor 'a' needs two data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[]}}", 0,
     "tensor 'a' needs two data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,2],\"data_offsets\":[0,0]}}", 0,
     "tensor 'a' is too large"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904,2],\"data_offsets\":[0,0]}}", 0,
     "tensor 'a' is too large"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
     "tensor 'a' takes 8 bytes, and its offsets are 0 and 4"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
     "tensor 'a' takes 8 bytes, and its offsets are 8 and 0"},
    {"{\"a\":{" BODY "}}", 1,
     "tensor 'a' ends at byte 2 of the data, and there are 1; the file is truncated"},
    {"{\"a\":{" BODY "}}", 3, "the tensors end at byte 2 of the data, and there are 3"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[9,9]}}", 8,
     "tensor 'a' ends at byte 9 of the data, and there are 8; the file is truncated"},
    {"{\"a\":{" BODY "},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3,
     "tensor 'b' overlaps another one"},
    {"{\"a\":{" BODY "},\"b\":{" BODY "}}", 2, "tensor 'b' overlaps another one"},
    {"{\"a\":{" BODY "},\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}}", 2,
     "tensor 'b' overlaps another one"},
    {"{\"a\":{" BODY "},\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}}", 4,
     "tensor 'b' has a gap before it"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3,
     "tensor 'a' has a gap before it"},
    {"{\"a\":{" BODY "},\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}", 4,
     "tensor 'a' appears twice"},
    {"{\"__metadata__\":1}", 0, "byte 16 of the header: '{' is expected"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "byte 21 of the header: a string in quotes is expected"},
    {"{\"__metadata__\":{\"a\":\"b\",}}", 0, "byte 25 of the header: a string in quotes is expected"},
    {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, "metadata 'a' appears twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "byte 34 of the header: a second __metadata__"},
    {"{\"__metadata__\":{\"xxh3_128\":\"00\"}}", 0, "damaged (the checksum does not match)"},
    {"{\"__metadata__\":{\"xxh3_128\":\"00000000000000000000000000000000\"}}", 0,
     "damaged (the checksum does not match)"},
    {"{\"__metadata__\":{\"xxh3_128\":\"\\u003000000000000000000000000000000\"}}", 0,
     "damaged (the checksum does not match)"},
};

static void test_bad_headers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        vlp_safetensors *file = NULL;
        char *memory, message[256];
        vlp_status status = parse_header(&file, &memory, bad_headers[i].header, bad_headers[i].data,
                                         VLP_CHECKSUM_VERIFIED);
        snprintf(message, sizeof message, "FILE: %s", bad_headers[i].message);
        assert_string_equal(vlp_error_message(), message);
        assert_int_equal(status, VLP_ERROR_FORMAT);
        assert_null(file);
        free(memory);
    }
    vlp_safetensors *file = NULL;
    char *memory;
    assert_int_equal(parse_header(&file, &memory, "{}", 0, VLP_CHECKSUM_REQUIRED), VLP_ERROR_FORMAT);
    assert_string_equal(vlp_error_message(), "FILE: damaged (it has no checksum xxh3_128)");
    free(memory);
    static const struct {
        uint64_t length;
        const char *message;
    } lengths[] = {
        {3, "FILE: a header of 3 bytes, and 2 are there; the file is truncated"},
        {100000000, "FILE: a header of 100000000 bytes, and 2 are there; the file is truncated"},
        {100000001,
         "FILE: a header of 100000001 bytes; this is not a safetensors file, or it is damaged"},
        {UINT64_MAX, "FILE: a header of 18446744073709551615 bytes; this is not a safetensors file, or "
                     "it is damaged"}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char bytes_of_file[10];
        memcpy(bytes_of_file, &lengths[i].length, 8);
        memcpy(bytes_of_file + 8, "{}", 2);
        assert_int_equal(vlp_safetensors_parse(&file, "FILE", bytes_of_file, 10, VLP_CHECKSUM_VERIFIED),
                         VLP_ERROR_FORMAT);
        assert_string_equal(vlp_error_message(), lengths[i].message);
    }
}

/* What other writers may do: any order, white space, escapes, no checksum, data that lies anywhere. */
static void test_good_headers(void **state) {
    (void)state;
    vlp_safetensors *file = NULL;
    char *memory;
    assert_int_equal(parse_header(&file, &memory, "{}  ", 0, VLP_CHECKSUM_VERIFIED), VLP_OK);
    vlp_safetensors_free(file);
    free(memory);

    const char *header =
        "{ \"b\\/\\u00e9\\uD83D\\ude42\\n\" : {\"shape\":[ 1 , 2 ],\n\t\"data_offsets\":[3,11],"
        "\"dtype\":\"F32\"},\"a\":{\"data_offsets\":[0,1],\"dtype\":\"U8\",\"shape\":[]},"
        "\"none\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[11,11]},\r"
        "\"half\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[1,3]},"
        "\"__metadata__\":{\"\\\"\\\\\\b\\f\\r\\t\":\"\\u007F\\u07ff\\uffff\"}}";
    for (size_t spaces = 0; spaces < 8; spaces++) { /* every alignment */
        char padded[512];
        snprintf(padded, sizeof padded, "%s%*s", header, (int)spaces, "");
        assert_int_equal(parse_header(&file, &memory, padded, 11, VLP_CHECKSUM_VERIFIED), VLP_OK);
        int32_t count;
        vlp_safetensors_all(file, &count);
        assert_int_equal(count, 4);
        check_same(vlp_safetensors_find(file, "half"), &(vlp_tensor){"half", VLP_BF16, 1, {1}, "\1\2"});
        check_same(vlp_safetensors_find(file, "a"), &(vlp_tensor){"a", VLP_U8, 0, {0}, "\0"});
        check_same(vlp_safetensors_find(file, "b/é🙂\n"),
                   &(vlp_tensor){"b/é🙂\n", VLP_F32, 2, {1, 2}, "\3\4\5\6\7\10\11\12"});
        check_same(vlp_safetensors_find(file, "none"), &(vlp_tensor){"none", VLP_I64, 1, {0}, NULL});
        assert_string_equal(vlp_safetensors_metadata(file, "\"\\\b\f\r\t"), "\x7f\xdf\xbf\xef\xbf\xbf");
        vlp_safetensors_free(file);
        free(memory);
    }
}

static void test_memory_fails(void **state) {
    (void)state;
    const char *folder = support_folder(), *path = support_path(folder, "m");
    const char *odd = support_path(folder, "odd");
    size_t size = 0;
    const char *header = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    assert_int_not_equal(strlen(header) % 4, 0); /* its data has to be copied */
    char *foreign = with_header(&size, header, strlen(header), 8);
    support_write(folder, "odd", foreign, size);
    free(foreign);
    failing_allocator memory;
    int64_t call = 0;
    vlp_status status;
    do {
        failing_allocator_install(&memory, ++call);
        status = vlp_safetensors_write(path, all_types, ALL_TYPES, some_pairs, SOME_PAIRS);
        failing_allocator_remove(&memory);
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
        assert_int_equal(support_count(folder), memory.failed ? 1 : 2);
    } while (memory.failed);
    assert_true(call > 5);
    const char *const paths[] = {path, odd};
    for (int i = 0; i < 2; i++) {
        call = 0;
        do {
            vlp_safetensors *file = NULL;
            failing_allocator_install(&memory, ++call);
            status = vlp_safetensors_open(&file, paths[i], i == 0);
            vlp_safetensors_free(file);
            failing_allocator_remove(&memory);
            assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
            assert_int_equal(file != NULL, !memory.failed);
        } while (memory.failed);
        assert_true(call > 5);
    }
    assert_int_equal(support_count(folder), 2);
    support_remove(folder);
}

/* ---- The format's own package ---- */

static const char check_with_python[] =
    "import sys\n"
    "try:\n"
    "    import numpy, safetensors\n"
    "    from safetensors.numpy import save_file, load_file\n"
    "except ImportError:\n"
    "    sys.exit(77)\n"
    "ours, theirs = sys.argv[1:]\n"
    "with safetensors.safe_open(ours, framework='numpy') as file:\n"
    "    assert file.metadata()['step'] == '1200', file.metadata()\n"
    "    assert len(file.metadata()) == 4\n"
    "    assert sorted(file.keys()) == sorted(['bytes', 'floats', 'doubles', 'ints', 'longs', "
    "'scalar',\n"
    "                                          'empty', '']), file.keys()\n"
    "    read = {name: file.get_tensor(name) for name in file.keys()}\n"
    "assert read['floats'].tolist() == numpy.array([[0, -1.5, 2.25], [3e-40, 1e30, -7]], "
    "'f4').tolist()\n"
    "assert read['doubles'].tolist() == [[[1e300], [-0.1], [5e-324]]]\n"
    "assert read['ints'].tolist() == [[-2**31], [-1], [0], [2**31 - 1]]\n"
    "assert read['longs'].tolist() == [-2**63, 2**63 - 1]\n"
    "assert read['bytes'].tolist() == [0, 1, 127, 128, 255]\n"
    "assert read['scalar'].shape == () and read['scalar'] == 2.25\n"
    "assert read['empty'].shape == (0, 7) and read[''].shape == (2, 0, 2, 2)\n"
    "save_file(read, theirs, metadata={'step': '1200', '\\u00e9\\n': '\"'})\n";

static void test_with_python(void **state) {
    (void)state;
    const char *folder = support_folder(), *ours = support_path(folder, "ours");
    const char *theirs = support_path(folder, "theirs");
    vlp_tensor tensors[ALL_TYPES];
    int32_t count = 0;
    for (int i = 0; i < ALL_TYPES; i++) /* numpy has no bfloat16 */
        if (all_types[i].type != VLP_BF16) tensors[count++] = all_types[i];
    assert_int_equal(vlp_safetensors_write(ours, tensors, count, some_pairs, SOME_PAIRS), VLP_OK);
    support_write_text(folder, "check.py", check_with_python);
    char command[512];
    snprintf(command, sizeof command, "python3 %s/check.py %s %s", folder, ours, theirs);
    int outcome = system(command);
    assert_true(WIFEXITED(outcome));
    if (WEXITSTATUS(outcome) != 77 &&
        WEXITSTATUS(outcome) != 127) { /* 77: no such package; 127: no Python */
        assert_int_equal(WEXITSTATUS(outcome), 0);
        vlp_safetensors *file = NULL;
        assert_int_equal(vlp_safetensors_open(&file, theirs, false), VLP_OK);
        for (int32_t i = 0; i < count; i++)
            check_same(vlp_safetensors_find(file, tensors[i].name), &tensors[i]);
        assert_string_equal(vlp_safetensors_metadata(file, "é\n"), "\"");
        vlp_safetensors_free(file);
    }
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_bad_arguments), cmocka_unit_test(test_need),
        cmocka_unit_test(test_damage),        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_bad_headers),   cmocka_unit_test(test_good_headers),
        cmocka_unit_test(test_memory_fails),  cmocka_unit_test(test_with_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
