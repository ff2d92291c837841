/* Lines of a printed definition: which lines are some, their hash, and their parts. */
#include <stdio.h>
#include <string.h>

#include "features/dagtext/dagtext_internal.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_first(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_word(char c) { return is_first(c) || is_digit(c) || c == '.'; }

static bool eat(cd_str *s, const char *z) {
    const size_t n = strlen(z);
    if (s->n < n || memcmp(s->p, z, n) != 0) return false;
    s->p += n, s->n -= n;
    return true;
}

static cd_str word(cd_str *s) {
    size_t n = 0;
    if (s->n && is_first(s->p[0]))
        while (n < s->n && is_word(s->p[n])) n++;
    const cd_str w = {s->p, n};
    s->p += n, s->n -= n;
    return w;
}

/* "name(a, b)" of a compute line; *n_axis names. What follows is in *s. */
static bool head(cd_str *s, cd_str *name, cd_str *axis, uint32_t *n_axis) {
    *n_axis = 0;
    *name = word(s);
    if (!name->n || !eat(s, "(")) return false;
    if (eat(s, ")")) return true;
    do {
        const cd_str w = word(s);
        if (!w.n || *n_axis == CD_TE_MAX_AXIS) return false;
        axis[(*n_axis)++] = w;
    } while (eat(s, ", "));
    return eat(s, ")");
}

static bool is_placeholder(cd_str s, cd_str *name, cd_str *rest) {
    *name = word(&s);
    if (!name->n || !eat(&s, " = PLACEHOLDER")) return false;
    *rest = s;
    return true;
}

bool cd_dagtext_is_line(cd_str line) {
    cd_str name, axis[CD_TE_MAX_AXIS], rest = line;
    uint32_t n;
    if (is_placeholder(line, &name, &rest)) return true;
    if (!head(&rest, &name, axis, &n)) return false;
    if (eat(&rest, ".v")) return rest.n && is_digit(rest.p[0]);
    return eat(&rest, " = ") || eat(&rest, " += ") || eat(&rest, " max= ") ||
           eat(&rest, " min= ") || eat(&rest, "reduce");
}

/* ---- hash ---- */

/* A body that is a call, whose arguments are not in the hash. Other bodies begin with a bracket, a
 * load or a number. */
static bool is_call(cd_str body, cd_str *name) {
    if (!eat(&body, "tir.")) return false;
    *name = word(&body);
    return name->n && eat(&body, "(");
}

static void put_short(cd_buf *out, cd_str line) {
    cd_str name, axis[CD_TE_MAX_AXIS], rest = line;
    uint32_t n;
    size_t keep = line.n;
    if (is_placeholder(line, &name, &rest)) {
        cd_buf_put(out, name.p, name.n);
        cd_buf_puts(out, " = PLACEHOLDER \n");
        return;
    }
    const bool call = head(&rest, &name, axis, &n) && eat(&rest, " = ") && is_call(rest, &name);
    if (call) keep = (size_t)(rest.p - line.p);
    cd_buf_put(out, line.p, keep);
    if (call) cd_buf_putf(out, "Op(tir.%.*s)", (int)name.n, name.p);
    cd_buf_puts(out, "\n");
}

static bool next_line(cd_str *text, cd_str *line) {
    if (!text->n) return false;
    const char *end = memchr(text->p, '\n', text->n);
    line->p = text->p;
    line->n = end ? (size_t)(end - text->p) : text->n;
    const size_t used = line->n + (end ? 1 : 0);
    text->p += used, text->n -= used;
    return true;
}

cdmpp_status cd_dagtext_hash(cd_str text, char out[33], cdmpp_err *err) {
    cd_buf b = {0};
    cd_str line;
    while (next_line(&text, &line)) put_short(&b, line);
    const bool oom = b.oom;
    if (!oom) cd_md5_hex(b.p ? b.p : "", b.n, out);
    cd_buf_free(&b);
    return oom ? CD_FAIL(err, ENOMEM, "a printed definition") : CDMPP_OK;
}

/* ---- parts ---- */

