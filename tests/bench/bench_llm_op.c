/* bench_llm_op MODEL DEVICES TABLE [between [KIND]] -- how long answers for operators of language
 * models take, one thread, processor time.
 *
 *   estimate, features       of one record
 *   one                      cd_llm_op_ask, record after record
 *   many                     cd_llm_op_ask_many of all
 *
 * TABLE: a table of questions or measured rows, or a folder of these, whose times are not used.
 * `between`: its rows are measured ones, and questions (of KIND alone, where it is named) in no
 * order are a third larger along the first size, and not measured. Each figure is the least of
 * ROUNDS turns, of which the first (which is told) also finds out what trees expect of the measured
 * rows; all of one run, so that ratios count. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io/io.h"
#include "learner/llm_op/llm_op.h"

enum { ROUNDS = 5, MOST = 300000, TRIES = 100 };

typedef struct {
    cd_llm_op_table t;
    size_t n;            /* questions */
    cd_llm_op_record *r; /* (n) */
    const cd_device **d; /* (n) */
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
    for (size_t i = 0; i < r->n; i++) CD_TRY(cd_llm_op_estimate_of(&r->r[i], r->d[i], &e, err));
    return CDMPP_OK;
}

static cdmpp_status features(rig *r, cdmpp_err *err) {
    const cd_llm_op_codes c = {.maker = 0};
    float x[CD_LLM_OP_N_FEATURE];
    cd_llm_op_estimate e;
    for (size_t i = 0; i < r->n; i++)
        CD_TRY(cd_llm_op_feature(&r->r[i], r->d[i], &c, NULL, x, &e, err));
    return CDMPP_OK;
}

static cdmpp_status one(rig *r, cdmpp_err *err) {
    for (size_t i = 0; i < r->n; i++)
        CD_TRY(cd_llm_op_ask(r->a, &r->r[i], r->d[i], 0.9, &r->out[i], err));
    return CDMPP_OK;
}

static cdmpp_status many(rig *r, cdmpp_err *err) {
    return cd_llm_op_ask_many(r->a, r->r, r->d, r->n, 0.9, r->out, NULL, err);
}

static cdmpp_status timed(rig *r, const char *name, cdmpp_status (*f)(rig *, cdmpp_err *),
                          cdmpp_err *err) {
    double least = 1e9, first = 0;
    for (int k = 0; k < ROUNDS; k++) {
        const double t = now();
        CD_TRY(f(r, err));
        const double s = now() - t;
        if (!k) first = s;
        if (s < least) least = s;
    }
    printf("%-10s %8.3f us each, %.2f s a million; the first turn %.2f s a million\n", name,
           1e6 * least / (double)r->n, 1e6 * least / (double)r->n, 1e6 * first / (double)r->n);
    return CDMPP_OK;
}

static double larger(const cd_llm_op_record *r) { return r->size[0] + floor(r->size[0] / 3); }

/* A row, in no order, as questions come. One a third larger is not measured: of a few tables all
 * are, and then it counts all the same. */
static size_t drawn(const cd_llm_op_table *t, const uint32_t *of, size_t n, size_t *draw) {
    size_t k = 0;
    for (int tries = 0; tries < TRIES; tries++) {
        k = of[cd_rng_at(1, (*draw)++) % n];
        cd_llm_op_record r = t->r[k];
        r.size[0] = larger(&r);
        if (cd_llm_op_table_find(t, &r, t->device[k]) < 0) break;
    }
    return k;
}

static bool asks(rig *r, bool between, const char *kind) {
    uint32_t *of = calloc(r->t.n + 1, sizeof *of);
    size_t n = 0, draw = 0;
    for (size_t i = 0; of && i < r->t.n; i++)
        if (!kind || !strcmp(cd_llm_op_kind_name((cd_llm_op_kind)r->t.r[i].kind), kind))
            of[n++] = (uint32_t)i;
    r->n = n < MOST ? n : MOST;
    r->r = calloc(r->n + 1, sizeof *r->r);
    r->d = calloc(r->n + 1, sizeof *r->d);
    r->out = calloc(r->n + 1, sizeof *r->out);
    for (size_t i = 0; r->r && r->d && r->out && i < r->n; i++) {
        const size_t k = between ? drawn(&r->t, of, n, &draw) : of[i];
        r->d[i] = r->t.known[r->t.device[k]];
        r->r[i] = r->t.r[k];
        if (between) r->r[i].size[0] = larger(&r->t.r[k]);
    }
    free(of);
    return n && r->r && r->d && r->out;
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
    const bool between = argc > 4 && argc < 7 && strcmp(argv[4], "between") == 0;
    if (argc != 4 && !between)
        return fputs("bench_llm_op MODEL DEVICES TABLE [between [KIND]]\n", stderr), 2;
    cdmpp_status st = cd_file_read(argv[1], 1 << 30, &bytes, &n_byte, &err);
    if (!st) st = cd_llm_op_model_from_bytes(bytes, n_byte, &m, &err);
    if (!st) st = cd_device_table_load(argv[2], &diag, &devices, &err);
    if (!st) st = cd_llm_op_table_add(&r.t, argv[3], devices, NULL, NULL, NULL, &err);
    if (!st) st = cd_llm_op_table_index(&r.t, &err);
    if (!st) st = cd_llm_op_asker_new(m, between ? &r.t : NULL, &r.t.names, &r.a, &err);
    if (!st && !asks(&r, between, argc == 6 ? argv[5] : NULL))
        st = CD_FAIL(&err, ESCHEMA, "no row to ask");
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
