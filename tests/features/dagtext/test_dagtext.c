/* Definitions as TVM prints them: what the text leaves open is solved from the shapes of the key,
 * or refused. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"

#include "features/dagtext/dagtext.h"
#include "features/task/task.h"

#define SYM CD_DAGTEXT_SYMMETRIC_PADDING
#define F32 CD_DAGTEXT_FLOAT32
#define CUT 64 /* the key has another hash */

/* A convolution of 8x8x4 with 3x3 kernels, padding 1 before; step S of the output, which is NxN. */
#define CONV(step, n)                                                                              \
    "src = PLACEHOLDER [1, 8, 8, 4]\n"                                                             \
    "wide(a, b, c, d) = tir.if_then_else(((((b >= 1) && (b < 9)) && (c >= 1)) && (c < 9)), "       \
    "src[a, (b - 1), (c - 1), d], 0f)\n"                                                           \
    "w = PLACEHOLDER [3, 3, 4, 6]\n"                                                               \
    "conv2d_nhwc(n, y, x, f) += (wide[n, (" step " + ky), (" n " + kx), kc]*w[ky, kx, kc, f])\n"
#define RELU "act(n, y, x, f) = max(conv2d_nhwc[n, y, x, f], 0f)\n"

typedef struct {
    const char *text, *shapes;
    unsigned allowed;
    const char *want; /* error; NULL: read */
    unsigned rests;
} one;

static cdmpp_status read_one(const one *t, cd_te_dag **dag, unsigned *rests, cdmpp_err *err) {
    char hash[33];
    cd_buf key = {0};
    const cd_str text = {t->text, strlen(t->text)};
    *dag = NULL, *rests = 0;
    cdmpp_status st = cd_dagtext_hash(text, hash, err);
    if (!st && t->allowed & CUT) hash[0] = hash[0] == '0' ? '1' : '0';
    cd_buf_putf(&key, "[\"%s\"%s]", st ? "" : hash, t->shapes);
    if (!st && key.oom) st = CD_FAIL(err, ENOMEM, "key");
    if (!st) st = cd_dagtext_read((cd_str){key.p, key.n}, text, t->allowed & 3U, dag, rests, err);
    cd_buf_free(&key);
    return st;
}

static void check_one(const one *t) {
    cdmpp_err err = {0};
    cd_te_dag *dag;
    unsigned rests;
    char hash[33];
    const cdmpp_status st = read_one(t, &dag, &rests, &err);
    if (t->want) {
        if (!st || !strstr(err.msg, t->want))
            print_error("want \"%s\", found %d \"%s\" of\n%s", t->want, (int)st, err.msg, t->text);
        assert_true(st && strstr(err.msg, t->want));
        assert_null(dag);
        return;
    }
    if (st) print_error("%s\n%s", err.msg, t->text);
    assert_ok(st);
    assert_int_equal(rests, t->rests);
    assert_ok(cd_te_dag_hash(dag, hash, &err));
    cd_te_dag_free(dag);
}

static int64_t size_of(const cd_te_dag *dag, const char *op, const char *axis) {
    for (uint32_t i = 0; i < dag->n_op; i++) {
        const cd_te_op *o = &dag->op[i];
        for (uint32_t k = 0; k < o->n_axis; k++)
            if (!strcmp(o->name, op) && !strcmp(o->axis[k].name, axis))
                return o->axis[k].extent->u.i;
        for (uint32_t k = 0; k < o->n_raxis; k++)
            if (!strcmp(o->name, op) && !strcmp(o->raxis[k].name, axis))
                return o->raxis[k].extent->u.i;
    }
    return -1;
}

/* Extents in words: "wide.b=10 conv2d_nhwc.kc=4". */
static void check_sizes(const one *t, const char *want) {
    cdmpp_err err = {0};
    cd_te_dag *dag;
    unsigned rests;
    char op[40], axis[40];
    long long size;
    int used;
    assert_ok(read_one(t, &dag, &rests, &err));
    for (; sscanf(want, " %39[^.].%39[^=]=%lld%n", op, axis, &size, &used) == 3; want += used)
        assert_int_equal(size_of(dag, op, axis), size);
    assert_int_equal(strlen(want), 0);
    cd_te_dag_free(dag);
}