static cdmpp_status read_shape(cd_dagtext *t, cd_str s, cd_dagtext_line *l) {
    uint32_t cap = 0;
    int64_t *shape = NULL;
    bool ok = eat(&s, " [");
    if (ok && eat(&s, "]"))
        return s.n ? CD_FAIL(t->err, EUNSUPPORTED, "a shape that is no list of numbers") : CDMPP_OK;
    do {
        int64_t v = 0;
        size_t n = 0;
        for (; n < s.n && is_digit(s.p[n]) && v < INT32_MAX; n++) v = v * 10 + (s.p[n] - '0');
        ok =
            ok && n && v <= INT32_MAX && !(n < s.n && is_digit(s.p[n])) && l->rank < CD_TE_MAX_AXIS;
        if (!ok) return CD_FAIL(t->err, EUNSUPPORTED, "a shape that is no list of numbers");
        s.p += n, s.n -= n;
        if (CD_GROW_IN(t->a, shape, l->rank, cap)) return CD_FAIL(t->err, ENOMEM, "a shape");
        shape[l->rank++] = v;
    } while (eat(&s, ", "));
    l->shape = shape;
    return eat(&s, "]") && !s.n
               ? CDMPP_OK
               : CD_FAIL(t->err, EUNSUPPORTED, "a shape that is no list of numbers");
}

static bool listed(const cd_str *list, uint32_t n, cd_str w) {
    for (uint32_t i = 0; i < n; i++)
        if (cd_str_eq(list[i], w)) return true;
    return false;
}

/* The last line above `below` with this name; below: none. */
static uint32_t dagtext_above(const cd_dagtext *t, uint32_t below, cd_str name) {
    for (uint32_t k = below; k-- > 0;)
        if (cd_str_eq(t->line[k].name, name)) return k;
    return below;
}

/* A load: of which operator is open where an earlier one has the same name. */
static cdmpp_status add_load(cd_dagtext *t, uint32_t i, cd_str name) {
    const uint32_t last = dagtext_above(t, i, name);
    if (last == i)
        return CD_FAIL(t->err, ESCHEMA, "it reads \"%.*s\", which no line above defines",
                       cd_str_shown(name, 60), name.p);
    if (dagtext_above(t, last, name) == last) return CDMPP_OK;
    if (CD_GROW_IN(t->a, t->site, t->n_site, t->cap_site)) return CD_FAIL(t->err, ENOMEM, "loads");
    t->site[t->n_site++] = (cd_dagtext_site){i, last};
    return CDMPP_OK;
}

static cd_dagtext_token dagtext_next(cd_str *rest, cd_str *word);

/* Loads and reduction axes of a body. */
static cdmpp_status read_names(cd_dagtext *t, uint32_t i, cd_dagtext_line *l) {
    cd_str rest = l->body, w;
    cd_str *raxis = CD_NEWN(t->a, cd_str, CD_TE_MAX_AXIS);
    if (!raxis) return CD_FAIL(t->err, ENOMEM, "axes");
    l->raxis = raxis;
    for (cd_dagtext_token k; (k = dagtext_next(&rest, &w)) != CD_TOKEN_END;) {
        if (k == CD_TOKEN_SIGN && w.p[0] == '"')
            return CD_FAIL(t->err, EUNSUPPORTED, "a text in a call");
        if (k == CD_TOKEN_LOAD) CD_TRY(add_load(t, i, w));
        if (k != CD_TOKEN_AXIS || listed(l->axis, l->n_axis, w) || listed(raxis, l->n_raxis, w))
            continue;
        if (!l->reduce || l->n_raxis == CD_TE_MAX_AXIS)
            return CD_FAIL(t->err, EUNSUPPORTED, "\"%.*s\" is none of its axes",
                           cd_str_shown(w, 60), w.p);
        raxis[l->n_raxis++] = w;
    }
    return CDMPP_OK;
}

