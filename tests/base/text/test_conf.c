/* A configuration by its table of keys: defaults, checks, mistakes with their places, printing and
 * reading back. */
#include "base/text/text.h"
#include "check.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    int64_t epochs;
    double rate;
    bool shuffle;
    int kind;
    const char *out;
    cd_texts files;
} config;

static const cd_conf_key keys[] = {
    {"train.epochs", CD_CONF_INT, offsetof(config, epochs), "10", "1..", "passes"},
    {"train.rate", CD_CONF_REAL, offsetof(config, rate), "0.1", "(0..1", "step"},
    {"train.shuffle", CD_CONF_BOOL, offsetof(config, shuffle), "true", "", ""},
    {"split.kind", CD_CONF_ENUM, offsetof(config, kind), "task", "record|task", "a|b"},
    {"out", CD_CONF_TEXT, offsetof(config, out), "", "", ""},
    {"data.files", CD_CONF_LIST, offsetof(config, files), "[]", "", ""},
};

typedef struct {
    config v;
    cd_arena a;
    cd_diag d;
    cd_conf c;
    cdmpp_err err;
} fixture;

static void start(fixture *f) {
    *f = (fixture){0};
    f->c = (cd_conf){keys, sizeof keys / sizeof *keys, &f->v, &f->a, &f->d};
    assert_int_equal(cd_conf_defaults(&f->c, &f->err), CDMPP_OK);
}

static void stop(fixture *f) {
    cd_diag_free(&f->d);
    cd_arena_free(&f->a);
}

static cdmpp_status feed(fixture *f, const char *s) {
    return cd_conf_read(&f->c, "train.yaml", s, strlen(s), &f->err);
}

TEST(defaults_and_values) {
    fixture f;
    start(&f);
    assert_int_equal(f.v.epochs, 10);
    assert_int_equal(f.v.kind, 1);
    assert_string_equal(f.v.out, "");
    assert_int_equal(f.v.files.n, 0);
    assert_int_equal(
        feed(&f, "train:\n  epochs: 3\n  rate: 5e-2\n  shuffle: false\nsplit: {kind: record}\n"
                 "data:\n  files: [a.h5, 'b c.h5']\nout: m\n"),
        CDMPP_OK);
    assert_int_equal(f.v.epochs, 3);
    assert_close(f.v.rate, 0.05, 1e-15, 0);
    assert_false(f.v.shuffle);
    assert_int_equal(f.v.kind, 0);
    assert_string_equal(f.v.files.v[1], "b c.h5");
    assert_int_equal(feed(&f, "data: {files: one.h5}\ntrain:\n"), CDMPP_OK);
    assert_int_equal(f.v.files.n, 1);
    stop(&f);
}

TEST(all_errors_in_one_run) {
    fixture f;
    start(&f);
    assert_int_equal(feed(&f,
                          "\ntrain:\n  epochs: ten\n  rate: 0\n  shuffel: true\n  shuffle: yes\n"
                          "split:\n  kind: tsk\nepochs: 5\nzzz: 1\nout: [a]\ndata: 7\n"),
                     CDMPP_ESCHEMA);
    assert_string_equal(
        f.d.text.p,
        "train.yaml:3:11: error: train.epochs: expected integer >= 1, found 'ten'\n"
        "train.yaml:4:9: error: train.rate: expected number above 0 and at most 1, found '0'\n"
        "train.yaml:5:3: error: unknown key 'train.shuffel', did you mean 'train.shuffle'?\n"
        "train.yaml:6:12: error: train.shuffle: expected true or false, found 'yes'\n"
        "train.yaml:8:9: error: split.kind: expected one of record|task, found 'tsk'\n"
        "train.yaml:9:1: error: unknown key 'epochs', did you mean 'train.epochs'?\n"
        "train.yaml:10:1: error: unknown key 'zzz'\n"
        "train.yaml:11:6: error: out: expected text, found a list\n"
        "train.yaml:12:7: error: data: expected a mapping, found '7'\n");
    assert_int_equal(f.d.n, 9);
    assert_string_equal(f.err.key, "train.epochs");
    assert_int_equal(f.err.line, 3);
    stop(&f);
}

