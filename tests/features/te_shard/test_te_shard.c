/* Parts of definitions: which ways there are, what they read, what their expressions look like,
 * which keys they have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "fault.h"
#include "features/task/task.h"
#include "features/te_shard/te_shard.h"

typedef struct fix {
    cd_task_registry *tasks;
    const cd_te_dag *dag;
    cd_arena a;
    cd_te_shard_axis *way;
    uint32_t n;
} fix;

static fix start(const char *ops) {
    fix f = {0};
    cdmpp_err err = {0};
    cd_buf text = {0};
    cd_buf_putf(&text,
                "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": "
                "\"t\", \"ops\": [%s]}]}",
                ops);
    assert_ok(cd_task_registry_new(&f.tasks, &err));
    assert_ok(cd_task_registry_load_text(f.tasks, "t", text.p, text.n, &err));
    cd_buf_free(&text);
    f.dag = cd_task_registry_at(f.tasks, 0)->dag;
    if (!f.dag)
        fail_msg("%s: %s", cd_task_registry_at(f.tasks, 0)->why->key,
                 cd_task_registry_at(f.tasks, 0)->why->msg);
    assert_ok(cd_te_shard_axes(f.dag, &f.a, &f.way, &f.n, &err));
    return f;
}

static void stop(fix *f) {
    cd_arena_free(&f->a);
    cd_task_registry_free(f->tasks);
}

static const cd_te_shard_axis *way(const fix *f, const char *name) {
    for (uint32_t i = 0; i < f->n; i++)
        if (!strcmp(f->way[i].name, name)) return &f->way[i];
    fail_msg("no way %s", name);
    return NULL;
}

static void assert_ways(const fix *f, const char *want) {
    char got[200] = "";
    for (uint32_t i = 0; i < f->n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "", f->way[i].name);
    assert_string_equal(got, want);
}

static cd_te_shard *part(const fix *f, const char *name, int64_t lo, int64_t hi) {
    cdmpp_err err = {0};
    cd_te_shard *p = NULL;
    assert_ok(cd_te_shard_make(f->dag, way(f, name), lo, hi, &p, &err));
    return p;
}

/* "0:1x21x56x32@0,0,0,0 ..." */
static void assert_boxes(const cd_te_shard *p, const char *want) {
    char got[400] = "";
    for (uint32_t k = 0; k < p->n_arg; k++) {
        size_t n = strlen(got);
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%s%u:", k ? " " : "",
                              p->of[k] & CD_TE_SHARD_PARTIAL ? "p" : "",
                              p->of[k] & ~CD_TE_SHARD_PARTIAL);
        for (uint32_t d = 0; d < p->box[k].rank; d++)
            n += (size_t)snprintf(got + n, sizeof got - n, "%s%lld", d ? "x" : "",
                                  (long long)p->box[k].n[d]);
        for (uint32_t d = 0; d < p->box[k].rank; d++)
            n += (size_t)snprintf(got + n, sizeof got - n, "%s%lld", d ? "," : "@",
                                  (long long)p->box[k].lo[d]);
    }
    assert_string_equal(got, want);
}

static void assert_text(const cd_te_shard *p, const char *want) {
    cd_buf b = {0};
    cd_te_dag_print(&b, p->dag);
    assert_string_equal(b.p, want);
    cd_buf_free(&b);
}

/* The header's example. */
static const char conv[] =
    "{\"name\":\"x\",\"shape\":[1,56,56,32],\"dtype\":\"float32\"},"
    "{\"name\":\"pad\",\"axis\":[[\"i0\",0,1],[\"i1\",0,58],[\"i2\",0,58],[\"i3\",0,32]],"
    "\"body\":\"if_then_else(i1 >= 1 && i1 < 57 && i2 >= 1 && i2 < 57, x[i0, i1 - 1, i2 - 1, i3], "
    "0.0)\"},"
    "{\"name\":\"k\",\"shape\":[3,3,32,64],\"dtype\":\"float32\",\"layout_free\":true},"
    "{\"name\":\"conv\",\"axis\":[[\"nn\",0,1],[\"yy\",0,56],[\"xx\",0,56],[\"ff\",0,64]],\"reduce_"
    "axis\":[[\"ry\",0,3],[\"rx\",0,3],[\"rc\",0,32]],"
    "\"reduce\":\"sum\",\"body\":\"pad[nn, yy + ry, xx + rx, rc]*k[ry, rx, rc, "
    "ff]\",\"flop\":1000},"
    "{\"name\":\"b\",\"shape\":[64],\"dtype\":\"float32\"},"
    "{\"name\":\"add\",\"axis\":[[\"a0\",0,1],[\"a1\",0,56],[\"a2\",0,56],[\"a3\",0,64]],\"body\":"
    "\"conv[a0, a1, a2, a3] + b[a3]\"},"
    "{\"name\":\"y\",\"axis\":[[\"a0\",0,1],[\"a1\",0,56],[\"a2\",0,56],[\"a3\",0,64]],\"body\":"
    "\"max(add[a0, a1, a2, a3], 0)\"}";

