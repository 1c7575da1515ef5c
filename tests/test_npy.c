/* npy: what is written is read back as fp32, every type, order and version is read as numpy means it,
 * every malformed file has its message, every allocation fails once; and numpy agrees where it is
 * installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "failing_allocator.h"
#include "store/parse.h"
#include "support.h"

/* A file of version `major`.0 with this header and these values, to be freed. */
static char *make_file(size_t *size, int major, const char *header, const void *values, size_t bytes) {
    size_t length = strlen(header), start = major == 1 ? 10 : 12;
    *size = start + length + bytes;
    char *file = malloc(*size);
    assert_non_null(file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)major;
    file[7] = 0;
    uint32_t prefix = (uint32_t)length;
    memcpy(file + 8, &prefix, start - 8);
    memcpy(file + start, header, length);
    if (bytes > 0) memcpy(file + start + length, values, bytes);
    return file;
}

static void check_values(const vlp_array *array, const float *expected, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (isnan(expected[i]))
            assert_true(isnan(array->data[i]));
        else
            assert_memory_equal(&array->data[i], &expected[i], sizeof *expected);
    }
}

/* ---- Round trips ---- */

static void check_round_trip(const char *path, const vlp_tensor *tensor, const float *expected) {
    vlp_array array;
    assert_int_equal(vlp_npy_write(path, tensor), VLP_OK);
    assert_int_equal(vlp_npy_read(&array, path), VLP_OK);
    assert_int_equal(array.dimensions, tensor->dimensions);
    for (int32_t i = 0; i < array.dimensions; i++) assert_int_equal(array.shape[i], tensor->shape[i]);
    check_values(&array, expected,
                 (int64_t)(vlp_tensor_bytes(tensor) / vlp_tensor_type_size(tensor->type)));
    vlp_array_free(&array);
    assert_null(array.data);
}

static void test_round_trip(void **state) {
    (void)state;
    static const float floats[] = {0.0f, -0.0f, 1e-45f, -3.5f, INFINITY, NAN};
    static const double doubles[] = {0.1, -1e300, 1e-300};
    static const int32_t ints[] = {INT32_MIN, 16777217};
    static const int64_t longs[] = {INT64_MAX, -1};
    static const uint8_t bytes[] = {0, 200, 255, 7};
    static const uint16_t shorts[] = {0x3f80, 0xff80, 0x0001, 0x8000};
    const char *folder = support_folder(), *path = support_path(folder, "a.npy");
    check_round_trip(path, &(vlp_tensor){"x", VLP_F32, 2, {2, 3}, floats}, floats);
    check_round_trip(path, &(vlp_tensor){"x", VLP_F32, 1, {6}, floats}, floats);
    check_round_trip(path, &(vlp_tensor){"x", VLP_F32, 0, {0}, floats + 3}, floats + 3);
    check_round_trip(path, &(vlp_tensor){"x", VLP_F32, 3, {2, 0, 9}, NULL}, NULL);
    check_round_trip(path, &(vlp_tensor){"x", VLP_F64, 1, {3}, doubles},
                     (const float[]){0.1f, -INFINITY, 0.0f});
    check_round_trip(path, &(vlp_tensor){"x", VLP_I32, 1, {2}, ints},
                     (const float[]){-2147483648.0f, 16777216.0f});
    check_round_trip(path, &(vlp_tensor){"x", VLP_I64, 2, {1, 2}, longs},
                     (const float[]){0x1p63f, -1.0f});
    check_round_trip(path, &(vlp_tensor){"x", VLP_U8, 4, {1, 2, 1, 2}, bytes},
                     (const float[]){0.0f, 200.0f, 255.0f, 7.0f});
    check_round_trip(path, &(vlp_tensor){"x", VLP_BF16, 1, {4}, shorts},
                     (const float[]){1.0f, -INFINITY, 0x1p-133f, -0.0f});
    static uint16_t many[5000]; /* more than one block of the widening */
    static float widened[5000];
    for (int i = 0; i < 5000; i++) {
        uint32_t bits = (uint32_t)(many[i] = (uint16_t)(i * 6)) << 16;
        memcpy(&widened[i], &bits, sizeof bits);
    }
    check_round_trip(path, &(vlp_tensor){"x", VLP_BF16, 1, {5000}, many}, widened);
    assert_int_equal(support_count(folder), 1);

    assert_int_equal(vlp_npy_write(path, &(vlp_tensor){"x", VLP_F32, 1, {-1}, floats}),
                     VLP_ERROR_ARGUMENT);
    assert_int_equal(
        vlp_npy_write(support_path(folder, "no/such"), &(vlp_tensor){"x", VLP_F32, 1, {1}, floats}),
        VLP_ERROR_IO);
    vlp_array array;
    assert_int_equal(vlp_npy_read(&array, support_path(folder, "none")), VLP_ERROR_IO);
    assert_null(array.data);
    vlp_array_free(NULL);
    support_remove(folder);
}

