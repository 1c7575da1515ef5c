/* Files: what writers replace and what they refuse, before the work and after it; what readers open. */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "store/npy.h"
#include "store/safetensors.h"

/* ---- Targets ------------------------------------------------------------------------------------- */

/* What a target may be that is not to be replaced. */
typedef enum target_kind { FOLDER, FIFO, LINK, DANGLING_LINK, TARGET_KINDS } target_kind;

static void make_target(const char *path, const char *other, target_kind kind) {
    switch (kind) {
    case FOLDER:
        assert_int_equal(mkdir(path, 0777), 0);
        break;
    case FIFO:
        assert_int_equal(mkfifo(path, 0666), 0);
        break;
    case LINK:
    case DANGLING_LINK:
        assert_int_equal(symlink(other, path), 0);
        break;
    case TARGET_KINDS:
        break;
    }
}

static mode_t type_of(const char *path) {
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode & S_IFMT;
}

/* A folder with `target` of a kind, and `other`, where a link points to, with "old" in it. */
static const char *folder_with(target_kind kind) {
    const char *folder = support_folder();
    if (kind != DANGLING_LINK) support_write_text(folder, "other", "old");
    make_target(support_path(folder, "target"), support_path(folder, "other"), kind);
    return folder;
}

/* The target is what it was, nothing was written through it, and nothing is left beside it. */
static void expect_untouched(const char *folder, target_kind kind) {
    static const mode_t types[TARGET_KINDS] = {S_IFDIR, S_IFIFO, S_IFLNK, S_IFLNK};
    assert_int_equal(type_of(support_path(folder, "target")), types[kind]);
    assert_int_equal(support_count(folder), kind == DANGLING_LINK ? 1 : 2);
    char *other = support_read(folder, "other");
    if (kind == DANGLING_LINK)
        assert_null(other);
    else
        assert_string_equal(other, "old");
    free(other);
}

static vlp_status write_plain(const char *path) {
    vlp_writer *writer = NULL;
    VLP_TRY(vlp_writer_open(&writer, path));
    vlp_writer_text(writer, "new");
    return vlp_writer_commit(&writer);
}

static vlp_status write_npy(const char *path) {
    vlp_tensor tensor = {"t", VLP_F32, 1, {1, 0, 0, 0}, &(float){1}};
    return vlp_npy_write(path, &tensor);
}

static vlp_status write_safetensors(const char *path) {
    vlp_tensor tensor = {"t", VLP_F32, 1, {1, 0, 0, 0}, &(float){1}};
    return vlp_safetensors_write(path, &tensor, 1, NULL, 0);
}

static vlp_status make_data(const char *path) {
    vlp_family_options options = VLP_FAMILY_OPTIONS_INIT;
    options.families = 1;
    return vlp_family_generate(NULL, path, &options);
}

static void only_regular_files_are_replaced(void **state) {
    (void)state;
    vlp_status (*const writers[])(const char *) = {vlp_writer_check, write_plain, write_npy,
                                                   write_safetensors};
    static const char *const reasons[TARGET_KINDS] = {"it is a folder", "it is not a regular file",
                                                      "it is a symbolic link", "it is a symbolic link"};
    for (size_t w = 0; w < sizeof writers / sizeof *writers; w++)
        for (target_kind kind = 0; kind < TARGET_KINDS; kind++) {
            const char *folder = folder_with(kind);
            assert_int_equal(writers[w](support_path(folder, "target")), VLP_ERROR_IO);
            assert_non_null(strstr(vlp_error_message(), reasons[kind]));
            expect_untouched(folder, kind);
            support_remove(folder);
        }
}

/* What comes into the target's place while the file is written is not replaced either. */
static void targets_are_checked_at_the_commit(void **state) {
    (void)state;
    for (target_kind kind = 0; kind < TARGET_KINDS; kind++) {
        const char *folder = support_folder();
        vlp_writer *writer = NULL;
        assert_int_equal(vlp_writer_open(&writer, support_path(folder, "target")), VLP_OK);
        vlp_writer_text(writer, "new");
        if (kind != DANGLING_LINK) support_write_text(folder, "other", "old");
        make_target(support_path(folder, "target"), support_path(folder, "other"), kind);
        assert_int_equal(vlp_writer_commit(&writer), VLP_ERROR_IO);
        expect_untouched(folder, kind);
        support_remove(folder);
    }
}

