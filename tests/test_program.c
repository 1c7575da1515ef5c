/* The program as a process: how its threads wait, how it ends with little address space, and by signals.
 * VLP_PROGRAM names it; without it these are passed over. */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *folder;

/* A folder with a data set; the variables that the commands below use. */
static int set_up(void **state) {
    (void)state;
    const char *program = getenv("VLP_PROGRAM");
    if (!program || access(program, X_OK) != 0) return 0;
    folder = support_folder();
    setenv("FOLDER", folder, 1);
    setenv("DATA", support_family(3, 3), 1);
    setenv("TRAIN",
           "train \"$DATA\" -o \"$FOLDER/run\" --time off -q --threads 2 --set steps=2 --set dim=8 "
           "--set batch=16 "
           "--set negatives=4",
           1);
    unsetenv("OMP_WAIT_POLICY");
    unsetenv("GOMP_SPINCOUNT");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (folder) support_remove(folder);
    return 0;
}

/* Runs a shell command with its output in $FOLDER/log; its exit code, or -1 when a signal ended it. */
static int shell(const char *command) {
    char line[2048];
    snprintf(line, sizeof line, "rm -rf \"$FOLDER/run\"; { %s\n} >\"$FOLDER/log\" 2>&1", command);
    int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_log(const char *text, bool there) {
    char *log = support_read(folder, "log");
    if ((strstr(log, text) != NULL) != there)
        fail_msg("'%s' is %s in: %s", text, there ? "not" : "", log);
    free(log);
}

/* ---- Threads that wait --------------------------------------------------------------------------- */

/* The spin count that libgomp says it has, under these variables. There is one libgomp: it says so once.
 */
static double spin_count(const char *variables) {
    char command[256];
    snprintf(command, sizeof command, "eval OMP_DISPLAY_ENV=verbose %s \"$VLP_PROGRAM\" $TRAIN",
             variables);
    assert_int_equal(shell(command), 0);
    char *log = support_read(folder, "log");
    const char *name = "GOMP_SPINCOUNT = '", *found = strstr(log, name);
    if (!found) fail_msg("libgomp did not say its settings: %s", log);
    double count = atof(found + strlen(name));
    assert_null(strstr(found + 1, name));
    free(log);
    return count;
}

static void threads_wait_briefly(void **state) {
    (void)state;
    if (!folder) skip();
#ifdef __clang__
    skip(); /* libomp */
#endif
    /* 100 microseconds; its own default is 300,000 turns, which is milliseconds. */
    double count = spin_count("");
    assert_true(count >= 100 && count <= 110000);
    /* Whatever chose it, the variable is set. */
    assert_true(spin_count("OMP_WAIT_POLICY=passive") == 0);
    assert_true(spin_count("OMP_WAIT_POLICY=active") > 1e9);
    assert_true(spin_count("GOMP_SPINCOUNT=7") == 7);
}

/* A libgomp that cannot be loaded: one thread does the work, and where OpenBLAS needs it, a message says
 * so.
 */
static void works_without_libgomp(void **state) {
    (void)state;
    if (!folder) skip();
#ifdef __clang__
    skip();
#endif
    const char *stats = "\"$VLP_PROGRAM\" data stats \"$DATA\" --threads 4";
    assert_int_equal(shell(stats), 0);
    char *expected = support_read(folder, "log"), command[512];
    snprintf(command, sizeof command,
             "mkdir -p \"$FOLDER/broken\" && : >\"$FOLDER/broken/libgomp.so.1\" && "
             "LD_LIBRARY_PATH=\"$FOLDER/broken\" %s",
             stats);
    assert_int_equal(shell(command), 0);
    expect_log(expected, true);
    free(expected);
    assert_int_equal(shell("eval LD_LIBRARY_PATH=\"$FOLDER/broken\" \"$VLP_PROGRAM\" $TRAIN"), 1);
    expect_log("vlp: cannot load libopenblas.so.0", true);
    expect_log("--device", false);
}

/* ---- Address space ------------------------------------------------------------------------------- */

/* Trains with at most that many MiB; whether it did. It ends by itself, with a message when it fails. */
static bool trains_within(int mebibytes) {
    char command[256];
    snprintf(command, sizeof command,
             "ulimit -v $((%d * 1024)) && eval timeout -k 5 60 \"$VLP_PROGRAM\" $TRAIN", mebibytes);
    int code = shell(command);
    if (code != 0 && code != 1) {
        char *log = support_read(folder, "log");
        fail_msg("exit code %d with %d MiB: %s", code, mebibytes, log);
    }
    if (code == 1) {
        expect_log("vlp: not enough address space for OpenBLAS with 2 threads: that takes ", true);
        expect_log("ulimit -v", true);
    }
    return code == 0;
}

static void little_address_space(void **state) {
    (void)state;
    if (!folder) skip();
#ifdef __SANITIZE_ADDRESS__
    skip(); /* whose own memory is terabytes */
#endif
    for (int mebibytes = 60; mebibytes <= 400; mebibytes += 20) assert_false(trains_within(mebibytes));
    /* What the message asks for is enough, but for the tables of the run itself. */
    char *log = support_read(folder, "log"), *takes = strstr(log, "that takes ");
    int needed = atoi(takes + strlen("that takes "));
    free(log);
    assert_true(needed > 400 && needed < 1000);
    assert_false(trains_within(needed - 64));
    for (int more = 0; more < 32; more += 4) trains_within(needed + more);
    assert_true(trains_within(needed + 256));
}

/* ---- Signals ------------------------------------------------------------------------------------- */

/* An OpenBLAS that never returns from loading, or from a product; it makes $FOLDER/stuck when it is
 * there. */
static void build_stuck(const char *name, const char *head) {
    char text[512], command[256];
    snprintf(text, sizeof text,
             "#include <fcntl.h>\n#include <stdlib.h>\n"
             "%s {\n    if (creat(STUCK, 0600) < 0) abort();\n    for (;;) __asm__ volatile(\"\");\n}\n",
             head);
    support_write_text(folder, "stuck.c", text);
    snprintf(command, sizeof command,
             "mkdir -p \"$FOLDER/%s\" && cc -shared -fPIC -DSTUCK=\"\\\"$FOLDER/stuck\\\"\" "
             "\"$FOLDER/stuck.c\" -o \"$FOLDER/%s/libopenblas.so.0\"",
             name, name);
    assert_int_equal(shell(command), 0);
}

/* Starts the program with the OpenBLAS in folder `library`, and waits until it is stuck. */
static pid_t start_stuck(const char *library, const char *name) {
    unlink(support_path(folder, "stuck"));
    pid_t child = fork();
    if (child == 0) {
        /* nohup and background jobs ignore them, and what is ignored stays so over exec. */
        signal(SIGINT, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        setenv("LD_LIBRARY_PATH", support_path(folder, library), 1);
        setenv("RUN", support_path(folder, name), 1);
        execl("/bin/sh", "sh", "-c",
              "exec \"$VLP_PROGRAM\" train \"$DATA\" -o \"$RUN\" --time off -q --set steps=2 --device "
              "cpu >/dev/null "
              "2>&1",
              (char *)NULL);
        _exit(127);
    }
    for (int i = 0; access(support_path(folder, "stuck"), F_OK) != 0; i++) {
        assert_true(i < 6000);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return child;
}

/* The signal that ended the child, within `seconds`. */
static int ended_by(pid_t child, int seconds) {
    int status = 0;
    pid_t ended = 0;
    for (int i = 0; i < seconds * 100 && ended == 0; i++) {
        ended = waitpid(child, &status, WNOHANG);
        if (ended == 0) nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        fail_msg("still running after %d seconds", seconds);
    }
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void signals_end_it(void **state) {
    (void)state;
    if (!folder) skip();
    build_stuck("product", "void cblas_sgemm(void)");
    /* The first asks; the second ends it at once, whichever it is. */
    pid_t child = start_stuck("product", "twice");
    kill(child, SIGINT);
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    kill(child, SIGTERM);
    assert_int_equal(ended_by(child, 5), SIGTERM);
    /* A program that does not hear the first ends by it after a while. */
    child = start_stuck("product", "patient");
    kill(child, SIGTERM);
    assert_int_equal(ended_by(child, 60), SIGTERM);
    /* While a library is loaded, the first ends it at once. */
    build_stuck("load", "__attribute__((constructor)) static void stuck(void)");
    for (int i = 0; i < 3; i++) {
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
        child = start_stuck("load", "loading");
        kill(child, signals[i]);
        assert_int_equal(ended_by(child, 5), signals[i]);
    }
}

/* What listens is stopped by each of the three, and saves. */
static void signals_save(void **state) {
    (void)state;
    if (!folder) skip();
    const char *signals[] = {"INT", "TERM", "HUP"};
    for (int i = 0; i < 3; i++) {
        char command[512];
        snprintf(
            command, sizeof command,
            "\"$VLP_PROGRAM\" train \"$DATA\" -o \"$FOLDER/run\" --time off -q --set steps=100000000 "
            "--set dim=8 --set batch=16 --set negatives=4 --device cpu & child=$!\n"
            "for i in $(seq 1000); do [ -s \"$FOLDER/run/train.log\" ] && break; sleep 0.05; done\n"
            "sleep 0.2; kill -%s $child; wait $child\n"
            "code=$?; [ -s \"$FOLDER/run/state.safetensors\" ] || exit 99; exit $code",
            signals[i]);
        assert_int_equal(shell(command), 1);
        expect_log("vlp: stopped", true);
    }
    /* One that is ignored stays so. */
    assert_int_equal(
        shell("trap '' HUP\n\"$VLP_PROGRAM\" train \"$DATA\" -o \"$FOLDER/run\" --time off -q --set "
              "steps=3000 "
              "--set dim=8 --set batch=16 --set negatives=4 --device cpu & child=$!\n"
              "for i in $(seq 1000); do [ -s \"$FOLDER/run/train.log\" ] && break; sleep 0.05; done\n"
              "kill -HUP $child; wait $child"),
        0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_wait_briefly),
                                       cmocka_unit_test(works_without_libgomp),
                                       cmocka_unit_test(little_address_space),
                                       cmocka_unit_test(signals_end_it), cmocka_unit_test(signals_save)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
