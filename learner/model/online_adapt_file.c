/* Measured programs as JSON, for an observer that outlives its process. The digest of the model is
 * in it, because the items hold that model's predictions. */
#include <math.h>

#include "learner/model/model_internal.h"

enum { VERSION = 1, N_NUMBER = 3 + CD_N_TRAIT };

static void put_item(cd_buf *b, const cd_online_adapt_item *i) {
    cd_buf_putf(b, "[%.17g,%.17g,%.17g", i->median_log, i->sigma, i->measured_log);
    for (int k = 0; k < CD_N_TRAIT; k++) cd_buf_putf(b, ",%.9g", (double)i->trait[k]);
    cd_buf_puts(b, "]");
}

static void put_task(cd_buf *b, const cd_online_adapt_task *t) {
    cd_buf_puts(b, "{\"key\":");
    cd_buf_put_json_str(b, t->key, strlen(t->key));
    cd_buf_puts(b, ",\"items\":[");
    const size_t first = t->n < CD_ONLINE_ADAPT_MAX ? 0 : t->next; /* the oldest */
    for (size_t i = 0; i < t->n; i++) {
        if (i) cd_buf_puts(b, ",\n");
        put_item(b, &t->item[(first + i) % CD_ONLINE_ADAPT_MAX]);
    }
    cd_buf_puts(b, "]}");
}

/* Tasks in the order they came, items the oldest first, so that reading gives the same ring. */
void cd_online_adapt_write(const cd_online_adapt *a, const char *model, cd_buf *out) {
    cd_buf_putf(
        out, "{\"schema\":\"cdmpp.observer\",\"schema_version\":%d,\"model\":\"%s\",\"devices\":[",
        VERSION, model);
    for (size_t d = 0; d < a->n_device; d++) {
        const cd_online_adapt_device *e = &a->device[d];
        cd_buf_puts(out, d ? ",\n{\"name\":" : "\n{\"name\":");
        cd_buf_put_json_str(out, e->name, strlen(e->name));
        cd_buf_putf(out, ",\"unknown\":%s,\"tasks\":[", e->unknown ? "true" : "false");
        for (size_t k = 0; k < e->n_task; k++) {
            cd_buf_puts(out, k ? ",\n" : "\n");
            put_task(out, &e->task[k]);
        }
        cd_buf_puts(out, "]}");
    }
    cd_buf_puts(out, "]}\n");
}

