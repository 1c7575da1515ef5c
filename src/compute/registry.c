/* The backends there are. */
#include <string.h>

#include "compute/backend.h"

vlp_status vlp_backend_find(const vlp_backend **out, const char *name) {
    *out = NULL;
    if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0) {
        *out = &vlp_cpu_backend;
        return VLP_OK;
    }
    return vlp_fail(VLP_ERROR_ARGUMENT, "there is no device '%.40s'; it is auto or cpu", name);
}