TEST(test_conv_axes) {
    fix f = start(conv);
    assert_ways(&f, "H W O I");
    cd_te_shard *p = part(&f, "H", 0, 20);
    assert_boxes(p, "0:1x21x56x32@0,0,0,0 1:3x3x32x64@0,0,0,0 2:64@0 3:1x20x56x64@0,0,0,0");
    assert_true(p->dag->op[3].flop_attr == 1000 * 20.0 / 56);
    assert_true(p->dag->op[2].layout_free);
    cd_te_shard_free(p);
    p = part(&f, "H", 20, 56);
    assert_boxes(p, "0:1x37x56x32@0,19,0,0 1:3x3x32x64@0,0,0,0 2:64@0 3:1x36x56x64@0,20,0,0");
    assert_text(p, "x = PLACEHOLDER [1, 37, 56, 32]\n"
                   "pad(i0, i1, i2, i3) = tir.if_then_else(((((i1 >= 0) && (i1 < 37)) && (i2 >= "
                   "1)) && (i2 < 57)), x[i0, i1, (i2 - 1), i3], 0f)\n"
                   "k = PLACEHOLDER [3, 3, 32, 64]\nconv(nn, yy, xx, ff) += (pad[nn, (yy + ry), "
                   "(xx + rx), rc]*k[ry, rx, rc, ff])\n"
                   "b = PLACEHOLDER [64]\nadd(a0, a1, a2, a3) = (conv[a0, a1, a2, a3] + "
                   "b[a3])\ny(a0, a1, a2, a3) = max(add[a0, a1, a2, a3], 0f)\n");
    cd_te_shard_free(p);
    p = part(&f, "O", 0, 24);
    assert_boxes(p, "0:1x56x56x32@0,0,0,0 1:3x3x32x24@0,0,0,0 2:24@0 3:1x56x56x24@0,0,0,0");
    cd_te_shard_free(p);
    stop(&f);
}

TEST(test_conv_sum) {
    fix f = start(conv);
    cdmpp_err err = {0};
    cd_te_shard *p = part(&f, "I", 8, 32);
    assert_boxes(p, "0:1x56x56x24@0,0,0,8 1:3x3x24x64@0,0,8,0 p0:1x56x56x64@0,0,0,0");
    assert_int_equal(p->dag->n_op, 4);
    assert_int_equal(p->dag->op[3].raxis[2].extent->u.i, 24);
    assert_true(p->dag->op[3].flop_attr == 1000 * 24.0 / 32);
    cd_te_shard_free(p);
    assert_ok(cd_te_shard_join(f.dag, way(&f, "I"), 3, &p, &err));
    assert_boxes(p, "p0:1x56x56x64@0,0,0,0 p1:1x56x56x64@0,0,0,0 p2:1x56x56x64@0,0,0,0 2:64@0 "
                    "3:1x56x56x64@0,0,0,0");
    assert_text(p, "partial = PLACEHOLDER [1, 56, 56, 64]\npartial = PLACEHOLDER [1, 56, 56, "
                   "64]\npartial = PLACEHOLDER [1, 56, 56, 64]\n"
                   "conv(nn, yy, xx, ff) = ((partial[nn, yy, xx, ff] + partial[nn, yy, xx, ff]) + "
                   "partial[nn, yy, xx, ff])\n"
                   "b = PLACEHOLDER [64]\nadd(a0, a1, a2, a3) = (conv[a0, a1, a2, a3] + "
                   "b[a3])\ny(a0, a1, a2, a3) = max(add[a0, a1, a2, a3], 0f)\n");
    cd_te_shard_free(p);
    stop(&f);
}

/* Inner pieces of one length are one task; at the edges they are others, though TVM's hash does not
 * see it; a piece of the filters is what TVM would call a smaller convolution. */
