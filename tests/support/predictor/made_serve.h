/* made_serve -- the stream over made-up models and programs: requests in every form, and what they
 * give. */
#ifndef MADE_SERVE_H
#define MADE_SERVE_H
#include "made_api.h"

#include <fcntl.h>
#include <unistd.h>

#include "predictor/serve/serve_internal.h"
#include "predictor/serve/serve.h"

static made_api api;
static made_programs all;
static made_out out;
static const char *key;

static inline int setup(void **state) {
    (void)state;
    if (made_setup(&api)) return 1;
    key = cdmpp_tasks_key(api.tasks, 0);
    made_programs_init(&all, key, MADE_N);
    return 0;
}

static inline int teardown(void **state) {
    (void)state;
    made_programs_free(&all);
    made_teardown(&api);
    return 0;
}

/* ---- running it ---- */
typedef struct {
    int model, threads;
    size_t cache, batch, max_bytes;
    cd_serve_format format;
    bool costs, no_tasks, nearest;
    const char *device;
    cd_serve_stats stats;
    cdmpp_status st;
    cdmpp_err err;
} run;

static inline void serve(run *r, int in, int to) {
    const cdmpp_options o = {.size = sizeof o,
                             .device = r->device,
                             .cache = r->cache,
                             .nthreads = r->threads,
                             .nearest_device = r->nearest};
    cdmpp_context *c = NULL;
    assert_int_equal(
        cdmpp_context_new(api.model[r->model], r->no_tasks ? NULL : api.tasks, &o, &c, &r->err),
        CDMPP_OK);
    const cd_serve_options so = {.in = in,
                                 .out = to,
                                 .format = r->format,
                                 .batch = r->batch,
                                 .max_delay_ms = -1,
                                 .max_bytes = r->max_bytes,
                                 .costs = r->costs};
    r->st =
        cd_serve(c, api.model[r->model], r->no_tasks ? NULL : api.tasks, &so, &r->stats, &r->err);
    cdmpp_context_free(c);
}

/* What n bytes of input give; free it. */
static inline char *answers(run *r, const char *in, size_t n, size_t *n_out) {
    const char *path = tmp_put(&api.dir, "in", in, n);
    const int from = open(path, O_RDONLY),
              to = open(tmp_path(&api.dir, "out"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    char *text;
    size_t len;
    cdmpp_err err = {0};
    assert_true(from >= 0 && to >= 0);
    serve(r, from, to);
    close(from);
    close(to);
    assert_ok(cd_file_read(tmp_path(&api.dir, "out"), 0, &text, &len, &err));
    if (n_out) *n_out = len;
    return text;
}

static inline void expect(run *r, const char *in, const char *want) {
    char *got = answers(r, in, strlen(in), NULL);
    assert_string_equal(got, want);
    cd_mem_free(got);
}

/* The answer in which `part` must occur. */
static inline void expect_part(run *r, const char *in, const char *part) {
    char *got = answers(r, in, strlen(in), NULL);
    if (!strstr(got, part)) fail_msg("%s\n  gave %s  expected %s", in, got, part);
    cd_mem_free(got);
}

/* ---- requests ---- */
static inline void put_rows(cd_buf *b, size_t i) {
    cd_buf_puts(b, "[");
    for (int64_t r = all.row_ptr[i]; r < all.row_ptr[i + 1]; r++) {
        cd_buf_puts(b, r > all.row_ptr[i] ? ",[" : "[");
        for (int64_t c = 0; c < CD_N_COL; c++)
            cd_buf_putf(b, "%s%.9g", c ? "," : "", (double)all.rows[r * CD_N_COL + c]);
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "]");
}

enum { RECORD, STEPS, ROWS, N_KIND };

static inline void put_request(cd_buf *b, size_t i, int kind) {
    if (kind == RECORD) {
        cd_buf_putf(b, "{\"id\":%zu,", i);
        cd_buf_put(b, all.record[i].p + 1, all.record[i].n - 1);
        if (b->p[b->n - 1] != '\n') cd_buf_puts(b, "\n");
        return;
    }
    cd_buf_putf(b, "{\"id\":%zu,\"task\":", i);
    cd_buf_put_json_str(b, key, strlen(key));
    cd_buf_puts(b, ",\"target\":\"" MADE_TARGET "\",\"device\":\"zen5-avx512\"");
    if (kind == STEPS) {
        cd_buf_puts(b, ",\"hardware\":" MADE_HARDWARE ",\"steps\":");
        cd_buf_put(b, all.steps[i].p, all.steps[i].n);
    } else {
        cd_buf_puts(b, ",\"rows\":");
        put_rows(b, i);
    }
    cd_buf_puts(b, "}\n");
}

/* What the library says of program i, as a line. */
/* What the library answered last for program i. */
static inline cd_scored wanted(size_t i) {
    cd_scored o = {.pred = {out.seconds[i], 0, out.low[i], out.high[i], out.rel_std[i],
                            out.flags[i] & CDMPP_FLAG_OUT_OF_RANGE ? CD_MODEL_OUT_OF_RANGE : 0u, 0,
                            0, 0, 1 / out.score[i]},
                   .model_s = 1 / out.score[i]};
    if (out.reason[i] & CD_UNLIKE_RANGE) cd_trained_on_add(&o.unlike, CD_UNLIKE_BIT_RANGE, "", 0);
    if (out.reason[i] & CD_UNLIKE_PEAK) cd_trained_on_add(&o.unlike, CD_UNLIKE_BIT_PEAK, "", 0);
    return o;
}

static inline void put_wanted(cd_buf *b, size_t i, int model) {
    cd_scored o = wanted(i);
    char id[24];
    snprintf(id, sizeof id, "%zu", i);
    o.truncated = (out.flags[i] & CDMPP_FLAG_TRUNCATED) != 0;
    (void)model;
    cd_response_json(b, &(cd_response){.id = {id, strlen(id)}, .o = &o});
}

static inline void score_form(int model, cdmpp_form form, bool task) {
    cdmpp_err err = {0};
    const cdmpp_options o = {.size = sizeof o, .device = "zen5-avx512"};
    cdmpp_batch b = made_batch_of(&api, &all, form, 0, all.n);
    if (!task) b.task = NULL;
    cdmpp_context *c = made_context(&api, model, &o);
    const cdmpp_result r = made_result(&out);
    assert_ok(cdmpp_score(c, &b, &r, &err));
    cdmpp_context_free(c);
}

static inline void score(int model) { score_form(model, CDMPP_RECORDS, true); }
#endif
