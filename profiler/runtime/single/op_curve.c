/* A network profiled at several sizes becomes a table of curves: for each group of operators which
 * dimension varies, and the time at each size. */
#include "profiler/runtime/single/single.h"

#include <math.h>

typedef struct {
    const cd_op_curve_size *size;
    size_t n;
} sizes;

static uint32_t task_of(const sizes *s, size_t i, uint32_t group) {
    return s->size[i].workload->group[group].task;
}

static const cd_te_dag *dag_of(const sizes *s, size_t i, uint32_t group) {
    const cd_workload *w = s->size[i].workload;
    return cd_task_registry_at(w->tasks, w->task[task_of(s, i, group)].task)->dag;
}

/* Milliseconds; 0: none. */
static double ms_at(const sizes *s, size_t i, uint32_t group) {
    const cd_program_select_task *t = &s->size[i].pick->task[task_of(s, i, group)];
    return t->status || t->item.out.error_no ? 0 : t->item.out.time.median_s * 1e3;
}

/* ---- shapes ---- */

/* The k-th operand; NULL: there are no more. */
static const cd_te_op *operand(const cd_te_dag *g, uint32_t k) {
    for (uint32_t i = 0; i < g->n_op; i++)
        if (g->op[i].is_placeholder && k-- == 0) return &g->op[i];
    return NULL;
}

typedef enum { VARIES, FIXED, APART } kind;

/* Do the operands' dimensions vary with the size, and all in the same way? x is valid only for
 * VARIES. */
static kind compare(const sizes *s, uint32_t group, int64_t *x, uint32_t where[2]) {
    const cd_te_dag *first = dag_of(s, 0, group);
    kind found = FIXED;
    const cd_te_op *a;
    for (uint32_t k = 0; (a = operand(first, k)); k++)
        for (uint32_t d = 0; d < a->rank; d++) {
            bool varies = false, same = true;
            for (size_t i = 0; i < s->n; i++) {
                const cd_te_op *b = operand(dag_of(s, i, group), k);
                if (!b || b->rank != a->rank) return APART;
                varies = varies || b->shape[d] != a->shape[d];
                same = same && (found == FIXED || b->shape[d] == x[i]);
            }
            if (!varies) continue;
            if (found == VARIES && !same) return APART;
            if (found == FIXED) where[0] = k, where[1] = d;
            found = VARIES;
            for (size_t i = 0; i < s->n; i++) x[i] = operand(dag_of(s, i, group), k)->shape[d];
        }
    return found;
}

/* The operands' shapes, written as Python writes tuples, with -1 where they vary. */
static void put_shape(cd_buf *b, const sizes *s, uint32_t group) {
    const cd_te_dag *first = dag_of(s, 0, group), *last = dag_of(s, s->n - 1, group);
    const cd_te_op *a;
    cd_buf_puts(b, "(");
    for (uint32_t k = 0; (a = operand(first, k)); k++) {
        const cd_te_op *z = operand(last, k);
        cd_buf_puts(b, k ? ", (" : "(");
        for (uint32_t d = 0; d < a->rank; d++) {
            if (d) cd_buf_puts(b, ", ");
            cd_buf_put_int(b, a->shape[d] == z->shape[d] ? a->shape[d] : -1);
        }
        cd_buf_puts(b, a->rank == 1 ? ",)" : ")");
    }
    cd_buf_puts(b, operand(first, 1) ? ")" : ",)");
}

/* The operands' ranks, and the operand and dimension that first vary. */
static void put_varied(cd_buf *b, const sizes *s, uint32_t group, const uint32_t where[2]) {
    const cd_te_dag *g = dag_of(s, 0, group);
    const cd_te_op *a;
    cd_buf_puts(b, "((");
    for (uint32_t k = 0; (a = operand(g, k)); k++) cd_buf_putf(b, k ? ", %u" : "%u", a->rank);
    cd_buf_putf(b, "%s), (%u, %u))", operand(g, 1) ? "" : ",", where[0], where[1]);
}

