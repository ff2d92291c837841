/* Parts of real definitions, computed element by element, against the whole: the same elements, bit
 * by bit of axes, to 1e-5 of sums; boxes that hold nothing that is not read; definitions that every
 * later stage takes. */
#include <stdio.h>

#include "check.h"
#include "base/core/core.h"
#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "features/te_shard/te_shard.h"
#include "made_values.h"
#include "profiler/network/zoo/zoo.h"
#include "teeval.h"

typedef struct tried {
    const cd_te_dag *dag;
    double **arg; /* (n_arg) the whole's content and result */
    char what[300];
    unsigned long ways, parts, joins, tight;
} tried;

static const cd_te_op *op_of(const cd_te_dag *d, uint32_t arg) {
    return &d->op[d->tensor_op[d->arg[arg]]];
}

static double **memory(const cd_te_dag *d) {
    double **arg = malloc(d->n_arg * sizeof *arg);
    for (uint32_t k = 0; k < d->n_arg; k++)
        arg[k] = calloc((size_t)te_count(op_of(d, k)) + 1, sizeof **arg);
    return arg;
}

static double **content(const cd_te_dag *d) {
    static uint64_t seed;
    double **arg = memory(d);
    seed++;
    for (uint32_t k = 0; k < d->n_arg; k++)
        for (int64_t i = 0; i < te_count(op_of(d, k)); i++) {
            const double u = cd_rng_unit(seed, (uint64_t)i * 64 + k);
            arg[k][i] = cd_expr_dtype_is_float(op_of(d, k)->dtype[0]) ? u + 0.1 : floor(2 * u);
        }
    return arg;
}

static void free_all(double **arg, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) free(arg[k]);
    free(arg);
}

/* The box of a tensor as a tensor of its own, or back into it. */
static void cut(double *piece, double *all, const cd_box *b, const int64_t *shape, bool back) {
    int64_t whole[CD_BOX_RANK], own[CD_BOX_RANK], at = 0;
    cd_box_strides(b->rank, shape, whole);
    cd_box_strides(b->rank, b->n, own);
    for (uint32_t d = 0; d < b->rank; d++) at += b->lo[d] * whole[d];
    if (back) cd_box_copy(all + at, whole, piece, own, b->rank, b->n, sizeof *all);
    else cd_box_copy(piece, own, all + at, whole, b->rank, b->n, sizeof *all);
}

/* ---- definitions that hold ---- */

static void check_arguments(const tried *t, const cd_te_shard *p) {
    assert_int_equal(p->n_arg, p->dag->n_arg);
    for (uint32_t k = 0; k < p->n_arg; k++) {
        const cd_te_op *op = op_of(p->dag, k);
        assert_int_equal(op->rank, p->box[k].rank);
        for (uint32_t d = 0; d < op->rank; d++) assert_int_equal(op->shape[d], p->box[k].n[d]);
        if (p->of[k] & CD_TE_SHARD_PARTIAL) continue;
        assert_true(p->of[k] < t->dag->n_arg);
        const cd_te_op *from = op_of(t->dag, p->of[k]);
        const cd_box all = cd_box_whole(from->rank, from->shape);
        assert_true(cd_box_inside(&p->box[k], &all));
        assert_int_equal(op->layout_free, from->layout_free);
    }
}

/* All parts so far: equal keys are equal definitions. */
static cd_task_registry *every;

static void check_key(const tried *t, const cd_te_shard *p) {
    cdmpp_err err = {0};
    const cd_str key = {p->workload_key, strlen(p->workload_key)};
    const cd_task *task = cd_task_registry_find(every, key);
    if (!task) assert_ok(cd_task_registry_add(every, key, p->dag, &task, &err));
    if (!cd_te_dag_equal(task->dag, p->dag))
        fail_msg("%s: another definition has the key %s", t->what, p->workload_key);
}

