/* Requests for steps of a language model, and their answers. */
#include "predictor/serve/step_requests.h"

#include <math.h>
#include <stdlib.h>

#include "predictor/serve/serve_internal.h"

typedef struct {
    const cd_step_requests *o;
    cd_serving_rows rows;
} state;

/* ---- a step ---- */
static cdmpp_status tokens(const cd_json *v, double least, double *out, cdmpp_err *err) {
    CD_TRY(cd_json_real(v, out, err));
    if (*out >= least && *out <= 1e9 && !(*out > floor(*out))) return CDMPP_OK;
    return CD_FAIL(err, ERANGE, "expected a whole number of tokens in %g..1e9, found %g", least,
                   *out);
}

static cdmpp_status pair(const cd_json *v, cd_serving_prompt *out, cdmpp_err *err) {
    if (v->kind != CD_JSON_ARR || v->n != 2)
        return CD_FAIL(err, ESCHEMA, "expected [new tokens, tokens computed before]");
    out->count = 1;
    CD_TRY(tokens(v->u.child, 1, &out->n, err));
    return tokens(v->u.child->next, 0, &out->past, err);
}

/* n 0: it is not there. */
static cdmpp_status list(const cd_json *root, const char *key, const cd_json **first, size_t *n,
                         cdmpp_err *err) {
    const cd_json *v = cd_json_get(root, key);
    *first = NULL, *n = 0;
    if (!v || v->kind == CD_JSON_NULL) return CDMPP_OK;
    if (v->kind != CD_JSON_ARR)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected a list, found %s", cd_json_kind_name(v->kind)),
            key);
    if (v->n > CD_STEP_REQUESTS_MOST)
        return cd_err_key(
            err, CD_FAIL(err, ERANGE, "expected at most %d, found %u", CD_STEP_REQUESTS_MOST, v->n),
            key);
    *first = v->u.child, *n = v->n;
    return CDMPP_OK;
}

static int by_length(const void *a, const void *b) {
    const cd_serving_prompt *x = a, *y = b;
    if (x->n < y->n || x->n > y->n) return x->n < y->n ? -1 : 1;
    return (x->past > y->past) - (x->past < y->past);
}

/* Those alike become one. */
static size_t merge(cd_serving_prompt *p, size_t n) {
    size_t to = 0;
    if (n) qsort(p, n, sizeof *p, by_length);
    for (size_t i = 0; i < n; i++) {
        if (to && !by_length(&p[to - 1], &p[i])) p[to - 1].count++;
        else p[to++] = p[i];
    }
    return to;
}

static cdmpp_status read_step(cd_arena *text, const cd_json *root, cd_serving_batch *out,
                              cdmpp_err *err) {
    const cd_json *v;
    size_t n, i = 0;
    double sum = 0;
    for (const cd_json *m = root->u.child; m; m = m->next)
        if (!cd_str_is(m->key, "id") && !cd_str_is(m->key, "prefill") &&
            !cd_str_is(m->key, "decode") && !cd_str_is(m->key, "others") &&
            !(cd_str_is(m->key, "cmd") && m->kind == CD_JSON_NULL))
            return CD_FAIL(err, ESCHEMA,
                           "unknown member '%.*s', expected prefill, decode or others",
                           cd_str_shown(m->key, 40), m->key.p);
    CD_TRY(list(root, "prefill", &v, &n, err));
    cd_serving_prompt *p = CD_NEWN(text, cd_serving_prompt, n + 1);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu prompts", n);
    for (; v; v = v->next, i++)
        CD_TRY(cd_err_key(err, cd_err_index(err, pair(v, &p[i], err), i), "prefill"));
    *out = (cd_serving_batch){.prompt = p, .n = merge(p, n), .rows = (double)n};
    CD_TRY(list(root, "decode", &v, &n, err));
    for (i = 0; v; v = v->next, i++) {
        double past;
        CD_TRY(cd_err_key(err, cd_err_index(err, tokens(v, 1, &past, err), i), "decode"));
        sum += past;
    }
    out->decodes = (double)n, out->rows += (double)n;
    if (n) out->context = sum / (double)n;
    v = cd_json_get(root, "others");
    if (v && v->kind != CD_JSON_NULL)
        CD_TRY(cd_err_key(err, tokens(v, 0, &out->others, err), "others"));
    return CDMPP_OK;
}

