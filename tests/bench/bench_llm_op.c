/* bench_llm_op MODEL DEVICES TABLE [between] -- how long answers for operators of language models take, one thread, processor time.
 *
 *   estimate, features       of one record
 *   one                      cd_llm_op_ask, record after record
 *   many                     cd_llm_op_ask_many of all
 *
 * TABLE: a table of questions or measured rows, whose times are not used. `between`: its rows are measured ones, and questions in no order are a third larger along the first size. Each figure is the least of ROUNDS turns; all of one run, so that ratios count. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io/io.h"
#include "learner/llm_op/llm_op.h"

enum { ROUNDS = 5 };

typedef struct {
    cd_llm_op_table t;
    cd_llm_op_record *r; /* (t.n) questions */
    const cd_device **d; /* (t.n) */
    cd_llm_op_asker *a;
    cd_llm_op_answer *out;
} rig;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static cdmpp_status estimates(rig *r, cdmpp_err *err) {
    cd_llm_op_estimate e;
    for (size_t i = 0; i < r->t.n; i++) CD_TRY(cd_llm_op_estimate_of(&r->r[i], r->d[i], &e, err));
    return CDMPP_OK;
}

static cdmpp_status features(rig *r, cdmpp_err *err) {
    const cd_llm_op_codes c = {.maker = 0};
    float x[CD_LLM_OP_N_FEATURE];
    cd_llm_op_estimate e;
    for (size_t i = 0; i < r->t.n; i++) CD_TRY(cd_llm_op_feature(&r->r[i], r->d[i], &c, NULL, x, &e, err));
    return CDMPP_OK;
}

static cdmpp_status one(rig *r, cdmpp_err *err) {
    for (size_t i = 0; i < r->t.n; i++) CD_TRY(cd_llm_op_ask(r->a, &r->r[i], r->d[i], 0.9, &r->out[i], err));
    return CDMPP_OK;
}

static cdmpp_status many(rig *r, cdmpp_err *err) { return cd_llm_op_ask_many(r->a, r->r, r->d, r->t.n, 0.9, r->out, NULL, err); }

static cdmpp_status timed(rig *r, const char *name, cdmpp_status (*f)(rig *, cdmpp_err *), cdmpp_err *err) {
    double least = 1e9;
    for (int k = 0; k < ROUNDS; k++) {
        const double t = now();
        CD_TRY(f(r, err));
        if (now() - t < least) least = now() - t;
    }
    printf("%-10s %8.3f us each, %.2f s a million\n", name, 1e6 * least / (double)r->t.n, 1e6 * least / (double)r->t.n);
    return CDMPP_OK;
}

int main(int argc, char **argv) {
    rig r = {0};
    cd_llm_op_model *m = NULL;
    cd_device_table *devices = NULL;
    cd_diag diag = {0};
    cdmpp_err err = {0};
    char *bytes = NULL;
    size_t n_byte = 0;
    char text[600];
    const bool between = argc == 5 && strcmp(argv[4], "between") == 0;
    if (argc != 4 && !between) return fputs("bench_llm_op MODEL DEVICES TABLE [between]\n", stderr), 2;
    cdmpp_status st = cd_file_read(argv[1], 1 << 30, &bytes, &n_byte, &err);
    if (!st) st = cd_llm_op_model_from_bytes(bytes, n_byte, &m, &err);
    if (!st) st = cd_device_table_load(argv[2], &diag, &devices, &err);
    if (!st) st = cd_llm_op_table_add(&r.t, argv[3], devices, NULL, NULL, NULL, &err);
    if (!st) st = cd_llm_op_table_index(&r.t, &err);
    if (!st) st = cd_llm_op_asker_new(m, between ? &r.t : NULL, &r.t.names, &r.a, &err);
    r.r = calloc(r.t.n + 1, sizeof *r.r);
    r.d = calloc(r.t.n + 1, sizeof *r.d);
    r.out = calloc(r.t.n + 1, sizeof *r.out);
    for (size_t i = 0; i < r.t.n; i++) {
        const size_t k = between ? cd_rng_at(1, i) % r.t.n : i; /* in no order, as questions come */
        r.d[i] = r.t.known[r.t.device[k]];
        r.r[i] = r.t.r[k];
        if (between) r.r[i].size[0] += floor(r.r[i].size[0] / 3);
    }
    if (!st) st = timed(&r, "estimate", estimates, &err);
    if (!st) st = timed(&r, "features", features, &err);
    if (!st) st = timed(&r, "one", one, &err);
    if (!st) st = timed(&r, "many", many, &err);
    if (st) puts(cdmpp_err_format(&err, text, sizeof text));
    free(r.d);
    free(r.r);
    free(r.out);
    cd_llm_op_asker_free(r.a);
    cd_llm_op_table_free(&r.t);
    cd_llm_op_model_free(m);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    cd_mem_free(bytes);
    return st != CDMPP_OK;
}
