/* The files of the page and the OpenAPI description, which are part of the program. */
#ifndef VLP_SERVER_PAGE_H
#define VLP_SERVER_PAGE_H

#include <stdbool.h>
#include <stddef.h>

/* The files of the page in server/page: a word for the symbol, the address, the file, the type. */
#define PAGE_FILES(FILE)                                                                                \
    FILE(index, "/", "index.html", "text/html; charset=utf-8")                                          \
    FILE(answers, "/answers.js", "answers.js", "text/javascript; charset=utf-8")                        \
    FILE(api, "/api.js", "api.js", "text/javascript; charset=utf-8")                                    \
    FILE(app, "/app.js", "app.js", "text/javascript; charset=utf-8")                                    \
    FILE(ask, "/ask.js", "ask.js", "text/javascript; charset=utf-8")                                    \
    FILE(chart, "/chart.js", "chart.js", "text/javascript; charset=utf-8")                              \
    FILE(combobox, "/combobox.js", "combobox.js", "text/javascript; charset=utf-8")                     \
    FILE(dom, "/dom.js", "dom.js", "text/javascript; charset=utf-8")                                    \
    FILE(facts, "/facts.js", "facts.js", "text/javascript; charset=utf-8")                              \
    FILE(layout, "/layout.js", "layout.js", "text/javascript; charset=utf-8")                           \
    FILE(map, "/map.js", "map.js", "text/javascript; charset=utf-8")                                    \
    FILE(paths, "/paths.js", "paths.js", "text/javascript; charset=utf-8")                              \
    FILE(run, "/run.js", "run.js", "text/javascript; charset=utf-8")                                    \
    FILE(status, "/status.js", "status.js", "text/javascript; charset=utf-8")                           \
    FILE(theme, "/theme.js", "theme.js", "text/javascript; charset=utf-8")                              \
    FILE(why, "/why.js", "why.js", "text/javascript; charset=utf-8")                                    \
    FILE(style, "/style.css", "style.css", "text/css; charset=utf-8")                                   \
    FILE(icon, "/icon.svg", "icon.svg", "image/svg+xml")

typedef struct page_file {
    const char *type, *text;
    size_t size;
} page_file;

/* Writes the file with this address to *out; false: there is none. */
bool page_find(page_file *out, const char *path);

#endif
