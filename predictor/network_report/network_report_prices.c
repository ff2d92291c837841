/* Prices of devices by the hour, from them the price of a million inferences; energy by data
 * sheets; the cheapest case of each network, and the one of least energy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/network_report/network_report_internal.h"

enum { FIELDS = 3, MAX_CURRENCY = 8 };

/* Fields of a line, without blanks and quotes; how many, at most FIELDS. */
static size_t fields(char *line, char **out) {
    size_t n = 0;
    for (char *s = line; n < FIELDS;) {
        char *end = s + strcspn(s, ","), *last = end;
        const bool more = *end;
        while (*s == ' ' || *s == '"' || *s == '\t') s++;
        while (last > s && (last[-1] == ' ' || last[-1] == '"' || last[-1] == '\t')) last--;
        *end = 0;
        *last = 0;
        out[n++] = s;
        if (!more) break;
        s = end + 1;
    }
    return n;
}

/* A device has its name and the names under which it is described. */
static bool is_device(const cd_network_estimate *e, const cd_network_estimate_device *d,
                      const char *name) {
    const cd_device *a = cd_model_set_device(&e->models, name);
    return !strcmp(d->name, name) || !strcmp(d->label, name) || (a && a == d->about);
}

/* One line. A device may be listed under any of its names, but has one price. */
static cdmpp_status take(const cd_network_estimate *e, cd_network_prices *out, char *line,
                         bool first, cdmpp_err *err) {
    char *f[FIELDS], *end;
    const size_t n = fields(line, f);
    if (first && n >= 2 && !strcmp(f[1], "price_per_hour")) return CDMPP_OK;
    if (n < 2)
        return CD_FAIL(err, EPARSE, "expected device,price_per_hour[,currency], found '%.80s'",
                       f[0]);
    const double price = strtod(f[1], &end);
    if (end == f[1] || *end || !(price >= 0 && price < 1e12))
        return CD_FAIL(err, ERANGE, "price_per_hour: expected a number, 0 or more, found '%.40s'",
                       f[1]);
    for (size_t k = 0; k < e->n_device; k++) {
        cd_network_price *d = &out->device[k];
        if (!is_device(e, &e->device[k], f[0])) continue;
        if (!isnan(d->per_hour))
            return CD_FAIL(err, EINVALID, "a second price of %s", e->device[k].name);
        d->per_hour = price;
        if (n > 2 && strlen(f[2]) > MAX_CURRENCY)
            return CD_FAIL(err, EINVALID, "currency: expected at most %d bytes, found '%.40s'",
                           MAX_CURRENCY, f[2]);
        if (n > 2 && !(d->currency = cd_str_dup(&out->arena, (cd_str){f[2], strlen(f[2])})))
            return CD_FAIL(err, ENOMEM, "prices");
    }
    return CDMPP_OK;
}

/* Prices are compared, so they must have one currency. */
static cdmpp_status one_currency(const char *path, const cd_network_estimate *e,
                                 const cd_network_prices *p, cdmpp_err *err) {
    size_t first = e->n_device;
    for (size_t k = 0; k < e->n_device; k++) {
        const cd_network_price *d = &p->device[k];
        if (isnan(d->per_hour))
            cd_log_put(e->o->log, CD_LOG_WARNING, "%s: no price of %s", path, e->device[k].name);
        else if (first == e->n_device) first = k;
        else if (strcmp(p->device[first].currency, d->currency) != 0)
            return CD_FAIL(
                err, EINVALID, "price of %s in '%s', of %s in '%s': expected one currency",
                e->device[first].name, p->device[first].currency, e->device[k].name, d->currency);
    }
    return CDMPP_OK;
}

