/* Prices of devices by the hour, from them the price of a million inferences; energy by data
 * sheets; the cheapest case of each network, and the one of least energy. */
#include <math.h>
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

/* One line a network, by the first case that has its name. */
void cd_network_report_put_cheapest(const cd_network_report *p, cd_buf *b) {
    char cell[CD_NETWORK_REPORT_CELL];
    for (size_t k = 0; k < p->e->n_item; k++) {
        if (!is_first(p, k)) continue;
        const char *name = p->e->item[k].source->name;
        const cd_network_estimate_case *c = cd_network_report_cheapest(p, name);
        cd_network_report_put_name(b, name, 0, SIZE_MAX);
        cd_buf_puts(b, ": ");
        if (!c) {
            cd_buf_puts(b, isnan(p->deadline_s)
                               ? "no device has a price and fits\n"
                               : "no device with a price is fast enough and fits\n");
            continue;
        }
        cd_network_report_put_time(cell, c->replay.makespan_s);
        cd_buf_putf(b, "cheapest%s is %s", isnan(p->deadline_s) ? "" : " under the deadline",
                    c->device->label);
        if (c->source->batch) cd_buf_putf(b, " with batch %lld", (long long)c->source->batch);
        cd_buf_putf(b, ", %s, %.3f %s a million\n", cell, cd_network_report_price(p, c),
                    cd_network_report_hour(p, c).currency);
    }
}

void cd_network_report_put_thriftiest(const cd_network_report *p, cd_buf *b) {
    char cell[CD_NETWORK_REPORT_CELL];
    for (size_t k = 0; k < p->e->n_item; k++) {
        if (!is_first(p, k)) continue;
        const char *name = p->e->item[k].source->name;
        const cd_network_estimate_case *c = cd_network_report_thriftiest(p, name);
        cd_network_report_put_name(b, name, 0, SIZE_MAX);
        if (!c) {
            cd_buf_puts(b, isnan(p->deadline_s)
                               ? ": of no device the power is known\n"
                               : ": no device whose power is known is fast enough and fits\n");
            continue;
        }
        cd_network_report_put_time(cell, c->replay.makespan_s);
        cd_buf_putf(b, ": least energy%s is that of %s",
                    isnan(p->deadline_s) ? "" : " under the deadline", c->device->label);
        if (c->source->batch) cd_buf_putf(b, " with batch %lld", (long long)c->source->batch);
        cd_buf_putf(b, ", %s, at most %.3g J (%g W)\n", cell, cd_network_report_energy(p, c),
                    cd_network_report_power(p, c));
    }
}
