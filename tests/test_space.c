/* Search spaces: what a file may say, what a wrong one is told, and the distribution of draws. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "failing_allocator.h"
#include "learn/space.h"
#include "run_lab.h"

static vlp_space *parse(const char *text) {
    vlp_space *space;
    must(vlp_space_parse(&space, "space.ini", text, strlen(text)));
    return space;
}

static void refused(const char *text, const char *message) {
    vlp_space *space = NULL;
    assert_int_equal(vlp_space_parse(&space, "space.ini", text, strlen(text)), VLP_ERROR_FORMAT);
    assert_null(space);
    if (strcmp(vlp_error_message(), message) != 0) fail_msg("%s", vlp_error_message());
}

static void test_lines(void **state) {
    (void)state;
    vlp_space *space = parse("; comment\n[path]\npath_drop = 0, 0.2 ,0.4\nn3 = 0.001 .. 0.5 log\n"
                             "rate=0.001..0.01\npath_hide = edge, pair\npath = on\nsteps = 10 .. 20\n");
    const char *expected[] = {"0, 0.2, 0.4", "0.001 .. 0.5 log", "0.001 .. 0.01", "edge, pair",
                              "on",          "10 .. 20"};
    assert_int_equal(space->count, 6);
    for (int i = 0; i < 6; i++) {
        char text[256];
        vlp_dimension_text(text, sizeof text, &space->dimensions[i]);
        if (i == 1) /* the shortest decimal of 0.001 has other digits at 17 */
            assert_non_null(strstr(text, " log"));
        else if (space->dimensions[i].kind == VLP_SPACE_LIST || i == 5)
            assert_string_equal(text, expected[i]);
        assert_int_equal(vlp_dimension_varies(&space->dimensions[i]), i != 4);
    }
    assert_int_equal(space->dimensions[1].kind, VLP_SPACE_LOG);
    assert_int_equal(space->dimensions[2].kind, VLP_SPACE_UNIFORM);
    assert_true(space->dimensions[1].low == 0.001 && space->dimensions[1].high == 0.5);
    assert_true(vlp_space_has(space, "n3") && !vlp_space_has(space, "n"));
    vlp_space_free(space);
}

static void test_wrong_lines(void **state) {
    (void)state;
    refused("path_drap = 0\n", "space.ini:1: there is no setting 'path_drap'; the nearest: path_drop");
    refused("dim = 8\nrate = 0.1, x\n", "space.ini:2: rate takes a number from 0 to 1000, not 'x'");
    refused("path_drop = 0, 2\n", "space.ini:1: path_drop takes a number from 0 to 0.99, not '2'");
    refused("path_drop = 0,, 0.2\n",
            "space.ini:1: path_drop: a value of the list is missing or longer than 63 bytes");
    refused("path_drop = 0,\n",
            "space.ini:1: path_drop: a value of the list is missing or longer than 63 bytes");
    refused("path_drop = \n",
            "space.ini:1: path_drop: a value of the list is missing or longer than 63 bytes");
    refused("rate = 0.1 .. 0.01\n", "space.ini:1: rate: the range ends where it begins, or before");
    refused("rate = 0 .. 0.01 log\n", "space.ini:1: rate: a range with 'log' begins above 0");
    refused("rate = 0.1 ..\n", "space.ini:1: rate: a range is 'LOW .. HIGH' or 'LOW .. HIGH log'");
    refused("rate = 0.1 .. log\n", "space.ini:1: rate: a range is 'LOW .. HIGH' or 'LOW .. HIGH log'");
    refused("rate = 0.1 .. 5000\n", "space.ini:1: rate takes a number from 0 to 1000, not '5000'");
    refused("path_hide = edge .. pair\n",
            "space.ini:1: path_hide: only numbers have ranges: give a list");
    refused("n3 = 1\nn3 = 2\n", "space.ini:2: n3 was given already on line 1");
    refused("threads = 1, 2\n",
            "space.ini:1: threads: not a setting to search; it is given to the search itself");
    refused("n3\n",
            "space.ini:1: there is no '='; a line is 'key = value', '[heading]' or a comment after "
            "';' or '#'");
}

