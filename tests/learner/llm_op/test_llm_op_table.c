/* llm_op_table: what becomes of each line; neighbours along each size; curves beside. */
#include "learner/llm_op/llm_op.h"
#include "check.h"
#include "fault.h"
#include "made_llm_ops.h"
#include "tmp.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    tmp_dir dir;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){.dir = tmp_make()};
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
    tmp_remove(&f->dir);
    return 0;
}

static const cd_device *named(const fixture *f, const char *name) {
    const cd_device *d;
    cdmpp_err err = {0};
    assert_ok(cd_device_table_find(f->devices, name, &d, &err));
    return d;
}

static void count(void *ctx, const cdmpp_err *err) {
    assert_true(err->msg[0] != 0);
    ++*(size_t *)ctx;
}

static const char text[] =
    "device,stack,m,n,k,latency_s\nh100,a,1,2,3,2e-6\nh100,a,1,2,3,4e-6\nh100,a,1,2,3,0\nh100,a,1,"
    "2,3,\nl40s,a,1,2,3,1e-6\nh9000,a,1,2,3,1e-6\n"
    "h100,a,1,2,x,1e-6\nh100,b,1,2,3,1e-6\nh100,a,1,2,3,6e-5\n";

TEST(every_line_is_counted) {
    fixture *f = *state;
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    size_t bad = 0;
    const char *only[] = {"H100"};
    const cd_texts texts = {1, only};
    const char *path = tmp_put(&f->dir, "gemm.csv", text, sizeof text - 1);
    assert_ok(cd_llm_op_table_add(&t, path, f->devices, &texts, count, &bad, &err));
    assert_int_equal(t.n_line, 9);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.repeated, 2);
    assert_int_equal(t.drop[CD_LLM_OP_DROP_TIME], 1);
    assert_int_equal(t.drop[CD_LLM_OP_DROP_QUESTION], 1);
    assert_int_equal(t.drop[CD_LLM_OP_DROP_DEVICE], 1);
    assert_int_equal(t.drop[CD_LLM_OP_DROP_BAD], 2);
    assert_int_equal(bad, 2);
    assert_int_equal(t.count[0], 3);
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_true(t.r[0].latency_s == 4e-6); /* the median of three */
    cd_llm_op_table_free(&t);
    const char *none[] = {"h9000"};
    const cd_texts wrong = {1, none};
    assert_status(cd_llm_op_table_add(&t, path, f->devices, &wrong, NULL, NULL, &err),
                  CDMPP_ESCHEMA);
    cd_llm_op_table_free(&t);
}

/* Tables of operators that are no kinds stand in the folder of a GPU: told, not fatal. Alone such a
 * table is an error. */
TEST(folders) {
    fixture *f = *state;
    static const char rows[] = "m\tn\tk\tlatency_s\n1\t2\t3\t1e-6\n";
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    size_t bad = 0;
    (void)mkdir(tmp_path(&f->dir, "set"), 0700);
    (void)mkdir(tmp_path(&f->dir, "set/h100_sxm"), 0700);
    (void)tmp_put(&f->dir, "set/h100_sxm/gemm.tsv", rows, sizeof rows - 1);
    char other[256];
    snprintf(other, sizeof other, "%s",
             tmp_put(&f->dir, "set/h100_sxm/gdn.tsv", rows, sizeof rows - 1));
    assert_ok(
        cd_llm_op_table_add(&t, tmp_path(&f->dir, "set"), f->devices, NULL, count, &bad, &err));
    assert_int_equal(t.n, 1);
    assert_int_equal(bad, 1);
    assert_string_equal(t.known[0]->name, "h100");
    cd_llm_op_table_free(&t);
    /* damaged files: named, the others are read */
    (void)tmp_put(&f->dir, "set/h100_sxm/a_gemm.h5", "no HDF5", 7);
    (void)tmp_put(&f->dir, "set/h100_sxm/norm.tsv.xz",
                  "\xfd"
                  "7zXZ\0\0",
                  7);
    bad = 0;
    assert_ok(
        cd_llm_op_table_add(&t, tmp_path(&f->dir, "set"), f->devices, NULL, count, &bad, &err));
    assert_int_equal(t.n, 1);
    assert_int_equal(bad, 3);
    assert_int_equal(t.drop[CD_LLM_OP_DROP_BAD], 3);
    cd_llm_op_table_free(&t); /* that it was given before is forgotten */
    assert_status(cd_llm_op_table_add(&t, tmp_path(&f->dir, "set/h100_sxm/a_gemm.h5"), f->devices,
                                      NULL, count, &bad, &err),
                  CDMPP_EPARSE);
    cd_llm_op_table_free(&t);
    const char *unknown[] = {"h9000"};
    assert_status(cd_llm_op_table_add(&t, tmp_path(&f->dir, "set"), f->devices,
                                      &(cd_texts){1, unknown}, count, &bad, &err),
                  CDMPP_ESCHEMA);
    cd_llm_op_table_free(&t);
    assert_status(cd_llm_op_table_add(&t, other, f->devices, NULL, NULL, NULL, &err),
                  CDMPP_ESCHEMA);
    cd_llm_op_table_free(&t);
}

