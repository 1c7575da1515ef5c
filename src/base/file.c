#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

char *vlp_path_join(const char *folder, const char *name) {
    size_t length = strlen(folder);
    const char *separator = length > 0 && folder[length - 1] == '/' ? "" : "/";
    size_t size = length + strlen(separator) + strlen(name) + 1;
    char *path = vlp_alloc(size, 1);
    if (path) snprintf(path, size, "%s%s%s", folder, separator, name);
    return path;
}

bool vlp_path_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* ---- Opening ------------------------------------------------------------------------------------- */

/* Whether a path names an inherited file descriptor: standard input, or a shell's process
 * substitution. */
static bool names_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0) return true;
    return strcmp(path, "/dev/stdin") == 0;
}

/* Opening a FIFO blocks until it has a writer, and a device may have no end. */
vlp_status vlp_input_open(int *out, struct stat *info, const char *path, bool streams) {
    vlp_status status = VLP_OK;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return vlp_fail_io("open", path, errno);
    if (fstat(file, info) != 0)
        status = vlp_fail_io("read", path, errno);
    else if (S_ISDIR(info->st_mode))
        status = vlp_fail_io("read", path, EISDIR);
    else if (!S_ISREG(info->st_mode) && !(streams && names_descriptor(path)))
        status = vlp_fail(VLP_ERROR_IO, "cannot read %s: not a regular file", path);
    else if (!S_ISREG(info->st_mode) && fcntl(file, F_SETFL, 0) != 0) /* reads block again */
        status = vlp_fail_io("read", path, errno);
    if (status != VLP_OK) {
        close(file);
        return status;
    }
    *out = file;
    return VLP_OK;
}

/* ---- Mapping ------------------------------------------------------------------------------------- */

vlp_status vlp_map_open(vlp_map *map, const char *path) {
    *map = (vlp_map){"", 0};
    int file = -1;
    struct stat info;
    VLP_TRY(vlp_input_open(&file, &info, path, false));
    vlp_status status = VLP_OK;
    if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED)
            status = vlp_fail_io("map", path, errno);
        else
            *map = (vlp_map){data, (size_t)info.st_size};
    }
    close(file);
    return status;
}

void vlp_map_close(vlp_map *map) {
    if (map->size > 0) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (vlp_map){"", 0};
}
