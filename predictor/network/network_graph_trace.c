/* A torch.fx trace as a graph: rows before the layer, copies of the layer, rows behind, then the
 * backward nodes in reverse order. Edges into a copy of the layer come from the copy before it. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/network/network_internal.h"

/* Rows of a torch.fx trace (CSV): columns by name, shapes from their text, edges by the names of
 * earlier rows. */

enum { MOST_COLUMNS = 256 };
#define MOST_ELEMENTS 1e15
#define MOST_MS       1e9

typedef enum {
    OP,
    TARGET,
    INPUTS,
    SHAPES,
    SHAPE,
    DTYPE,
    NAME,
    META,
    IN_DENSE,
    DENSE,
    FW,
    ANY,
    BW,
    ACC,
    N_COLUMN
} column;
static const struct {
    const char *name;
    bool must;
} columns[N_COLUMN] = {{"op", true},           {"target", true},       {"_input_nodes", true},
                       {"input_shapes", true}, {"output_shape", true}, {"dtype", true},
                       {"Name", true},         {"meta", false},        {"input_contiguous", false},
                       {"contiguous", false},  {"fw_latency", false},  {"latency", false},
                       {"bw_latency", false},  {"acc_latency", false}};

typedef struct reader {
    cd_torch_trace *f;
    cd_dict name;        /* number: of the row */
    size_t at[N_COLUMN]; /* field of a column; SIZE_MAX: not there */
    cd_str field[MOST_COLUMNS];
    size_t n_field;
} reader;

static cd_str get(const reader *r, column c) {
    return r->at[c] < r->n_field ? r->field[r->at[c]] : (cd_str){"", 0};
}

/* ---- Python's texts ---- */

/* "(8, 512)", from p; the place behind it. */
static cdmpp_status shape(const char **p, const char *end, cd_torch_trace_shape *out,
                          cdmpp_err *err) {
    double elements = 1;
    out->n = 0;
    for (; *p < end && *(*p - 1) != ')' && *(*p - 1) != ']'; ++*p) {
        if (!isdigit((unsigned char)**p)) {
            if (strchr("-.", **p)) return CD_FAIL(err, EPARSE, "expected whole numbers in a shape");
            continue;
        }
        double v = 0;
        for (; *p < end && isdigit((unsigned char)**p); ++*p) v = 10 * v + (**p - '0');
        elements *= fmax(v, 1);
        if (out->n == CD_TORCH_TRACE_DIMS || elements > MOST_ELEMENTS)
            return CD_FAIL(err, ERANGE, "a shape of more than %d dimensions or %g elements",
                           CD_TORCH_TRACE_DIMS, MOST_ELEMENTS);
        out->d[out->n++] = (int64_t)v;
        --*p;
    }
    return *(*p - 1) == ')' || *(*p - 1) == ']' ? CDMPP_OK
                                                : CD_FAIL(err, EPARSE, "a shape has no end");
}

/* One shape that stands alone. */
static cdmpp_status shape_of(cd_str s, cd_torch_trace_shape *out, cdmpp_err *err) {
    const char *p = s.p, *const end = s.p + s.n;
    while (p < end && *p == ' ') p++;
    if (p == end || (*p != '(' && *p != '['))
        return CD_FAIL(err, EPARSE, "expected a shape like (8, 512)");
    p++;
    return shape(&p, end, out, err);
}

/* A list of shapes into row->in; row->n_in as many as there are, at most CD_TORCH_TRACE_INPUTS. */
static cdmpp_status shapes(cd_str s, cd_torch_trace_op *row, cdmpp_err *err) {
    const char *p = memchr(s.p, '[', s.n), *const end = s.p + s.n;
    if (!p) return CD_FAIL(err, EPARSE, "expected a list of shapes like [[8, 512], [1]]");
    for (p++; p < end && row->n_in < CD_TORCH_TRACE_INPUTS;) {
        if (*p++ != '[' && p[-1] != '(') continue;
        CD_TRY(shape(&p, end, &row->in[row->n_in++], err));
    }
    return CDMPP_OK;
}