TEST(convolution) {
    const one t = {CONV("y", "x") RELU, ", [1, 8, 8, 4], [3, 3, 4, 6], [1, 8, 8, 6]", 0, NULL, 0};
    const one flat = {CONV("y", "x") RELU, ", 1, 8, 8, 4, 3, 3, 4, 6, 1, 8, 8, 6", 0, NULL, 0};
    const char *const want = "wide.a=1 wide.b=10 wide.c=10 wide.d=4 conv2d_nhwc.f=6 "
                             "conv2d_nhwc.ky=3 conv2d_nhwc.kx=3 conv2d_nhwc.kc=4 act.y=8";
    cdmpp_err err = {0};
    cd_te_dag *dag;
    unsigned rests;
    check_sizes(&t, want);
    check_sizes(&flat, want);
    assert_ok(read_one(&t, &dag, &rests, &err));
    assert_true(dag->op[2].layout_free && !dag->op[0].layout_free);
    assert_int_equal(dag->n_arg, 3);
    assert_int_equal(dag->arg[2], 4);
    cd_te_dag_free(dag);
}

/* Every second element: the padded stage has 17 elements or 18, and the text does not tell. */
TEST(stride) {
    const char *const shapes = ", [1, 8, 8, 4], [3, 3, 4, 6], [1, 4, 4, 6]";
    const char *const text = CONV("(y*2)", "(x*2)") RELU;
    const one strict = {text, shapes, 0, "axis b of wide is open: its extent may be 9 or 10", 0};
    const one assumed = {text, shapes, SYM, NULL, SYM};
    check_one(&strict);
    check_one(&assumed);
    check_sizes(&assumed, "wide.b=10 wide.c=10");
}

TEST(padding_behind) { /* no width of it is symmetric */
    const one t = {"src = PLACEHOLDER [8]\nwide(a) = tir.if_then_else((a < 8), src[a], 0f)\nw = "
                   "PLACEHOLDER [3]\nsum(i) += (wide[((i*2) + k)]*w[k])\n",
                   ", [8], [3], [4]", SYM, "axis a of wide is open: its extent may be 9 or 10", 0};
    check_one(&t);
}

TEST(blocks) { /* channels in blocks of 4, read by floordiv and floormod */
    const one t = {"p0 = PLACEHOLDER [1, 12, 5, 5]\n"
                   "data_vec(n, c, h, w, v) = p0[n, ((c*4) + v), h, w]\n"
                   "p1 = PLACEHOLDER [8, 12, 2, 2]\n"
                   "kernel_vec(o, i, h, w, v, u) = p1[((o*8) + u), ((i*4) + v), h, w]\n"
                   "conv(n, o, y, x, u) += (data_vec[n, floordiv(ic, 4), (y + ky), (x + kx), "
                   "floormod(ic, 4)]*kernel_vec[o, floordiv(ic, 4), ky, kx, floormod(ic, 4), u])\n"
                   "unpack(n, c, h, w) = max(conv[n, floordiv(c, 8), h, w, floormod(c, 8)], 0f)\n",
                   ", [1, 12, 5, 5], [8, 12, 2, 2], [1, 8, 4, 4]", 0, NULL, 0};
    check_sizes(&t, "data_vec.c=3 data_vec.v=4 data_vec.h=5 kernel_vec.o=1 kernel_vec.u=8 "
                    "kernel_vec.i=3 conv.ic=12 conv.ky=2 conv.o=1 conv.u=8");
}

TEST(groups) { /* of which each reads 4 channels of its own */
    const one t = {
        "p0 = PLACEHOLDER [1, 6, 8]\ncopy(a, b, c) = max(p0[a, b, c], 0f)\np1 = PLACEHOLDER [3, 4, "
        "16]\n"
        "group(n, y, f) += (copy[n, (y + ky), ((floordiv(f, 8)*4) + kc)]*p1[ky, kc, f])\n",
        ", [1, 6, 8], [3, 4, 16], [1, 4, 16]", 0, NULL, 0};
    check_sizes(&t, "copy.b=6 copy.c=8 group.ky=3 group.kc=4");
}