TEST(test_keys) {
    fix f = start(conv);
    cdmpp_err err = {0};
    char tvm[33], other[33];
    cd_te_shard *const p[] = {part(&f, "H", 0, 28),  part(&f, "H", 28, 56), part(&f, "H", 8, 16),
                              part(&f, "H", 24, 32), part(&f, "O", 0, 32),  part(&f, "O", 32, 64)};
    assert_string_not_equal(p[0]->workload_key, p[1]->workload_key);
    assert_string_equal(p[2]->workload_key, p[3]->workload_key);
    assert_true(cd_te_dag_equal(p[2]->dag, p[3]->dag));
    assert_string_equal(p[4]->workload_key, p[5]->workload_key);
    assert_ok(cd_te_dag_hash(f.dag, tvm, &err));
    assert_string_equal(p[4]->key, tvm);
    assert_ok(cd_te_dag_hash(p[0]->dag, tvm, &err));
    assert_string_not_equal(p[0]->key, tvm);
    assert_ok(cd_te_dag_hash(p[1]->dag, other, &err));
    assert_string_equal(tvm, other); /* the two of them would be one */
    cd_te_shard *whole = part(&f, "H", 0, 56);
    assert_true(cd_te_dag_equal(whole->dag, f.dag));
    cd_te_shard_free(whole);
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) cd_te_shard_free(p[i]);
    stop(&f);
}

/* A stride leaves a row and a column unread: what need not be cut is not cut. */
TEST(test_unread) {
    fix f = start("{\"name\":\"x\",\"shape\":[1,8,8,4],\"dtype\":\"float32\"},{\"name\":\"w\","
                  "\"shape\":[1,1,4,6],\"dtype\":\"float32\"},"
                  "{\"name\":\"conv\",\"axis\":[[\"n\",0,1],[\"y\",0,4],[\"z\",0,4],[\"f\",0,6]],"
                  "\"reduce_axis\":[[\"ry\",0,1],[\"rx\",0,1],[\"rc\",0,4]],"
                  "\"reduce\":\"sum\",\"body\":\"x[n, y*2 + ry, z*2 + rx, rc]*w[ry, rx, rc, f]\"}");
    assert_ways(&f, "H W O I");
    cd_te_shard *p = part(&f, "O", 0, 3);
    assert_boxes(p, "0:1x8x8x4@0,0,0,0 1:1x1x4x3@0,0,0,0 2:1x4x4x3@0,0,0,0");
    cd_te_shard_free(p);
    p = part(&f, "H", 1, 3);
    assert_boxes(p, "0:1x3x8x4@0,2,0,0 1:1x1x4x6@0,0,0,0 2:1x2x4x6@0,1,0,0");
    cd_te_shard_free(p);
    stop(&f);
}

/* A part that takes nothing of one operand; reshapes; a gather. */
TEST(test_moves) {
    fix f = start("{\"name\":\"a\",\"shape\":[2,4],\"dtype\":\"float32\"},{\"name\":\"b\","
                  "\"shape\":[2,6],\"dtype\":\"float32\"},"
                  "{\"name\":\"c\",\"axis\":[[\"i\",0,2],[\"j\",0,10]],\"body\":\"if_then_else(j "
                  ">= 4, b[i, j - 4], a[i, j])\"}");
    assert_ways(&f, "i j");
    cd_te_shard *p = part(&f, "j", 6, 10);
    assert_boxes(p, "1:2x4@0,2 2:2x4@0,6");
    assert_text(p, "b = PLACEHOLDER [2, 4]\nc(i, j) = b[i, j]\n");
    cd_te_shard_free(p);
    p = part(&f, "j", 2, 6);
    assert_boxes(p, "0:2x2@0,2 1:2x2@0,0 2:2x4@0,2");
    cd_te_shard_free(p);
    stop(&f);
    f = start("{\"name\":\"x\",\"shape\":[6,8],\"dtype\":\"float32\"},"
              "{\"name\":\"y\",\"axis\":[[\"i\",0,12],[\"j\",0,4]],\"body\":\"x[(i*4 + j) // 8, "
              "(i*4 + j) % 8]\"}");
    p = part(&f, "i", 2, 6);
    assert_boxes(p, "0:2x8@1,0 1:4x4@2,0");
    assert_text(p, "x = PLACEHOLDER [2, 8]\ny(i, j) = x[floordiv(((i*4) + j), 8), floormod(((i*4) "
                   "+ j), 8)]\n");
    cd_te_shard_free(p);
    stop(&f);
    f = start("{\"name\":\"x\",\"shape\":[6,8],\"dtype\":\"float32\"},{\"name\":\"at\",\"shape\":["
              "5],\"dtype\":\"int32\"},"
              "{\"name\":\"y\",\"axis\":[[\"i\",0,5],[\"j\",0,8]],\"body\":\"x[at[i], j]\"}");
    p = part(&f, "i", 1, 3);
    assert_boxes(p, "0:6x8@0,0 1:2@1 2:2x8@1,0");
    cd_te_shard_free(p);
    stop(&f);
}

