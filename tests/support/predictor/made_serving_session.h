/* A session of serving with made tables: a folder with them, stacks, and a small configuration. */
#ifndef MADE_SERVING_SESSION_H
#define MADE_SERVING_SESSION_H
#include "fault.h"
#include "made_serving.h"
#include "tmp.h"

#define STACKS                                                                                     \
    "- {stack: vllm, tokens: 64, sequences: 8, memory_share: 0.9, reserve_gb: 1, spread_tpot: "    \
    "0.1, spread_ttft: 0.2, between_s: 0}\n- {stack: sglang, tables: vllm, tokens: 64, prompts: "  \
    "apart}\n"
static tmp_dir dir;
static char path[256];
static cdmpp_err err;

static inline int up(void **state) {
    cd_buf b = {0};
    (void)state;
    dir = tmp_make();
    made_rows(&b);
    snprintf(path, sizeof path, "%s", tmp_put(&dir, "t.csv", b.p, b.n));
    cd_buf_free(&b);
    return 0;
}

static inline int down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

typedef struct {
    made_serving made;
    cd_serving_stacks stacks;
    cd_serving_session s;
} fixture;

static inline void open_session_of(fixture *f, const char *measured) {
    cd_diag diag = {0};
    made_serving_open(&f->made, measured, 1);
    assert_ok(cd_serving_stacks_read("s.yaml", STACKS, sizeof STACKS - 1, &diag, &f->stacks, &err));
    cd_diag_free(&diag);
    f->s = (cd_serving_session){.m = &f->made.m,
                                .ops = &f->made.none,
                                .devices = f->made.devices,
                                .tables = f->made.t,
                                .stacks = &f->stacks,
                                .level = 0.9,
                                .shared = 0.3};
}

static inline void open_session(fixture *f) { open_session_of(f, path); }

static inline void close_session(fixture *f) {
    cd_serving_session_end(&f->s);
    cd_serving_stacks_free(&f->stacks);
    made_serving_close(&f->made);
}

static inline cd_serving_config small(void) {
    cd_serving_config c = cd_serving_config_defaults();
    c.gpu = "h100", c.stack = "vllm-1", c.isl = 16, c.osl = 8, c.concurrency = 2, c.requests = 8;
    return c;
}
#endif
