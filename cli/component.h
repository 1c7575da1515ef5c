/* How the program names the components of a score. */
#ifndef VLP_CLI_COMPONENT_H
#define VLP_CLI_COMPONENT_H

#include "results_json.h"
#include "vlp.h"

typedef struct component_words {
    const char *symbol; /* "f_g" */
    const char *html;   /* the same as markup */
    const char *alone;  /* a row of its metrics alone */
    const char *means;  /* what it scores by, for the report */
    const char *curve;  /* the title of its loss */
    char mark;          /* of a chart */
    int columns;        /* of a score as text */
} component_words;

extern const component_words component_words_of[VLP_COMPONENTS];

static inline bool component_has(unsigned components, int component) {
    return components >> component & 1;
}

/* "f = f_c + 0.3 f_g", as text or as markup. */
void component_formula(char *text, size_t size, unsigned components, const double *weights, bool html);

/* "   f_c  0.5123  f_g   3.2100": the scores by component, where there are several. */
void component_parts_print(unsigned components, const double *parts);

#endif
