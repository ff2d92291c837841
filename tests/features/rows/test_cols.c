/* cols: names in TVM's order, the digest, and that the manual is up to date. */
#include "features/rows/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "base/text/text.h"
#include "check.h"

TEST(names) {
    const cd_col *c = cd_cols();
    assert_string_equal(c[0].name, "float_mad");
    assert_string_equal(c[26].name, "vec_type.kPosMixed");
    assert_string_equal(c[CD_COL_VTHREAD].name, "vthread_len");
    assert_string_equal(c[57].name, "B0.acc_type.kRead");
    assert_string_equal(c[CD_COL_B0_STRIDE + 4 * CD_COL_BUFFER_STRIDE].name, "B4.stride");
    assert_string_equal(c[156].name, "arith_intensity_curve_9");
    assert_string_equal(c[163].name, "auto_unroll_max_step");
    for (size_t i = 0; i < CD_N_COL; i++) {
        assert_true(c[i].name[0] && c[i].unit[0] && c[i].group[0] && c[i].meaning[0]);
        for (size_t j = 0; j < i; j++) assert_string_not_equal(c[i].name, c[j].name);
    }
}

/* A change here makes every data set and model of before unreadable: mean it. */
TEST(digest) {
    char d[65];
    cd_cols_digest(d);
    assert_string_equal(d, "e2728f39f0fc18a0c9cefc34c3e012f6ffdb54163822dbf5fba582d9aea8f45c");
}

TEST(manual) {
    static char text[1 << 16];
    cd_buf b = {0};
    size_t n = 0;
    FILE *f = fopen("docs/reference/columns.md", "r");
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    cd_cols_print(&b);
    assert_false(b.oom);
    assert_string_equal(b.p, text);
    cd_buf_free(&b);
}

TEST(as_json) {
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *j = NULL;
    cdmpp_err err = {0};
    cd_cols_json(&b);
    assert_ok(cd_json_parse(&a, b.p, b.n, &j, &err));
    const cd_json *c = cd_json_get(j, "columns")->u.child;
    for (size_t i = 0; i < CD_N_COL; i++, c = c->next) {
        assert_true(cd_str_is(cd_json_get(c, "name")->u.s, cd_cols()[i].name));
        assert_true(cd_str_is(cd_json_get(c, "meaning")->u.s, cd_cols()[i].meaning));
    }
    assert_null(c);
    cd_buf_free(&b);
    cd_arena_free(&a);
}

TESTS(NULL, NULL, names, digest, manual, as_json)