TEST(transposed) { /* zeros between the elements, then around them, and a kernel read backwards */
    const one t = {
        "p0 = PLACEHOLDER [1, 4]\n"
        "spread(a, b) = tir.if_then_else((floormod(b, 2) == 0), p0[a, floordiv(b, 2)], 0f)\n"
        "wide(a, b) = tir.if_then_else(((b >= 2) && (b < 9)), spread[a, (b - 2)], 0f)\n"
        "p1 = PLACEHOLDER [4]\nturned(k) = p1[(3 - k)]\n"
        "conv(n, y) += (wide[n, (y + k)]*turned[k])\n",
        ", [1, 4], [4], [1, 8]", 0, NULL, 0};
    check_sizes(&t, "spread.b=7 wide.b=11 turned.k=4 conv.k=4");
}

TEST(softmax) {
    const one t = {"x = PLACEHOLDER [4, 10]\nhighest(i) max= x[i, k]\np(i, j) = tir.exp((x[i, j] - "
                   "highest[i]))\ntotal(i) += p[i, k]\n"
                   "norm(i, j) = max((p[i, j]/total[i]), 0f)\n",
                   ", [4, 10], [4, 10]", 0, NULL, 0};
    check_sizes(&t, "highest.k=10 p.j=10 total.i=4 total.k=10");
}

TEST(joined) { /* the other branch of a condition holds where it does not */
    const one t = {
        "p0 = PLACEHOLDER [8]\nA(i) = max(p0[i], 0f)\np1 = PLACEHOLDER [3]\nB(i) = max(p1[i], 0f)\n"
        "both(j) = tir.if_then_else((j < 8), A[j], B[(j - 8)])\n",
        ", [8], [3], [11]", 0, NULL, 0};
    check_sizes(&t, "A.i=8 B.i=3");
}

TEST(gaps) { /* of 0 1 4 5 8 9 the remainders by 8 are not all of 0 to 7 */
    const one t = {
        "p0 = PLACEHOLDER [6]\nA(k) = max(p0[k], 0f)\nB(i, j) = A[floormod(((i*4) + j), 8)]\n",
        ", [6], [3, 2]", 0, NULL, 0};
    check_sizes(&t, "A.k=6");
}

/* What the average divides by are the extents of the sum. */
TEST(adaptive) {
#define ADAPTIVE                                                                                   \
    "x = PLACEHOLDER [6, 8]\nadaptive_pool_sum(i, j) += x[i, (floordiv((j*8), 3) + r)]\n"
    static const one t[] = {
        {ADAPTIVE "avg(i, j) = (adaptive_pool_sum[i, j]/float32((floordiv((((j + 1)*8) + 2), 3) - "
                  "floordiv((j*8), 3))))\n",
         ", [6, 8], [6, 3]", 0, NULL, 0},
        {ADAPTIVE "avg(i, j) = (adaptive_pool_sum[i, j]/4f)\n", ", [6, 8], [6, 3]", 0,
         "the extents of adaptive_pool_sum are expressions", 0},
        {ADAPTIVE "avg(i, j) = (adaptive_pool_sum[i, 0]/float32((floordiv((((j + 1)*8) + 2), 3) - "
                  "floordiv((j*8), 3))))\n",
         ", [6, 8], [6, 3]", 0, "the extents of adaptive_pool_sum are expressions", 0},
        {"x = PLACEHOLDER [6, 6]\nadaptive_pool_max(i, j) max= x[i, ((j*2) + r)]\n",
         ", [6, 6], [6, 3]", F32, "the extents of adaptive_pool_max are expressions", 0},
        {"x = PLACEHOLDER [6, 7]\npool(i, j) max= max(x[i, (floordiv((j*7), 7) + r)], 0f)\n",
         ", [6, 7], [6, 7]", 0, "axis r of pool is open: its extent may be 1 or more", 0},
    };
    cdmpp_err err = {0};
    cd_te_dag *dag;
    unsigned rests;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) check_one(&t[k]);
    assert_ok(read_one(&t[0], &dag, &rests, &err));
    const cd_te_op *sum = &dag->op[1];
    assert_int_equal(sum->raxis[0].extent->op, CD_SUB);
    assert_true(cd_expr_uses(sum->raxis[0].extent, sum->axis[1].var));
    assert_false(cd_expr_uses(sum->raxis[0].extent, dag->op[2].axis[1].var));
    cd_te_dag_free(dag);
}