TEST(neighbours) {
    fixture *f = *state;
    const cd_device *d[] = {named(f, "h100"), named(f, "l40s")};
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    long v[2];
    made_llm_table(&t, d, 2, 3, 16);
    assert_ok(cd_llm_op_table_index(&t, &err));
    cd_llm_op_record r = made_llm_gemm(16, 512, 1024, 1);
    assert_int_equal(cd_llm_op_table_find(&t, &r, 1), CD_LLM_OP_NONE);
    cd_llm_op_table_near(&t, &r, 1, 0, cd_llm_op_table_curve(&t, &r, 1, 0), NULL, v);
    assert_true(v[0] >= 0 && v[1] >= 0);
    assert_true(t.r[v[0]].size[0] == 8 && t.r[v[1]].size[0] == 32 && t.r[v[0]].size[1] == 512 &&
                t.r[v[0]].stack == 1 && t.device[v[0]] == 1);
    uint8_t *hide = cd_mem_zalloc(t.n, 1);
    assert_non_null(hide);
    hide[v[0]] = 1;
    cd_llm_op_table_near(&t, &r, 1, 0, cd_llm_op_table_curve(&t, &r, 1, 0), hide, v);
    assert_true(t.r[v[0]].size[0] == 4 && t.r[v[1]].size[0] == 32);
    cd_mem_free(hide);
    /* no row of m 16 */
    cd_llm_op_table_near(&t, &r, 1, 1, cd_llm_op_table_curve(&t, &r, 1, 1), NULL, v);
    assert_true(v[0] == CD_LLM_OP_NONE && v[1] == CD_LLM_OP_NONE);
    r.size[0] = 8, r.size[1] = 256;
    /* the smallest n; itself is no neighbour */
    cd_llm_op_table_near(&t, &r, 0, 1, cd_llm_op_table_curve(&t, &r, 0, 1), NULL, v);
    assert_true(v[0] == CD_LLM_OP_NONE && t.r[v[1]].size[1] == 512 && t.r[v[1]].size[0] == 8);
    uint32_t alike[4];
    assert_int_equal(cd_llm_op_table_alike(&t, &r, 0,
                                           cd_llm_op_table_curve(&t, &r, 0, CD_LLM_OP_MAX_SIZE),
                                           NULL, 4, alike),
                     1);
    assert_true(t.r[alike[0]].stack == 2 && t.r[alike[0]].size[0] == 8 &&
                t.r[alike[0]].size[1] == 256 && t.device[alike[0]] == 0);
    r.size[0] = 1;
    cd_llm_op_table_near(&t, &r, 0, 0, cd_llm_op_table_curve(&t, &r, 0, 0), NULL, v);
    assert_true(v[0] == CD_LLM_OP_NONE && t.r[v[1]].size[0] == 2);
    cd_llm_op_table_free(&t);
}

