/* The table of tuners: a command reads CD_TUNERS and takes the row at the place of the name. */
#include <string.h>

#include "check.h"
#include "predictor/tune/session/tune_tuner.h"

static void test_names_are_rows(void **state) {
    char names[] = CD_TUNERS;
    size_t n = 0;
    (void)state;
    for (char *save, *p = strtok_r(names, "|", &save); p; p = strtok_r(NULL, "|", &save), n++) {
        const cd_tune_tuner *t = cd_tune_tuner_at(n);
        assert_non_null(t);
        assert_string_equal(t->name, p);
        assert_ptr_equal(cd_tune_tuner_find(p), t);
        assert_true(t->search && t->brief);
    }
    assert_null(cd_tune_tuner_at(n));
    assert_null(cd_tune_tuner_find("no such"));
}

TESTS(NULL, NULL, test_names_are_rows)