static void test_bytes(void **state) {
    (void)state;
    const char *folder = support_folder();
    assert_int_equal(vlp_npy_write(support_path(folder, "a"), &(vlp_tensor){"x", VLP_U8, 1, {3}, "abc"}),
                     VLP_OK);
    char *file = support_read(folder, "a");
    char expected[132];
    memcpy(expected, "\x93NUMPY\1\0\x76\0", 10);
    snprintf(expected + 10, sizeof expected - 10, "%-117s\nabc",
             "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }");
    assert_memory_equal(file, expected, sizeof expected - 1);
    free(file);
    support_remove(folder);
}

/* ---- Types and orders ---- */

/* The definition of binary16, by arithmetic. */
static float naive_half(int half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double sign = half >> 15 ? -1.0 : 1.0;
    if (exponent == 31) return fraction ? NAN : (float)(sign * INFINITY);
    if (exponent == 0) return (float)(sign * ldexp(fraction, -24));
    return (float)(sign * ldexp(1024 + fraction, exponent - 25));
}

static void test_halves(void **state) {
    (void)state;
    enum { HALVES = 65536 };
    uint16_t *halves = malloc(HALVES * sizeof *halves);
    float *expected = malloc(HALVES * sizeof *expected);
    for (int i = 0; i < HALVES; i++) {
        halves[i] = (uint16_t)i;
        expected[i] = naive_half(i);
    }
    size_t size;
    char *file = make_file(&size, 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (65536,), }",
                           halves, HALVES * sizeof *halves);
    vlp_array array;
    assert_int_equal(vlp_npy_parse(&array, "FILE", file, size), VLP_OK);
    check_values(&array, expected, HALVES);
    vlp_array_free(&array);
    free(file);
    free(halves);
    free(expected);
}

/* Every spelling of the header that Python reads, with each version's length, at every alignment. */
static void test_spellings(void **state) {
    (void)state;
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
        "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}",
        "{\"shape\":(2,3,),\"descr\":\"<f4\",\"fortran_order\":False,}\n\n",
        "\n { 'fortran_order' : False\t, 'shape' : ( 2 , 3 , ) ,\r\n'descr' : '<f4' , } \t",
        "{'descr':'<f4','shape':(2,3),'fortran_order':False}",
    };
    static const float values[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
    for (size_t i = 0; i < 8 * (sizeof headers / sizeof *headers); i++) {
        for (int major = 1; major <= 3; major++) {
            size_t size;
            char header[128];
            snprintf(header, sizeof header, "%s%*s", headers[i / 8], (int)(i % 8), "");
            char *file = make_file(&size, major, header, values, sizeof values);
            vlp_array array;
            assert_int_equal(vlp_npy_parse(&array, "FILE", file, size), VLP_OK);
            assert_int_equal(array.dimensions, 2);
            assert_int_equal(array.shape[0], 2);
            assert_int_equal(array.shape[1], 3);
            check_values(&array, values, 6);
            vlp_array_free(&array);
            free(file);
        }
    }
}