/* "True" or "False", number i of a list; true where there is none. */
static bool flag(cd_str s, uint32_t i) {
    for (const char *p = s.p, *const end = s.p + s.n; p < end; p++) {
        if (*p != 'T' && *p != 'F') continue;
        if (!i--) return *p == 'T';
        while (p < end && isalpha((unsigned char)*p)) p++;
    }
    return true;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The next word of "{a: None, b: None}" or "['a', 'b']" that names a row. */
static bool word(cd_str *rest, cd_str *out) {
    const char *p = rest->p, *const end = rest->p + rest->n;
    while (p < end) {
        while (p < end && !is_word(*p)) p++;
        const char *const from = p;
        while (p < end && is_word(*p)) p++;
        *out = (cd_str){from, (size_t)(p - from)};
        if (!out->n || cd_str_is(*out, "None")) continue;
        *rest = (cd_str){p, (size_t)(end - p)};
        return true;
    }
    return false;
}

/* ---- what a row runs ---- */
static const char *find(cd_str s, const char *z) {
    const size_t n = strlen(z);
    for (size_t i = 0; i + n <= s.n; i++)
        if (!memcmp(s.p + i, z, n)) return s.p + i;
    return NULL;
}

/* The last part of "torch.nn.modules.linear.Linear'>" */
static cd_str last_part(const char *p, const char *end) {
    const char *from = p;
    for (; p < end && (is_word(*p) || *p == '.'); p++)
        if (*p == '.') from = p + 1;
    return (cd_str){from, (size_t)(p - from)};
}

/* "<built-in method addmm of type ...>", "<function softmax at ...>", "<class 'torch.finfo'>",
 * "torch.nn.functional.linear" */
static cd_str function_of(cd_str t) {
    static const char *const before[] = {"<built-in function ", "<built-in method ", "<function ",
                                         "<class '"};
    const char *const end = t.p + t.n;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const char *p = find(t, before[i]);
        if (p) return last_part(p + strlen(before[i]), end);
    }
    return last_part(t.p, end);
}

/* The class of a module from its name, where the trace does not name the class. */
static cd_str guess_class(cd_str target) {
    static const struct {
        const char *part, *class;
    } by[] = {{"LayerNorm", "LayerNorm"},
              {"layer_norm", "LayerNorm"},
              {"ln_", "LayerNorm"},
              {"drop", "Dropout"},
              {"embed", "Embedding"},
              {"wte", "Embedding"},
              {"wpe", "Embedding"},
              {"gelu", "GELU"},
              {"intermediate_act", "GELU"},
              {"pooler.activation", "Tanh"},
              {"tanh", "Tanh"},
              {"act", "ReLU"},
              {"softmax", "Softmax"}};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++)
        if (find(target, by[i].part)) return (cd_str){by[i].class, strlen(by[i].class)};
    return (cd_str){"Linear", 6};
}

static cd_str class_of(cd_str meta, cd_str target) {
    cd_str class = {"", 0};
    const char *const end = meta.p + meta.n;
    for (const char *p; (p = find(meta, "<class '")); meta = (cd_str){p + 8, (size_t)(end - p) - 8})
        class = last_part(p + 8, end);
    return class.n ? class : guess_class(target);
}

/* Bytes of an element; 0: the result is no tensor. */
static cdmpp_status dtype(cd_str s, cd_torch_trace_op *row, cdmpp_err *err) {
    static const struct {
        const char *name;
        uint32_t bytes;
        bool real;
        cd_library_op_dtype is;
    } types[] = {{"torch.float32", 4, true, CD_LIBRARY_OP_DTYPE_F32},
                 {"torch.float16", 2, true, CD_LIBRARY_OP_DTYPE_F16},
                 {"torch.bfloat16", 2, true, CD_LIBRARY_OP_DTYPE_BF16},
                 {"torch.float64", 8, true, CD_LIBRARY_OP_DTYPE_F32},
                 {"torch.int64", 8, false, CD_LIBRARY_OP_DTYPE_F32},
                 {"torch.int32", 4, false, CD_LIBRARY_OP_DTYPE_F32},
                 {"torch.int16", 2, false, CD_LIBRARY_OP_DTYPE_F32},
                 {"torch.int8", 1, false, CD_LIBRARY_OP_DTYPE_F32},
                 {"torch.uint8", 1, false, CD_LIBRARY_OP_DTYPE_F32},
                 {"torch.bool", 1, false, CD_LIBRARY_OP_DTYPE_F32}};
    row->out.bytes = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (cd_str_is(s, types[i].name)) {
            row->out.bytes = types[i].bytes;
            row->real = types[i].real;
            row->dtype = types[i].is;
        }
    return !s.n || row->out.bytes
               ? CDMPP_OK
               : CD_FAIL(err, ESCHEMA, "expected a type of PyTorch, found \"%.*s\"",
                         cd_str_shown(s, 40), s.p);
}