static cdmpp_status read_compute(cd_dagtext *t, uint32_t i, cd_str line, cd_dagtext_line *l) {
    cd_str axis[CD_TE_MAX_AXIS], rest = line;
    if (!head(&rest, &l->name, axis, &l->n_axis))
        return CD_FAIL(t->err, EUNSUPPORTED, "no name and axes");
    if (eat(&rest, " += ")) l->reduce = CD_ADD;
    else if (eat(&rest, " max= ")) l->reduce = CD_MAX;
    else if (eat(&rest, " min= ")) l->reduce = CD_MIN;
    else if (!eat(&rest, " = "))
        return CD_FAIL(t->err, EUNSUPPORTED,
                       "several outputs, or a reduction that is no sum, maximum or minimum");
    if (!rest.n) return CD_FAIL(t->err, ESCHEMA, "nothing behind the sign");
    for (uint32_t k = 0; k < l->n_axis; k++)
        if (listed(axis, k, axis[k]))
            return CD_FAIL(t->err, EUNSUPPORTED, "two axes with one name");
    cd_str *own = CD_NEWN(t->a, cd_str, l->n_axis + 1u);
    if (!own) return CD_FAIL(t->err, ENOMEM, "axes");
    memcpy(own, axis, l->n_axis * sizeof *own);
    l->axis = own;
    l->body = rest;
    return read_names(t, i, l);
}

/* All lines of a text, and the sites. Errors: ESCHEMA, EUNSUPPORTED, ENOMEM. */
static cdmpp_status dagtext_split(cd_dagtext *t, cd_str text) {
    static const char cut[] = "..(OMITTED)..";
    cd_str line, rest;
    t->line = CD_NEWN(t->a, cd_dagtext_line, CD_DAGTEXT_MAX_OP);
    if (!t->line) return CD_FAIL(t->err, ENOMEM, "lines");
    while (next_line(&text, &line)) {
        cd_dagtext_line *l = &t->line[t->n_line];
        if (t->n_line == CD_DAGTEXT_MAX_OP)
            return CD_FAIL(t->err, EUNSUPPORTED, "more than %d lines", CD_DAGTEXT_MAX_OP);
        if (line.n >= sizeof cut && memmem(line.p, line.n, cut, sizeof cut - 1))
            return CD_FAIL(t->err, ESCHEMA, "TVM cut a line in its middle: %s", cut);
        const cdmpp_status st = is_placeholder(line, &l->name, &rest)
                                    ? read_shape(t, rest, l)
                                    : read_compute(t, t->n_line, line, l);
        char name[64];
        if (st) snprintf(name, sizeof name, "%.*s", cd_str_shown(l->name, 60), l->name.p);
        if (st) return cd_err_key(t->err, st, name);
        t->n_line++;
    }
    return CDMPP_OK;
}

/* TVM's notation of expressions to ours (te.h): 0f to 0:float32, (bool)1 to true, tir.exp(x) to
 * exp(x), names of operators to numbers. */

static size_t word_length(cd_str s) {
    size_t n = 0;
    while (n < s.n && (is_first(s.p[n]) || is_digit(s.p[n]) || s.p[n] == '.')) n++;
    return n;
}

/* Digits, point and exponent of a number. */
static size_t digits(cd_str s) {
    size_t n = 0;
    while (n < s.n && (is_digit(s.p[n]) || s.p[n] == '.')) n++;
    if (n + 1 < s.n && s.p[n] == 'e' &&
        (is_digit(s.p[n + 1]) || s.p[n + 1] == '+' || s.p[n + 1] == '-'))
        for (n += 2; n < s.n && is_digit(s.p[n]);) n++;
    return n;
}

/* "(bool)1", "(int64)-5": its length; 0: something else. */
static size_t typed_integer(cd_str s) {
    cd_str in = {s.p + 1, s.n - 1};
    cd_dtype type;
    size_t n = word_length(in);
    if (!n || n + 1 >= in.n || in.p[n] != ')' || !cd_expr_dtype_parse(in.p, n, &type)) return 0;
    n += 2;
    if (n < s.n && s.p[n] == '-') n++;
    const size_t d = digits((cd_str){s.p + n, s.n - n});
    return d ? n + d : 0;
}

