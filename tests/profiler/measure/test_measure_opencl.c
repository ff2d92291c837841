/* GPU programs measured in processes of their own, results against the plain C program of the same
 * task. */
#include "check.h"
#include "gpuprog.h"
#include "noopencl.h"
#include "profiler/backend/backend.h"
#include "profiler/codegen/codegen.h"
#include "profiler/measure/measure.h"
#include "tmp.h"

typedef struct {
    cd_measure *m;
    unsigned n;
} rig;

/* The task without a schedule. */
static cdmpp_status plain(const gp_program *p, cd_codegen_code *out, cdmpp_err *err) {
    cd_record r = *p->rec;
    cd_program *w = NULL;
    cd_nest nest;
    r.n_step = 0;
    cdmpp_status st = cd_program_new(&w, err);
    if (!st) st = cd_program_lower_code(w, p->task, &r, err);
    if (!st) st = cd_program_nest(w, &nest, err);
    if (!st) st = cd_codegen(&nest, CD_DIALECT_C, "plain", out, err);
    cd_program_free(w);
    return st;
}

/* Three programs of a batch, one of them broken: two are compiled ahead, in processes of their own,
 * and not again by the worker. */
static cdmpp_status ahead(cd_measure *m, const cd_codegen_code *code) {
    cd_codegen_code copy[3] = {*code, *code, *code};
    cd_measure_item item[3];
    cd_buf text[3] = {{0}};
    cdmpp_err err = {0};
    for (int k = 0; k < 3; k++) {
        cd_buf_put(&text[k], code->text.p, code->text.n);
        if (k == 1) cd_buf_puts(&text[k], "nonsense");
        else cd_buf_putf(&text[k], "/* %d */", k);
        copy[k].text = text[k];
        item[k] = (cd_measure_item){.code = &copy[k], .target = "opencl"};
    }
    assert_ok(cd_measure_build(m, item, 3, &err));
    for (int k = 0; k < 3; k++) {
        assert_true((item[k].out.build_s > 0) == (k != 1));
        assert_ok(cd_measure_run(m, &item[k], &err));
        assert_int_equal(item[k].out.error_no, k == 1 ? 3 : 0);
        if (k != 1) assert_false(item[k].out.flags & CD_MEASURE_CACHED);
    }
    for (int k = 0; k < 3; k++) cd_buf_free(&text[k]);
    return CDMPP_OK;
}

static cdmpp_status measure(void *ctx, const gp_program *p, cdmpp_err *err) {
    rig *r = ctx;
    cd_codegen_code code, reference;
    if (strcmp(p->task->workload_key, "1") != 0) return CDMPP_OK;
    cdmpp_status st = cd_codegen(p->nest, CD_DIALECT_OPENCL, "p", &code, err);
    if (st || (st = plain(p, &reference, err))) return st;
    cd_measure_item item = {.code = &code, .reference = &reference, .target = "opencl"};
    st = cd_measure_one(r->m, &item, err);
    if (!st && item.out.error_no)
        st = CD_FAIL(err, EBACKEND, "error %d: %s", item.out.error_no, item.out.err.msg);
    if (!st && !(item.out.flags & CD_MEASURE_CHECKED)) st = CD_FAIL(err, ENUMERIC, "not checked");
    if (!st && !(item.out.time.mean_s > 1e-7 && item.out.time.mean_s < 1))
        st = CD_FAIL(err, ENUMERIC, "a time of %g s", item.out.time.mean_s);
    cd_measure_item again = {.code = &code, .target = "opencl"};
    if (!st && item.out.flags & CD_MEASURE_CACHED)
        st = CD_FAIL(err, ENUMERIC, "in the cache of a new folder");
    if (!st) st = cd_measure_one(r->m, &again, err);
    if (!st && (again.out.error_no || !(again.out.flags & CD_MEASURE_CACHED)))
        st = CD_FAIL(err, ENUMERIC, "compiled twice");
    /* what the device's compiler refuses is error 3, and the next one runs */
    cd_codegen_code broken = code;
    static char text[] = "__kernel void p_k0() { nonsense; }";
    broken.text = (cd_buf){.p = text, .n = sizeof text - 1};
    cd_measure_item bad = {.code = &broken, .target = "opencl"};
    if (!st) st = cd_measure_one(r->m, &bad, err);
    if (!st && bad.out.error_no != 3)
        st = CD_FAIL(err, ENUMERIC, "error %d for a text that is none", bad.out.error_no);
    if (!st) st = ahead(r->m, &code);
    r->n++;
    cd_codegen_code_free(&code);
    cd_codegen_code_free(&reference);
    return st;
}

TEST(test_measured) {
    rig r = {0};
    cdmpp_err err = {0};
    tmp_dir d = tmp_make();
    const cd_measure_options o = {.compiler = "gcc",
                                  .cache = d.path,
                                  .jobs = 2,
                                  .threads = 1,
                                  .build_limit_s = 60,
                                  .run_limit_s = 60,
                                  .timing = {.budget_s = 0.02, .warmup_s = 0.001, .max_repeat = 5}};
    /* first: OpenCL has threads, and they do not survive a fork */
    assert_ok(cd_measure_open(&o, &r.m, &err));
    const char *why = no_opencl();
    if (why) {
        print_message("no OpenCL: %s\n", why);
        cd_measure_close(r.m);
        tmp_remove(&d);
        skip();
    }
    assert_ok(gp_each(1, 5, measure, &r, &err));
    assert_int_equal(r.n, 1);
    cd_measure_close(r.m);
    tmp_remove(&d);
}

TESTS(NULL, NULL, test_measured)