TEST(test_transposed) {
    fix f = start("{\"name\":\"x\",\"shape\":[4],\"dtype\":\"float32\"},"
                  "{\"name\":\"spread\",\"axis\":[[\"i\",0,7]],\"body\":\"if_then_else(i % 2 == 0, "
                  "x[i // 2], 0.0)\"},"
                  "{\"name\":\"y\",\"axis\":[[\"i\",0,7]],\"body\":\"spread[6 - i]\"}");
    cd_te_shard *p = part(&f, "i", 1, 4); /* spread 3 .. 5: of x only 2 */
    assert_boxes(p, "0:1@2 1:3@1");
    assert_text(p, "x = PLACEHOLDER [1]\nspread(i) = tir.if_then_else((floormod((i + 1), 2) == 0), "
                   "x[(floordiv((i + 1), 2) - 1)], 0f)\ny(i) = spread[(2 - i)]\n");
    cd_te_shard_free(p);
    stop(&f);
}

/* Constant matrices, conditions and starts of sums, sums of pairs, extents that depend on an
 * axis. */
TEST(test_rare) {
    fix f = start("{\"name\":\"m\",\"axis\":[[\"i\",0,3],[\"j\",0,3]],\"body\":\"select(i == j, "
                  "1.0, 0.0)\",\"const_matrix\":true},"
                  "{\"name\":\"x\",\"shape\":[3,8],\"dtype\":\"float32\"},"
                  "{\"name\":\"y\",\"axis\":[[\"i\",0,3],[\"p\",0,8]],\"reduce_axis\":[[\"k\",0,3]]"
                  ",\"reduce\":\"sum\",\"where\":\"k <= i\","
                  "\"body\":\"m[i, k]*x[k, p]\",\"simplify_const\":true}");
    assert_ways(&f, "M N K");
    cd_te_shard *p = part(&f, "M", 1, 3);
    assert_boxes(p, "0:3x8@0,0 1:2x8@1,0");
    assert_true(p->dag->op[0].const_matrix && p->dag->op[2].simplify_const && p->dag->op[2].cond);
    assert_text(p, "m(i, j) = select(((i + 1) == j), 1f, 0f)\nx = PLACEHOLDER [3, 8]\ny(i, p) += "
                   "(m[i, k]*x[k, p])\n");
    cd_te_shard_free(p);
    stop(&f);
    f = start("{\"name\":\"x\",\"shape\":[4,6],\"dtype\":\"float32\"},"
              "{\"name\":\"s\",\"axis\":[[\"i\",0,4]],\"reduce_axis\":[[\"k\",0,6]],\"reduce\":"
              "\"sum\",\"init\":\"1.0\",\"body\":\"x[i, k]\"}");
    assert_ways(&f, "i"); /* a start would be added twice */
    p = part(&f, "i", 2, 4);
    assert_non_null(p->dag->op[1].init);
    cd_te_shard_free(p);
    stop(&f);
    f = start("{\"name\":\"x\",\"shape\":[4,6],\"dtype\":\"float32\"},{\"name\":\"from\",\"shape\":"
              "[5],\"dtype\":\"float32\"},{\"name\":\"m\",\"shape\":[6,4],\"dtype\":\"float32\"},"
              "{\"name\":\"s\",\"axis\":[[\"i\",0,4]],\"reduce_axis\":[[\"k\",0,6]],\"reduce\":"
              "\"sum\",\"init\":\"from[i + 1]\",\"where\":\"m[k, i] > 0\",\"body\":\"x[i, k]\"}");
    p = part(&f, "i", 2, 4); /* what only a start or a condition reads is read */
    assert_boxes(p, "0:2x6@2,0 1:2@3 2:6x2@0,2 3:2@2");
    cd_te_shard_free(p);
    stop(&f);
    f = start("{\"name\":\"x\",\"shape\":[7],\"dtype\":\"float32\"},"
              "{\"name\":\"s\",\"axis\":[[\"i\",0,3]],\"reduce_axis\":[[\"k\",0,\"(i + 1)*7 // 3 - "
              "i*7 // 3\"]],\"reduce\":\"sum\",\"body\":\"x[i*7 // 3 + k]\"}");
    assert_ways(&f, "W");
    stop(&f);
}