/* A registry takes it under its key; written as a task file and read, it is the same. */
static void check_text(const tried *t, const cd_te_shard *p) {
    cdmpp_err err = {0};
    cd_task_registry *a, *b;
    const cd_task *task;
    check_key(t, p);
    cd_buf text = {0};
    assert_ok(cd_task_registry_new(&a, &err));
    assert_ok(cd_task_registry_new(&b, &err));
    assert_ok(cd_task_registry_add(a, (cd_str){p->workload_key, strlen(p->workload_key)}, p->dag,
                                   &task, &err));
    assert_ok(cd_task_registry_write(&text, a, &err));
    assert_ok(cd_task_registry_load_text(b, "part", text.p, text.n, &err));
    assert_int_equal(cd_task_registry_count(b), 1);
    if (!cd_task_registry_at(b, 0)->dag || !cd_te_dag_equal(cd_task_registry_at(b, 0)->dag, p->dag))
        fail_msg("%s is read as something else: %s", t->what, text.p);
    cd_buf_free(&text);
    cd_task_registry_free(a);
    cd_task_registry_free(b);
}

/* ---- values ---- */

/* Dimensions that were cut begin and end with something that is read: a box with one row less would
 * not do. */
static void check_tight(tried *t, const cd_te_shard *p, int64_t (*seen)[2][8]) {
    for (uint32_t k = 0; k + 1 < p->n_arg; k++) {
        const cd_te_op *op = op_of(p->dag, k);
        const int64_t *whole =
            p->of[k] & CD_TE_SHARD_PARTIAL ? op->shape : op_of(t->dag, p->of[k])->shape;
        for (uint32_t d = 0; d < op->rank; d++) {
            const int64_t *low = seen[p->dag->arg[k]][0], *high = seen[p->dag->arg[k]][1];
            if (high[d] < low[d]) fail_msg("%s: argument %u is not read", t->what, k);
            if (p->box[k].n[d] == whole[d]) continue;
            if (low[d] != 0 || high[d] != op->shape[d] - 1)
                fail_msg("%s: of argument %u, dimension %u, %lld elements from %lld on, only %lld "
                         ".. %lld are read",
                         t->what, k, d, (long long)op->shape[d], (long long)p->box[k].lo[d],
                         (long long)low[d], (long long)high[d]);
            t->tight++;
        }
    }
}

