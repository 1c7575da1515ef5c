/* Parses the safetensors format. Files are untrusted; everything is checked:
 *
 *   length    8 bytes, little-endian: of the header
 *   header    {"__metadata__": {"key": "value"}, "name": {"dtype": "F32", "shape": [2, 3],
 *             "data_offsets": [0, 24]}}, then spaces; it starts with '{'
 *   data      every byte belongs to exactly one array
 *
 * The parser accepts only JSON of this structure, whose nesting is bounded, so that no input can make
 * it recurse. Strings are decoded into one buffer of the size of the header: a decoded string with its
 * terminating zero is never longer than the quoted one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/parse.h"

typedef struct parser {
    vlp_safetensors *file;
    const char *name;
    const char *text; /* the header */
    size_t size, at;
    const char *data; /* after it */
    size_t data_size;
    size_t strings_used;
    size_t string_at;     /* the start of the last string in the header, after its quote */
    const char *checksum; /* its value, or NULL, and its position */
    size_t checksum_at;
    bool has_metadata;
    int64_t tensor_capacity, pair_capacity;
} parser;

/* ---- JSON ---------------------------------------------------------------------------------------- */

static vlp_status fail_at(const parser *p, const char *cause) {
    return vlp_fail(VLP_ERROR_FORMAT, "%s: byte %zu of the header: %s", p->name, p->at, cause);
}

/* The next byte that is not white space, without consuming it; '\0' at the end. */
static char peek(parser *p) {
    while (p->at < p->size && memchr(" \t\n\r", p->text[p->at], 4)) p->at++;
    return p->at < p->size ? p->text[p->at] : '\0';
}

static vlp_status expect(parser *p, char byte, const char *complaint) {
    if (peek(p) != byte) return fail_at(p, complaint);
    p->at++;
    return VLP_OK;
}

/* Four hexadecimal digits, or -1. */
static int32_t parse_hex(const parser *p, size_t at) {
    if (p->size - at < 4) return -1;
    int32_t code = 0;
    for (size_t end = at + 4; at < end; at++) {
        char digit = p->text[at];
        int32_t value = digit >= '0' && digit <= '9'   ? digit - '0'
                        : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                        : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                       : -1;
        if (value < 0) return -1;
        code = code << 4 | value;
    }
    return code;
}

static char *put_utf8(char *out, int32_t code) {
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const int lead[] = {0, 0xc0, 0xe0, 0xf0};
    *out++ = (char)(lead[more] | code >> 6 * more);
    while (more-- > 0) *out++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    return out;
}

/* The part of an escape after "\u", with the second half of a surrogate pair. Names are C strings, so
 * U+0000 is refused. */
static vlp_status parse_code(parser *p, char **out) {
    int32_t code = parse_hex(p, p->at);
    if (code < 0) return fail_at(p, "\\u needs four hexadecimal digits");
    if (code == 0) return fail_at(p, "U+0000 in a string");
    p->at += 4;
    if (code >= 0xd800 && code < 0xe000) {
        bool pair = code < 0xdc00 && p->size - p->at >= 6 && memcmp(p->text + p->at, "\\u", 2) == 0;
        int32_t low = pair ? parse_hex(p, p->at + 2) : -1;
        if (low < 0xdc00 || low >= 0xe000) return fail_at(p, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        p->at += 6;
    }
    *out = put_utf8(*out, code);
    return VLP_OK;
}

static vlp_status parse_escape(parser *p, char **out) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char letter = p->at < p->size ? p->text[p->at] : '\0';
    if (letter == 'u') {
        p->at++;
        return parse_code(p, out);
    }
    const char *found = letter ? strchr(letters, letter) : NULL;
    if (!found) return fail_at(p, "an invalid escape");
    *(*out)++ = meant[found - letters];
    p->at++;
    return VLP_OK;
}

static vlp_status parse_string(parser *p, const char **out) {
    *out = "";
    VLP_TRY(expect(p, '"', "a string in quotes is expected"));
    p->string_at = p->at;
    char *start = p->file->strings + p->strings_used, *end = start;
    for (;;) {
        if (p->at == p->size) return fail_at(p, "an unterminated string");
        char byte = p->text[p->at];
        if ((unsigned char)byte < 0x20) return fail_at(p, "a control character in a string");
        p->at++;
        if (byte == '"') break;
        if (byte == '\\')
            VLP_TRY(parse_escape(p, &end));
        else
            *end++ = byte;
    }
    *end++ = '\0';
    p->strings_used = (size_t)(end - p->file->strings);
    assert(p->strings_used <= p->size);
    *out = start;
    return VLP_OK;
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static vlp_status parse_integer(parser *p, int64_t *out) {
    if (!is_digit(peek(p))) return fail_at(p, "a whole number from 0 is expected");
    if (p->text[p->at] == '0' && p->size - p->at > 1 && is_digit(p->text[p->at + 1]))
        return fail_at(p, "a number that starts with 0");
    int64_t value = 0;
    for (; p->at < p->size && is_digit(p->text[p->at]); p->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, p->text[p->at] - '0', &value))
            return fail_at(p, "a number too large");
    *out = value;
    return VLP_OK;
}