TEST(open) {
    static const one t[] = {
        {"p0 = PLACEHOLDER [9]\nmost(i) max= max(p0[((i*2) + k)], 0f)\n", ", [9], [4]", SYM,
         "axis k of most is open: its extent may be 2 or 3", 0},
        {"p0 = PLACEHOLDER [7]\nsum(i) += max(p0[((i*7) + k)], 0f)\n", ", [7], [1]", SYM,
         "axis k of sum is open: its extent may be 1 to 7", 0},
        {"p0 = PLACEHOLDER [8]\nwide(a) = tir.if_then_else(((a >= 1) && (a < 9)), p0[(a - 1)], "
         "0f)\nsum(i) += wide[(i + k)]\n",
         ", [8], [8]", 0, "axis a of wide is open: its extent may be 9 or more", 0},
        {"p0 = PLACEHOLDER [8]\nT_strided_slice(i) = max(p0[i], 0f)\nsum() += T_strided_slice[k]\n",
         ", [8], []", 0, "axis i of T_strided_slice is open: its extent may be 1 to 8", 0},
        {"p0 = PLACEHOLDER [4]\ntwice(i) = (p0[i] + p0[i])\n", ", [4], [4]", SYM,
         "the type of p0 is open", 0},
        {"p0 = PLACEHOLDER [4]\ncast(i) = float32(p0[i])\n", ", [4], [4]", 0,
         "the type of p0 is open", 0},
        {"p0 = PLACEHOLDER [4, 4]\nA(i) = max(p0[i, 0], 0f)\nA(i) = (A[i] + 3f)\nB(i) = max(A[i], "
         "1f)\nC(i) = (A[i]*B[i])\n",
         ", [4, 4], [4]", 0, "which A is read by B is open", 0},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) check_one(&t[k]);
}

TEST(assumed_type) {
    const one t = {"p0 = PLACEHOLDER [4]\ntwice(i) = (p0[i] + p0[i])\n", ", [4], [4]", F32 | SYM,
                   NULL, F32};
    check_one(&t);
}

/* Names that occur twice: every operator but the last is read, and TVM prints in the order of
 * reading, so only one way is left. */
TEST(names) {
    const one t = {"p0 = PLACEHOLDER [4]\np1 = PLACEHOLDER [4]\nT_add(i) = (p0[i] + p1[i])\np2 = "
                   "PLACEHOLDER [4]\nT_add(i) = (T_add[i] + p2[i])\n"
                   "one() = 3f\nT_add(i) = (T_add[i] + one[])\none() = 6f\nact(i) = "
                   "min(max(T_add[i], 0f), one[])\n",
                   ", [4], [4], [4], [4]", 0, NULL, 0};
    cdmpp_err err = {0};
    cd_te_dag *dag;
    unsigned rests;
    check_one(&t);
    assert_ok(read_one(&t, &dag, &rests, &err));
    const cd_expr *act = dag->op[8].body[0], *third = dag->op[6].body[0];
    assert_int_equal(act->a[0]->a[0]->u.i, 6);
    assert_int_equal(act->a[1]->u.i, 7);
    assert_int_equal(third->a[0]->u.i, 4);
    assert_int_equal(third->a[1]->u.i, 5);
    cd_te_dag_free(dag);
}

