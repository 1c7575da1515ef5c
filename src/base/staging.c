/* Atomic creation of a folder: its files are written into a temporary folder beside the target, which
 * is renamed at the end. A crash leaves the target unchanged. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

struct vlp_staging {
    char *path, *temporary;
};

/* ---- Removing ------------------------------------------------------------------------------------ */

/* Removes a folder of files. Anything else under that name is left, also a link to a folder. */
static void remove_folder(int parent, const char *name) {
    int file = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return;
    DIR *folder = fdopendir(file);
    if (!folder) {
        close(file);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(file, entry->d_name, 0);
    closedir(folder);
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Removes the temporary folders of processes that were killed while they wrote the same target. Failures
 * are ignored: leftovers do not hinder the work. */
static void sweep(const char *path) {
    int parent = vlp_parent_open(path);
    if (parent < 0) return;
    DIR *folder = fdopendir(parent);
    if (!folder) {
        close(parent);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(folder));) {
        long process = vlp_temporary_process(entry->d_name, path);
        if (process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH)
            remove_folder(parent, entry->d_name);
    }
    closedir(folder);
}

/* ---- Creating ------------------------------------------------------------------------------------ */

/* VLP_OK if the folder is empty. */
static vlp_status check_empty(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return vlp_fail_io("write", path, errno);
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

/* Removes trailing slashes, so that the temporary name is a sibling of the target. */
static char *without_slashes(const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    char *copy = vlp_alloc(length + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, path, length);
    copy[length] = '\0';
    return copy;
}

static vlp_status check_target(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0) {
        if (errno != ENOENT || !*path) return vlp_fail_io("write", path, errno);
    } else if (S_ISLNK(info.st_mode)) {
        return vlp_fail(VLP_ERROR_EXISTS,
                        "cannot write %s: it is a symbolic link; name the folder itself", path);
    } else if (!S_ISDIR(info.st_mode)) {
        return vlp_fail(VLP_ERROR_EXISTS, "cannot write %s: it is a file", path);
    } else {
        VLP_TRY(check_empty(path));
    }
    return vlp_parent_check(path, path);
}

vlp_status vlp_staging_check(const char *path) {
    char *target = without_slashes(path);
    if (!target) return vlp_fail_memory("a folder name");
    vlp_status status = check_target(target);
    vlp_free(target);
    return status;
}

/* Creates the temporary folder under an unused name. */
static vlp_status make_temporary(vlp_staging *staging) {
    for (int attempt = 0; attempt < VLP_TEMPORARY_ATTEMPTS; attempt++) {
        char *name = vlp_temporary_name(staging->path, attempt);
        if (!name) return vlp_fail_memory("a folder name");
        if (mkdir(name, 0777) == 0) {
            staging->temporary = name; /* created: to be removed on failure */
            return VLP_OK;
        }
        int code = errno;
        vlp_free(name);
        if (code != EEXIST) return vlp_fail_io("write", staging->path, code);
    }
    return vlp_fail(VLP_ERROR_IO, "cannot write %s: too many temporary folders beside it",
                    staging->path);
}

vlp_status vlp_staging_open(vlp_staging **out, const char *path) {
    *out = NULL;
    vlp_staging *staging = vlp_alloc_zero(1, sizeof *staging);
    if (!staging) return vlp_fail_memory("a folder writer");
    vlp_status status = VLP_OK;
    staging->path = without_slashes(path);
    if (!staging->path) {
        status = vlp_fail_memory("a folder name");
        goto out;
    }
    VLP_CHECK(check_target(staging->path));
    sweep(staging->path);
    VLP_CHECK(make_temporary(staging));
out:
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
    /* rename(2) replaces an empty folder. */
    if (rename(staging->temporary, staging->path) != 0) {
        status = vlp_fail_io("write", staging->path, errno);
    } else {
        vlp_free(staging->temporary); /* renamed: nothing to remove */
        staging->temporary = NULL;
        status = vlp_parent_sync(staging->path, staging->path);
    }
    vlp_staging_free(staging);
    return status;
}

void vlp_staging_free(vlp_staging *staging) {
    if (!staging) return;
    if (staging->temporary) remove_folder(AT_FDCWD, staging->temporary);
    vlp_free(staging->temporary);
    vlp_free(staging->path);
    vlp_free(staging);
}
