#include "html.h"
#include "text.h"

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
        uint32_t value = text_next(text, &length);
        put_character(out->stream, value, text, length);
    }
}

void html_text_short(html_out *out, const char *text, int columns) {
    if (text_columns(text) <= columns) {
        html_text(out, text);
        return;
    }
    int used = 1; /* the ellipsis */
    for (int length; *text; text += length) {
        uint32_t value = text_next(text, &length);
        used += text_columns_of(value);
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