TEST(test_none) {
    fix f = start("{\"name\":\"x\",\"shape\":[4],\"dtype\":\"float32\"},{\"name\":\"a\",\"axis\":[["
                  "\"i\",0,4]],\"body\":\"x[i]\"},"
                  "{\"name\":\"b\",\"axis\":[[\"i\",0,4]],\"body\":\"x[i] + 1\"}");
    cdmpp_err err = {0};
    cd_te_shard *p = NULL;
    assert_int_equal(f.n, 0);
    assert_status(
        cd_te_shard_make(f.dag, &(cd_te_shard_axis){.op = 1, .extent = 4}, 0, 2, &p, &err),
        CDMPP_EUNSUPPORTED);
    stop(&f);
    f = start("{\"name\":\"x\",\"shape\":[4],\"dtype\":\"float32\"},{\"name\":\"a\",\"axis\":[["
              "\"i\",1,4]],\"body\":\"x[i - 1]\"}");
    assert_int_equal(f.n, 0);
    err = (cdmpp_err){0};
    assert_status(
        cd_te_shard_make(f.dag, &(cd_te_shard_axis){.op = 1, .extent = 4}, 0, 2, &p, &err),
        CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "\"i\""));
    stop(&f);
    f = start("{\"name\":\"x\",\"shape\":[0,4],\"dtype\":\"float32\"},{\"name\":\"a\",\"axis\":[["
              "\"i\",0,0],[\"j\",0,4]],\"body\":\"x[i, j]\"}");
    assert_int_equal(f.n, 0);
    stop(&f);
    /* a softmax along its own axis */
    f = start("{\"name\":\"x\",\"shape\":[4,8],\"dtype\":\"float32\"},"
              "{\"name\":\"m\",\"axis\":[[\"i\",0,4]],\"reduce_axis\":[[\"k\",0,8]],\"reduce\":"
              "\"max\",\"body\":\"x[i, k]\"},"
              "{\"name\":\"s\",\"axis\":[[\"i\",0,4]],\"reduce_axis\":[[\"k\",0,8]],\"reduce\":"
              "\"sum\",\"body\":\"exp(x[i, k] - m[i])\"},"
              "{\"name\":\"y\",\"axis\":[[\"i\",0,4],[\"j\",0,8]],\"body\":\"exp(x[i, j] - "
              "m[i])/s[i]\"}");
    assert_ways(&f, "i");
    err = (cdmpp_err){0};
    assert_status(cd_te_shard_join(f.dag, &(cd_te_shard_axis){.reduce = true, .op = 2, .axis = 0},
                                   2, &p, &err),
                  CDMPP_EINVALID);
    stop(&f);
}

/* What people call the axes of operators, in any layout; a second axis of a name keeps its own,
 * with a number where that is taken too. */