/* Prices start as unknown: a device without a line has none. */
cdmpp_status cd_network_prices_read(const char *path, const cd_network_estimate *e,
                                    cd_network_prices *out, cdmpp_err *err) {
    cd_file_lines *in = NULL;
    char *line;
    size_t len;
    bool first = true;
    if (!(out->device = CD_NEWN(&out->arena, cd_network_price, e->n_device)))
        return CD_FAIL(err, ENOMEM, "prices");
    for (size_t k = 0; k < e->n_device; k++) out->device[k] = (cd_network_price){NAN, ""};
    CD_TRY(cd_file_lines_open(path, 0, &in, err));
    cdmpp_status st = CDMPP_OK;
    while (!st) {
        st = cd_file_lines_next(in, &line, &len, err);
        if (st || !line) break;
        if (!len || line[0] == '#') continue;
        st = cd_err_at(err, take(e, out, line, first, err), path, cd_file_lines_number(in));
        first = false;
    }
    cd_file_lines_close(in);
    return st ? st : cd_err_at(err, one_currency(path, e, out, err), path, 0);
}

void cd_network_prices_free(cd_network_prices *p) { cd_arena_free(&p->arena); }

/* ---- prices of cases ---- */
cd_network_price cd_network_report_hour(const cd_network_report *p,
                                        const cd_network_estimate_case *c) {
    return p->prices ? p->prices->device[c->device - p->e->device] : (cd_network_price){NAN, ""};
}

double cd_network_report_price(const cd_network_report *p, const cd_network_estimate_case *c) {
    const double items = cd_network_estimate_throughput(c);
    return isnan(items) ? (double)NAN : cd_network_report_hour(p, c).per_hour / 3600 / items * 1e6;
}

/* ---- power ---- */
static cdmpp_status take_power(const char *text, const cd_network_estimate *e, cd_arena *a,
                               double *w, cdmpp_err *err) {
    const char *is = strrchr(text, '=');
    char *end;
    const double v = is ? strtod(is + 1, &end) : 0;
    bool any = false;
    if (!is || end == is + 1 || *end || !(v > 0 && v < 1e6))
        return CD_FAIL(err, EUSAGE, "--power: expected DEVICE=W with watts above 0, found '%.80s'",
                       text);
    const char *name = cd_str_dup(a, (cd_str){text, (size_t)(is - text)});
    if (!name) return CD_FAIL(err, ENOMEM, "devices");
    for (size_t k = 0; k < e->n_device; k++) {
        if (!is_device(e, &e->device[k], name)) continue;
        if (!isnan(w[k]))
            return CD_FAIL(err, EUSAGE, "--power: a second power of %.60s", e->device[k].name);
        w[k] = v;
        any = true;
    }
    return any ? CDMPP_OK
               : CD_FAIL(err, EUSAGE, "--power: nothing is asked about the device '%.60s'", name);
}

cdmpp_status cd_network_powers_read(const char *const *text, size_t n, const cd_network_estimate *e,
                                    cd_arena *a, const double **out, cdmpp_err *err) {
    double *w = CD_NEWN(a, double, e->n_device + 1);
    if (!w) return CD_FAIL(err, ENOMEM, "devices");
    for (size_t k = 0; k < e->n_device; k++) w[k] = (double)NAN;
    for (size_t k = 0; k < n; k++) CD_TRY(take_power(text[k], e, a, w, err));
    *out = w;
    return CDMPP_OK;
}

/* At most: what was said of it, else the data sheet's power all the time. Of a processor of which
 * some cores are used, their part of it. */
double cd_network_report_power(const cd_network_report *p, const cd_network_estimate_case *c) {
    const cd_device *d = c->device->about;
    const double said = p->power_w ? p->power_w[c->device - p->e->device] : (double)NAN;
    if (!isnan(said)) return said;
    if (!d || !(d->tdp_w > 0)) return (double)NAN;
    return d->cores_used > 0 && d->cores_used < d->cores ? d->tdp_w * d->cores_used / d->cores
                                                         : d->tdp_w;
}

double cd_network_report_energy(const cd_network_report *p, const cd_network_estimate_case *c) {
    return p->energy ? cd_network_report_power(p, c) / cd_network_estimate_throughput(c)
                     : (double)NAN;
}