static double **run_part(tried *t, const cd_te_shard *p, double *const *partial, bool tight) {
    double **arg = memory(p->dag);
    int64_t(*seen)[2][8] = malloc(p->dag->n_tensor * sizeof *seen);
    for (uint32_t i = 0; i < p->dag->n_tensor; i++)
        for (int d = 0; d < 8; d++) seen[i][0][d] = INT64_MAX, seen[i][1][d] = INT64_MIN;
    for (uint32_t k = 0; k + 1 < p->n_arg; k++) {
        const bool sum = p->of[k] & CD_TE_SHARD_PARTIAL;
        cut(arg[k], sum ? partial[p->of[k] & ~CD_TE_SHARD_PARTIAL] : t->arg[p->of[k]], &p->box[k],
            sum ? op_of(p->dag, k)->shape : op_of(t->dag, p->of[k])->shape, false);
    }
    const char *why = te_run_seen(p->dag, arg, seen);
    if (why) fail_msg("%s: %s", t->what, why);
    if (tight) check_tight(t, p, seen);
    free(seen);
    return arg;
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* The part's elements of the result, out of what was computed of the whole. */
static void check_part(tried *t, const cd_te_shard_axis *w, int64_t lo, int64_t hi, double *made) {
    cdmpp_err err = {0};
    cd_te_shard *p = NULL;
    const size_t mark = strlen(t->what);
    snprintf(t->what + mark, sizeof t->what - mark, " %s %lld..%lld", w->name, (long long)lo,
             (long long)hi);
    const cdmpp_status st = cd_te_shard_make(t->dag, w, lo, hi, &p, &err);
    if (st) fail_msg("%s: %s %s", t->what, err.key, err.msg);
    check_arguments(t, p);
    check_text(t, p);
    const uint32_t last = p->n_arg - 1;
    double **arg = run_part(t, p, NULL, true);
    assert_int_equal(p->of[last], t->dag->n_arg - 1);
    for (uint32_t d = 0; d < p->box[last].rank; d++) {
        assert_int_equal(p->box[last].lo[d], d == w->axis ? lo : 0);
        assert_int_equal(p->box[last].n[d],
                         d == w->axis ? hi - lo : op_of(t->dag, t->dag->n_arg - 1)->shape[d]);
    }
    cut(arg[last], made, &p->box[last], op_of(t->dag, t->dag->n_arg - 1)->shape, true);
    free_all(arg, p->n_arg);
    cd_te_shard_free(p);
    t->what[mark] = 0;
    t->parts++;
}

static void check_axis(tried *t, const cd_te_shard_axis *w) {
    const uint32_t last = t->dag->n_arg - 1;
    const int64_t n = te_count(op_of(t->dag, last)), a = w->extent / 3, b = w->extent - 1;
    double *made = malloc((size_t)(n + 1) * sizeof *made);
    for (int64_t i = 0; i < n; i++) made[i] = NAN;
    if (a) check_part(t, w, 0, a, made);
    if (a < b) check_part(t, w, a, b, made);
    if (b < w->extent) check_part(t, w, b, w->extent, made);
    for (int64_t i = 0; i < n; i++)
        if (!same(made[i], t->arg[last][i]))
            fail_msg("%s %s: element %lld is %.17g, not %.17g", t->what, w->name, (long long)i,
                     made[i], t->arg[last][i]);
    free(made);
}

static void check_join(tried *t, const cd_te_shard_axis *w, double *const *partial, uint32_t n) {
    cdmpp_err err = {0};
    cd_te_shard *p = NULL;
    const uint32_t end = t->dag->n_arg - 1;
    assert_ok(cd_te_shard_join(t->dag, w, n, &p, &err));
    check_arguments(t, p);
    check_text(t, p);
    double **arg = run_part(t, p, partial, true), most = 0;
    const int64_t count = te_count(op_of(t->dag, end));
    assert_int_equal(p->of[p->n_arg - 1], end);
    assert_int_equal(te_count(op_of(p->dag, p->n_arg - 1)), count);
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(t->arg[end][i]));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(arg[p->n_arg - 1][i] - t->arg[end][i]) <= 1e-5 * most))
            fail_msg("%s %s: element %lld is %g, not %g", t->what, w->name, (long long)i,
                     arg[p->n_arg - 1][i], t->arg[end][i]);
    free_all(arg, p->n_arg);
    cd_te_shard_free(p);
    t->joins++;
}

static void check_sum(tried *t, const cd_te_shard_axis *w) {
    const int64_t cuts[4] = {0, w->extent / 3, w->extent - 1, w->extent};
    double *partial[3] = {0};
    uint32_t n = 0;
    cdmpp_err err = {0};
    for (int k = 0; k < 3; k++) {
        cd_te_shard *p = NULL;
        if (cuts[k] == cuts[k + 1]) continue;
        assert_ok(cd_te_shard_make(t->dag, w, cuts[k], cuts[k + 1], &p, &err));
        check_arguments(t, p);
        check_text(t, p);
        assert_int_equal(p->of[p->n_arg - 1], CD_TE_SHARD_PARTIAL);
        double **arg = run_part(t, p, NULL, true);
        partial[n++] = arg[p->n_arg - 1];
        arg[p->n_arg - 1] = NULL;
        free_all(arg, p->n_arg);
        cd_te_shard_free(p);
        t->parts++;
    }
    check_join(t, w, partial, n);
    for (uint32_t k = 0; k < n; k++) free(partial[k]);
}

static void check_ranges(const tried *t, const cd_te_shard_axis *w) {
    cdmpp_err err = {0};
    cd_te_shard *p = NULL;
    assert_status(cd_te_shard_make(t->dag, w, 0, w->extent + 1, &p, &err), CDMPP_ERANGE);
    assert_status(cd_te_shard_make(t->dag, w, 1, 1, &p, &err), CDMPP_ERANGE);
    assert_status(cd_te_shard_make(t->dag, w, -1, 1, &p, &err), CDMPP_ERANGE);
    assert_status(cd_te_shard_join(t->dag, w, w->reduce ? 1 : 2, &p, &err), CDMPP_EINVALID);
    assert_null(p);
}

