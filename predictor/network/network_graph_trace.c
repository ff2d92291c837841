/* A torch.fx trace as a graph: rows before the layer, copies of the layer, rows behind, then the
 * backward nodes in reverse order. Edges into a copy of the layer come from the copy before it. */
#include "predictor/network/network_internal.h"

#include <math.h>
#include <string.h>

#include "base/io/io.h"

enum { MOST_LAYERS = 10000, NONE = UINT32_MAX };

typedef struct placed {
    uint32_t first, n; /* nodes of a phase: first .. first + n */
} placed;

typedef struct builder {
    cd_torch_trace file;
    cd_network_builder *maker;
    uint32_t layers;     /* copies of rows begin .. end; 1: none */
    uint32_t begin, end; /* rows of the layer; equal: there is none */
    uint32_t carried;    /* row that the layer begins with; NONE */
    uint32_t n;          /* rows with their copies */
    placed *forward;     /* (n) */
    placed *back;        /* (n); n 0: no gradient */
    uint32_t head;       /* the last forward node */
} builder;

/* ---- the layer ---- */
static bool has(const char *s, const char *part) { return strstr(s, part) != NULL; }
static bool in_layer(const char *target, char number) {
    char part[3][12] = {"layer.N.", "layers.N.", "h.N."};
    bool is = false;
    for (size_t i = 0; i < 3; i++) {
        *strchr(part[i], 'N') = number;
        is |= i < 2 ? has(target, part[i])
                    : has(target, part[i]) &&
                          (strstr(target, part[i]) == target || strstr(target, part[i])[-1] == '.');
    }
    return is;
}

static bool same_shape(const cd_torch_trace_shape *a, const cd_torch_trace_shape *b) {
    return a->n == b->n && !memcmp(a->d, b->d, a->n * sizeof *a->d);
}

static bool reads_from(const builder *b, uint32_t row, uint32_t begin) {
    const cd_torch_trace_row *t = &b->file.row[row];
    for (uint32_t i = 0; i < t->n_from; i++)
        if (b->file.from[t->first + i] >= begin) return true;
    return false;
}

/* The row that a layer begins with: the first tensor that its first row reads. */
static uint32_t carried_of(const builder *b) {
    const cd_torch_trace_row *t = &b->file.row[b->begin];
    for (uint32_t i = 0; i < t->n_from; i++)
        if (b->file.row[b->file.from[t->first + i]].row.real) return b->file.from[t->first + i];
    return NONE;
}

/* Rows begin .. end of the layer that stands for all, see (2) of the header. Without a number of
 * layers, or with a second layer in the file, there is none. */
static void find_layer(builder *b) {
    const cd_torch_trace *f = &b->file;
    bool found = false;
    b->carried = NONE;
    for (uint32_t i = 0; i < f->n; i++) {
        if (strcmp(f->row[i].row.kind, "call_module") != 0) continue;
        if (in_layer(f->row[i].target, '1')) b->layers = 1;
        if (!in_layer(f->row[i].target, '0')) continue;
        if (!found) b->begin = i;
        found = true;
        b->end = i + 1;
    }
    cd_network_builder_graph(b->maker)->layers_unknown = found && !b->layers;
    if (found) b->carried = carried_of(b);
    if (b->layers < 2 || b->carried == NONE) {
        b->layers = 1;
        b->begin = b->end = 0;
        return;
    }
    const cd_torch_trace_shape *shape = &f->row[b->carried].row.out;
    for (uint32_t i = b->end; i < f->n && strcmp(f->row[i].row.kind, "call_module") != 0; i++)
        if (same_shape(&f->row[i].row.out, shape) && reads_from(b, i, b->begin)) b->end = i + 1;
}

/* ---- rows and copies: in the order that they run ---- */
static uint32_t length(const builder *b) { return b->end - b->begin; }
static uint32_t row_of(const builder *b, uint32_t at) {
    if (at < b->begin) return at;
    const uint32_t behind = b->begin + b->layers * length(b);
    return at < behind ? b->begin + (at - b->begin) % length(b) : b->end + (at - behind);
}
/* Where copy c of a row stands; of rows outside of the layer there is one. */
static uint32_t place(const builder *b, uint32_t row, uint32_t c) {
    if (row < b->begin) return row;
    return row < b->end ? row + c * length(b) : row + (b->layers - 1) * length(b);
}

/* Where what the row at `at` reads stands. */
static uint32_t source(const builder *b, uint32_t at, uint32_t row) {
    const uint32_t behind = b->begin + b->layers * length(b);
    if (at < b->begin || at >= behind) return place(b, row, b->layers - 1);
    const uint32_t c = (at - b->begin) / length(b);
    if (row == b->carried && c) return place(b, b->end - 1, c - 1);
    return place(b, row, c);
}

/* ---- nodes ---- */
static double bytes_of(const cd_torch_trace_shape *s) { return s->bytes * cd_torch_trace_count(s); }