/* The least of these, of the cases of this network that fit, under the deadline. */
static const cd_network_estimate_case *least(const cd_network_report *p, const char *network,
                                             double (*of)(const cd_network_report *,
                                                          const cd_network_estimate_case *)) {
    const cd_network_estimate_case *best = NULL;
    for (size_t k = 0; k < p->e->n_item; k++) {
        const cd_network_estimate_case *c = &p->e->item[k];
        if (c->st || strcmp(c->source->name, network) != 0 || isnan(of(p, c)) ||
            cd_network_estimate_fits(c) == CD_NETWORK_FITS_NO)
            continue;
        if (!isnan(p->deadline_s) && c->replay.makespan_s > p->deadline_s) continue;
        if (!best || of(p, c) < of(p, best)) best = c;
    }
    return best;
}

const cd_network_estimate_case *cd_network_report_cheapest(const cd_network_report *p,
                                                           const char *network) {
    return least(p, network, cd_network_report_price);
}
const cd_network_estimate_case *cd_network_report_thriftiest(const cd_network_report *p,
                                                             const char *network) {
    return least(p, network, cd_network_report_energy);
}

/* ---- lines below the table ---- */
static bool is_first(const cd_network_report *p, size_t k) {
    for (size_t j = 0; j < k; j++)
        if (!strcmp(p->e->item[j].source->name, p->e->item[k].source->name)) return false;
    return true;
}

static void network_report_put_time(char out[CD_NETWORK_REPORT_CELL], double s);

static void network_report_put_name(cd_buf *b, const char *s, size_t least, size_t most);

/* One line a network, by the first case that has its name. */
static void network_report_put_cheapest(const cd_network_report *p, cd_buf *b) {
    char cell[CD_NETWORK_REPORT_CELL];
    for (size_t k = 0; k < p->e->n_item; k++) {
        if (!is_first(p, k)) continue;
        const char *name = p->e->item[k].source->name;
        const cd_network_estimate_case *c = cd_network_report_cheapest(p, name);
        network_report_put_name(b, name, 0, SIZE_MAX);
        cd_buf_puts(b, ": ");
        if (!c) {
            cd_buf_puts(b, isnan(p->deadline_s)
                               ? "no device has a price and fits\n"
                               : "no device with a price is fast enough and fits\n");
            continue;
        }
        network_report_put_time(cell, c->replay.makespan_s);
        cd_buf_putf(b, "cheapest%s is %s", isnan(p->deadline_s) ? "" : " under the deadline",
                    c->device->label);
        if (c->source->batch) cd_buf_putf(b, " with batch %lld", (long long)c->source->batch);
        cd_buf_putf(b, ", %s, %.3f %s a million\n", cell, cd_network_report_price(p, c),
                    cd_network_report_hour(p, c).currency);
    }
}

static void network_report_put_thriftiest(const cd_network_report *p, cd_buf *b) {
    char cell[CD_NETWORK_REPORT_CELL];
    for (size_t k = 0; k < p->e->n_item; k++) {
        if (!is_first(p, k)) continue;
        const char *name = p->e->item[k].source->name;
        const cd_network_estimate_case *c = cd_network_report_thriftiest(p, name);
        network_report_put_name(b, name, 0, SIZE_MAX);
        if (!c) {
            cd_buf_puts(b, isnan(p->deadline_s)
                               ? ": of no device the power is known\n"
                               : ": no device whose power is known is fast enough and fits\n");
            continue;
        }
        network_report_put_time(cell, c->replay.makespan_s);
        cd_buf_putf(b, ": least energy%s is that of %s",
                    isnan(p->deadline_s) ? "" : " under the deadline", c->device->label);
        if (c->source->batch) cd_buf_putf(b, " with batch %lld", (long long)c->source->batch);
        cd_buf_putf(b, ", %s, at most %.3g J (%g W)\n", cell, cd_network_report_energy(p, c),
                    cd_network_report_power(p, c));
    }
}

/* Estimates as a table for people: a row a case, then summaries, then the operators of each case.
 *
 * A column is as wide as its widest cell, so each cell is made twice. Names come from files: what
 * would steer a terminal is replaced, and letters are counted as UTF-8. */

/* "7.421 ms"; NaN: "-" */
static void network_report_put_time(char out[CD_NETWORK_REPORT_CELL], double s) {
    if (isnan(s)) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else if (s >= 1) snprintf(out, CD_NETWORK_REPORT_CELL, "%.4g s", s);
    else if (s >= 1e-3) snprintf(out, CD_NETWORK_REPORT_CELL, "%.4g ms", s * 1e3);
    else snprintf(out, CD_NETWORK_REPORT_CELL, "%.4g us", s * 1e6);
}

