/* What makes files last: a file's bytes are synced before it takes its name, and its folder afterwards.
 * The calls of the library are seen here because this program defines the functions itself. */
#include "support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "lab.h"

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

/* ---- What was called ----------------------------------------------------------------------------- */

typedef enum call_kind { SYNC_FILE, SYNC_FOLDER, RENAME } call_kind;

typedef struct call {
    call_kind kind;
    ino_t inode;
    off_t size;
    char to[256]; /* of a rename */
} call;

enum { MAX_CALLS = 4096 };
static call calls[MAX_CALLS];
static int call_count;

static void note(call_kind kind, const struct stat *info, const char *to) {
    assert_true(call_count < MAX_CALLS);
    call *now = &calls[call_count++];
    *now = (call){kind, info->st_ino, info->st_size, ""};
    snprintf(now->to, sizeof now->to, "%s", to);
}

int fsync(int file) {
    struct stat info;
    assert_int_equal(fstat(file, &info), 0);
    note(S_ISDIR(info.st_mode) ? SYNC_FOLDER : SYNC_FILE, &info, "");
    int (*next)(int);
    *(void **)&next = dlsym(RTLD_NEXT, "fsync");
    return next(file);
}

int rename(const char *from, const char *to) {
    struct stat info;
    if (lstat(from, &info) == 0) note(RENAME, &info, to);
    int (*next)(const char *, const char *);
    *(void **)&next = dlsym(RTLD_NEXT, "rename");
    return next(from, to);
}

/* ---- Tests --------------------------------------------------------------------------------------- */

/* More than the writer's buffer holds, so that its last bytes are flushed by the commit. */
static void writer_syncs_then_renames(void **state) {
    (void)state;
    const char *folder = support_folder(), *path = support_path(folder, "file");
    char text[1000];
    memset(text, 'x', sizeof text);
    call_count = 0;
    vlp_writer *writer = NULL;
    must(vlp_writer_open(&writer, path));
    for (int i = 0; i < 100; i++) vlp_writer_bytes(writer, text, sizeof text);
    must(vlp_writer_commit(&writer));
    struct stat file, parent;
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(stat(folder, &parent), 0);
    static const call_kind expected[] = {SYNC_FILE, RENAME, SYNC_FOLDER};
    assert_int_equal(call_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(calls[i].kind, expected[i]);
        assert_int_equal(calls[i].inode, i < 2 ? file.st_ino : parent.st_ino);
        if (i < 2) assert_int_equal(calls[i].size, 100 * sizeof text);
    }
    assert_string_equal(calls[1].to, path);
    support_remove(folder);
}

/* The files and their names are synced before the folder is renamed, and its parent folder afterwards.
 */
static void staging_syncs_then_renames(void **state) {
    (void)state;
    const char *parent = support_folder(), *path = support_path(parent, "new");
    call_count = 0;
    vlp_staging *staging = NULL;
    vlp_writer *writer = NULL;
    must(vlp_staging_open(&staging, path));
    must(vlp_staging_writer(&writer, staging, "file"));
    vlp_writer_text(writer, "text");
    must(vlp_writer_commit(&writer));
    must(vlp_staging_commit(&staging));
    struct stat file, folder, above;
    assert_int_equal(stat(support_path(path, "file"), &file), 0);
    assert_int_equal(stat(path, &folder), 0);
    assert_int_equal(stat(parent, &above), 0);
    static const call_kind expected[] = {SYNC_FILE, RENAME, SYNC_FOLDER, RENAME, SYNC_FOLDER};
    const ino_t inodes[] = {file.st_ino, file.st_ino, folder.st_ino, folder.st_ino, above.st_ino};
    assert_int_equal(call_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(calls[i].kind, expected[i]);
        assert_int_equal(calls[i].inode, inodes[i]);
    }
    assert_string_equal(calls[3].to, path);
    support_remove(parent);
}

/* Whether the file of a rename was synced before, with the size it then has. */
static bool is_synced(int at) {
    for (int i = 0; i < at; i++)
        if (calls[i].kind == SYNC_FILE && calls[i].inode == calls[at].inode &&
            calls[i].size == calls[at].size)
            return true;
    return false;
}

/* Every file that a training leaves under its name. */
static void training_syncs_then_renames(void **state) {
    (void)state;
    const char *folder = support_folder(), *run = support_path(folder, "run");
    const char *const settings[] = {"steps=12", "batch=16",  "negatives=4",  "dim=4",
                                    "seed=1",   "threads=2", "save_every=3", "eval_every=3"};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    options.device = lab_device();
    const char *data = support_family(3, 2);
    call_count = 0;
    must(vlp_train(NULL, data, run, &options));
    int renames = 0, last_rename = 0, last_sync = 0, states = 0;
    for (int i = 0; i < call_count; i++) {
        if (calls[i].kind == SYNC_FOLDER) last_sync = i;
        if (calls[i].kind != RENAME) continue;
        if (!is_synced(i)) fail_msg("%s was not synced before it took its name", calls[i].to);
        last_rename = i;
        renames++;
        states += strstr(calls[i].to, "/state.safetensors") != NULL;
    }
    assert_int_equal(states, 4);
    assert_true(renames > states);
    assert_true(last_sync > last_rename);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writer_syncs_then_renames),
        cmocka_unit_test(staging_syncs_then_renames),
        cmocka_unit_test(training_syncs_then_renames),
    };
    return cmocka_run_group_tests_name("durable", tests, NULL, NULL);
}