/* Advances to the next key of an object, after its brace, and past the colon; *key is NULL at the end.
 */
static vlp_status next_member(parser *p, bool first, const char **key) {
    *key = NULL;
    if (peek(p) == '}') {
        p->at++;
        return VLP_OK;
    }
    if (!first) VLP_TRY(expect(p, ',', "',' or '}' is expected"));
    VLP_TRY(parse_string(p, key));
    return expect(p, ':', "':' is expected");
}

/* A list of at most `limit` numbers; *count is their number. */
static vlp_status parse_list(parser *p, int64_t *out, int32_t limit, int32_t *count) {
    VLP_TRY(expect(p, '[', "'[' is expected"));
    *count = 0;
    if (peek(p) == ']') {
        p->at++;
        return VLP_OK;
    }
    for (;;) {
        if (*count == limit) return fail_at(p, "the list is too long");
        VLP_TRY(parse_integer(p, &out[(*count)++]));
        if (peek(p) == ']') break;
        VLP_TRY(expect(p, ',', "',' or ']' is expected"));
    }
    p->at++;
    return VLP_OK;
}

/* ---- The header ---------------------------------------------------------------------------------- */

static vlp_status fail_tensor(const parser *p, const char *name, const char *cause) {
    return vlp_fail(VLP_ERROR_FORMAT, "%s: tensor '%s' %s", p->name, vlp_quote(name).text, cause);
}

static vlp_status parse_type(parser *p, vlp_tensor *tensor) {
    const char *type;
    VLP_TRY(parse_string(p, &type));
    if (vlp_tensor_type_find(&tensor->type, type)) return VLP_OK;
    return vlp_fail(
        VLP_ERROR_FORMAT,
        "%s: tensor '%s' is of type '%s', which is not supported (F32, F64, I32, I64, U8 and "
        "BF16 are)",
        p->name, vlp_quote(tensor->name).text, vlp_quote(type).text);
}

/* Sets the data of the tensor, if the offsets match its type and shape. */
static vlp_status place_tensor(const parser *p, vlp_tensor *tensor, const int64_t offsets[2]) {
    int64_t bytes;
    if (!vlp_shape_bytes(&bytes, tensor->dimensions, tensor->shape, vlp_tensor_type_size(tensor->type)))
        return fail_tensor(p, tensor->name, "is too large");
    if (offsets[1] - offsets[0] != bytes)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s: tensor '%s' takes %" PRId64 " bytes, and its offsets are %" PRId64
                        " and %" PRId64,
                        p->name, vlp_quote(tensor->name).text, bytes, offsets[0], offsets[1]);
    if ((uint64_t)offsets[1] > p->data_size)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s: tensor '%s' ends at byte %" PRId64
                        " of the data, and there are %zu; the file is truncated",
                        p->name, vlp_quote(tensor->name).text, offsets[1], p->data_size);
    tensor->data = p->data + offsets[0];
    return VLP_OK;
}

static vlp_status parse_tensor(parser *p, const char *name) {
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    vlp_safetensors *file = p->file;
    vlp_tensor tensor = {.name = name};
    int64_t offsets[2] = {0, 0};
    int32_t count = 0;
    unsigned seen = 0;
    VLP_TRY(expect(p, '{', "'{' is expected"));
    for (const char *key;;) {
        VLP_TRY(next_member(p, seen == 0, &key));
        if (!key) break;
        unsigned kind = strcmp(key, "dtype") == 0          ? DTYPE
                        : strcmp(key, "shape") == 0        ? SHAPE
                        : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                           : 0;
        if (kind == 0 || (seen & kind))
            return vlp_fail(VLP_ERROR_FORMAT, "%s: tensor '%s' has %s '%s'", p->name,
                            vlp_quote(name).text, kind ? "a second" : "an unknown key",
                            vlp_quote(key).text);
        seen |= kind;
        if (kind == DTYPE) VLP_TRY(parse_type(p, &tensor));
        if (kind == SHAPE)
            VLP_TRY(parse_list(p, tensor.shape, VLP_TENSOR_DIMENSIONS, &tensor.dimensions));
        if (kind == OFFSETS) VLP_TRY(parse_list(p, offsets, 2, &count));
    }
    if (seen != ALL) return fail_tensor(p, name, "needs dtype, shape and data_offsets");
    if (count != 2) return fail_tensor(p, name, "needs two data_offsets");
    VLP_TRY(place_tensor(p, &tensor, offsets));
    VLP_TRY(vlp_grow(&file->tensors, &p->tensor_capacity, file->tensor_count + 1, sizeof tensor,
                     "the tensors of a file"));
    file->tensors[file->tensor_count++] = tensor;
    return VLP_OK;
}