static void put_bytes(char out[CD_NETWORK_REPORT_CELL], int64_t n) {
    if (n < 0) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else if (n >= (int64_t)1 << 30)
        snprintf(out, CD_NETWORK_REPORT_CELL, "%.3g GiB", (double)n / 1073741824.0);
    else if (n >= 1 << 20) snprintf(out, CD_NETWORK_REPORT_CELL, "%.3g MiB", (double)n / 1048576.0);
    else snprintf(out, CD_NETWORK_REPORT_CELL, "%.3g KiB", (double)n / 1024.0);
}

static void put_real(char out[CD_NETWORK_REPORT_CELL], double v, const char *form) {
    if (isnan(v)) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else snprintf(out, CD_NETWORK_REPORT_CELL, form, v);
}

/* A name in at least `least` and at most `most` letters; those that steer a terminal become "?". */
static void network_report_put_name(cd_buf *b, const char *s, size_t least, size_t most) {
    size_t n = 0;
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if ((c & 0xc0) != 0x80 && n++ == most) break; /* n counts letters: UTF-8 */
        cd_buf_put(b, c < 0x20 || c == 0x7f ? "?" : s, 1);
    }
    if (n > most) n = most;
    for (; n < least; n++) cd_buf_puts(b, " ");
}

static size_t letters(const char *s) {
    size_t n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* ---- columns ---- */
enum { ALWAYS, CORES_DIFFER, WHAT_IF, MEASURED, PRICES, RUN, GIVEN, PARALLEL, UNLIKE, ENERGIES };
typedef enum column_name {
    CORES,
    BATCH,
    BEFORE,
    LATENCY,
    SPEED_UP,
    TRAINING,
    FROM,
    TO,
    MEASURED_S,
    MEASURED_ERROR,
    RUN_S,
    RUN_ERROR,
    CHAIN,
    SUM,
    ITEMS,
    MEMORY,
    GIVEN_SHARE,
    UNLIKE_SHARE,
    MISSING,
    PRICE,
    ENERGY
} column_name;
static const struct {
    const char *title;
    int when;
} column[] = {
    [CORES] = {"cores", CORES_DIFFER},
    [BATCH] = {"batch", ALWAYS},
    [BEFORE] = {"before", WHAT_IF},
    [LATENCY] = {"latency", ALWAYS},
    [SPEED_UP] = {"speed-up", WHAT_IF},
    [TRAINING] = {"parallel", PARALLEL},
    [FROM] = {"from", ALWAYS},
    [TO] = {"to", ALWAYS},
    [MEASURED_S] = {"measured", MEASURED},
    [MEASURED_ERROR] = {"error", MEASURED},
    [RUN_S] = {"run here", RUN},
    [RUN_ERROR] = {"error", RUN},
    [CHAIN] = {"chain", ALWAYS},
    [SUM] = {"sum", ALWAYS},
    [ITEMS] = {"items/s", ALWAYS},
    [MEMORY] = {"memory", ALWAYS},
    [GIVEN_SHARE] = {"given", GIVEN},
    [UNLIKE_SHARE] = {"unlike", UNLIKE},
    [MISSING] = {"missing", ALWAYS},
    [PRICE] = {"a million", PRICES},
    [ENERGY] = {"energy", ENERGIES},
};
enum { N_COLUMN = sizeof column / sizeof *column };

static void put_memory(const cd_network_estimate_case *c, char out[CD_NETWORK_REPORT_CELL]) {
    char text[CD_NETWORK_REPORT_CELL];
    put_bytes(text, c->use[c->fullest].peak);
    snprintf(out, CD_NETWORK_REPORT_CELL, "%.18s%s", text,
             cd_network_estimate_fits(c) == CD_NETWORK_FITS_NO ? " (!)" : "");
}

static void put_price(const cd_network_report *p, const cd_network_estimate_case *c,
                      char out[CD_NETWORK_REPORT_CELL]) {
    const cd_network_estimate_case *best = cd_network_report_cheapest(p, c->source->name);
    if (isnan(cd_network_report_price(p, c))) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else
        snprintf(out, CD_NETWORK_REPORT_CELL, "%.3f %.8s%s", cd_network_report_price(p, c),
                 cd_network_report_hour(p, c).currency, c == best ? " *" : "");
}

static void put_energy(const cd_network_report *p, const cd_network_estimate_case *c,
                       char out[CD_NETWORK_REPORT_CELL]) {
    const double joule = cd_network_report_energy(p, c);
    if (isnan(joule)) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else
        snprintf(out, CD_NETWORK_REPORT_CELL, "%.3g J%s", joule,
                 c == cd_network_report_thriftiest(p, c->source->name) ? " *" : "");
}

static double percent_of(const cd_network_estimate_case *c, double seconds) {
    return c->ops_s > 0 ? 100 * seconds / c->ops_s : 0;
}

static void put_cell(const cd_network_report *p, const cd_network_estimate_case *c,
                     column_name which, char out[CD_NETWORK_REPORT_CELL]) {
    const double measured_s = c->measured_s;
    const double cores = cd_network_estimate_cores(p->e, c->device);
    switch (which) {
    case CORES: put_real(out, cores > 0 ? cores : (double)NAN, "%.0f"); break;
    case BATCH:
        put_real(out, c->source->batch > 0 ? (double)c->source->batch : (double)NAN, "%.0f");
        break;
    case BEFORE: network_report_put_time(out, c->before_s); break;
    case LATENCY: network_report_put_time(out, c->replay.makespan_s); break;
    case SPEED_UP: put_real(out, c->before_s / c->replay.makespan_s, "%.3fx"); break;
    case TRAINING: network_report_put_time(out, c->cluster.replay_s); break;
    case FROM: network_report_put_time(out, c->interval.low_s); break;
    case TO: network_report_put_time(out, c->interval.high_s); break;
    case MEASURED_S: network_report_put_time(out, measured_s); break;
    case MEASURED_ERROR:
        put_real(out, 100 * cd_network_estimate_error(c, measured_s), "%+.1f %%");
        break;
    case RUN_S: network_report_put_time(out, c->run_s); break;
    case RUN_ERROR: put_real(out, 100 * cd_network_estimate_error(c, c->run_s), "%+.1f %%"); break;
    case CHAIN: network_report_put_time(out, c->replay.chain_s); break;
    case SUM: network_report_put_time(out, c->replay.sum_s); break;
    case ITEMS: put_real(out, cd_network_estimate_throughput(c), "%.4g"); break;
    case MEMORY: put_memory(c, out); break;
    case GIVEN_SHARE: put_real(out, percent_of(c, c->given_s), "%.1f %%"); break;
    case UNLIKE_SHARE:
        put_real(out, percent_of(c, cd_network_estimate_unlike_s(c)), "%.0f %%");
        break;
    case MISSING: put_real(out, 100 * c->missing_share, "%.1f %%"); break;
    case PRICE: put_price(p, c, out); break;
    case ENERGY: put_energy(p, c, out); break;
    }
}

static bool any_unlike(const cd_network_report *p) {
    for (size_t k = 0; k < p->e->n_item; k++)
        if (!p->e->item[k].st && cd_network_estimate_unlike_s(&p->e->item[k]) > 0) return true;
    return false;
}

/* Times of 16 cores and of one beside each other. */
static bool cores_differ(const cd_network_report *p) {
    double one = 0;
    for (size_t k = 0; k < p->e->n_device; k++) {
        const double cores = cd_network_estimate_cores(p->e, &p->e->device[k]);
        if (cores > 0 && one > 0 && fabs(cores - one) > 0.5) return true;
        if (cores > 0) one = cores;
    }
    return false;
}

static bool is_shown(const cd_network_report *p, int when) {
    const cd_network_estimate_options *o = p->e->o;
    return when == ALWAYS || (when == CORES_DIFFER && cores_differ(p)) ||
           (when == WHAT_IF && o->what_if.n) || (when == MEASURED && p->measured) ||
           (when == PRICES && p->prices) || (when == ENERGIES && p->energy) ||
           (when == RUN && o->run) || (when == PARALLEL && o->parallel) ||
           (when == GIVEN && o->graph.n) || (when == UNLIKE && any_unlike(p));
}

/* ---- the table ---- */
static size_t widest(const cd_network_report *p, bool device) {
    size_t w = 7;
    for (size_t k = 0; k < p->e->n_item; k++) {
        char label[CD_NETWORK_REPORT_DEVICE];
        const size_t n = letters(device ? cd_network_report_device(p->e->item[k].device, label)
                                        : p->e->item[k].source->name);
        if (n > w) w = n;
    }
    return w > 48 ? 48 : w;
}

static void put_row(const cd_network_report *p, const cd_network_estimate_case *c,
                    const size_t *width, cd_buf *b) {
    char cell[CD_NETWORK_REPORT_CELL];
    for (int k = 0; k < N_COLUMN; k++) {
        if (!is_shown(p, column[k].when)) continue;
        put_cell(p, c, (column_name)k, cell);
        cd_buf_putf(b, "  %*s", (int)width[k], cell);
    }
}

static void widths(const cd_network_report *p, size_t *width) {
    char cell[CD_NETWORK_REPORT_CELL];
    for (int k = 0; k < N_COLUMN; k++) {
        width[k] = strlen(column[k].title);
        for (size_t i = 0; i < p->e->n_item && is_shown(p, column[k].when); i++) {
            if (p->e->item[i].st) continue;
            put_cell(p, &p->e->item[i], (column_name)k, cell);
            if (strlen(cell) > width[k]) width[k] = strlen(cell);
        }
    }
}

/* A failed case has its message in place of the columns. */
static void put_table(const cd_network_report *p, cd_buf *b) {
    const int name = (int)widest(p, false), device = (int)widest(p, true);
    size_t width[N_COLUMN];
    widths(p, width);
    cd_buf_putf(b, "%-*s  %-*s", name, "network", device, "device");
    for (int k = 0; k < N_COLUMN; k++)
        if (is_shown(p, column[k].when)) cd_buf_putf(b, "  %*s", (int)width[k], column[k].title);
    cd_buf_puts(b, "\n");
    for (size_t k = 0; k < p->e->n_item; k++) {
        const cd_network_estimate_case *c = &p->e->item[k];
        char label[CD_NETWORK_REPORT_DEVICE];
        network_report_put_name(b, c->source->name, (size_t)name, (size_t)name);
        cd_buf_puts(b, "  ");
        network_report_put_name(b, cd_network_report_device(c->device, label), (size_t)device,
                                (size_t)device);
        if (c->st) {
            cd_buf_puts(b, "  no total: ");
            network_report_put_name(b, c->err.msg, 0, SIZE_MAX);
        } else put_row(p, c, width, b);
        cd_buf_puts(b, "\n");
    }
}

/* ---- below it ---- */
/* Mean and largest error against the measured times, or against the run here. `given`: only cases
 * that took at most this share of their time from the file; below 1 nothing is printed where that
 * leaves out no case or all. */
static void put_summary(const cd_network_report *p, cd_buf *b, const char *what, bool ran,
                        double given) {
    double sum = 0, most = 0;
    size_t n = 0, all = 0;
    for (size_t k = 0; k < p->e->n_item; k++) {
        const cd_network_estimate_case *c = &p->e->item[k];
        const double e = c->st ? (double)NAN
                               : fabs(cd_network_estimate_error(c, ran ? c->run_s : c->measured_s));
        if (isnan(e)) continue;
        all++;
        if (c->given_s > given * c->ops_s) continue;
        n++;
        sum += e;
        if (e > most) most = e;
    }
    if (given < 1 && (n == all || !n)) return;
    if (n)
        cd_buf_putf(b, "%s: mean error %.1f %%, most %.1f %% (n=%zu)\n", what,
                    100 * sum / (double)n, 100 * most, n);
    else cd_buf_putf(b, "%s: nothing to compare with\n", what);
}

/* ---- ranges ---- */
static void put_one_schedule(const cd_network_estimate_curve *c, cd_buf *b) {
    size_t worst = 0;
    double sum = 0, apart = 0;
    if (!c->has_one) {
        cd_buf_putf(b, "    one schedule for all: not known, %s\n", c->why_not);
        return;
    }
    for (size_t k = 0; k < c->n; k++) {
        sum += c->loss[k];
        if (c->loss[k] > c->loss[worst]) worst = k;
        if (c->apart[k] > apart) apart = c->apart[k];
    }
    cd_buf_putf(b,
                "    one schedule of each operator for all: predicted %.1f %% slower than the best "
                "of each size in the mean of these %zu, %.1f %% at %lld",
                100 * sum / (double)c->n, c->n, 100 * c->loss[worst], (long long)c->size[worst]);
    if (apart > 0)
        cd_buf_putf(b, " (without up to %.0f %% of the time, which no one schedule fits)",
                    100 * apart);
    cd_buf_puts(b, "\n");
}

/* Sizes that were estimated have a *. */
static void put_curve(const cd_network_report *p, const cd_network_estimate_curve *c, cd_buf *b) {
    const cd_network_estimate *e = p->e;
    char s[CD_NETWORK_REPORT_CELL], from[CD_NETWORK_REPORT_CELL], to[CD_NETWORK_REPORT_CELL];
    network_report_put_name(b, c->first->source->given, 0, 48);
    cd_buf_putf(b, ", %s, %s %lld..%lld: ", c->first->device->label, e->over, (long long)e->size[0],
                (long long)e->size[e->n_size - 1]);
    if (c->st) {
        network_report_put_name(b, c->err.msg, 0, SIZE_MAX);
        cd_buf_puts(b, "\n");
        return;
    }
    cd_buf_putf(b, "%s", cd_perf_curve_form_name(c->law.form));
    if (cd_perf_curve_turns(&c->law)) {
        cd_buf_puts(b, ", turns ");
        cd_perf_curve_turn_put(b, &c->law.turn);
    }
    cd_buf_putf(b, "\n  %10s  %10s  %10s  %10s   *: estimated, the others by the law\n", e->over,
                "latency", "from", "to");
    for (int64_t size = 0; (size = cd_network_estimate_curve_next(e, size));) {
        double v, low, high;
        bool estimated;
        cd_network_estimate_curve_at(c, size, &v, &low, &high, &estimated);
        network_report_put_time(s, v);
        network_report_put_time(from, low);
        network_report_put_time(to, high);
        cd_buf_putf(b, "  %10lld  %10s  %10s  %10s %s\n", (long long)size, s, from, to,
                    estimated ? "*" : "");
    }
    put_one_schedule(c, b);
}

/* ---- operators ---- */
typedef struct {
    uint32_t op;
    double s;
} ranked;
static int longest(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->s != y->s) return x->s > y->s ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

/* Times are of all runs of the operator, so that they add up to the sum of the table. */
static void put_op(const cd_network_estimate_case *c, uint32_t op, bool critical, cd_buf *b) {
    char seconds[CD_NETWORK_REPORT_CELL], low[CD_NETWORK_REPORT_CELL], high[CD_NETWORK_REPORT_CELL],
        here[CD_NETWORK_REPORT_CELL] = "";
    const uint32_t node = c->net->of[op];
    const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, node);
    const cd_network_node *v = &c->source->graph->node[node];
    const cd_str source = cd_enum_names_at(CD_COST_SOURCES, (int)n->source);
    const double all = n->seconds * (double)v->repeat;
    network_report_put_time(seconds, all);
    network_report_put_time(low, n->low_s * (double)v->repeat);
    network_report_put_time(high, n->high_s * (double)v->repeat);
    if (c->ran) network_report_put_time(here, c->ran->node[node].place_s);
    cd_buf_putf(b, "%10s %6.2f %%  %10s %10s%*s  %s %-8.*s ", seconds,
                c->ops_s > 0 ? 100 * all / c->ops_s : 0, low, high, c->ran ? 11 : 0, here,
                critical ? "*" : " ", (int)source.n, source.p);
    network_report_put_name(b, v->op, 24, 24);
    cd_buf_puts(b, " ");
    network_report_put_name(b, v->name, 0, SIZE_MAX);
    if (v->repeat > 1) cd_buf_putf(b, " (%lld times)", (long long)v->repeat);
    if (n->flags & CD_MODEL_OUT_OF_RANGE)
        cd_buf_putf(b, " (out of range%s%s)", n->unlike ? ": " : "", n->unlike ? n->unlike : "");
    if (n->schedule) {
        cd_buf_puts(b, " [");
        network_report_put_name(b, n->schedule, 0, SIZE_MAX);
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "\n");
}