static void check_task(tried *t) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_te_shard_axis *way;
    uint32_t n;
    t->arg = content(t->dag);
    const char *why = te_run(t->dag, t->arg);
    if (why) fail_msg("%s: %s", t->what, why);
    assert_ok(cd_te_shard_axes(t->dag, &a, &way, &n, &err));
    for (uint32_t k = 0; k < n; k++) {
        check_ranges(t, &way[k]);
        if (way[k].reduce) check_sum(t, &way[k]);
        else check_axis(t, &way[k]);
        for (uint32_t j = 0; j < k; j++) assert_string_not_equal(way[j].name, way[k].name);
    }
    t->ways += n;
    free_all(t->arg, t->dag->n_arg);
    cd_arena_free(&a);
}

TEST(test_values) {
    tried t = {0};
    cdmpp_err none = {0};
    check_status(cd_task_registry_new(&every, &none), CDMPP_OK, &none, "registry", __FILE__,
                 __LINE__);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (unsigned way = 0; way < 4; way++) {
            mg m = mg_new(cases[c].name, cases[c].opset);
            const cd_workload_options o = {.layout = way & 1 ? CD_WORKLOAD_LAYOUT_NHWC
                                                             : CD_WORKLOAD_LAYOUT_NCHW,
                                           .max_depth = way & 2 ? 1 : 256};
            cd_workload *w;
            cdmpp_err err = {0};
            cases[c].make(&m);
            assert_ok(cd_workload_build(m.g, &o, &w, &err));
            for (uint32_t i = 0; i < w->n_task; i++) {
                t.dag = cd_task_registry_at(w->tasks, w->task[i].task)->dag;
                snprintf(t.what, sizeof t.what, "%s %u: %s", cases[c].name, way,
                         t.dag->op[t.dag->n_op - 1].name);
                check_task(&t);
            }
            cd_workload_free(w);
            cd_graph_free(m.g);
        }
    print_message("%lu ways, %lu parts of %zu keys, %lu joins, %lu cut dimensions\n", t.ways,
                  t.parts, cd_task_registry_count(every), t.joins, t.tight);
    cd_task_registry_free(every);
    assert_true(t.ways > 300 && t.joins > 20 && t.tight > 500);
}

/* ---- networks ---- */

typedef struct {
    char name[40], ways[24][16];
    unsigned tasks, cuts, known, count[24], n;
} kind;

static void count_way(kind *k, const char *name) {
    for (unsigned i = 0; i < k->n; i++)
        if (!strcmp(k->ways[i], name)) {
            k->count[i]++;
            return;
        }
    if (k->n == 24) return;
    snprintf(k->ways[k->n], sizeof k->ways[0], "%s", name);
    k->count[k->n++] = 1;
}

static kind *kind_of(kind *list, unsigned *n, const cd_workload_task *t) {
    const char *name = t->n_op ? t->op[0] : "none";
    for (unsigned i = 0; i < *n; i++)
        if (!strcmp(list[i].name, name)) return &list[i];
    snprintf(list[*n].name, sizeof list->name, "%.39s", name);
    return &list[(*n)++];
}

