/* The library as others meet it: installed, with the names it promises and no others, and in a process
 * that forks before it works; and its header and messages. Looks for libvlp.so beside the test programs;
 * builds that have none (the sanitizers') skip what needs it. */
#include "support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The build folder, of which this program is build/tests/test_library; NULL without a libvlp.so. */
static const char *build_folder(void) {
    static char path[1024];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(length > 0);
    path[length] = '\0';
    for (int i = 0; i < 2; i++) *strrchr(path, '/') = '\0';
    char library[1100];
    snprintf(library, sizeof library, "%s/libvlp.so", path);
    return access(library, R_OK) == 0 ? path : NULL;
}

/* Runs a shell command with $BUILD and $FOLDER set; its output is shown when it fails. */
static void shell(const char *folder, const char *command) {
    setenv("BUILD", build_folder() ? build_folder() : "", 1);
    setenv("FOLDER", folder, 1);
    /* What a make above this one said is not for those below. */
    unsetenv("MAKEFLAGS");
    unsetenv("MFLAGS");
    char line[2048];
    snprintf(line, sizeof line, "{ %s\n} >\"$FOLDER/log\" 2>&1", command);
    int code = system(line);
    if (code == 0) return;
    char *log = support_read(folder, "log");
    print_error("%s\n%s\n", command, log ? log : "");
    free(log);
    fail();
}

static void only_its_own_names(void **state) {
    (void)state;
    if (!build_folder()) skip();
    const char *folder = support_folder();
    shell(folder, "nm -D --defined-only \"$BUILD/libvlp.so\" | awk '{ print $NF }' >\"$FOLDER/names\"\n"
                  "test \"$(wc -l <\"$FOLDER/names\")\" -gt 40 && ! grep -v '^vlp_' \"$FOLDER/names\"");
    /* Every function of the header is there. */
    shell(folder, "sed -n 's/^VLP_API .*[ *]\\(vlp_[a-z_0-9]*\\)(.*/\\1/p' include/vlp.h | sort -u "
                  ">\"$FOLDER/promised\"\n"
                  "test \"$(wc -l <\"$FOLDER/promised\")\" -gt 40 && "
                  "! sort -u \"$FOLDER/names\" | comm -13 - \"$FOLDER/promised\" | grep .");
    shell(folder, "objdump -p \"$BUILD/libvlp.so\" | grep -q 'SONAME *libvlp.so.[0-9]*$'");
    support_remove(folder);
}

/* The header by itself, and its initializers, in the oldest languages that it promises. */
static void header_stands_alone(void **state) {
    (void)state;
    const char *folder = support_folder();
    support_write_text(folder, "use.c",
                       "#include \"vlp.h\"\n"
                       "vlp_dataset_options dataset = VLP_DATASET_OPTIONS_INIT;\n"
                       "vlp_dataset_content content = VLP_DATASET_CONTENT_INIT;\n"
                       "vlp_split_options split = VLP_SPLIT_OPTIONS_INIT;\n"
                       "vlp_file_options file = VLP_FILE_OPTIONS_INIT;\n"
                       "vlp_family_options family = VLP_FAMILY_OPTIONS_INIT;\n"
                       "vlp_random_graph_options random_graph = VLP_RANDOM_GRAPH_OPTIONS_INIT;\n"
                       "vlp_reference_options reference = VLP_REFERENCE_OPTIONS_INIT;\n"
                       "vlp_audit_options audit = VLP_AUDIT_OPTIONS_INIT;\n"
                       "vlp_train_options train = VLP_TRAIN_OPTIONS_INIT;\n"
                       "vlp_tune_options tune = VLP_TUNE_OPTIONS_INIT;\n"
                       "vlp_run_options run = VLP_RUN_OPTIONS_INIT;\n"
                       "vlp_evaluation_options evaluation = VLP_EVALUATION_OPTIONS_INIT;\n"
                       "vlp_predict_options predict = VLP_PREDICT_OPTIONS_INIT;\n"
                       "vlp_score_options score = VLP_SCORE_OPTIONS_INIT;\n"
                       "vlp_calibration_options calibration = VLP_CALIBRATION_OPTIONS_INIT;\n"
                       "vlp_mine_options mine = VLP_MINE_OPTIONS_INIT;\n"
                       "vlp_candidate_options candidates = VLP_CANDIDATE_OPTIONS_INIT;\n"
                       "vlp_classification_options classes = VLP_CLASSIFICATION_OPTIONS_INIT;\n");
    shell(folder, "test $(grep -c INIT \"$FOLDER/use.c\") = $(grep -c 'define.*_INIT' include/vlp.h)");
    shell(folder, "cc -std=c11 -pedantic-errors -Wall -Wextra -Wconversion -Wstrict-prototypes -Werror "
                  "-fsyntax-only -Iinclude \"$FOLDER/use.c\"");
    shell(folder, "command -v c++ || exit 0\n"
                  "c++ -x c++ -std=c++11 -pedantic-errors -Wall -Wextra -Wconversion -Werror "
                  "-fsyntax-only -Iinclude \"$FOLDER/use.c\"");
    support_remove(folder);
}