static void put_unestimated(const cd_network_estimate_case *c, cd_buf *b) {
    for (uint32_t k = 0; k < c->source->graph->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        if (n->source != CD_COST_MISSING || !c->source->graph->node[k].repeat) continue;
        const char *const text[] = {"   missing             ",
                                    c->source->graph->node[k].op,
                                    " ",
                                    c->source->graph->node[k].name,
                                    ": ",
                                    n->why ? n->why : ""};
        for (size_t i = 0; i < sizeof text / sizeof *text; i++)
            network_report_put_name(b, text[i], 0, SIZE_MAX);
        cd_buf_puts(b, "\n");
    }
}

/* Operators by time, longest first, then those that are missing. */
static void put_ops(const cd_network_report *p, const cd_network_estimate_case *c, cd_buf *b) {
    const uint32_t n = c->net->net.n_op;
    ranked *r = cd_mem_alloc((n + 1) * sizeof *r);
    bool *critical = cd_network_estimate_critical(c);
    if (!r || !critical) b->oom = true;
    for (uint32_t k = 0; r && k < n; k++) r[k] = (ranked){k, c->net->net.op[k].seconds};
    if (r && critical) {
        qsort(r, n, sizeof *r, longest);
        cd_buf name = {0};
        cd_network_estimate_case_name(p->e, c, &name);
        b->oom |= name.oom;
        cd_buf_puts(b, "\n");
        if (!name.oom) network_report_put_name(b, name.p, 0, SIZE_MAX);
        cd_buf_free(&name);
        cd_buf_putf(b,
                    "\n      time    share        from         to%*s    source   operator          "
                    "       name [schedule]; *: on the critical path\n",
                    c->ran ? 11 : 0, c->ran ? "run here" : "");
        for (uint32_t k = 0; k < n; k++) put_op(c, r[k].op, critical[r[k].op], b);
        put_unestimated(c, b);
    }
    cd_mem_free(r);
    cd_mem_free(critical);
}

