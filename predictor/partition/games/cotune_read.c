/* Times of operators by numbers of threads, out of CSV, and the time of one beside the others. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/partition/games/cotune.h"

/* A table of operators, or what cdmpp-profile sweep measured of one: its rows of factor
 * "threads". */
typedef struct source {
    cd_csv_table t;
    /* of a sweep: its name, by the file's; NULL: the column operator says it */
    const char *op;
    size_t factor, error, name, threads, seconds, bytes; /* columns; bytes: SIZE_MAX without one */
} source;

static bool counts(const source *f, size_t row) {
    return !f->op || (!strcmp(f->t.cell[row][f->factor], "threads") &&
                      !strcmp(f->t.cell[row][f->error], "0"));
}

static cdmpp_status threads_of(const source *f, size_t row, uint32_t *out, cdmpp_err *err) {
    double v;
    CD_TRY(cd_csv_table_number(&f->t, row, f->threads, &v, err));
    if (v < 1 || v > CD_COTUNE_THREADS || v != floor(v))
        return cd_err_at(err,
                         CD_FAIL(err, ERANGE, "threads: expected a whole number in 1..%d, found %g",
                                 CD_COTUNE_THREADS, v),
                         f->t.path, f->t.line[row]);
    *out = (uint32_t)v;
    return CDMPP_OK;
}

/* The operator of that name; a new one starts without any time. */
static cdmpp_status op_of(cd_cotune_table *s, const char *name, uint32_t *out, cdmpp_err *err) {
    for (*out = 0; *out < s->n_op; ++*out)
        if (!strcmp(s->name[*out], name)) return CDMPP_OK;
    if (s->n_op == CD_COTUNE_OPS)
        return CD_FAIL(err, ERANGE, "more than %d operators", CD_COTUNE_OPS);
    s->name[*out] = cd_str_dup(&s->arena, (cd_str){name, strlen(name)});
    s->seconds[*out] = cd_arena_alloc(&s->arena, s->threads + 1, sizeof(double));
    if (!s->name[*out] || !s->seconds[*out]) return CD_FAIL(err, ENOMEM, "operator");
    for (uint32_t t = 0; t <= s->threads; t++) s->seconds[*out][t] = HUGE_VAL;
    s->bytes[*out] = -1;
    s->n_op++;
    return CDMPP_OK;
}

/* A measured time also bounds all larger numbers of threads: the others can be left idle. */
static cdmpp_status add_row(cd_cotune_table *s, const source *f, size_t row, cdmpp_err *err) {
    const cd_csv_table *t = &f->t;
    uint32_t n, k;
    double v, bytes = 0;
    CD_TRY(threads_of(f, row, &n, err));
    CD_TRY(cd_csv_table_number(t, row, f->seconds, &v, err));
    if (!(v > 0))
        return cd_err_at(err, CD_FAIL(err, ERANGE, "expected seconds above 0, found %g", v),
                         t->path, t->line[row]);
    if (f->bytes != SIZE_MAX) CD_TRY(cd_csv_table_number(t, row, f->bytes, &bytes, err));
    if (bytes < 0)
        return cd_err_at(err, CD_FAIL(err, ERANGE, "expected bytes of at least 0, found %g", bytes),
                         t->path, t->line[row]);
    CD_TRY(cd_err_at(err, op_of(s, f->op ? f->op : t->cell[row][f->name], &k, err), t->path,
                     t->line[row]));
    s->bytes[k] = fmax(s->bytes[k], bytes);
    for (; n <= s->threads; n++) s->seconds[k][n] = fmin(s->seconds[k][n], v);
    return CDMPP_OK;
}

/* "conv" of "out/conv.csv". */
static const char *stem(cd_arena *a, const char *path) {
    const char *file = strrchr(path, '/');
    file = file ? file + 1 : path;
    const size_t n = strlen(file);
    return cd_str_dup(a, (cd_str){file, n > 4 && !strcmp(file + n - 4, ".csv") ? n - 4 : n});
}

