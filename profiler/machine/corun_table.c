/* The table of pairs and its law of groups. */
#include "profiler/machine/corun_table.h"

#include <math.h>
#include <string.h>

#include "base/io/io.h"

enum { BESIDE, SHARED };

void cd_corun_table_free(cd_corun_table *t) {
    cd_arena_free(&t->arena);
    *t = (cd_corun_table){0};
}

uint32_t cd_corun_table_find(const cd_corun_table *t, cd_str name) {
    for (uint32_t k = 0; k < t->n; k++)
        if (strlen(t->name[k]) == name.n && !memcmp(t->name[k], name.p, name.n)) return k;
    return UINT32_MAX;
}

/* most: operators that there may be. */
static cdmpp_status begin(cd_corun_table *t, size_t most, cdmpp_err *err) {
    t->name = CD_NEWN(&t->arena, const char *, most);
    t->seconds = CD_NEWN(&t->arena, double, most);
    t->bytes = CD_NEWN(&t->arena, double, most);
    return t->name && t->seconds && t->bytes ? CDMPP_OK
                                             : CD_FAIL(err, ENOMEM, "%zu operators", most);
}

/* The median over the pairs that it stands in. */
static cdmpp_status alone(cd_corun_table *t, const cd_corun_row *row, const uint32_t (*op)[2],
                          size_t n_row, cdmpp_err *err) {
    double *v = CD_NEWN(&t->arena, double, 2 * n_row + 1);
    if (!v) return CD_FAIL(err, ENOMEM, "%zu pairs", n_row);
    for (uint32_t a = 0; a < t->n; a++) {
        size_t m = 0;
        for (size_t i = 0; i < 2 * n_row; i++)
            if (op[i / 2][i % 2] == a) v[m++] = row[i / 2].solo_s[i % 2];
        if (!m) continue; /* all its pairs failed: cd_corun_table_group will miss them */
        cd_sort_doubles(v, m);
        t->seconds[a] = cd_sort_median(v, m);
    }
    return CDMPP_OK;
}

static double share(const cd_corun_table *t, uint32_t op) {
    return cd_contention_share(t->bytes[op], t->seconds[op], t->fit.peak_bytes_per_s);
}

/* The law's factor for a beside or with b. */
static double law(const cd_corun_table *t, int how, uint32_t a, uint32_t b) {
    return cd_contention_slow(&t->fit, share(t, a), share(t, a) + share(t, b), 1, how == SHARED);
}

/* The part of the variance of ln(slowdown / law) that is no noise. */
static double real_part(const cd_corun_table *t, const cd_corun_row *row, const uint32_t (*op)[2],
                        size_t n_row, int how) {
    double noise = 0, all = 0;
    size_t self = 0, m = 0;
    for (size_t i = 0; i < n_row; i++) {
        if (row[i].shared != how) continue;
        if (op[i][0] == op[i][1])
            noise += pow(log(row[i].slowdown[0] / row[i].slowdown[1]), 2) / 2, self++;
        for (int k = 0; k < 2; k++)
            all += pow(log(row[i].slowdown[k] / law(t, how, op[i][k], op[i][!k])), 2), m++;
    }
    if (!self || !(all > 0)) return 1; /* nothing tells the noise */
    return fmax(0, 1 - noise / (double)self / (all / (double)m));
}

/* The matrices, once all operators have their numbers: op (n_row, 2). */
static cdmpp_status fill(cd_corun_table *t, const cd_corun_row *row, const uint32_t (*op)[2],
                         size_t n_row, cdmpp_err *err) {
    const size_t cells = (size_t)t->n * t->n;
    for (int how = BESIDE; how <= SHARED; how++) t->slow[how] = CD_NEWN(&t->arena, double, cells);
    if (!t->slow[BESIDE] || !t->slow[SHARED]) return CD_FAIL(err, ENOMEM, "%u operators", t->n);
    for (size_t i = 0; i < n_row; i++)
        for (int k = 0; k < 2; k++) t->bytes[op[i][k]] = row[i].bytes[k];
    CD_TRY(alone(t, row, op, n_row, err));
    CD_TRY(cd_contention_fit(row, n_row, &t->fit, err));
    for (int how = BESIDE; how <= SHARED; how++) t->real[how] = real_part(t, row, op, n_row, how);
    for (size_t i = 0; i < n_row; i++)
        for (int k = 0; k < 2; k++) {
            const uint32_t a = op[i][k], b = op[i][!k];
            const double slow = a == b ? sqrt(row[i].slowdown[0] * row[i].slowdown[1])
                                       : row[i].slowdown[k],
                         l = law(t, row[i].shared, a, b);
            t->slow[row[i].shared][(size_t)a * t->n + b] =
                l * pow(slow / l, t->real[row[i].shared]);
        }
    return CDMPP_OK;
}

/* ---- from a file ---- */

static cdmpp_status number_of(cd_corun_table *t, const char *name, uint32_t *out, cdmpp_err *err) {
    const cd_str key = {name, strlen(name)};
    *out = cd_corun_table_find(t, key);
    if (*out != UINT32_MAX) return CDMPP_OK;
    if (!(t->name[t->n] = cd_str_dup(&t->arena, key))) return CD_FAIL(err, ENOMEM, "operator");
    *out = t->n++;
    return CDMPP_OK;
}