static int64_t in_bytes(const cd_torch_trace_op *r) {
    double sum = 0;
    for (uint32_t i = 0; i < r->n_in; i++) sum += bytes_of(&r->in[i]);
    return (int64_t)sum;
}

static cdmpp_status add_node(builder *b, const cd_torch_trace_row *t,
                             const cd_torch_trace_task *task, uint32_t *id, cdmpp_err *err) {
    cd_network_node n = cd_network_node_init(t->row.name, task->op, task->kind);
    n.phase = task->phase;
    n.question = task->kind == CD_NODE_LIBRARY ? &task->question : NULL;
    n.why = task->why;
    if (task->kind != CD_NODE_FREE) n.given_s = t->seconds[task->phase] * task->share;
    n.flop = task->flop;
    n.read_bytes = in_bytes(&t->row);
    n.write_bytes = task->phase == CD_PHASE_FORWARD ? (int64_t)bytes_of(&t->row.out) : n.read_bytes;
    return cd_network_builder_node(b->maker, &n, id, err);
}

/* Tasks of one phase of the row at `at`; where they went. */
static cdmpp_status phase(builder *b, uint32_t at, cd_node_phase is, placed *out, cdmpp_err *err) {
    cd_torch_trace_task task[CD_TORCH_TRACE_TASKS];
    const cd_torch_trace_row *t = &b->file.row[row_of(b, at)];
    const uint32_t n = cd_torch_trace_tasks(&t->row, task);
    *out = (placed){0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id;
        if (task[i].phase != is) continue;
        CD_TRY(add_node(b, t, &task[i], &id, err));
        if (!out->n++) out->first = id;
        else CD_TRY(cd_network_builder_edge(b->maker, id - 1, id, err));
    }
    return CDMPP_OK;
}

static uint32_t end_of(const placed *p) { return p->first + p->n - 1; }

static cdmpp_status forward(builder *b, cdmpp_err *err) {
    for (uint32_t at = 0; at < b->n; at++) {
        const cd_torch_trace_row *t = &b->file.row[row_of(b, at)];
        CD_TRY(phase(b, at, CD_PHASE_FORWARD, &b->forward[at], err));
        for (uint32_t i = 0; i < t->n_from; i++) {
            const uint32_t from = source(b, at, b->file.from[t->first + i]);
            CD_TRY(cd_network_builder_edge(b->maker, end_of(&b->forward[from]),
                                           b->forward[at].first, err));
        }
    }
    b->head = end_of(&b->forward[b->n - 1]);
    return CDMPP_OK;
}

/* ---- backward: what reads a row sends it a gradient ---- */
typedef struct sent {
    uint32_t from, next; /* row with its copies; the one before in the chain + 1, 0: none */
} sent;

static cdmpp_status back_row(builder *b, uint32_t at, const sent *s, uint32_t chain,
                             cdmpp_err *err) {
    placed update;
    CD_TRY(phase(b, at, CD_PHASE_BACKWARD, &b->back[at], err));
    if (!b->back[at].n) return CDMPP_OK;
    const uint32_t first = b->back[at].first;
    CD_TRY(cd_network_builder_edge(b->maker, end_of(&b->forward[at]), first, err));
    CD_TRY(cd_network_builder_edge(b->maker, b->head, first, err));
    for (; chain; chain = s[chain - 1].next) {
        const placed *from = &b->back[s[chain - 1].from];
        if (from->n) CD_TRY(cd_network_builder_edge(b->maker, end_of(from), first, err));
    }
    CD_TRY(phase(b, at, CD_PHASE_UPDATE, &update, err));
    return update.n ? cd_network_builder_edge(b->maker, end_of(&b->back[at]), update.first, err)
                    : CDMPP_OK;
}

/* From the last row to the first: a row's gradient comes from all rows that read it, which are
 * behind it. `chain` lists these for each row. */
static cdmpp_status backward(builder *b, cd_arena *a, cdmpp_err *err) {
    size_t n = 0, most = 0;
    for (uint32_t at = 0; at < b->n; at++) most += b->file.row[row_of(b, at)].n_from;
    sent *s = cd_arena_alloc(a, most + 1, sizeof *s);
    uint32_t *chain = cd_arena_zalloc(a, b->n, sizeof *chain);
    if (!s || !chain) return CD_FAIL(err, ENOMEM, "%zu edges", most);
    for (uint32_t at = b->n; at-- > 0;) {
        const cd_torch_trace_row *t = &b->file.row[row_of(b, at)];
        CD_TRY(back_row(b, at, s, chain[at], err));
        for (uint32_t i = 0; i < t->n_from; i++) {
            const uint32_t to = source(b, at, b->file.from[t->first + i]);
            s[n] = (sent){at, chain[to]};
            chain[to] = (uint32_t)++n;
        }
    }
    return CDMPP_OK;
}

