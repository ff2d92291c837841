/* Any bytes as a configuration: no crash, and what prints must read back. */
#include <stdlib.h>

#include "base/text/text.h"

typedef struct {
    int64_t n;
    double f;
    bool b;
    int e;
    const char *t;
    cd_texts l;
} config;

static const cd_conf_key keys[] = {
    {"a.n", CD_CONF_INT, offsetof(config, n), "1", "0..9", ""},
    {"a.f", CD_CONF_REAL, offsetof(config, f), "1", "", ""},
    {"a.b", CD_CONF_BOOL, offsetof(config, b), "true", "", ""},
    {"e", CD_CONF_ENUM, offsetof(config, e), "x", "x|y", ""},
    {"t", CD_CONF_TEXT, offsetof(config, t), "", "", ""},
    {"l", CD_CONF_LIST, offsetof(config, l), "[]", "", ""},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    config v = {0};
    cd_arena a = {0};
    cd_diag d = {0};
    cd_buf out = {0};
    cdmpp_err err = {0};
    const cd_conf c = {keys, sizeof keys / sizeof *keys, &v, &a, &d};
    if (cd_conf_defaults(&c, &err)) abort();
    if (!cd_conf_read(&c, "f", (const char *)data, size, &err)) {
        if (d.n) abort();
        cd_conf_print(&out, &c);
        if (out.n < CD_YAML_MAX_BYTES && cd_conf_read(&c, "p", out.p, out.n, &err)) abort();
    } else if (!d.n) {
        abort(); /* an error without a line for the user */
    }
    cd_buf_free(&out);
    cd_diag_free(&d);
    cd_arena_free(&a);
    return 0;
}