static cdmpp_status open_source(cd_cotune_table *s, const char *path, bool need_bytes, source *f,
                                cdmpp_err *err) {
    CD_TRY(cd_csv_table_read(&f->t, path, err));
    f->factor = cd_csv_table_find(&f->t, "factor");
    f->bytes = SIZE_MAX;
    if (f->factor != SIZE_MAX) {
        if (need_bytes)
            return cd_err_at(
                err, CD_FAIL(err, ESCHEMA, "a sweep has no bytes, which --contention needs"), path,
                0);
        if (!(f->op = stem(&s->arena, path))) return CD_FAIL(err, ENOMEM, "operator");
        CD_TRY(cd_csv_table_need(&f->t, "value", &f->threads, err));
        CD_TRY(cd_csv_table_need(&f->t, "error_no", &f->error, err));
        return cd_csv_table_need(&f->t, "median_s", &f->seconds, err);
    }
    CD_TRY(cd_csv_table_need(&f->t, "operator", &f->name, err));
    CD_TRY(cd_csv_table_need(&f->t, "threads", &f->threads, err));
    CD_TRY(cd_csv_table_need(&f->t, "seconds", &f->seconds, err));
    f->bytes = cd_csv_table_find(&f->t, "bytes");
    return need_bytes ? cd_csv_table_need(&f->t, "bytes", &f->bytes, err) : CDMPP_OK;
}

static cdmpp_status add_source(cd_cotune_table *s, const source *f, cdmpp_err *err) {
    const uint32_t before = s->n_op;
    for (size_t i = 0; i < f->t.n_row; i++)
        if (counts(f, i)) CD_TRY(add_row(s, f, i, err));
    if (f->op && s->n_op == before)
        return cd_err_at(err,
                         CD_FAIL(err, ESCHEMA,
                                 "expected times of factor 'threads' of an operator of its own, "
                                 "found none (cdmpp-profile sweep --factor threads)"),
                         f->t.path, 0);
    return CDMPP_OK;
}

/* The number of threads is known before the first row is added, because each operator has a time
 * for every number of them. */
static cdmpp_status of_sources(cd_cotune_table *s, uint32_t threads, const source *f, size_t n,
                               cdmpp_err *err) {
    s->threads = threads;
    for (size_t k = 0; !threads && k < n; k++)
        for (size_t i = 0; i < f[k].t.n_row; i++) {
            uint32_t most = 0;
            if (counts(&f[k], i)) CD_TRY(threads_of(&f[k], i, &most, err));
            if (most > s->threads) s->threads = most;
        }
    for (size_t k = 0; k < n; k++) CD_TRY(add_source(s, &f[k], err));
    for (uint32_t k = 0; k < s->n_op; k++)
        if (!isfinite(s->seconds[k][1]))
            return cd_err_at(
                err, CD_FAIL(err, ESCHEMA, "operator %.60s: no time with 1 thread", s->name[k]),
                n == 1 ? f->t.path : NULL, 0);
    return CDMPP_OK;
}

cdmpp_status cd_cotune_read(const char *const *path, size_t n, uint32_t threads,
                            const char *machine, cd_cotune_table *t, cdmpp_err *err) {
    source *f = cd_arena_zalloc(&t->arena, n + 1, sizeof *f);
    if (!f) return CD_FAIL(err, ENOMEM, "%zu tables", n);
    cdmpp_status st = CDMPP_OK;
    size_t open = 0;
    for (; !st && open < n; open++) st = open_source(t, path[open], machine != NULL, &f[open], err);
    if (!st) st = of_sources(t, threads, f, n, err);
    for (size_t k = 0; k < open; k++) cd_csv_table_free(&f[k].t);
    return st || !machine ? st : cd_machine_contention(machine, &t->contention, err);
}

/* ---- the time of one operator beside the others ---- */

/* Of the machine's memory bandwidth. */
static double share(const cd_cotune_table *s, uint32_t k, uint32_t threads) {
    const double peak = s->contention.peak_bytes_per_s;
    return threads && peak > 0 ? fmin(1, s->bytes[k] / (s->seconds[k][threads] * peak)) : 0;
}

double cd_cotune_table_time(uint32_t op, const uint32_t *threads, uint32_t n_op, void *table) {
    const cd_cotune_table *s = table;
    double sum = 0;
    uint32_t others = 0;
    for (uint32_t k = 0; k < n_op; k++) {
        sum += share(s, k, threads[k]);
        others += k != op && threads[k];
    }
    return s->seconds[op][threads[op]] *
           cd_contention_slow(&s->contention, share(s, op, threads[op]), sum, others, false);
}