/* ---- NAME.json ---- */
static cdmpp_status number(const cd_json *o, const char *key, double low, double high, double *out,
                           cdmpp_err *err) {
    const cd_json *v = cd_json_get(o, key);
    return v && v->kind != CD_JSON_NULL ? cd_json_need_real(o, key, low, high, out, err) : CDMPP_OK;
}

/* Members of NAME.json; each may be missing. */
static cdmpp_status about(builder *b, cd_arena *a, const char *text, size_t n, cdmpp_err *err) {
    const cd_json *o;
    double layers = 0, ms = (double)NAN, batch = 0;
    cd_str device = {0};
    cd_network_graph *g = cd_network_builder_graph(b->maker);
    CD_TRY(cd_json_parse(a, text, n, &o, err));
    CD_TRY(number(o, "num_layer", 0, MOST_LAYERS, &layers, err));
    CD_TRY(number(o, "e2e_latency", 0, 1e12, &ms, err));
    CD_TRY(number(o, "batch", 0, 1e9, &batch, err));
    if (cd_json_get(o, "device")) CD_TRY(cd_json_need_str(o, "device", &device, err));
    b->layers = (uint32_t)layers;
    g->measured_s = ms * 1e-3;
    g->batch = (int64_t)batch;
    if (device.p && !(g->device = cd_str_dup(&g->arena, device)))
        return CD_FAIL(err, ENOMEM, "device");
    return CDMPP_OK;
}

/* Path without ".csv" and folders into the arena, the same with ".json" behind. */
static cdmpp_status names(cd_arena *a, const char *path, const char **name, const char **json,
                          cdmpp_err *err) {
    size_t n = strlen(path);
    if (n > 4 && !strcmp(path + n - 4, ".csv")) n -= 4;
    char *j = cd_arena_alloc(a, n + 6, 1);
    size_t from = n;
    while (from && path[from - 1] != '/') from--;
    if (!j || !(*name = cd_str_dup(a, (cd_str){path + from, n - from})))
        return CD_FAIL(err, ENOMEM, "path");
    memcpy(j, path, n);
    memcpy(j + n, ".json", 6);
    *json = j;
    return CDMPP_OK;
}

static cdmpp_status read_about(builder *b, cd_arena *a, const char *path, cdmpp_err *err) {
    char *text = NULL;
    size_t n;
    cdmpp_status st = cd_file_read(path, 1 << 20, &text, &n, NULL);
    if (st == CDMPP_EIO) return CDMPP_OK; /* there is none */
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "file beside the trace");
    if (st) return cd_err_at(err, CD_FAIL(err, EPARSE, "expected a small JSON file"), path, 0);
    st = about(b, a, text, n, err);
    cd_mem_free(text);
    return cd_err_at(err, st, path, 0);
}

/* ---- all of it ---- */
static cdmpp_status build(builder *b, cd_arena *a, const char *json, cdmpp_err *err) {
    CD_TRY(read_about(b, a, json, err)); /* 0 layers: it does not say */
    find_layer(b);
    const uint64_t n = b->file.n + (uint64_t)(b->layers - 1) * length(b);
    if (!n || n > UINT32_MAX / 2)
        return CD_FAIL(err, ERANGE, "a trace of %llu rows", (unsigned long long)n);
    b->n = (uint32_t)n;
    b->forward = cd_arena_zalloc(a, b->n, sizeof *b->forward);
    b->back = cd_arena_zalloc(a, b->n, sizeof *b->back);
    if (!b->forward || !b->back) return CD_FAIL(err, ENOMEM, "trace of %u rows", b->n);
    cd_network_graph *g = cd_network_builder_graph(b->maker);
    const cd_torch_trace_op *in = &b->file.row[0].row;
    if (!g->batch && !strcmp(in->kind, "placeholder") && in->out.n) g->batch = in->out.d[0];
    CD_TRY(forward(b, err));
    return b->file.training ? backward(b, a, err) : CDMPP_OK;
}

/* One network a file, hence an array of one. */
cdmpp_status cd_network_graph_trace_read(const char *path, cd_network_graph ***out, size_t *n,
                                         cdmpp_err *err) {
    cd_arena a = {0};
    builder b = {0};
    const char *name = NULL, *json = NULL;
    *n = 0;
    *out = cd_mem_zalloc(1, sizeof **out);
    if (!*out) return CD_FAIL(err, ENOMEM, "graph");
    cdmpp_status st = names(&a, path, &name, &json, err);
    if (!st) st = cd_torch_trace_read(path, &b.file, err);
    if (!st) st = cd_network_builder_new(name, &b.maker, err);
    if (!st) st = build(&b, &a, json, err);
    if (!st) st = cd_network_builder_finish(b.maker, *out, err);
    *n = !st;
    cd_network_builder_free(b.maker);
    cd_torch_trace_free(&b.file);
    cd_arena_free(&a);
    if (!st) return CDMPP_OK;
    cd_mem_free(*out);
    *out = NULL;
    return cd_err_at(err, st, path, 0);
}