TEST(refused) {
    static const one t[] = {
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 0f)\n", ", [4], [4]", CUT,
         "the text is not that of the key: its MD5 is ", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p0 ..(OMITTED).. 0f)\n", ", [4], [4]", CUT,
         "TVM cut a line", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = tir.exp(p0 ..(OMITTED).. )\n", ", [4], [4]", 0,
         "TVM cut a line", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 0f)\n", ", [5], [4]", 0,
         "the key's shapes are not those of the text", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 0f)\n", ", [4], [4], [4]", 0,
         "the key's shapes are not those of the text", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 0f)\n", ", 4, 4, 4", 0,
         "the key's shapes are not those of the text", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 0f)\n", ", 4, [4]", 0,
         "shapes and dimensions in one workload key", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 0f)\n", ", [4], [5]", 0,
         "its shapes do not fit at A", 0},
        {"p1 = PLACEHOLDER [4]\np0 = PLACEHOLDER [4]\nA(i) = max((p0[i] + p1[i]), 0f)\n",
         ", [4], [4], [4]", 0, "its lines are not in TVM's order", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p9[i], 0f)\n", ", [4], [4]", 0,
         "it reads \"p9\", which no line above defines", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p0[j], 0f)\n", ", [4], [4]", 0,
         "\"j\" is none of its axes", 0},
        {"p0 = PLACEHOLDER [4]\nA(i, i) = max(p0[i], 0f)\n", ", [4], [4, 4]", 0,
         "two axes with one name", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = max(p0[i, 0], 0f)\n", ", [4], [4]", 0,
         "a load has more or fewer indices", 0},
        {"p0 = PLACEHOLDER [n]\nA(i) = max(p0[i], 0f)\n", ", [4], [4]", 0,
         "a shape that is no list of numbers", 0},
        {"p0 = PLACEHOLDER [4]\nA(i).v0 = p0[i]\nA(i).v1 = p0[i]\n", ", [4], [4], [4]", 0,
         "several outputs", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = tir.call_pure_extern(\"erff\", p0[i])\n", ", [4], [4]", 0,
         "a text in a call", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = (p0[i] + 1)\n", ", [4], [4]", 0,
         "does not print to the same text", 0},
        {"p0 = PLACEHOLDER [4]\nA(i) = (p0[i] && 1f)\n", ", [4], [4]", 0,
         "an expression that this reader does not know", 0},
        {"p0 = PLACEHOLDER [2]\nM(i, j) = select((i == j), 1f, 0f)\nA(i) += (p0[k]*M[k, i])\n",
         ", [2], [2]", 0, "M is a matrix of constants", 0},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) check_one(&t[k]);
}

TEST(lines) {
    static const char *const yes[] = {"p0 = PLACEHOLDER [1]", "p0 = PLACEHOLDER ", "c() = 3f",
                                      "T.x(i, j) += a[i]",    "m(i) max= a[i, k]", "m(i) min= a[i]",
                                      "a(i).v1 = b[i]"};
    static const char *const no[] = {"",     "p0",        "Placeholder: p0", "for i (0,4)",
                                     "a(i)", "f(x) == 3", "f(1) = 2",        "f(x, ) = 2",
                                     "----", "0a(i) = 3"};
    for (size_t k = 0; k < sizeof yes / sizeof *yes; k++)
        assert_true(cd_dagtext_is_line((cd_str){yes[k], strlen(yes[k])}));
    for (size_t k = 0; k < sizeof no / sizeof *no; k++)
        assert_false(cd_dagtext_is_line((cd_str){no[k], strlen(no[k])}));
}

TEST(no_memory) {
    static const one t = {CONV("(y*2)", "(x*2)") RELU
                          "T(i, j, k, l) = (act[i, j, k, l] + conv2d_nhwc[i, j, k, l])\n",
                          ", [1, 8, 8, 4], [3, 3, 4, 6], [1, 4, 4, 6]", SYM, NULL, SYM};
    FAULT_SWEEP(f, 10) {
        cd_te_dag *dag;
        unsigned rests;
        f.st = read_one(&t, &dag, &rests, &f.err);
        cd_te_dag_free(dag);
    }
}