/* The library's texts name its own things: options and commands of the program are for the program to
 * add.
 */
static void messages_name_no_options(void **state) {
    (void)state;
    const char *folder = support_folder();
    shell(
        folder,
        "! grep -rnE '\"([^\"\\\\]|\\\\.)*(--[a-z]|vlp (data|refs|train|eval|predict|score|mine|export|"
        "report)\\b)' src");
    support_remove(folder);
}

/* The examples, as a user builds them. */
static void installed(void **state) {
    (void)state;
    if (!build_folder()) skip();
    const char *folder = support_folder();
    shell(folder, "make -s install BUILD=\"$BUILD\" DESTDIR=\"$FOLDER/stage\" PREFIX=/usr");
    shell(folder, "\"$FOLDER/stage/usr/bin/vlp\" data family \"$FOLDER/people\" --families 3 "
                  "--generations 3 -q");
    shell(folder,
          "export PKG_CONFIG_PATH=\"$FOLDER/stage/usr/lib/pkgconfig\" "
          "PKG_CONFIG_SYSROOT_DIR=\"$FOLDER/stage\" LD_LIBRARY_PATH=\"$FOLDER/stage/usr/lib\"\n"
          "for name in train predict; do\n"
          "  cc -std=c17 -Wall -Wextra -Werror examples/$name.c $(pkg-config --cflags --libs vlp) "
          "-o \"$FOLDER/$name\" || exit\n"
          "done\n"
          "\"$FOLDER/train\" \"$FOLDER/people\" \"$FOLDER/run\" || exit\n"
          "query=$(head -n 1 \"$FOLDER/people/test.txt\" | cut -f 1,2 | tr '\\t' ' ')\n"
          "\"$FOLDER/predict\" \"$FOLDER/run\" $query || exit\n"
          "! \"$FOLDER/predict\" \"$FOLDER/run\" nobody mother && "
          "! \"$FOLDER/predict\" \"$FOLDER/nowhere\" a b");
    char *log = support_read(folder, "log");
    assert_non_null(strstr(log, "200 steps"));
    assert_non_null(strstr(log, "MRR 0."));
    assert_non_null(strstr(log, "most from "));
    assert_non_null(strstr(log, "unknown entity 'nobody'"));
    free(log);
    support_remove(folder);
}

/* The archive, with what pkg-config says that it needs. */
static void linked_statically(void **state) {
    (void)state;
    if (!build_folder()) skip();
    const char *folder = support_folder();
    shell(folder, "make -s install BUILD=\"$BUILD\" DESTDIR=\"$FOLDER/stage\" PREFIX=/usr && "
                  "rm \"$FOLDER\"/stage/usr/lib/libvlp.so*");
    shell(folder,
          "export PKG_CONFIG_PATH=\"$FOLDER/stage/usr/lib/pkgconfig\" "
          "PKG_CONFIG_SYSROOT_DIR=\"$FOLDER/stage\"\n"
          "cc -std=c17 examples/train.c $(pkg-config --cflags vlp) $(pkg-config --static --libs vlp) "
          "-o \"$FOLDER/train\" && "
          "\"$FOLDER/stage/usr/bin/vlp\" data family \"$FOLDER/people\" --families 3 --generations 3 -q "
          "&& "
          "\"$FOLDER/train\" \"$FOLDER/people\" \"$FOLDER/run\"");
    support_remove(folder);
}

