/* The list of backends. CUDA's is a library of its own, loaded on demand, so that the same program runs
 * on machines without GPU or CUDA. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/library.h"
#include "compute/backend.h"

static const char library[] = "libvlp_cuda.so";
static const char variable[] = "VLP_CUDA_LIBRARY";
#ifndef VLP_LIBDIR
#define VLP_LIBDIR "/usr/local/lib"
#endif

/* The result of loading it, once per process: CUDA libraries cannot be unloaded and loaded again. */
static struct {
    const vlp_backend *backend;
    vlp_status status;
    char message[512];
} loaded;

static vlp_status fail_message(vlp_status status, const char *message) {
    return vlp_fail(status, "%s", message);
}

/* ---- Completeness -------------------------------------------------------------------------------- */

/* A subtable holds function pointers and nothing else. */
typedef void (*any_function)(void);

static bool is_filled(const void *table, size_t bytes) {
    if (!table) return false;
    for (size_t at = 0; at < bytes; at += sizeof(any_function)) {
        any_function function;
        memcpy(&function, (const char *)table + at, sizeof function);
        if (!function) return false;
    }
    return true;
}

bool vlp_backend_is_complete(const vlp_backend *backend) {
#define FILLED(member) is_filled(backend->member, sizeof *backend->member)
    return backend->name && backend->stride > 0 && backend->tile > 0 && backend->probe &&
           backend->open && backend->close && FILLED(memory) && FILLED(steps) && FILLED(blas) &&
           FILLED(rows) && FILLED(transform) && FILLED(pairs) && FILLED(sample) && FILLED(loss) &&
           FILLED(scores) && FILLED(aggregator) && FILLED(optimizer) && FILLED(rank) && FILLED(select) &&
           (!backend->bf16 || FILLED(bf16)) && (!backend->paths || FILLED(paths));
#undef FILLED
}

/* ---- Finding the library ------------------------------------------------------------------------- */

/* Opens the library in a folder, or in one beside it. */
static void *open_beside(const char *folder, const char *beside) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s%s", folder, beside, library);
    if (length < 0 || (size_t)length >= sizeof path || access(path, R_OK) != 0) return NULL;
    return vlp_library_open(path, NULL, 0);
}

/* Where this code is: the folder of the program or of libvlp.so. */
static bool own_folder(char folder[PATH_MAX]) {
    Dl_info info;
    void *here;
    vlp_status (*function)(const vlp_backend **, const char *) = vlp_backend_find;
    memcpy(&here, &function, sizeof here);
    char path[PATH_MAX];
    bool found = dladdr(here, &info) != 0 && info.dli_fname && strchr(info.dli_fname, '/') &&
                 realpath(info.dli_fname, path);
    if (!found) { /* a program that was found by PATH does not know where */
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        if (length <= 0) return false;
        path[length] = '\0';
    }
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = '\0';
    memcpy(folder, path, strlen(path) + 1);
    return true;
}

static void *open_library(void) {
    const char *named = getenv(variable);
    if (named && *named) return vlp_library_open(named, NULL, 0);
    static const char *const places[] = {"", "../", "../lib/"};
    char folder[PATH_MAX];
    if (own_folder(folder))
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            void *handle = open_beside(folder, places[i]);
            if (handle) return handle;
        }
    return open_beside(VLP_LIBDIR, "");
}

static void set_message(vlp_status status, const char *message) {
    loaded.status = status;
    snprintf(loaded.message, sizeof loaded.message, "%s", message);
}

static void load(void) {
    char message[512];
    void *handle = open_library();
    if (!handle) {
        const char *reason = dlerror();
        snprintf(message, sizeof message,
                 "there is no CUDA backend: %s (%s); build vlp where nvcc is, or name the library in %s",
                 library, reason ? reason : "not found beside the program", variable);
        set_message(VLP_ERROR_DEVICE, message);
        return;
    }
    vlp_backend_load_function start = NULL;
    void *symbol = dlsym(handle, "vlp_backend_load");
    memcpy(&start, &symbol, sizeof start);
    const vlp_backend *backend = start ? start(VLP_BACKEND_VERSION, fail_message) : NULL;
    if (!backend || !vlp_backend_is_complete(backend)) {
        snprintf(message, sizeof message, "%s is of another version of vlp; build both together",
                 library);
        set_message(VLP_ERROR_DEVICE, message);
        return;
    }
    loaded.status = backend->probe();
    if (loaded.status == VLP_OK)
        loaded.backend = backend;
    else
        set_message(loaded.status, vlp_error_message());
}

/* ---- By name ------------------------------------------------------------------------------------- */

vlp_status vlp_backend_find(const vlp_backend **out, const char *name) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *out = NULL;
    bool any = strcmp(name, "auto") == 0, cuda = strcmp(name, "cuda") == 0;
    if (!any && !cuda && strcmp(name, "cpu") != 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "there is no device '%.40s'; it is auto, cpu or cuda", name);
    if (any || cuda) {
        pthread_once(&once, load);
        if (cuda && !loaded.backend) return vlp_fail(loaded.status, "%s", loaded.message);
    }
    assert(vlp_backend_is_complete(&vlp_cpu_backend));
    *out = (any || cuda) && loaded.backend ? loaded.backend : &vlp_cpu_backend;
    return VLP_OK;
}

vlp_status vlp_fail_device_memory(const vlp_backend *backend, vlp_compute *compute, const char *what,
                                  int64_t needed, const char *advice) {
    int64_t unused, total;
    if (!backend->memory->available(compute, &unused, &total)) return vlp_fail_memory(what);
    double gibibyte = 1 << 30;
    bool host = backend == &vlp_cpu_backend;
    return vlp_fail(VLP_ERROR_MEMORY,
                    "%s memory does not suffice for %s: it takes %.2f GiB, and %.2f of %.2f GiB "
                    "are free; %s%s",
                    host ? "the machine's" : "the GPU's", what, (double)needed / gibibyte,
                    (double)unused / gibibyte, (double)total / gibibyte, advice,
                    host ? "" : ", or use the device cpu");
}

vlp_status vlp_check_device_memory(const vlp_backend *backend, vlp_compute *compute, const char *what,
                                   int64_t needed, const char *advice) {
    int64_t unused, total;
    if (!backend->memory->available(compute, &unused, &total) || needed <= unused) return VLP_OK;
    return vlp_fail_device_memory(backend, compute, what, needed, advice);
}