/* The names of rows without an error, in the order of cd_contention_read. */
static cdmpp_status names(cd_corun_table *t, const cd_csv_table *csv, uint32_t (*op)[2],
                          cdmpp_err *err) {
    size_t first, second, error_no, n = 0;
    CD_TRY(cd_csv_table_need(csv, "first", &first, err));
    CD_TRY(cd_csv_table_need(csv, "second", &second, err));
    CD_TRY(cd_csv_table_need(csv, "error_no", &error_no, err));
    for (size_t i = 0; i < csv->n_row; i++) {
        double bad;
        CD_TRY(cd_csv_table_number(csv, i, error_no, &bad, err));
        if (bad != 0) continue;
        CD_TRY(number_of(t, csv->cell[i][first], &op[n][0], err));
        CD_TRY(number_of(t, csv->cell[i][second], &op[n++][1], err));
    }
    return CDMPP_OK;
}

static cdmpp_status of_file(const char *path, cd_csv_table *csv, cd_corun_table *t,
                            cdmpp_err *err) {
    cd_corun_row *row;
    size_t n;
    CD_TRY(cd_contention_read(path, &t->arena, &row, &n, err));
    CD_TRY(cd_csv_table_read(csv, path, err));
    uint32_t(*op)[2] = cd_arena_zalloc(&t->arena, n, sizeof *op);
    if (!op) return CD_FAIL(err, ENOMEM, "%zu pairs", n);
    CD_TRY(begin(t, 2 * n, err));
    CD_TRY(names(t, csv, op, err));
    return cd_err_at(err, fill(t, row, (const uint32_t(*)[2])op, n, err), path, 0);
}

cdmpp_status cd_corun_table_read(const char *path, cd_corun_table *t, cdmpp_err *err) {
    cd_csv_table csv = {0};
    const cdmpp_status st = of_file(path, &csv, t, err);
    cd_csv_table_free(&csv);
    return st;
}

/* ---- from pairs that were measured ---- */

cdmpp_status cd_corun_table_of(const cd_record_corun *c, cd_corun_table *t, cdmpp_err *err) {
    cd_corun_row *row = CD_NEWN(&t->arena, cd_corun_row, c->n_row + 1);
    uint32_t(*op)[2] = cd_arena_zalloc(&t->arena, c->n_row + 1, sizeof *op);
    size_t n = 0;
    if (!row || !op) return CD_FAIL(err, ENOMEM, "%zu pairs", c->n_row);
    CD_TRY(begin(t, c->n, err));
    for (t->n = 0; t->n < c->n; t->n++)
        if (!(t->name[t->n] = cd_str_dup(&t->arena, c->best[t->n].key)))
            return CD_FAIL(err, ENOMEM, "operator");
    for (size_t i = 0; i < c->n_row; i++) {
        const cd_record_corun_row *r = &c->row[i];
        if (r->out.error_no) continue;
        op[n][0] = (uint32_t)r->first, op[n][1] = (uint32_t)r->second;
        row[n] = (cd_corun_row){.shared = r->sharing == CD_CORUN_SHARED};
        for (int k = 0; k < 2; k++) {
            row[n].solo_s[k] = r->out.solo_s[k], row[n].slowdown[k] = r->out.slowdown[k];
            row[n].bytes[k] = (double)cd_corun_bytes(&c->job[op[n][k]].code);
        }
        n++;
    }
    return fill(t, row, (const uint32_t(*)[2])op, n, err);
}

/* ---- the law of groups ---- */

static cdmpp_status pair(const cd_corun_table *t, int how, uint32_t a, uint32_t b, double *out,
                         cdmpp_err *err) {
    *out = t->slow[how][(size_t)a * t->n + b];
    return *out > 0 ? CDMPP_OK
                    : CD_FAIL(err, ENODATA, "no pair of %.60s and %.60s, %s", t->name[a],
                              t->name[b], how == SHARED ? "shared" : "disjoint");
}

/* What operator k of the group feels of another place: the mean over those who take turns there. */
static cdmpp_status other_place(const cd_corun_table *t, const uint32_t *op, uint32_t n,
                                uint32_t places, uint32_t k, uint32_t place, double *sum,
                                double *rest, cdmpp_err *err) {
    const double s = share(t, op[k]);
    double excess = 0, shares = 0, v;
    uint32_t m = 0;
    for (uint32_t j = place; j < n; j += places, m++) {
        CD_TRY(pair(t, BESIDE, op[k], op[j], &v, err));
        excess += v / cd_contention_slow(&t->fit, s, s + share(t, op[j]), 0, false) - 1;
        shares += share(t, op[j]);
    }
    *rest += excess / m;
    *sum += shares / m;
    return CDMPP_OK;
}

static cdmpp_status one(const cd_corun_table *t, const uint32_t *op, uint32_t n, uint32_t places,
                        uint32_t k, double *slow, cdmpp_err *err) {
    const double s = share(t, op[k]);
    double turns = 1, rest = 1, sum = s, v;
    for (uint32_t j = k % places; j < n; j += places) {
        if (j == k) continue;
        CD_TRY(pair(t, SHARED, op[k], op[j], &v, err));
        turns += v - 1;
    }
    for (uint32_t place = 0; place < places; place++)
        if (place != k % places) CD_TRY(other_place(t, op, n, places, k, place, &sum, &rest, err));
    *slow = turns * rest * cd_contention_slow(&t->fit, s, sum, 0, false);
    return CDMPP_OK;
}

cdmpp_status cd_corun_table_group(const cd_corun_table *t, const uint32_t *op, uint32_t n,
                                  uint32_t places, double *slow, cdmpp_err *err) {
    if (!places || places > n) return CD_FAIL(err, ERANGE, "%u operators on %u places", n, places);
    for (uint32_t k = 0; k < n; k++) CD_TRY(one(t, op, n, places, k, &slow[k], err));
    return CDMPP_OK;
}
