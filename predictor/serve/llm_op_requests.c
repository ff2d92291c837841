/* Requests for operators of language models, and their answers. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/serve/serve_internal.h"

static const double LEVEL = 0.9;
enum { MEMBERS = 64 };

typedef struct {
    const cd_llm_op_oracle *of;
    const cd_llm_op_requests_options *o;
    cd_llm_op_requests_stats *stats;
    cd_line_server_stats lines;
    cd_arena *text; /* of a line */
    cd_buf *out;
    cd_llm_op_told told[CD_LLM_OP_TOLD]; /* of a list, so many at once */
    cdmpp_err why[CD_LLM_OP_TOLD];
} state;

/* ---- an operator ---- */
static cdmpp_status member(state *s, const cd_json *v, cd_op_named *out, cdmpp_err *err) {
    *out = (cd_op_named){cd_str_dup(s->text, v->key), NULL, NAN};
    if (!out->name) return CD_FAIL(err, ENOMEM, "request");
    if (v->kind == CD_JSON_INT) out->number = (double)v->u.i;
    else if (v->kind == CD_JSON_REAL) out->number = v->u.f;
    else if (v->kind == CD_JSON_STR && !(out->text = cd_str_dup(s->text, v->u.s)))
        return CD_FAIL(err, ENOMEM, "request");
    else if (v->kind == CD_JSON_BOOL || v->kind == CD_JSON_ARR || v->kind == CD_JSON_OBJ)
        return cd_err_key(err,
                          CD_FAIL(err, ESCHEMA, "expected a number or a text, found %s",
                                  cd_json_kind_name(v->kind)),
                          out->name);
    return CDMPP_OK;
}

/* The question. null is as if the member were not there. */
static cdmpp_status read_one(state *s, const cd_json *operator, cd_llm_op_told * out,
                             cdmpp_err *err) {
    cd_op_named v[MEMBERS];
    size_t n = 0;
    if (operator->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA, "expected an object, found %s",
                       cd_json_kind_name(operator->kind));
    for (const cd_json *m = operator->u.child; m; m = m->next) {
        if (cd_str_is(m->key, "id") ||
            (m->kind == CD_JSON_NULL &&
             (cd_str_is(m->key, "cmd") || cd_str_is(m->key, "operators"))))
            continue;
        if (n == MEMBERS) return CD_FAIL(err, ERANGE, "more than %d members", MEMBERS);
        CD_TRY(member(s, m, &v[n++], err));
    }
    return cd_llm_op_oracle_read(s->of, v, n, out, err);
}

/* n of a list from *at on; *at: the next one. */
static cdmpp_status ask(state *s, const cd_json **at, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++, *at = (*at)->next) {
        s->why[i] = (cdmpp_err){0};
        if (read_one(s, *at, &s->told[i], &s->why[i]) != CDMPP_ENOMEM) continue;
        cd_err_from(err, &s->why[i]);
        return CDMPP_ENOMEM;
    }
    return cd_llm_op_ask_told(s->of->asker, s->told, s->why, n, LEVEL, err);
}

/* The answer, or the error, as further members. */
static void put_one(state *s, size_t i) {
    if (s->why[i].code) cd_error_line_put(s->out, &s->why[i]);
    else cd_llm_op_answer_put(s->out, &s->of->t.names, &s->told[i], LEVEL);
    *(s->why[i].code ? &s->stats->bad : &s->stats->answered) += 1;
}

static cdmpp_status put(state *s, const cd_json *operator, cdmpp_err * err) {
    CD_TRY(ask(s, &operator, 1, err));
    put_one(s, 0);
    return CDMPP_OK;
}

static cdmpp_status put_list(state *s, const cd_json *list, cdmpp_err *err) {
    const cd_json *v = list->u.child;
    cd_buf_puts(s->out, ",\"operators\":[");
    for (size_t done = 0, n; done < list->n; done += n) {
        n = list->n - done < CD_LLM_OP_TOLD ? list->n - done : CD_LLM_OP_TOLD;
        CD_TRY(ask(s, &v, n, err));
        for (size_t i = 0; i < n; i++) {
            const size_t at = s->out->n + (done + i > 0);
            if (done + i) cd_buf_puts(s->out, ",");
            put_one(s, i);
            if (!s->out->oom) s->out->p[at] = '{'; /* members begin with a comma */
            cd_buf_puts(s->out, "}");
        }
    }
    cd_buf_puts(s->out, "]");
    return CDMPP_OK;
}