static void numbers_are_strict(void **s) {
    (void)s;
    static const char *const bad[] = {
        "'5'", "5.0", "0x5", "1e3", "", "0", "-1", "99999999999999999999", "5 5", "~", "[5]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture f;
        char line[64];
        start(&f);
        snprintf(line, sizeof line, "train: {epochs: %s}", bad[i]);
        assert_int_not_equal(feed(&f, line), CDMPP_OK);
        assert_int_equal(f.v.epochs, 10);
        stop(&f);
    }
}

TEST(set_overrides) {
    fixture f;
    start(&f);
    assert_int_equal(cd_conf_set(&f.c, "train.epochs=7", &f.err), CDMPP_OK);
    assert_int_equal(f.v.epochs, 7);
    assert_int_equal(cd_conf_set(&f.c, "data.files=[x, y]", &f.err), CDMPP_OK);
    assert_int_equal(f.v.files.n, 2);
    assert_int_equal(cd_conf_set(&f.c, "train.epochs=x", &f.err), CDMPP_ESCHEMA);
    assert_int_equal(cd_conf_set(&f.c, "train.epoch=4", &f.err), CDMPP_ESCHEMA);
    assert_int_equal(cd_conf_set(&f.c, "train.epochs", &f.err), CDMPP_EUSAGE);
    assert_string_equal(
        f.d.text.p,
        "--set train.epochs=x: error: train.epochs: expected integer >= 1, found 'x'\n"
        "--set train.epoch=4: error: unknown key 'train.epoch', did you mean 'train.epochs'?\n"
        "--set train.epochs: error: expected KEY=VALUE\n");
    stop(&f);
}