static cd_dagtext_token dagtext_next(cd_str *rest, cd_str *word) {
    while (rest->n && rest->p[0] == ' ') rest->p++, rest->n--;
    if (!rest->n) return CD_TOKEN_END;
    cd_dagtext_token k = CD_TOKEN_SIGN;
    size_t n = 1;
    if (is_digit(rest->p[0])) {
        k = CD_TOKEN_NUMBER;
        n = digits(*rest);
        n += word_length((cd_str){rest->p + n, rest->n - n});
    } else if (is_first(rest->p[0])) {
        n = word_length(*rest);
        k = n == rest->n || !strchr("[(", rest->p[n]) ? CD_TOKEN_AXIS
            : rest->p[n] == '['                       ? CD_TOKEN_LOAD
                                                      : CD_TOKEN_CALL;
    } else if (rest->p[0] == '(' && typed_integer(*rest)) {
        k = CD_TOKEN_NUMBER;
        n = typed_integer(*rest);
    }
    *word = (cd_str){rest->p, n};
    rest->p += n, rest->n -= n;
    return k;
}

static void put_number(cd_buf *out, cd_str w) {
    if (w.p[0] == '(') {
        const size_t n = word_length((cd_str){w.p + 1, w.n - 1}), at = n + 2;
        if (cd_str_is((cd_str){w.p + 1, n}, "bool"))
            cd_buf_puts(out, cd_str_is((cd_str){w.p + at, w.n - at}, "0") ? "false" : "true");
        else cd_buf_putf(out, "%.*s:%.*s", (int)(w.n - at), w.p + at, (int)n, w.p + 1);
        return;
    }
    const size_t n = digits(w);
    /* TVM prints six digits; of the greatest float32, with which maxima begin, these */
    if (cd_str_is(w, "3.40282e+38f")) cd_buf_puts(out, "3.4028234663852886e+38");
    else cd_buf_put(out, w.p, n);
    if (n == w.n) return;
    cd_buf_puts(out, ":");
    if (cd_str_is((cd_str){w.p + n, w.n - n}, "f")) cd_buf_puts(out, "float32");
    else cd_buf_put(out, w.p + n, w.n - n);
}

/* Line i as an expression of our notation (te.h); a read of line k is called t<k>. *site: the next
 * site, counted on. */
static cdmpp_status dagtext_notation(const cd_dagtext *t, uint32_t i, uint32_t *site, cd_buf *out) {
    cd_str rest = t->line[i].body, w;
    for (cd_dagtext_token k; (k = dagtext_next(&rest, &w)) != CD_TOKEN_END;) {
        if (k == CD_TOKEN_NUMBER) {
            put_number(out, w);
        } else if (k == CD_TOKEN_LOAD) {
            uint32_t from = dagtext_above(t, i, w);
            if (dagtext_above(t, from, w) != from) from = t->site[(*site)++].chosen;
            cd_buf_putf(out, "t%u", from);
        } else if (k == CD_TOKEN_CALL && w.n > 4 && !memcmp(w.p, "tir.", 4)) {
            cd_buf_put(out, w.p + 4, w.n - 4);
        } else {
            cd_buf_put(out, w.p, w.n);
        }
    }
    return out->oom ? CD_FAIL(t->err, ENOMEM, "an expression") : CDMPP_OK;
}

/* Lines to a definition whose extents are not known yet. TVM prints in stage order, so the order is
 * a proof of what reads what. */

typedef struct {
    cd_dagtext *t;
    cd_te_dag *dag;
    const cd_dagtext_line *line; /* being built */
    uint32_t site;
    cd_buf text;
} builder;

static const cd_expr *find_iter(const cd_te_iter *it, uint32_t n, cd_str name) {
    for (uint32_t i = 0; i < n; i++)
        if (cd_str_is(name, it[i].name)) return it[i].var;
    return NULL;
}

static const cd_expr *find_axis(const void *ctx, cd_str name) {
    const builder *b = ctx;
    const cd_te_op *op = &b->dag->op[b->dag->n_op];
    const cd_expr *v = find_iter(op->axis, op->n_axis, name);
    return v ? v : find_iter(op->raxis, op->n_raxis, name);
}

/* "t12": the tensor of line 12. */
static bool find_tensor(const void *ctx, cd_str name, uint32_t *number, cd_dtype *type) {
    const builder *b = ctx;
    uint32_t k = 0;
    for (size_t i = 1; i < name.n && k < CD_DAGTEXT_MAX_OP; i++)
        k = k * 10 + (uint32_t)(name.p[i] - '0');
    *number = k;
    if (k >= b->dag->n_op) return false;
    *type = b->dag->op[k].dtype[0];
    return true;
}