/* What was guessed as a network was read changes the answer: without warnings it stands with the
 * answer. */
static void put_notes(const cd_network_report *p, cd_buf *b) {
    const cd_log *log = p->e->o->log;
    for (size_t k = 0; k < p->e->n_source && log && log->level < CD_LOG_WARNING; k++) {
        const cd_graph *g = cd_network_estimate_notes(p->e, p->e->source[k]);
        for (uint32_t i = 0; g && i < g->n_note; i++) {
            cd_buf_puts(b, i ? "" : "\n");
            network_report_put_name(b, g->name, 0, SIZE_MAX);
            cd_buf_puts(b, ": ");
            network_report_put_name(b, g->note[i], 0, SIZE_MAX);
            cd_buf_puts(b, "\n");
        }
    }
}

/* ---- all ---- */
void cd_network_report_text(const cd_network_report *p, cd_buf *b) {
    const size_t before = b->n;
    cd_network_report_whose(p->e, b);
    if (b->n > before) cd_buf_puts(b, "\n");
    put_table(p, b);
    for (size_t k = 0; k < p->e->n_curve; k++) put_curve(p, &p->e->curve[k], b);
    if (p->measured) put_summary(p, b, "against the measured", false, 1);
    if (p->measured)
        put_summary(p, b, "those of which at most 15 % of the time is given", false, 0.15);
    if (p->e->o->run) put_summary(p, b, "against the run here", true, 1);
    if (p->prices) network_report_put_cheapest(p, b);
    if (p->energy) network_report_put_thriftiest(p, b);
    for (size_t k = 0; k < p->e->n_item && p->ops; k++)
        if (!p->e->item[k].st) put_ops(p, &p->e->item[k], b);
    put_notes(p, b);
}
