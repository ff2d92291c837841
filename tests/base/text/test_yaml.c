/* YAML as a tree with places; constructs that are a trap in a configuration are errors. */
#include "base/text/text.h"
#include "check.h"

#include <string.h>

static const cd_yaml *parse(cd_arena *a, cd_diag *d, const char *s, cdmpp_status want) {
    cdmpp_err err = {0};
    const cd_yaml *root;
    assert_status(cd_yaml_parse(a, "c.yaml", s, strlen(s), &root, d, &err), want);
    if (want) assert_true(d->n > 0 && err.code == want && !strcmp(err.path, "c.yaml"));
    return root;
}

TEST(tree_has_places) {
    cd_arena a = {0};
    cd_diag d = {0};
    const cd_yaml *r = parse(&a, &d, "train:\n  epochs: ten\n  on: [a, \"1\"]\n", CDMPP_OK);
    assert_int_equal(r->kind, CD_YAML_MAP);
    const cd_yaml *t = r->child, *e = t->child, *l = e->next;
    assert_string_equal(t->key, "train");
    assert_string_equal(e->text, "ten");
    assert_int_equal(e->line, 2);
    assert_int_equal(e->col, 11);
    assert_int_equal(e->key_col, 3);
    assert_string_equal(l->key, "on");
    assert_int_equal(l->n, 2);
    assert_false(l->child->quoted);
    assert_true(l->child->next->quoted);
    assert_null(parse(&a, &d, "", CDMPP_OK));
    assert_null(parse(&a, &d, "# only a comment\n", CDMPP_OK));
    cd_diag_free(&d);
    cd_arena_free(&a);
}

TEST(refuses) {
    static const struct {
        const char *in;
        cdmpp_status st;
        const char *say;
    } bad[] = {
        {"a: 1\nb: 2\na: 3\n", CDMPP_ESCHEMA,
         "c.yaml:3:1: error: key 'a' given twice, first in line 1\n"},
        {"a: &x 1\nb: *x\n", CDMPP_ESCHEMA,
         "c.yaml:1:4: error: anchors are not supported, found '&x'\n"
         "c.yaml:2:4: error: aliases are not supported, found '*x'\n"},
        {"a: !!int 1\n", CDMPP_ESCHEMA,
         "c.yaml:1:4: error: tags are not supported, found 'tag:yaml.org,2002:int'\n"},
        {"? [a]\n: 1\n", CDMPP_ESCHEMA,
         "c.yaml:1:3: error: expected a plain text as key, found a list\n"},
        {"a: 1\n---\nb: 2\n", CDMPP_ESCHEMA,
         "c.yaml:2:1: error: expected one document, found a second\n"},
        {"a: \"x\\0y\"\n", CDMPP_ESCHEMA, "c.yaml:1:4: error: text with a NUL byte\n"},
        {"a: [1\nb: 2\n", CDMPP_EPARSE, NULL},
        {"a: \xff\xfe\n", CDMPP_EPARSE, NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cd_arena a = {0};
        cd_diag d = {0};
        assert_null(parse(&a, &d, bad[i].in, bad[i].st));
        if (bad[i].say) assert_string_equal(d.text.p, bad[i].say);
        cd_diag_free(&d);
        cd_arena_free(&a);
    }
}

TEST(bounds) {
    static char deep[100000];
    memset(deep, '[', sizeof deep - 1);
    cd_arena a = {0};
    cd_diag d = {0};
    parse(&a, &d, deep, CDMPP_EPARSE);
    assert_non_null(strstr(d.text.p, "nested deeper than 32 levels"));
    cd_diag_free(&d);
    cd_buf keys = {0};
    for (int i = 0; i <= CD_YAML_MAX_KEYS; i++) cd_buf_putf(&keys, "k%d: 1\n", i);
    parse(&a, &d, keys.p, CDMPP_ESCHEMA);
    cd_buf_free(&keys);
    cd_diag_free(&d);
    cd_arena_free(&a);
}

TESTS(NULL, NULL, tree_has_places, refuses, bounds)
