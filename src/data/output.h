/* Writing data sets: splitting triples, and the files of a folder. */
#ifndef VLP_DATA_OUTPUT_H
#define VLP_DATA_OUTPUT_H

#include "base/file.h"
#include "graph/reader.h"

/* Splits `all` (without repeated triples) into train, valid and test, each in the order of `all`. The
 * lists are empty at the start; the caller frees them, also on failure. */
vlp_status vlp_divide(vlp_triple_list splits[VLP_SPLITS], const vlp_triple_list *all, int32_t entities,
                      int32_t relations, const vlp_split_options *options);

typedef struct vlp_output {
    const vlp_dictionary *entities, *relations;
    const vlp_triple_list *splits; /* (VLP_SPLITS); an empty valid or test gets no file */
    /* (entities), (relations) the text after the name in labels.tsv: "label" or
     * "label<TAB>description". Items may be NULL, and so may the arrays. */
    const char *const *labels, *const *relation_labels;
} vlp_output;

/* Writes train.txt, valid.txt, test.txt and labels.tsv into a staging folder and fills the counts of
 * the report (entities, relations, triples, labels). The caller commits. */
vlp_status vlp_output_write(vlp_import_report *report, vlp_staging *staging, const vlp_output *output);

#endif
