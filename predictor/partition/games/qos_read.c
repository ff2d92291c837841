/* Kinds of queries, out of CSV or out of what cdmpp-replay --json printed. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/partition/games/qos.h"

enum { MAX_FILE = 256 << 20 };

void cd_qos_free(cd_qos_file *f) {
    cd_arena_free(&f->arena);
    *f = (cd_qos_file){0};
}

static cdmpp_status room(cd_qos_file *f, size_t n, cdmpp_err *err) {
    f->kind = CD_NEWN(&f->arena, cd_qos_kind, n);
    return f->kind ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu queries", n);
}

/* One more kind, checked. */
static cdmpp_status add(cd_qos_file *f, const cd_qos_kind *k, cdmpp_err *err) {
    if (f->n == CD_QOS_KINDS)
        return CD_FAIL(err, ERANGE, "more than %d kinds of queries", CD_QOS_KINDS);
    for (uint32_t i = 0; i < f->n; i++)
        if (!strcmp(f->kind[i].name, k->name))
            return CD_FAIL(err, ESCHEMA, "two queries are called '%.60s'", k->name);
    if (!(k->seconds > 0))
        return CD_FAIL(err, ERANGE, "expected seconds above 0, found %g", k->seconds);
    if (!(k->low_s > 0) || k->low_s > k->seconds || k->high_s < k->seconds)
        return CD_FAIL(err, ERANGE, "%g s is not between low_s %g and high_s %g", k->seconds,
                       k->low_s, k->high_s);
    if (!(k->deadline_s > 0))
        return CD_FAIL(err, ESCHEMA,
                       "query %.60s: no deadline: a column deadline_s above 0, or --deadline",
                       k->name);
    if (!(k->weight > 0) || k->bytes < 0)
        return CD_FAIL(err, ERANGE,
                       "expected a weight above 0 and bytes of at least 0, found %g, %g", k->weight,
                       k->bytes);
    f->kind[f->n++] = *k;
    return CDMPP_OK;
}

/* ---- CSV ---- */

enum { SECONDS, LOW, HIGH, DEADLINE, BYTES, WEIGHT, N_COLUMN };
static const char *const column[] = {"seconds", "low_s", "high_s", "deadline_s", "bytes", "weight"};

static cdmpp_status row_of(cd_qos_file *f, const cd_csv_table *t, size_t row, size_t name,
                           const size_t *at, double deadline_s, cdmpp_err *err) {
    double v[N_COLUMN] = {[DEADLINE] = deadline_s, [WEIGHT] = 1};
    for (int c = 0; c < N_COLUMN; c++)
        if (at[c] != SIZE_MAX && (c != DEADLINE || t->cell[row][at[c]][0]))
            CD_TRY(cd_csv_table_number(t, row, at[c], &v[c], err));
    cd_qos_kind k = {
        cd_str_dup(&f->arena, (cd_str){t->cell[row][name], strlen(t->cell[row][name])}),
        v[SECONDS],
        v[LOW],
        v[HIGH],
        v[DEADLINE],
        v[BYTES],
        v[WEIGHT],
        0};
    if (!k.name) return CD_FAIL(err, ENOMEM, "query");
    if (f->exact) k.low_s = k.high_s = k.seconds;
    return cd_err_at(err, add(f, &k, err), t->path, t->line[row]);
}

static cdmpp_status of_table(cd_qos_file *f, const cd_csv_table *t, double deadline_s,
                             cdmpp_err *err) {
    size_t name, at[N_COLUMN];
    CD_TRY(cd_csv_table_need(t, "query", &name, err));
    CD_TRY(cd_csv_table_need(t, "seconds", &at[SECONDS], err));
    for (int c = LOW; c < N_COLUMN; c++) at[c] = cd_csv_table_find(t, column[c]);
    f->exact = at[LOW] == SIZE_MAX && at[HIGH] == SIZE_MAX;
    f->bytes = at[BYTES] != SIZE_MAX;
    if (!f->exact) {
        CD_TRY(cd_csv_table_need(t, "low_s", &at[LOW], err));
        CD_TRY(cd_csv_table_need(t, "high_s", &at[HIGH], err));
    }
    CD_TRY(room(f, CD_QOS_KINDS, err));
    for (size_t i = 0; i < t->n_row; i++) CD_TRY(row_of(f, t, i, name, at, deadline_s, err));
    return CDMPP_OK;
}