/* ---- the reference sets: each definition printed and read again ---- */

/* Equal but for tags; or refused. */
static bool again(const cd_task *task, unsigned allowed) {
    cdmpp_err err = {0};
    cd_buf text = {0}, key = {0};
    cd_te_dag *dag;
    unsigned rests;
    char a[33], b[33];
    assert_ok(cd_te_dag_hash(task->dag, a, &err));
    cd_te_dag_print_whole(&text, task->dag);
    cd_te_workload_key(&key, task->dag, a);
    const cdmpp_status st = cd_dagtext_read((cd_str){key.p, key.n}, (cd_str){text.p, text.n},
                                            allowed, &dag, &rests, &err);
    if (!st) {
        assert_ok(cd_te_dag_hash_all(task->dag, a, &err));
        assert_ok(cd_te_dag_hash_all(dag, b, &err));
        if (strcmp(a, b) != 0 && rests & SYM) print_message("not symmetric: %s\n", key.p);
        if (strcmp(a, b) != 0 && !(rests & SYM)) print_error("wrong: %s\n%s", key.p, text.p);
        if (!(rests & SYM)) assert_string_equal(a, b);
        for (uint32_t i = 0; i < dag->n_op; i++)
            assert_int_equal(dag->op[i].layout_free, task->dag->op[i].layout_free);
    } else if (st != CDMPP_ENOTASK && st != CDMPP_EUNSUPPORTED) {
        print_error("%s\n%s", err.msg, text.p);
        assert_ok(st);
    }
    cd_te_dag_free(dag);
    cd_buf_free(&text);
    cd_buf_free(&key);
    return !st;
}

TEST(reference_sets) {
    static const struct {
        const char *file;
        unsigned least[3]; /* read: strictly, with float32, with both assumptions */
    } set[] = {{"tvm-ansor-bench/tasks.pkl.xz", {470, 548, 618}},
               {"tvm-ansor-bench/tasks_googlenet.pkl.xz", {470, 548, 618}},
               {"tenset-cpu/network_info", {207, 261, 293}},
               {"gpu-ansor/network_info/all_tasks.pkl", {92, 208, 232}}};
    const char *root = getenv("CDMPP_DATA");
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
        static const unsigned allowed[] = {0, F32, F32 | SYM};
        char path[512];
        cdmpp_err err = {0};
        cd_task_registry *t;
        unsigned n[3] = {0};
        if (root) snprintf(path, sizeof path, "%s/%s", root, set[k].file);
        if (!root) skip();
        assert_ok(cd_task_registry_new(&t, &err));
        if (cd_task_registry_load(t, path, &err))
            print_message("skipped: no %s under CDMPP_DATA\n", set[k].file);
        for (unsigned way = 0; way < 3; way++)
            for (size_t i = 0; i < cd_task_registry_count(t); i++)
                if (cd_task_registry_at(t, i)->dag)
                    n[way] += again(cd_task_registry_at(t, i), allowed[way]);
        print_message("%s: %zu definitions; %u read, %u with float32, %u with both\n", set[k].file,
                      cd_task_registry_count(t), n[0], n[1], n[2]);
        for (unsigned way = 0; way < 3 && cd_task_registry_count(t); way++)
            assert_true(n[way] >= set[k].least[way]);
        cd_task_registry_free(t);
    }
}

/* Conditions and indices in all their forms, also those that say nothing of a size: those of the
 * key decide. */