static vlp_status parse_metadata(parser *p) {
    if (p->has_metadata) return fail_at(p, "a second " VLP_METADATA_KEY);
    p->has_metadata = true;
    vlp_safetensors *file = p->file;
    VLP_TRY(expect(p, '{', "'{' is expected"));
    for (vlp_pair pair;;) {
        VLP_TRY(next_member(p, file->pair_count == 0, &pair.key));
        if (!pair.key) return VLP_OK;
        VLP_TRY(parse_string(p, &pair.value));
        if (strcmp(pair.key, VLP_CHECKSUM_KEY) == 0) {
            p->checksum = pair.value;
            p->checksum_at = p->string_at;
        }
        VLP_TRY(vlp_grow(&file->pairs, &p->pair_capacity, file->pair_count + 1, sizeof pair,
                         "the metadata of a file"));
        file->pairs[file->pair_count++] = pair;
    }
}

static vlp_status parse_header(parser *p) {
    size_t valid = vlp_utf8_valid_prefix(p->text, p->size);
    if (valid < p->size) {
        p->at = valid;
        return fail_at(p, "not UTF-8");
    }
    if (p->size == 0 || p->text[0] != '{') return fail_at(p, "'{' is expected");
    p->at++;
    bool first = true;
    for (const char *key;; first = false) {
        VLP_TRY(next_member(p, first, &key));
        if (!key) break;
        VLP_TRY(strcmp(key, VLP_METADATA_KEY) == 0 ? parse_metadata(p) : parse_tensor(p, key));
    }
    for (; p->at < p->size; p->at++)
        if (p->text[p->at] != ' ') return fail_at(p, "only spaces may follow the last '}'");
    return VLP_OK;
}

/* ---- The whole ----------------------------------------------------------------------------------- */

/* By position; an empty array precedes the one at the same position; names break ties. */
static int compare_places(const void *left, const void *right) {
    const vlp_tensor *a = left, *b = right;
    if (a->data != b->data) return (const char *)a->data < (const char *)b->data ? -1 : 1;
    bool empty_a = vlp_tensor_bytes(a) == 0, empty_b = vlp_tensor_bytes(b) == 0;
    if (empty_a != empty_b) return empty_a ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int compare_names(const void *left, const void *right) {
    return strcmp((*(const vlp_tensor *const *)left)->name, (*(const vlp_tensor *const *)right)->name);
}

/* Checks that every byte of the data belongs to exactly one tensor. */
static vlp_status check_places(const parser *p) {
    vlp_safetensors *file = p->file;
    qsort(file->tensors, (size_t)file->tensor_count, sizeof *file->tensors, compare_places);
    size_t end = 0;
    for (int32_t i = 0; i < file->tensor_count; i++) {
        const vlp_tensor *tensor = &file->tensors[i];
        size_t begin = (size_t)((const char *)tensor->data - p->data);
        if (begin < end) return fail_tensor(p, tensor->name, "overlaps another one");
        if (begin > end) return fail_tensor(p, tensor->name, "has a gap before it");
        end = begin + vlp_tensor_bytes(tensor);
    }
    if (end == p->data_size) return VLP_OK;
    return vlp_fail(VLP_ERROR_FORMAT, "%s: the tensors end at byte %zu of the data, and there are %zu",
                    p->name, end, p->data_size);
}

static vlp_status index_names(const parser *p) {
    vlp_safetensors *file = p->file;
    file->by_name = vlp_alloc((size_t)file->tensor_count, sizeof *file->by_name);
    if (!file->by_name) return vlp_fail_memory("the tensors of a file");
    for (int32_t i = 0; i < file->tensor_count; i++) file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, (size_t)file->tensor_count, sizeof *file->by_name, compare_names);
    for (int32_t i = 1; i < file->tensor_count; i++)
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            return fail_tensor(p, file->by_name[i]->name, "appears twice");
    qsort(file->pairs, (size_t)file->pair_count, sizeof *file->pairs, vlp_pair_compare);
    for (int32_t i = 1; i < file->pair_count; i++)
        if (strcmp(file->pairs[i - 1].key, file->pairs[i].key) == 0)
            return vlp_fail(VLP_ERROR_FORMAT, "%s: metadata '%s' appears twice", p->name,
                            vlp_quote(file->pairs[i].key).text);
    return VLP_OK;
}

