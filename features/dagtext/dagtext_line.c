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

uint32_t cd_dagtext_above(const cd_dagtext *t, uint32_t below, cd_str name) {
    for (uint32_t k = below; k-- > 0;)
        if (cd_str_eq(t->line[k].name, name)) return k;
    return below;
}

/* A load: of which operator is open where an earlier one has the same name. */
static cdmpp_status add_load(cd_dagtext *t, uint32_t i, cd_str name) {
    const uint32_t last = cd_dagtext_above(t, i, name);
    if (last == i)
        return CD_FAIL(t->err, ESCHEMA, "it reads \"%.*s\", which no line above defines",
                       cd_str_shown(name, 60), name.p);
    if (cd_dagtext_above(t, last, name) == last) return CDMPP_OK;
    if (CD_GROW_IN(t->a, t->site, t->n_site, t->cap_site)) return CD_FAIL(t->err, ENOMEM, "loads");
    t->site[t->n_site++] = (cd_dagtext_site){i, last};
    return CDMPP_OK;
}

/* Loads and reduction axes of a body. */
static cdmpp_status read_names(cd_dagtext *t, uint32_t i, cd_dagtext_line *l) {
    cd_str rest = l->body, w;
    cd_str *raxis = CD_NEWN(t->a, cd_str, CD_TE_MAX_AXIS);
    if (!raxis) return CD_FAIL(t->err, ENOMEM, "axes");
    l->raxis = raxis;
    for (cd_dagtext_token k; (k = cd_dagtext_next(&rest, &w)) != CD_TOKEN_END;) {
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

cdmpp_status cd_dagtext_split(cd_dagtext *t, cd_str text) {
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
