#include "support.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

const char *support_folder(void) {
    static char names[8][32];
    static int next;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], "/tmp/vlp-test-XXXXXX");
    assert_non_null(mkdtemp(name));
    return name;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place) {
    (void)info, (void)type, (void)place;
    return remove(path);
}

void support_remove(const char *folder) {
    assert_int_equal(nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

const char *support_path(const char *folder, const char *name) {
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void support_write(const char *folder, const char *name, const void *data, size_t size) {
    FILE *file = fopen(support_path(folder, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void support_write_text(const char *folder, const char *name, const char *text) {
    support_write(folder, name, text, strlen(text));
}

void support_write_gzip(const char *folder, const char *name, const void *data, size_t size) {
    gzFile file = gzopen(support_path(folder, name), "wb");
    assert_non_null(file);
    if (size > 0) assert_int_equal(gzwrite(file, data, (unsigned)size), (int)size);
    assert_int_equal(gzclose(file), Z_OK);
}

char *support_read(const char *folder, const char *name) {
    FILE *file = fopen(support_path(folder, name), "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, size, file), size);
    text[size] = '\0';
    fclose(file);
    return text;
}

int support_count(const char *folder) {
    DIR *handle = opendir(folder);
    assert_non_null(handle);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(handle));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(handle);
    return count;
}

const char *support_family(int32_t families, int32_t generations) {
    static char folder[64];
    if (folder[0]) return folder;
    snprintf(folder, sizeof folder, "%s/people", support_folder());
    vlp_family_options options = VLP_FAMILY_OPTIONS_INIT;
    options.families = families;
    options.generations = generations;
    assert_int_equal(vlp_family_generate(NULL, folder, &options), VLP_OK);
    return folder;
}
