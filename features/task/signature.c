/* Walks a definition and notes its marks. Value expressions are walked down to their reads; of an
 * index only its form counts. */
#include "features/task/task.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK = 240, READS = 16 };

typedef struct {
    cd_arena *a;
    const char **mark; /* (n) in the order of finding, with repeats */
    size_t n, cap;
    const cd_te_dag *dag;
    const cd_te_op *op; /* the stage that is walked */
    char read[READS][CD_TE_MAX_AXIS + 1];
    uint32_t n_read;
    uint32_t arith;       /* bit of each arithmetic operator of values */
    cd_dtype type[READS]; /* read types, each once */
    uint32_t n_type;
} walker;

/* ---- marks ---- */
static void note(walker *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(walker *w, const char *fmt, ...) {
    char text[MARK];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (char *p = text; *p; p++)
        if (*p == ';' || (unsigned char)*p < ' ') *p = '_';
    char *copy = cd_str_dup(w->a, (cd_str){text, strlen(text)});
    if (!copy || CD_GROW_IN(w->a, w->mark, w->n, w->cap)) w->a->oom = true;
    else w->mark[w->n++] = copy;
}

static const char *type_name(cd_dtype t, char buf[24]) { return cd_expr_dtype_format(t, buf, 24); }

/* ---- indices ---- */
typedef struct {
    int n_space, n_reduce;
    bool strided, dilated;
    char odd; /* 0, or the letter of an index that is no sum of axes */
} terms;

static bool is_reduce(const cd_te_op *op, const cd_expr *var) {
    for (uint32_t k = 0; k < op->n_raxis; k++)
        if (op->raxis[k].var->u.i == var->u.i) return true;
    return false;
}

/* A read value decides over what is not linear, and that over a division. */
static void set_odd(terms *t, char letter) {
    static const char rank[] = "dmg";
    const char *have = t->odd ? strchr(rank, t->odd) : NULL;
    if (!have || strchr(rank, letter) > have) t->odd = letter;
}

static void add_terms(const cd_te_op *op, const cd_expr *e, bool plain, terms *t) {
    const bool by_number = e->n == 2 && cd_expr_is_int(e->a[1]),
               number_by = e->n == 2 && cd_expr_is_int(e->a[0]);
    if (e->flags & CD_EXPR_HAS_LOAD) set_odd(t, 'g');
    else if (!(e->flags & CD_EXPR_HAS_VAR)) return;
    else if (e->op == CD_VAR) {
        const bool reduce = is_reduce(op, e);
        *(reduce ? &t->n_reduce : &t->n_space) += 1;
        if (!plain) *(reduce ? &t->dilated : &t->strided) = true;
    } else if (e->op == CD_ADD || e->op == CD_SUB) {
        add_terms(op, e->a[0], plain, t);
        add_terms(op, e->a[1], plain && e->op == CD_ADD, t);
    } else if (e->op == CD_MUL && (by_number || number_by)) {
        const int64_t k = e->a[by_number ? 1 : 0]->u.i;
        add_terms(op, e->a[by_number ? 0 : 1], plain && k == 1, t);
    } else if (e->op == CD_FDIV && by_number && e->a[1]->u.i == 1) add_terms(op, e->a[0], plain, t);
    else if (e->op == CD_CAST && cd_expr_dtype_is_index(e->type) &&
             cd_expr_dtype_is_index(e->a[0]->type))
        add_terms(op, e->a[0], plain, t);
    else
        set_odd(t, e->op == CD_DIV || e->op == CD_MOD || e->op == CD_FDIV || e->op == CD_FMOD
                       ? 'd'
                       : 'm');
}

static char letter_of(const cd_te_op *op, const cd_expr *index) {
    terms t = {0};
    add_terms(op, index, true, &t);
    if (t.odd) return t.odd;
    if (!t.n_space && !t.n_reduce) return 'c';
    if (t.n_space > 1 || t.n_reduce > 1) return 'f';
    if (!t.n_reduce) return t.strided ? 's' : 'i';
    if (!t.n_space) return t.dilated ? 't' : 'r';
    return t.strided ? '2' : t.dilated ? '~' : '+';
}

/* ---- reads ---- */
/* Number of the spatial axis that an index is, -1: it is not one alone. */
static int axis_of(const cd_te_op *op, const cd_expr *index) {
    for (uint32_t k = 0; k < op->n_axis; k++)
        if (index->op == CD_VAR && index->u.i == op->axis[k].var->u.i) return (int)k;
    return -1;
}

static void note_accesses(walker *w, const cd_expr *load, const char *form) {
    static const struct {
        char letter;
        const char *name;
    } unusual[] = {
        {'d', "divided"}, {'g', "gathered"}, {'f', "fused"}, {'s', "strided"}, {'m', "other"}};
    int last = -1;
    bool permuted = false;
    for (size_t k = 0; k < sizeof unusual / sizeof *unusual; k++)
        if (strchr(form, unusual[k].letter)) note(w, "operator access %s", unusual[k].name);
    for (uint32_t k = 0; k < load->n; k++) {
        const int at = axis_of(w->op, load->a[k]);
        permuted |= at >= 0 && at < last;
        if (at >= 0) last = at;
    }
    if (permuted) note(w, "operator access permuted");
}

static void add_read(walker *w, const cd_expr *load) {
    const uint32_t tensor = (uint32_t)load->u.i;
    char form[CD_TE_MAX_AXIS + 1];
    uint32_t k = 0;
    for (; k < load->n && k < CD_TE_MAX_AXIS; k++) form[k] = letter_of(w->op, load->a[k]);
    form[k] = 0;
    if (!w->op->n_raxis) note_accesses(w, load, form);
    if (w->n_read < READS) memcpy(w->read[w->n_read++], form, k + 1);
    if (tensor >= w->dag->n_tensor) return;
    const cd_te_op *from = &w->dag->op[w->dag->tensor_op[tensor]];
    const cd_dtype t = from->dtype[tensor - from->first_tensor];
    for (k = 0; k < w->n_type; k++)
        if (w->type[k] == t) return;
    if (w->n_type < READS) w->type[w->n_type++] = t;
}

/* ---- values ---- */
static bool has_load(const cd_expr *e) { return (e->flags & CD_EXPR_HAS_LOAD) != 0; }

static void note_call(walker *w, const cd_expr *e) {
    /* call_extern and its kind name the function first */
    const bool named = e->n && e->a[0]->op == CD_STR;
    /* as task files may have it */
    const char *name = strncmp(e->u.name, "tir.", 4) ? e->u.name : e->u.name + 4;
    note(w, "intrinsic %s%s%s", name, named ? " " : "", named ? e->a[0]->u.name : "");
    if (!strcmp(name, "if_then_else") && e->n == 3 && has_load(e->a[1]) && has_load(e->a[2]))
        note(w, "operator access joined");
}

/* What reads nothing is the same for all programs of a shape, and costs little. */
static void walk(walker *w, const cd_expr *e) {
    char to[24], from[24];
    if (!has_load(e)) return;
    if (e->op == CD_LOAD) {
        add_read(w, e);
        return;
    }
    if (e->op == CD_CALL) note_call(w, e);
    else if (e->op == CD_CAST)
        note(w, "intrinsic cast %s>%s", type_name(e->a[0]->type, from), type_name(e->type, to));
    else if (e->op == CD_SELECT && has_load(e->a[1]) && has_load(e->a[2]))
        note(w, "operator access joined");
    else if (cd_expr_op_is_binary((cd_expr_op)e->op)) w->arith |= 1u << e->op;
    for (uint32_t k = 0; k < e->n; k++) walk(w, e->a[k]);
}

/* ---- stages ---- */
static const char *combiner(const cd_te_reducer *r, char buf[24]) {
    const cd_expr *e = r && r->n == 1 ? r->result[0] : NULL;
    const bool plain = e && e->n == 2 && e->a[0]->op == CD_VAR && e->a[1]->op == CD_VAR;
    if (plain && e->op == CD_ADD) return "sum";
    if (plain && e->op == CD_MUL) return "product";
    if (plain && e->op == CD_MAX) return "max";
    if (plain && e->op == CD_MIN) return "min";
    (void)snprintf(buf, 24, "fold%u", r ? r->n : 0);
    return buf;
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static int by_type(const void *a, const void *b) {
    return (int)*(const cd_dtype *)a - (int)*(const cd_dtype *)b;
}

static void append(char *to, size_t cap, const char *between, const char *text) {
    const size_t n = strlen(to);
    (void)snprintf(to + n, cap - n, "%s%s", n ? between : "", text);
}

static void note_reduction(walker *w) {
    char arith[64] = "", reads[MARK / 2] = "", types[64] = "", buf[24];
    const char *how = combiner(w->op->red, buf);
    char name[24];
    for (int k = 0; k < CD_EXPR_OP_COUNT; k++)
        if (w->arith >> k & 1) append(arith, sizeof arith, "", cd_expr_op_name((cd_expr_op)k));
    qsort(w->read, w->n_read, sizeof *w->read, by_text);
    for (uint32_t k = 0; k < w->n_read; k++) append(reads, sizeof reads, ",", w->read[k]);
    qsort(w->type, w->n_type, sizeof *w->type, by_type);
    for (uint32_t k = 0; k < w->n_type; k++)
        append(types, sizeof types, "+", type_name(w->type[k], name));
    if (!*arith) append(arith, sizeof arith, "", ".");
    note(w, "operator %s %u+%u %s %s", how, w->op->n_axis, w->op->n_raxis, arith, reads);
    note(w, "typed %s<%s %s %u+%u %s %s", type_name(w->op->dtype[0], name), types, how,
         w->op->n_axis, w->op->n_raxis, arith, reads);
}

static void stage(walker *w, const cd_te_op *op) {
    char name[24];
    for (uint32_t k = 0; k < op->n_out; k++) note(w, "dtype %s", type_name(op->dtype[k], name));
    if (op->is_placeholder) return;
    w->op = op;
    w->n_read = w->n_type = w->arith = 0;
    for (uint32_t k = 0; k < op->n_out; k++) walk(w, op->body[k]);
    if (op->n_raxis) note_reduction(w);
}

/* ---- targets ---- */
static void note_target(walker *w, cd_str target, const cd_hardware *h) {
    const char *text = target.n ? cd_str_dup(w->a, target) : "";
    if (!text || (target.n && cd_target_is_gpu(target))) return;
    if (h && h->num_cores > 0) note(w, "threads %lld", (long long)h->num_cores);
    if (cd_target_option(text, "-mcpu").n) note(w, "vector %u", cd_target_vector_bytes(target));
    for (cd_str rest = cd_target_option(text, "-mattr"); rest.n;) {
        const char *end = memchr(rest.p, ',', rest.n);
        const size_t n = end ? (size_t)(end - rest.p) : rest.n;
        if (n) note(w, "feature %.*s", (int)(n < 64 ? n : 64), rest.p);
        rest.p += n + (end != NULL);
        rest.n -= n + (end != NULL);
    }
}

/* ---- all ---- */
cdmpp_status cd_signature_of(cd_arena *a, const cd_te_dag *dag, cd_str target,
                             const cd_hardware *hardware, cd_signature *out, cdmpp_err *err) {
    walker *w = CD_NEW(a, walker);
    bool reduces = false;
    if (!w) return CD_FAIL(err, ENOMEM, "signature");
    w->a = a;
    w->dag = dag;
    for (uint32_t k = 0; k < dag->n_op; k++) {
        stage(w, &dag->op[k]);
        reduces |= dag->op[k].n_raxis > 0;
    }
    if (!reduces) note(w, "operator no reduction");
    note_target(w, target, hardware);
    if (a->oom) return CD_FAIL(err, ENOMEM, "signature");
    qsort(w->mark, w->n, sizeof *w->mark, cd_sort_by_text);
    *out = (cd_signature){0, w->mark};
    for (size_t k = 0; k < w->n; k++)
        if (!out->n || strcmp(out->mark[out->n - 1], w->mark[k]) != 0)
            out->mark[out->n++] = w->mark[k];
    return CDMPP_OK;
}

cdmpp_status cd_signature_text(cd_arena *a, const cd_signature *s, const char **out,
                               cdmpp_err *err) {
    size_t n = 1, at = 0;
    for (size_t k = 0; k < s->n; k++) n += strlen(s->mark[k]) + sizeof CD_SIGNATURE_BETWEEN;
    char *text = CD_NEWN(a, char, n);
    if (!text) return CD_FAIL(err, ENOMEM, "signature");
    for (size_t k = 0; k < s->n; k++)
        at +=
            (size_t)snprintf(text + at, n - at, "%s%s", k ? CD_SIGNATURE_BETWEEN : "", s->mark[k]);
    *out = text;
    return CDMPP_OK;
}

bool cd_signature_next(const char **text, cd_str *mark) {
    if (!**text) return false;
    const char *end = strstr(*text, CD_SIGNATURE_BETWEEN);
    *mark = (cd_str){*text, end ? (size_t)(end - *text) : strlen(*text)};
    *text += mark->n + (end ? sizeof CD_SIGNATURE_BETWEEN - 1 : 0);
    return true;
}