static cdmpp_status make_axes(builder *b, const cd_str *name, uint32_t n, const cd_te_iter **out) {
    cd_te_iter *it = CD_NEWN(&b->dag->arena, cd_te_iter, n);
    cd_expr_pool *p = &b->dag->pool;
    if (!it) return CD_FAIL(b->t->err, ENOMEM, "axes");
    for (uint32_t i = 0; i < n; i++) {
        it[i].name = cd_str_dup(&b->dag->arena, name[i]);
        if (!it[i].name) return CD_FAIL(b->t->err, ENOMEM, "axes");
        it[i].var = cd_expr_new_var(p, CD_I32, cd_expr_pool_var_number(p));
        it[i].min = it[i].extent = cd_expr_new_int(p, CD_I32, 0);
    }
    *out = it;
    return CDMPP_OK;
}

static cdmpp_status make_body(builder *b, uint32_t i, cd_te_op *op, cd_dtype *type) {
    const cd_te_scope scope = {find_axis, find_tensor, b};
    const cd_expr **body = CD_NEW(&b->dag->arena, const cd_expr *);
    cd_te_reducer *red = b->line->reduce ? CD_NEW(&b->dag->arena, cd_te_reducer) : NULL;
    if (!body || (b->line->reduce && !red)) return CD_FAIL(b->t->err, ENOMEM, "an expression");
    cd_buf_clear(&b->text);
    CD_TRY(dagtext_notation(b->t, i, &b->site, &b->text));
    const cd_str text = {b->text.p ? b->text.p : "", b->text.n};
    cdmpp_err why = {0};
    const cdmpp_status st = cd_te_parse(&b->dag->pool, b->t->a, text, CD_F32, &scope, body, &why);
    if (b->dag->pool.oom || st == CDMPP_ENOMEM) return CD_FAIL(b->t->err, ENOMEM, "an expression");
    if (st)
        return CD_FAIL(b->t->err, EUNSUPPORTED, "an expression that this reader does not know: %s",
                       why.msg);
    op->body = body;
    *type = body[0]->type;
    op->red = red;
    return red ? cd_te_reducer_usual(b->dag, b->line->reduce, *type, red, b->t->err) : CDMPP_OK;
}

static cdmpp_status make_op(builder *b, uint32_t i) {
    cd_te_op *op = &b->dag->op[i];
    const cd_dagtext_line *l = b->line = &b->t->line[i];
    *op = (cd_te_op){.tag = "",
                     .first_tensor = i,
                     .n_out = 1,
                     .flop_attr = -1,
                     .is_placeholder = !l->body.n,
                     .rank = l->body.n ? l->n_axis : l->rank};
    int64_t *shape = CD_NEWN(&b->dag->arena, int64_t, op->rank);
    cd_dtype *type = CD_NEW(&b->dag->arena, cd_dtype);
    op->name = cd_str_dup(&b->dag->arena, l->name);
    if (!shape || !type || !op->name) return CD_FAIL(b->t->err, ENOMEM, "operators");
    op->shape = shape;
    op->dtype = type;
    *type = CD_F32;
    if (op->is_placeholder) {
        if (op->rank) memcpy(shape, l->shape, op->rank * sizeof *shape);
    } else {
        CD_TRY(make_axes(b, l->axis, l->n_axis, &op->axis));
        op->n_axis = l->n_axis;
        CD_TRY(make_axes(b, l->raxis, l->n_raxis, &op->raxis));
        op->n_raxis = l->n_raxis;
        CD_TRY(make_body(b, i, op, type));
    }
    b->dag->n_op = b->dag->n_tensor = i + 1;
    return CDMPP_OK;
}

/* ---- order ---- */

typedef struct {
    uint32_t *in, n, first; /* operators that are read, each once per operator */
    bool *is_read;
    const cd_te_dag *dag;
    bool misfit; /* a load has more or fewer indices than its tensor has dimensions */
} reads;