TEST(test_names) {
#define IN(name, shape) "{\"name\":\"" name "\",\"shape\":[" shape "],\"dtype\":\"float32\"},"
#define SUM(axes, over, body)                                                                      \
    "{\"name\":\"y\",\"axis\":[" axes "],\"reduce_axis\":[" over                                   \
    "],\"reduce\":\"sum\",\"body\":\"" body "\"}"
#define AX(name, n) "[\"" name "\",0," #n "]"
    static const struct {
        const char *ops, *want;
    } tab[] = {
        {IN("a", "8,6") IN("b", "4,6")
             SUM(AX("i", 8) "," AX("j", 4), AX("k", 6), "a[i, k]*b[j, k]"),
         "M N K"},
        {IN("a", "5,8,6") IN("b", "5,6,4")
             SUM(AX("b", 5) "," AX("i", 8) "," AX("j", 4), AX("k", 6), "a[b, i, k]*b[b, k, j]"),
         "B M N K"},
        {IN("a", "5,8,6") IN("b", "6,4")
             SUM(AX("b", 5) "," AX("i", 8) "," AX("j", 4), AX("k", 6), "a[b, i, k]*b[k, j]"),
         "B M N K"},
        {IN("a", "8,1") IN("b", "1,4")
             SUM(AX("i", 8) "," AX("j", 4), AX("k", 1), "a[i, k]*b[k, j]"),
         "M N"},
        {IN("x", "2,3,9") IN("w", "4,3,2")
             SUM(AX("n", 2) "," AX("o", 4) "," AX("x", 8), AX("c", 3) "," AX("r", 2),
                 "x[n, c, x + r]*w[o, c, r]"),
         "N O W I"},
        {IN("x", "2,9,9,3") IN("w", "2,2,3,4")
             SUM(AX("n", 2) "," AX("h", 8) "," AX("w", 8) "," AX("o", 4),
                 AX("r", 2) "," AX("s", 2) "," AX("c", 3), "x[n, h + r, w + s, c]*w[r, s, c, o]"),
         "N H W O I"},
        {IN("x", "2,3,5,9,9") IN("w", "4,3,2,2,2")
             SUM(AX("n", 2) "," AX("o", 4) "," AX("d", 4) "," AX("h", 8) "," AX("w", 8),
                 AX("c", 3) "," AX("q", 2) "," AX("r", 2) "," AX("s", 2),
                 "x[n, c, d + q, h + r, w + s]*w[o, c, q, r, s]"),
         "N O D H W I"},
        {IN("x", "2,9,9,3") IN("w", "2,2,3")
             SUM(AX("n", 2) "," AX("h", 8) "," AX("w", 8) "," AX("c", 3), AX("r", 2) "," AX("s", 2),
                 "x[n, h + r, w + s, c]*w[r, s, c]"),
         "N H W C"},
        {IN("x", "2,9,9,3") SUM(AX("n", 2) "," AX("h", 4) "," AX("w", 4) "," AX("c", 3),
                                AX("r", 2) "," AX("s", 2), "x[n, h*2 + r, w*2 + s, c]"),
         "N H W C"},
        {IN("x", "3,9,9") SUM(AX("c", 3) "," AX("h", 4) "," AX("w", 4), AX("r", 2) "," AX("s", 2),
                              "x[c, h*2 + r, w*2 + s]"),
         "N H W"},
        {IN("a", "8,6") SUM(AX("i", 8), AX("k", 6), "a[i, k]"), "i k"},
        /* What reads a sum at another place needs it whole: no K. */
        {IN("a", "8,6") IN("b", "8,6") SUM(
             AX("i", 8) "," AX("j", 8), AX("k", 6),
             "a[i, k]*b[j, k]") ",{\"name\":\"t\",\"axis\":[" AX("i", 8) "," AX("j",
                                                                                8) "],\"body\":\"y["
                                                                                   "i, j]*2\"}",
         "M N K"},
        {IN("a", "8,6") IN("b", "8,6") SUM(
             AX("i", 8) "," AX("j", 8), AX("k", 6),
             "a[i, k]*b[j, k]") ",{\"name\":\"t\",\"axis\":[" AX("i", 8) "," AX("j",
                                                                                8) "],\"body\":\"y["
                                                                                   "j, i]*2\"}",
         "N M"},
        {IN("a", "4,4") "{\"name\":\"y\",\"axis\":[{\"name\":\"i\",\"ref\":\"p\",\"min\":0,"
                        "\"extent\":4},{\"name\":\"i\",\"ref\":\"q\",\"min\":0,\"extent\":4}],"
                        "\"body\":\"exp(a[p, q])\"}",
         "i i.2"},
    };
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        fix f = start(tab[k].ops);
        assert_ways(&f, tab[k].want);
        stop(&f);
    }
}

static cdmpp_status all_of(const cd_te_dag *dag, cdmpp_err *err) {
    cd_arena a = {0};
    cd_te_shard_axis *w;
    uint32_t n;
    cdmpp_status st = cd_te_shard_axes(dag, &a, &w, &n, err);
    for (uint32_t k = 0; k < n && !st; k++) {
        cd_te_shard *p = NULL, *j = NULL;
        st = cd_te_shard_make(dag, &w[k], 1, w[k].extent - 1, &p, err);
        if (!st && w[k].reduce) st = cd_te_shard_join(dag, &w[k], 2, &j, err);
        cd_te_shard_free(p);
        cd_te_shard_free(j);
    }
    cd_arena_free(&a);
    return st;
}

TEST(test_memory) {
    fix f = start(conv);
    FAULT_SWEEP(w, 1) w.st = all_of(f.dag, &w.err);
    stop(&f);
}

TESTS(NULL, NULL, test_conv_axes, test_conv_sum, test_keys, test_unread, test_moves,
      test_transposed, test_rare, test_none, test_names, test_memory)
