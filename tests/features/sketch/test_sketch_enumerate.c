/* Spaces as a whole: walked through, counted, told. */
#include "check.h"
#include "made_space.h"
#include "base/text/text.h"

/* Every tape comes once, and each that draws give comes. */
static void test_walk(void **state) {
    for (int gpu = 0; gpu < 2; gpu++) {
        cd_sketch_space *sp = made_space(*state, MADE_ADD, gpu);
        cd_sketch_sampler *w = made_sampler(sp, 7);
        cd_sketch_choices at = {0}, last = {0};
        cdmpp_err err = {0};
        cd_sketch_sample d;
        cdmpp_status st;
        cd_buf all = {0}, text = {0};
        size_t n = 0;
        double size;
        bool exact;
        while ((st = cd_sketch_sampler_next(w, &at, &d, &err)) != CDMPP_ENODATA) {
            assert_true(!st || st == CDMPP_EREJECTED);
            uint32_t k = 0; /* ascending: the first difference is an increase */
            while (last.n && k < last.n && k < at.n && last.p[k].pick == at.p[k].pick) k++;
            assert_true(!last.n || (k < last.n && k < at.n && last.p[k].pick < at.p[k].pick));
            made_keep(&(cd_sketch_sample){.n_choice = at.n, .choice = at.p}, &last);
            if (st) continue;
            n++;
            made_text(&d, &text);
            cd_buf_putf(&all, "%s\n", text.p);
        }
        assert_ok(cd_sketch_space_size(sp, &size, &exact, &err));
        assert_true(exact && size == (double)n && n > 2);
        for (uint64_t i = 0; i < 20; i++) {
            if (cd_sketch_sampler_draw(w, i, &d, &err)) continue;
            made_text(&d, &text);
            assert_non_null(strstr(all.p, text.p));
        }
        assert_ok(cd_sketch_sampler_next(w, &at, &d, &err)); /* begins again */
        assert_int_equal(at.p[0].pick, 0);
        cd_buf_free(&all);
        cd_buf_free(&text);
        cd_sketch_choices_free(&at);
        cd_sketch_choices_free(&last);
        cd_sketch_sampler_free(w);
        cd_sketch_space_free(sp);
    }
}

/* Of large spaces: ways of 96, 128 and 64 in parts, times what does not depend on tiles, are in the
 * product. */
static void test_size(void **state) {
    cd_sketch_space *sp = made_space(*state, MADE_MM, false);
    cdmpp_err err = {0};
    double size;
    bool exact;
    assert_ok(cd_sketch_space_size(sp, &size, &exact, &err));
    assert_true(!exact && size > 3 * 50.0 * 50.0 * 7.0 * 4);
    cd_sketch_space_free(sp);
}

static int64_t integer(const cd_json *obj, const char *key) {
    const cd_json *v = cd_json_get(obj, key);
    assert_true(v && v->kind == CD_JSON_INT);
    return v->u.i;
}

/* Lists have as many items as there are options; the product is that of the options. */
static void check_knobs(cd_arena *a, const cd_buf *b, size_t n_sketch) {
    const cd_json *j, *s, *c;
    cdmpp_err err = {0};
    assert_ok(cd_json_parse(a, b->p, b->n, &j, &err));
    assert_non_null(cd_json_get(j, "size"));
    assert_int_equal(cd_json_get(j, "sketches")->n, n_sketch);
    for (s = cd_json_get(j, "sketches")->u.child; s; s = s->next) {
        double product = 1, told;
        for (c = cd_json_get(s, "choices")->u.child; c; c = c->next) {
            const cd_json *lengths = cd_json_get(c, "lengths"), *values = cd_json_get(c, "values");
            product *= (double)integer(c, "options");
            if (lengths) assert_int_equal(lengths->n, integer(c, "options"));
            if (values) assert_int_equal(values->n, integer(c, "options"));
            if (lengths) assert_int_equal(lengths->u.child->n, integer(c, "parts") - 1);
        }
        assert_ok(cd_json_real(cd_json_get(s, "product"), &told, &err));
        assert_close(product, told, 1e-12, 0);
    }
}

static void test_dump(void **state) {
    for (int gpu = 0; gpu < 2; gpu++)
        for (size_t k = 0; k < MADE_SPACES; k++) {
            cd_sketch_space *sp = made_space(*state, k, gpu);
            cd_arena a = {0};
            cdmpp_err err = {0};
            cd_buf b = {0};
            assert_ok(cd_sketch_space_dump(sp, &b, &err));
            check_knobs(&a, &b, cd_sketch_space_count(sp));
            cd_arena_free(&a);
            cd_buf_free(&b);
            cd_sketch_space_free(sp);
        }
}

TESTS(made_spaces_up, made_spaces_down, test_walk, test_size, test_dump)