static cdmpp_status read_csv(cd_qos_file *f, const char *path, double deadline_s, cdmpp_err *err) {
    cd_csv_table t;
    cdmpp_status st = cd_csv_table_read(&t, path, err);
    if (!st) st = of_table(f, &t, deadline_s, err);
    cd_csv_table_free(&t);
    return st;
}

/* ---- JSON ---- */

/* "network", or "network/8" of a batch. */
static cdmpp_status name_of(cd_qos_file *f, const cd_json *e, const char **out, cdmpp_err *err) {
    const cd_json *v = cd_json_get(e, "batch");
    cd_str s;
    int64_t batch = 0;
    cd_buf b = {0};
    CD_TRY(cd_json_need_str(e, "network", &s, err));
    if (v && v->kind != CD_JSON_NULL)
        CD_TRY(cd_err_key(err, cd_json_int(v, 1, INT64_MAX, &batch, err), "batch"));
    cd_buf_putf(&b, "%.*s", (int)s.n, s.p);
    if (batch) cd_buf_putf(&b, "/%lld", (long long)batch);
    *out = b.oom ? NULL : cd_str_dup(&f->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name");
}

/* An estimate of the device; *seen: the device of those before. Estimates without a result were
 * said by cdmpp-replay. */
static cdmpp_status estimate(cd_qos_file *f, const cd_json *e, const char *device, cd_str *seen,
                             double deadline_s, cdmpp_err *err) {
    cd_qos_kind k = {.deadline_s = deadline_s, .weight = 1};
    cd_str d;
    double level;
    CD_TRY(cd_json_need_str(e, "device", &d, err));
    if (cd_json_get(e, "error") ||
        (device && (strlen(device) != d.n || memcmp(device, d.p, d.n) != 0)))
        return CDMPP_OK;
    if (!device && seen->p && (seen->n != d.n || memcmp(seen->p, d.p, d.n) != 0))
        return CD_FAIL(err, ESCHEMA, "estimates of %.*s and %.*s: --device says which",
                       (int)seen->n, seen->p, (int)d.n, d.p);
    *seen = d;
    CD_TRY(name_of(f, e, &k.name, err));
    CD_TRY(cd_json_need_real(e, "latency_s", 0, HUGE_VAL, &k.seconds, err));
    const cd_json *low = cd_json_get(e, "low_s"), *high = cd_json_get(e, "high_s");
    if (!low || !high || low->kind == CD_JSON_NULL || high->kind == CD_JSON_NULL)
        return CD_FAIL(err, ENODATA, "%.60s on %.*s has no interval", k.name, (int)d.n, d.p);
    CD_TRY(cd_json_need_real(e, "low_s", 0, HUGE_VAL, &k.low_s, err));
    CD_TRY(cd_json_need_real(e, "high_s", 0, HUGE_VAL, &k.high_s, err));
    CD_TRY(cd_json_need_real(e, "level", 0, 1, &level, err));
    f->level = level;
    /* an interval of draws may leave its estimate out by a little */
    k.low_s = fmin(k.low_s, k.seconds), k.high_s = fmax(k.high_s, k.seconds);
    return add(f, &k, err);
}

static cdmpp_status of_json(cd_qos_file *f, const char *text, size_t n, const char *device,
                            double deadline_s, cdmpp_err *err) {
    const cd_json *root, *list, *e;
    cd_str seen = {0};
    CD_TRY(cd_json_parse(&f->arena, text, n, &root, err));
    CD_TRY(cd_json_need(root, "result", &root, err));
    CD_TRY(cd_err_key(err, cd_json_need(root, "estimates", &list, err), "result"));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 1, &e, err), "estimates"));
    CD_TRY(room(f, CD_QOS_KINDS, err));
    for (uint32_t i = 0; e; i++, e = e->next)
        CD_TRY(cd_err_key(err, cd_err_index(err, estimate(f, e, device, &seen, deadline_s, err), i),
                          "estimates"));
    return f->n ? CDMPP_OK
                : CD_FAIL(err, ENODATA, "no estimate%s%.60s", device ? " of " : "",
                          device ? device : "");
}