static void targets_are_checked_before_the_work(void **state) {
    (void)state;
    const char *folder = support_folder();
    assert_int_equal(vlp_writer_check(support_path(folder, "new")), VLP_OK);
    support_write_text(folder, "old", "old");
    assert_int_equal(vlp_writer_check(support_path(folder, "old")), VLP_OK);
    assert_int_equal(vlp_writer_check(support_path(folder, "none/file")), VLP_ERROR_IO);
    assert_non_null(strstr(vlp_error_message(), "No such file or directory"));
    assert_int_equal(vlp_writer_check(support_path(folder, "old/file")), VLP_ERROR_IO);
    assert_int_equal(vlp_writer_check(support_path(folder, "new/")), VLP_ERROR_IO);
    assert_int_equal(vlp_writer_check(""), VLP_ERROR_IO);
    assert_int_equal(vlp_writer_check("/"), VLP_ERROR_IO);
    if (geteuid() != 0) { /* root may write anywhere */
        assert_int_equal(chmod(folder, 0555), 0);
        assert_int_equal(vlp_writer_check(support_path(folder, "new")), VLP_ERROR_IO);
        assert_non_null(strstr(vlp_error_message(), "Permission denied"));
        assert_int_equal(chmod(folder, 0755), 0);
    }
    support_remove(folder);
}

/* A link where the temporary file would be is neither followed nor removed, and does not stop the work;
 * nor does what a killed process of the same number left behind. */
static void temporary_files_are_new(void **state) {
    (void)state;
    const char *folder = support_folder();
    char name[64];
    snprintf(name, sizeof name, "target.partial-%ld", (long)getpid());
    support_write_text(folder, "other", "old");
    assert_int_equal(symlink(support_path(folder, "other"), support_path(folder, name)), 0);
    assert_int_equal(write_plain(support_path(folder, "target")), VLP_OK);
    char *target = support_read(folder, "target"), *other = support_read(folder, "other");
    assert_string_equal(target, "new");
    assert_string_equal(other, "old");
    assert_int_equal(type_of(support_path(folder, "target")), S_IFREG);
    assert_int_equal(type_of(support_path(folder, name)), S_IFLNK);
    free(target);
    free(other);

    snprintf(name, sizeof name, "data.partial-%ld", (long)getpid());
    assert_int_equal(mkdir(support_path(folder, name), 0777), 0);
    support_write_text(support_path(folder, name), "left", "over");
    assert_int_equal(make_data(support_path(folder, "data")), VLP_OK);
    assert_int_equal(support_count(support_path(folder, name)), 1);
    support_remove(folder);
}

/* A name as long as a name may be leaves no space for a suffix. */
static void long_names_are_written(void **state) {
    (void)state;
    const char *folder = support_folder();
    char name[256], path[512];
    memset(name, 'x', 255);
    name[255] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(write_plain(path), VLP_OK);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(support_count(folder), 1);
    support_remove(folder);
}

/* ---- Folders ------------------------------------------------------------------------------------- */

static void only_empty_folders_are_replaced(void **state) {
    (void)state;
    for (target_kind kind = FIFO; kind < TARGET_KINDS; kind++) {
        const char *folder = folder_with(kind);
        assert_int_equal(vlp_staging_check(support_path(folder, "target")), VLP_ERROR_EXISTS);
        assert_int_equal(make_data(support_path(folder, "target")), VLP_ERROR_EXISTS);
        expect_untouched(folder, kind);
        support_remove(folder);
    }
    const char *folder = support_folder();
    assert_int_equal(mkdir(support_path(folder, "empty"), 0777), 0);
    assert_int_equal(symlink("empty", support_path(folder, "link")), 0);
    assert_int_equal(make_data(support_path(folder, "link")), VLP_ERROR_EXISTS);
    assert_non_null(strstr(vlp_error_message(), "it is a symbolic link"));
    assert_int_equal(make_data(support_path(folder, "empty//")), VLP_OK);
    assert_int_equal(vlp_staging_check(support_path(folder, "empty")), VLP_ERROR_EXISTS);
    assert_non_null(strstr(vlp_error_message(), "not empty"));
    assert_int_equal(support_count(folder), 2);
    support_remove(folder);
}

/* The id of a process that is gone. */
static long gone_process(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return (long)child;
}

/* A new data set sweeps the temporary folders of killed processes that were making the same one, and
 * nothing else. */