TEST(conditions) {
#define GUARDED(condition, yes, no)                                                                \
    "src = PLACEHOLDER [8]\nwide(a) = tir.if_then_else(" condition ", " yes ", " no                \
    ")\nout(i) = max(wide[i], 0f)\n"
    static const struct {
        const char *text, *want;
    } v[] = {
        {GUARDED("((a >= 1) && (a < 9))", "src[(a - 1)]", "0f"), NULL},
        {GUARDED("((a > 0) && (a <= 8))", "src[(a - 1)]", "0f"), NULL},
        {GUARDED("((a < 1) || (a >= 9))", "0f", "src[(a - 1)]"), NULL},
        {GUARDED("((a <= 0) || (a > 8))", "0f", "src[(a - 1)]"), NULL},
        {GUARDED("!((a < 1) || (a >= 9))", "src[(a - 1)]", "0f"), NULL},
        {GUARDED("(!(a < 1) && !(a >= 9))", "src[(a - 1)]", "0f"), NULL},
        {GUARDED("(a == 3)", "src[(a - 1)]", "0f"), NULL},
        {GUARDED("(a != 3)", "0f", "src[(a - 1)]"), NULL},
        {GUARDED("(a == 3)", "0f", "src[(a - 1)]"), NULL},
        {GUARDED("((a < 1) || (a < 9))", "src[(a - 1)]", "0f"), NULL},
        {GUARDED("(9 > a)", "src[(a - 1)]", "0f"), NULL},
        {GUARDED("(a < 99999999999)", "src[(a - 1)]", "0f"),
         "an integer that does not fit its type"},
        {GUARDED("((a + 1) < 9)", "src[min(a, 7)]", "0f"), NULL},
        {GUARDED("(a < 8)", "src[floormod(a, 8)]", "src[max((a - 8), 0)]"), NULL},
        {GUARDED("(a < 8)", "src[(a*a)]", "0f"), NULL},
        {GUARDED("(a < 8)", "src[(a + a)]", "0f"), NULL},
        {GUARDED("(a < 8)", "src[int32(a)]", "0f"), NULL},
        {GUARDED("(a < 8)", "src[int32(float32(a))]", "0f"), NULL},
        {GUARDED("((a < 8) == (a < 9))", "src[a]", "0f"), NULL},
        {GUARDED("(a < 8)", "src[a]", "3.40282e+38f"), NULL},
        {GUARDED("(a < 8)", "src[a]", "1e-05f"), NULL},
        {GUARDED("(a < 8)", "(src[a] + 2.5e+10f)", "1000f"), NULL},
        {GUARDED("(a == 9)", "src[3]", "src[max(a, 2)]"), NULL},
        {GUARDED("(a < 8)", "src[floordiv(a, a)]", "0f"), NULL},
    };
    for (size_t k = 0; k < sizeof v / sizeof *v; k++) {
        const one t = {v[k].text, ", [8], [10]", 0, v[k].want, 0};
        check_one(&t);
        if (!t.want) check_sizes(&t, "wide.a=10 out.i=10");
    }
}

/* The least of a row; shapes and lines that are none. */
TEST(least_and_odd_lines) {
    static const one v[] = {
        {"src = PLACEHOLDER [8, 4]\nout(i) min= src[i, k]\n", ", [8, 4], [8]", F32, NULL, F32},
        {"src = PLACEHOLDER [8, 4]\nout(i) min= src[i, k.v0]\n", ", [8, 4], [8]", 0, "", 0},
        {"src = PLACEHOLDER [99999999999]\nout(i) = src[i]\n", ", [8], [8]", 0, "", 0},
        {"src = PLACEHOLDER [8]x\nout(i) = src[i]\n", ", [8], [8]", 0,
         "a shape that is no list of numbers", 0},
        {"src = PLACEHOLDER [8]\n(i) = src[i]\n", ", [8], [8]", 0, "", 0},
        {"src = PLACEHOLDER [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
         "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\nout(i) = src[i]\n",
         ", [8], [8]", 0, "", 0},
        {"src = PLACEHOLDER [8]\nout(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, "
         "u, v, w, x, y, z, aa, bb, cc, dd, ee, ff, gg, hh) = src[a]\n",
         ", [8], [8]", 0, "", 0},
    };
    for (size_t k = 0; k < sizeof v / sizeof *v; k++) check_one(&v[k]);
}

TESTS(NULL, NULL, conditions, least_and_odd_lines, convolution, stride, padding_behind, blocks,
      groups, transposed, softmax, joined, gaps, adaptive, open, assumed_type, names, refused,
      lines, no_memory, reference_sets)
