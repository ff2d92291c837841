/* Odd JSON, YAML and configurations. */
#include <stddef.h>

#include "base/text/text.h"
#include "odd.h"

static cdmpp_status json(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_json *v;
    (void)ctx;
    const cdmpp_status st = cd_json_parse(&a, text, n, &v, err);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status foreign(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    cd_buf said = {0};
    const cd_json *v;
    (void)ctx;
    const cdmpp_status st = cd_json_parse_foreign(&a, (cd_str){text, n}, &said, &v, err);
    cd_buf_free(&said);
    cd_arena_free(&a);
    return st;
}

typedef struct {
    int64_t n;
    double f;
    bool b;
    int e;
    const char *t;
    cd_texts l, need;
} config;

static const cd_conf_key keys[] = {
    {"a.n", CD_CONF_INT, offsetof(config, n), "1", "0..9", ""},
    {"a.f", CD_CONF_REAL, offsetof(config, f), "1", "(0..10", ""},
    {"a.b", CD_CONF_BOOL, offsetof(config, b), "true", "", ""},
    {"e", CD_CONF_ENUM, offsetof(config, e), "x", "x|y", ""},
    {"t", CD_CONF_TEXT, offsetof(config, t), "", "", ""},
    {"l", CD_CONF_LIST, offsetof(config, l), "[]", "", ""},
    {"need", CD_CONF_LIST, offsetof(config, need), "[x]", "1", ""},
};

static cdmpp_status conf(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    config v = {0};
    cd_arena a = {0};
    cd_diag d = {0};
    const cd_conf c = {keys, sizeof keys / sizeof *keys, &v, &a, &d};
    (void)ctx;
    cdmpp_status st = cd_conf_defaults(&c, err);
    if (!st) st = cd_conf_read(&c, "f.yaml", text, n, err);
    cd_diag_free(&d);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status assignment(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    config v = {0};
    cd_arena a = {0};
    cd_diag d = {0};
    const cd_conf c = {keys, sizeof keys / sizeof *keys, &v, &a, &d};
    (void)ctx, (void)n;
    cdmpp_status st = cd_conf_defaults(&c, err);
    if (!st) st = cd_conf_set(&c, text, err);
    cd_diag_free(&d);
    cd_arena_free(&a);
    return st;
}

#define JSON                                                                                       \
    "{\"a\": [1, -2.5e3, true, null, \"x\\u00e9\\n\\ud83d\\ude00\"], \"b\\u0041\": {}, \"c\": "    \
    "[[], {\"d\": 12345678901234567890}]}\n"

TEST(json_texts) { odd_all(JSON, json, NULL); }
TEST(texts_of_others) {
    odd_all(JSON, foreign, NULL);
    odd_all("{\"a\": 1, \"a\": 2, \"b\\u0041\": {\"x\": 1, \"\\u0078\": 2}, \"bA\": 3}", foreign,
            NULL);
}
TEST(configurations) {
    odd_all("a:\n  n: 3\n  f: 0.5\n  b: false\ne: y\nt: \"text\"\nl: [p, \"q\"]\nneed:\n  - r\n  - "
            "s # last\n",
            conf, NULL);
    odd_all("a.n: 3\nl: one\n", conf, NULL);
}
TEST(assignments) {
    odd_all("a.n=3", assignment, NULL);
    odd_all("l=[p, q]", assignment, NULL);
    odd_all("a.f=0.5", assignment, NULL);
}

TESTS(NULL, NULL, json_texts, texts_of_others, configurations, assignments)
