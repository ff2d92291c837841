/* Times of operators by numbers of threads, out of CSV, and the time of one beside the others. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/partition/games/cotune.h"

static cdmpp_status threads_of(const cd_csv_table *t, size_t row, size_t col, uint32_t *out, cdmpp_err *err) {
    double v;
    CD_TRY(cd_csv_table_number(t, row, col, &v, err));
    if (v < 1 || v > CD_COTUNE_THREADS || v != floor(v))
        return cd_err_at(err, CD_FAIL(err, ERANGE, "threads: expected a whole number in 1..%d, found %g", CD_COTUNE_THREADS, v), t->path, t->line[row]);
    *out = (uint32_t)v;
    return CDMPP_OK;
}

/* The operator of that name; a new one starts without any time. */
static cdmpp_status op_of(cd_cotune_table *s, const char *name, uint32_t *out, cdmpp_err *err) {
    for (*out = 0; *out < s->n_op; ++*out)
        if (!strcmp(s->name[*out], name)) return CDMPP_OK;
    if (s->n_op == CD_COTUNE_OPS) return CD_FAIL(err, ERANGE, "more than %d operators", CD_COTUNE_OPS);
    s->name[*out] = cd_str_dup(&s->arena, (cd_str){name, strlen(name)});
    s->seconds[*out] = cd_arena_alloc(&s->arena, s->threads + 1, sizeof(double));
    if (!s->name[*out] || !s->seconds[*out]) return CD_FAIL(err, ENOMEM, "operator");
    for (uint32_t t = 0; t <= s->threads; t++) s->seconds[*out][t] = HUGE_VAL;
    s->bytes[*out] = -1;
    s->n_op++;
    return CDMPP_OK;
}

/* A measured time also bounds all larger numbers of threads: the others can be left idle. */
static cdmpp_status add_row(cd_cotune_table *s, const cd_csv_table *t, size_t row, const size_t *col, cdmpp_err *err) {
    uint32_t n, k;
    double v, bytes = 0;
    CD_TRY(threads_of(t, row, col[1], &n, err));
    CD_TRY(cd_csv_table_number(t, row, col[2], &v, err));
    if (!(v > 0)) return cd_err_at(err, CD_FAIL(err, ERANGE, "expected seconds above 0, found %g", v), t->path, t->line[row]);
    if (col[3] != SIZE_MAX) CD_TRY(cd_csv_table_number(t, row, col[3], &bytes, err));
    if (bytes < 0) return cd_err_at(err, CD_FAIL(err, ERANGE, "expected bytes of at least 0, found %g", bytes), t->path, t->line[row]);
    CD_TRY(cd_err_at(err, op_of(s, t->cell[row][col[0]], &k, err), t->path, t->line[row]));
    s->bytes[k] = fmax(s->bytes[k], bytes);
    for (; n <= s->threads; n++) s->seconds[k][n] = fmin(s->seconds[k][n], v);
    return CDMPP_OK;
}

/* The number of threads is known before the first row is added, because each operator has a time for every number of them. */
static cdmpp_status of_table(cd_cotune_table *s, uint32_t threads, bool need_bytes, const cd_csv_table *t, cdmpp_err *err) {
    static const char *const name[] = {"operator", "threads", "seconds"};
    size_t col[4];
    for (int c = 0; c < 3; c++) CD_TRY(cd_csv_table_need(t, name[c], &col[c], err));
    col[3] = cd_csv_table_find(t, "bytes");
    if (need_bytes) CD_TRY(cd_csv_table_need(t, "bytes", &col[3], err));
    s->threads = threads;
    for (size_t i = 0; !threads && i < t->n_row; i++) {
        uint32_t n;
        CD_TRY(threads_of(t, i, col[1], &n, err));
        if (n > s->threads) s->threads = n;
    }
    for (size_t i = 0; i < t->n_row; i++) CD_TRY(add_row(s, t, i, col, err));
    for (uint32_t k = 0; k < s->n_op; k++)
        if (!isfinite(s->seconds[k][1])) return cd_err_at(err, CD_FAIL(err, ESCHEMA, "operator %.60s: no time with 1 thread", s->name[k]), t->path, 0);
    return CDMPP_OK;
}

cdmpp_status cd_cotune_read(const char *path, uint32_t threads, const char *machine, cd_cotune_table *t, cdmpp_err *err) {
    cd_csv_table csv;
    cdmpp_status st = cd_csv_table_read(&csv, path, err);
    if (!st) st = of_table(t, threads, machine != NULL, &csv, err);
    cd_csv_table_free(&csv);
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
    return s->seconds[op][threads[op]] * cd_contention_slow(&s->contention, share(s, op, threads[op]), sum, others, false);
}