/* ---- lines ---- */

/* Did an earlier group have the same tasks at all sizes? */
static bool seen(const sizes *s, uint32_t group) {
    for (uint32_t g = 0; g < group; g++) {
        bool same = true;
        for (size_t i = 0; i < s->n && same; i++) same = task_of(s, i, g) == task_of(s, i, group);
        if (same) return true;
    }
    return false;
}

/* A line of the table; sizes without a time have no point. */
static void put_line(cd_buf *b, const char *host, const sizes *s, uint32_t group, const int64_t *x,
                     const uint32_t where[2]) {
    const cd_workload *w = s->size[0].workload;
    const char *between = "\t";
    double noise = 0;
    cd_buf_putf(b, "%s\t%s\t", w->graph->name, host);
    cd_op_profile_operators(b, w, &w->group[group], '+');
    cd_buf_puts(b, "\t-1\t");
    put_varied(b, s, group, where);
    cd_buf_puts(b, "\t");
    put_shape(b, s, group);
    for (size_t i = 0; i < s->n; i++) {
        if (ms_at(s, i, group) <= 0) continue;
        cd_buf_putf(b, "%s%lld:%.9g", between, (long long)x[i], ms_at(s, i, group));
        between = " ";
        noise = fmax(noise, s->size[i].pick->task[task_of(s, i, group)].item.out.time.cv);
    }
    cd_buf_putf(b, "\t%.3g\n", noise);
}

/* A line, or a count of why there is none. */
static void one_group(cd_buf *b, const char *host, const sizes *s, uint32_t group, int64_t *x,
                      cd_op_curve_tally *t) {
    uint32_t where[2] = {0, 0};
    size_t points = 0;
    const kind k = compare(s, group, x, where);
    for (size_t i = 0; i < s->n; i++) points += ms_at(s, i, group) > 0;
    if (k == FIXED) t->fixed++;
    else if (k == APART) t->apart++;
    else if (points < 2) t->short_of_points++;
    else {
        put_line(b, host, s, group, x, where);
        t->written++;
    }
}

/* Has it a definition at all sizes? */
static cdmpp_status usable(const sizes *s, uint32_t group, bool *yes, cdmpp_err *err) {
    size_t have = 0;
    for (size_t i = 0; i < s->n; i++)
        have += task_of(s, i, group) != CD_GRAPH_NONE && dag_of(s, i, group);
    *yes = have == s->n;
    return have == 0 || *yes
               ? CDMPP_OK
               : CD_FAIL(err, EINVALID, "group %u has a program at some sizes only", group);
}

/* Groups are compared by number: the network has to have the same groups at every size. */
cdmpp_status cd_op_curve_write(cd_buf *b, const char *host, const cd_op_curve_size *size, size_t n,
                               cd_op_curve_tally *t, cdmpp_err *err) {
    const sizes s = {size, n};
    int64_t *x = cd_mem_zalloc(n + 1, sizeof *x);
    cdmpp_status st = x ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu sizes", n);
    *t = (cd_op_curve_tally){0};
    for (size_t i = 1; i < n && !st; i++)
        if (size[i].workload->n_group != size[0].workload->n_group)
            st = CD_FAIL(err, EINVALID, "the network has %u groups at one size and %u at another",
                         size[0].workload->n_group, size[i].workload->n_group);
    cd_buf_puts(b, "set\thost\toperator\tdevice_id\tvaried\tshape\tpoints_n:ms\tnoise\n");
    for (uint32_t g = 0; !st && n && g < size[0].workload->n_group; g++) {
        bool yes = false;
        st = usable(&s, g, &yes, err);
        if (!st && yes && !seen(&s, g)) one_group(b, host, &s, g, x, t);
    }
    cd_mem_free(x);
    if (!st && b->oom) st = CD_FAIL(err, ENOMEM, "table");
    return st;
}
