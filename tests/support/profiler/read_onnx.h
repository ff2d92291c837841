/* read_onnx -- the small ONNX files in tests/profiler/data, read with options, and what is asked of
 * them. */
#ifndef READ_ONNX_H
#define READ_ONNX_H
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "profiler/network/onnx/onnx.h"

typedef struct read {
    cd_graph *g;
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    cdmpp_err err;
} onnx;

static inline cdmpp_status open_with(onnx *r, const char *name, const cd_onnx_options *o) {
    char path[256];
    memset(r, 0, sizeof *r);
    snprintf(path, sizeof path, "tests/profiler/data/%s.onnx", name);
    return cd_onnx_read(path, o, &r->g, &r->miss, &r->n_miss, &r->err);
}

static inline onnx must(const char *name, const cd_onnx_options *o) {
    onnx r;
    const cdmpp_status st = open_with(&r, name, o);
    cdmpp_err err = r.err;
    check_status(st, CDMPP_OK, &err, name, __FILE__, __LINE__);
    return r;
}

/* The file is refused with this status, and the message tells of all the words. */
static inline void refuse(const char *name, const cd_onnx_options *o, cdmpp_status want,
                          const char *words) {
    char all[256], *save = NULL;
    onnx r;
    const cdmpp_status st = open_with(&r, name, o);
    cdmpp_err err = r.err;
    check_status(st, want, &err, name, __FILE__, __LINE__);
    assert_null(r.g);
    assert_non_null(strstr(err.path, name));
    snprintf(all, sizeof all, "%s", words);
    for (char *w = strtok_r(all, "|", &save); w; w = strtok_r(NULL, "|", &save))
        if (!strstr(err.msg, w) && !strstr(err.key, w)) {
            print_error("%s: \"%s\" is not in \"%s: %s\"\n", name, w, err.key, err.msg);
            fail();
        }
}

static inline const cd_graph_tensor *tensor(const cd_graph *g, const char *name) {
    for (uint32_t i = 0; i < g->n_tensor; i++)
        if (!strcmp(g->tensor[i].name, name)) return &g->tensor[i];
    print_error("no tensor %s\n", name);
    fail();
    return NULL;
}

static inline void has_shape(const cd_graph *g, const char *name, const char *want) {
    const cd_graph_shape *s = &tensor(g, name)->shape;
    char got[128] = "";
    for (uint32_t d = 0; d < s->rank; d++)
        sprintf(got + strlen(got), d ? ",%lld" : "%lld", (long long)s->dim[d]);
    assert_string_equal(got, want);
}

static inline void missed(const onnx *r, uint32_t i, const char *node, const char *word) {
    assert_true(i < r->n_miss);
    assert_string_equal(r->miss[i].node, node);
    if (!strstr(r->miss[i].reason, word)) fail_msg("%s: %s", node, r->miss[i].reason);
}
#endif
