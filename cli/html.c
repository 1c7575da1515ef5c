#include "html.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The file ------------------------------------------------------------------------------------ */

static bool complain(const char *path, int code) {
    fprintf(stderr, "vlp: cannot write %s: %s\n", path, strerror(code));
    return false;
}

bool html_open(html_out *out, const char *path) {
    *out = (html_out){0};
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        fprintf(stderr, "vlp: cannot write %s: it is there and no ordinary file; name another\n", path);
        return false;
    }
    size_t size = strlen(path) + 32;
    out->path = strdup(path);
    out->beside = calloc(size, 1);
    if (!out->path || !out->beside) {
        html_drop(out);
        return complain(path, ENOMEM);
    }
    snprintf(out->beside, size, "%s.partial-%ld", path, (long)getpid());
    int file = open(out->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int code = errno;
    if (file >= 0) {
        out->stream = fdopen(file, "w");
        code = errno;
        if (!out->stream) close(file);
    }
    if (!out->stream) {
        if (file < 0) out->beside[0] = '\0'; /* there is nothing to remove */
        html_drop(out);
        return complain(path, code);
    }
    return true;
}

/* Makes the rename last. A file system that cannot sync folders is no failure. */
static void sync_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    int file = open(!slash ? "." : *path ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file >= 0) {
        (void)fsync(file);
        close(file);
    }
    if (slash) *slash = '/';
}

bool html_commit(html_out *out, int64_t *bytes) {
    int code = 0;
    errno = 0;
    if (fflush(out->stream) != 0 || ferror(out->stream)) code = errno ? errno : EIO;
    *bytes = (int64_t)ftello(out->stream);
    if (!code && fsync(fileno(out->stream)) != 0 && errno != EINVAL) code = errno;
    if (fclose(out->stream) != 0 && !code) code = errno;
    out->stream = NULL;
    if (!code && rename(out->beside, out->path) != 0) code = errno;
    if (code) {
        complain(out->path, code);
    } else {
        out->beside[0] = '\0';
        sync_folder(out->path);
    }
    html_drop(out);
    return code == 0;
}

void html_drop(html_out *out) {
    if (out->stream) fclose(out->stream);
    if (out->beside && out->beside[0]) unlink(out->beside);
    free(out->beside);
    free(out->path);
    *out = (html_out){0};
}

/* ---- Text ---------------------------------------------------------------------------------------- */

void html_put(html_out *out, const char *markup) {
    fputs(markup, out->stream);
}

void html_print(html_out *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(out->stream, format, arguments);
    va_end(arguments);
}

/* The next character and how many bytes it takes; U+FFFD for a byte that begins none. */
static uint32_t next_character(const char *text, int *length) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text[0];
    int bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    *length = 1;
    if (bytes == 1) return first;
    if (bytes == 0) return 0xfffd;
    uint32_t value = first & (0x7fu >> bytes);
    for (int i = 1; i < bytes; i++) {
        unsigned char byte = (unsigned char)text[i]; /* the end of the text is no continuation either */
        if (byte >> 6 != 2) return 0xfffd;
        value = value << 6 | (byte & 0x3fu);
    }
    if (value < least[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0xfffd;
    *length = bytes;
    return value;
}

/* Controls and the code points that are no characters are errors in HTML. */
static bool forbidden(uint32_t value) {
    return (value < 0x20 && value != '\t' && value != '\n') || (value >= 0x7f && value < 0xa0) ||
           (value >= 0xfdd0 && value <= 0xfdef) || (value & 0xfffe) == 0xfffe;
}

static void put_character(FILE *stream, uint32_t value, const char *bytes, int length) {
    switch (value) {
    case '&':
        fputs("&amp;", stream);
        return;
    case '<':
        fputs("&lt;", stream);
        return;
    case '>':
        fputs("&gt;", stream);
        return;
    case '"':
        fputs("&quot;", stream);
        return;
    case '\'':
        fputs("&#39;", stream);
        return;
    default:
        if (value == 0xfffd || forbidden(value))
            fputs("\xef\xbf\xbd", stream);
        else
            fwrite(bytes, 1, (size_t)length, stream);
    }
}

void html_text(html_out *out, const char *text) {
    for (int length; *text; text += length) {
        uint32_t value = next_character(text, &length);
        put_character(out->stream, value, text, length);
    }
}

static int columns_of(uint32_t value) {
    if ((value >= 0x300 && value < 0x370) || value == 0x200d || (value >= 0xfe00 && value < 0xfe10))
        return 0; /* combining marks, joiner, variation selectors */
    bool wide = (value >= 0x1100 && value < 0x1160) || (value >= 0x2e80 && value < 0xd7a4) ||
                (value >= 0xf900 && value < 0xfb00) || (value >= 0xff00 && value < 0xff61) ||
                (value >= 0x1f300 && value < 0x1fb00) || (value >= 0x20000 && value < 0x3fffe);
    return wide ? 2 : 1;
}

int html_columns(const char *text) {
    int columns = 0;
    for (int length; *text; text += length) columns += columns_of(next_character(text, &length));
    return columns;
}

void html_text_short(html_out *out, const char *text, int columns) {
    if (html_columns(text) <= columns) {
        html_text(out, text);
        return;
    }
    int used = 1; /* the ellipsis */
    for (int length; *text; text += length) {
        uint32_t value = next_character(text, &length);
        used += columns_of(value);
        if (used > columns) break;
        put_character(out->stream, value, text, length);
    }
    html_put(out, "…");
}

void html_name(html_out *out, const char *text) {
    html_put(out, "<bdi>");
    html_text(out, text);
    html_put(out, "</bdi>");
}

void html_number(html_out *out, double value, int digits) {
    if (isfinite(value))
        html_print(out, "%s%.*f", value < 0 ? "−" : "", digits, fabs(value));
    else
        html_put(out, "–");
}

void html_signed(html_out *out, double value, int digits) {
    if (isfinite(value))
        html_print(out, "%s%.*f", value < 0 ? "−" : "+", digits, fabs(value));
    else
        html_put(out, "–");
}