static void test_fortran_order(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{0},       {5},       {3, 4},       {4, 3},   {1, 7},
                                        {2, 3, 4}, {4, 1, 3}, {2, 3, 4, 5}, {3, 0, 2}};
    static const int32_t dimensions[] = {0, 1, 2, 2, 2, 3, 3, 4, 3};
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++) {
        const int32_t n = dimensions[i];
        const int64_t *shape = shapes[i];
        int64_t count = 1, values[120];
        char header[128], *at = stpcpy(header, "{'descr': '<i8', 'fortran_order': True, 'shape': (");
        for (int32_t k = 0; k < n; k++) {
            count *= shape[k];
            at += sprintf(at, "%d,", (int)shape[k]);
        }
        stpcpy(at, ")}");
        /* Each value says its own place in C order. */
        for (int64_t place = 0; place < count; place++) {
            int64_t rest = place, c_place = 0;
            int64_t index[4];
            for (int32_t k = 0; k < n; k++) {
                index[k] = rest % shape[k];
                rest /= shape[k];
            }
            for (int32_t k = 0; k < n; k++) c_place = c_place * shape[k] + index[k];
            values[place] = c_place;
        }
        size_t size;
        char *file = make_file(&size, 1, header, values, (size_t)count * sizeof *values);
        vlp_array array;
        assert_int_equal(vlp_npy_parse(&array, "FILE", file, size), VLP_OK);
        assert_int_equal(array.dimensions, n);
        for (int64_t k = 0; k < count; k++) assert_true(array.data[k] == (float)k);
        vlp_array_free(&array);
        free(file);
    }
}

/* ---- What is refused ---- */

#define KNOWN "(<f2, <f4, <f8, <i4, <i8 and |u1 are)"
#define REST ",'fortran_order':False,'shape':(1,)}"

static const struct bad_header {
    const char *header;
    size_t bytes;
    const char *message;
} bad_headers[] = {
    {"", 0, "byte 10: '{' is expected"},
    {"[]", 0, "byte 10: '{' is expected"},
    {"{", 0, "byte 11: a string in quotes is expected"},
    {"{}", 0, "the header needs descr, fortran_order and shape"},
    {"{descr", 0, "byte 11: a string in quotes is expected"},
    {"{'descr", 0, "byte 17: an unterminated string"},
    {"{'descr\"", 0, "byte 18: an unterminated string"},
    {"{'de\\scr'", 0, "byte 14: an unexpected character"},
    {"{'de\xc3\xa9'", 0, "byte 14: an unexpected character"},
    {"{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", 0, "byte 43: the string is too long"},
    {"{'descr' '<f4'}", 0, "byte 19: ':' is expected"},
    {"{'other': 1}", 0, "the header has an unknown key 'other'"},
    {"{'descr': '<f4', 'descr': '<f4'}", 0, "the header has a second 'descr'"},
    {"{'descr': '<f4' 'shape'", 0, "byte 26: ',' or '}' is expected"},
    {"{'descr': '<f4',,}", 0, "byte 26: a string in quotes is expected"},
    {"{'descr': '<f4'" REST " x", 4, "byte 62: the header continues after its '}'"},
    {"{'descr': '<f4', 'fortran_order': False}", 0, "the header needs descr, fortran_order and shape"},
    {"{'descr': 4}", 0, "byte 20: a string in quotes is expected"},
    {"{'descr': '>f4'" REST, 4, "big-endian values ('>f4') are not supported; save it as '<f4'"},
    {"{'descr': '>i8'" REST, 8, "big-endian values ('>i8') are not supported; save it as '<i8'"},
    {"{'descr': '|f4'" REST, 4, "values of type '|f4' are not supported " KNOWN},
    {"{'descr': 'f4'" REST, 4, "values of type 'f4' are not supported " KNOWN},
    {"{'descr': ''" REST, 4, "values of type '' are not supported " KNOWN},
    {"{'descr': '|O'" REST, 8, "values of type '|O' are not supported " KNOWN},
    {"{'descr': '<c8'" REST, 8, "values of type '<c8' are not supported " KNOWN},
    {"{'descr': '<U4'" REST, 16, "values of type '<U4' are not supported " KNOWN},
    {"{'descr': '<f44'" REST, 4, "values of type '<f44' are not supported " KNOWN},
    {"{'descr': [('x', '<f4')]" REST, 4, "structured values are not supported"},
    {"{'descr': ('<f4', (2,))" REST, 8, "structured values are not supported"},
    {"{'fortran_order': 0}", 0, "byte 28: True or False is expected"},
    {"{'fortran_order': Falsely}", 0, "byte 28: True or False is expected"},
    {"{'fortran_order': Fals", 0, "byte 28: True or False is expected"},
    {"{'shape': 3}", 0, "byte 20: '(' is expected"},
    {"{'shape': [3]}", 0, "byte 20: '(' is expected"},
    {"{'shape': (3)}", 0, "byte 22: ',' is expected"},
    {"{'shape': (,)}", 0, "byte 21: a whole number from 0 is expected"},
    {"{'shape': (3,,)}", 0, "byte 23: a whole number from 0 is expected"},
    {"{'shape': (-3,)}", 0, "byte 21: a whole number from 0 is expected"},
    {"{'shape': (3, 4", 0, "byte 25: ',' or ')' is expected"},
    {"{'shape': (3, 4 5)", 0, "byte 26: ',' or ')' is expected"},
    {"{'shape': (03,)}", 0, "byte 23: a number that starts with 0"},
    {"{'shape': (99999999999999999999,)}", 0, "byte 39: a number too large"},
    {"{'shape': (1,1,1,1,1)}", 0, "more than 4 dimensions"},
    {"{'descr': '<f4'" REST, 3, "3 bytes of values do not match the shape (1,) of f4"},
    {"{'descr': '<f4'" REST, 5, "5 bytes of values do not match the shape (1,) of f4"},
    {"{'descr': '<f4'" REST, 0, "0 bytes of values do not match the shape (1,) of f4"},
    {"{'descr':'<f4','fortran_order':False,'shape':()}", 8,
     "8 bytes of values do not match the shape () of f4"},
    {"{'descr':'<f8','fortran_order':True,'shape':(4611686018427387904,2)}", 0,
     "0 bytes of values do not match the shape (4611686018427387904, 2) of f8"},
    {"{'descr':'<f8','fortran_order':True,'shape':(0,4611686018427387904,2)}", 0,
     "0 bytes of values do not match the shape (0, 4611686018427387904, 2) of f8"},
};