/* Values stay within their ranges and lists, have their distribution, and follow from seed and draw. */
static void test_draws(void **state) {
    (void)state;
    enum { DRAWS = 3000 };
    vlp_space *space = parse("path_drop = 0, 0.2, 0.4\nn3 = 0.001 .. 0.1 log\nrate = 0.25 .. 0.5\n"
                             "path_layers = 3 .. 6\nbatch = 8 .. 512 log\npath = on\n");
    int drops[3] = {0}, layers[8] = {0}, low_n3 = 0, low_rate = 0, low_batch = 0, same = 0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        vlp_settings drawn, again, other;
        vlp_settings_default(&drawn);
        memcpy(&again, &drawn, sizeof drawn);
        memcpy(&other, &drawn, sizeof drawn);
        must(vlp_space_draw(&drawn, space, 7, draw));
        must(vlp_space_draw(&again, space, 7, draw));
        must(vlp_space_draw(&other, space, 8, draw));
        assert_memory_equal(&drawn, &again, sizeof drawn);
        same += drawn.n3 == other.n3;
        assert_false(drawn.path); /* fixed ones are set apart */
        assert_true(drawn.n3 >= 0.001 && drawn.n3 <= 0.1);
        assert_true(drawn.rate >= 0.25 && drawn.rate <= 0.5);
        assert_true(drawn.path_layers >= 3 && drawn.path_layers <= 6);
        assert_true(drawn.batch >= 8 && drawn.batch <= 512);
        drops[(int)lround(drawn.path_drop / 0.2)]++;
        layers[drawn.path_layers]++;
        low_n3 += drawn.n3 < 0.01;
        low_rate += drawn.rate < 0.375;
        low_batch += drawn.batch < 64;
    }
    /* Five standard deviations of a half, a third, a quarter of the draws. */
    assert_in_range(low_n3, DRAWS / 2 - 137, DRAWS / 2 + 137);
    assert_in_range(low_rate, DRAWS / 2 - 137, DRAWS / 2 + 137);
    assert_in_range(low_batch, DRAWS / 2 - 137, DRAWS / 2 + 137);
    for (int i = 0; i < 3; i++) assert_in_range(drops[i], DRAWS / 3 - 130, DRAWS / 3 + 130);
    for (int i = 3; i <= 6; i++) assert_in_range(layers[i], DRAWS / 4 - 119, DRAWS / 4 + 119);
    assert_in_range(same, 0, DRAWS / 20);
    vlp_settings settings;
    vlp_settings_default(&settings);
    must(vlp_space_fix(&settings, space));
    assert_true(settings.path);
    vlp_space_free(space);
}

/* A draw does not change where another setting is added behind it: each has its own counter. */
static void test_draws_are_apart(void **state) {
    (void)state;
    vlp_space *one = parse("n3 = 0.001 .. 0.1 log\n"),
              *two = parse("n3 = 0.001 .. 0.1 log\nrate = 0.001 .. 1\nmargin = 0.001 .. 1\n");
    int same = 0;
    for (uint64_t draw = 0; draw < 50; draw++) {
        vlp_settings first, second;
        vlp_settings_default(&first);
        vlp_settings_default(&second);
        must(vlp_space_draw(&first, one, 1, draw));
        must(vlp_space_draw(&second, two, 1, draw));
        assert_true(first.n3 == second.n3);
        same += second.rate == second.margin;
    }
    assert_in_range(same, 0, 5);
    vlp_space_free(one);
    vlp_space_free(two);
}

static void test_builtin(void **state) {
    (void)state;
    const char *expected[] = {"n3", "temperature", "path_drop"};
    for (int c = 0; c < VLP_COMPONENTS; c++) {
        vlp_space *space;
        must(vlp_space_builtin(&space, (vlp_component)c));
        assert_true(vlp_space_has(space, expected[c]));
        for (uint64_t draw = 0; draw < 100; draw++) {
            vlp_settings settings;
            vlp_settings_default(&settings);
            must(vlp_space_fix(&settings, space));
            must(vlp_space_draw(&settings, space, 0, draw));
            must(vlp_settings_check(&settings));
        }
        vlp_space_free(space);
    }
    vlp_space *space;
    assert_int_equal(vlp_space_builtin(&space, (vlp_component)77), VLP_ERROR_ARGUMENT);
}

static void test_files(void **state) {
    (void)state;
    const char *folder = support_folder();
    vlp_space *space;
    support_write_text(folder, "empty.ini", "; nothing\n");
    support_write_text(folder, "good.ini", "n3 = 0, 0.1");
    assert_int_equal(vlp_space_read(&space, support_path(folder, "empty.ini")), VLP_ERROR_FORMAT);
    assert_non_null(strstr(vlp_error_message(), "has no settings to search"));
    assert_int_equal(vlp_space_read(&space, support_path(folder, "missing.ini")), VLP_ERROR_IO);
    must(vlp_space_read(&space, support_path(folder, "good.ini")));
    assert_int_equal(space->count, 1);
    assert_int_equal(space->dimensions[0].count, 2);
    vlp_space_free(space);
    support_remove(folder);
}

static void test_memory(void **state) {
    (void)state;
    const char *text = "n3 = 0, 0.1\nrate = 0.1 .. 1\npath = on\n";
    failing_allocator memory;
    int64_t call = 0;
    do {
        vlp_space *space = NULL;
        failing_allocator_install(&memory, ++call);
        vlp_status status = vlp_space_parse(&space, "space.ini", text, strlen(text));
        vlp_space_free(space);
        failing_allocator_remove(&memory);
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
    } while (memory.failed);
    assert_true(call > 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_wrong_lines),
        cmocka_unit_test(test_draws),   cmocka_unit_test(test_draws_are_apart),
        cmocka_unit_test(test_builtin), cmocka_unit_test(test_files),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