/* ---- about this side ---- */
static void put_names(cd_buf *b, const char *name, const cd_dict *d) {
    cd_buf_putf(b, ",\"%s\":[", name);
    for (size_t i = 0, n = 0; i < d->n; i++) {
        if (n++) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, d->text[i], strlen(d->text[i]));
    }
    cd_buf_puts(b, "]");
}

static void put_kinds(cd_buf *b) {
    cd_buf_puts(b, ",\"operators\":{");
    for (int k = 0; k < CD_LLM_OP_N_KIND; k++) {
        cd_buf_putf(b, "%s\"%s\":[", k ? "," : "", cd_llm_op_kind_name((cd_llm_op_kind)k));
        for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)k); i++)
            cd_buf_putf(b, "%s\"%s\"", i ? "," : "",
                        cd_llm_op_param_name(cd_llm_op_size_param((cd_llm_op_kind)k, i)));
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "},\"dtypes\":[");
    for (int t = 0; t < CD_LLM_OP_N_TYPE; t++)
        cd_buf_putf(b, "%s\"%s\"", t ? "," : "", cd_llm_op_type_name((cd_llm_op_type)t));
    cd_buf_puts(b, "]");
}

static void put_hello(state *s) {
    cd_buf *b = s->out;
    cd_buf_putf(
        b, ",\"cdmpp\":\"%s\",\"protocol\":%d,\"model\":\"sha256:%s\",\"units\":\"s\",\"level\":%g",
        cdmpp_version(), CD_PROTOCOL, s->of->digest, LEVEL);
    put_kinds(b);
    put_names(b, "stacks", &s->of->m->stacks);
    cd_buf_puts(b, ",\"devices\":[");
    for (size_t i = 0; i < s->of->m->n_device; i++) {
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, s->of->m->device[i].name, strlen(s->of->m->device[i].name));
    }
    cd_buf_putf(b, "],\"measured_rows\":%zu,\"max_line_bytes\":%zu", s->of->t.n,
                s->o->max_bytes ? s->o->max_bytes : CD_REQUEST_LINE_MAX);
}

static cdmpp_status command(state *s, cd_str cmd, cdmpp_err *err) {
    if (cd_str_is(cmd, "hello")) put_hello(s);
    else if (cd_str_is(cmd, "stats"))
        cd_buf_putf(s->out, ",\"requests\":%zu,\"answered\":%zu,\"bad\":%zu", s->lines.asked - 1,
                    s->stats->answered, s->stats->bad + s->lines.bad);
    else
        return cd_err_key(err,
                          CD_FAIL(err, ESCHEMA, "expected hello or stats, found \"%.*s\"",
                                  cd_str_shown(cmd, 24), cmd.p),
                          "cmd");
    return CDMPP_OK;
}

/* ---- a line ---- */
/* What it asks. */
static cdmpp_status answer(void *ctx, cd_arena *text, const cd_json *root, cd_buf *out,
                           cdmpp_err *why) {
    state *s = ctx;
    const cd_json *list = cd_line_server_member(root, "operators"),
                  *cmd = cd_line_server_member(root, "cmd");
    cd_str word;
    s->text = text, s->out = out;
    if (!list && !cmd) return put(s, root, why);
    CD_TRY(cd_line_server_alone(root, list ? "operators" : "cmd", why));
    if (cmd) {
        CD_TRY(cd_err_key(why, cd_json_str(cmd, &word, why), "cmd"));
        return command(s, word, why);
    }
    if (list->kind != CD_JSON_ARR)
        return cd_err_key(
            why, CD_FAIL(why, ESCHEMA, "expected a list, found %s", cd_json_kind_name(list->kind)),
            "operators");
    if (list->n > CD_LLM_OP_REQUESTS_MOST)
        return cd_err_key(
            why,
            CD_FAIL(why, ERANGE, "expected at most %d, found %u", CD_LLM_OP_REQUESTS_MOST, list->n),
            "operators");
    return put_list(s, list, why);
}

cdmpp_status cd_llm_op_requests(const cd_llm_op_oracle *oracle, const cd_llm_op_requests_options *o,
                                cd_llm_op_requests_stats *stats, cdmpp_err *err) {
    state s = {.of = oracle, .o = o, .stats = stats};
    const cd_line_server l = {.in = o->in,
                              .out = o->out,
                              .max_bytes = o->max_bytes,
                              .stop = o->stop,
                              .answer = answer,
                              .ctx = &s};
    *stats = (cd_llm_op_requests_stats){0};
    const cdmpp_status st = cd_line_server_run(&l, &s.lines, err);
    stats->asked = s.lines.asked, stats->bad += s.lines.bad;
    return st;
}
