/* N-Triples: compares the parser, including its errors, with a reference parser by the grammar; what was
 * read is written and read again. */
#include "statements.h"

UNCOUNTED_BEGIN

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_statements(&(vlp_record_format){.parser = vlp_parse_ntriples}, data, size, false);
    return 0;
}

UNCOUNTED_END