/* Drawn schedules of a part go through to code. */
static void check_program(cd_program *prog, const tried *t, const cd_te_shard *p) {
    cdmpp_err err = {0};
    cd_task_registry *reg;
    const cd_task *task;
    cd_sketch_space *space;
    cd_sketch_sampler *draw;
    cd_sketch_sample d;
    const cd_hardware hw = cd_target_hardware(false, 1, 64);
    assert_ok(cd_task_registry_new(&reg, &err));
    assert_ok(cd_task_registry_add(reg, (cd_str){p->workload_key, strlen(p->workload_key)}, p->dag,
                                   &task, &err));
    assert_ok(cd_sketch_space_new(task, &hw, false, &space, &err));
    assert_ok(cd_sketch_sampler_new(space, 1, &draw, &err));
    const cdmpp_status st = cd_sketch_sampler_draw(draw, 0, &d, &err);
    if (st && st != CDMPP_EREJECTED) fail_msg("%s: %s", t->what, err.msg);
    const cd_record r = {.workload_key = {p->workload_key, strlen(p->workload_key)},
                         .target = {"llvm", 4},
                         .step = d.step,
                         .n_step = d.n_step};
    cd_rows rows;
    const cdmpp_status built = st ? CDMPP_OK : cd_program_build(prog, task, &r, &rows, &err);
    /* of a tuner's draws some are rejected, too */
    if (built && built != CDMPP_EREJECTED) fail_msg("%s: %s", t->what, err.msg);
    cd_sketch_sampler_free(draw);
    cd_sketch_space_free(space);
    cd_task_registry_free(reg);
}

static void check_halves(cd_program *prog, const cd_task_registry *tasks, tried *t,
                         const cd_te_shard_axis *w, kind *k, bool program) {
    cdmpp_err err = {0};
    snprintf(t->what, sizeof t->what, "%s %s", t->dag->op[t->dag->n_op - 1].name, w->name);
    for (int half = 0; half < 2; half++) {
        cd_te_shard *p = NULL;
        assert_ok(cd_te_shard_make(t->dag, w, half ? w->extent / 2 : 0,
                                   half ? w->extent : w->extent / 2, &p, &err));
        check_arguments(t, p);
        const cd_task *known =
            cd_task_registry_find(tasks, (cd_str){p->workload_key, strlen(p->workload_key)});
        if (known && !cd_te_dag_equal(known->dag, p->dag))
            fail_msg("%s: another operator of the network has its key", t->what);
        k->known += known != NULL;
        if (program) check_program(prog, t, p);
        cd_te_shard_free(p);
    }
    count_way(k, w->name);
    k->cuts++;
}

static void check_network(cd_program *prog, const char *name, kind *list, unsigned *n,
                          bool program) {
    cdmpp_err err = {0};
    cd_graph *g;
    cd_workload *w;
    assert_ok(cd_zoo_build(name, &(cd_zoo_options){0}, &g, &err));
    assert_ok(cd_workload_build(g, &(cd_workload_options){0}, &w, &err));
    for (uint32_t i = 0; i < w->n_task; i++) {
        tried t = {.dag = cd_task_registry_at(w->tasks, w->task[i].task)->dag};
        kind *k = kind_of(list, n, &w->task[i]);
        cd_arena a = {0};
        cd_te_shard_axis *way;
        uint32_t n_way;
        assert_ok(cd_te_shard_axes(t.dag, &a, &way, &n_way, &err));
        for (uint32_t j = 0; j < n_way; j++) check_halves(prog, w->tasks, &t, &way[j], k, program);
        k->tasks++;
        cd_arena_free(&a);
    }
    cd_workload_free(w);
    cd_graph_free(g);
}

/* All tasks of the zoo cut in halves every way; CDMPP_WAYS=1 prints the table of
 * docs/reference/partition.md. */
TEST(test_zoo) {
    static kind list[100];
    cdmpp_err err = {0};
    cd_program *prog;
    unsigned n = 0;
    const bool all = getenv("CDMPP_WAYS") != NULL;
    assert_ok(cd_program_new(&prog, &err));
    for (size_t k = 0; k < cd_zoo_count(); k++)
        if (all || k % 8 == 0) check_network(prog, cd_zoo_at(k)->name, list, &n, k % 16 == 0);
    for (unsigned i = 0; all && i < n; i++) {
        printf("| %s | %u | %u | %u | ", list[i].name, list[i].tasks, list[i].cuts, list[i].known);
        for (unsigned j = 0; j < list[i].n; j++)
            printf("%s%s %u", j ? ", " : "", list[i].ways[j], list[i].count[j]);
        printf(" |\n");
    }
    cd_program_free(prog);
}

TESTS(NULL, NULL, test_values, test_zoo)
