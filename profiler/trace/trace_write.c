/* trace_write -- the steps of a trace as a network (docs/reference/netgraph.md) and as a table of
 * operators (docs/reference/operators.md). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/trace/trace_combine.h"

/* ---- the network ---- */
static void put_question(cd_json_writer *w, const cd_library_op_record *q) {
    cd_json_write_key(w, "question");
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "op", cd_library_op_kind_name(q->kind));
    cd_json_write_member_str(w, "dtype", cd_library_op_dtype_name(q->dtype));
    const struct {
        const char *key;
        double v;
    } size[] = {{"b", q->b},           {"m", q->m},     {"n", q->n},
                {"k", q->k},           {"cin", q->cin}, {"ksize", q->ksize},
                {"stride", q->stride}, {"pad", q->pad}, {"size", q->size}};
    const size_t n = cd_library_op_kind_class(q->kind) == CD_LIBRARY_OP_CLASS_CONV ? 9 : 4;
    for (size_t i = 0; i < n; i++) cd_json_write_member_int(w, size[i].key, (int64_t)size[i].v);
    cd_json_write_close(w, '}');
}

/* "aten::addmm", "aten::addmm#2": the k-th of a name gets its number. Into *b. */
static cdmpp_status unique(cd_buf *b, cd_dict *seen, uint32_t **count, size_t *cap,
                           const char *name, cdmpp_err *err) {
    uint32_t k;
    const size_t before = seen->n;
    CD_TRY(cd_dict_add(seen, (cd_str){name, strlen(name)}, &k, err));
    if (CD_GROW(*count, k, *cap)) return CD_FAIL(err, ENOMEM, "names of nodes");
    if (k == before) (*count)[k] = 0;
    cd_buf_clear(b);
    cd_buf_puts(b, name);
    if (++(*count)[k] > 1) cd_buf_putf(b, "#%u", (unsigned)(*count)[k]);
    return b->oom ? CD_FAIL(err, ENOMEM, "names of nodes") : CDMPP_OK;
}

typedef struct graph {
    const cd_trace_runs *r;
    cd_json_writer w;
    const char *device; /* of the network */
    cd_dict seen;
    uint32_t *count;
    size_t cap;
    cd_buf name;
    char **last; /* (streams) name of the node before */
    cd_arena arena;
    bool several; /* the trace has devices of several names */
} graph;

static const char *op_of(const cd_trace_step *x) {
    if (x->kind == CD_TRACE_COPY) return "copy";
    return x->kind == CD_TRACE_SET ? "fill" : *x->op ? x->op : "";
}

static cdmpp_status put_node(graph *g, const cd_trace_step *x, cdmpp_err *err) {
    cd_json_writer *w = &g->w;
    const cd_library_op_record *q =
        x->question == CD_TRACE_NONE ? NULL : &g->r->run[g->r->first].trace->question[x->question];
    CD_TRY(unique(&g->name, &g->seen, &g->count, &g->cap, *x->op ? x->op : x->name, err));
    cd_buf_puts(w->out, w->comma ? ",\n  " : "\n  ");
    w->comma = false;
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "name", g->name.p);
    if (*op_of(x)) cd_json_write_member_str(w, "op", op_of(x));
    cd_json_write_member_str(w, "kind", x->key ? "task" : q ? "library" : "given");
    if (x->key) cd_json_write_member_str(w, "key", x->key);
    else if (q) put_question(w, q);
    cd_json_write_member_real(w, "given_s", x->time_s);
    if (g->several) cd_json_write_member_str(w, "device", x->device);
    if (g->last[x->stream]) {
        cd_json_write_key(w, "after");
        cd_json_write_open(w, '[');
        cd_json_write_str(w, g->last[x->stream]);
        cd_json_write_close(w, ']');
    }
    cd_json_write_close(w, '}');
    return (g->last[x->stream] = cd_arena_text(&g->arena, g->name.p))
               ? CDMPP_OK
               : CD_FAIL(err, ENOMEM, "names of nodes");
}

static cdmpp_status put_nodes(graph *g, const char *name, cdmpp_err *err) {
    cd_json_writer *w = &g->w;
    cd_buf_puts(w->out, "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [\n {");
    cd_json_write_member_str(w, "name", name);
    if (g->device && *g->device) cd_json_write_member_str(w, "device", g->device);
    if (isfinite(g->r->wall_s)) cd_json_write_member_real(w, "measured_s", g->r->wall_s);
    cd_json_write_key(w, "nodes");
    cd_json_write_open(w, '[');
    for (size_t i = 0; i < g->r->n_step; i++) CD_TRY(put_node(g, &g->r->step[i], err));
    cd_json_write_close(w, ']');
    cd_buf_puts(w->out, "}\n]}\n");
    return w->out->oom ? CD_FAIL(err, ENOMEM, "network") : CDMPP_OK;
}

cdmpp_status cd_trace_put_graph(cd_buf *b, const cd_trace_runs *r, const char *name,
                                const char *device, cdmpp_err *err) {
    graph g = {.r = r, .w = {.out = b, .sep = ", ", .colon = ": "}, .device = device};
    uint32_t streams = 1;
    for (size_t i = 0; i < r->n_step; i++) {
        const cd_trace_step *x = &r->step[i], *y = &r->step[0];
        if (x->stream >= streams) streams = x->stream + 1;
        g.several = g.several || (!device && strcmp(x->device, y->device));
    }
    if (!device && r->n_step) g.device = r->step[0].device;
    g.last = CD_NEWN(&g.arena, char *, streams);
    cdmpp_status st = g.last ? CDMPP_OK : CD_FAIL(err, ENOMEM, "network");
    if (!st) st = put_nodes(&g, name, err);
    cd_dict_free(&g.seen);
    cd_mem_free(g.count);
    cd_buf_free(&g.name);
    cd_arena_free(&g.arena);
    return st;
}

