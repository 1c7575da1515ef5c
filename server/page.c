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

#define EMBED_FILE(name, path, file, type) EMBED(page_##name, "server/page/" file);
PAGE_FILES(EMBED_FILE)
EMBED(page_description, "server/openapi.json");

bool page_find(page_file *out, const char *path) {
    static const struct {
        const char *path, *type, *start, *end;
    } files[] = {
#define FILE_ROW(name, path, file, type) {path, type, page_##name##_start, page_##name##_end},
        PAGE_FILES(FILE_ROW){"/api/openapi.json", "application/json", page_description_start,
                             page_description_end}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (strcmp(files[i].path, path) != 0) continue;
        *out = (page_file){files[i].type, files[i].start, (size_t)(files[i].end - files[i].start)};
        return true;
    }
    return false;
}
