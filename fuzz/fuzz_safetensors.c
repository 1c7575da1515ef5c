/* safetensors: an accepted file is JSON by a reference parser, its tensors cover the data, and writing
 * it again gives the same content; a changed bit or a truncated file must be refused.
 *
 * The first byte of an input is the number of data bytes that follow the header, which is the rest;
 * 255: the rest is a complete file. Otherwise mutations would rarely keep length, header and data
 * consistent. */
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
    uint64_t length = size - 1;
    bytes file = make_bytes(8 + length + data[0]);
    memcpy(file.data, &length, 8);
    memcpy(file.data + 8, data + 1, length);
    for (size_t i = 0; i < data[0]; i++) file.data[8 + length + i] = (uint8_t)(i * 37);
    return file;
}

/* ---- JSON by its grammar, without fractions and signs; each returns the rest, or NULL if invalid ----
 */

static const char *naive_space(const char *at) {
    while (*at && strchr(" \t\n\r", *at)) at++;
    return at;
}

static const char *naive_string(const char *at) {
    if (*at++ != '"') return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20) return NULL;
        if (*at != '\\') continue;
        if (*++at == '\0' || !strchr("\"\\/bfnrtu", *at)) return NULL;
        for (int i = 0; i < 4 && *at == 'u'; i++)
            if (!at[1 + i] || !strchr("0123456789abcdefABCDEF", at[1 + i])) return NULL;
    }
    return at + 1;
}

static const char *naive_value(const char *at, int depth) {
    at = naive_space(at);
    if (*at == '"') return naive_string(at);
    if (*at >= '0' && *at <= '9') {
        size_t digits = strspn(at, "0123456789");
        return *at == '0' && digits > 1 ? NULL : at + digits;
    }
    if ((*at != '{' && *at != '[') || depth == 0) return NULL;
    bool object = *at == '{';
    char end = object ? '}' : ']';
    at = naive_space(at + 1);
    if (*at == end) return at + 1;
    for (;; at++) {
        if (object) {
            if (!(at = naive_string(naive_space(at)))) return NULL;
            at = naive_space(at);
            if (*at++ != ':') return NULL;
        }
        if (!(at = naive_value(at, depth - 1))) return NULL;
        at = naive_space(at);
        if (*at == end) return at + 1;
        if (*at != ',') return NULL;
    }
}

static void check_json(const bytes *file) {
    uint64_t length;
    memcpy(&length, file->data, 8);
    REQUIRE(length <= file->size - 8);
    char *text = strndup((const char *)file->data + 8, length);
    REQUIRE(text && strlen(text) == length && naive_utf8(file->data + 8, length));
    const char *end = naive_value(text, 3);
    REQUIRE(text[0] == '{' && end && strspn(end, " ") == strlen(end));
    free(text);
}

/* ---- The content ---- */

static void check_message(vlp_status status) {
    const char *message = vlp_error_message();
    size_t length = strlen(message);
    REQUIRE(status == VLP_ERROR_FORMAT);
    REQUIRE(strncmp(message, "FILE: ", 6) == 0 && length > 6 && length < 600);
    REQUIRE(naive_utf8((const uint8_t *)message, length));
    for (size_t i = 0; i < length; i++) REQUIRE(!naive_control((unsigned char)message[i]));
}

static size_t naive_size(const vlp_tensor *tensor) {
    static const size_t sizes[] = {4, 8, 4, 8, 1, 2};
    REQUIRE(tensor->type <= VLP_BF16 && tensor->dimensions >= 0 && tensor->dimensions <= 4);
    size_t size = sizes[tensor->type];
    REQUIRE((uintptr_t)tensor->data % size == 0);
    for (int32_t i = 0; i < tensor->dimensions; i++) {
        REQUIRE(tensor->shape[i] >= 0);
        size *= (size_t)tensor->shape[i];
    }
    return size;
}