static void add_reads(reads *r, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_LOAD)) return;
    for (uint32_t i = 0; i < e->n; i++) add_reads(r, e->a[i]);
    if (e->op != CD_LOAD) return;
    r->is_read[e->u.i] = true;
    r->misfit = r->misfit || e->n != r->dag->op[e->u.i].rank;
    for (uint32_t k = r->first; k < r->n; k++)
        if (r->in[k] == (uint32_t)e->u.i) return;
    r->in[r->n++] = (uint32_t)e->u.i;
}

/* Arguments: all placeholders, then what no operator reads, as in a key of an operator or a
 * network. */
static cdmpp_status check_order(builder *b) {
    cd_te_dag *d = b->dag;
    const uint32_t n = d->n_op;
    uint32_t *ptr = CD_NEWN(b->t->a, uint32_t, n + 1), *order = CD_NEWN(b->t->a, uint32_t, n + 1),
             n_order = 0;
    reads r = {CD_NEWN(b->t->a, uint32_t, (size_t)n * n + 1),
               0,
               0,
               CD_NEWN(b->t->a, bool, n + 1),
               d,
               false};
    d->arg = CD_NEWN(&d->arena, uint32_t, n);
    if (!ptr || !order || !r.in || !r.is_read || !d->arg)
        return CD_FAIL(b->t->err, ENOMEM, "operators");
    for (uint32_t i = 0; i < n; i++) {
        ptr[i] = r.first = r.n;
        if (d->op[i].body) add_reads(&r, d->op[i].body[0]);
    }
    ptr[n] = r.n;
    if (r.misfit)
        return CD_FAIL(b->t->err, ESCHEMA,
                       "a load has more or fewer indices than its tensor has dimensions");
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++)
            if (pass == 0 ? d->op[i].is_placeholder : !d->op[i].is_placeholder && !r.is_read[i])
                d->arg[d->n_arg++] = i;
    const cd_te_reads all = {n, d->n_arg, ptr, r.in, d->arg};
    CD_TRY(cd_te_stage_order(b->t->a, &all, order, &n_order, b->t->err));
    bool same = n_order == n;
    for (uint32_t i = 0; same && i < n; i++) same = order[i] == i;
    return same ? CDMPP_OK : CD_FAIL(b->t->err, ESCHEMA, "its lines are not in TVM's order");
}

/* Placeholders that TVM's operators of these names read second are weights, whose layout a tuner
 * may change (attrs["layout_free_placeholders"], which is not printed). */
static bool marks_weights(const char *name) {
    static const char *const whole[] = {"conv2d_nhwc", "bgemm"};
    static const char *const begin[] = {"T_matmul_", "T_batch_matmul_"};
    for (size_t k = 0; k < 2; k++)
        if (!strcmp(name, whole[k]) || !strncmp(name, begin[k], strlen(begin[k]))) return true;
    return false;
}

static void mark_weights(cd_te_dag *d) {
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_expr *e = d->op[i].body ? d->op[i].body[0] : NULL;
        if (!e || !d->op[i].red || !marks_weights(d->op[i].name) || e->op != CD_MUL ||
            e->a[1]->op != CD_LOAD)
            continue;
        cd_te_op *w = &d->op[e->a[1]->u.i];
        w->layout_free = w->is_placeholder;
    }
}

static cdmpp_status build(builder *b) {
    for (uint32_t i = 0; i < b->t->n_line; i++) {
        const cdmpp_status st = make_op(b, i);
        if (st)
            return cd_err_key(b->t->err, st, b->dag->op[i].name ? b->dag->op[i].name : "operator");
    }
    mark_weights(b->dag);
    return check_order(b);
}

/* The definition by the chosen sites, its extents unknown: 0. Errors: ESCHEMA (not in this order),
 * EUNSUPPORTED, ENOMEM. */
static cdmpp_status dagtext_build(cd_dagtext *t, cd_te_dag **out) {
    builder b = {.t = t};
    CD_TRY(cd_te_dag_new(&b.dag, t->err));
    b.dag->op = CD_NEWN(&b.dag->arena, cd_te_op, t->n_line);
    cdmpp_status st = CDMPP_OK;
    if (b.dag->op) st = build(&b);
    else st = CD_FAIL(t->err, ENOMEM, "operators");
    cd_buf_free(&b.text);
    if (b.dag->pool.oom && !st) st = CD_FAIL(t->err, ENOMEM, "operators");
    if (st) cd_te_dag_free(b.dag);
    else *out = b.dag;
    return st;
}