/* ---- reading ---- */
static cdmpp_status need_str(cd_arena *a, const cd_json *v, const char *key, const char **out,
                             cdmpp_err *err) {
    const cd_json *m;
    cd_str s;
    CD_TRY(cd_json_need(v, key, &m, err));
    CD_TRY(cd_err_key(err, cd_json_str(m, &s, err), key));
    *out = cd_str_dup(a, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu bytes of text", s.n);
}

static cdmpp_status need_arr(const cd_json *v, const char *key, const cd_json **first,
                             cdmpp_err *err) {
    const cd_json *m;
    CD_TRY(cd_json_need(v, key, &m, err));
    return cd_err_key(err, cd_json_arr(m, 0, first, err), key);
}

/* Numbers within a million: what cd_online_adapt_fit can work with. */
static cdmpp_status read_item(const cd_json *v, cd_online_adapt_item *i, cdmpp_err *err) {
    double x[N_NUMBER];
    const cd_json *c;
    CD_TRY(cd_json_arr(v, 0, &c, err));
    if (v->n != N_NUMBER)
        return CD_FAIL(err, ESCHEMA, "expected %d numbers, found %u", N_NUMBER, v->n);
    for (size_t k = 0; k < N_NUMBER; k++, c = c->next) {
        CD_TRY(cd_err_index(err, cd_json_real(c, &x[k], err), k));
        if (!(fabs(x[k]) < 1e6))
            return cd_err_index(
                err, CD_FAIL(err, ERANGE, "expected a number within 1e6, found %g", x[k]), k);
    }
    if (!(x[1] >= 1e-6))
        return cd_err_index(err, CD_FAIL(err, ERANGE, "expected 1e-6 at least, found %g", x[1]), 1);
    *i = (cd_online_adapt_item){x[0], x[1], x[2], {0}};
    for (int k = 0; k < CD_N_TRAIT; k++) i->trait[k] = (float)x[3 + k];
    return CDMPP_OK;
}

static cdmpp_status read_task(cd_online_adapt *a, cd_arena *m, const char *device, bool unknown,
                              const cd_json *v, cdmpp_err *err) {
    const char *key;
    const cd_json *c;
    size_t i = 0;
    CD_TRY(need_str(m, v, "key", &key, err));
    CD_TRY(need_arr(v, "items", &c, err));
    for (; c; c = c->next, i++) {
        cd_online_adapt_item item;
        CD_TRY(cd_err_key(err, cd_err_index(err, read_item(c, &item, err), i), "items"));
        CD_TRY(cd_online_adapt_add(a, device, unknown, key, &item, err));
    }
    return CDMPP_OK;
}

static cdmpp_status read_device(cd_online_adapt *a, cd_arena *m, const cd_json *v, cdmpp_err *err) {
    const cd_json *unknown, *c;
    const char *name;
    size_t i = 0;
    CD_TRY(need_str(m, v, "name", &name, err));
    CD_TRY(cd_json_need(v, "unknown", &unknown, err));
    if (unknown->kind != CD_JSON_BOOL)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected true or false"), "unknown");
    CD_TRY(need_arr(v, "tasks", &c, err));
    for (; c; c = c->next, i++)
        CD_TRY(cd_err_key(
            err, cd_err_index(err, read_task(a, m, name, unknown->u.i != 0, c, err), i), "tasks"));
    return CDMPP_OK;
}

/* The fit is not stored: it follows from the items. */
static cdmpp_status read_all(cd_online_adapt *a, cd_arena *m, const cd_json *root,
                             const char *model, cdmpp_err *err) {
    const cd_json *v, *c;
    const char *of;
    int64_t version;
    size_t i = 0;
    CD_TRY(cd_json_need(root, "schema_version", &v, err));
    CD_TRY(cd_err_key(err, cd_json_int(v, 0, INT32_MAX, &version, err), "schema_version"));
    if (version != VERSION)
        return CD_FAIL(err, EUNSUPPORTED, "schema_version: expected %d, found %lld", VERSION,
                       (long long)version);
    CD_TRY(need_str(m, root, "model", &of, err));
    if (strcmp(of, model) != 0)
        return CD_FAIL(err, EMODEL, "measured for model %.16s, this one is %.16s", of, model);
    CD_TRY(need_arr(root, "devices", &c, err));
    for (; c; c = c->next, i++)
        CD_TRY(cd_err_key(err, cd_err_index(err, read_device(a, m, c, err), i), "devices"));
    return cd_online_adapt_fit(a, err);
}

/* The same of text that is parsed already. */
static cdmpp_status online_adapt_take(const cd_json *root, const char *model, cd_online_adapt **out,
                                      cdmpp_err *err) {
    cd_arena m = {0};
    cd_online_adapt *a = NULL;
    cdmpp_status st = cd_online_adapt_new(&a, err);
    if (!st) st = read_all(a, &m, root, model, err);
    cd_arena_free(&m);
    if (st) cd_online_adapt_free(a);
    else *out = a;
    return st;
}

cdmpp_status cd_online_adapt_read(const char *text, size_t n, const char *model,
                                  cd_online_adapt **out, cdmpp_err *err) {
    cd_arena m = {0};
    const cd_json *root;
    cdmpp_status st = cd_json_parse(&m, text, n, &root, err);
    if (!st) st = online_adapt_take(root, model, out, err);
    cd_arena_free(&m);
    return st;
}
