/* A folder that appears whole: its files are written into a hidden folder beside the final place, which
 * is renamed at the end. A crash leaves the final place as it was. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

struct vlp_staging {
    char *path, *temporary;
};

/* VLP_OK for a path that does not exist or is an empty folder. */
static vlp_status check_free(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) {
        if (errno == ENOENT) return VLP_OK;
        if (errno == ENOTDIR) return vlp_fail(VLP_ERROR_EXISTS, "cannot write %s: it is a file", path);
        return vlp_fail_io("write", path, errno);
    }
    vlp_status status = VLP_OK;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            status =
                vlp_fail(VLP_ERROR_EXISTS,
                         "cannot write %s: the folder is not empty; name a new one or empty it", path);
            break;
        }
    closedir(folder);
    return status;
}

vlp_status vlp_staging_open(vlp_staging **out, const char *path) {
    *out = NULL;
    vlp_staging *staging = vlp_alloc_zero(1, sizeof *staging);
    if (!staging) return vlp_fail_memory("a folder writer");
    vlp_status status = VLP_OK;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    staging->path = vlp_alloc(length + 1, 1);
    char *temporary = vlp_alloc(length + 32, 1);
    if (!staging->path || !temporary) {
        status = vlp_fail_memory("a folder name");
        goto out;
    }
    memcpy(staging->path, path, length);
    staging->path[length] = '\0';
    VLP_CHECK(check_free(staging->path));
    snprintf(temporary, length + 32, "%s.partial-%ld", staging->path, (long)getpid());
    if (mkdir(temporary, 0777) != 0) {
        status = vlp_fail_io("write", staging->path, errno);
        goto out;
    }
    staging->temporary = temporary; /* from here on it is ours to remove */
    temporary = NULL;
out:
    vlp_free(temporary);
    if (status != VLP_OK) {
        vlp_staging_free(staging);
        return status;
    }
    *out = staging;
    return VLP_OK;
}

vlp_status vlp_staging_writer(vlp_writer **out, vlp_staging *staging, const char *name) {
    *out = NULL;
    char *path = vlp_path_join(staging->temporary, name);
    char *shown = vlp_path_join(staging->path, name);
    vlp_status status =
        path && shown ? vlp_writer_open_as(out, path, shown) : vlp_fail_memory("a file name");
    vlp_free(path);
    vlp_free(shown);
    return status;
}

vlp_status vlp_staging_commit(vlp_staging **handle) {
    vlp_staging *staging = *handle;
    *handle = NULL;
    vlp_status status = VLP_OK;
    /* rename(2) replaces an empty folder by itself. */
    if (rename(staging->temporary, staging->path) != 0) {
        status = vlp_fail_io("write", staging->path, errno);
    } else {
        vlp_free(staging->temporary);
        staging->temporary = NULL;
    }
    vlp_staging_free(staging);
    return status;
}

static void remove_folder(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(path);
}

void vlp_staging_free(vlp_staging *staging) {
    if (!staging) return;
    if (staging->temporary) remove_folder(staging->temporary);
    vlp_free(staging->temporary);
    vlp_free(staging->path);
    vlp_free(staging);
}
