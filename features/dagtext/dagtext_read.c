/* A workload key and its text to a definition: every way to resolve names that occur twice is
 * tried, and only one may be left. */
#include <string.h>

#include "features/dagtext/dagtext_internal.h"

#define MAX_WAYS 1024

/* ["hash", [1, 64], [64]] or ["hash", 1, 64, 64]. */
static cdmpp_status read_shape(cd_dagtext *t, const cd_json *v, int64_t *dim, uint32_t *rank) {
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
        CD_TRY(read_shape(t, it, dim, rank));
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
        const uint32_t up = cd_dagtext_above(t, s->chosen, name);
        if (up != s->chosen) {
            s->chosen = up;
            return true;
        }
        s->chosen = cd_dagtext_above(t, s->line, name);
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
    CD_TRY(cd_dagtext_build(t, out));
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
    CD_TRY(cd_dagtext_split(t, text));
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