/* ---- an answer ---- */
/* What `put` writes as an object becomes further members. */
static void members(cd_buf *out, const state *s, void (*put)(cd_json_writer *, const state *)) {
    cd_json_writer w = {.out = out};
    const size_t at = out->n;
    cd_json_write_open(&w, '{');
    put(&w, s);
    cd_json_write_close(&w, '}');
    if (out->oom) return;
    out->p[at] = ',';
    out->p[--out->n] = 0;
}

static void put_rows(cd_json_writer *w, const state *s) { cd_serving_rows_json(w, &s->rows); }

static void put_hello(cd_json_writer *w, const state *s) {
    const cd_step_requests *o = s->o;
    cd_json_write_member_str(w, "cdmpp", cdmpp_version()),
        cd_json_write_member_int(w, "protocol", CD_PROTOCOL),
        cd_json_write_member_str(w, "units", "s");
    cd_json_write_member_str(w, "model_type", o->m->name),
        cd_json_write_member_real(w, "layers", o->m->layers);
    cd_json_write_member_str(w, "gpu", o->gpu), cd_serving_about_json(w, &o->about),
        cd_json_write_member_str(w, "stack", o->stack);
    if (o->kernels && o->kernels[0]) cd_json_write_member_str(w, "kernels", o->kernels);
    cd_serving_layout_json(w, o->l);
    cd_json_write_key(w, "notes"), cd_json_write_open(w, '[');
    for (size_t i = 0; i < o->m->n_note; i++) cd_json_write_str(w, o->m->note[i]);
    cd_json_write_close(w, ']');
}

static cdmpp_status answer(void *ctx, cd_arena *text, const cd_json *root, cd_buf *out,
                           cdmpp_err *why) {
    state *s = ctx;
    const cd_json *cmd = cd_line_server_member(root, "cmd");
    cd_serving_batch b;
    cd_str word;
    if (cmd) {
        CD_TRY(cd_line_server_alone(root, "cmd", why));
        CD_TRY(cd_err_key(why, cd_json_str(cmd, &word, why), "cmd"));
        if (!cd_str_is(word, "hello"))
            return cd_err_key(why,
                              CD_FAIL(why, ESCHEMA, "expected hello, found \"%.*s\"",
                                      cd_str_shown(word, 24), word.p),
                              "cmd");
        members(out, s, put_hello);
        return CDMPP_OK;
    }
    CD_TRY(read_step(text, root, &b, why));
    if (b.others > 0 && !(s->o->m->experts > 0))
        return cd_err_key(
            why,
            CD_FAIL(why, ERANGE,
                    "the model has no experts, which alone see tokens of other copies"),
            "others");
    CD_TRY(cd_serving_batch_rows(s->o->e, &b, s->o->shared, &s->rows, why));
    members(out, s, put_rows);
    return CDMPP_OK;
}

cdmpp_status cd_step_requests_run(const cd_step_requests *o, size_t *asked, size_t *bad,
                                  cdmpp_err *err) {
    state s = {.o = o};
    cd_line_server_stats n = {0};
    const cd_line_server l = {.in = o->in,
                              .out = o->out,
                              .max_bytes = o->max_bytes,
                              .stop = o->stop,
                              .answer = answer,
                              .ctx = &s};
    const cdmpp_status st = cd_line_server_run(&l, &n, err);
    *asked = n.asked, *bad = n.bad;
    cd_serving_rows_free(&s.rows);
    return st;
}