static void check_refused(const char *file, size_t size, const char *message) {
    char *exact = malloc(size > 0 ? size : 1); /* so that a sanitizer sees what is read behind it */
    memcpy(exact, file, size);
    vlp_array array;
    vlp_status status = vlp_npy_parse(&array, "FILE", exact, size);
    if (message)
        assert_string_equal(vlp_error_message(), message);
    else
        assert_memory_equal(vlp_error_message(), "FILE: ", 6);
    assert_int_equal(status, VLP_ERROR_FORMAT);
    assert_null(array.data);
    free(exact);
}

static void test_bad_files(void **state) {
    (void)state;
    static const char zeros[16];
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        char message[256];
        snprintf(message, sizeof message, "FILE: %s", bad_headers[i].message);
        size_t size;
        char *file = make_file(&size, 1, bad_headers[i].header, zeros, bad_headers[i].bytes);
        check_refused(file, size, message);
        free(file);
    }
    static const struct {
        const char *start;
        size_t size;
        const char *message;
    } starts[] = {
        {"", 0, "FILE: not a .npy file"},
        {"\x93NUMPY\1", 7, "FILE: not a .npy file"},
        {"\x93NUMPX\1\0\0\0", 10, "FILE: not a .npy file"},
        {"PK\3\4\0\0\0\0\0\0", 10, "FILE: not a .npy file"},
        {"\x93NUMPY\0\0\0\0", 10, "FILE: version 0.0 of the format is not supported (1.0 to 3.0 are)"},
        {"\x93NUMPY\4\0\0\0", 10, "FILE: version 4.0 of the format is not supported (1.0 to 3.0 are)"},
        {"\x93NUMPY\1\1\0\0", 10, "FILE: version 1.1 of the format is not supported (1.0 to 3.0 are)"},
        {"\x93NUMPY\1\0", 8, "FILE: the header is incomplete; the file is truncated"},
        {"\x93NUMPY\1\0\3\0{}", 12, "FILE: the header is incomplete; the file is truncated"},
        {"\x93NUMPY\2\0\2\0{}", 11, "FILE: the header is incomplete; the file is truncated"},
        {"\x93NUMPY\2\0\xff\xff\xff\xff{}", 14, "FILE: the header is incomplete; the file is truncated"},
    };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        check_refused(starts[i].start, starts[i].size, starts[i].message);
}

static void test_cut_short(void **state) {
    (void)state;
    static const float values[6] = {1.0f};
    size_t size;
    char *file = make_file(&size, 2, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n",
                           values, sizeof values);
    for (size_t length = 0; length < size; length++) check_refused(file, length, NULL);
    free(file);
}

