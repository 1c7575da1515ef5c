#include "page.h"

#include <string.h>

/* Puts a file into the read-only data, between NAME_start and NAME_end. */
#define EMBED(name, file)                                                                               \
    __asm__(".pushsection .rodata\n"                                                                    \
            ".hidden " #name "_start, " #name "_end\n"                                                  \
            ".global " #name "_start, " #name "_end\n" #name "_start:\n"                                \
            ".incbin \"" file "\"\n" #name "_end:\n"                                                    \
            ".byte 0\n"                                                                                 \
            ".popsection\n");                                                                           \
    extern const char name##_start[], name##_end[]

EMBED(page_index, "server/page/index.html");
EMBED(page_script, "server/page/app.js");
EMBED(page_style, "server/page/style.css");
EMBED(page_icon, "server/page/icon.svg");
EMBED(page_description, "server/openapi.json");

bool page_find(page_file *out, const char *path) {
    static const struct {
        const char *path, *type, *start, *end;
    } files[] = {
        {"/", "text/html; charset=utf-8", page_index_start, page_index_end},
        {"/app.js", "text/javascript; charset=utf-8", page_script_start, page_script_end},
        {"/style.css", "text/css; charset=utf-8", page_style_start, page_style_end},
        {"/icon.svg", "image/svg+xml", page_icon_start, page_icon_end},
        {"/api/openapi.json", "application/json", page_description_start, page_description_end}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (strcmp(files[i].path, path) != 0) continue;
        *out = (page_file){files[i].type, files[i].start, (size_t)(files[i].end - files[i].start)};
        return true;
    }
    return false;
}