/* The concatenated tensors are the end of the file. */
static void check_data(const bytes *file, const vlp_tensor *tensors, int32_t count) {
    size_t total = 0;
    for (int32_t i = 0; i < count; i++) total += naive_size(&tensors[i]);
    REQUIRE(total <= file->size - 8);
    size_t at = file->size - total;
    for (int32_t i = 0; i < count; i++) {
        size_t size = naive_size(&tensors[i]);
        REQUIRE(size == 0 || memcmp(file->data + at, tensors[i].data, size) == 0);
        at += size;
    }
    uint64_t length;
    memcpy(&length, file->data, 8);
    REQUIRE(8 + length + total == file->size);
}

static bytes write_again(const vlp_safetensors *file) {
    vlp_pair *pairs = malloc(((size_t)file->pair_count + 1) * sizeof *pairs);
    REQUIRE(pairs != NULL);
    int32_t kept = 0;
    for (int32_t i = 0; i < file->pair_count; i++)
        if (strcmp(file->pairs[i].key, VLP_CHECKSUM_KEY) != 0) pairs[kept++] = file->pairs[i];
    vlp_layout layout;
    REQUIRE(vlp_layout_make(&layout, "again", file->tensors, file->tensor_count, pairs, kept) == VLP_OK);
    free(pairs);
    REQUIRE(layout.header_size % 64 == 0 && layout.tensor_count == file->tensor_count);
    size_t total = layout.header_size, at = layout.header_size;
    for (int32_t i = 0; i < layout.tensor_count; i++) total += naive_size(&layout.tensors[i]);
    bytes again = make_bytes(total);
    memcpy(again.data, layout.header, layout.header_size);
    for (int32_t i = 0; i < layout.tensor_count; i++) {
        size_t size = naive_size(&layout.tensors[i]);
        if (size > 0) memcpy(again.data + at, layout.tensors[i].data, size);
        at += size;
    }
    vlp_layout_free(&layout);
    return again;
}

static void check_same(const vlp_safetensors *left, const vlp_safetensors *right) {
    REQUIRE(left->tensor_count == right->tensor_count);
    for (int32_t i = 0; i < left->tensor_count; i++) {
        const vlp_tensor *a = &left->tensors[i], *b = NULL;
        REQUIRE(vlp_safetensors_need(&b, right, a->name, a->type, a->dimensions, a->shape) == VLP_OK);
        REQUIRE(naive_size(a) == 0 || memcmp(a->data, b->data, naive_size(a)) == 0);
    }
    for (int32_t i = 0; i < left->pair_count; i++) {
        const char *value = vlp_safetensors_metadata(right, left->pairs[i].key);
        REQUIRE(value != NULL);
        if (strcmp(left->pairs[i].key, VLP_CHECKSUM_KEY) != 0)
            REQUIRE(strcmp(left->pairs[i].value, value) == 0);
    }
}

static void check_damage(bytes *file, uint32_t place) {
    vlp_safetensors *none = NULL;
    size_t at = place / 8 % file->size;
    file->data[at] ^= (uint8_t)(1u << place % 8);
    check_message(vlp_safetensors_parse(&none, "FILE", file->data, file->size, VLP_CHECKSUM_REQUIRED));
    file->data[at] ^= (uint8_t)(1u << place % 8);
    check_message(vlp_safetensors_parse(&none, "FILE", file->data, at, VLP_CHECKSUM_REQUIRED));
    REQUIRE(none == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    bytes input = make_input(data, size);
    vlp_safetensors *file = NULL, *copy = NULL;
    vlp_status status =
        vlp_safetensors_parse(&file, "FILE", input.data, input.size, VLP_CHECKSUM_IGNORED);
    REQUIRE((file != NULL) == (status == VLP_OK));
    if (status != VLP_OK) {
        check_message(status);
    } else {
        check_json(&input);
        check_data(&input, file->tensors, file->tensor_count);
        bytes again = write_again(file);
        REQUIRE(vlp_safetensors_parse(&copy, "FILE", again.data, again.size, VLP_CHECKSUM_REQUIRED) ==
                VLP_OK);
        check_same(file, copy);
        vlp_safetensors_free(copy);
        uint32_t place = 2166136261u;
        for (size_t i = 0; i < size; i++) place = (place ^ data[i]) * 16777619u;
        check_damage(&again, place);
        free(again.data);
    }
    vlp_safetensors_free(file);
    free(input.data);
    return 0;
}

UNCOUNTED_END