static void test_memory_fails(void **state) {
    (void)state;
    const char *folder = support_folder(), *path = support_path(folder, "a.npy");
    static const uint16_t values[2] = {1, 2};
    failing_allocator memory;
    int64_t call = 0;
    vlp_status status;
    do {
        vlp_array array = {0};
        failing_allocator_install(&memory, ++call);
        status = vlp_npy_write(path, &(vlp_tensor){"x", VLP_BF16, 1, {2}, values});
        if (status == VLP_OK) status = vlp_npy_read(&array, path);
        vlp_array_free(&array);
        failing_allocator_remove(&memory);
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
    } while (memory.failed);
    assert_true(call > 2);
    assert_int_equal(support_count(folder), 1);
    support_remove(folder);
}

/* ---- numpy itself ---- */

static const char check_with_python[] =
    "import sys\n"
    "try:\n"
    "    import numpy\n"
    "except ImportError:\n"
    "    sys.exit(77)\n"
    "folder = sys.argv[1]\n"
    "read = numpy.load(folder + '/ours.npy')\n"
    "assert read.dtype == 'f4' and read.tolist() == [[0, 1, 2], [3, 4, 5]], read\n"
    "read = numpy.load(folder + '/scalar.npy')\n"
    "assert read.dtype == 'u1' and read.shape == () and read == 65, read\n"
    "for kind in 'f2', 'f4', 'f8', 'i4', 'i8', 'u1':\n"
    "    for order in 'C', 'F':\n"
    "        values = numpy.arange(24).reshape(2, 3, 4).astype(kind, order)\n"
    "        numpy.save(folder + '/' + kind + order + '.npy', values)\n"
    "for version in (1, 0), (2, 0), (3, 0):\n"
    "    with open(folder + '/version%d.npy' % version[0], 'wb') as file:\n"
    "        numpy.lib.format.write_array(file, numpy.arange(24.0).reshape(2, 3, 4), version)\n"
    "numpy.save(folder + '/big.npy', numpy.arange(3, dtype='>f4'))\n"
    "numpy.save(folder + '/structured.npy', numpy.zeros(3, dtype=[('\\u00e9', '<f4')]))\n";

static void test_with_numpy(void **state) {
    (void)state;
    const char *folder = support_folder();
    static const float values[] = {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
    assert_int_equal(
        vlp_npy_write(support_path(folder, "ours.npy"), &(vlp_tensor){"x", VLP_F32, 2, {2, 3}, values}),
        VLP_OK);
    assert_int_equal(
        vlp_npy_write(support_path(folder, "scalar.npy"), &(vlp_tensor){"x", VLP_U8, 0, {0}, "A"}),
        VLP_OK);
    support_write_text(folder, "check.py", check_with_python);
    char command[512];
    snprintf(command, sizeof command, "python3 %s/check.py %s", folder, folder);
    int outcome = system(command);
    assert_true(WIFEXITED(outcome));
    if (WEXITSTATUS(outcome) != 77 && WEXITSTATUS(outcome) != 127) { /* 77: no numpy; 127: no Python */
        assert_int_equal(WEXITSTATUS(outcome), 0);
        static const char *const names[] = {"f2C", "f2F", "f4C",      "f4F",      "f8C",
                                            "f8F", "i4C", "i4F",      "i8C",      "i8F",
                                            "u1C", "u1F", "version1", "version2", "version3"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            vlp_array array;
            char name[32];
            snprintf(name, sizeof name, "%s.npy", names[i]);
            assert_int_equal(vlp_npy_read(&array, support_path(folder, name)), VLP_OK);
            assert_int_equal(array.dimensions, 3);
            for (int k = 0; k < 24; k++) assert_true(array.data[k] == (float)k);
            vlp_array_free(&array);
        }
        vlp_array array;
        assert_int_equal(vlp_npy_read(&array, support_path(folder, "big.npy")), VLP_ERROR_FORMAT);
        assert_non_null(strstr(vlp_error_message(), "big.npy: big-endian values"));
        assert_int_equal(vlp_npy_read(&array, support_path(folder, "structured.npy")), VLP_ERROR_FORMAT);
        assert_non_null(
            strstr(vlp_error_message(), "structured.npy: structured values are not supported"));
    }
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_halves),        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_fortran_order), cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_cut_short),     cmocka_unit_test(test_memory_fails),
        cmocka_unit_test(test_with_numpy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
