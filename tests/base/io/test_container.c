/* frame: what goes in comes out; any change to a byte is noticed. */
#include "base/io/io.h"
#include "check.h"

#include <string.h>

static const char *const magic[] = {"CDMPPMDL", "CDMPPCKP"};

static void made(cd_container_kind kind, const char *head, size_t n, cd_buf *file) {
    cd_buf header = {0}, weights = {0};
    cdmpp_err err = {0};
    cd_buf_put(&header, head, n);
    cd_buf_put(&weights, "\0\1\2\3", 4);
    assert_ok(cd_container_put(kind, file, &header, &weights, &err));
    cd_buf_free(&header);
    cd_buf_free(&weights);
}

TEST(round_trip) {
    for (int kind = CD_CONTAINER_MODEL; kind <= CD_CONTAINER_CHECKPOINT; kind++) {
        cd_buf f = {0};
        cd_container g;
        cdmpp_err err = {0};
        made((cd_container_kind)kind, "{\"a\":1}", 7, &f);
        assert_int_equal(f.n, 32 + 7 + 4 + 64);
        assert_memory_equal(f.p, magic[kind], 8);
        assert_ok(cd_container_get((cd_container_kind)kind, f.p, f.n, &g, &err));
        assert_true(cd_str_is(g.header, "{\"a\":1}") && g.weights.n == 4 &&
                    !memcmp(g.weights.p, "\0\1\2\3", 4));
        assert_int_equal(g.version, kind == CD_CONTAINER_MODEL ? 2 : 1);
        /* of the other kind */
        assert_status(cd_container_get((cd_container_kind)!kind, f.p, f.n, &g, &err), CDMPP_EPARSE);
        cd_buf_free(&f);
    }
}

TEST(every_byte_counts) {
    cd_buf f = {0};
    cd_container g;
    cdmpp_err err = {0};
    made(CD_CONTAINER_MODEL, "{\"a\":1}", 7, &f);
    for (size_t i = 0; i < f.n; i++) {
        f.p[i] = (char)(f.p[i] ^ 1);
        assert_true(cd_container_get(CD_CONTAINER_MODEL, f.p, f.n, &g, &err) != CDMPP_OK);
        f.p[i] = (char)(f.p[i] ^ 1);
        assert_status(cd_container_get(CD_CONTAINER_MODEL, f.p, i, &g, &err), CDMPP_EPARSE);
    }
    f.p[8] = 9;
    assert_status(cd_container_get(CD_CONTAINER_MODEL, f.p, f.n, &g, &err), CDMPP_EUNSUPPORTED);
    cd_buf_free(&f);
}

TEST(header_is_json) {
    static const struct {
        const char *text;
        size_t n;
        cdmpp_status want;
    } tab[] = {{"{\"a\":1}", 7, CDMPP_OK},
               {"{\"a\":1\0}", 8, CDMPP_EPARSE},
               {"{\"a\":", 5, CDMPP_EPARSE},
               {"", 0, CDMPP_EPARSE}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_buf f = {0};
        cd_arena a = {0};
        cd_container g;
        cdmpp_err err = {0};
        const char *text;
        const cd_json *root;
        made(CD_CONTAINER_MODEL, tab[k].text, tab[k].n, &f);
        assert_ok(cd_container_get(CD_CONTAINER_MODEL, f.p, f.n, &g, &err));
        assert_status(cd_container_header(&g, &a, &text, &root, &err), tab[k].want);
        if (!tab[k].want) assert_non_null(cd_json_get(root, "a"));
        cd_arena_free(&a);
        cd_buf_free(&f);
    }
}

TESTS(NULL, NULL, round_trip, every_byte_counts, header_is_json)