static vlp_status check_checksum(const parser *p, vlp_checksum_rule rule) {
    if (rule == VLP_CHECKSUM_IGNORED) return VLP_OK;
    if (!p->checksum && rule == VLP_CHECKSUM_VERIFIED) return VLP_OK;
    if (!p->checksum)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: damaged (it has no checksum " VLP_CHECKSUM_KEY ")",
                        p->name);
    /* The digits are in the header unescaped; the writer never escapes them. */
    bool fits = strlen(p->checksum) == VLP_CHECKSUM_DIGITS &&
                memcmp(p->checksum, p->text + p->checksum_at, VLP_CHECKSUM_DIGITS) == 0;
    if (fits) {
        char digits[VLP_CHECKSUM_DIGITS + 1];
        vlp_checksum_compute(digits, p->text, p->size, p->checksum_at, p->file->tensors,
                             p->file->tensor_count);
        fits = strcmp(digits, p->checksum) == 0;
    }
    if (fits) return VLP_OK;
    return vlp_fail(VLP_ERROR_FORMAT, "%s: damaged (the checksum does not match)", p->name);
}

static bool is_aligned(const vlp_tensor *tensor) {
    return (uintptr_t)tensor->data % vlp_tensor_type_size(tensor->type) == 0;
}

/* The format does not require alignment, but C does. Unaligned arrays, which most writers avoid, are
 * copied. */
static vlp_status align_tensors(vlp_safetensors *file) {
    const size_t unit = 8;
    size_t needed = 0;
    for (int32_t i = 0; i < file->tensor_count; i++)
        if (!is_aligned(&file->tensors[i]))
            needed += (vlp_tensor_bytes(&file->tensors[i]) / unit + 1) * unit;
    if (needed == 0) return VLP_OK;
    char *at = file->copies = vlp_alloc(needed, 1);
    if (!at) return vlp_fail_memory("unaligned tensors");
    for (int32_t i = 0; i < file->tensor_count; i++) {
        vlp_tensor *tensor = &file->tensors[i];
        if (is_aligned(tensor)) continue;
        size_t bytes = vlp_tensor_bytes(tensor);
        memcpy(at, tensor->data, bytes);
        tensor->data = at;
        at += (bytes / unit + 1) * unit;
    }
    return VLP_OK;
}

/* Locates header and data in a file. */
static vlp_status split_file(parser *p, const char *data, size_t size) {
    uint64_t length;
    if (size < sizeof length)
        return vlp_fail(VLP_ERROR_FORMAT, "%s: %zu bytes are not a safetensors file", p->name, size);
    memcpy(&length, data, sizeof length);
    if (length > VLP_HEADER_LIMIT)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s: a header of %" PRIu64
                        " bytes; this is not a safetensors file, or it is damaged",
                        p->name, length);
    if (length > size - sizeof length)
        return vlp_fail(VLP_ERROR_FORMAT,
                        "%s: a header of %" PRIu64 " bytes, and %zu are there; the file is truncated",
                        p->name, length, size - sizeof length);
    p->text = data + sizeof length;
    p->size = length;
    p->data = p->text + length;
    p->data_size = size - sizeof length - length;
    return VLP_OK;
}

vlp_status vlp_safetensors_parse(vlp_safetensors **out, const char *name, const void *data, size_t size,
                                 vlp_checksum_rule rule) {
    *out = NULL;
    parser p = {.name = name};
    VLP_TRY(split_file(&p, data, size));
    vlp_safetensors *file = vlp_alloc_zero(1, sizeof *file);
    if (!file) return vlp_fail_memory("a file");
    p.file = file;
    vlp_status status = VLP_OK;
    file->name = vlp_string_copy(name);
    file->strings = vlp_alloc(p.size, 1);
    if (!file->name || !file->strings) {
        status = vlp_fail_memory("the header of a file");
        goto out;
    }
    /* Not NULL even if empty, as the C library requires for qsort. */
    VLP_CHECK(vlp_grow(&file->tensors, &p.tensor_capacity, 1, sizeof *file->tensors, "tensors"));
    VLP_CHECK(vlp_grow(&file->pairs, &p.pair_capacity, 1, sizeof *file->pairs, "metadata"));
    VLP_CHECK(parse_header(&p));
    VLP_CHECK(check_places(&p));
    VLP_CHECK(index_names(&p));
    VLP_CHECK(check_checksum(&p, rule));
    VLP_CHECK(align_tensors(file));
out:
    if (status == VLP_OK)
        *out = file;
    else
        vlp_safetensors_free(file);
    return status;
}