/* Milliseconds of a phase. */
static cdmpp_status seconds(cd_str s, double *out, cdmpp_err *err) {
    *out = (double)NAN;
    if (!s.n) return CDMPP_OK;
    if (!cd_json_number(s.p, s.p + s.n, out))
        return CD_FAIL(err, EPARSE, "expected milliseconds, found \"%.*s\"", cd_str_shown(s, 40),
                       s.p);
    *out *= 1e-3;
    return *out >= 0 && *out <= MOST_MS ? CDMPP_OK
                                        : CD_FAIL(err, ERANGE, "expected 0 .. %g ms", MOST_MS);
}

/* ---- a line ---- */
static cdmpp_status grow(cd_torch_trace *f, cdmpp_err *err) {
    if (CD_GROW(f->row, f->n, f->cap)) return CD_FAIL(err, ENOMEM, "rows of a trace");
    if (f->n_from + CD_TORCH_TRACE_INPUTS > f->cap_from) {
        const uint32_t cap = 2 * f->cap_from + 512;
        uint32_t *from = cap > f->cap_from
                             ? cd_mem_realloc(f->from, f->n_from * sizeof *from, cap * sizeof *from)
                             : NULL;
        if (!from) return CD_FAIL(err, ENOMEM, "trace of %u edges", cap);
        f->from = from;
        f->cap_from = cap;
    }
    return CDMPP_OK;
}

/* Rows that it reads; of more than CD_TORCH_TRACE_INPUTS the last are left out (a list of
 * results). */
static cdmpp_status edges(reader *r, cd_torch_trace_row *t, cdmpp_err *err) {
    cd_torch_trace *f = r->f;
    cd_str rest = get(r, INPUTS), name;
    t->first = f->n_from;
    t->n_from = 0;
    for (; word(&rest, &name) && t->n_from < CD_TORCH_TRACE_INPUTS; t->n_from++) {
        uint32_t from;
        if (!cd_dict_find(&r->name, name, &from) || from >= f->n)
            return CD_FAIL(err, EINVALID, "row \"%.60s\" reads \"%.*s\", which is not before it",
                           t->row.name, cd_str_shown(name, 60), name.p);
        f->from[f->n_from + t->n_from] = from;
    }
    f->n_from += t->n_from;
    return CDMPP_OK;
}

static bool keep(cd_arena *a, cd_str s, const char **out) {
    return (*out = cd_str_dup(a, s)) != NULL;
}

static cdmpp_status texts(reader *r, cd_torch_trace_row *t, cdmpp_err *err) {
    const cd_str kind = get(r, OP), target = get(r, TARGET);
    const cd_str verb = cd_str_is(kind, "call_module")     ? class_of(get(r, META), target)
                        : cd_str_is(kind, "call_function") ? function_of(target)
                                                           : target;
    uint32_t id;
    CD_TRY(cd_dict_add(&r->name, get(r, NAME), &id, err));
    if (id != r->f->n)
        return CD_FAIL(err, EINVALID, "two rows are called \"%.60s\"", r->name.text[id]);
    cd_arena *a = &r->f->arena;
    return keep(a, kind, &t->row.kind) && keep(a, target, &t->target) &&
                   keep(a, verb, &t->row.verb) && keep(a, get(r, NAME), &t->row.name)
               ? CDMPP_OK
               : CD_FAIL(err, ENOMEM, "row");
}

/* Several tensors as one result, which has no type of its own. */
static bool is_list(const char *verb) {
    return !strcmp(verb, "split") || !strcmp(verb, "chunk") || !strcmp(verb, "unbind");
}

/* Types and gradients of the inputs are those of the rows they come from. */
static void inherit(const cd_torch_trace *f, cd_torch_trace_row *t) {
    cd_torch_trace_op *r = &t->row;
    for (uint32_t i = 0; i < t->n_from && i < r->n_in; i++) {
        const cd_torch_trace_op *from = &f->row[f->from[t->first + i]].row;
        r->in[i].bytes = from->out.bytes;
        if (from->gradient) r->in_gradient |= 1u << i;
    }
    const bool weight = !strcmp(r->kind, "get_attr") ||
                        (!strcmp(r->kind, "call_module") && cd_torch_trace_is_learned(r->verb));
    r->gradient = (r->real && weight) || ((r->real || is_list(r->verb)) && r->in_gradient);
}

