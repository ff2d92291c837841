/* Configurations, and what was measured of them, from a CSV table. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "predictor/serving/serving.h"

typedef enum { WHOLE, NUMBER, TEXT, TYPE, PROMPTS } form;
#define AT(member) offsetof(cd_serving_config, member)
static const struct {
    const char *name;
    form form;
    size_t at;
    double lo, hi;
} column[] = {{"id", TEXT, AT(id), 0, 0},
              {"gpu", TEXT, AT(gpu), 0, 0},
              {"stack", TEXT, AT(stack), 0, 0},
              {"kernels", TEXT, AT(kernels), 0, 0},
              {"tp", WHOLE, AT(worker.tp), 1, 1024},
              {"pp", WHOLE, AT(worker.pp), 1, 1024},
              {"dp", WHOLE, AT(worker.dp), 1, 1024},
              {"ep", WHOLE, AT(worker.ep), 1, 1024},
              {"engines", WHOLE, AT(worker.count), 1, 1e6},
              {"workers", WHOLE, AT(worker.count), 1, 1e6},
              /* as --json has it */ {"max_sequences", WHOLE, AT(worker.batch), 1, 1e6},
              {"decode_tp", WHOLE, AT(decode.tp), 1, 1024},
              {"decode_pp", WHOLE, AT(decode.pp), 1, 1024},
              {"decode_dp", WHOLE, AT(decode.dp), 1, 1024},
              {"decode_ep", WHOLE, AT(decode.ep), 1, 1024},
              {"decode_workers", WHOLE, AT(decode.count), 0, 1e6},
              {"decode_max_sequences", WHOLE, AT(decode.batch), 1, 1e6},
              {"isl", WHOLE, AT(isl), 1, 1e7},
              {"osl", WHOLE, AT(osl), 1, 1e7},
              {"spread", NUMBER, AT(spread), 0, 1},
              {"concurrency", WHOLE, AT(concurrency), 1, 1e5},
              {"rate", NUMBER, AT(rate), 1e-6, 1e6},
              {"requests", WHOLE, AT(requests), 1, 1e6},
              {"dtype", TYPE, AT(linear), 0, 0},
              {"experts_dtype", TYPE, AT(expert), 0, 0},
              {"kv_dtype", TYPE, AT(kv), 0, 0},
              {"prompts", PROMPTS, AT(prompts), 0, 0},
              {"max_tokens", WHOLE, AT(tokens), 1, 1e9},
              {"graph_tokens", WHOLE, AT(graph_tokens), 1, 1e9},
              {"node_gpus", WHOLE, AT(node), 1, 1024},
              {"node_gbs", NUMBER, AT(node_gb_s), 1e-3, 1e5},
              {"memory_share", NUMBER, AT(memory_share), 0.01, 1},
              {"ttft_s", NUMBER, AT(ttft_s), 0, 1e9},
              {"tpot_s", NUMBER, AT(tpot_s), 0, 1e9}};
enum { N_COLUMN = sizeof column / sizeof *column };

int cd_serving_type(const char *name) {
    for (int k = 0; k < CD_LLM_OP_N_TYPE; k++)
        if (!strcasecmp(name, cd_llm_op_type_name((cd_llm_op_type)k))) return k;
    return -1;
}

static bool same_name(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if ((*a == '-' ? '_' : *a) != *b) return false;
    return !*a && !*b;
}

static size_t find(const char *name) {
    size_t k = 0;
    while (k < N_COLUMN && !same_name(name, column[k].name)) k++;
    return k;
}

static cdmpp_status cell(cd_csv_table *t, size_t row, size_t col, size_t k, cd_serving_config *c,
                         cdmpp_err *err) {
    const char *text = t->cell[row][col];
    char *to = (char *)c + column[k].at;
    double v;
    int w = 0;
    if (!text[0]) return CDMPP_OK;
    switch (column[k].form) {
    case TEXT:
        if (column[k].at == AT(stack)) CD_TRY(cd_serving_stack_name(&t->arena, text, &text, err));
        memcpy(to, &text, sizeof text);
        return CDMPP_OK;
    case WHOLE:
    case NUMBER:
        if (cd_csv_table_number(t, row, col, &v, NULL))
            return CD_FAIL(err, EPARSE, "expected a number, found '%.60s'", text);
        if (!(v >= column[k].lo && v <= column[k].hi))
            return CD_FAIL(err, ERANGE, "expected %g to %g, found %g", column[k].lo, column[k].hi,
                           v);
        if (column[k].form == WHOLE && floor(v) < v)
            return CD_FAIL(err, ERANGE, "expected a whole number, found %g", v);
        memcpy(to, &v, sizeof v);
        return CDMPP_OK;
    case TYPE: w = cd_serving_type(text); break;
    case PROMPTS: w = cd_enum_names_find(CD_SERVING_PROMPTS, (cd_str){text, strlen(text)}); break;
    }
    if (column[k].at == AT(kv) && w >= 0 && !cd_serving_kv_type(w))
        return CD_FAIL(err, ESCHEMA, "expected " CD_SERVING_KV_TYPES ", found '%.40s'", text);
    if (w < 0)
        return CD_FAIL(err, ESCHEMA,
                       column[k].form == TYPE ? "expected a number type, found '%.40s'"
                                              : "expected " CD_SERVING_PROMPTS ", found '%.40s'",
                       text);
    memcpy(to, &w, sizeof w);
    return CDMPP_OK;
}