static void folders_of_killed_processes_are_swept(void **state) {
    (void)state;
    const char *folder = support_folder();
    const long gone = gone_process(), living = (long)getppid();
    const struct {
        const char *format;
        long process;
        bool swept;
    } cases[] = {{"data.partial-%ld", gone, true},       {"data.partial-%ld-3", gone, true},
                 {"data.partial-%ld", living, false},    {"data.partial-%ld-2", living, false},
                 {"other.partial-%ld", gone, false},     {"data.partial-%ld.old", gone, false},
                 {"data.partial-%ld-x", gone, false},    {"my-data.partial-%ld", gone, false},
                 {"data.partial-0%ld", gone, false},     {"data.partial-%ld--1", gone, false},
                 {"data.partial--%ld", gone, false},     {"data.partial-9999999999999%ld", gone, false},
                 {"data.partial-%ld.partial-", 1, false}};
    enum { CASES = sizeof cases / sizeof *cases };
    char name[96];
    for (int i = 0; i < CASES; i++) {
        snprintf(name, sizeof name, cases[i].format, cases[i].process);
        assert_int_equal(mkdir(support_path(folder, name), 0777), 0);
        support_write_text(support_path(folder, name), "file", "text");
    }
    /* Neither files nor links have the names of folders. */
    char file[96], link[96];
    snprintf(file, sizeof file, "data.partial-%ld-4", gone);
    snprintf(link, sizeof link, "data.partial-%ld-5", gone);
    support_write_text(folder, file, "text");
    assert_int_equal(symlink("other", support_path(folder, link)), 0);
    assert_int_equal(mkdir(support_path(folder, "other"), 0777), 0);
    support_write_text(support_path(folder, "other"), "file", "text");

    assert_int_equal(make_data(support_path(folder, "data/")), VLP_OK);
    for (int i = 0; i < CASES; i++) {
        snprintf(name, sizeof name, cases[i].format, cases[i].process);
        bool left = access(support_path(support_path(folder, name), "file"), F_OK) == 0;
        if (left == cases[i].swept) fail_msg("%s is %s", name, left ? "left" : "swept");
    }
    assert_int_equal(type_of(support_path(folder, file)), S_IFREG);
    assert_int_equal(type_of(support_path(folder, link)), S_IFLNK);
    assert_int_equal(support_count(support_path(folder, "other")), 1);
    assert_int_equal(support_count(folder), CASES - 2 + 4);
    support_remove(folder);
}

/* A folder that cannot be written is refused before its source is read: here there is no source. */
static void folders_are_checked_before_the_work(void **state) {
    (void)state;
    const char *folder = folder_with(LINK);
    const char *target = support_path(folder, "target"), *missing = support_path(folder, "missing");
    assert_int_equal(vlp_split_file(NULL, missing, target, NULL), VLP_ERROR_EXISTS);
    assert_non_null(strstr(vlp_error_message(), "symbolic link"));
    assert_int_equal(vlp_import_file(NULL, missing, target, NULL, NULL), VLP_ERROR_EXISTS);
    assert_non_null(strstr(vlp_error_message(), "symbolic link"));
    assert_int_equal(vlp_import_wordnet(NULL, missing, target, false, NULL), VLP_ERROR_EXISTS);
    assert_non_null(strstr(vlp_error_message(), "symbolic link"));
    support_remove(folder);
}

/* ---- Logs ---------------------------------------------------------------------------------------- */

static void logs_are_regular_files(void **state) {
    (void)state;
    for (target_kind kind = 0; kind < TARGET_KINDS; kind++) {
        const char *folder = folder_with(kind);
        alarm(60); /* a FIFO must not wait for a reader */
        assert_null(vlp_append_open(support_path(folder, "target")));
        alarm(0);
        expect_untouched(folder, kind);
        support_remove(folder);
    }
    const char *folder = support_folder();
    for (int i = 0; i < 2; i++) {
        FILE *log = vlp_append_open(support_path(folder, "log"));
        assert_non_null(log);
        fprintf(log, "line %d\n", i);
        fclose(log);
    }
    char *text = support_read(folder, "log");
    assert_string_equal(text, "line 0\nline 1\n");
    free(text);
    support_remove(folder);
}

/* ---- Whole files --------------------------------------------------------------------------------- */

