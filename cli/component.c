#include "component.h"

#include <stdio.h>

const component_words component_words_of[VLP_COMPONENTS] = {
    [VLP_HORIZONTAL] = {"f_g", "f<sub>g</sub>", "f_g alone (horizontal)", "what embeddings memorize",
                        "Loss of the embeddings", 's', 8},
    [VLP_VERTICAL] = {"f_c", "f<sub>c</sub>", "f_c alone (vertical)",
                      "the answers of the nearest known triples of the relation",
                      "Loss of the aggregator", 't', 7},
    [VLP_PATH] = {"f_p", "f<sub>p</sub>", "f_p alone (paths)", "paths of known triples",
                  "Loss of the path model", 'd', 8}};

/* The order of a formula's terms. */
static const vlp_component terms[VLP_COMPONENTS] = {VLP_PATH, VLP_VERTICAL, VLP_HORIZONTAL};

void component_formula(char *text, size_t size, unsigned components, const double *weights, bool html) {
    size_t used = (size_t)snprintf(text, size, "f =");
    bool first = true;
    for (int i = 0; i < VLP_COMPONENTS && used < size; i++) {
        vlp_component c = terms[i];
        const char *name = html ? component_words_of[c].html : component_words_of[c].symbol;
        if (!component_has(components, (int)c) || (first && weights[c] == 0)) continue;
        if (first && weights[c] == 1)
            used += (size_t)snprintf(text + used, size - used, " %s", name);
        else
            used += (size_t)snprintf(text + used, size - used, "%s %.4g %s", first ? "" : " +",
                                     weights[c], name);
        first = false;
    }
}

void component_parts_print(unsigned components, const double *parts) {
    if ((components & (components - 1)) == 0) return;
    const char *gap = "   ";
    for (int i = 0; i < VLP_COMPONENTS; i++) {
        vlp_component c = terms[i];
        if (!component_has(components, (int)c)) continue;
        printf("%s%s %*.4f", gap, component_words_of[c].symbol, component_words_of[c].columns, parts[c]);
        gap = "  ";
    }
}