/* The first and the last of each range that YAML does not take, and those beside them. */
TEST(what_is_escaped) {
    static const struct {
        const char *text, *printed;
    } t[] = {{"\x1f", "\\u001f"},
             {" ~", " ~"},
             {"\x7f", "\\u007f"},
             {"\xc2\x9f", "\\u009f"},
             {"\xc2\xa0", "\xc2\xa0"},
             {"\xe2\x80\xa7", "\xe2\x80\xa7"},
             {"\xe2\x80\xa9", "\\u2029"},
             {"\xe2\x80\xaa", "\xe2\x80\xaa"},
             {"\xee\x80\x80", "\xee\x80\x80"},
             {"\xef\xbb\xbf", "\\ufeff"},
             {"\xef\xbf\xbd", "\xef\xbf\xbd"},
             {"\xef\xbf\xbe", "\\ufffe"},
             {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        fixture f;
        cd_buf b = {0};
        char want[40];
        start(&f);
        f.v.out = t[k].text;
        cd_conf_print(&b, &f.c);
        snprintf(want, sizeof want, "\"%s\"", t[k].printed);
        if (!strstr(b.p, want)) fail_msg("%zu: %s", k, b.p);
        cd_buf_free(&b);
        stop(&f);
    }
}

TEST(print_reads_back) {
    fixture f, g;
    cd_buf one = {0}, two = {0};
    start(&f);
    start(&g);
    assert_int_equal(feed(&f, "train: {epochs: 3, rate: 0.30000000000000004}\nout: \"a: "
                              "#\\\"b\\n\\x7f\\x85\\u2028\u00e9\"\n"
                              "data: {files: ['[\"k\", 1]', b]}\n"),
                     CDMPP_OK);
    cd_conf_print(&one, &f.c);
    assert_int_equal(cd_conf_read(&g.c, "p", one.p, one.n, &g.err), CDMPP_OK);
    cd_conf_print(&two, &g.c);
    assert_string_equal(one.p, two.p);
    assert_string_equal(g.v.out, "a: #\"b\n\x7f\xc2\x85\xe2\x80\xa8\xc3\xa9");
    assert_true(g.v.rate == 0.30000000000000004);
    cd_buf_clear(&one);
    cd_conf_doc(&one, keys, 6);
    assert_non_null(strstr(one.p, "| `split.kind` | word | `task` | record\\|task | a\\|b |\n"));
    cd_buf_free(&one);
    cd_buf_free(&two);
    stop(&f);
    stop(&g);
}

/* The values, and the table, as JSON that a reader takes. */
static void json_has_all_keys(void **s) {
    (void)s;
    fixture f;
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *j = NULL;
    cdmpp_err err = {0};
    start(&f);
    assert_int_equal(feed(&f, "train: {epochs: 3, rate: 0.30000000000000004}\nout: \"a\\\\b "
                              "\\\"\\n\\x85\"\ndata: {files: [x, 'y z']}\n"),
                     CDMPP_OK);
    cd_conf_json(&b, &f.c);
    assert_ok(cd_json_parse(&a, b.p, b.n, &j, &err));
    for (size_t i = 0; i < 6; i++) assert_non_null(cd_json_get(j, keys[i].name));
    assert_int_equal(cd_json_get(j, "train.epochs")->u.i, 3);
    assert_true(cd_str_is(cd_json_get(j, "split.kind")->u.s, "task"));
    assert_true(cd_str_is(cd_json_get(j, "out")->u.s, "a\\b \"\n\xc2\x85"));
    cd_buf_clear(&b);
    cd_conf_doc_json(&b, keys, 6);
    assert_ok(cd_json_parse(&a, b.p, b.n, &j, &err));
    cd_buf_clear(&b);
    cd_conf_json(&b, &(cd_conf){keys, 0, &f.v, &f.a, &f.d});
    assert_string_equal(b.p, "{}");
    cd_buf_free(&b);
    cd_arena_free(&a);
    stop(&f);
}

/* Long texts are printed as they are written, where YAML can hold them so. */
static void blocks_read_back(void **s) {
    (void)s;
    static const char *const text[] = {
        "two\nlines\n", "a: #x\n\n  in\n", "no end",     "two ends\n\n",
        " space\n",     "\nempty\n",       "a\tb\n",     "\n",
        "x\xc2\x85y\n", "- \xc3\xa9\n",    "---\n...\n", "x \ny  \n"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        fixture f;
        cd_buf b = {0};
        start(&f);
        f.v.out = text[i];
        cd_conf_print(&b, &f.c);
        f.v.out = "";
        if (feed(&f, b.p)) fail_msg("%s", f.d.text.p);
        assert_string_equal(f.v.out, text[i]);
        assert_true((strstr(b.p, "out: |\n") != NULL) == (i < 2 || i > 8));
        cd_buf_free(&b);
        stop(&f);
    }
}

/* Values and mappings of a larger file, with their places in it. */
TEST(parts_of_a_file) {
    fixture f;
    const cd_yaml *root;
    const char text[] = "a: {rate: 0.25, rato: 1}\ntrain:\n  epochs: 0\n";
    cd_buf b = {0};
    start(&f);
    assert_int_equal(cd_yaml_parse(&f.a, "f.yaml", text, strlen(text), &root, &f.d, &f.err),
                     CDMPP_OK);
    const cd_yaml *rate = root->child->child;
    assert_int_equal(cd_conf_value(&f.c, "f.yaml", "train.rate", rate, &f.err), CDMPP_OK);
    cd_conf_print_value(&b, &f.c, cd_conf_find(&f.c, "train.rate"));
    cd_buf_puts(&b, " ");
    cd_conf_print_value(&b, &f.c, cd_conf_find(&f.c, "split.kind"));
    assert_string_equal(b.p, "0.25 task");
    assert_null(cd_conf_find(&f.c, "train"));
    assert_int_equal(cd_conf_value(&f.c, "f.yaml", "train.epochs", rate, &f.err), CDMPP_ESCHEMA);
    assert_int_equal(cd_conf_value(&f.c, "f.yaml", "train.rato", rate->next, &f.err),
                     CDMPP_ESCHEMA);
    assert_int_equal(cd_conf_map(&f.c, "f.yaml", root, &f.err), CDMPP_ESCHEMA);
    assert_string_equal(f.d.text.p,
                        "f.yaml:1:11: error: train.epochs: expected integer >= 1, found '0.25'\n"
                        "f.yaml:1:17: error: unknown key 'train.rato', did you mean 'train.rate'?\n"
                        "f.yaml:1:1: error: unknown key 'a'\n"
                        "f.yaml:3:11: error: train.epochs: expected integer >= 1, found '0'\n");
    cd_buf_free(&b);
    stop(&f);
}

/* Which keys a file gives itself, whatever their values are. */
TEST(named) {
    fixture f;
    bool named[sizeof keys / sizeof *keys] = {false};
    static const char text[] = "train: {rate: 0.5, no: 1}\nother: {a: {b: 1}}\nout: m\nz: 1\n";
    start(&f);
    cd_conf_named(&f.c, "f.yaml", text, strlen(text), named);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        assert_int_equal(named[k],
                         !strcmp(keys[k].name, "train.rate") || !strcmp(keys[k].name, "out"));
    memset(named, 0, sizeof named);
    cd_conf_named(&f.c, "f.yaml", "- out", 5, named);
    cd_conf_named(&f.c, "f.yaml", "", 0, named);
    cd_conf_named(&f.c, "f.yaml", "out: [", 6, named);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) assert_false(named[k]);
    stop(&f);
}