/* What cd_llm_op_table_near answers, by looking at every row. */
static void near_slow(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                      size_t size, double out[2]) {
    out[0] = out[1] = -1;
    for (size_t i = 0; i < t->n; i++) {
        cd_llm_op_record a = t->r[i];
        const double v = a.size[size];
        a.size[size] = r->size[size];
        if (t->device[i] != device || !cd_llm_op_same(&a, r)) continue;
        if (v < r->size[size] && v > out[0]) out[0] = v;
        if (v > r->size[size] && (out[1] < 0 || v < out[1])) out[1] = v;
    }
}

static cd_llm_op_record drawn(uint64_t k, bool on_grid) {
    const int m = on_grid ? 1 << cd_rng_at(7, k) % 9 : (int)(1 + cd_rng_at(7, k) % 300);
    return made_llm_gemm(m, 64 * (int)(1 + cd_rng_at(7, k + 1) % 12),
                         64 * (int)(1 + cd_rng_at(7, k + 2) % 3),
                         (uint16_t)(1 + cd_rng_at(7, k + 3) % 2));
}

/* Tables drawn with few values of each size, so that curves are of all lengths and many sizes have
 * none. */
TEST(neighbours_of_drawn_rows) {
    fixture *f = *state;
    const cd_device *d[] = {named(f, "h100"), named(f, "l40s")};
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    uint64_t k = 0;
    for (size_t i = 0; i < 1500; i++, k += 5) {
        cd_llm_op_record r = drawn(k, true);
        assert_ok(cd_llm_op_table_put(&t, &r, d[cd_rng_at(7, k + 4) % 2], &err));
    }
    assert_ok(cd_llm_op_table_index(&t, &err));
    size_t found = 0, none = 0;
    for (size_t i = 0; i < 1200; i++, k += 5) {
        const cd_llm_op_record r = drawn(k, i % 2);
        const uint32_t device = (uint32_t)(cd_rng_at(7, k + 4) % 2);
        uint64_t curve[CD_LLM_OP_MAX_SIZE + 1];
        cd_llm_op_table_curves(&t, &r, device, curve);
        if (cd_llm_op_table_find(&t, &r, device) >= 0)
            assert_true(curve[CD_LLM_OP_MAX_SIZE] != CD_LLM_OP_NO_CURVE);
        for (size_t size = 0; size < 3; size++) {
            double want[2];
            long v[2];
            near_slow(&t, &r, device, size, want);
            cd_llm_op_table_near(&t, &r, device, size, cd_llm_op_table_curve(&t, &r, device, size),
                                 NULL, v);
            for (size_t side = 0; side < 2; side++) {
                assert_int_equal(v[side] >= 0, want[side] >= 0);
                if (v[side] >= 0) assert_true(t.r[v[side]].size[size] == want[side]);
                found += v[side] >= 0;
            }
            if (curve[size] == CD_LLM_OP_NO_CURVE) assert_true(v[0] < 0 && v[1] < 0);
            else assert_true(curve[size] == cd_llm_op_table_curve(&t, &r, device, size));
            none += curve[size] == CD_LLM_OP_NO_CURVE;
        }
    }
    assert_true(found > 500 && none > 500 && none < 2400);
    cd_llm_op_table_free(&t);
}

/* Bytes of a message are too many digits for 32 bits of a real: sizes that are equal there keep
 * their order. */