/* A workload key and its text to a definition: every way to resolve names that occur twice is
 * tried, and only one may be left. */

#define MAX_WAYS 1024

/* ["hash", [1, 64], [64]] or ["hash", 1, 64, 64]. */
static cdmpp_status read_extents(cd_dagtext *t, const cd_json *v, int64_t *dim, uint32_t *rank) {
    const cd_json *it;
    if (v->kind == CD_JSON_INT) return cd_json_int(v, 0, INT32_MAX, &dim[t->n_dim++], t->err);
    CD_TRY(cd_json_arr(v, 0, &it, t->err));
    rank[t->n_shape++] = v->n;
    for (; it; it = it->next) CD_TRY(cd_json_int(it, 0, INT32_MAX, &dim[t->n_dim++], t->err));
    return CDMPP_OK;
}

static cdmpp_status read_key(cd_dagtext *t, cd_str key, cd_str *hash) {
    const cd_json *top = NULL, *it;
    CD_TRY(cd_json_parse(t->a, key.p, key.n, &top, t->err));
    CD_TRY(cd_json_arr(top, 1, &it, t->err));
    CD_TRY(cd_json_str(it, hash, t->err));
    int64_t *dim = CD_NEWN(t->a, int64_t, key.n);
    uint32_t *rank = CD_NEWN(t->a, uint32_t, top->n), flat = 0;
    if (!dim || !rank) return CD_FAIL(t->err, ENOMEM, "a workload key");
    t->dim = dim, t->rank = rank;
    while ((it = it->next)) {
        flat += it->kind == CD_JSON_INT;
        CD_TRY(read_extents(t, it, dim, rank));
    }
    return flat && t->n_shape
               ? CD_FAIL(t->err, ESCHEMA, "shapes and dimensions in one workload key")
               : CDMPP_OK;
}

/* The next choice of what loads read; false: all were tried. */
static bool next_way(cd_dagtext *t) {
    for (uint32_t k = 0; k < t->n_site; k++) {
        cd_dagtext_site *s = &t->site[k];
        const cd_str name = t->line[s->chosen].name;
        const uint32_t up = dagtext_above(t, s->chosen, name);
        if (up != s->chosen) {
            s->chosen = up;
            return true;
        }
        s->chosen = dagtext_above(t, s->line, name);
    }
    return false;
}

/* Constant matrices of Winograd carry attributes that the text does not print. */
static cdmpp_status check_constants(const cd_dagtext *t, const cd_te_dag *dag) {
    for (uint32_t i = 0; i < dag->n_op; i++) {
        const cd_te_op *op = &dag->op[i];
        const cd_expr *e = op->is_placeholder ? NULL : op->body[0];
        if (e && e->op == CD_SELECT && !(e->flags & CD_EXPR_HAS_LOAD) && e->flags & CD_EXPR_HAS_VAR)
            return CD_FAIL(
                t->err, EUNSUPPORTED,
                "%s is a matrix of constants: the attributes of its readers are not printed",
                op->name);
    }
    return CDMPP_OK;
}

/* One way: a definition, or why it is none. */
static cdmpp_status try_way(cd_dagtext *t, cd_te_dag **out) {
    CD_TRY(dagtext_build(t, out));
    cdmpp_status st = check_constants(t, *out);
    if (!st) st = cd_dagtext_adapt(t, *out);
    if (!st) st = cd_dagtext_solve(t, *out);
    if (!st) st = cd_dagtext_types(t, *out);
    if ((*out)->pool.oom) st = CD_FAIL(t->err, ENOMEM, "expressions");
    if (!st) return CDMPP_OK;
    cd_te_dag_free(*out);
    *out = NULL;
    return st;
}