/* The first character tells JSON from CSV. Standard input can be read only once, so it is CSV. */
cdmpp_status cd_qos_read(const char *path, const char *device, double deadline_s, cd_qos_file *f,
                         cdmpp_err *err) {
    char *text;
    size_t n;
    if (!strcmp(path, "-")) return read_csv(f, path, deadline_s, err);
    CD_TRY(cd_file_read(path, MAX_FILE, &text, &n, err));
    const cdmpp_status st =
        text[strspn(text, " \t\r\n")] == '{'
            ? cd_err_at(err, of_json(f, text, n, device, deadline_s, err), path, 0)
            : read_csv(f, path, deadline_s, err);
    cd_mem_free(text);
    return st;
}

cdmpp_status cd_qos_pairs(cd_qos_file *f, const cd_corun_table *t, cdmpp_err *err) {
    for (uint32_t k = 0; k < f->n; k++) {
        f->kind[k].op = cd_corun_table_find(t, (cd_str){f->kind[k].name, strlen(f->kind[k].name)});
        if (f->kind[k].op == UINT32_MAX)
            return CD_FAIL(err, ENODATA, "query %.60s: not in the pairs", f->kind[k].name);
    }
    return CDMPP_OK;
}

/* ---- arrivals ---- */
static cdmpp_status arrival_of(const cd_qos_file *f, const cd_csv_table *t, size_t row, size_t at,
                               size_t name, double before, cd_qos_arrival *a, cdmpp_err *err) {
    CD_TRY(cd_csv_table_number(t, row, at, &a->at_s, err));
    if (!(a->at_s >= before))
        return CD_FAIL(err, ERANGE,
                       "at_s: expected %g or more, found %g: arrivals are in the order of time",
                       before, a->at_s);
    while (a->kind < f->n && strcmp(f->kind[a->kind].name, t->cell[row][name]) != 0) a->kind++;
    return a->kind < f->n ? CDMPP_OK
                          : CD_FAIL(err, ESCHEMA, "no query is called '%.60s'", t->cell[row][name]);
}

static cdmpp_status of_arrivals(cd_qos_file *f, const cd_csv_table *t, const cd_qos_arrival **out,
                                cdmpp_err *err) {
    size_t at, name;
    double before = 0;
    CD_TRY(cd_csv_table_need(t, "at_s", &at, err));
    CD_TRY(cd_csv_table_need(t, "query", &name, err));
    if (!t->n_row || t->n_row > UINT32_MAX) return CD_FAIL(err, ENODATA, "%zu arrivals", t->n_row);
    cd_qos_arrival *a = cd_arena_zalloc(&f->arena, t->n_row, sizeof *a);
    if (!a) return CD_FAIL(err, ENOMEM, "%zu arrivals", t->n_row);
    for (size_t i = 0; i < t->n_row; before = a[i++].at_s)
        CD_TRY(
            cd_err_at(err, arrival_of(f, t, i, at, name, before, &a[i], err), t->path, t->line[i]));
    *out = a;
    return CDMPP_OK;
}

cdmpp_status cd_qos_read_arrivals(const char *path, cd_qos_file *f, const cd_qos_arrival **out,
                                  uint32_t *n, cdmpp_err *err) {
    cd_csv_table t;
    cdmpp_status st = cd_csv_table_read(&t, path, err);
    if (!st) st = of_arrivals(f, &t, out, err);
    *n = st ? 0 : (uint32_t)t.n_row;
    cd_csv_table_free(&t);
    return st;
}