TEST(neighbours_of_long_sizes) {
    fixture *f = *state;
    const cd_device *d = named(f, "h100");
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    long v[2];
    const double from = 16777216; /* 2^24 */
    for (int i = 0; i < 40; i += 2) {
        const cd_llm_op_record r = made_llm_gemm(from + (i * 7) % 40, 64, 64, 1);
        assert_ok(cd_llm_op_table_put(&t, &r, d, &err));
    }
    assert_ok(cd_llm_op_table_index(&t, &err));
    for (int i = 0; i < 40; i++) {
        const cd_llm_op_record r = made_llm_gemm(from + i, 64, 64, 1);
        double want[2];
        near_slow(&t, &r, 0, 0, want);
        cd_llm_op_table_near(&t, &r, 0, 0, cd_llm_op_table_curve(&t, &r, 0, 0), NULL, v);
        for (size_t side = 0; side < 2; side++) {
            assert_int_equal(v[side] >= 0, want[side] >= 0);
            if (v[side] >= 0) assert_true(t.r[v[side]].size[0] == want[side]);
        }
    }
    cd_llm_op_table_free(&t);
}

TEST(refused) {
    fixture *f = *state;
    const char *path = tmp_put(&f->dir, "gemm.csv", text, sizeof text - 1);
    FAULT_SWEEP(s, 5) {
        cd_llm_op_table t = {0};
        s.st = cd_llm_op_table_add(&t, path, f->devices, NULL, NULL, NULL, &s.err);
        if (!s.st) s.st = cd_llm_op_table_index(&t, &s.err);
        cd_llm_op_table_free(&t);
    }
}

/* What is told of bad lines. */
typedef struct {
    size_t n;
    cdmpp_err v[20];
} told;

static void keep(void *ctx, const cdmpp_err *err) {
    told *t = ctx;
    assert_true(t->n < 20);
    t->v[t->n++] = *err;
}

static told read_text(fixture *f, const char *csv, size_t drop) {
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    told v = {0};
    assert_ok(cd_llm_op_table_add(&t, tmp_put(&f->dir, "gemm.csv", csv, strlen(csv)), f->devices,
                                  NULL, keep, &v, &err));
    assert_int_equal(t.drop[CD_LLM_OP_DROP_BAD], drop);
    cd_llm_op_table_free(&t);
    return v;
}

/* At most eight lines of a file are told one by one, and then how many others there are; a device
 * that nobody knows once. */
TEST(few_are_told) {
    fixture *f = *state;
    cd_buf b = {0};
    for (int n = 1; n <= 30; n += n < 7 || n > 10 ? 6 : 1) {
        cd_buf_clear(&b);
        cd_buf_puts(&b, "device,m,n,k,latency_s\n");
        for (int i = 0; i < n; i++) cd_buf_putf(&b, "h100,%d,2,x,1e-6\n", i + 1);
        const told bad = read_text(f, b.p, (size_t)n);
        assert_int_equal(bad.n, n > 8 ? 9 : n);
        for (size_t i = 0; i < bad.n && i < 8; i++) assert_int_equal(bad.v[i].line, i + 2);
        if (n == 25) assert_string_equal(bad.v[8].msg, "17 further lines are left out");
        cd_buf_clear(&b);
        cd_buf_puts(&b, "device,m,n,k,latency_s\nh100,1,2,x,1e-6\n");
        for (int i = 0; i < n; i++) cd_buf_puts(&b, "h9000,1,2,3,1e-6\n");
        cd_buf_puts(&b, "h100,1,2,3,1e-6\nh100,1,2,x,1e-6\n");
        const told other = read_text(f, b.p, (size_t)n + 2);
        assert_int_equal(other.n, 3);
        assert_int_equal(other.v[1].line, 3);
        assert_true((strstr(other.v[1].msg, " alike") != NULL) == (n > 1));
        if (n == 25) assert_non_null(strstr(other.v[1].msg, "; 24 further lines are alike"));
        assert_int_equal(other.v[2].line, n + 4);
    }
    cd_buf_free(&b);
    /* the folder may be called by a device, this one is not */
    const told none = read_text(f, "m,n,k,latency_s\n1,2,3,1e-6\n", 1);
    assert_int_equal(none.n, 1);
}

TESTS(up, down, few_are_told, every_line_is_counted, folders, neighbours, neighbours_of_drawn_rows,
      neighbours_of_long_sizes, refused)