/* The load that a row names is in place of the usual one. */
static cdmpp_status load_of(cd_serving_config *c, const cd_serving_config *usual, cdmpp_err *err) {
    if (c->rate > 0 && c->concurrency > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "rate and concurrency are two loads"), "rate");
    if (!(c->rate > 0) && !(c->concurrency > 0))
        c->rate = usual->rate, c->concurrency = usual->concurrency;
    return CDMPP_OK;
}

/* All names that no column has, in one message. */
static cdmpp_status unknown(const cd_csv_table *t, cdmpp_err *err) {
    size_t n = 0;
    const char *first = NULL;
    cd_buf b = {0};
    for (size_t k = 0; k < t->n_col; k++) {
        if (find(t->name[k]) < N_COLUMN) continue;
        if (first) cd_buf_putf(&b, "%s%.40s", n > 1 ? ", " : "; so are ", t->name[k]);
        else first = t->name[k];
        n++;
    }
    if (n)
        (void)cd_err_key(err, CD_FAIL(err, ESCHEMA, "unknown column%.180s", b.p ? b.p : ""), first);
    cd_buf_free(&b);
    return n ? CDMPP_ESCHEMA : CDMPP_OK;
}

static cdmpp_status columns(const cd_csv_table *t, const char *path, cdmpp_err *err) {
    CD_TRY(cd_err_at(err, unknown(t, err), path, 1));
    for (size_t k = 0; k < t->n_col; k++)
        for (size_t i = 0; i < k; i++)
            if (column[find(t->name[k])].at == column[find(t->name[i])].at)
                return cd_err_at(err,
                                 cd_err_key(err,
                                            CD_FAIL(err, ESCHEMA,
                                                    "the column '%.40s' says the same", t->name[i]),
                                            t->name[k]),
                                 path, 1);
    return CDMPP_OK;
}

static cdmpp_status row(cd_csv_table *t, size_t i, const cd_serving_config *usual,
                        cd_serving_config *c, cdmpp_err *err) {
    *c = *usual;
    c->rate = c->concurrency = 0;
    for (size_t k = 0; k < t->n_col; k++)
        CD_TRY(cd_err_key(err, cell(t, i, k, find(t->name[k]), c, err), t->name[k]));
    for (size_t k = 0; k < t->n_col && !(c->decode.count > 0); k++)
        if (!strncmp(t->name[k], "decode", 6) && t->cell[i][k][0] &&
            column[find(t->name[k])].at != AT(decode.count))
            return cd_err_key(
                err,
                CD_FAIL(err, ERANGE,
                        "expected decode_workers, too: without them no engine decodes alone"),
                t->name[k]);
    return load_of(c, usual, err);
}

static cdmpp_status rows(const char *path, const cd_serving_config *usual, cd_serving_bad *bad,
                         cd_serving_runs *out, cdmpp_err *err) {
    CD_TRY(cd_csv_table_read_good(&out->t, path, bad ? cd_serving_bad_add : NULL, bad, &out->n_bad,
                                  err));
    out->v = CD_NEWN(&out->t.arena, cd_serving_config, out->t.n_row + 1);
    out->line = CD_NEWN(&out->t.arena, long, out->t.n_row + 1);
    if (!out->v || !out->line) return CD_FAIL(err, ENOMEM, "%zu runs", out->t.n_row);
    CD_TRY(columns(&out->t, path, err));
    for (size_t i = 0; i < out->t.n_row; i++) {
        cdmpp_err why = {0};
        const cdmpp_status st =
            cd_err_at(&why, row(&out->t, i, usual, &out->v[out->n], &why), path, out->t.line[i]);
        if (st && (!bad || !cd_op_line_is_bad(st))) {
            cd_err_from(err, &why);
            return st;
        }
        if (st) cd_serving_bad_add(bad, &why), out->n_bad++;
        else out->line[out->n++] = out->t.line[i];
    }
    return out->n
               ? CDMPP_OK
               : cd_err_at(err, CD_FAIL(err, ENODATA, "none of %zu rows can be used", out->t.n_row),
                           path, 0);
}

cdmpp_status cd_serving_runs_read(const char *path, const cd_serving_config *usual,
                                  cd_op_bad_line *bad, void *ctx, cd_serving_runs *out,
                                  cdmpp_err *err) {
    cd_serving_bad left = {0};
    *out = (cd_serving_runs){0};
    const cdmpp_status st = rows(path, usual, bad ? &left : NULL, out, err);
    if (bad) cd_serving_bad_tell(&left, path, bad, ctx);
    return st;
}

void cd_serving_runs_free(cd_serving_runs *r) {
    cd_csv_table_free(&r->t);
    *r = (cd_serving_runs){0};
}