static void writer_replaces_whole_files(void **state) {
    (void)state;
    const char *folder = support_folder();
    const char *path = support_path(folder, "file");
    support_write_text(folder, "file", "old");
    vlp_writer *writer = NULL;
    assert_int_equal(vlp_writer_open(&writer, path), VLP_OK);
    for (int i = 0; i < 100000; i++) vlp_writer_format(writer, "%d\n", i);
    char *before = support_read(folder, "file");
    assert_string_equal(before, "old");
    free(before);
    assert_int_equal(vlp_writer_commit(&writer), VLP_OK);
    assert_null(writer);
    char *after = support_read(folder, "file");
    assert_int_equal(strlen(after), 588890);
    assert_memory_equal(after, "0\n1\n2\n", 6);
    free(after);
    assert_int_equal(support_count(folder), 1);

    /* Given up: the old content stays, nothing lies about. */
    assert_int_equal(vlp_writer_open(&writer, path), VLP_OK);
    vlp_writer_text(writer, "new");
    vlp_writer_free(writer);
    assert_int_equal(support_count(folder), 1);

    assert_int_equal(vlp_writer_open(&writer, support_path(folder, "no/file")), VLP_ERROR_IO);
    assert_null(writer);
    assert_non_null(strstr(vlp_error_message(), "No such file or directory"));
    support_remove(folder);
}

static void failed_writes_are_reported(void **state) {
    (void)state;
    /* A file that may not grow, as on a full disk. */
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){100, before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const char *folder = support_folder();
    vlp_writer *writer = NULL;
    assert_int_equal(vlp_writer_open(&writer, support_path(folder, "file")), VLP_OK);
    for (int i = 0; i < 100; i++) vlp_writer_text(writer, "text");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    vlp_status status = vlp_writer_commit(&writer);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, VLP_ERROR_IO);
    assert_non_null(strstr(vlp_error_message(), "File too large"));
    assert_int_equal(support_count(folder), 0);
    support_remove(folder);
}

static void maps_files(void **state) {
    (void)state;
    const char *folder = support_folder();
    support_write_text(folder, "file", "hello");
    support_write_text(folder, "empty", "");
    vlp_map map;
    assert_int_equal(vlp_map_open(&map, support_path(folder, "file")), VLP_OK);
    assert_int_equal(map.size, 5);
    assert_memory_equal(map.data, "hello", 5);
    vlp_map_close(&map);
    assert_int_equal(vlp_map_open(&map, support_path(folder, "empty")), VLP_OK);
    assert_int_equal(map.size, 0);
    vlp_map_close(&map);
    assert_int_equal(vlp_map_open(&map, folder), VLP_ERROR_IO);
    assert_int_equal(vlp_map_open(&map, support_path(folder, "none")), VLP_ERROR_IO);
    support_remove(folder);
}

/* ---- Readers ------------------------------------------------------------------------------------- */

static void fifos_are_not_waited_for(void **state) {
    (void)state;
    const char *folder = support_folder();
    const char *path = support_path(folder, "fifo");
    assert_int_equal(mkfifo(path, 0666), 0);
    alarm(60);
    vlp_source *source = NULL;
    assert_int_equal(vlp_source_open(&source, path), VLP_ERROR_IO);
    assert_non_null(strstr(vlp_error_message(), "not a regular file"));
    assert_null(source);
    vlp_map map;
    assert_int_equal(vlp_map_open(&map, path), VLP_ERROR_IO);
    assert_non_null(strstr(vlp_error_message(), "not a regular file"));
    alarm(0);
    support_remove(folder);
}

/* A pipe that was handed to the program is read to its end, also where its writer is slow. */
static void pipes_of_descriptors_are_read(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (int i = 0; i < 3; i++) {
            usleep(20000);
            if (write(ends[1], "text", 4) != 4) _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    char path[32], text[64];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    vlp_source *source = NULL;
    size_t got = 0;
    assert_int_equal(vlp_source_open(&source, path), VLP_OK);
    assert_int_equal(vlp_source_read(source, text, sizeof text, &got), VLP_OK);
    assert_int_equal(got, 12);
    assert_memory_equal(text, "texttexttext", 12);
    vlp_source_free(source);
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_regular_files_are_replaced),
        cmocka_unit_test(targets_are_checked_at_the_commit),
        cmocka_unit_test(targets_are_checked_before_the_work),
        cmocka_unit_test(temporary_files_are_new),
        cmocka_unit_test(long_names_are_written),
        cmocka_unit_test(only_empty_folders_are_replaced),
        cmocka_unit_test(folders_of_killed_processes_are_swept),
        cmocka_unit_test(folders_are_checked_before_the_work),
        cmocka_unit_test(logs_are_regular_files),
        cmocka_unit_test(writer_replaces_whole_files),
        cmocka_unit_test(failed_writes_are_reported),
        cmocka_unit_test(maps_files),
        cmocka_unit_test(fifos_are_not_waited_for),
        cmocka_unit_test(pipes_of_descriptors_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