static cdmpp_status tell_way(const cd_dagtext *t, const uint32_t *first) {
    uint32_t k = 0;
    while (k + 1 < t->n_site && first[k] == t->site[k].chosen) k++;
    const cd_dagtext_line *reader = &t->line[t->site[k].line], *l = &t->line[first[k]];
    return CD_FAIL(
        t->err, ENOTASK, "which %.*s is read by %.*s is open: several lines have this name",
        cd_str_shown(l->name, 60), l->name.p, cd_str_shown(reader->name, 60), reader->name.p);
}

/* A way that is impossible (ESCHEMA) does not count; one that is open does. */
static cdmpp_status try_all(cd_dagtext *t, cd_te_dag **out) {
    uint32_t *first = CD_NEWN(t->a, uint32_t, t->n_site + 1u), ways = 0, possible = 0, rests = 0;
    cdmpp_status st, best = CDMPP_OK;
    cdmpp_err why = {0};
    if (!first) return CD_FAIL(t->err, ENOMEM, "loads");
    do {
        cd_te_dag *dag = NULL;
        if (++ways > MAX_WAYS)
            st = CD_FAIL(t->err, EUNSUPPORTED, "too many loads of names that several lines have");
        else st = try_way(t, &dag);
        if (st == CDMPP_OK || st == CDMPP_ENOTASK) possible++;
        if (possible == 1 && (st == CDMPP_OK || st == CDMPP_ENOTASK)) {
            for (uint32_t k = 0; k < t->n_site; k++) first[k] = t->site[k].chosen;
            best = st, *out = dag, dag = NULL, rests = t->rests;
            if (st && t->err) why = *t->err;
        }
        cd_te_dag_free(dag);
        if (possible > 1) st = tell_way(t, first);
        t->rests = 0;
    } while (possible < 2 && st != CDMPP_ENOMEM && st != CDMPP_EUNSUPPORTED && next_way(t));
    t->rests = rests;
    if (possible == 1 && st != CDMPP_ENOMEM && st != CDMPP_EUNSUPPORTED) {
        if (best) cd_err_from(t->err, &why);
        return best;
    }
    cd_te_dag_free(*out);
    *out = NULL;
    return st;
}

/* The definition prints to the text that it came from. */
static cdmpp_status check_text(const cd_dagtext *t, const cd_te_dag *dag, cd_str text) {
    cd_buf b = {0};
    cd_te_dag_print_whole(&b, dag);
    const bool oom = b.oom, same = !oom && cd_str_eq((cd_str){b.p, b.n}, text);
    cd_buf_free(&b);
    if (oom) return CD_FAIL(t->err, ENOMEM, "a printed definition");
    return same ? CDMPP_OK
                : CD_FAIL(t->err, EUNSUPPORTED,
                          "what was read from it does not print to the same text");
}

static cdmpp_status read(cd_dagtext *t, cd_str key, cd_str text, cd_te_dag **out) {
    cd_str hash = {"", 0};
    char own[33];
    CD_TRY(read_key(t, key, &hash));
    CD_TRY(cd_dagtext_hash(text, own, t->err));
    if (!cd_str_is(hash, own) && memmem(text.p, text.n, "..(OMITTED)..", 13))
        return CD_FAIL(t->err, ESCHEMA, "TVM cut a line of the text in its middle: ..(OMITTED)..");
    if (!cd_str_is(hash, own))
        return CD_FAIL(t->err, ESCHEMA, "the text is not that of the key: its MD5 is %s", own);
    CD_TRY(dagtext_split(t, text));
    CD_TRY(try_all(t, out));
    cdmpp_status st = cd_te_dag_finish(*out, t->err);
    if (!st) st = check_text(t, *out, text);
    if (!st) return CDMPP_OK;
    cd_te_dag_free(*out);
    *out = NULL;
    return st;
}

cdmpp_status cd_dagtext_read(cd_str key, cd_str text, unsigned allowed, cd_te_dag **out,
                             unsigned *rests, cdmpp_err *err) {
    cd_arena a = {0};
    cdmpp_err own = {0};
    cd_dagtext t = {.a = &a, .err = err ? err : &own, .allowed = allowed};
    *out = NULL;
    const cdmpp_status st = read(&t, key, text, out);
    *rests = t.rests;
    cd_arena_free(&a);
    return st;
}