/* One row. It is counted last, so that an error leaves no half-read row. */
static cdmpp_status line(reader *r, cdmpp_err *err) {
    cd_torch_trace *f = r->f;
    CD_TRY(grow(f, err));
    cd_torch_trace_row *t = &f->row[f->n];
    *t = (cd_torch_trace_row){0};
    CD_TRY(texts(r, t, err));
    CD_TRY(cd_err_key(err, shape_of(get(r, SHAPE), &t->row.out, err), "output_shape"));
    CD_TRY(cd_err_key(err, shapes(get(r, SHAPES), &t->row, err), "input_shapes"));
    CD_TRY(cd_err_key(err, dtype(get(r, DTYPE), &t->row, err), "dtype"));
    for (uint32_t i = 0; i < t->row.n_in; i++) t->row.in[i].strided = !flag(get(r, IN_DENSE), i);
    t->row.out.strided = !flag(get(r, DENSE), 0);
    CD_TRY(cd_err_key(
        err, seconds(get(r, r->at[FW] == SIZE_MAX ? ANY : FW), &t->seconds[CD_PHASE_FORWARD], err),
        "fw_latency"));
    CD_TRY(cd_err_key(err, seconds(get(r, BW), &t->seconds[CD_PHASE_BACKWARD], err), "bw_latency"));
    CD_TRY(cd_err_key(err, seconds(get(r, ACC), &t->seconds[CD_PHASE_UPDATE], err), "acc_latency"));
    if (t->seconds[CD_PHASE_BACKWARD] > 0) f->training = true;
    CD_TRY(edges(r, t, err));
    inherit(f, t);
    f->n++;
    return CDMPP_OK;
}

static cdmpp_status header(reader *r, cdmpp_err *err) {
    for (size_t c = 0; c < N_COLUMN; c++) {
        r->at[c] = SIZE_MAX;
        for (size_t i = 0; i < r->n_field; i++)
            if (cd_str_is(r->field[i], columns[c].name)) r->at[c] = i;
        if (columns[c].must && r->at[c] == SIZE_MAX)
            return CD_FAIL(err, ESCHEMA, "expected a column \"%s\"", columns[c].name);
    }
    return CDMPP_OK;
}

/* What is known only when the whole file is read: whether it is of training, and the size of the
 * vocabulary. */
static void finish(cd_torch_trace *f) {
    int64_t vocabulary = 0;
    if (f->n && !strcmp(f->row[f->n - 1].row.kind, "output")) {
        const cd_torch_trace_op *o = &f->row[f->n - 1].row;
        if (o->n_in && o->in[0].n) vocabulary = o->in[0].d[o->in[0].n - 1];
    }
    for (uint32_t i = 0; i < f->n; i++) {
        cd_torch_trace_op *r = &f->row[i].row;
        r->training = f->training;
        const cd_str target = {f->row[i].target, strlen(f->row[i].target)};
        if (find(target, "word_embeddings") || find(target, "wte") || find(target, "embed_tokens"))
            r->vocabulary = vocabulary;
    }
}

static cdmpp_status all(reader *r, cd_file_lines *l, cdmpp_err *err) {
    for (bool first = true;; first = false) {
        char *text;
        size_t len;
        CD_TRY(cd_file_lines_next(l, &text, &len, err));
        if (!text)
            return first ? CD_FAIL(err, ESCHEMA, "expected names of columns, found an empty file")
                         : CDMPP_OK;
        if (!len) continue;
        CD_TRY(cd_csv_fields_split(text, len, r->field, MOST_COLUMNS, &r->n_field, err));
        CD_TRY(first ? header(r, err) : line(r, err));
    }
}

/* Errors, with path and line: EIO, EPARSE (quotes, a list), ESCHEMA (a column is missing), EINVALID
 * (a row reads one that is not before it; two of one name), ERANGE (sizes, times), ENOMEM. Free
 * *out after an error too.
 *
 * Lines one by one: traces of large models are long. */
static cdmpp_status torch_trace_read(const char *path, cd_torch_trace *out, cdmpp_err *err) {
    reader *r = cd_mem_zalloc(1, sizeof *r);
    cd_file_lines *l = NULL;
    *out = (cd_torch_trace){0};
    if (!r) return CD_FAIL(err, ENOMEM, "reader");
    r->f = out;
    cdmpp_status st = cd_file_lines_open(path, 0, &l, err);
    if (!st) {
        st = all(r, l, err);
        if (st) st = cd_err_at(err, st, path, cd_file_lines_number(l));
    }
    if (!st) finish(out);
    cd_file_lines_close(l);
    cd_dict_free(&r->name);
    cd_mem_free(r);
    return st;
}

void cd_torch_trace_free(cd_torch_trace *f) {
    cd_arena_free(&f->arena);
    cd_mem_free(f->row);
    cd_mem_free(f->from);
    *f = (cd_torch_trace){0};
}

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
    if (!st) st = torch_trace_read(path, &b.file, err);
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