/* ---- the table ---- */
typedef struct row {
    const cd_library_op_record *q;
    const char *device, *launch;
    double sum, n; /* of the times of one kernel or operator */
    /* first row of the same question and device: rows[same].best is the fastest */
    uint32_t same;
    double best;
} row;

static void put_launch(cd_buf *b, const char *launch) {
    int d[6];
    if (sscanf(launch, "[[%9d,%9d,%9d],[%9d,%9d,%9d]]", &d[0], &d[1], &d[2], &d[3], &d[4], &d[5]) !=
        6) {
        cd_buf_puts(b, ",,,,,,");
        return;
    }
    for (int i = 0; i < 6; i++) cd_buf_putf(b, ",%d", d[i]);
}

static void put_row(cd_buf *b, const row *w, double time_s) {
    const cd_library_op_record *q = w->q;
    const cd_library_op_class c = cd_library_op_kind_class(q->kind);
    cd_buf_putf(b, "%s,", cd_library_op_kind_name(q->kind));
    cd_csv_fields_put(b, w->device, strlen(w->device));
    cd_buf_putf(b, ",%.9g,%s", time_s * 1e3, cd_library_op_dtype_name(q->dtype));
    if (c == CD_LIBRARY_OP_CLASS_CONV) {
        const double side = floor((q->size + 2 * q->pad - q->ksize) / q->stride) + 1;
        cd_buf_putf(b, ",%.0f,,,,,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f", q->m / (side * side), q->cin,
                    q->n, q->ksize, q->size, q->stride, q->pad);
    } else if (c == CD_LIBRARY_OP_CLASS_BMM || c == CD_LIBRARY_OP_CLASS_LINEAR) {
        cd_buf_putf(b, ",%.0f,%.0f,%.0f,%.0f,,,,,,,", q->b, q->m, q->k, q->n);
    } else {
        cd_buf_putf(b, ",%.0f,,,,%.0f,,,,,,", q->m, q->n);
    }
    put_launch(b, w->launch);
    cd_buf_puts(b, "\n");
}

typedef struct rows {
    cd_dict key, question;
    row *v;
    size_t n, cap;
    uint32_t *first; /* of each question */
    size_t cap_first;
    cd_buf text;
} rows;

/* The mean of equal launches of one kernel or operator; the fastest of several for the same
 * question is taken later. */
static cdmpp_status add(rows *l, const cd_library_op_record *q, const char *device,
                        const cd_trace_step *x, cdmpp_err *err) {
    uint32_t ask, k;
    const size_t known = l->question.n;
    cd_buf_clear(&l->text);
    cd_buf_putf(&l->text, "%d %d %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f\n%s", (int)q->kind,
                (int)q->dtype, q->b, q->m, q->n, q->k, q->cin, q->ksize, q->stride, q->pad, q->size,
                device);
    if (l->text.oom) return CD_FAIL(err, ENOMEM, "table");
    CD_TRY(cd_dict_add(&l->question, (cd_str){l->text.p, l->text.n}, &ask, err));
    cd_buf_putf(&l->text, "\n%s", *x->op ? x->op : x->name);
    if (l->text.oom) return CD_FAIL(err, ENOMEM, "table");
    CD_TRY(cd_dict_add(&l->key, (cd_str){l->text.p, l->text.n}, &k, err));
    if (CD_GROW(l->v, l->n, l->cap) || CD_GROW(l->first, ask, l->cap_first))
        return CD_FAIL(err, ENOMEM, "table");
    if (ask == known) l->first[ask] = k;
    if (k == l->n)
        l->v[l->n++] = (row){
            .q = q, .device = device, .launch = x->launch, .same = l->first[ask], .best = INFINITY};
    l->v[k].sum += x->time_s;
    l->v[k].n++;
    return CDMPP_OK;
}

static size_t put_rows(cd_buf *b, rows *l) {
    size_t n = 0;
    cd_buf_puts(b, "OPName,Device,Latency,dtype,B,M,N,K,H,Input_Channel,Output_Channel,Kernel_Size,"
                   "Input_Size,Stride,Padding,"
                   "Grid x,Grid y,Grid z,Block x,Block y,Block z\n");
    for (size_t i = 0; i < l->n; i++) {
        row *first = &l->v[l->v[i].same];
        const double t = l->v[i].sum / l->v[i].n;
        if (t < first->best) first->best = t, first->launch = l->v[i].launch;
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].same == i) put_row(b, &l->v[i], l->v[i].best), n++;
    return n;
}

cdmpp_status cd_trace_put_table(cd_buf *b, const cd_trace_runs *r, const char *device, size_t *n,
                                cdmpp_err *err) {
    const cd_trace *t = r->run[r->first].trace;
    rows l = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < r->n_step && !st; i++) {
        const cd_trace_step *x = &r->step[i];
        if (x->question != CD_TRACE_NONE && x->kind == CD_TRACE_KERNEL)
            st = add(&l, &t->question[x->question], device ? device : x->device, x, err);
    }
    if (!st) *n = put_rows(b, &l);
    if (!st && b->oom) st = CD_FAIL(err, ENOMEM, "table");
    cd_dict_free(&l.key);
    cd_dict_free(&l.question);
    cd_mem_free(l.v);
    cd_mem_free(l.first);
    cd_buf_free(&l.text);
    return st;
}