/* What is expected says the range, in all its forms. */
TEST(ranges_are_said) {
    static const cd_conf_key forms[] = {
        {"i", CD_CONF_INT, 0, "1", "", ""},      {"r", CD_CONF_REAL, 0, "1", "", ""},
        {"p", CD_CONF_REAL, 0, "1", "(0..", ""}, {"n", CD_CONF_INT, 0, "1", "-2..4", ""},
        {"l", CD_CONF_INT, 0, "-9", "..-1", ""},
    };
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"i: x", "f.yaml:1:4: error: i: expected integer, found 'x'\n"},
        {"i: 1-2", "f.yaml:1:4: error: i: expected integer, found '1-2'\n"},
        {"i: -", NULL},
        {"i: '1'", "f.yaml:1:4: error: i: expected integer, found text '1'\n"},
        {"i: 99999999999999999999",
         "f.yaml:1:4: error: i: expected integer, found '99999999999999999999'\n"},
        {"r: 1e", "f.yaml:1:4: error: r: expected number, found '1e'\n"},
        {"r: 1e999", "f.yaml:1:4: error: r: expected number, found '1e999'\n"},
        {"r: .e", "f.yaml:1:4: error: r: expected number, found '.e'\n"},
        {"p: 0", "f.yaml:1:4: error: p: expected number > 0, found '0'\n"},
        {"n: 5", "f.yaml:1:4: error: n: expected integer in -2..4, found '5'\n"},
        {"n: -3", "f.yaml:1:4: error: n: expected integer in -2..4, found '-3'\n"},
        {"l: 0", NULL},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        double to = 0;
        cd_arena a = {0};
        cd_diag d = {0};
        cdmpp_err err = {0};
        const cd_conf c = {forms, sizeof forms / sizeof *forms, &to, &a, &d};
        assert_int_equal(cd_conf_defaults(&c, &err), CDMPP_OK);
        assert_true(cd_conf_read(&c, "f.yaml", rows[k].text, strlen(rows[k].text), &err) !=
                    CDMPP_OK);
        if (rows[k].said) assert_string_equal(d.text.p, rows[k].said);
        cd_diag_free(&d);
        cd_arena_free(&a);
    }
}

TESTS(NULL, NULL, named, ranges_are_said, defaults_and_values, all_errors_in_one_run,
      numbers_are_strict, set_overrides, what_is_escaped, print_reads_back, json_has_all_keys,
      blocks_read_back, parts_of_a_file)