/* Trains with the loaded library; for the child. */
static int train_in_child(void *library, const char *folder) {
    vlp_status (*generate)(vlp_import_report *, const char *, const vlp_family_options *);
    vlp_status (*train)(vlp_train_report *, const char *, const char *, const vlp_train_options *);
    *(void **)&generate = dlsym(library, "vlp_family_generate");
    *(void **)&train = dlsym(library, "vlp_train");
    if (!generate || !train) return 3;
    const char *settings[] = {"steps=5", "dim=4", "batch=16", "negatives=4", "threads=2"};
    vlp_train_options options = VLP_TRAIN_OPTIONS_INIT;
    options.settings = settings;
    options.setting_count = sizeof settings / sizeof *settings;
    vlp_family_options family = VLP_FAMILY_OPTIONS_INIT;
    family.families = 3;
    family.generations = 3;
    char data[256], run[256];
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(run, sizeof run, "%s/run", folder);
    if (generate(NULL, data, &family) != VLP_OK) return 4;
    return train(NULL, data, run, &options) == VLP_OK ? 0 : 5;
}

/* ---- How threads wait ---------------------------------------------------------------------------- */

/* In a child: trains with the library, after loading libgomp itself where `loaded`, and has libgomp
 * write its settings into folder/settings. The environment has to be the same array with the same
 * strings after it. */
static int train_and_tell(const char *folder, const char *path, bool loaded) {
    alarm(300);
    unsetenv("OMP_WAIT_POLICY");
    unsetenv("GOMP_SPINCOUNT");
    if (loaded && !dlopen("libgomp.so.1", RTLD_NOW)) return 10;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return 11;
    void *runtime = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
    if ((runtime != NULL) != loaded) return 12; /* not before it is needed */
    size_t count = 0;
    char **before = environ, *strings[512];
    for (; before[count] && count < 511; count++) strings[count] = before[count];
    strings[count++] = NULL;
    int code = train_in_child(library, folder);
    if (code != 0) return code;
    if (environ != before || memcmp(environ, strings, count * sizeof *strings) != 0) return 13;
    runtime = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!runtime) return 14;
    void (*display)(int) = NULL;
    *(void **)&display = dlsym(runtime, "omp_display_env");
    if (!display) return 15;
    if (!freopen(support_path(folder, "settings"), "w", stderr)) return 16;
    display(1);
    fflush(stderr);
    return 0;
}

/* The spin count of libgomp in a process that trained with the library. */
static double spin_count(bool loaded) {
    const char *folder = support_folder();
    char path[1100];
    snprintf(path, sizeof path, "%s/libvlp.so", build_folder());
    pid_t child = fork();
    if (child == 0) _exit(train_and_tell(folder, path, loaded));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    char *settings = support_read(folder, "settings");
    const char *name = "GOMP_SPINCOUNT = '", *found = strstr(settings, name);
    assert_non_null(found);
    double count = atof(found + strlen(name));
    free(settings);
    support_remove(folder);
    return count;
}

static void threads_wait_briefly(void **state) {
    (void)state;
    if (!build_folder()) skip();
    double count = spin_count(false);
    assert_true(count >= 100 && count <= 110000);
    /* The policy of a libgomp that was there before stays: the default. */
    assert_true(spin_count(true) >= 300000);
}

/* Threads of this process, by the kernel's own list. */
static int thread_count(void) {
    return support_count("/proc/self/task");
}

/* Loading starts no thread, so that a child of fork can work; a thread left in the parent would hang it.
 */
static void forks_before_work(void **state) {
    (void)state;
    if (!build_folder()) skip();
    const char *folder = support_folder();
    char path[1100];
    snprintf(path, sizeof path, "%s/libvlp.so", build_folder());
    int before = thread_count();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    assert_int_equal(thread_count(), before);
    pid_t child = fork();
    if (child == 0) {
        alarm(300); /* a hang ends as a signal */
        _exit(train_in_child(library, folder));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    dlclose(library);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_its_own_names),       cmocka_unit_test(header_stands_alone),
        cmocka_unit_test(messages_name_no_options), cmocka_unit_test(installed),
        cmocka_unit_test(linked_statically),        cmocka_unit_test(forks_before_work),
        cmocka_unit_test(threads_wait_briefly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
